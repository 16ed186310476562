#include "common/picture_source.h"

#include "catena/core/error.h"

namespace examples {

std::shared_ptr<const Source> source_of(const catena::Array& pictures, const catena::Array& labels,
                                        int64_t classes, const ArrayFiles& files) {
  CATENA_CHECK(ShapeError,
               pictures.ndim() == 4 && pictures.shape()[3] == 3 && pictures.size() > 0 &&
                   pictures.is_contiguous() && pictures.dtype() == catena::dtype::uint8 &&
                   labels.shape() == catena::Shape{pictures.length()} &&
                   labels.dtype() == catena::dtype::int32,
               "'", files.pictures, "' has ", pictures.dtype(), " of shape ", pictures.shape(),
               ", and its labels are ", labels.dtype(), " of shape ", labels.shape(),
               "; expected uint8 (n, height, width, 3) and int32 (n), as ", files.writer,
               " writes them");
  for (const int32_t label : labels.to_vector<int32_t>())
    CATENA_CHECK(IoError, label >= 0 && label < classes, "'", files.labels, "' has label ", label,
                 ", expected 0 to ", classes - 1);
  return std::make_shared<ArraySource>(pictures, labels);
}

}  // namespace examples
