// Advice in errors of functions beyond the expectation that failed: which layer of a model it was,
// and what to do. Built only when an error is on its way.
#pragma once

#include <string>

#include "catena/autograd/variable.h"

namespace catena::functions {

// "Linear 'block/l1'" when W is a parameter that a model has listed (setup, to_gpu, load, ...),
// else the kind alone.
std::string layer_label(const char* kind, const Variable& W);
// The same of the path that a model has for a part of the layer, "block/l1/W", or "".
std::string layer_label(const char* kind, const std::string& path);
// What to do about an input x of another dtype than that of a layer with weights W; "" where the
// dtypes agree.
std::string layer_dtype_advice(const Array& x, const Array& W);
// layer_dtype_advice() if the dtypes differ, else which shapes a layer with weights W, (out, in),
// takes, and how to reshape x if that is possible. flatten: whether the layer flattens x behind its
// first axis.
std::string layer_advice(const Array& x, const Array& W, bool flatten);
// What the bias of a layer with weights W, (out, ...), must be.
std::string bias_advice(const Array& b, const Array& W);
// What to do about inputs of different floating dtypes, float64 data beside float32 results of
// layers most of all; "" for others.
std::string dtype_advice(const Array& x0, const Array& x1);
// What is expected of labels t for scores x, (n, classes, ...), and how others become that.
// `usage`, "accuracy(scores, labels)", is shown when the arguments look swapped.
std::string label_advice(const char* usage, const Array& x, const Array& t);

}  // namespace catena::functions
