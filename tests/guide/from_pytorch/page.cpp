#include "guide/from_pytorch/page.h"

#include <cstdio>

#include "catena/array/io.h"
#include "catena/array/random.h"

namespace catena::guide {

Array Page::keep(const std::string& owner, const std::string& name, const Array& values) {
  const Dtype dtype = values.dtype();
  const Array a = is_float(dtype)          ? values.astype(Dtype::kFloat32)
                  : dtype == Dtype::kInt32 ? values.astype(Dtype::kInt64)
                                           : values;
  arrays_.emplace_back(owner + "/" + name, a.copy());
  return a;
}

Array Page::operand(const std::string& name, const Array& values) {
  return keep("operand/" + std::to_string(set_), name, values);
}

Array Page::row_operand(const std::string& name, const Array& values) {
  return keep("row/" + std::to_string(rows_), name, values);
}

void Page::add(const std::string& pytorch, const std::string& result, const std::string& catena,
               const Arrays& got, double tolerance) {
  for (const std::string& field :
       {std::to_string(set_), pytorch, result, catena, std::to_string(tolerance)})
    texts_ += field + '\x1f';
  texts_ += '\x1e';
  for (size_t k = 0; k < got.size(); ++k)
    arrays_.emplace_back("result/" + std::to_string(rows_) + "/" + std::to_string(k),
                         got[k].copy());
  ++rows_;
}

void Page::save(const std::string& path) const {
  NamedArrays all = arrays_;
  all.emplace_back("rows", array(std::vector<uint8_t>(texts_.begin(), texts_.end())));
  save_npz(path, all);
}

}  // namespace catena::guide

int main(int argc, char** argv) {
  using namespace catena::guide;
  if (argc != 2) {
    std::fprintf(stderr, "usage: guide_from_pytorch_rows FILE.npz\n");
    return 2;
  }
  try {
    catena::random::seed(1);
    Page page;
    add_tensors(page);
    add_gradients(page);
    add_layers(page);
    add_models(page);
    add_activations(page);
    add_attention(page);
    add_losses(page);
    add_arrays(page);
    add_training(page);
    page.save(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guide_from_pytorch_rows: %s\n", error.what());
    return 1;
  }
}
