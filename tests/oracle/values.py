"""Element types, roundings and bounds: what DESIGN's equality means in numbers.

bfloat16 does not exist in NumPy. Such arrays are float32 arrays all of whose values are bfloat16
numbers, beside the name of the type; their results are the float32 results, rounded once.
"""
import numpy as np

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTS = SIGNED + UNSIGNED
FLOATS = ["float16", "bfloat16", "float32", "float64"]
ALL = ["bool"] + INTS + FLOATS

# The NumPy type that holds the values.
STORAGE = {name: np.dtype("float32" if name == "bfloat16" else name) for name in ALL}
ITEMSIZE = {name: 2 if name == "bfloat16" else STORAGE[name].itemsize for name in ALL}
# Unit in the last place of 1 in the type that functions and sums of a type compute in.
EPSILON = {"float16": 2.0**-23, "bfloat16": 2.0**-23, "float32": 2.0**-23, "float64": 2.0**-52}

_UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


def unit(dtype):
    """Unit in the last place of 1 in the type itself."""
    return _UNIT[dtype]


class Arr:
    """A view `a` of the 1-d array `owner`, and the name of its element type."""

    __slots__ = ("a", "dtype", "owner")

    def __init__(self, a, dtype, owner):
        self.a, self.dtype, self.owner = a, dtype, owner

    def view(self, a):
        return Arr(a, self.dtype, self.owner)


def is_float(dtype):
    return "float" in dtype


def kind(dtype):
    return 0 if dtype == "bool" else 2 if is_float(dtype) else 1


def name_of(np_dtype):
    return np.dtype(np_dtype).name


def round_bfloat16(x):
    """The nearest bfloat16 numbers, ties to even, from float32 or wider, as float32."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        f = x.astype(np.float32)
        bits = f.view(np.uint32)
        if x.dtype.itemsize > 4:  # to odd first, so that the second rounding is the only one
            back = f.astype(x.dtype)
            inexact = (back != x) & np.isfinite(x) & np.isfinite(f)
            bits = (bits - (inexact & (np.abs(back) > np.abs(x)))).astype(np.uint32)
            bits = bits | inexact.astype(np.uint32)
        rounded = (bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))))
        rounded = (rounded & np.uint32(0xFFFF0000)).astype(np.uint32)
        rounded = np.where(np.isnan(f), np.uint32(0x7FC00000), rounded).astype(np.uint32)
    return rounded.view(np.float32)


def cast(a, to):
    """`a` as astype gives it, in the storage of `to`; integers to bfloat16 by way of float32."""
    with np.errstate(all="ignore"):
        if to == "bfloat16":
            a = np.asarray(a)
            return round_bfloat16(a if a.dtype.kind == "f" else a.astype(np.float32))
        return np.asarray(a).astype(STORAGE[to])


def promote(a, b):
    """NumPy 2's promotion of two arrays, with DESIGN's rules for bfloat16."""
    if a == b:
        return a
    if "bfloat16" in (a, b):
        other = b if a == "bfloat16" else a
        if other == "float16":
            return "float32"
        return other if is_float(other) else "bfloat16"
    return name_of(np.promote_types(a, b))


def promote_scalar(dtype, value):
    """The type of an array of `dtype` with a host number, which is weak."""
    k = 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2
    if kind(dtype) >= k:
        return dtype
    return "int64" if k == 1 else "float64"


def float_result(dtype):
    """The type in which float functions of a type compute."""
    if is_float(dtype):
        return dtype
    return {1: "float16", 2: "float32"}.get(STORAGE[dtype].itemsize, "float64")


def wide(dtype):
    """The type in which the exact result of a float function is computed."""
    return np.longdouble if dtype == "float64" else np.float64


def round_to(x, dtype):
    if dtype == "bfloat16":
        return round_bfloat16(x)
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        # NumPy takes long doubles to float16 through float32, which rounds twice.
        if dtype == "float16" and x.dtype == np.longdouble:
            x = x.astype(np.float64)
        return x.astype(STORAGE[dtype])


class Exact:
    """Equal bit for bit; any NaN equals any other."""

    def __init__(self, a, dtype=None):
        self.a = np.asarray(a)
        self.dtype = dtype or name_of(self.a.dtype)
        assert self.a.dtype == STORAGE[self.dtype], (self.a.dtype, self.dtype)


class Range:
    """Between two numbers, both included; zeros have no sign."""

    def __init__(self, low, high, dtype):
        self.a, self.high, self.dtype = np.asarray(low), np.asarray(high), dtype


def same_value(a, dtype=None):
    """Equal numbers, where 0 and -0 are one."""
    a = np.asarray(a)
    dtype = dtype or name_of(a.dtype)
    return Range(a, a, dtype) if is_float(dtype) else Exact(a, dtype)


def near(exact, tolerance, dtype):
    """A computation with an absolute error of at most `tolerance`, rounded once into `dtype`."""
    with np.errstate(all="ignore"):
        exact = np.asarray(exact)
        tolerance = np.where(np.isfinite(exact) & ~np.isnan(tolerance), tolerance, 0)
        return Range(round_to(exact - tolerance, dtype), round_to(exact + tolerance, dtype), dtype)


def ulp(x, dtype):
    """Distance of neighbours at x in the type that `dtype` computes in."""
    limits = np.finfo(np.float64 if dtype == "float64" else np.float32)
    with np.errstate(all="ignore"):
        size = np.minimum(np.abs(np.asarray(x)), limits.max).astype(limits.dtype)
        return np.spacing(size).astype(wide(dtype))


def within_ulps(exact, dtype, count=4, at=None):
    """`count` ulp of the exact result (or of the number `at`) in the type of computation."""
    return near(exact, count * ulp(exact if at is None else at, dtype), dtype)
