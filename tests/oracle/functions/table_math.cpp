// Element-wise mathematics, reductions and products.
#include "catena/functions/math.h"

#include "oracle/functions/functions.h"

namespace catena::oracle {
namespace {
namespace F = catena::functions;

ReduceAxes axes_of(const Inputs& in) {
  return {AxisList(in->dims("axes")), YesNo(in->flag("keepdims"))};
}

}  // namespace

void add_math(Functions& f) {
#define CATENA_ROW(name) f[#name] = [](const Inputs& in) { return Variables{F::name(in[0])}; };
  CATENA_ROW(negative)
  CATENA_ROW(positive)
  CATENA_ROW(absolute)
  CATENA_ROW(square)
  CATENA_ROW(reciprocal)
  CATENA_ROW(exp)
  CATENA_ROW(exp2)
  CATENA_ROW(expm1)
  CATENA_ROW(log)
  CATENA_ROW(log2)
  CATENA_ROW(log10)
  CATENA_ROW(log1p)
  CATENA_ROW(sqrt)
  CATENA_ROW(rsqrt)
  CATENA_ROW(cbrt)
  CATENA_ROW(sin)
  CATENA_ROW(cos)
  CATENA_ROW(tan)
  CATENA_ROW(arcsin)
  CATENA_ROW(arccos)
  CATENA_ROW(arctan)
  CATENA_ROW(sinh)
  CATENA_ROW(cosh)
  CATENA_ROW(tanh)
  CATENA_ROW(arcsinh)
  CATENA_ROW(arccosh)
  CATENA_ROW(arctanh)
  CATENA_ROW(deg2rad)
  CATENA_ROW(rad2deg)
  CATENA_ROW(erf)
  CATENA_ROW(sigmoid)
  CATENA_ROW(softplus)
  CATENA_ROW(relu)
  CATENA_ROW(sign)
  CATENA_ROW(rint)
  CATENA_ROW(floor)
  CATENA_ROW(ceil)
  CATENA_ROW(trunc)
  CATENA_ROW(identity)
#undef CATENA_ROW
#define CATENA_ROW(name) \
  f[#name] = [](const Inputs& in) { return Variables{F::name(in.operand(0), in.operand(1))}; };
  CATENA_ROW(add)
  CATENA_ROW(subtract)
  CATENA_ROW(multiply)
  CATENA_ROW(divide)
  CATENA_ROW(power)
  CATENA_ROW(maximum)
  CATENA_ROW(minimum)
  CATENA_ROW(arctan2)
  CATENA_ROW(hypot)
  CATENA_ROW(logaddexp)
#undef CATENA_ROW
#define CATENA_ROW(name) \
  f[#name] = [](const Inputs& in) { return Variables{F::name(in[0], axes_of(in))}; };
  CATENA_ROW(sum)
  CATENA_ROW(mean)
  CATENA_ROW(average)
  CATENA_ROW(max)
  CATENA_ROW(min)
  CATENA_ROW(prod)
  CATENA_ROW(logsumexp)
#undef CATENA_ROW
  f["clip"] = [](const Inputs& in) {
    return Variables{F::clip(in[0], in.operand(1), in.operand(2))};
  };
  f["where"] = [](const Inputs& in) {
    return Variables{F::where(in[0], in.operand(1), in.operand(2))};
  };
  f["var"] = [](const Inputs& in) {
    const ReduceAxes axes = axes_of(in);
    return Variables{F::var(in[0], axes, axes.keepdims, in->real("ddof"))};
  };
  f["std"] = [](const Inputs& in) {
    const ReduceAxes axes = axes_of(in);
    return Variables{F::std(in[0], axes, axes.keepdims, in->real("ddof"))};
  };
  f["norm"] = [](const Inputs& in) {
    const ReduceAxes axes = axes_of(in);
    return Variables{F::norm(in[0], axes, axes.keepdims, in->real("p"))};
  };
  f["sum_to"] = [](const Inputs& in) { return Variables{F::sum_to(in[0], in->dims("shape"))}; };
  f["cumsum"] = [](const Inputs& in) {
    return Variables{F::cumsum(in[0], in->optional_integer("axis"))};
  };
  f["cumprod"] = [](const Inputs& in) {
    return Variables{F::cumprod(in[0], in->optional_integer("axis"))};
  };
  f["diff"] = [](const Inputs& in) {
    return Variables{F::diff(in[0], in->integer("n"), in->integer("axis"))};
  };
  f["dot"] = [](const Inputs& in) { return Variables{F::dot(in[0], in[1])}; };
  f["inner"] = [](const Inputs& in) { return Variables{F::inner(in[0], in[1])}; };
  f["vdot"] = [](const Inputs& in) { return Variables{F::vdot(in[0], in[1])}; };
  f["kron"] = [](const Inputs& in) { return Variables{F::kron(in[0], in[1])}; };
  f["outer"] = [](const Inputs& in) { return Variables{F::outer(in[0], in[1])}; };
  f["tensordot"] = [](const Inputs& in) {
    if (in->has("axes")) return Variables{F::tensordot(in[0], in[1], in->integer("axes"))};
    return Variables{
        F::tensordot(in[0], in[1], Axes(in->dims("axes_a")), Axes(in->dims("axes_b")))};
  };
  f["einsum"] = [](const Inputs& in) {
    return Variables{F::einsum(in.text("subscripts"), in.from(0))};
  };
  f["matmul"] = [](const Inputs& in) {
    return Variables{F::matmul(in[0], in[1], in->flag("transa"), in->flag("transb"))};
  };
  f["batch_matmul"] = [](const Inputs& in) {
    return Variables{F::batch_matmul(in[0], in[1], in->flag("transa"), in->flag("transb"))};
  };
}

}  // namespace catena::oracle
