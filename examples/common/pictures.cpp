#include "common/pictures.h"

#include <fstream>
#include <vector>

#include "catena/array/creation.h"
#include "catena/array/manipulation.h"
#include "catena/array/math.h"

namespace examples {

using catena::Array;

void write_pictures(const std::string& path, const Array& images, int64_t columns) {
  CATENA_CHECK(ShapeError, images.ndim() == 3 && columns > 0,
               "write_pictures: expected images of shape (n, height, width), got ", images.shape());
  const int64_t n = images.shape()[0], height = images.shape()[1], width = images.shape()[2];
  const int64_t rows = (n + columns - 1) / columns;
  const Array all =
      catena::zeros({rows * columns, height, width}, {catena::dtype::float32, catena::cpu()});
  all(catena::Slice(0, n)).assign(images.to_cpu().astype(catena::dtype::float32));
  const Array grid = all.reshape({rows, columns, height, width})
                         .transpose({0, 2, 1, 3})
                         .reshape({rows * height, columns * width});
  const std::vector<uint8_t> pixels = catena::clip(grid * 255.0F + 0.5F, 0.0F, 255.0F)
                                          .astype(catena::dtype::uint8)
                                          .to_vector<uint8_t>();
  std::ofstream file(path, std::ios::binary);
  file << "P5 " << columns * width << " " << rows * height << " 255\n";
  file.write(reinterpret_cast<const char*>(pixels.data()),
             static_cast<std::streamsize>(pixels.size()));
  file.close();
  CATENA_CHECK(IoError, file.good(), "'", path, "' cannot be written");
}

}  // namespace examples
