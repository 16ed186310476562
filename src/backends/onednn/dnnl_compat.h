// The differences between oneDNN's API 2 (Debian 12 has 2.6) and 3 (Ubuntu 24.04 has 3.1). Version
// 2 makes primitive descriptors from operation descriptors, version 3 makes them directly from the
// same arguments.
#pragma once

#include <dnnl.hpp>

namespace catena::onednn {

// Windows of a convolution in oneDNN's convention: a dilation of 0 has no gaps.
struct Geometry {
  dnnl::memory::dims strides, dilates, pad_left, pad_right;
};

using Forward = dnnl::convolution_forward::primitive_desc;
using BackwardData = dnnl::convolution_backward_data::primitive_desc;
using BackwardWeights = dnnl::convolution_backward_weights::primitive_desc;
using MemoryDesc = dnnl::memory::desc;

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

#if DNNL_VERSION_MAJOR >= 3
inline dnnl::memory::dims dims_of(const MemoryDesc& desc) { return desc.get_dims(); }
inline Forward make_forward(const dnnl::engine& engine, dnnl::prop_kind kind, const MemoryDesc& x,
                            const MemoryDesc& w, const MemoryDesc& b, const MemoryDesc& y,
                            const Geometry& g, const dnnl::primitive_attr& attributes) {
  return Forward(engine, kind, kDirect, x, w, b, y, g.strides, g.dilates, g.pad_left, g.pad_right,
                 attributes);
}
inline BackwardData make_backward_data(const dnnl::engine& engine, const MemoryDesc& gx,
                                       const MemoryDesc& w, const MemoryDesc& gy, const Geometry& g,
                                       const dnnl::primitive_attr& attributes,
                                       const Forward& forward) {
  return BackwardData(engine, kDirect, gx, w, gy, g.strides, g.dilates, g.pad_left, g.pad_right,
                      forward, attributes);
}
inline BackwardWeights make_backward_weights(const dnnl::engine& engine, const MemoryDesc& x,
                                             const MemoryDesc& gw, const MemoryDesc& gy,
                                             const Geometry& g,
                                             const dnnl::primitive_attr& attributes,
                                             const Forward& forward) {
  return BackwardWeights(engine, kDirect, x, gw, gy, g.strides, g.dilates, g.pad_left, g.pad_right,
                         forward, attributes);
}
#else
inline dnnl::memory::dims dims_of(const MemoryDesc& desc) { return desc.dims(); }
inline Forward make_forward(const dnnl::engine& engine, dnnl::prop_kind kind, const MemoryDesc& x,
                            const MemoryDesc& w, const MemoryDesc& b, const MemoryDesc& y,
                            const Geometry& g, const dnnl::primitive_attr& attributes) {
  return Forward({kind, kDirect, x, w, b, y, g.strides, g.dilates, g.pad_left, g.pad_right},
                 attributes, engine);
}
inline BackwardData make_backward_data(const dnnl::engine& engine, const MemoryDesc& gx,
                                       const MemoryDesc& w, const MemoryDesc& gy, const Geometry& g,
                                       const dnnl::primitive_attr& attributes,
                                       const Forward& forward) {
  return BackwardData({kDirect, gx, w, gy, g.strides, g.dilates, g.pad_left, g.pad_right},
                      attributes, engine, forward);
}
inline BackwardWeights make_backward_weights(const dnnl::engine& engine, const MemoryDesc& x,
                                             const MemoryDesc& gw, const MemoryDesc& gy,
                                             const Geometry& g,
                                             const dnnl::primitive_attr& attributes,
                                             const Forward& forward) {
  return BackwardWeights({kDirect, x, gw, gy, g.strides, g.dilates, g.pad_left, g.pad_right},
                         attributes, engine, forward);
}
#endif

}  // namespace catena::onednn
