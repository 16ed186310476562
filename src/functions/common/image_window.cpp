#include "functions/common/image_window.h"

#include "catena/array/array.h"
#include "catena/core/error.h"
#include "functions/common/checks.h"

namespace catena::functions {
namespace {

std::string image_advice(const Array& x) {
  if (!is_float(x.dtype()))
    return "Expected is a floating dtype: convert x with .astype(dtype::float32).";
  return message("Expected are images (n, channels, height, width); the input has shape ",
                 x.shape(), x.ndim() == 3 ? ": one image is x.expand_dims(0)." : ".");
}

template <class Name>
void check_named(const Name& name, const Array& x) {
  const TypeOf in(x, "x");
  const Checks all(name, in);
  const auto images = all.advised([&] { return image_advice(x); });
  images.require_float(in);
  images.require(in.ndim() == 4);
}

}  // namespace

void check_images(const FunctionCall& call) { check_named(call.named(), call[0].data()); }

void check_images(const char* function, const Array& x) { check_named(function, x); }

std::string text_of(const Extent2D& e) { return message("(", e.height, ", ", e.width, ")"); }

void check_least(const char* function, const char* name, const Extent2D& e, int64_t least) {
  CATENA_CHECK(ValueError, e.height >= least && e.width >= least, function, ": expected a ", name,
               " of at least ", least, ", got ", text_of(e));
}

ImageWindow::ImageWindow(const Window& moved, const Shape& image, bool cover_all)
    : window(moved),
      positions{moved.positions(0, image[2], cover_all), moved.positions(1, image[3], cover_all)} {}

ImageWindow ImageWindow::of_pooling(const Window& w, const Shape& image, bool cover_all) {
  ImageWindow over(w, image, false);
  const ImageWindow covering(w, image, cover_all);
  for (int k = 0; k < w.axes; ++k)
    if (over.positions[k] * w.stride[k] - w.pad[k] < image[size_t(2 + k)])
      over.positions[k] = covering.positions[k];
  return over;
}

void ImageWindow::require_position(const FunctionCall& call, const Shape& image,
                                   bool has_dilation) const {
  const Window& w = window;
  const auto text = [](const int64_t(&e)[kMaxWindowAxes]) { return text_of({e[0], e[1]}); };
  CATENA_CHECK(ShapeError,
               w.kernel[0] > 0 && w.kernel[1] > 0 && positions[0] > 0 && positions[1] > 0,
               call.label(), ": a window of ", text(w.kernel),
               has_dilation ? " with dilation " + text(w.dilation) : "",
               " does not fit into an image of (", image[2], ", ", image[3], ") with pad ",
               text(w.pad), "; use a larger image, more padding or a smaller window");
}

Window ImageWindow::without_idle_distances() const {
  Window w = window;
  for (int k = 0; k < w.axes; ++k) {
    if (w.kernel[k] == 1) w.dilation[k] = 1;
    if (positions[k] == 1) w.stride[k] = 1;
  }
  return w;
}

}  // namespace catena::functions
