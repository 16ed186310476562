"""Masks as arguments, positions along axes, sets, element-wise numerics, calculus, statistics."""
import numpy as np

from values import FLOATS, INTS, Exact, is_float, near, same_value, unit, wide

NARROW = ["float32", "float64"]


def reduction_options(g, ndim):
    params = {}
    if ndim and g.chance(0.6):
        axes = g.random.sample(range(ndim), g.integer(1, ndim))
        params["axis"] = axes if len(axes) > 1 else axes[0]
    if g.chance(0.3):
        params["keepdims"] = True
    return params


def how(params):
    axis = params.get("axis")
    return {"axis": tuple(axis) if isinstance(axis, list) else axis,
            "keepdims": params.get("keepdims", False)}


def masked_reduction(g):
    name = g.pick(["sum", "prod", "amax", "amin", "all", "any", "mean", "var", "std"])
    x = g.array(g.dtype(INTS), g.shape(0, 4), "small")
    params = {"name": name, **reduction_options(g, x.a.ndim)}
    args, given = [x], {}
    if g.chance(0.8):
        mask = g.array("bool", g.part_of_broadcast(x.a.shape))
        args.append(mask)
        given["where"] = mask.a
    if name in ("amax", "amin") or name in ("sum", "prod") and g.chance(0.4):
        params["initial"] = given["initial"] = g.integer(0, 5)
    with g.call("masked_reduction", args, params) as call:
        result = np.asarray(getattr(np, name)(x.a, **how(params), **given))
        if name in ("mean", "var", "std"):
            call.expect(near(result, np.full(result.shape, 1e-12), "float64"))
        else:
            call.expect(Exact(result))


def masked_add(g):
    dtype = g.dtype(INTS)
    shape = g.shape()
    x, y = (g.array(dtype, g.part_of_broadcast(shape), "small") for _ in range(2))
    mask = g.array("bool", g.part_of_broadcast(shape))
    shape = np.broadcast_shapes(x.a.shape, y.a.shape, mask.a.shape)
    out = g.output(g.pick([dtype, "float64"]), shape)
    call = g.call("masked_add", [x, y, mask, out])
    np.add(x.a, y.a, out=out.a, where=mask.a, casting="unsafe")
    call.expect(Exact(out.a.copy(), out.dtype))


def count_nonzero_axis(g):
    x = g.array(g.dtype(), g.shape(), "small")
    params = reduction_options(g, x.a.ndim)
    call = g.call("count_nonzero_axis", [x], params)
    call.expect(Exact(np.asarray(np.count_nonzero(x.a, **how(params)), np.int64)))


def take_along_axis(g):
    x = g.array(g.dtype(), g.shape(1), "small")
    axis = g.axis(x.a.ndim)
    n, shape = x.a.shape[axis], list(x.a.shape)
    shape[axis] = g.integer(0, 5)
    high = n + (1 if g.chance(0.03) else 0)
    if n == 0:
        shape[axis] = 0
    positions = g.array("int64", shape, values=lambda count: g.rng.integers(-n, max(high, 1), count))
    with g.call("take_along_axis", [x, positions], {"axis": axis}) as call:
        call.expect(Exact(np.take_along_axis(x.a, positions.a, axis), x.dtype))


def put_along_axis(g):
    x = g.output(g.dtype(), g.shape(1))
    axis = g.axis(x.a.ndim)
    order = np.argsort(g.rng.random(x.a.shape), axis)
    positions = g.array("int64", order.shape, layout="contiguous", values=lambda n: order.ravel()[:n])
    values = g.array(x.dtype, g.part_of_broadcast(x.a.shape), "small")
    call = g.call("put_along_axis", [x, positions, values], {"axis": axis})
    np.put_along_axis(x.a, positions.a, values.a, axis)
    call.expect(Exact(x.a.copy(), x.dtype))


def putmask(g):
    x = g.output(g.dtype(), g.shape(1))
    mask = g.array("bool", x.a.shape)
    values = g.array(x.dtype, [g.integer(1, 7)], "small")
    name = g.pick(["putmask", "place"])
    call = g.call("putmask", [x, mask, values], {"name": name})
    if name == "putmask":
        x.a[...] = np.where(mask.a, np.resize(values.a, x.a.shape), x.a)
    else:
        x.a[mask.a] = np.resize(values.a, np.count_nonzero(mask.a))
    call.expect(Exact(x.a.copy(), x.dtype))


def fill_diagonal(g):
    n = g.integer(1, 5)
    shape = [g.integer(1, 9), n] if g.chance(0.7) else [n] * 3
    x = g.output(g.dtype(), shape)
    values = g.array(x.dtype, [g.integer(1, 7)], "small")
    wrap = g.chance(0.5)
    call = g.call("fill_diagonal", [x, values], {"wrap": wrap})
    copy = np.ascontiguousarray(x.a)
    np.fill_diagonal(copy, values.a, wrap)
    x.a[...] = copy
    call.expect(Exact(copy, x.dtype))


def set_operation(g):
    name = g.pick(["isin", "intersect1d", "union1d", "setdiff1d", "setxor1d"])
    dtype = g.dtype()
    a, b = (g.array(dtype, g.shape(0, 3, 60), "small") for _ in range(2))
    call = g.call("set_operation", [a, b], {"name": name})
    result = np.asarray(getattr(np, name)(a.a, b.a))
    call.expect(Exact(result) if name == "isin" else same_value(result, dtype))


def round_(g):
    x = g.array(g.dtype(INTS + ["float16", "float32", "float64"]), g.shape(), "small")
    if x.dtype in ("int8", "uint8", "int16", "uint16"):
        x = g.array(x.dtype, x.a.shape, "any")
    decimals = g.integer(-1, 3)
    call = g.call("round", [x], {"decimals": decimals})
    call.expect(same_value(np.asarray(np.round(x.a, decimals)), x.dtype))


def nan_to_num(g):
    x = g.array(g.dtype(["float16", "float32", "float64", "int32", "bool"]), g.shape(), specials=True)
    params = {"nan": g.integer(-3, 3)}
    if g.chance(0.5):
        params["posinf"] = g.integer(-3, 3)
    call = g.call("nan_to_num", [x], params)
    call.expect(Exact(np.asarray(np.nan_to_num(x.a, **params)), x.dtype))


def heaviside(g):
    dtype = g.dtype([d for d in INTS + FLOATS if d != "bfloat16"])
    shape = g.shape()
    x, y = (g.array(dtype, g.part_of_broadcast(shape), "small") for _ in range(2))
    g.call("heaviside", [x, y]).expect(same_value(np.asarray(np.heaviside(x.a, y.a))))


def divisors(g):
    name, dtype = g.pick(["gcd", "lcm"]), g.dtype(INTS)
    shape = g.shape()
    x, y = (g.array(dtype, g.part_of_broadcast(shape), g.pick(["any", "small"])) for _ in range(2))
    call = g.call("divisors", [x, y], {"name": name})
    call.expect(Exact(np.asarray(getattr(np, name)(x.a, y.a)), dtype))


def interp(g):
    n = g.integer(1, 12)
    points = np.cumsum(g.rng.integers(1, 5, n)) / 2
    xp = g.array("float64", [n], layout="contiguous", values=lambda count: points[:count])
    fp = g.array(g.dtype(["float32", "float64", "int32"]), [n], "small", layout="contiguous")
    x = g.array("float64", g.shape(), "medium" if g.chance(0.3) else "positive")
    params = {"left": -1.5, "right": 2.5} if g.chance(0.4) else {}
    call = g.call("interp", [x, xp, fp], params)
    call.expect(same_value(np.asarray(np.interp(x.a, xp.a, fp.a, **params), np.float64)))


def gradient(g):
    x = g.array(g.dtype(NARROW + ["int32"]), g.shape(1), "small")
    axis = g.axis(x.a.ndim)
    n = x.a.shape[axis]
    args, spacing = [x], g.pick([1.0, 0.5, 3.0])
    params = {"axis": axis}
    if g.chance(0.4):
        places = np.cumsum(g.rng.integers(1, 5, n)).astype(np.float64)
        args.append(g.array("float64", [n], layout="contiguous", values=lambda count: places[:count]))
        spacing = places
    else:
        params["spacing"] = spacing
    with g.call("gradient", args, params) as call:
        result = np.gradient(x.a.astype(np.float64), spacing, axis=axis)
        dtype = x.dtype if is_float(x.dtype) else "float64"
        call.expect(near(result, np.full(result.shape, 64 * unit(dtype)), dtype))


def trapezoid(g):
    y = g.array(g.dtype(["float64", "int32"]), g.shape(1), "small")
    axis, spacing = g.axis(y.a.ndim), g.pick([1.0, 0.5])
    integrate = np.trapezoid if hasattr(np, "trapezoid") else np.trapz  # renamed in NumPy 2
    call = g.call("trapezoid", [y], {"axis": axis, "spacing": spacing})
    result = np.asarray(integrate(y.a.astype(np.float64), dx=spacing, axis=axis))
    call.expect(near(result, np.full(result.shape, 1e-12 * max(1, y.a.shape[axis])), "float64"))


def convolution(g):
    name, mode = g.pick(["convolve", "correlate"]), g.pick(["full", "same", "valid"])
    dtype = g.dtype(INTS + ["float64"])
    profile = "small" if is_float(dtype) else g.pick(["any", "small"])
    a, v = (g.array(dtype, [g.integer(0 if g.chance(0.03) else 1, 40)], profile) for _ in range(2))
    with g.call("convolution", [a, v], {"name": name, "mode": mode}) as call:
        result = getattr(np, name)(a.a, v.a, mode)
        call.expect(near(result, np.full(result.shape, 1e-11), dtype) if is_float(dtype)
                    else Exact(result, dtype))


def cross(g):
    dtype, n = g.dtype(INTS), g.pick([2, 3, 3])
    shape = g.shape(0, 2)
    axis = g.integer(0, len(shape)) if g.chance(0.5) else -1
    place = len(shape) if axis == -1 else axis
    a, b = (g.array(dtype, (*shape[:place], n, *shape[place:]), g.pick(["any", "small"]))
            for _ in range(2))
    call = g.call("cross", [a, b], {"axis": axis})
    if n == 2:  # which later versions of NumPy leave out
        (x0, x1), (y0, y1) = (np.moveaxis(v.a, axis, 0) for v in (a, b))
        result = np.asarray(x0 * y1 - x1 * y0)
    else:
        result = np.asarray(np.cross(a.a, b.a, axis=axis))
    call.expect(Exact(result, dtype))


def with_holes(g, dtype):
    """Small numbers with many NaN."""
    def values(count):
        x = g.values(dtype, count, "small")
        return np.where(g.rng.random(count) < g.pick([0.1, 0.6]), np.nan, x).astype(x.dtype)
    shape = g.shape(1)
    while 0 in shape:
        shape = g.shape(1)
    return g.array(dtype, shape, values=values)


def nan_statistic(g):
    name = g.pick(["nanvar", "nanstd", "nanmedian", "nanpercentile", "nancumsum"])
    x = with_holes(g, g.dtype(NARROW))
    if name == "nancumsum":
        axis = g.axis(x.a.ndim)
        call = g.call("nan_statistic", [x], {"name": name, "axis": axis})
        result = np.nancumsum(x.a.astype(wide(x.dtype)), axis)
    else:
        params = {"name": name, **reduction_options(g, x.a.ndim)}
        more = {}
        if name in ("nanvar", "nanstd"):
            params["ddof"] = more["ddof"] = g.integer(0, 2)
        if name == "nanpercentile":
            params["q"] = more["q"] = float(g.integer(0, 4) * 25)
        call = g.call("nan_statistic", [x], params)
        result = np.asarray(getattr(np, name)(x.a.astype(wide(x.dtype)), **how(params), **more))
    slack = 64 * unit(x.dtype) * x.a.size
    if name == "nanstd":
        slack = np.maximum(slack, np.sqrt(slack) * (np.asarray(result) < 1e-3))
    call.expect(near(result, np.broadcast_to(slack, np.shape(result)) + 0 * np.nan_to_num(result),
                     x.dtype))


def nan_positions(g):
    name = g.pick(["nanargmax", "nanargmin"])
    x = with_holes(g, g.dtype(NARROW))
    axis = g.axis(x.a.ndim) if g.chance(0.6) else None
    with g.call("nan_positions", [x], {"name": name, "axis": axis}) as call:
        call.expect(Exact(np.asarray(getattr(np, name)(x.a, axis), np.int64)))


def covariance(g):
    x = g.array(g.dtype(NARROW + ["int32"]), [g.integer(1, 5), g.integer(2, 9)], "small")
    params = {"rowvar": g.chance(0.7), "bias": g.chance(0.3)}
    call = g.call("cov", [x], params)
    # NumPy 1 does not transpose a single row.
    result = np.asarray(np.cov(x.a if params["rowvar"] else x.a.T, bias=params["bias"]))
    call.expect(near(result, np.full(result.shape, 1e-11), "float64"))


def unique_axis(g):
    shape = [g.integer(1, 5) for _ in range(g.integer(1, 3))]
    x = g.array(g.dtype(INTS), shape, values=lambda n: g.rng.integers(0, 2, n))
    axis = g.axis(x.a.ndim)
    values, index, inverse, counts = np.unique(x.a, True, True, True, axis)
    g.call("unique_axis", [x], {"axis": axis}).expect(
        Exact(values, x.dtype), Exact(index), Exact(inverse.reshape(-1)), Exact(counts))


def lexsort(g):
    shape = g.shape(1)
    keys = [g.array(g.dtype(), shape, "small") for _ in range(g.integer(1, 3))]
    axis = g.axis(len(shape))
    call = g.call("lexsort", keys, {"axis": axis})
    call.expect(Exact(np.lexsort([k.a for k in keys], axis)))


def percentile_method(g):
    x = g.array(g.dtype(NARROW + ["int32"]), [g.integer(1, 9) for _ in range(g.integer(1, 3))], "small")
    method = g.pick(["linear", "lower", "higher", "nearest", "midpoint"])
    params = {"method": method, "q": float(g.pick([0, 10, 25, 37.5, 50, 75, 100])),
              **reduction_options(g, x.a.ndim)}
    call = g.call("percentile_method", [x], params)
    result = np.asarray(np.percentile(x.a.astype(np.float64), params["q"], method=method,
                                      **how(params)))
    dtype = x.dtype if is_float(x.dtype) else "float64"
    call.expect(near(result, np.full(result.shape, 64 * unit(dtype)), dtype))


def histogram_weighted(g):
    x = g.array(g.dtype(NARROW), g.shape(), "small")
    weights = g.array(g.dtype(["float64", "float32", "int32"]), x.a.shape,
                      values=lambda n: g.rng.integers(0, 9, n))
    edges = np.unique(g.rng.integers(-8, 9, 7)).astype(np.float64) / 2
    at = g.array("float64", edges.shape, layout="contiguous", values=lambda n: edges)
    density = g.chance(0.3)
    call = g.call("histogram_weighted", [x, weights, at], {"density": density})
    counts = np.histogram(x.a, edges, weights=weights.a, density=density)[0]
    call.expect(near(counts, 1e-14 * np.abs(np.nan_to_num(counts)), "float64") if density
                else Exact(counts))


def insert(g):
    x = g.array(g.dtype(), g.shape(1), "small")
    axis = g.axis(x.a.ndim)
    n = x.a.shape[axis]
    positions = [g.integer(-n, n) for _ in range(g.integer(2, 4))]
    if g.chance(0.03):
        positions[0] = n + 1
    shape = list(x.a.shape)
    shape[axis] = len(positions)
    values = g.array(x.dtype, g.part_of_broadcast(shape), "small")
    with g.call("insert", [x, values], {"positions": positions, "axis": axis}) as call:
        call.expect(Exact(np.insert(x.a, positions, values.a, axis), x.dtype))


def moveaxis_list(g):
    x = g.array(g.dtype(), g.shape(1), "small")
    n = x.a.ndim
    count = g.integer(1, n)
    source, target = (g.random.sample(range(n), count) for _ in range(2))
    source = [k - n if g.chance(0.3) else k for k in source]
    call = g.call("moveaxis_list", [x], {"source": source, "destination": target})
    call.expect(Exact(np.moveaxis(x.a, source, target), x.dtype))


def rot90_axes(g):
    x = g.array(g.dtype(), g.shape(2), "small")
    axes, k = g.random.sample(range(x.a.ndim), 2), g.integer(-4, 4)
    call = g.call("rot90_axes", [x], {"k": k, "axes": axes})
    call.expect(Exact(np.rot90(x.a, k, axes), x.dtype))


def concatenate_flat(g):
    dtype = g.dtype()
    parts = [g.array(dtype, g.shape(), "small") for _ in range(g.integer(1, 3))]
    call = g.call("concatenate_flat", parts)
    call.expect(Exact(np.concatenate([p.a for p in parts], None), dtype))


def routines():
    return {
        "masked_reduction": (6, masked_reduction),
        "masked_add": (3, masked_add),
        "count_nonzero_axis": (1, count_nonzero_axis),
        "take_along_axis": (2, take_along_axis),
        "put_along_axis": (2, put_along_axis),
        "putmask": (1, putmask),
        "fill_diagonal": (1, fill_diagonal),
        "set_operation": (3, set_operation),
        "round": (2, round_),
        "nan_to_num": (1, nan_to_num),
        "heaviside": (1, heaviside),
        "divisors": (2, divisors),
        "interp": (2, interp),
        "gradient": (2, gradient),
        "trapezoid": (1, trapezoid),
        "convolution": (2, convolution),
        "cross": (1, cross),
        "nan_statistic": (3, nan_statistic),
        "nan_positions": (1, nan_positions),
        "cov": (1, covariance),
        "unique_axis": (1, unique_axis),
        "lexsort": (1, lexsort),
        "percentile_method": (2, percentile_method),
        "histogram_weighted": (1, histogram_weighted),
        "insert": (1, insert),
        "moveaxis_list": (1, moveaxis_list),
        "rot90_axes": (1, rot90_axes),
        "concatenate_flat": (1, concatenate_flat),
    }
