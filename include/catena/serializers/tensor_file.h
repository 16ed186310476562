// Files of named tensors, read one by one: safetensors, PyTorch's .pt, NumPy's .npz.
//
//   const auto file = serializers::open_tensor_file("net.safetensors");
//   for (const auto& tensor : file->tensors()) std::cout << tensor.name << tensor.shape << '\n';
//   const Array w = (*file)["fc1.weight"];
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "catena/array/named_arrays.h"
#include "catena/autograd/function_set.h"

namespace catena::serializers {

// What is known of a tensor before its elements are read.
struct TensorInfo {
  std::string name;
  std::string type;            // the file's word for the dtype: "F32", "torch.float32"
  std::optional<Dtype> dtype;  // none where catena has no such dtype: float8, complex numbers
  Shape shape;
  uint64_t bytes = 0;              // of its elements, without gaps
  std::optional<uint64_t> offset;  // of its first byte in the file; none in archives (.pt, .npz)
};
// The same of arrays in memory, and of a model's parameters and persistent arrays.
std::vector<TensorInfo> tensor_infos(const NamedArrays& arrays);
std::vector<TensorInfo> tensor_infos(const Parameterized& model);

// Texts that a file keeps beside its tensors.
using Metadata = std::map<std::string, std::string>;

// An open file of tensors. Opening reads and checks what describes the tensors, elements are read
// when they are asked for, each time anew. May be read by several threads at once. Its errors are
// IoErrors that name the path and, where there is one, the tensor.
class TensorFile {
 public:
  virtual ~TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;

  // As it was given.
  const std::string& path() const { return path_; }
  // "safetensors", "PyTorch" or "npz".
  const std::string& format() const { return format_; }
  // All tensors, in the order of the file.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  size_t size() const { return tensors_.size(); }
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;
  // IndexError, naming those there are, when there is none of this name.
  const TensorInfo& info(std::string_view name) const;
  const Metadata& metadata() const { return metadata_; }
  // What the file has besides tensors, with its kind: "epoch (int)".
  const std::vector<std::string>& skipped() const { return skipped_; }

  // Reads one tensor. IndexError as info; IoError when its elements are damaged or of a dtype that
  // catena does not have.
  Array read(std::string_view name, Device device = cpu(0)) const;
  Array operator[](std::string_view name) const { return read(name); }
  // Reads all, or those of the given names, in that order.
  NamedArrays read_all(Device device = cpu(0)) const;
  NamedArrays read_many(const std::vector<std::string>& names, Device device = cpu(0)) const;

 protected:
  TensorFile(std::string path, std::string format);
  // Takes the description. IoError for two tensors of one name.
  void describe(std::vector<TensorInfo> tensors, Metadata metadata,
                std::vector<std::string> skipped);
  // The elements of tensors()[index], on cpu:0. `dtype` is that of the tensor.
  virtual Array read_elements(size_t index, Dtype dtype) const = 0;
  // Called before and after many are read, so that what they share is read once.
  virtual void read_together(const std::vector<size_t>& indices, NamedArrays& arrays) const;
  // The dtype of a tensor; IoError when catena does not have it.
  Dtype known_dtype(size_t index) const;

 private:
  size_t index_of(std::string_view name) const;

  std::string path_, format_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
  Metadata metadata_;
  std::vector<std::string> skipped_;
};

// Opens a file by its content, whatever its name ends with. IoError for one of another format,
// which is named where it is known.
std::unique_ptr<TensorFile> open_tensor_file(const std::string& path);
// All tensors of such a file.
NamedArrays load_tensors(const std::string& path, Device device = cpu(0));

}  // namespace catena::serializers
