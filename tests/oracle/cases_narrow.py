"""Statistics and calculus of numbers that fill their type: differences, squares and sums of them do
not fit it. Expected is what NumPy computes from the same numbers in a wide type, rounded once."""
import numpy as np

from cases_everyday import how, reduction_options
from values import (EPSILON, FLOATS, INTS, STORAGE, Exact, cast, is_float, near, promote, same_value,
                    unit)

# The largest floats drawn: squares of float32, and of bfloat16, which computes in it, must fit.
LARGEST = {"float16": 65504.0, "bfloat16": 1e15, "float32": 1e15, "float64": 1e100}
LIMIT = {"float16": 65504.0, "bfloat16": 3e38, "float32": 3e38, "float64": 1.7e308}


def full_range(g, dtype, shape, largest=LARGEST, **options):
    """Numbers of all of the type's range, often its ends."""
    def values(count):
        if is_float(dtype):
            ends = np.array([-largest[dtype], largest[dtype]])
            x = (g.rng.random(count) * 2 - 1) * largest[dtype]
        else:
            limits = np.iinfo(STORAGE[dtype])
            ends = np.array([limits.min, limits.max], STORAGE[dtype])
            x = g.rng.integers(*ends, count, STORAGE[dtype], endpoint=True)
        return cast(np.where(g.rng.random(count) < 0.2, g.rng.choice(ends, count), x), dtype)

    return g.array(dtype, shape, values=values, **options)


def float_of(x):
    return x.dtype if is_float(x.dtype) else "float64"


def largest_of(a):
    return np.max(np.abs(np.nan_to_num(a)), initial=0)


def with_nan(g, x):
    if is_float(x.dtype):
        x.owner[g.rng.random(x.owner.size) < 0.2] = np.nan


def filled(g):
    return tuple(max(n, 1) for n in g.shape(1, 3))


def reduction(g, x, name, params, slack, **more):
    """A case of a reduction over axes. `slack`: the error, in roundings of the largest number."""
    a, dtype = x.a.astype(np.longdouble), float_of(x)
    call = g.call("narrow_statistic", [x], {"name": name, **params, **more})
    result = np.asarray(getattr(np, name)(a, **how(params), **more))
    call.expect(near(result, np.full(result.shape, slack * EPSILON[dtype] * largest_of(a)), dtype))


def mean(g):
    x = full_range(g, g.dtype(INTS + FLOATS), filled(g))
    name = g.pick(["mean", "nanmean"])
    if name == "nanmean":
        with_nan(g, x)
    reduction(g, x, name, reduction_options(g, x.a.ndim), 16 * x.a.size)


def float_sum(g):
    x = full_range(g, g.dtype(FLOATS), filled(g))
    name = g.pick(["sum", "nansum"])
    if name == "nansum":
        with_nan(g, x)
    more = {"initial": g.integer(-40000, 40000)} if name == "sum" else {}
    reduction(g, x, name, reduction_options(g, x.a.ndim), 16 * x.a.size ** 2, **more)


def order(g):
    """Medians and quantiles, whose sums and differences overflow even in the widest type."""
    x = full_range(g, g.dtype(INTS + FLOATS), filled(g), LIMIT)
    name = g.pick(["median", "nanmedian", "percentile", "nanpercentile"])
    if name.startswith("nan"):
        with_nan(g, x)
    more = {"q": float(g.pick([0, 10, 50, 62.5, 100]))} if "percentile" in name else {}
    reduction(g, x, name, reduction_options(g, x.a.ndim), 16, **more)


def spread(g):
    x = full_range(g, g.dtype(INTS + FLOATS), filled(g))
    name = g.pick(["var", "std", "nanvar", "nanstd"])
    if name.startswith("nan"):
        with_nan(g, x)
    params = reduction_options(g, x.a.ndim)
    a, dtype = x.a.astype(np.longdouble), float_of(x)
    call = g.call("narrow_statistic", [x], {"name": name, **params})
    squared = np.asarray(getattr(np, name.replace("std", "var"))(a, **how(params)))
    slack = 16 * x.a.size * EPSILON[dtype] * largest_of(a) ** 2
    low, high = np.maximum(squared - slack, 0), squared + slack
    if "std" in name:
        low, high = np.sqrt(low), np.sqrt(high)
    call.expect(near((low + high) / 2, (high - low) / 2 * (1 + 2 ** -20), dtype))


def average(g):
    x = full_range(g, g.dtype(INTS + FLOATS), filled(g))
    weights = g.array(g.dtype(["uint8", "int16", "float16", "bfloat16", "float32"]), x.a.shape,
                      values=lambda n: g.rng.integers(1, 100, n))
    params = reduction_options(g, x.a.ndim)
    dtype = promote(float_of(x), weights.dtype)
    call = g.call("narrow_statistic", [x, weights], {"name": "average", **params})
    a, w = x.a.astype(np.longdouble), weights.a.astype(np.longdouble)
    result = np.asarray(np.sum(a * w, **how(params)) / np.sum(w, **how(params)))
    slack = 32 * x.a.size * EPSILON[dtype] * largest_of(a)
    call.expect(near(result, np.full(result.shape, slack), dtype))


def ptp(g):
    """Wraps in the type, as NumPy's does."""
    x = full_range(g, g.dtype(INTS + ["float16", "float32", "float64"]), filled(g))
    params = reduction_options(g, x.a.ndim)
    call = g.call("narrow_statistic", [x], {"name": "ptp", **params})
    call.expect(same_value(np.asarray(np.ptp(x.a, **how(params))), x.dtype))


def norm(g):
    dtype = g.dtype(INTS + FLOATS)
    x = full_range(g, dtype, filled(g))
    if dtype in ("float32", "float64", "bfloat16"):  # cubes must fit, too
        x.owner[...] = cast(np.clip(np.nan_to_num(x.owner), -1e9, 1e9), dtype)
    p, axis = g.pick([1.0, 2.0, 3.0, 0.5, float("inf")]), g.axis(x.a.ndim)
    call = g.call("narrow_norm", [x], {"p": p, "axis": axis})
    result = np.linalg.norm(x.a.astype(np.longdouble), p, axis)
    call.expect(near(result, 64 * x.a.shape[axis] * EPSILON[float_of(x)] * result, float_of(x)))


def coordinates(g, n):
    """n numbers of any type that ascend or descend, as far apart as the type allows."""
    dtype = g.dtype(INTS + ["float16", "float32", "float64"])
    low, high = ((-30000, 30000) if is_float(dtype) else
                 (np.iinfo(dtype).min, min(np.iinfo(dtype).max, 2 ** 40)))
    low = max(int(low), -2 ** 40)
    step = max(1, (int(high) - low) // (2 * n))
    if low + (n - 1) * step > high:
        return None
    points = [low + k * step for k in range(n)][::g.pick([1, -1])]
    points = cast(np.array(points, STORAGE["int64"]), dtype)
    return g.array(dtype, [n], layout="contiguous", values=lambda count: points[:count])


def along_coordinates(name):
    def generate(g):
        f = full_range(g, g.dtype(INTS + FLOATS), filled(g))
        axis = g.axis(f.a.ndim)
        n = f.a.shape[axis]
        at = coordinates(g, n)
        if n < 2 or at is None:
            return generate(g)
        call = g.call(name, [f, at], {"axis": axis})
        y, x = f.a.astype(np.longdouble), at.a.astype(np.longdouble)
        near_points = np.min(np.abs(np.diff(x)))
        if name == "narrow_gradient":
            result, dtype = np.gradient(y, x, axis=axis), float_of(f)
            slack = 64 * largest_of(y) / near_points
        else:
            integrate = np.trapezoid if hasattr(np, "trapezoid") else np.trapz
            result, dtype = integrate(y, x, axis=axis), promote(float_of(f), float_of(at))
            slack = 16 * n * largest_of(y) * np.abs(x[-1] - x[0])
        result = np.asarray(result)
        least = "float64" if "float64" in (float_of(f), float_of(at)) else "float32"
        error = max(EPSILON[least], EPSILON[float_of(f)])
        call.expect(near(result, np.full(result.shape, slack * error), dtype))

    return generate


def interp(g):
    n = g.integer(1, 9)
    xp = coordinates(g, n)
    if xp is None:
        return interp(g)
    xp.owner[...] = np.sort(xp.owner)
    fp = full_range(g, g.dtype(INTS + ["float16", "float32"]), [n])
    x = full_range(g, g.dtype(INTS + ["float16"]), g.shape())
    call = g.call("interp", [x, xp, fp])
    call.expect(same_value(np.asarray(np.interp(x.a, xp.a, fp.a), np.float64)))


def unwrap(g):
    x = full_range(g, g.dtype(["int8", "uint8", "int16", "uint16", "int32", "uint32"]), filled(g))
    axis = g.axis(x.a.ndim)
    call = g.call("unwrap", [x], {"axis": axis, "period": 256.0})
    call.expect(same_value(np.unwrap(x.a.astype(np.float64), axis=axis, period=256.0)))


def covariance(g):
    x = full_range(g, g.dtype(INTS + FLOATS), [g.integer(1, 4), g.integer(2, 9)])
    call = g.call("cov", [x], {"rowvar": True})
    a = x.a.astype(np.longdouble)
    result = np.asarray(np.cov(a))
    slack = 64 * x.a.size * EPSILON["float64"] * largest_of(a) ** 2
    call.expect(near(result, np.full(result.shape, slack), "float64"))


def histogram(g):
    """Bins between the ends of a type. The elements are in the middle of their bins."""
    dtype, bins = g.dtype(FLOATS), g.integer(1, 9)
    ends = [-0.9 * LIMIT[dtype], 0.9 * LIMIT[dtype]]
    edges = np.linspace(*(np.longdouble(e) for e in ends), bins + 1)
    bin_of = g.rng.integers(0, bins, g.integer(0, 40))
    middles = np.concatenate([ends, (edges[bin_of] + edges[bin_of + 1]) / 2])
    x = g.array(dtype, middles.shape, layout="contiguous",
                values=lambda n: cast(middles.astype(np.float64), dtype))
    counts = np.bincount(np.concatenate([[0, bins - 1], bin_of]), minlength=bins)
    call = g.call("histogram", [x], {"bins": bins})
    call.expect(Exact(counts), near(edges, np.full(bins + 1, 2 * unit(dtype) * ends[1]), dtype))


def histogram_constant(g):
    """Of equal elements; without numbers between them of their type there are no bins."""
    dtype, bins = g.dtype(["float16", "float32"]), g.integer(1, 9)
    value = g.pick([3.0, 1000.0, 60000.0, 2.0 ** 24])
    value = min(value, LIMIT[dtype] / 2)
    x = g.array(dtype, [5], values=lambda n: np.full(n, value))
    call = g.call("histogram", [x], {"bins": bins})
    low, high = STORAGE[dtype].type(value - 0.5), STORAGE[dtype].type(value + 0.5)
    edges = np.linspace(low, high, bins + 1, dtype=STORAGE[dtype])
    if np.any(edges[:-1] >= edges[1:]):  # as NumPy since version 2
        call.expect_error("ValueError")
        return
    call.expect(Exact(np.histogram(x.a, bins)[0]), near(edges, 2 * unit(dtype) * float(high), dtype))


def histogram_density(g):
    """With edges and weights of narrow types."""
    dtype = g.dtype(["int8", "uint8", "int16", "uint16", "float16"])
    x, at = full_range(g, dtype, g.shape()), full_range(g, dtype, [g.integer(2, 7)], layout="contiguous")
    at.owner[...] = np.sort(at.owner)
    if np.any(np.diff(at.owner.astype(np.float64)) == 0):
        return histogram_density(g)
    weights = g.array(g.dtype(["int8", "uint8", "float16", "int32"]), x.a.shape,
                      values=lambda n: g.rng.integers(1, 100, n))
    density = g.chance(0.5)
    call = g.call("histogram_weighted", [x, weights, at], {"density": density})
    sums = np.histogram(x.a.astype(np.float64), at.a.astype(np.float64),
                        weights=weights.a.astype(np.float64), density=density)[0]
    if density:
        call.expect(near(sums, 1e-14 * np.abs(np.nan_to_num(sums)), "float64"))
    elif is_float(weights.dtype):
        call.expect(Exact(cast(sums, weights.dtype), weights.dtype))
    else:
        call.expect(Exact(sums.astype(np.int64).astype(STORAGE[weights.dtype]), weights.dtype))


def routines():
    def each(*generators):
        return lambda g: g.pick(generators)(g)

    return {
        "narrow_statistic": (6, each(mean, float_sum, order, order, spread, average, ptp)),
        "narrow_norm": (2, norm),
        "narrow_gradient": (2, along_coordinates("narrow_gradient")),
        "narrow_trapezoid": (2, along_coordinates("narrow_trapezoid")),
        "narrow_others": (4, each(interp, unwrap, covariance, histogram, histogram_constant,
                                  histogram_density)),
    }
