// Helpers of functions that move a window over images (n, channels, height, width).
#pragma once

#include <string>

#include "catena/autograd/function_call.h"
#include "catena/core/shape.h"
#include "catena/functions/extent_2d.h"
#include "catena/kernels/window.h"
#include "functions/common/layout.h"

namespace catena::functions {

// What such a function is, decided once for its forward and backward passes.
struct ImagePlan {
  Window window;
  Shape x_shape, y_shape;
  BatchLayout layout;  // of x, y and their gradients
};

// InvalidType, in the name of the call, unless its input 0 is a batch of images of a floating
// dtype.
void check_images(const FunctionCall& call);
// The same of x, for functions that are made of calls.
void check_images(const char* function, const Array& x);

// "(height, width)", for errors.
std::string text_of(const Extent2D& e);

// ValueError, in the name of `function`, unless both numbers are at least `least`; `name` is what
// they are.
void check_least(const char* function, const char* name, const Extent2D& e, int64_t least);

// A window and how many positions it has along both axes of an image.
struct ImageWindow {
  Window window;
  int64_t positions[2];

  ImageWindow(const Window& window, const Shape& image, bool cover_all);
  // That of a pooling: cover_all adds no position that begins behind the image, where it would see
  // padding alone, as Caffe and PyTorch's ceil_mode add none.
  static ImageWindow of_pooling(const Window& window, const Shape& image, bool cover_all);
  // ShapeError, in the name of the call, unless there is a position. It shows the dilation where
  // the function has one.
  void require_position(const FunctionCall& call, const Shape& image, bool has_dilation) const;
  // The same window with numbers that kernels can add up: of one position the stride does not
  // matter, nor the dilation of one element.
  Window without_idle_distances() const;
};

}  // namespace catena::functions
