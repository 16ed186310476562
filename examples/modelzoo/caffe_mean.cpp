#include "caffe_mean.h"

#include <cmath>
#include <cstdlib>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/io.h"
#include "catena/array/manipulation.h"

namespace modelzoo {
namespace {

using catena::Array;
using catena::IoError;
using catena::Shape;
using catena::Slice;
namespace dtype = catena::dtype;

// "104,117,123"
Array parse_pixel(const std::string& text) {
  std::vector<float> numbers;
  const char* at = text.c_str();
  char* end = nullptr;
  for (float number = std::strtof(at, &end); end != at; number = std::strtof(at, &end)) {
    if (std::isfinite(number)) numbers.push_back(number);
    at = *end == ',' ? end + 1 : end;
  }
  CATENA_CHECK(ValueError, numbers.size() == 3 && *at == '\0' && text.back() != ',', "--mean: '",
               text,
               "' is neither the name of a .npy file nor three numbers, blue, green and red, "
               "such as 104,117,123");
  return catena::array(numbers).to("cpu:0");
}

Array read_file(const std::string& file) {
  try {
    return catena::load(file).astype(dtype::float32).contiguous();
  } catch (const IoError& error) {
    catena::fail<IoError>(
        "--mean: ", error.what(),
        "; ilsvrc_2012_mean.npy is in the folder python/caffe/imagenet of the sources of Caffe; or "
        "give the mean of all pixels, --mean 104,117,123");
  }
}

}  // namespace

Array load_mean(const std::string& text, int64_t insize) {
  const Array mean = text.ends_with(".npy") ? read_file(text) : parse_pixel(text);
  const Array whole = catena::zeros({3, kSize, kSize}, {dtype::float32, catena::cpu()});
  const int64_t begin = (kSize - insize) / 2;
  const Slice middle(begin, begin + insize);
  if (mean.shape() == Shape{3})
    whole.assign(catena::broadcast_to(mean.reshape({3, 1, 1}), whole.shape()));
  else if (mean.shape() == whole.shape())
    whole.assign(mean);
  else if (mean.shape() == Shape{3, insize, insize})
    whole(Slice(), middle, middle).assign(mean);
  else
    catena::fail<catena::ShapeError>("--mean: '", text, "' has shape ", mean.shape(),
                                     ", expected (3), (3, 256, 256) or (3, ", insize, ", ", insize,
                                     ")");
  return whole;
}

}  // namespace modelzoo
