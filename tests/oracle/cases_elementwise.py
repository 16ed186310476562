"""Element-wise routines."""
import math

import numpy as np

import deviations
from values import (ALL, FLOATS, INTS, STORAGE, Arr, Exact, cast, float_result, is_float, kind,
                    name_of, promote, promote_scalar, round_bfloat16, same_value, wide, within_ulps)

EXACT_1 = "negative positive absolute square sign reciprocal rint floor ceil trunc sqrt".split()
EXACT_2 = "add subtract multiply divide floor_divide remainder fmod copysign".split()
EXTREMES = "maximum minimum fmax fmin".split()
COMPARISONS = "equal not_equal less less_equal greater greater_equal".split()
LOGIC = "logical_and logical_or logical_xor".split()
BITS = "bitwise_and bitwise_or bitwise_xor".split()
CLASSES = "isnan isinf isfinite signbit".split()
FUNCTIONS_1 = ("exp exp2 expm1 log log2 log10 log1p cbrt sin cos tan arcsin arccos arctan sinh cosh "
               "tanh arcsinh arccosh arctanh deg2rad rad2deg rsqrt erf sigmoid softplus").split()
FUNCTIONS_2 = "power arctan2 hypot logaddexp logaddexp2".split()
# Those in whose domain |x| <= 1 lies.
OF_UNIT = "arcsin arccos arctanh".split()

_erf = np.frompyfunc(math.erf, 1, 1)


def _softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(np.isnan(x), x, np.where(x < 0, e, 1) / (1 + e))


# What NumPy lacks.
OWN = {
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": lambda x: np.asarray(_erf(x.astype(np.float64)), np.float64).astype(x.dtype),
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "relu": lambda x: np.where(x <= 0, x.dtype.type(0), x),
}


def function(name):
    return OWN.get(name) or deviations.FUNCTIONS.get(name) or getattr(np, name)


def operand_dtype(operands):
    """The common type of arrays and host numbers."""
    dtype = None
    for x in operands:
        if isinstance(x, Arr):
            dtype = x.dtype if dtype is None else promote(dtype, x.dtype)
    for x in operands:
        if not isinstance(x, Arr):
            dtype = promote_scalar(dtype, x)
            deviations.check_range(x, dtype)
    return dtype


def float_dtype(operands):
    """The type a float function computes in: that of the first loop all operands cast to safely,
    so that int8 with uint8 is float16, though their common type is int16."""
    dtypes = [float_result(x.dtype) for x in operands if isinstance(x, Arr)]
    if len(dtypes) < len(operands):
        return float_result(operand_dtype(operands))
    dtype = dtypes[0]
    for other in dtypes[1:]:
        dtype = promote(dtype, other)
    return operand_dtype(operands) if "bfloat16" in [x.dtype for x in operands] else dtype


def compares_out_of_range(name, operands):
    """Whether integers are compared with a host integer that their type does not hold, which
    NumPy answers by the values since version 2."""
    if name not in COMPARISONS or not any(type(x) is int for x in operands):
        return False
    try:
        operand_dtype(operands)
    except OverflowError:
        return True
    return False


def call_numpy(name, operands, dtype=None):
    """(result, its type) of the exact routines, as NumPy has it."""
    f = function(name)
    if compares_out_of_range(name, operands):
        values = [x.a.astype(object) if isinstance(x, Arr) else x for x in operands]
        return np.asarray(f(*values)).astype(np.bool_), "bool"
    common = operand_dtype(operands)
    if (dtype or common) == "bfloat16":
        values = [cast(x.a if isinstance(x, Arr) else x, "bfloat16") for x in operands]
        result = f(*values)
        if result.dtype == np.float32:
            return round_bfloat16(result), "bfloat16"
        return result, name_of(result.dtype)
    values = [x.a if isinstance(x, Arr) else x for x in operands]
    if any(isinstance(x, Arr) and x.dtype == "bfloat16" for x in operands):
        values = [cast(x.a, dtype or common) if isinstance(x, Arr) else x for x in operands]
    result = np.asarray(f(*values, **({"dtype": STORAGE[dtype]} if dtype else {})))
    return result, name_of(result.dtype)


def same_kind(source, target):
    if "bfloat16" in (source, target):
        return kind(target) >= kind(source)
    return np.can_cast(STORAGE[source], STORAGE[target], "same_kind")


def arrays(g, count, choices=ALL, profile="any"):
    """`count` operands that broadcast; now and then one is a host number, or a shape is wrong."""
    shape = g.shape()
    dtype = g.dtype(choices)
    host = g.integer(0, count - 1) if count > 1 and g.chance(0.2) else None
    operands = []
    for k in range(count):
        if k == host:
            operands.append(g.scalar(dtype))
            continue
        if g.chance(0.4):
            dtype = g.dtype(choices)
        part = shape if count == 1 or g.chance(0.5) else g.part_of_broadcast(shape)
        operands.append(g.array(dtype, part, profile))
    if count > 1 and host is None and g.chance(0.05):  # the same array twice
        operands[1] = operands[0]
    return operands


def expect_into(g, name, operands, params, result, dtype):
    """The exact result goes into an output array, which may overlap an operand."""
    out = None
    first = next(x for x in operands if isinstance(x, Arr))
    if first.a.shape == result.shape and 0 not in first.a.strides and g.chance(0.5):
        out = first
        if result.ndim and g.chance(0.4):
            axis = g.integer(0, result.ndim - 1)
            out = first.view(np.flip(first.a, axis))
    if out is None:
        out = g.output(g.dtype(), result.shape)
    call = g.call(name, operands + [out], {**params, "out": len(operands)})
    if not same_kind(dtype, out.dtype):
        call.expect_error("TypeError")
        return
    out.a[...] = cast(result, out.dtype)
    call.expect(Exact(out.a.copy(), out.dtype), shared=None)


def exact(name, count, choices=ALL, profile="any", compare=Exact):
    def generate(g):
        operands = arrays(g, count, choices, profile)
        params = {}
        first = next(x for x in operands if isinstance(x, Arr))
        if name in EXACT_1 + EXACT_2 and is_float(first.dtype) and g.chance(0.1):
            params["dtype"] = g.dtype(FLOATS if g.chance(0.8) else INTS)
        if name in COMPARISONS and g.chance(0.1):
            operands = [first, g.pick([-1, -200, 300, -(2 ** 40), 2 ** 40])]
            operands = operands[::-1] if g.chance(0.5) else operands
        call = g.call(name, operands, params)
        if params and not is_float(params["dtype"]):  # not of the same kind
            call.expect_error("TypeError")
            return
        with call:
            result, dtype = call_numpy(name, operands, params.get("dtype"))
            result = np.array(result)  # before an output overwrites the operands
            if compare is Exact and not params and g.chance(0.2):
                expect_into(g, name, operands, params, result, dtype)
            else:
                call.expect(compare(result, dtype))
    return generate


def ulps(name, count):
    """Functions with at most 4 ulp."""
    profile = "unit" if name in OF_UNIT else "any"

    def generate(g):
        operands = arrays(g, count, FLOATS if name == "power" else ALL,
                          g.pick([profile, "small", "positive"]))
        given = g.dtype(FLOATS) if g.chance(0.15) else None
        with g.call(name, operands, {"dtype": given} if given else {}) as call:
            dtype = given or float_dtype(operands)
            np.broadcast_shapes(*(x.a.shape for x in operands if isinstance(x, Arr)))
            values = [cast(x.a if isinstance(x, Arr) else x, dtype).astype(wide(dtype))
                      for x in operands]
            with np.errstate(all="ignore"):
                result = function(name)(*values)
                if name.startswith("logaddexp"):  # sums that cancel are as good as their operands
                    at = np.maximum(np.abs(result), np.maximum(*map(np.abs, values)))
                    call.expect(within_ulps(result, dtype, at=at))
                else:
                    call.expect(within_ulps(result, dtype))
    return generate


def power(g):
    if g.chance(0.6):
        ulps("power", 2)(g)
        return
    base = g.array(g.dtype(INTS), g.shape())
    exponent = g.array(g.dtype(INTS), base.a.shape, values=lambda n: g.rng.integers(0, 9, n))
    call = g.call("power", [base, exponent])
    result = np.power(base.a, exponent.a)
    if is_float(name_of(result.dtype)):  # uint64 with a signed type
        call.expect(within_ulps(np.power(base.a.astype(np.float64).astype(np.longdouble),
                                         exponent.a.astype(np.longdouble)), "float64"))
    else:
        call.expect(Exact(result))


def shifts(name):
    def generate(g):
        x = g.array(g.dtype(INTS), g.shape())
        bits = 8 * STORAGE[x.dtype].itemsize
        by = g.array(x.dtype, g.part_of_broadcast(x.a.shape),
                     values=lambda n: g.rng.integers(0, bits + 3, n))
        call = g.call(name, [x, by])
        call.expect(Exact(getattr(np, name)(x.a, by.a)))
    return generate


def clip(g):
    x, low, high = arrays(g, 3, profile="small")
    if isinstance(x, float | int):
        x = g.array(g.dtype(), g.shape(), "small")
    operands = [x, low, high]
    with g.call("clip", operands) as call:
        dtype = operand_dtype(operands)
        a, b, c = (cast(v.a if isinstance(v, Arr) else v, dtype) for v in operands)
        result = np.minimum(np.maximum(a, b), c)
        call.expect(same_value(result, dtype))


def where(g):
    condition, x, y = arrays(g, 3)
    if not isinstance(condition, Arr):
        condition = g.array("bool", g.shape(0, 0))
    with g.call("where", [condition, x, y]) as call:
        dtype = operand_dtype([x, y])
        result = np.where(condition.a, *(cast(v.a if isinstance(v, Arr) else v, dtype)
                                         for v in (x, y)))
        call.expect(Exact(result.astype(STORAGE[dtype]), dtype))


def routines():
    table = {name: (2, exact(name, 1)) for name in EXACT_1}
    table.update({name: (4, exact(name, 2)) for name in EXACT_2})
    table.update({name: (2, exact(name, 2, compare=same_value)) for name in EXTREMES})
    table.update({name: (2, exact(name, 2)) for name in COMPARISONS + LOGIC + BITS})
    table.update({name: (1, exact(name, 1)) for name in CLASSES + ["logical_not", "invert"]})
    table["relu"] = (1, exact("relu", 1, INTS + FLOATS))
    table.update({name: (1, ulps(name, 1)) for name in FUNCTIONS_1})
    table.update({name: (2, ulps(name, 2)) for name in FUNCTIONS_2})
    table["power"] = (4, power)
    table.update({name: (1, shifts(name)) for name in ("left_shift", "right_shift")})
    table["clip"] = (3, clip)
    table["where"] = (3, where)
    return table
