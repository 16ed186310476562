"""Selection by positions."""
import numpy as np

import deviations
from values import FLOATS, INTS, Exact, cast, promote


def positions(g, extent, shape, slack=0):
    """Integer positions in [-extent, extent), or `slack` beyond it."""
    dtype = g.dtype(INTS)
    low = 0 if dtype.startswith("u") else -extent - slack
    high = max(extent + slack, low + 1)
    return g.array(dtype, shape, values=lambda n: g.rng.integers(low, high, n))


def take(g):
    x = g.array(g.dtype(), g.shape(0 if g.chance(0.05) else 1, 3))
    axis = g.axis(x.a.ndim) if x.a.ndim and g.chance(0.7) else None
    extent = x.a.shape[axis] if axis is not None else x.a.size
    mode = g.pick(["raise", "raise", "wrap", "clip"])
    slack = 2 if x.a.size and g.chance(0.05) else 0
    indices = positions(g, extent, g.shape(0, 2, 30), 5 if mode == "wrap" else slack)
    with g.call("take", [x, indices], {"axis": axis, "mode": mode}) as call:
        where = indices.a.astype(np.int64)
        result = np.take(x.a, where, axis, mode=mode)
        call.expect(Exact(result, x.dtype))


def scatter_add(g):
    """Small whole numbers, whose sums are exact in every order."""
    def whole(n):
        return g.rng.integers(0, 4, n)

    dtype = g.dtype(INTS + FLOATS)
    x = g.array(dtype, g.shape(1, 3), layout="contiguous", values=whole)
    axis = g.axis(x.a.ndim)
    at = axis % x.a.ndim
    indices = positions(g, x.a.shape[at], [g.integer(0, 5) for _ in range(g.integer(0, 2))])
    shape = x.a.shape[:at] + indices.a.shape + x.a.shape[at + 1:]
    values = g.array(dtype, g.part_of_broadcast(shape), values=whole)
    call = g.call("scatter_add", [x, indices, values], {"axis": axis})
    where = (slice(None),) * at + (indices.a.astype(np.int64),)
    with call:
        wide = x.a.astype(np.float64 if dtype in FLOATS else x.a.dtype)
        # Spelled out: NumPy 2.5 reads past the end of some values that it would broadcast.
        np.add.at(wide, where, np.broadcast_to(values.a, shape).copy())
        x.a[...] = cast(wide, dtype)
        call.expect(Exact(x.a.copy(), dtype))


def choose(g):
    shape = g.shape(0, 3)
    dtype = g.dtype()
    choices = []
    for _ in range(g.integer(1, 4)):
        dtype = g.dtype() if g.chance(0.2) else dtype
        choices.append(g.array(dtype, g.part_of_broadcast(shape), "small"))
    count = len(choices)
    index = g.array(g.dtype(INTS), g.part_of_broadcast(shape),
                    values=lambda n: g.rng.integers(0, count + g.chance(0.02), n))
    common = choices[0].dtype
    for x in choices[1:]:
        common = promote(common, x.dtype)
    with g.call("choose", [index] + choices) as call:
        result = np.choose(index.a.astype(np.int64), [cast(x.a, common) for x in choices])
        call.expect(Exact(result, common))


def diagonal(g):
    x = g.array(g.dtype(), g.shape(1 if g.chance(0.05) else 2, 4))
    n = x.a.ndim
    params = {"offset": g.integer(-4, 4), "axis1": g.axis(n), "axis2": g.axis(n)}
    with g.call("diagonal", [x], params) as call:
        result = np.diagonal(x.a, *params.values())
        call.expect(Exact(result, x.dtype), shared=True if result.size else None)


def routines():
    return {
        "take": (4, take),
        "scatter_add": (3, scatter_add),
        "choose": (1, choose),
        "diagonal": (2, diagonal),
    }
