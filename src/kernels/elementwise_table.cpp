// The element-wise table: what the rows say about each operation, and the operations' names. It
// needs nothing else of the library, because the kernel tool is built with a copy of it.
#include <array>
#include <limits>

#include "catena/kernels/elementwise_constants.h"
#include "catena/kernels/elementwise_ops.h"
#include "kernels/elementwise_rows.h"

namespace catena {
namespace {

using Table = std::array<ElementwiseInfo, kElementwiseRows>;

constexpr const char* caption_of(const char* caption, const char* name) {
  return caption[0] == '\0' ? name : caption;
}

constexpr Table kTable = [] {
  using enum OpTypes;
  using enum OpForm;
  using enum OpCost;
  constexpr bool ND = false;
#define CATENA_G(saves, ...) true
#define CATENA_K(sample) false
#define CATENA_ROW(inputs, functor, name, caption, types, form, cost, low, high, given) \
  table[size_t(ElementwiseOp::k##name)] = {                                             \
      #name, #functor, caption_of(caption, #name), inputs, types, form, cost, low, high, given};
#define CATENA_EW1(functor, name, caption, types, form, cost, low, high, g0) \
  CATENA_ROW(1, functor, name, caption, types, form, cost, low, high, g0)
#define CATENA_EW2(functor, name, caption, types, form, cost, low, high, g0, g1) \
  CATENA_ROW(2, functor, name, caption, types, form, cost, low, high, (g0 || g1))
#define CATENA_EW3(functor, name, caption, types, form, cost, low, high, g0, g1, g2) \
  CATENA_ROW(3, functor, name, caption, types, form, cost, low, high, (g0 || g1 || g2))
  Table table{};
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_ROW
#undef CATENA_G
#undef CATENA_K
  return table;
}();

// Of the operands that are constants; NaN of the others.
struct Samples {
  double of[3];
};
constexpr double kNoSample = std::numeric_limits<double>::quiet_NaN();
constexpr std::array<Samples, kElementwiseRows> kConstants = [] {
  constexpr double ND = kNoSample;
#define CATENA_G(saves, ...) kNoSample
#define CATENA_K(sample) double(sample)
#define CATENA_ROW(name, ...) rows[size_t(ElementwiseOp::k##name)] = {{__VA_ARGS__}};
#define CATENA_EW1(functor, name, caption, types, form, cost, low, high, g0) \
  CATENA_ROW(name, g0, ND, ND)
#define CATENA_EW2(functor, name, caption, types, form, cost, low, high, g0, g1) \
  CATENA_ROW(name, g0, g1, ND)
#define CATENA_EW3(functor, name, caption, types, form, cost, low, high, g0, g1, g2) \
  CATENA_ROW(name, g0, g1, g2)
  std::array<Samples, kElementwiseRows> rows{};
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
#undef CATENA_ROW
#undef CATENA_G
#undef CATENA_K
  return rows;
}();

constexpr ElementwiseOp kOps[] = {
#define CATENA_EW1(functor, name, ...) ElementwiseOp::k##name,
#define CATENA_EW2(functor, name, ...) ElementwiseOp::k##name,
#define CATENA_EW3(functor, name, ...) ElementwiseOp::k##name,
#include "catena/kernels/detail/elementwise.def"
#undef CATENA_EW1
#undef CATENA_EW2
#undef CATENA_EW3
};

// The list of names and the rows agree.
#define CATENA_NAME(count, name) \
  static_assert(kTable[size_t(ElementwiseOp::k##name)].inputs == count, #name);
#define CATENA_NAME1(name) CATENA_NAME(1, name)
#define CATENA_NAME2(name) CATENA_NAME(2, name)
#define CATENA_NAME3(name) CATENA_NAME(3, name)
#include "catena/kernels/detail/elementwise_names.def"
#undef CATENA_NAME
constexpr int kNames = 0
#define CATENA_NAME1(name) +1
#define CATENA_NAME2(name) +1
#define CATENA_NAME3(name) +1
#include "catena/kernels/detail/elementwise_names.def"
    ;
constexpr int kUnnamed = int(ElementwiseOp::kGradientEnd) - kFirstGradient +
                         int(ElementwiseOp::kActivationEnd) - kFirstActivation;
static_assert(kNames + kUnnamed == std::size(kOps), "elementwise_names.def lacks a row");

}  // namespace

namespace ops {

// Declared before they are defined, since constants are local to a file otherwise.
#define CATENA_NAME1(name) extern const ElementwiseOp name;
#define CATENA_NAME2(name) extern const ElementwiseOp name;
#define CATENA_NAME3(name) extern const ElementwiseOp name;
#include "catena/kernels/detail/elementwise_names.def"
#define CATENA_NAME1(name) constexpr ElementwiseOp name = ElementwiseOp::k##name;
#define CATENA_NAME2(name) constexpr ElementwiseOp name = ElementwiseOp::k##name;
#define CATENA_NAME3(name) constexpr ElementwiseOp name = ElementwiseOp::k##name;
#include "catena/kernels/detail/elementwise_names.def"

}  // namespace ops

const ElementwiseInfo& info(ElementwiseOp op) { return kTable[static_cast<size_t>(op)]; }

std::span<const ElementwiseOp> elementwise_ops() { return kOps; }

std::optional<double> constant_sample(ElementwiseOp op, int k) {
  const double sample = kConstants[static_cast<size_t>(op)].of[k];
  if (sample != sample) return std::nullopt;
  return sample;
}

}  // namespace catena
