"""Selection by positions."""
import numpy as np

from cases_views import slice_of
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


def selection(g, shape, first):
    """An index with arrays of positions, or with a mask, in it: as the file has it, where "@k" stands for
    argument k, and for NumPy. The arrays are arguments from `first` on."""
    joint = tuple(g.integer(0 if g.chance(0.05) else 1, 5) for _ in range(g.integer(0, 2)))
    text, index, arrays, masked = [], [], [], 0 in shape or g.chance(0.3)
    forced, axis, dots = g.integer(0, len(shape) - 1), 0, False

    def add(entry, value):
        text.append(entry)
        index.append(value)

    while axis < len(shape):
        if g.chance(0.1):
            add("newaxis", None)
        if axis <= forced and not dots and g.chance(0.1):
            dots = True
            add("...", ...)
            axis = g.integer(axis, forced)
        kind = "array" if axis == forced else g.pick(["slice", "slice", "integer", "array"])
        if kind == "array" and masked and axis != forced or kind == "integer" and shape[axis] == 0:
            kind = "slice"
        if kind == "array" and masked:
            count = g.integer(0 if g.chance(0.1) else 1, len(shape) - axis)
            arrays.append(g.array("bool", shape[axis:axis + count]))
            add(f"@{first + len(arrays) - 1}", arrays[-1].a)
            forced = -1
            axis += count
        elif kind == "array":
            # NumPy does not look at positions that select nothing.
            slack = 1 if len(shape) == 1 and g.chance(0.05) else 0
            arrays.append(positions(g, shape[axis], g.part_of_broadcast(joint), slack))
            add(f"@{first + len(arrays) - 1}", arrays[-1].a.astype(np.int64))
            axis += 1
        elif kind == "integer":
            position = g.integer(-shape[axis], shape[axis] - 1)
            add(position, position)
            axis += 1
        else:
            add(*slice_of(g, shape[axis]))
            axis += 1
        if arrays and not dots and g.chance(0.2):
            break
    return text, tuple(index), arrays


def index_get(g):
    x = g.array(g.dtype(), g.shape(1))
    text, index, arrays = selection(g, x.a.shape, 1)
    with g.call("index_get", [x, *arrays], {"index": text}) as call:
        call.expect(Exact(np.array(x.a[index]), x.dtype), shared=False)


def index_put(g):
    """Positions that occur twice get one value."""
    x = g.output(g.dtype(), g.shape(1))
    text, index, arrays = selection(g, x.a.shape, 2)
    other = g.array(x.dtype, x.a.shape, "small")
    try:
        chosen = np.array(other.a[index])
    except IndexError:
        chosen = np.zeros((), x.a.dtype)
    values = g.array(x.dtype, chosen.shape, values=lambda n: chosen.ravel()[:n], layout="contiguous")
    if g.chance(0.2):
        values = g.array(x.dtype, (), "small")
    call = g.call("index_put", [x, values, *arrays], {"index": text})
    with call:
        x.a[index] = values.a
        call.expect(Exact(x.a.copy(), x.dtype))


def index_add(g):
    """Small whole numbers, whose sums are exact in every order."""
    def whole(n):
        return g.rng.integers(0, 4, n)

    dtype = g.dtype(INTS + FLOATS)
    x = g.array(dtype, g.shape(1), layout="contiguous", values=whole)
    text, index, arrays = selection(g, x.a.shape, 2)
    try:
        shape = x.a[index].shape
    except IndexError:
        shape = ()
    values = g.array(dtype, g.part_of_broadcast(shape), values=whole)
    call = g.call("index_add", [x, values, *arrays], {"index": text})
    with call:
        wide = x.a.astype(np.float64 if dtype in FLOATS else x.a.dtype)
        np.add.at(wide, index, np.broadcast_to(values.a, shape).copy())
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
        "index_get": (4, index_get),
        "index_put": (3, index_put),
        "index_add": (3, index_add),
        "choose": (1, choose),
        "diagonal": (2, diagonal),
    }
