// State dicts that PyTorch saved: the zip archives of torch.save (1.6 and newer), of torch.jit.save
// and libtorch's torch::save, and the pickles of before (0.4 to 1.5).
//
//   const serializers::PytorchFile file("net.pt");
//   serializers::load_into(model, file, NameMap::from_pytorch());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "catena/serializers/tensor_file.h"

namespace catena::serializers {

// An open .pt file. Its pickle is read by a reader that knows tensors, parameters, dicts, lists,
// tuples, texts, numbers, and plain values of Python and NumPy, such as sets, dates, paths, scalars
// and argparse.Namespace. No code is run, and a file that refers to any other class or function is
// refused by an IoError that names it. Dicts in dicts give names with dots,
// {"model": {"fc.weight": ...}} "model.fc.weight", and so do positions in lists; what is not a
// tensor is in skipped(). Of modules that TorchScript saved the attributes are read.
//
// Elements are read on the CPU wherever they were, in either byte order, of views with any strides;
// an expanded tensor stays one (stride 0). Arrays that one call reads share memory where tensors
// did, as after torch.load; bool arrays share it with each other alone. Sparse and quantized
// tensors are IoErrors; complex and 8-bit floating tensors are listed and cannot be read. Pickles
// of more than 64 MiB and names of more than 64 KiB are IoErrors, and so is what needs more than
// 512 MiB of memory, a million entries, 64 dicts in dicts or about a second to describe. The
// checksums of an archive without any are not compared.
class PytorchFile final : public TensorFile {
 public:
  explicit PytorchFile(const std::string& path);
  ~PytorchFile() override;

 private:
  struct Archive;
  Array read_elements(size_t index, Dtype dtype) const override;
  void read_together(const std::vector<size_t>& indices, NamedArrays& arrays) const override;
  std::unique_ptr<Archive> archive_;
};

// All tensors, in the order of the file.
NamedArrays load_pytorch(const std::string& path, Device device = cpu(0));

}  // namespace catena::serializers
