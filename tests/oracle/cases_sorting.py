"""Sorting, searching, scans and counting."""
import numpy as np

from values import (ALL, EPSILON, FLOATS, INTS, SIGNED, STORAGE, Exact, is_float, near, promote, same_value,
                    unit, wide)


def maybe_axis(g, x):
    """An axis, none for the flattened array, or now and then one too far."""
    if g.chance(0.2):
        return None
    return g.axis(x.a.ndim) if x.a.ndim and not g.chance(0.03) else x.a.ndim


def sort(g):
    x = g.array(g.dtype(), g.shape())
    axis = maybe_axis(g, x)
    with g.call("sort", [x], {"axis": axis}) as call:
        result = np.sort(x.a, axis, kind="stable")
        call.expect(same_value(result, x.dtype), shared=False if result.size else None)


def argsort(g):
    x = g.array(g.dtype(), g.shape(1), g.pick(["any", "small"]))
    axis = maybe_axis(g, x)
    with g.call("argsort", [x], {"axis": axis}) as call:
        call.expect(Exact(np.argsort(x.a, axis, kind="stable")))


def topk(g):
    """The head of the stable order; descending, it is that of the reversed array read backwards."""
    x = g.array(g.dtype(), g.shape(1), g.pick(["any", "small"]))
    axis, largest = g.axis(x.a.ndim), g.chance(0.5)
    n = x.a.shape[axis]
    k = g.integer(0, n + g.chance(0.03))
    call = g.call("topk", [x], {"k": k, "axis": axis, "largest": largest})
    if k > n:
        call.expect_error("ValueError")
        return
    if largest:
        order = np.flip(n - 1 - np.argsort(np.flip(x.a, axis), axis, kind="stable"), axis)
    else:
        order = np.argsort(x.a, axis, kind="stable")
    order = np.take(order, np.arange(k), axis)
    call.expect(same_value(np.take_along_axis(x.a, order, axis), x.dtype), Exact(order))


def unique(g):
    x = g.array(g.dtype(), g.shape(), g.pick(["any", "small"]))
    values, index, inverse, counts = np.unique(x.a, True, True, True)
    g.call("unique", [x]).expect(same_value(values, x.dtype), Exact(index),
                                 Exact(inverse.reshape(x.a.shape)), Exact(counts))


def searchsorted(g):
    dtype = g.dtype()
    other = g.dtype() if g.chance(0.2) else dtype
    length = g.integer(0, 60)
    table = g.array(dtype, [length],
                    values=lambda n: np.sort(g.values(dtype, n, "medium" if n % 2 else "small")),
                    layout="contiguous")
    x = g.array(other, g.shape(), g.pick(["medium", "small"]))
    right = g.chance(0.5)
    common = promote(dtype, other)
    call = g.call("searchsorted", [table, x], {"right": right})
    call.expect(Exact(np.asarray(np.searchsorted(
        table.a.astype(STORAGE[common]), x.a.astype(STORAGE[common]), "right" if right else "left"))))


def digitize(g):
    x = g.array("float64", g.shape(), "medium")
    bins = g.rng.integers(-5, 6, g.integer(0, 9)).astype(np.float64)
    if not g.chance(0.05):
        bins = np.sort(bins)[::g.pick([1, -1])]
    edges = g.array("float64", bins.shape, layout="contiguous", values=lambda n: bins)
    right = g.chance(0.5)
    with g.call("digitize", [x, edges], {"right": right}) as call:
        call.expect(Exact(np.asarray(np.digitize(x.a, bins, right))))


def cumulative(name):
    """Integers and bool exactly; floats within a rounding an element of the magnitudes."""
    f = {"cumsum": np.cumsum, "cumprod": np.cumprod}[name]

    def generate(g):
        x = g.array(g.dtype(), g.shape(), "unit" if name == "cumprod" else "small")
        axis = maybe_axis(g, x) if x.a.ndim else None
        params = {"axis": axis}
        if not is_float(x.dtype) and g.chance(0.3):
            params["dtype"] = g.dtype(INTS)
        with g.call(name, [x], params) as call:
            if not is_float(x.dtype):
                call.expect(Exact(f(x.a, axis, params.get("dtype"))))
                return
            exact = f(x.a.astype(np.longdouble), axis)
            size = f(np.abs(x.a).astype(np.longdouble), axis)
            count = x.a.size if axis is None else x.a.shape[axis]
            finest = np.float64 if x.dtype == "float64" else np.float32
            least = float(np.finfo(finest).smallest_subnormal)
            call.expect(near(exact, count * (EPSILON[x.dtype] * size + least), x.dtype))

    return generate


def diff(g):
    x = g.array(g.dtype(), g.shape(0 if g.chance(0.05) else 1), "small")
    n, axis = g.integer(-1 if g.chance(0.03) else 0, 3), g.axis(max(x.a.ndim, 1))
    with g.call("diff", [x], {"n": n, "axis": axis}) as call:
        if x.dtype == "bfloat16":  # rounded after each difference
            if x.a.ndim == 0 and n != 0:
                raise ValueError
            result = x.a
            for _ in range(n):
                result = np.asarray(near(np.diff(result, 1, axis), 0, x.dtype).a)
            if n < 0:
                raise ValueError
        else:
            result = np.diff(x.a, n, axis)
        call.expect(Exact(np.array(result), x.dtype))


def nonzero(g):
    x = g.array(g.dtype(), g.shape(1), "small")
    g.call("nonzero", [x]).expect(*[Exact(p) for p in np.nonzero(x.a)])


def argwhere(g):
    x = g.array(g.dtype(), g.shape(1), "small")
    g.call("argwhere", [x]).expect(Exact(np.argwhere(x.a)))


def bincount(g):
    low = -1 if g.chance(0.03) else 0
    x = g.array(g.dtype(SIGNED if low else INTS), g.shape(1, 1),
                values=lambda n: g.rng.integers(low, 30, n))
    minlength = g.integer(0, 40)
    args = [x]
    if x.a.size and g.chance(0.4):  # whole weights, whose sums are exact
        args.append(g.array(g.dtype(FLOATS), x.a.shape, values=lambda n: g.rng.integers(0, 9, n)))
    with g.call("bincount", args, {"minlength": minlength}) as call:
        weights = args[1].a if len(args) > 1 else None
        call.expect(Exact(np.bincount(x.a.astype(np.int64), weights, minlength)))


def histogram(g):
    dtype = g.dtype([d for d in ALL if d not in ("bool", "bfloat16")])
    x = g.array(dtype, g.shape(), "small")
    bins = g.integer(0 if g.chance(0.03) else 1, 20)
    params = {"bins": bins}
    if g.chance(0.5):
        low = g.random.uniform(0, 3)
        params.update(low=low, high=low + g.random.uniform(0.1, 5))
    with g.call("histogram", [x], params) as call:
        limits = (params["low"], params["high"]) if "low" in params else None
        counts, edges = np.histogram(x.a, bins, limits)
        # Versions of NumPy differ in the last place of edges around equal elements.
        scale = np.abs(edges).max()
        call.expect(Exact(counts), near(edges, 2 * unit(edges.dtype.name) * scale, edges.dtype.name))


def histogram_edges(g):
    dtype = g.dtype()
    x = g.array(dtype, g.shape(), "medium" if is_float(dtype) else "small")
    values = np.sort(g.rng.integers(0, 12, g.integer(1, 9))).astype(np.float64) / 2
    edges = g.array("float64", values.shape, layout="contiguous", values=lambda n: values)
    call = g.call("histogram_edges", [x, edges])
    call.expect(Exact(np.histogram(x.a.astype(np.float64), values)[0]), Exact(values))


def expect_statistic(call, x, f, keep, axis):
    """Computed wider, within some roundings of the largest finite magnitude."""
    dtype = x.dtype if is_float(x.dtype) else "float64"
    with call:
        exact = np.asarray(f(x.a.astype(wide(dtype)), axis, keepdims=keep))
        finite = np.abs(x.a.astype(np.float64))
        finite = finite[np.isfinite(finite)]
        tolerance = 8 * unit(dtype) * (finite.max() if finite.size else 0)
        call.expect(near(exact, np.full(exact.shape, tolerance), dtype))


def reduced_axes(g, x):
    if not x.a.ndim or g.chance(0.3):
        return None
    if x.a.size == 0:  # NumPy joins several axes by a reshape that it refuses for no elements
        return g.axis(x.a.ndim)
    axes = sorted(g.random.sample(range(x.a.ndim), g.integer(1, x.a.ndim)))
    return tuple(axes)


def median(g):
    x = g.array(g.dtype(), g.shape(), g.pick(["small", "small", "medium"]))
    axis, keep = reduced_axes(g, x), g.chance(0.3)
    call = g.call("median", [x], {"axis": axis, "keepdims": keep})
    expect_statistic(call, x, np.median, keep, axis)


def percentile(g):
    x = g.array(g.dtype(INTS + FLOATS), g.shape(), g.pick(["small", "small", "medium"]))
    axis, keep = reduced_axes(g, x), g.chance(0.3)
    q = [g.random.choice([0.0, 25.0, 50.0, 100.0, g.random.uniform(0, 100)])
         for _ in range(g.integer(1, 3))]
    if g.chance(0.03):
        q[0] = 100.5
    call = g.call("percentile", [x], {"q": q, "axis": axis, "keepdims": keep})
    expect_statistic(call, x, lambda a, axis, keepdims: np.percentile(a, q, axis, keepdims=keepdims),
                     keep, axis)


def routines():
    return {
        "sort": (4, sort),
        "argsort": (4, argsort),
        "topk": (3, topk),
        "unique": (3, unique),
        "searchsorted": (3, searchsorted),
        "digitize": (1, digitize),
        "cumsum": (4, cumulative("cumsum")),
        "cumprod": (2, cumulative("cumprod")),
        "diff": (2, diff),
        "nonzero": (2, nonzero),
        "argwhere": (1, argwhere),
        "bincount": (2, bincount),
        "histogram": (2, histogram),
        "histogram_edges": (2, histogram_edges),
        "median": (3, median),
        "percentile": (3, percentile),
    }
