// Records of feed_forward.
#include "catena/functions/connection/feed_forward.h"

#include <numbers>

#include "functions/function_record.h"

namespace catena {
namespace {

using Activation = F::TransformerActivation;

FunctionRecord feed_forward_record(const std::string& variant, Activation activation, bool biases) {
  FunctionRecord r;
  r.function = "feed_forward";
  r.variant = variant;
  for (const Shape& x : {Shape{2, 4, 3}, Shape{3}, Shape{0, 3}}) {
    if (biases)
      r.shapes.push_back({x, {8, 3}, {8}, {2, 8}, {2}});
    else
      r.shapes.push_back({x, {8, 3}, {2, 8}});
  }
  r.call = [=](const Variables& v) {
    const F::FeedForwardOptions options{.activation = activation};
    return Variables{biases ? F::feed_forward(v[0], v[1], v[2], v[3], v[4], options)
                            : F::feed_forward(v[0], v[1], v[2], options)};
  };
  r.forward_launches = 2;
  r.backward_launches = biases ? 6 : 5;
  return r;
}

FunctionRecord with_errors(FunctionRecord r) {
  const auto inputs = [](const char* x, const char* W1, const char* b1, const char* W2,
                         const char* b2) {
    return message("\nInputs: x float64 ", x, ", W1 float64 ", W1, ", b1 float64 ", b1,
                   ", W2 float64 ", W2, ", b2 float64 ", b2, "\n");
  };
  r.errors = {
      type_error("FeedForward", {{4, 5}, {8, 3}, {8}, {2, 8}, {2}},
                 "Expect: x.shape[1] == W1.shape[1]\nActual: 5 != 3" +
                     inputs("(4, 5)", "(8, 3)", "(8,)", "(2, 8)", "(2,)") +
                     "The layer takes (..., 3), 3 numbers along the last axis; the input has shape "
                     "(4, 5)."),
      type_error("FeedForward", {{4, 3}, {8, 3}, {8}, {8, 2}, {2}},
                 "Expect: W2.shape[1] == W1.shape[0]\nActual: 2 != 8" +
                     inputs("(4, 3)", "(8, 3)", "(8,)", "(8, 2)", "(2,)") +
                     "The second weights W2 are expected as (out, 8), a matrix for the 8 numbers "
                     "that W1 gives; W2 has shape (8, 2)."),
      type_error("FeedForward", {{4, 3}, {8, 3}, {8}, {{2, 8}, Dtype::kFloat32}, {2}},
                 "Expect: W2.dtype == W1.dtype\nActual: float32 != float64\nInputs: x float64 (4, "
                 "3), W1 float64 (8, 3), b1 float64 (8,), W2 float32 (2, 8), b2 float64 (2,)\n"
                 "Expected are weights W1 and W2 of one dtype."),
      type_error("FeedForward", {{4, 3}, {8, 3}, {3}, {2, 8}, {2}},
                 "Expect: b1.shape[0] == W1.shape[0]\nActual: 3 != 8" +
                     inputs("(4, 3)", "(8, 3)", "(3,)", "(2, 8)", "(2,)") +
                     "The bias has one number for each of the 8 outputs of W, shape (8,); b has "
                     "shape (3,)."),
      type_error("FeedForward", {{4, 3}, {8, 3}, {8}, {2, 8}, {8}},
                 "Expect: b2.shape[0] == W2.shape[0]\nActual: 8 != 2" +
                     inputs("(4, 3)", "(8, 3)", "(8,)", "(2, 8)", "(8,)") +
                     "The bias has one number for each of the 2 outputs of W, shape (2,); b has "
                     "shape (8,)."),
      error<ValueError>(
          [](const Draw& draw) {
            const Array W = draw({3, 3});
            F::feed_forward(W, W, W, {.activation = Activation(7)});
          },
          "FeedForward: activation 7 is none of them"),
  };
  return r;
}

}  // namespace

CATENA_FUNCTION_RECORDS(feed_forward) {
  return {with_errors(feed_forward_record("gelu_tanh", Activation::kGeluTanh, true)),
          feed_forward_record("gelu, no bias", Activation::kGelu, false),
          feed_forward_record("relu", Activation::kRelu, true)};
}

}  // namespace catena
