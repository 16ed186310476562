"""Floats taken apart and put together, quotients with remainders, and other shapes of a handle."""
import numpy as np

from cases_elementwise import arrays, call_numpy, float_dtype, same_kind
from generator import ERRORS
from values import INTS, Arr, Exact, cast, float_result, is_float, same_value

EXACT_FLOATS = ["float16", "float32", "float64"]
OPERANDS = ["bool", *INTS, *EXACT_FLOATS]


def given_dtype(g):
    """Mostly none; else the one to compute in, sometimes one that no loop has."""
    return g.dtype(EXACT_FLOATS + ["int32"]) if g.chance(0.2) else None


def computable(operands, dtype):
    return is_float(dtype) and all(same_kind(x.dtype, dtype) for x in operands if isinstance(x, Arr))


def expect_two(g, name, operands, params, results):
    """Two results, sometimes into arrays of any dtype, the first sometimes an operand."""
    results = [np.array(r) for r in results]
    if not g.chance(0.4):
        g.call(name, operands, params).expect(*map(Exact, results))
        return
    first = operands[0]
    takes_it = isinstance(first, Arr) and first.a.shape == results[0].shape
    outs = [first if takes_it and 0 not in first.a.strides and g.chance(0.4)
            else g.output(g.dtype(OPERANDS), results[0].shape),
            g.output(g.dtype(OPERANDS), results[1].shape)]
    call = g.call(name, operands + outs, {**params, "outs": len(operands)})
    if not all(same_kind(r.dtype.name, o.dtype) for r, o in zip(results, outs)):
        call.expect_error("TypeError")
        return
    for r, o in zip(results, outs):
        o.a[...] = cast(r, o.dtype)
    call.expect(*(Exact(o.a.copy(), o.dtype) for o in outs))


def expect_one(g, name, operands, params, result):
    result = np.array(result)
    if result.dtype == np.float16 or not g.chance(0.3):  # half zeros: NumPy's sign is the other's
        g.call(name, operands, params).expect(same_value(result))
        return
    out = g.output(g.dtype(OPERANDS), result.shape)
    call = g.call(name, [*operands, out], {**params, "out": len(operands)})
    if not same_kind(result.dtype.name, out.dtype):
        call.expect_error("TypeError")
        return
    out.a[...] = cast(result, out.dtype)
    call.expect(Exact(out.a.copy(), out.dtype))


def parts(name):
    def generate(g):
        x = g.array(g.dtype(OPERANDS), g.shape())
        dtype = given_dtype(g)
        params = {"dtype": dtype} if dtype else {}
        if dtype and not computable([x], dtype):
            g.call(name, [x], params).expect_error("TypeError")
            return
        value = cast(x.a, dtype or float_result(x.dtype))
        one, two = getattr(np, name)(value)
        if name == "frexp":  # the exponent of what has none is left open by C
            two = np.where(np.isfinite(value), two, 0).astype(np.int32)
        expect_two(g, name, [x], params, [one, two])
    return generate


def ldexp(g):
    x, by = arrays(g, 2, OPERANDS)
    if not isinstance(x, Arr):
        x = g.array(g.dtype(OPERANDS), g.shape())
    if not isinstance(by, Arr) or is_float(by.dtype) or by.dtype in ("uint64", "bool"):
        by = g.array(g.dtype(["int8", "int16", "int32", "int64"]), g.part_of_broadcast(x.a.shape),
                     values=lambda n: g.rng.integers(-40, 40, n))
    dtype = given_dtype(g)
    params = {"dtype": dtype} if dtype else {}
    operands = [x, int(g.integer(-30, 30))] if g.chance(0.2) else [x, by]
    if dtype and not computable([x], dtype):
        g.call("ldexp", operands, params).expect_error("TypeError")
        return
    value = cast(x.a, dtype or float_result(x.dtype))
    exponent = operands[1].a if isinstance(operands[1], Arr) else operands[1]
    with np.errstate(all="ignore"):
        try:
            result = np.ldexp(value, np.asarray(exponent).astype(np.int64))
        except ERRORS:
            g.call("ldexp", operands, params).expect_error()
            return
    expect_one(g, "ldexp", operands, params, result)


def nextafter(g):
    operands = arrays(g, 2, OPERANDS)
    dtype = given_dtype(g)
    params = {"dtype": dtype} if dtype else {}
    if dtype and any(not isinstance(x, Arr) for x in operands):
        operands = [x if isinstance(x, Arr) else g.array("float64", ()) for x in operands]
    if dtype and not computable(operands, dtype):
        g.call("nextafter", operands, params).expect_error("TypeError")
        return
    try:
        common = dtype or float_dtype(operands)
        values = [cast(x.a if isinstance(x, Arr) else x, common) for x in operands]
        with np.errstate(all="ignore"):
            result = np.nextafter(*values)
    except ERRORS:
        g.call("nextafter", operands, params).expect_error()
        return
    expect_one(g, "nextafter", operands, params, result)


def divmod_(g):
    operands = arrays(g, 2, OPERANDS)
    try:
        results = [call_numpy(name, operands)[0] for name in ("floor_divide", "remainder")]
    except ERRORS:
        g.call("divmod", operands).expect_error()
        return
    expect_two(g, "divmod", operands, {}, results)


def atleast_several(g):
    ndim = g.integer(1, 3)
    xs = [g.array(g.dtype(), g.shape(0, 4)) for _ in range(g.integer(1, 4))]
    call = g.call("atleast_several", xs, {"ndim": ndim})
    function = [np.atleast_1d, np.atleast_2d, np.atleast_3d][ndim - 1]
    call.expect(*(Exact(function(x.a), x.dtype) for x in xs), shared=True)


def set_shape(g):
    x = g.array(g.dtype(), g.shape(0, 4))
    extents = [n for n in x.a.shape if n != 1]
    g.random.shuffle(extents) if g.chance(0.3) else None
    if len(extents) > 1 and g.chance(0.5):
        k = g.integer(0, len(extents) - 2)
        extents[k:k + 2] = [extents[k] * extents[k + 1]]
    extents.insert(g.integer(0, len(extents)), g.pick([1, 1, 1, 2]))
    if g.chance(0.3):
        extents[g.integer(0, len(extents) - 1)] = -1
    call = g.call("set_shape", [x], {"shape": extents})
    view = x.a.view()
    try:
        view.shape = tuple(extents)
    except ValueError:
        call.expect_error()
        return
    except AttributeError:  # the strides allow no view
        call.expect_error("ValueError")
        return
    call.expect(Exact(view, x.dtype), shared=True if x.a.size else None)


def routines():
    return {
        "modf": (2, parts("modf")), "frexp": (2, parts("frexp")), "ldexp": (2, ldexp),
        "nextafter": (2, nextafter), "divmod": (2, divmod_),
        "atleast_several": (1, atleast_several), "set_shape": (1, set_shape),
    }
