"""Products of arrays."""
import numpy as np

from generator import ERRORS
from values import EPSILON, Exact, cast, is_float, near, promote, wide


def operands(g, shape_a, shape_b):
    dtype = g.dtype()
    other = g.dtype() if g.chance(0.2) else dtype
    return g.array(dtype, shape_a, "small"), g.array(other, shape_b, "small")


def expect_product(call, f, x, y, count):
    """Integers and bool exactly; floats within count roundings of the sum of magnitudes."""
    dtype = promote(x.dtype, y.dtype)
    with call:
        if not is_float(dtype):
            call.expect(Exact(np.asarray(f(x.a, y.a))))
            return
        a, b = (cast(v.a, dtype).astype(wide(dtype)) for v in (x, y))
        result = np.asarray(f(a, b))
        bound = np.asarray(f(np.abs(a), np.abs(b)))
        call.expect(near(result, bound * EPSILON[dtype] * (count + 1), dtype))


def size(g):
    return g.pick([0, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33]) if g.chance(0.95) else g.integer(40, 90)


def matmul_shapes(g):
    m, k, n = size(g), size(g), size(g)
    batch = [g.integer(1, 3) for _ in range(g.pick([0, 0, 1, 2]))]
    a, b = batch + [m, k], g.part_of_broadcast(batch) + (k, n)
    if g.chance(0.1):
        a = [k]
    if g.chance(0.1):
        b = (k,)
    if g.chance(0.03):
        b = g.shape(0, 3)
    return a, b, k


def into(g, name, f, x, y):
    """A product of integers that is asked for in another dtype, or into an array; whether it was."""
    if is_float(promote(x.dtype, y.dtype)) or g.chance(0.5):
        return False
    try:
        result = np.asarray(f(x.a, y.a))
    except ERRORS:
        return False
    wanted = g.pick(["int64", "float64"])
    if g.chance(0.5):
        g.call(name, [x, y], {"dtype": wanted}).expect(
            Exact(np.asarray(f(x.a.astype(wanted), y.a.astype(wanted))), wanted))
        return True
    out = g.output(wanted, result.shape)
    call = g.call(name, [x, y, out], {"out": 2})
    out.a[...] = result
    call.expect(Exact(out.a.copy(), wanted))
    return True


def matmul(g):
    a, b, k = matmul_shapes(g)
    x, y = operands(g, a, b)
    if not into(g, "matmul", np.matmul, x, y):
        expect_product(g.call("matmul", [x, y]), np.matmul, x, y, k)


def dot(g):
    a, b, k = matmul_shapes(g) if g.chance(0.6) else (g.shape(0, 2), (), 1)
    if len(a) + len(b) > 5:
        a = a[-2:]
    x, y = operands(g, a, b)
    # With a 0-d array dot multiplies, where zeros keep their signs.
    if 0 in (x.a.ndim, y.a.ndim) or not into(g, "dot", np.dot, x, y):
        expect_product(g.call("dot", [x, y]), np.dot, x, y, k)


def vdot(g):
    shape = g.shape(1, 3)
    x, y = operands(g, shape, shape if g.chance(0.9) else g.shape(1, 2))
    expect_product(g.call("vdot", [x, y]), np.vdot, x, y, x.a.size)


def inner(g):
    k = size(g)
    x, y = operands(g, g.shape(0, 2, 30) + (k,), g.shape(0, 1) + (k,))
    if g.chance(0.1):
        y = g.array(y.dtype, (), "small")
    expect_product(g.call("inner", [x, y]), np.inner, x, y, k)


def outer(g):
    x, y = operands(g, g.shape(0, 2, 30), g.shape(0, 2, 30))
    expect_product(g.call("outer", [x, y]), np.outer, x, y, 1)


def tensordot(g):
    shared = [g.integer(1, 4) for _ in range(g.integer(0, 2))]
    a = [g.integer(1, 4) for _ in range(g.integer(0, 2))]
    b = [g.integer(1, 4) for _ in range(g.integer(0, 2))]
    count = int(np.prod(shared))
    if g.chance(0.5):
        x, y = operands(g, a + shared, shared + b)
        n = len(shared) + g.chance(0.03)
        call = g.call("tensordot", [x, y], {"axes": n})
        expect_product(call, lambda p, q: np.tensordot(p, q, n), x, y, count)
        return
    order_a, order_b = list(range(len(a + shared))), list(range(len(shared + b)))
    g.random.shuffle(order_a)
    g.random.shuffle(order_b)
    all_a, all_b = a + shared, shared + b
    x, y = operands(g, [all_a[k] for k in order_a], [all_b[k] for k in order_b])
    axes_a = [order_a.index(len(a) + k) for k in range(len(shared))]
    axes_b = [order_b.index(k) for k in range(len(shared))]
    if not shared:  # lists of axes may not be empty in the file
        call = g.call("tensordot", [x, y], {"axes": 0})
        expect_product(call, lambda p, q: np.tensordot(p, q, 0), x, y, 1)
        return
    if g.chance(0.3):
        axes_a = [k - x.a.ndim for k in axes_a]
    call = g.call("tensordot", [x, y], {"axes_a": axes_a, "axes_b": axes_b})
    expect_product(call, lambda p, q: np.tensordot(p, q, (axes_a, axes_b)), x, y, count)


def trace(g):
    x = g.array(g.dtype(), g.shape(1 if g.chance(0.05) else 2, 4), "small")
    n = x.a.ndim
    params = {"offset": g.integer(-3, 3), "axis1": g.axis(n), "axis2": g.axis(n)}
    with g.call("trace", [x], params) as call:
        if not is_float(x.dtype):
            call.expect(Exact(np.asarray(np.trace(x.a, *params.values()))))
            return
        a = x.a.astype(wide(x.dtype))
        result = np.asarray(np.trace(a, *params.values()))
        bound = np.asarray(np.trace(np.abs(a), *params.values()))
        call.expect(near(result, bound * EPSILON[x.dtype] * max(x.a.shape), x.dtype))


def routines():
    return {
        "matmul": (8, matmul),
        "dot": (4, dot),
        "vdot": (2, vdot),
        "inner": (2, inner),
        "outer": (2, outer),
        "tensordot": (4, tensordot),
        "trace": (2, trace),
    }
