#include "backends/cudnn/convolution_graph.h"

namespace catena::cudnn {
namespace {

constexpr int64_t kVirtual = 5;  // the sum of a convolution before its bias

// Sums of 16-bit floats are computed in float.
cudnnDataType_t compute_type(Dtype dtype) {
  return dtype == Dtype::kFloat64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

using Extents = std::vector<int64_t>;

Extents extents_of(int64_t first, int64_t channels, const int64_t* others, int axes) {
  Extents extents{first, channels};
  extents.insert(extents.end(), others, others + axes);
  return extents;
}

// Strides in elements, computed from the extents (n, c, ...) alone. Arrays may have any stride
// where the extent is 1, and engines read these strides.
Extents strides_of(const Extents& extents, bool channels_last) {
  Extents strides(extents.size());
  int64_t stride = channels_last ? extents[1] : 1;
  if (channels_last) strides[1] = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    if (channels_last && i == 1) continue;
    strides[i] = stride;
    stride *= extents[i];
  }
  return strides;
}

Descriptor tensor(int64_t id, const Extents& extents, cudnnDataType_t type, bool channels_last,
                  int64_t alignment) {
  Descriptor t(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const bool is_virtual = id == kVirtual;
  t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type);
  t.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  t.set(CUDNN_ATTR_TENSOR_STRIDES, strides_of(extents, channels_last));
  t.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  t.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (is_virtual) t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  t.finalize();
  return t;
}

Extents x_extents(const Problem& p) {
  return extents_of(p.batch, p.channels, p.image, p.window.axes);
}
// The group count follows from the channels of x and those of the weights.
Extents w_extents(const Problem& p) {
  return extents_of(p.filters, p.channels / p.groups, p.window.kernel, p.window.axes);
}
Extents y_extents(const Problem& p) { return extents_of(p.batch, p.filters, p.out, p.window.axes); }

Descriptor convolution_of(const Problem& p) {
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor c(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  c.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, compute_type(p.dtype));
  c.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  const auto axes = static_cast<size_t>(p.window.axes);
  c.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{p.window.axes});
  c.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, std::span(p.window.pad, axes));
  c.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, std::span(p.window.pad, axes));
  c.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, std::span(p.window.dilation, axes));
  c.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, std::span(p.window.stride, axes));
  c.finalize();
  return c;
}

// Names of the attributes of the three convolution operations.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t alpha, beta, convolution, x, w, y;
};
constexpr Names kForwardNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
constexpr Names kGradXNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
constexpr Names kGradWNames = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                               CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};

Descriptor operation_of(const Problem& p, const Descriptor& convolution, const Descriptor& x,
                        const Descriptor& w, const Descriptor& y) {
  const Names& n = p.pass == ConvolutionPass::kForward ? kForwardNames
                   : p.pass == ConvolutionPass::kGradX ? kGradXNames
                                                       : kGradWNames;
  Descriptor o(n.type);
  o.set(n.convolution, convolution);
  o.set(n.x, x);
  o.set(n.w, w);
  o.set(n.y, y);
  const double alpha = 1, beta = p.accumulate ? 1 : 0;
  const float alpha_f = 1, beta_f = p.accumulate ? 1 : 0;
  const bool is_double = p.dtype == Dtype::kFloat64;
  const auto type = is_double ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  o.set(n.alpha, type, 1, is_double ? static_cast<const void*>(&alpha) : &alpha_f);
  o.set(n.beta, type, 1, is_double ? static_cast<const void*>(&beta) : &beta_f);
  o.finalize();
  return o;
}

// y = sum + b.
void append_bias(const Problem& p, const Descriptor& sum, Graph& graph) {
  const cudnnPointwiseMode_t add = CUDNN_POINTWISE_ADD;
  Descriptor mode(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &add);
  mode.set(CUDNN_ATTR_POINTWISE_MATH_PREC, compute_type(p.dtype));
  mode.finalize();
  Extents bias(size_t(2 + p.window.axes), 1);
  bias[1] = p.filters;
  Descriptor b = tensor(kB, bias, data_type(p.dtype), true, p.alignment_b);
  Descriptor y = tensor(kY, y_extents(p), data_type(p.dtype), p.channels_last, p.alignment_y);
  Descriptor o(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, mode);
  o.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, sum);
  o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  o.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  o.finalize();
  graph.parts.push_back(std::move(mode));
  graph.parts.push_back(std::move(b));
  graph.parts.push_back(std::move(y));
  graph.parts.push_back(std::move(o));
}

}  // namespace

Graph make_graph(const Problem& p, cudnnHandle_t handle) {
  const cudnnDataType_t type = data_type(p.dtype);
  Descriptor x = tensor(kX, x_extents(p), type, p.channels_last, p.alignment_x);
  Descriptor w = tensor(kW, w_extents(p), type, p.channels_last, p.alignment_w);
  Descriptor y = tensor(p.bias ? kVirtual : int64_t{kY}, y_extents(p),
                        p.bias ? compute_type(p.dtype) : type, p.channels_last, p.alignment_y);
  Descriptor convolution = convolution_of(p);
  Descriptor operation = operation_of(p, convolution, x, w, y);
  Graph graph;
  std::vector<cudnnBackendDescriptor_t> operations{operation.native()};
  if (p.bias) {
    append_bias(p, y, graph);
    operations.push_back(graph.parts.back().native());
  }
  graph.whole = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.whole.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                  static_cast<int64_t>(operations.size()), operations.data());
  graph.whole.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  graph.whole.finalize();
  for (Descriptor* part : {&x, &w, &y, &convolution, &operation})
    graph.parts.push_back(std::move(*part));
  return graph;
}

}  // namespace catena::cudnn
