"""Reductions over axes."""
import numpy as np

import deviations
from generator import ERRORS
from values import EPSILON, FLOATS, INTS, Exact, cast, is_float, near, same_value, unit, wide


def options(g, ndim):
    """axis (all, one, several; now and then out of range) and keepdims."""
    params = {}
    choice = g.integer(0, 3)
    if choice == 1 and ndim or g.chance(0.01):
        params["axis"] = g.axis(ndim) if ndim else 0
    elif choice == 2 and ndim:
        axes = g.random.sample(range(ndim), g.integer(1, ndim))
        params["axis"] = [k - ndim if g.chance(0.3) else k for k in axes]
    elif g.chance(0.02):
        params["axis"] = ndim + g.integer(0, 2)
    if g.chance(0.3):
        params["keepdims"] = True
    return params


def numpy_options(params, x):
    axis = params.get("axis")
    if deviations.axis_of_0d(x.a.shape, params):
        raise IndexError
    return {"axis": tuple(axis) if isinstance(axis, list) else axis,
            "keepdims": params.get("keepdims", False)}


def accumulation(dtype, count):
    """Relative error of a sum of `count` terms in blocks, with respect to the sum of magnitudes."""
    return EPSILON[dtype] * (np.minimum(count, 16 + 4 * np.log2(max(count, 1))) + 1)


def terms(a, result):
    return a.size // max(1, result.size)


def sums(name):
    """sum and mean."""
    f = getattr(np, name)

    def generate(g):
        x = g.array(g.dtype(), g.shape(0, 4), g.pick(["small", "small", "medium"]))
        params = options(g, x.a.ndim)
        if name == "sum" and g.chance(0.1):
            params["dtype"] = g.dtype(FLOATS if is_float(x.dtype) else INTS + FLOATS)
        call = g.call(name, [x], params)
        dtype = params.get("dtype") or x.dtype
        if not is_float(dtype):
            dtype = "float64" if name == "mean" else dtype
        with call:
            how = numpy_options(params, x)
            if not is_float(dtype):
                call.expect(Exact(f(x.a, dtype=params.get("dtype"), **how)))
                return
            a = x.a.astype(np.longdouble)
            result = np.asarray(f(a, **how))
            count = terms(a, result)
            bound = np.sum(np.abs(a), **how) / (max(count, 1) if name == "mean" else 1)
            error = accumulation(dtype, count) + (unit(dtype) if dtype != x.dtype else 0)
            call.expect(near(result, bound * error, dtype))
    return generate


def prod(g):
    x = g.array(g.dtype(), g.shape(0, 3, 40), g.pick(["small", "unit"]))
    params = options(g, x.a.ndim)
    with g.call("prod", [x], params) as call:
        how = numpy_options(params, x)
        if not is_float(x.dtype):
            call.expect(Exact(np.prod(x.a, **how)))
            return
        a = x.a.astype(np.longdouble)
        result = np.asarray(np.prod(a, **how))
        with np.errstate(all="ignore"):
            # The bound is relative; products that leave the range of float32 on the way are left
            # out.
            count = terms(a, result)
            tiny = np.finfo(np.float64 if x.dtype == "float64" else np.float32).tiny
            slack = np.abs(result) * EPSILON[x.dtype] * (count + 1) + count * tiny
        call.expect(near(result, slack, x.dtype))


def variance(name):
    def generate(g):
        x = g.array(g.dtype(), g.shape(0, 4), "small", specials=g.chance(0.1))
        params = options(g, x.a.ndim)
        params["ddof"] = ddof = g.pick([0, 0, 1, 2])
        call = g.call(name, [x], params)
        dtype = x.dtype if is_float(x.dtype) else "float64"
        a = x.a.astype(wide(dtype))
        with call:
            how = numpy_options(params, x)
            result = np.asarray(np.var(a, ddof=ddof, **how))
            keep = {**how, "keepdims": True}
            scale = np.asarray(np.max(np.abs(a), initial=0, **keep))
            mean = np.mean(a, **keep)
            count = terms(a, result)
            error = accumulation(dtype, count)
            divisor = max(count - ddof, 0)
            with np.errstate(all="ignore"):
                # The mean is off by error * scale; each deviation by that, and its square by twice.
                deviation = np.abs(a - mean) + error * scale
                slack = np.sum(deviation * (2 * error * scale + error * deviation), **how) / divisor
                low, high = result - slack, result + slack
                if name == "std":
                    ulps = 2 * EPSILON[dtype]
                    low, high = np.sqrt(np.maximum(low, 0)) * (1 - ulps), np.sqrt(high) * (1 + ulps)
                middle, half = (low + high) / 2, (high - low) / 2
                if name == "std":
                    result = np.sqrt(result)
                middle = np.where(np.isfinite(result), middle, result)
            call.expect(near(middle, half, dtype))
    return generate


def extreme(name):
    def generate(g):
        x = g.array(g.dtype(), g.shape(0, 4))
        params = options(g, x.a.ndim)
        with g.call(name, [x], params) as call:
            result = getattr(np, name)(x.a, **numpy_options(params, x))
            call.expect(same_value(result, x.dtype))
    return generate


def truth(name):
    def generate(g):
        x = g.array(g.dtype(), g.shape(0, 4), g.pick(["any", "small"]))
        if g.chance(0.3):
            x.owner[...] = x.owner.dtype.type(name == "all")
        params = options(g, x.a.ndim)
        with g.call(name, [x], params) as call:
            result = getattr(np, name)(x.a, **numpy_options(params, x))
            call.expect(Exact(np.asarray(result, np.bool_)))
    return generate


def exact_in_float64(name, a, how):
    """Whether a sum or product of integers is exact in float64, in whatever order it is computed."""
    sizes = np.maximum(np.abs(a.astype(np.longdouble)), 1)
    return bool(np.all(getattr(np, name)(sizes, **how) < 2.0**53))


def into_output(name):
    """Exact reductions into an output array; the same routine names as without."""
    f, accumulates = getattr(np, name), name in ("sum", "prod")

    def generate(g):
        x = g.array(g.dtype(INTS + ["bool"]), g.shape(0, 4))
        params = options(g, x.a.ndim)
        try:
            how = numpy_options(params, x)
            result = f(x.a, **how)
        except ERRORS:
            return generate(g)
        exact = not accumulates or exact_in_float64(name, x.a, how)
        out = g.output(g.dtype(["int64", "float64"] if exact else ["int64"]), result.shape)
        call = g.call(name, [x, out], {**params, "out": 1})
        if accumulates and is_float(out.dtype):
            f(x.a, out=out.a, **how)  # adds up in float64
        else:
            out.a[...] = cast(result, out.dtype)
        call.expect(Exact(out.a.copy(), out.dtype))
    return generate


def either(p, first, second):
    return lambda g: (first if g.chance(p) else second)(g)


def arg_extreme(name):
    def generate(g):
        x = g.array(g.dtype(), g.shape(0, 4), g.pick(["any", "small"]))
        params = {}
        if g.chance(0.6) and x.a.ndim:
            params["axis"] = g.axis(x.a.ndim)
        elif g.chance(0.03):
            params["axis"] = x.a.ndim
        if g.chance(0.3):
            params["keepdims"] = True
        dtype = g.dtype(INTS) if g.chance(0.2) else "int64"
        with g.call(name, [x], {**params, "dtype": dtype} if dtype != "int64" else params) as call:
            if deviations.axis_of_0d(x.a.shape, params):
                raise IndexError
            result = getattr(np, name)(x.a, **params)
            call.expect(Exact(np.asarray(result, np.int64).astype(dtype), dtype))
    return generate


def count_nonzero(g):
    x = g.array(g.dtype(), g.shape(0, 4), "small")
    call = g.call("count_nonzero", [x])
    call.expect(Exact(np.asarray(np.count_nonzero(x.a), np.int64)))


def sum_to(g):
    """The inverse of broadcasting; in the array's own type, which is exact for small integers."""
    x = g.array(g.dtype(INTS), g.shape(0, 4), "small")
    target = g.part_of_broadcast(x.a.shape)
    call = g.call("sum_to", [x], {"shape": target})
    lead = x.a.ndim - len(target)
    axes = tuple(range(lead)) + tuple(
        lead + k for k, n in enumerate(target) if n == 1 and x.a.shape[lead + k] != 1)
    result = np.sum(x.a, axis=axes, dtype=x.a.dtype, keepdims=True)
    call.expect(Exact(result.reshape(target)))


def routines():
    return {
        "sum": (8, either(0.15, into_output("sum"), sums("sum"))),
        "prod": (4, either(0.15, into_output("prod"), prod)),
        "mean": (6, sums("mean")),
        "var": (6, variance("var")),
        "std": (5, variance("std")),
        "amax": (4, either(0.1, into_output("amax"), extreme("amax"))),
        "amin": (4, either(0.1, into_output("amin"), extreme("amin"))),
        "all": (2, truth("all")),
        "any": (2, truth("any")),
        "argmax": (4, arg_extreme("argmax")),
        "argmin": (4, arg_extreme("argmin")),
        "count_nonzero": (1, count_nonzero),
        "sum_to": (2, sum_to),
    }
