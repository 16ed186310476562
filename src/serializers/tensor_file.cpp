#include "catena/serializers/tensor_file.h"

#include <algorithm>

#include "array/io/npy.h"
#include "array/io/zip.h"
#include "catena/serializers/npz.h"
#include "catena/serializers/pytorch.h"
#include "catena/serializers/safetensors.h"
#include "core/read_budget.h"
#include "serializers/file_formats.h"

namespace catena::serializers {
namespace {

TensorInfo info_of(const std::string& name, const Array& array) {
  CATENA_CHECK(ValueError, array.defined(), "tensor_infos: array '", name, "' is not defined");
  return {name,          catena::name(array.dtype()),           array.dtype(),
          array.shape(), static_cast<uint64_t>(array.nbytes()), {}};
}

// NumPy's archives.
class NpzTensorFile final : public TensorFile {
 public:
  explicit NpzTensorFile(const std::string& path)
      : TensorFile(path, "npz"), file_(path), zip_(file_) {
    ReadBudget budget(message("reading '", path, "'"));
    std::vector<TensorInfo> infos;
    std::vector<std::string> others;
    for (const auto& member : zip_.members()) {
      if (!member.name.ends_with(kEnding)) {
        others.push_back(member.name + " (not an .npy array)");
        continue;
      }
      const auto source = zip_.open(member);
      const io::NpyHeader header = io::read_npy_header(*source);
      budget.charge_entry(member.name);
      budget.charge_steps(source->position());
      infos.push_back({member.name.substr(0, member.name.size() - kEnding.size()),
                       catena::name(header.dtype),
                       header.dtype,
                       header.shape,
                       header.bytes,
                       {}});
      members_.push_back(&member);
    }
    describe(std::move(infos), {}, std::move(others));
  }

 private:
  static constexpr std::string_view kEnding = ".npy";
  Array read_elements(size_t index, Dtype) const override {
    return io::read_npy_exactly(*zip_.open(*members_[index]));
  }

  io::InputFile file_;
  io::ZipReader zip_;
  std::vector<const io::ZipReader::Member*> members_;
};

// Whether a zip archive is one of torch.save.
bool is_pytorch(const io::InputFile& file) {
  const io::ZipReader zip(file);
  return std::any_of(zip.members().begin(), zip.members().end(),
                     [](const auto& member) { return member.name.ends_with("/data.pkl"); });
}

}  // namespace

std::vector<TensorInfo> tensor_infos(const NamedArrays& arrays) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, array] : arrays) infos.push_back(info_of(name, array));
  return infos;
}

std::vector<TensorInfo> tensor_infos(const Parameterized& model) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, parameter] : model.named_parameters())
    infos.push_back(info_of(name, parameter.data()));
  for (const auto& [name, persistent] : model.named_persistents())
    infos.push_back(info_of(name, persistent.data()));
  return infos;
}

TensorFile::TensorFile(std::string path, std::string format)
    : path_(std::move(path)), format_(std::move(format)) {}

void TensorFile::describe(std::vector<TensorInfo> tensors, Metadata metadata,
                          std::vector<std::string> skipped) {
  tensors_ = std::move(tensors);
  metadata_ = std::move(metadata);
  skipped_ = std::move(skipped);
  for (size_t i = 0; i < tensors_.size(); ++i)
    CATENA_CHECK(IoError, index_.emplace(tensors_[i].name, i).second, "reading '", path_,
                 "': two tensors are named '", tensors_[i].name, "'");
}

std::vector<std::string> TensorFile::names() const {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors_) names.push_back(tensor.name);
  return names;
}

bool TensorFile::contains(std::string_view name) const { return index_.count(name) > 0; }

size_t TensorFile::index_of(std::string_view name) const {
  const auto found = index_.find(name);
  if (found != index_.end()) return found->second;
  constexpr size_t kShown = 40;
  std::string there;
  for (size_t i = 0; i < std::min(kShown, size()); ++i)
    there += (i == 0 ? "" : ", ") + tensors_[i].name;
  if (size() > kShown) there += message(" and ", size() - kShown, " more");
  fail<IndexError>("reading '", path_, "': there is no tensor '", name,
                   "'; there are: ", there.empty() ? std::string("none") : there);
}

const TensorInfo& TensorFile::info(std::string_view name) const { return tensors_[index_of(name)]; }

Dtype TensorFile::known_dtype(size_t index) const {
  const TensorInfo& tensor = tensors_[index];
  CATENA_CHECK(IoError, tensor.dtype, "reading '", path_, "': tensor '", tensor.name, "' is of ",
               tensor.type,
               ", which catena does not have; convert it to a floating or integer "
               "dtype where the file is made, or leave it out");
  return *tensor.dtype;
}

Array TensorFile::read(std::string_view name, Device device) const {
  const size_t index = index_of(name);
  return read_elements(index, known_dtype(index)).to(device);
}

NamedArrays TensorFile::read_all(Device device) const { return read_many(names(), device); }

NamedArrays TensorFile::read_many(const std::vector<std::string>& names, Device device) const {
  std::vector<size_t> indices;
  for (const std::string& name : names) indices.push_back(index_of(name));
  // Before the first element is read.
  for (const size_t index : indices) known_dtype(index);
  NamedArrays arrays;
  read_together(indices, arrays);
  for (auto& [name, array] : arrays) array = array.to(device);
  return arrays;
}

void TensorFile::read_together(const std::vector<size_t>& indices, NamedArrays& arrays) const {
  for (const size_t index : indices)
    arrays.emplace_back(tensors_[index].name, read_elements(index, known_dtype(index)));
}

std::unique_ptr<TensorFile> open_tensor_file(const std::string& path) {
  const io::InputFile file(path);
  switch (format_of(file)) {
    case FileFormat::kSafetensors: return std::make_unique<SafetensorsFile>(path);
    case FileFormat::kLegacyPytorch: return std::make_unique<PytorchFile>(path);
    case FileFormat::kZip:
      if (is_pytorch(file)) return std::make_unique<PytorchFile>(path);
      return std::make_unique<NpzTensorFile>(path);
    default:
      fail<IoError>("reading '", path, "': expected a safetensors, .pt or .npz file, but ",
                    foreign_text(file));
  }
}

NamedArrays load_tensors(const std::string& path, Device device) {
  return open_tensor_file(path)->read_all(device);
}

}  // namespace catena::serializers
