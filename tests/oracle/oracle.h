// Cases that NumPy has computed (see README.md), and the table of catena's routines that compute
// them again. One entry in a table, by the name that the generator uses, makes a routine known.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "catena/array/array.h"

namespace catena::oracle {

// A parameter of a call: nothing, an integer, a float, text, or a list of parameters.
struct Value {
  enum class Kind { kNone, kInteger, kReal, kText, kList } kind = Kind::kNone;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Value> list;

  bool none() const { return kind == Kind::kNone; }
};

// An integer, "newaxis", "..." or [start, stop, step], each of which may be none, as an index.
Index index_of(const Value& value);

// A view of one of the case's memory blocks.
struct View {
  size_t block = 0;
  Dtype dtype = Dtype::kFloat64;
  Shape shape;
  Strides strides;
  int64_t offset = 0;  // bytes
};

// An argument: a view, or a host number.
struct Argument {
  std::optional<View> view;
  Scalar scalar;
};

// What one result must be: equal to `low` bit for bit (NaN is NaN), or, when there is a `high`,
// between both. Elements in C order.
struct Expected {
  Dtype dtype = Dtype::kFloat64;
  Shape shape;
  const char* low = nullptr;
  const char* high = nullptr;
};

struct Bytes {
  const char* data = nullptr;
  size_t size = 0;
  Dtype dtype = Dtype::kUInt8;
};

struct Case {
  std::string routine;
  std::string name;  // by which the generator makes it again; empty: it goes by its number
  std::string text;  // its line in the file, for messages
  std::vector<Bytes> blocks;
  std::vector<Argument> arguments;
  std::map<std::string, Value> parameters;
  // NumPy refused it: its exception, and what else catena's may stand for.
  std::optional<std::vector<std::string>> error;
  std::vector<Expected> expected;
  std::vector<std::string> result_names;      // of `expected`, for messages; may be shorter
  std::optional<bool> shared;                 // whether the results are views of the arguments
  std::map<size_t, Bytes> blocks_afterwards;  // blocks that the call changes
};

struct CaseFile {
  Array buffer;              // owns all bytes
  std::string origin, seed;  // "NumPy 2.1", and of the random choices
  std::vector<Case> cases;
};
// Throws IoError or std::exception when the file is not one that generate.py wrote.
CaseFile read_case_file(const std::string& path);

// A case with its arguments on the device, as a routine sees it.
class Call {
 public:
  Call(const Case& c, Device device);

  Device device() const { return device_; }
  size_t count() const { return case_.arguments.size(); }
  bool is_array(size_t k) const { return case_.arguments.at(k).view.has_value(); }
  const Array& array(size_t k) const;
  // An array or a host number.
  Operand operand(size_t k) const;
  const Scalar& scalar(size_t k) const { return case_.arguments.at(k).scalar; }
  // All arrays from argument k on, without the one that receives the result.
  std::vector<Array> arrays(size_t k = 0) const;

  bool has(const std::string& name) const;  // given and not none
  const Value& parameter(const std::string& name) const;
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t otherwise) const;
  std::optional<int64_t> optional_integer(const std::string& name) const;
  double real(const std::string& name) const;
  bool flag(const std::string& name) const { return integer(name, 0) != 0; }
  // A list, or one integer as a list; empty when not given.
  Dims dims(const std::string& name) const;
  std::optional<Dtype> dtype(const std::string& name = "dtype") const;
  // The array of parameter "out", else the dtype of parameter "dtype", else nothing.
  Out out() const;
  // The array of parameter "out" or null.
  const Array* out_array() const;
  // The bytes of a block now, on the host.
  std::vector<char> block_bytes(size_t k) const;

 private:
  const Case& case_;
  Device device_;
  std::vector<Array> blocks_, arrays_;
};

using Results = std::vector<Array>;
using Routine = std::function<Results(const Call&)>;
using Routines = std::map<std::string, Routine>;

// The table of the program, by the names that its generator uses.
Routines all_routines();

void add_creation(Routines& routines);
void add_elementwise(Routines& routines);
void add_everyday(Routines& routines);
void add_float_parts(Routines& routines);
void add_indexing(Routines& routines);
void add_linalg(Routines& routines);
void add_manipulation(Routines& routines);
void add_narrow(Routines& routines);
void add_numerics(Routines& routines);
void add_reduction(Routines& routines);
void add_sorting(Routines& routines);
void add_views(Routines& routines);

struct Failure {
  std::string kind;    // "dtype", "shape", "value", ...: counted together
  std::string detail;  // expected and got
};
// Runs the routine on the device and compares; nothing when all is as NumPy says.
std::optional<Failure> check(const Case& c, const Routine& routine, Device device);

}  // namespace catena::oracle
