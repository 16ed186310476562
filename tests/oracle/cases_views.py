"""Chains of 1 to 8 views of one array, and writes through them; compared after each step."""
import numpy as np

from generator import ERRORS, raw_bytes
from values import ALL, STORAGE, Arr, Exact, round_bfloat16


def slice_of(g, extent):
    """[start, stop, step], and Python's slice."""
    def bound():
        return None if g.chance(0.4) else g.integer(-extent - 1, extent + 1)

    text = [bound(), bound(), g.pick([1, 1, 1, 2, 3, -1, -2])]
    return text, slice(*text)


def index_of(g, shape):
    """A basic index as the file has it, and for NumPy."""
    text, index, rest = [], [], g.chance(0.3)
    used = g.integer(0, len(shape))
    for extent in shape[:used]:
        if g.chance(0.15):
            text.append("newaxis")
            index.append(None)
        if extent and g.chance(0.2):
            position = g.integer(-extent, extent - 1)
            text.append(position)
            index.append(position)
        else:
            t, s = slice_of(g, extent)
            text.append(t)
            index.append(s)
    if rest:
        text.append("...")
    return text, (*index, ...)


def reshape_step(g, a):
    """A new shape that needs no copy, or None."""
    extents = list(a.shape)
    for _ in range(4):
        wanted = []
        for n in extents:
            if n > 1 and n % 2 == 0 and g.chance(0.4):
                wanted += [n // 2, 2]
            elif wanted and g.chance(0.4):
                wanted[-1] *= n
            else:
                wanted.append(n)
        view = a.view()
        try:
            view.shape = wanted
            return wanted, view
        except AttributeError:
            continue
    return None


def shape_step(g, a, name):
    """(step, view) or None when the operation does not fit."""
    if name == "index":
        text, index = index_of(g, a.shape)
        return [name, text], a[index]
    if name == "transpose":
        axes = list(range(a.ndim))
        g.random.shuffle(axes)
        return [name, axes], a.transpose(axes) if axes else a
    if name == "swapaxes" and a.ndim:
        k, m = g.axis(a.ndim), g.axis(a.ndim)
        return [name, k, m], a.swapaxes(k, m)
    if name == "reshape":
        found = reshape_step(g, a)
        return found and ([name, found[0]], found[1])
    if name == "squeeze":
        return [name], a.squeeze()
    if name == "expand_dims" and a.ndim < 6:
        axis = g.axis(a.ndim + 1)
        return [name, axis], np.expand_dims(a, axis)
    if name == "diagonal" and a.ndim >= 2:
        k, m = g.random.sample(range(a.ndim), 2)
        offset = g.integer(-2, 2)
        return [name, offset, k, m], as_writable(np.diagonal(a, offset, k, m), a)
    if name == "broadcast" and a.size < 100:
        shape = [g.integer(2, 3) if n == 1 and g.chance(0.5) else n for n in a.shape]
        if g.chance(0.5):
            shape.insert(0, 2)
        return [name, shape], np.broadcast_to(a, shape)
    return None


def as_writable(view, a):
    """np.diagonal gives read-only views; catena's may be written."""
    if not a.flags.writeable:
        return view
    return np.lib.stride_tricks.as_strided(view, view.shape, view.strides, writeable=True)


def dtype_step(g, x):
    """Another type over the same bytes; not over bfloat16, whose bytes are not in NumPy's array."""
    to = g.pick([d for d in ALL if d not in ("bfloat16", "bool")])
    if x.dtype == "bfloat16":
        return None
    try:
        result = x.a.view(STORAGE[to])
    except ERRORS:
        return None
    return (["view", to], Arr(result, to, x.owner)) if is_aligned(result) else None


def is_aligned(a):
    """Elements that are not at multiples of their size are refused, as GPUs cannot read them."""
    return a.size == 0 or a.flags.aligned


def write(g, x, other):
    """A write into a part of the view; its source is a number, `other`, or overlaps the target."""
    # Arithmetic on reinterpreted bytes gives NaNs, whose bits are nobody's promise.
    arithmetic = [] if x.dtype != other.dtype else ["iadd", "isub", "imul", "subtract_out",
                                                    "negative_out"]
    text, index = index_of(g, x.a.shape)
    target = x.a[index]
    name = g.pick(["fill", "assign", "assign"] + arithmetic)
    if name == "fill":
        value = g.integer(0, 9)
        target[...] = value
        return [name, value, text, 0]
    if name in ("isub", "subtract_out", "negative_out") and x.dtype == "bool":
        return None
    source, source_text = other.a, 1
    if target.ndim and g.chance(0.7):
        found = overlapping(g, x.a, index, text, target)
        if found:
            source_text, source = found
    if source is other.a and other.dtype != x.dtype:
        return None
    shape = np.broadcast_shapes(source.shape, target.shape) if compatible(source, target) else None
    if shape != target.shape or (name == "negative_out" and source.shape != target.shape):
        return None
    apply(name, target, source, x.dtype)
    return [name, text, source_text]


def compatible(source, target):
    try:
        np.broadcast_shapes(source.shape, target.shape)
        return True
    except ValueError:
        return False


def overlapping(g, a, index, text, target):
    """Another index of the view with the shape of the target: shifted, reversed or transposed."""
    moved, moved_text = list(index[:-1]), list(text)
    axes = [k for k, s in enumerate(moved) if isinstance(s, slice)]
    if not axes:
        return None
    k = g.pick(axes)
    axis = sum(1 for s in moved[:k] if s is not None)
    start, stop, step = moved[k].indices(a.shape[axis])
    count = len(range(start, stop, step))
    if count == 0:
        return None
    last = start + (count - 1) * step
    if g.chance(0.5):  # the same elements in reverse
        end = start - (1 if step > 0 else -1)
        new = [last, end if end >= 0 else None, -step]
    else:
        shift = g.pick([-1, 1])
        if not (0 <= start + shift < a.shape[axis] and 0 <= last + shift < a.shape[axis]):
            return None
        end = last + shift + (1 if step > 0 else -1)
        new = [start + shift, end if end >= 0 else None, step]
    moved[k], moved_text[k] = slice(*new), new
    source = a[(*moved, ...)]
    return (moved_text, source) if source.shape == target.shape else None


def apply(name, target, source, dtype):
    """NumPy copies what overlaps, so the result is that of reading everything first."""
    if name == "assign":
        target[...] = source
        return
    if name == "negative_out":
        result = np.negative(source)
    elif name == "subtract_out":
        result = np.subtract(source, target)
    else:
        result = {"iadd": np.add, "isub": np.subtract, "imul": np.multiply}[name](target, source)
    target[...] = round_bfloat16(result) if dtype == "bfloat16" else result


def chain(g):
    x = g.array(g.dtype(), g.shape(1, 4, 200), "small", specials=False)
    if 0 in [t for t, n in zip(x.a.strides, x.a.shape) if n > 1]:
        x = g.array(x.dtype, x.a.shape, "small", layout="stepped", specials=False)
    other = g.array(x.dtype, (), "small", specials=False)
    call = g.call("view_chain", [x, other], {"steps": []})
    add_whole(call, x)
    steps, results, length = [], [], g.integer(1, 8)
    while len(steps) < length:
        writable = x.a.flags.writeable and x.a.size
        if writable and g.chance(0.4):
            step = write(g, x, other)
            if step is None:
                continue
            results.append(Exact(memory(x.owner, call)))
        elif g.chance(0.1):
            found = dtype_step(g, x)
            if found is None:
                continue
            step, x = found
        else:
            found = shape_step(g, x.a, g.pick(["index"] * 4 + [
                "transpose", "swapaxes", "reshape", "squeeze", "expand_dims", "diagonal",
                "broadcast"]))
            if found is None:
                continue
            step, x = found[0], x.view(found[1])
        steps.append(step)
        results.append(Exact(np.array(x.a), x.dtype))
    call.line["p"]["steps"] = steps
    call.expect(*results)


def add_whole(call, x):
    """The last argument: the whole memory of the first one as bytes."""
    call.line["a"].append({"b": 0, "d": "uint8", "s": [len(call.before[0])], "t": [1], "o": 0})


def memory(owner, call):
    dtype = next(d for o, d in call.owners if o is owner)
    return np.frombuffer(raw_bytes(owner, dtype), np.uint8)


def at(g):
    """Basic indices, now and then too many or out of bounds."""
    x = g.array(g.dtype(), g.shape())
    text, index = index_of(g, x.a.shape)
    if g.chance(0.05):
        text, index = text + [40], index + (40,)
        text = text if "..." in text else text[:-1] + ["...", 40]
    with g.call("at", [x], {"index": text}) as call:
        result = x.a[index]
        call.expect(Exact(result, x.dtype), shared=None if result.size == 0 else True)


def view(g):
    x = g.array(g.dtype(ALL[1:]), g.shape())
    while x.dtype == "bfloat16":
        x = g.array(g.dtype(ALL[1:]), g.shape())
    to = g.pick([d for d in ALL[1:] if d != "bfloat16"])
    with g.call("view", [x], {"dtype": to}) as call:
        result = x.a.view(STORAGE[to])
        if not is_aligned(result):
            call.expect_error("ValueError")
            return
        # Bytes that make a NaN are that NaN in any case.
        call.expect(Exact(result, to), shared=None if result.size == 0 else True)


def routines():
    return {"view_chain": (30, chain), "at": (6, at), "view": (2, view)}
