// The two outer forms of files of torch.save: zip archives (PyTorch 1.6 and newer, torch.jit.save),
// and before that pickles with the elements behind them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "array/io/file_io.h"
#include "catena/core/dtype.h"
#include "serializers/pickle.h"

namespace catena::serializers {

// A dtype of PyTorch.
struct TorchDtype {
  std::string_view name;
  std::optional<Dtype> dtype;  // none where catena does not have it
  int64_t bytes;
};
// By its name "float32", or by a class of storages "FloatStorage"; none: not known.
std::optional<TorchDtype> find_torch_dtype(std::string_view name);
std::optional<TorchDtype> find_torch_storage(std::string_view storage);
// What is behind the last point: "FloatStorage" of "torch.FloatStorage".
std::string_view last_part(std::string_view name);

// Storages whose elements are bytes.
inline constexpr std::string_view kUntypedStorage = "UntypedStorage";

class TorchContainer {
 public:
  // Reads the outer form and the pickle. The file and the budget must outlive it. IoError for a
  // file of another format.
  static std::unique_ptr<TorchContainer> open(const io::InputFile& file, ReadBudget& budget);
  virtual ~TorchContainer() = default;

  // What was saved. Until forget_pickle(), which frees what the tensors' elements do not need.
  const PickleValue& value() const { return *value_; }
  void forget_pickle();

  // A number for the storage of a key; none where the file lacks it.
  virtual std::optional<size_t> find(std::string_view key) const = 0;
  // Of the storage of a key, for errors: "member 'net/data/0'".
  virtual std::string name_of(std::string_view key) const = 0;
  virtual uint64_t bytes(size_t storage) const = 0;
  // All of its bytes.
  virtual void read(size_t storage, char* destination) const = 0;
  // Whether the elements are big-endian.
  virtual bool is_swapped() const { return false; }

 protected:
  // The machine's text; it and the machine are freed together.
  PickleMachine& start_pickle(const std::string& name, std::string text, bool script,
                              ReadBudget& budget);
  const PickleValue* value_ = nullptr;

 private:
  std::string text_;
  std::unique_ptr<PickleMachine> machine_;
};

}  // namespace catena::serializers
