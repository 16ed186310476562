"""Creation of arrays, copies and casts."""
import numpy as np

from generator import ERRORS
from values import STORAGE, Exact, cast, is_float, near, ulp


def maybe_dtype(g):
    return {"dtype": g.dtype()} if g.chance(0.7) else {}


def filled(name, value):
    def generate(g):
        params = {"shape": g.shape(), **maybe_dtype(g)}
        dtype = params.get("dtype", "float64")
        g.call(name, [], params).expect(Exact(np.full(params["shape"], value, STORAGE[dtype]), dtype))
    return generate


def filled_like(name, value):
    def generate(g):
        x = g.array(g.dtype(), g.shape(), "small")
        params = maybe_dtype(g)
        dtype = params.get("dtype", x.dtype)
        g.call(name, [x], params).expect(Exact(np.full(x.a.shape, value, STORAGE[dtype]), dtype))
    return generate


def fitting(g, dtype):
    """A number that casts to the type without leaving its range."""
    value = g.scalar(dtype or "float64")
    if isinstance(value, float) and dtype and not is_float(dtype):
        return 7.75 if not np.isfinite(value) else abs(value)
    return value


def full(g):
    params = {"shape": g.shape(), **maybe_dtype(g)}
    value = fitting(g, params.get("dtype"))
    dtype = params.get("dtype") or np.array(value).dtype.name
    g.call("full", [value], params).expect(
        Exact(np.broadcast_to(cast(value, dtype), params["shape"]), dtype))


def full_like(g):
    x = g.array(g.dtype(), g.shape(), "small")
    params = maybe_dtype(g)
    dtype = params.get("dtype", x.dtype)
    value = fitting(g, dtype)
    g.call("full_like", [x, value], params).expect(
        Exact(np.broadcast_to(cast(value, dtype), x.a.shape), dtype))


def scalar_array(g):
    params = maybe_dtype(g)
    value = fitting(g, params.get("dtype"))
    dtype = params.get("dtype") or np.array(value).dtype.name
    g.call("scalar_array", [value], params).expect(Exact(cast(value, dtype), dtype))


def arange(g):
    """Integers exactly; floats as start + i * step, NumPy's own value up to rounding."""
    if g.chance(0.5):
        numbers = [g.integer(-20, 20), g.integer(-20, 60), g.pick([1, 1, 2, 3, -1, -2])]
    else:
        numbers = [g.pick([0.0, 0.5, -2.25, 3]), g.pick([0.0, 1.5, 7.0, -4.0, 10]),
                   g.pick([0.25, 0.1, 1.0, -0.5])]
    if g.chance(0.02):
        numbers[2] = 0
    args = numbers[1:2] if g.chance(0.2) else numbers
    dtype = g.pick([None, "int16", "int64", "float16", "float32", "float64", "bfloat16"])
    if dtype and not is_float(dtype) and isinstance(numbers[0] + numbers[1] + numbers[2], float):
        dtype = None
    call = g.call("arange", args, {"dtype": dtype} if dtype else {})
    try:
        result = np.arange(*args)
    except ZeroDivisionError:
        call.expect_error("ValueError")
        return
    except ERRORS:
        call.expect_error()
        return
    if result.dtype.kind == "i":  # all types hold these numbers
        call.expect(Exact(result.astype(STORAGE[dtype or "int64"]), dtype or "int64"))
        return
    start, step = (args[0], args[2]) if len(args) == 3 else (0, 1)
    exact = start + np.arange(result.size).astype(np.longdouble) * step
    bound = 4 * ulp(np.maximum(np.abs(exact), np.abs(start)), "float64")
    call.expect(near(exact, bound, dtype or "float64"))


def linspace(g):
    start, stop = g.random.uniform(-9, 9), g.random.uniform(-9, 9)
    params = {"start": start, "stop": stop, "count": g.integer(0, 40), "endpoint": g.chance(0.7)}
    dtype = g.pick([None, "float32", "float64", "bfloat16", "float16"])
    if dtype:
        params["dtype"] = dtype
    call = g.call("linspace", [], params)
    exact = np.linspace(np.longdouble(start), np.longdouble(stop), params["count"],
                        params["endpoint"], dtype=np.longdouble)
    call.expect(near(exact, 4 * ulp(max(abs(start), abs(stop)), "float64"), dtype or "float64"))


def eye(g):
    params = {"rows": g.integer(0, 9), "k": g.integer(-4, 4), **maybe_dtype(g)}
    if g.chance(0.6):
        params["columns"] = g.integer(0, 9)
    dtype = params.get("dtype", "float64")
    g.call("eye", [], params).expect(
        Exact(np.eye(params["rows"], params.get("columns"), params["k"], STORAGE[dtype]), dtype))


def identity(g):
    params = {"n": g.integer(0, 9), **maybe_dtype(g)}
    dtype = params.get("dtype", "float64")
    g.call("identity", [], params).expect(Exact(np.identity(params["n"], STORAGE[dtype]), dtype))


def diag(g):
    x = g.array(g.dtype(), g.shape(1, 3 if g.chance(0.1) else 2, 40), "small")
    k = g.integer(-4, 4)
    with g.call("diag", [x], {"k": k}) as call:
        result = np.diag(x.a, k)
        call.expect(Exact(result, x.dtype), shared=x.a.ndim == 2)


def copy(g):
    x = g.array(g.dtype(), g.shape())
    g.call("copy", [x]).expect(Exact(x.a.copy(), x.dtype),
                               shared=False if x.a.size else None)


def castable(g, source, target, shape):
    """An array of `source` whose values have a defined image in `target`."""
    if not is_float(source) or is_float(target) or target == "bool":
        return g.array(source, shape)
    limits = np.iinfo(STORAGE[target])
    room = 0.99 * min(abs(float(limits.max)), 6e4)
    x = g.array(source, shape, "small")
    x.owner[...] = cast(np.clip(x.owner, 0 if limits.min == 0 else -room, room), source)
    return x


def assign(g):
    """Any dtype into any, broadcast; axes of extent 1 in front may fall away."""
    target = g.output(g.dtype(), g.shape())
    shape = g.part_of_broadcast(target.a.shape)
    if len(shape) == target.a.ndim and g.chance(0.1):
        shape = (1,) + shape
    elif g.chance(0.03):
        shape = g.shape()
    x = castable(g, g.dtype(), target.dtype, shape)
    with g.call("assign", [target, x]) as call:
        target.a[...] = cast(x.a, target.dtype)
        call.expect(Exact(target.a.copy(), target.dtype))


def fill(g):
    x = g.output(g.dtype(), g.shape())
    value = fitting(g, x.dtype)
    call = g.call("fill", [x, value])
    x.a[...] = cast(value, x.dtype)
    call.expect(Exact(x.a.copy(), x.dtype))


def astype(g):
    """Every pair of types; floats to integers only in range, where NumPy defines the result."""
    source, target = g.dtype(), g.dtype()
    x = castable(g, source, target, g.shape())
    params = {"dtype": target, "copy": g.chance(0.7)}
    result = cast(x.a, target) if source != target else x.a
    g.call("astype", [x], params).expect(
        Exact(result, target),
        shared=None if x.a.size == 0 else source == target and not params["copy"])


def routines():
    return {
        "zeros": (1, filled("zeros", 0)),
        "ones": (1, filled("ones", 1)),
        "empty": (1, filled("empty", 0)),
        "zeros_like": (1, filled_like("zeros_like", 0)),
        "ones_like": (1, filled_like("ones_like", 1)),
        "empty_like": (1, filled_like("empty_like", 0)),
        "full": (1, full),
        "full_like": (1, full_like),
        "scalar_array": (1, scalar_array),
        "arange": (2, arange),
        "linspace": (1, linspace),
        "eye": (1, eye),
        "identity": (1, identity),
        "diag": (2, diag),
        "copy": (2, copy),
        "astype": (8, astype),
        "assign": (6, assign),
        "fill": (1, fill),
    }
