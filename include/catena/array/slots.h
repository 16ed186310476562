// Slots: named kernels with one implementation list per device type.
//
// The array and function layers check shapes, dtypes and devices, allocate results and then call a
// slot; backends fill slots from their entry functions. What a provider may assume is written at
// each slot. All arrays of a call are on one device; providers enqueue on its current stream.
#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "catena/array/array.h"
#include "catena/array/elementwise.h"
#include "catena/array/random.h"

namespace catena {

// Untyped part of a slot.
class SlotBase {
 public:
  explicit SlotBase(const char* name);
  const char* name() const { return name_; }
  // Providers of a device type, best first.
  std::vector<std::string> providers(DeviceType type) const;

 protected:
  using AnyFunction = void (*)();
  // A higher priority goes first; built-in providers use 0, cuDNN and oneDNN 10.
  void add(DeviceType type, const char* provider, int priority, AnyFunction function);
  AnyFunction find(DeviceType type, const char* provider) const;  // throws DeviceError
  // Loads the plug-in of the device type and returns its function, or throws DeviceError.
  AnyFunction load_or_fail(Device device) const;

  struct Entry {
    std::string provider;
    int priority;
    AnyFunction function;
  };
  const char* name_;
  std::array<std::atomic<AnyFunction>, kDeviceTypeCount> best_{};
  std::array<std::vector<Entry>, kDeviceTypeCount> entries_;
};

template <class Signature>
class Slot;

template <class... Args>
class Slot<void(Args...)> : public SlotBase {
 public:
  using Function = void (*)(Args...);
  using SlotBase::SlotBase;

  void provide(DeviceType type, const char* provider, Function function, int priority = 0) {
    add(type, provider, priority, reinterpret_cast<AnyFunction>(function));
  }
  // Runs the best provider of the device's type.
  void operator()(Device device, Args... args) const {
    AnyFunction f = best_[static_cast<int>(device.type())].load(std::memory_order_acquire);
    if (f == nullptr) [[unlikely]]
      f = load_or_fail(device);
    reinterpret_cast<Function>(f)(args...);
  }
  // A named provider, for tests and benchmarks.
  Function provider(DeviceType type, const char* provider_name) const {
    return reinterpret_cast<Function>(find(type, provider_name));
  }
};

// All slots of the process, for `catena-run --check` and the completeness test.
std::vector<const SlotBase*> all_slots();

// Arguments of the slots -------------------------------------------------------------------------

// outputs[i] = op(inputs...). Input k is arrays[k], or scalars[k] when arrays[k] is null. Arrays
// have the output's shape after broadcasting (strides may be 0, any layout); every input is
// converted to operand_dtype(op, k, dtype) before the op; the result is converted to
// output->dtype() on store. The output may be exactly one of the inputs, never overlap one
// partially.
struct ElementwiseCall {
  ElementwiseOp op;
  Dtype dtype;  // in which the op computes
  int input_count;
  const Array* arrays[kMaxElementwiseInputs];
  Scalar scalars[kMaxElementwiseInputs];
  const Array* output;  // not empty (size > 0)
};

enum class ReduceOp : uint8_t { kSum, kProd, kMax, kMin, kAll, kAny, kSumOfSquares };

// output = scale * reduce(input) (+ output when accumulate). `output` has the input's ndim with
// extent 1 at every reduced axis (bit k of `axes`). input->size() may be 0 for kSum, kProd, kAll,
// kAny (the identity is stored). Input values are converted to output->dtype() first (kAll, kAny:
// to bool); 16-bit floats accumulate in float32 or wider, and wider inputs of a 16-bit output are
// not rounded to 16 bits on the way. `scale` applies to kSum of floats only.
struct ReduceCall {
  ReduceOp op;
  const Array* input;
  const Array* output;
  uint32_t axes;
  double scale = 1;
  bool accumulate = false;
};

// int64 positions of the first maximum or minimum (NaN first) along one axis of a non-empty array;
// output has extent 1 there.
struct ArgReduceCall {
  bool maximum;
  const Array* input;
  int axis;
  const Array* output;
};

enum class Activation : uint8_t { kNone, kRelu };

// output = activation(a @ b + bias) + (accumulate ? output : 0). 2-d, or 3-d with equal batch
// extents (stride 0 for a broadcast batch). In each operand one of the two last axes has stride
// itemsize and the other at least its extent times itemsize. All of one dtype (also the integers
// and bool). bias: null or 1-d of length n. accumulate and activation exclude each other. k may be
// 0.
struct MatmulCall {
  const Array* a;
  const Array* b;
  const Array* output;
  const Array* bias = nullptr;
  Activation activation = Activation::kNone;
  bool accumulate = false;
};

// A number of the training step that a graph replay must be able to change: the host's value, or a
// 0-d float64 (or int64 for counts) device array while a graph is captured.
struct StepValue {
  double value = 0;
  const Array* device_value = nullptr;
};

// The first elements of every row of `input`, contiguous (rows, n) and not empty, in ascending
// order (NaN last, -0 equal to 0) or in descending order (NaN first). Outputs are contiguous (rows,
// keep) with 1 <= keep <= n: the elements, and their int64 positions in the row. At least one is
// given. With positions the order is stable (also the descending one); without them -0 and 0 may
// change places.
struct SortCall {
  const Array* input;
  bool descending;
  const Array* values;     // or null
  const Array* positions;  // or null
};

// Running sums or products along the middle axis of contiguous (outer, n, inner), not empty. The
// input has the output's dtype, or it is bool or an integer and the output int64 or uint64. bool:
// or, and. See cumsum for the precision.
struct ScanCall {
  bool product;
  const Array* input;
  const Array* output;
};

// counts[i] = number of elements x with edges[i] <= x < edges[i + 1], in the last bin <=. All
// contiguous; input and edges (counts->size() + 1 of them, ascending) of one dtype of float32,
// float64, int64, uint64; counts int64, not empty. `uniform`: the edges are evenly spaced up to
// rounding, first < last.
struct HistogramCall {
  const Array* input;
  const Array* edges;
  bool uniform;
  const Array* counts;
};

inline constexpr int kMaxPositionLists = 3;  // the caller folds more of them into one

// Elements chosen by lists of positions. All views have the shape of `values`: `base` has stride 0
// along the axes that positions take the place of, and element i of values belongs to the element
// of base at i displaced by the sum over k of wrap(positions[k][i]) * strides[k] bytes. An extent
// of 0 means that the positions of that list need no wrapping. No position is out of range with
// kRaise: the caller looked.
struct SelectCall {
  const Array* values;  // result of gather, source of scatter; dtype of base
  const Array* base;
  int count;
  const Array* positions[kMaxPositionLists];  // all int32 or all int64
  int64_t extents[kMaxPositionLists];
  int64_t strides[kMaxPositionLists];
  uint8_t mode;  // OutOfRange
};

enum class RandomKind : uint8_t {
  kBits64,     // uint64
  kUniform,    // low + (high - low) * u, u of [0,1): 24 bits for <= 32-bit floats, 53 for float64
  kNormal,     // mean = low, deviation = high
  kIntegers,   // of [ilow, ilow + range)
  kBernoulli,  // bool, true when u53 < high
};

// Numbers come from the Philox blocks offset, offset + 1, ..., whatever the launch shape. A block
// gives two elements of 64 bits, half h of block b being element 2b + h: its words 2h (low) and
// 2h + 1 (high); u53 = bits >> 11 scaled by 2^-53. Floats of at most 32 bits take one word each,
// word w of block b being element 4b + w; u24 = word >> 8 scaled by 2^-24.
// kUniform uses u53 for float64 and u24 otherwise; kBernoulli u53; kIntegers the high 64 bits of
// bits * range (range 0 means 2^64). kNormal is Box-Muller on pairs of elements, u1 = 1 - u of the
// first and u2 = u of the second: r cos(2 pi u2) and r sin(2 pi u2) with r = sqrt(-2 log u1), in
// double for float64, in float otherwise.
struct RandomCall {
  RandomKind kind;
  RandomBits bits;
  double low = 0, high = 1;
  int64_t ilow = 0;
  uint64_t range = 0;
  const Array* output;  // contiguous, not empty
};

// Hyper-parameters of one optimizer step. All arrays of a call are contiguous, 1-d, of one length
// and dtype (float16/bfloat16 parameters with float32 states are not part of this slot). The length
// may be 0: nothing is read or written then but `counter`, which counts the update as ever.
// The rule multiplies the gradient by `gradient_scale` first (clipping, averaging).
struct OptimizerCall {
  const Array* parameter;
  const Array* gradient;
  const Array* states[2] = {nullptr, nullptr};
  StepValue learning_rate;
  StepValue step;  // t of this update, from 1
  // Or, in place of `step`, where t is counted: float64 [t - 1, 0], contiguous, on the device of
  // the parameters. The rule takes t from it and stores t: the count costs no kernel of its own.
  const Array* counter = nullptr;
  StepValue gradient_scale{1};
  double weight_decay = 0;  // g += weight_decay * p before the rule
  double beta1 = 0, beta2 = 0, epsilon = 0;
};

// A fused chain of operations; see src/array/fused_program.h.
struct FusedCall;

namespace kernels {

extern Slot<void(const ElementwiseCall&)> elementwise;
extern Slot<void(const FusedCall&)> fused;
// Copies with cast: same shape, same device, any layouts, not overlapping (or identical).
extern Slot<void(const Array& source, const Array& destination)> copy;
// Contiguous or strided fill; not empty.
extern Slot<void(const Array& destination, const Scalar& value)> fill;
// destination[i] = start + i * step, contiguous 1-d; integers in int64, floats in double.
extern Slot<void(const Array& destination, const Scalar& start, const Scalar& step)> arange;
extern Slot<void(const ReduceCall&)> reduce;
extern Slot<void(const ArgReduceCall&)> arg_reduce;
extern Slot<void(const MatmulCall&)> matmul;
// Inputs one after the other along `axis` into a contiguous output of the same dtype.
extern Slot<void(const std::vector<Array>& inputs, int axis, const Array& output)> concatenate;
// output[i, j, k] = source[i, wrap(indices[j]), k]; source (outer, extent, inner) contiguous,
// indices 1-d int32 or int64 contiguous. mode as OutOfRange; kRaise was checked by the caller.
extern Slot<void(const Array& source, const Array& indices, uint8_t mode, const Array& output)>
    take;
// target[i, indices[j], k] += values[i, j, k], deterministic when config().deterministic.
extern Slot<void(const Array& target, const Array& indices, const Array& values)> scatter_add;
extern Slot<void(const SortCall&)> sort;
// output[r, j] = element number ranks[j] of row r of `input` in ascending order. input contiguous
// (rows, n), not empty; ranks ascending without repetition; output contiguous (rows, ranks).
extern Slot<void(const Array& input, const std::vector<int64_t>& ranks, const Array& output)>
    order_statistics;
// Number of elements of `sorted` (1-d, ascending) before each value: those less than it, or with
// `right` those not greater. sorted and values contiguous of one dtype, output contiguous int64.
extern Slot<void(const Array& sorted, const Array& values, bool right, const Array& output)>
    searchsorted;
// output[i] = i is 0 or sorted[i] is another value than sorted[i - 1] (NaNs are one value).
// Contiguous 1-d, not empty; output bool.
extern Slot<void(const Array& sorted, const Array& output)> run_starts;
extern Slot<void(const ScanCall&)> scan;
// 0-d int64 number of elements of a contiguous array that are not zero.
extern Slot<void(const Array& a, const Array& count)> nonzero_count;
// Their positions in C order: column j of the contiguous int64 output (max(ndim, 1), count) is that
// of number j, which are exactly `count` >= 1; for a 0-d or 1-d array the position itself.
extern Slot<void(const Array& a, const Array& positions)> nonzero;
// counts[v] = number of elements v of a contiguous array of integers or bool, all of them of [0,
// counts->size()); counts contiguous int64, not empty.
extern Slot<void(const Array& x, const Array& counts)> bincount;
extern Slot<void(const HistogramCall&)> histogram;
// values = elements; values contiguous and not empty.
extern Slot<void(const SelectCall&)> gather;
// elements = values; not empty. On the CPU the last of several values for one element stays, on a
// GPU any one of them.
extern Slot<void(const SelectCall&)> scatter;
extern Slot<void(const RandomCall&)> random;
// output int64 (n): 0..n-1 sorted by (64 random bits of element i, i).
extern Slot<void(const RandomBits&, const Array& output)> permutation;
// y = keep(i) ? x * scale : 0 with keep when u24(block offset + i, word0) >= float(ratio); x, y
// contiguous floats. The gradient is the same call on gy.
extern Slot<void(const Array& x, double ratio, double scale, const RandomBits&, const Array& y)>
    dropout;

// The following take x as contiguous (outer, classes, inner), softmax over `classes`; floats.
extern Slot<void(const Array& x, bool log, const Array& y)> softmax;
extern Slot<void(const Array& y, const Array& gy, bool log, const Array& gx)> softmax_grad;

// t: int32 contiguous (outer, inner); labels equal to ignore are skipped, others outside
// [0, classes) make the loss NaN and are reported by label_check. lse: log-sum-exp (outer, inner)
// of compute type (float32; float64 for float64). count: 0-d of that type, the divisor: number of
// labels not ignored if normalize, else outer, and at least 1. loss: 0-d of x's dtype.
struct CrossEntropyCall {
  const Array* x;
  const Array* t;
  int32_t ignore_label;
  bool normalize;
  const Array* lse;
  const Array* count;
  const Array* loss;
};
extern Slot<void(const CrossEntropyCall&)> softmax_cross_entropy;
// gx = (softmax(x) - onehot(t)) * gloss / count, 0 for ignored labels; gloss 0-d.
extern Slot<void(const CrossEntropyCall&, const Array& gloss, const Array& gx)>
    softmax_cross_entropy_grad;
// Share of samples whose arg max over classes equals t among those not ignored; 0-d float32
// (float64 for float64 x).
extern Slot<void(const Array& x, const Array& t, bool has_ignore, int32_t ignore_label,
                 const Array& result)>
    accuracy;
// Smallest and largest element of an int32 array: result int32 (2). For label checks on request.
extern Slot<void(const Array& a, const Array& result)> int_range;

extern Slot<void(const OptimizerCall&)> sgd;           // p -= lr g
extern Slot<void(const OptimizerCall&)> momentum_sgd;  // v = beta1 v - lr g; p += v (states[0] = v)
// Kingma & Ba 2015: m, v = states; p -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + eps)
extern Slot<void(const OptimizerCall&)> adam;

}  // namespace kernels

}  // namespace catena
