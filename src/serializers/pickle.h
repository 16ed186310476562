// Reads pickles of tensors, dicts, lists, texts and numbers. Nothing is executed: what a pickle
// refers to by name is looked up among the few names that PyTorch's tensors need, and each of them
// only gathers its arguments. The format is described in Python's pickletools.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/read_budget.h"

namespace catena::serializers {

// What a value of a pickle is.
enum class PickleKind : uint8_t {
  kNone,
  kBool,
  kInt,
  kLongInt,  // more than 64 bits; the value is not kept
  kFloat,
  kText,
  kBytes,
  kTuple,
  kList,
  kDict,     // items: key, value, key, value, ...
  kGlobal,   // text: the name, "torch.FloatStorage"
  kObject,   // of a TorchScript class; items as of a dict: its attributes
  kStorage,  // items: what follows 'storage' in its tuple: type, key, device, number of elements
  kTensor,   // items: storage, offset, size, stride, then the dtype (a global) or nothing
  kOther,    // a value that nobody asks for; text: what made it, "torch.device"
};
// "int", "list": for lists of what was left out.
std::string_view name_of(PickleKind kind);

// A value. Values belong to their machine and may refer to each other in circles.
struct PickleValue {
  PickleKind kind = PickleKind::kNone;
  int64_t integer = 0;
  std::string_view text;
  std::vector<PickleValue*> items;
};

// Pickles of protocol 2 to 5, one behind the other.
class PickleMachine {
 public:
  // `name` begins the errors: "'net.pt': member 'net/data.pkl'". `script`: the classes and helpers
  // of TorchScript are known. Charges `budget` for values and work. The bytes must outlive the
  // machine.
  PickleMachine(std::string name, std::string_view bytes, bool script, ReadBudget& budget);
  // Reads the next pickle up to its end. IoError with the offset for damage and for what is not
  // known.
  const PickleValue& run();
  // The offset behind the last pickle.
  uint64_t position() const { return at_; }
  // Of all pickles, in their order.
  const std::vector<const PickleValue*>& storages() const { return storages_; }

 private:
  enum class Role : uint8_t;
  struct Global;

  [[noreturn]] void bad(const std::string& what) const;
  std::string_view take(uint64_t bytes);
  uint64_t number(int bytes);
  std::string_view line();
  PickleValue& make(PickleKind kind);
  void push(PickleValue& value);
  void push_int(int64_t value);
  void push_text(PickleKind kind, std::string_view text);
  void push_long(uint64_t bytes);
  PickleValue& pop();
  PickleValue& top();
  std::vector<PickleValue*> pop_marked();
  void push_tuple(size_t count);
  void remember(uint64_t slot);
  void recall(uint64_t slot);

  bool step(uint8_t opcode);
  bool constant(uint8_t opcode);
  bool container(uint8_t opcode);
  void memory(uint8_t opcode);
  void global(std::string_view module, std::string_view name);
  void append(const std::vector<PickleValue*>& items);
  void set_items(const std::vector<PickleValue*>& items);
  void reduce();
  PickleValue& call(const PickleValue& function, const std::vector<PickleValue*>& arguments);
  PickleValue& make_dict(const std::vector<PickleValue*>& arguments);
  void add_items(PickleValue& container, const std::vector<PickleValue*>& items);
  PickleValue& make_other(std::string_view maker);
  PickleValue& make_tensor(const std::vector<PickleValue*>& arguments, size_t dtype_at);
  void new_object();
  void build();
  void persistent();

  std::string name_;
  std::string_view bytes_;
  bool script_;
  ReadBudget& budget_;
  uint64_t at_ = 0, opcode_at_ = 0;
  std::deque<PickleValue> values_;
  std::deque<std::string> names_;  // of globals, joined
  std::vector<PickleValue*> stack_;
  std::vector<const PickleValue*> storages_;
  std::vector<size_t> marks_;  // sizes of the stack
  std::unordered_map<uint64_t, PickleValue*> memo_;
};

}  // namespace catena::serializers
