#include "backends/onednn/plan.h"

#include <string_view>

#include "catena/core/error.h"
#include "catena/core/memory.h"

namespace catena::onednn {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

// The least multiply-adds for each element of x and y with which a forward pass gains more than its
// reorders cost.
constexpr double kWorthReordering = 32;
// Scratch blocks begin at pages, so that vectors do not straddle cache lines.
constexpr size_t kScratchAlignment = 4096;

const dnnl::engine& engine() {
  static const auto* made = new dnnl::engine(dnnl::engine::kind::cpu, 0);
  return *made;
}
// Streams of the CPU hold nothing. Each thread has its own, because they must not be shared.
dnnl::stream& stream() {
  thread_local dnnl::stream made(engine());
  return made;
}

memory::data_type data_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFloat32: return memory::data_type::f32;
    case Dtype::kBFloat16: return memory::data_type::bf16;
    case Dtype::kFloat16: return memory::data_type::f16;
    default: return memory::data_type::undef;
  }
}

Geometry geometry(const Problem& p) {
  Geometry g;
  const Window& w = p.window;
  for (int i = 0; i < w.axes; ++i) {
    g.strides.push_back(w.stride[i]);
    g.dilates.push_back(w.dilation[i] - 1);
    g.pad_left.push_back(w.pad[i]);
    // How far the last position reads behind the image; negative if the stride leaves a remainder.
    const int64_t seen = (p.out[i] - 1) * w.stride[i] + w.range(i);
    g.pad_right.push_back(seen - p.image[i] - w.pad[i]);
  }
  return g;
}

// Whether a plain NCHW convolution is faster in a layout that oneDNN chooses, including the
// reorders. It is twice as fast if the plain one copies patches for a matrix product. A 1x1 kernel
// is that product without patches, and gradients of few channels waste most of a block. (Measured
// on AVX-512, one thread; docs/decisions.md, "cuDNN and oneDNN".)
bool blocked_is_faster(const Problem& p) {
  if (p.groups > 1) return true;  // the plain one loops over small products
  if (p.is_pointwise()) return false;
  if (p.pass == ConvolutionPass::kGradX) return p.channels >= 8;
  const double moved =
      double(p.batch) * double(p.channels * p.image_size() + p.filters * p.positions());
  return p.pass == ConvolutionPass::kGradW || p.multiply_adds() >= kWorthReordering * moved;
}

// The dimensions of images and of weights.
memory::dims image_dims(int64_t batch, int64_t channels, const int64_t* extents, int axes) {
  memory::dims dims{batch, channels};
  dims.insert(dims.end(), extents, extents + axes);
  return dims;
}
memory::dims weight_dims(const Problem& p) {
  memory::dims dims =
      image_dims(p.filters / p.groups, p.channels / p.groups, p.window.kernel, p.window.axes);
  if (p.groups > 1) dims.insert(dims.begin(), p.groups);
  return dims;
}

// Strides of memory without gaps in which dims are in C order, but for axis `channels` if it is the
// innermost ("last").
memory::dims dense_strides(const memory::dims& dims, size_t channels, bool last) {
  memory::dims strides(dims.size());
  int64_t stride = last ? dims[channels] : 1;
  if (last) strides[channels] = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    if (last && i == channels) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strides;
}

// Descriptors of the arrays in their own layout (plain), and of layouts that the primitive may
// choose (any).
struct Layouts {
  explicit Layouts(const Problem& p)
      : type(data_type(p.dtype)),
        x(plain(image_dims(p.batch, p.channels, p.image, p.window.axes), 1, p.channels_last)),
        y(plain(image_dims(p.batch, p.filters, p.out, p.window.axes), 1, p.channels_last)),
        w(plain(weight_dims(p), p.groups > 1 ? 2 : 1, p.weights_last)),
        any_w(any(w)) {
    if (p.bias) b = MemoryDesc({p.filters}, type, Tag::x);
    const bool free = !p.channels_last && blocked_is_faster(p);
    any_x = free ? any(x) : x;
    any_y = free ? any(y) : y;
  }
  MemoryDesc plain(const memory::dims& dims, size_t channels, bool last) const {
    return {dims, type, dense_strides(dims, channels, last)};
  }
  MemoryDesc any(const MemoryDesc& of) const { return {dims_of(of), type, Tag::any}; }

  memory::data_type type;
  MemoryDesc x, y, w, any_w, b, any_x, any_y;
};

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

// The forward convolution that oneDNN needs as a hint for a gradient.
Forward hint(const Layouts& l, const Geometry& g) {
  return make_forward(engine(), dnnl::prop_kind::forward_training, l.any_x, l.any_w, MemoryDesc(),
                      l.any_y, g, own_scratchpad());
}

}  // namespace

Plan::Plan(const Problem& problem) {
  try {
    build(problem);
  } catch (const dnnl::error& e) {
    usable_ = false;
    if (e.status != dnnl_unimplemented && e.status != dnnl_invalid_arguments)
      fail<DeviceError>("oneDNN could not prepare a convolution: ", e.what(), " (status ", e.status,
                        ")");
  }
}

void Plan::build(const Problem& p) {
  switch (p.pass) {
    case ConvolutionPass::kForward: return build_forward(p);
    case ConvolutionPass::kGradX: return build_grad_x(p);
    case ConvolutionPass::kGradW: return build_grad_w(p);
  }
}

// Accepts the primitive, unless it is oneDNN's slow reference loop.
template <class Descriptor>
bool Plan::accept(const Descriptor& descriptor) {
  if (std::string_view(descriptor.impl_info_str()).starts_with("ref")) return false;
  const MemoryDesc scratchpad = descriptor.scratchpad_desc();
  scratchpad_ = memory(scratchpad, engine(), nullptr);
  if (scratchpad.get_size() > 0) reserve(scratchpad.get_size(), &scratchpad_offset_);
  return true;
}

void Plan::build_forward(const Problem& p) {
  const Layouts l(p);
  const Forward d = make_forward(engine(), dnnl::prop_kind::forward_inference, l.any_x, l.any_w,
                                 l.b, l.any_y, geometry(p), own_scratchpad());
  if (!accept(d)) return;
  primitive_ = dnnl::convolution_forward(d);
  add(DNNL_ARG_SRC, &Pointers::x, l.x, d.src_desc());
  add(DNNL_ARG_WEIGHTS, &Pointers::w, l.w, d.weights_desc());
  if (p.bias) add(DNNL_ARG_BIAS, &Pointers::b, l.b, l.b);
  add(DNNL_ARG_DST, &Pointers::y, l.y, d.dst_desc(), true);
  usable_ = true;
}

void Plan::build_grad_x(const Problem& p) {
  const Layouts l(p);
  const Geometry g = geometry(p);
  const BackwardData d =
      make_backward_data(engine(), l.any_x, l.any_w, l.any_y, g, own_scratchpad(), hint(l, g));
  if (!accept(d)) return;
  primitive_ = dnnl::convolution_backward_data(d);
  add(DNNL_ARG_WEIGHTS, &Pointers::w, l.w, d.weights_desc());
  add(DNNL_ARG_DIFF_DST, &Pointers::y, l.y, d.diff_dst_desc());
  add(DNNL_ARG_DIFF_SRC, &Pointers::x, l.x, d.diff_src_desc(), true, p.accumulate);
  usable_ = true;
}

void Plan::build_grad_w(const Problem& p) {
  const Layouts l(p);
  const Geometry g = geometry(p);
  const BackwardWeights d =
      make_backward_weights(engine(), l.any_x, l.any_w, l.any_y, g, own_scratchpad(), hint(l, g));
  if (!accept(d)) return;
  primitive_ = dnnl::convolution_backward_weights(d);
  add(DNNL_ARG_SRC, &Pointers::x, l.x, d.src_desc());
  add(DNNL_ARG_DIFF_DST, &Pointers::y, l.y, d.diff_dst_desc());
  add(DNNL_ARG_DIFF_WEIGHTS, &Pointers::w, l.w, d.diff_weights_desc(), true, p.accumulate);
  usable_ = true;
}

void Plan::reserve(size_t bytes, size_t* offset) {
  *offset = scratch_bytes_;
  scratch_bytes_ += (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

// Gradients are accumulated by the reorder that writes the result, because no primitive of oneDNN
// adds to its result in a backward pass.
void Plan::add(int name, void* Pointers::*pointer, const MemoryDesc& given, const MemoryDesc& inner,
               bool is_result, bool accumulate) {
  Argument a{name, pointer, is_result};
  a.given = memory(given, engine(), nullptr);
  if (given == inner && !accumulate) {
    names_[name] = a.given;
    arguments_.push_back(a);
    return;
  }
  a.inner = memory(inner, engine(), nullptr);
  names_[name] = a.inner;
  reserve(inner.get_size(), &a.offset);
  dnnl::primitive_attr attributes;
  if (accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  const memory& from = is_result ? a.inner : a.given;
  const memory& to = is_result ? a.given : a.inner;
  a.reorder = dnnl::reorder(dnnl::reorder::primitive_desc(from, to, attributes));
  arguments_.push_back(a);
}

void Plan::run(const Pointers& pointers) {
  try {
    StoragePtr scratch;
    char* base = nullptr;
    if (scratch_bytes_ > 0) {
      scratch = allocate(cpu(0), scratch_bytes_ + kScratchAlignment);
      const auto address = reinterpret_cast<uintptr_t>(scratch->data);
      base = reinterpret_cast<char*>((address + kScratchAlignment - 1) / kScratchAlignment *
                                     kScratchAlignment);
      scratchpad_.set_data_handle(base + scratchpad_offset_);
      names_[DNNL_ARG_SCRATCHPAD] = scratchpad_;
    }
    for (Argument& a : arguments_) {
      a.given.set_data_handle(pointers.*a.pointer);
      if (!a.inner) continue;
      a.inner.set_data_handle(base + a.offset);
      if (!a.is_result)
        a.reorder.execute(stream(), {{DNNL_ARG_FROM, a.given}, {DNNL_ARG_TO, a.inner}});
    }
    primitive_.execute(stream(), names_);
    for (Argument& a : arguments_) {
      if (a.inner && a.is_result)
        a.reorder.execute(stream(), {{DNNL_ARG_FROM, a.inner}, {DNNL_ARG_TO, a.given}});
    }
    stream().wait();
  } catch (const dnnl::error& e) {
    fail<DeviceError>("oneDNN could not run a convolution: ", e.what(), " (status ", e.status, ")");
  }
}

}  // namespace catena::onednn
