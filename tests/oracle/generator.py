"""Random operands of every layout, and the writing of cases.

A routine's generator receives a Gen and writes one case:

    call = g.call("add", [x, y], {"dtype": "float32"})   # the operands as they are now
    call.expect(Exact(np.add(x.a, y.a)))                 # what NumPy says

Where NumPy may refuse the operands, `with g.call(...) as call:` expects its error.
"""
import json
import random
import sys
import zlib

import numpy as np

from deviations import ERROR_TYPES
from values import ALL, STORAGE, Arr, Range, is_float, round_bfloat16

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33]
SPECIALS = [np.nan, np.inf, -np.inf, 0.0, -0.0]
# What NumPy raises where an argument is wrong; catena must then throw.
ERRORS = (TypeError, ValueError, IndexError, OverflowError)
# The names under which check.cpp knows them. A class that NumPy derives from one has its name;
# AxisError is an IndexError and a ValueError, and stands for the former.
ERROR_NAMES = ("IndexError", "TypeError", "OverflowError", "ValueError")


def raw_bytes(a, dtype):
    a = np.ascontiguousarray(a)
    if dtype == "bfloat16":
        return (a.view(np.uint32) >> np.uint32(16)).astype(np.uint16).tobytes()
    return a.tobytes()


def encode(value):
    """Parameters and host numbers; floats as text, which keeps all digits and NaN."""
    if isinstance(value, (list, tuple)):
        return [encode(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return {"f": float(value).hex()}
    if isinstance(value, np.integer):
        return int(value)
    return value


def error_name(error):
    """The name for a case file of what NumPy has raised."""
    found = [c.__name__ for c in type(error).__mro__ if c.__name__ in ERROR_NAMES]
    if not found:
        raise LookupError(f"{error!r} has no counterpart: name the error that catena must throw")
    return "IndexError" if "IndexError" in found else found[0]


class CaseWriter:
    """Collects the bytes of all arrays and a line of JSON a case."""

    def __init__(self):
        self.chunks, self.offset, self.lines = [], 0, []

    def put(self, data):
        place = [self.offset, len(data)]
        padding = -len(data) % 16
        self.chunks += [data, bytes(padding)]
        self.offset += len(data) + padding
        return place

    def save(self, path, about, compressed=False):
        def text(s):
            return np.frombuffer(s.encode(), np.uint8)

        save = np.savez_compressed if compressed else np.savez
        save(path, buffer=np.frombuffer(b"".join(self.chunks), np.uint8),
             cases=text("\n".join(self.lines) + "\n"), about=text(json.dumps(about)))


class Call:
    """One case in the making. The bytes of the operands are taken when it is made."""

    def __init__(self, writer, routine, args, params):
        self.writer, self.owners, self.before = writer, [], []
        self.line = {"r": routine, "a": [self.argument(a) for a in args],
                     "p": {k: encode(v) for k, v in (params or {}).items()}}
        self.line["b"] = [writer.put(b) + [d] for b, (_, d) in zip(self.before, self.owners)]

    def argument(self, a):
        if not isinstance(a, Arr):
            return encode(a)
        block = next((i for i, (o, _) in enumerate(self.owners) if o is a.owner), None)
        if block is None:
            block = len(self.owners)
            self.owners.append((a.owner, a.dtype))
            self.before.append(raw_bytes(a.owner, a.dtype))
        place = a.a.__array_interface__["data"][0] - a.owner.__array_interface__["data"][0]
        halve = 2 if a.dtype == "bfloat16" else 1
        if a.a.size == 0:
            place = 0
        return {"b": block, "d": a.dtype, "s": a.a.shape, "t": [t // halve for t in a.a.strides],
                "o": place // halve}

    def expect(self, *results, shared=None):
        """Ends the case. What NumPy wrote into the operands meanwhile is expected as well."""
        self.line["e"] = [self.result(r) for r in results]
        if shared is not None:
            self.line["m"] = bool(shared)
        written = []
        for i, (owner, dtype) in enumerate(self.owners):
            now = raw_bytes(owner, dtype)
            if now != self.before[i]:
                written.append([i, self.writer.put(now)])
        if written:
            self.line["w"] = written
        self.finish()

    def expect_error(self, name=None):
        """Ends the case: catena must throw what stands for NumPy's exception: the named one, else
        the one that is being handled."""
        also = ERROR_TYPES.get(self.line["r"])
        names = [name or error_name(sys.exc_info()[1])]
        self.line["x"] = names + [also] if also and not name else names
        self.finish()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """What NumPy raises in a block `with call:` is what catena must throw."""
        if kind is not None and issubclass(kind, ERRORS):
            self.expect_error()
            return True

    def result(self, r):
        e = {"d": r.dtype, "s": r.a.shape, "l": self.writer.put(raw_bytes(r.a, r.dtype))}
        if isinstance(r, Range):
            e["h"] = self.writer.put(raw_bytes(r.high, r.dtype))
        return e

    def finish(self):
        self.writer.lines.append(json.dumps(self.line, separators=(",", ":")))


class Gen:
    """Random choices for one routine; the same for a seed whatever other routines there are."""

    def __init__(self, seed, routine, writer):
        number = zlib.crc32(routine.encode())
        self.rng = np.random.default_rng([seed, number])
        self.random = random.Random(seed * 2**32 + number)
        self.writer = writer

    def call(self, routine, args, params=None):
        return Call(self.writer, routine, args, params)

    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return self.random.choice(items)

    def integer(self, low, high):
        """In [low, high]."""
        return self.random.randint(low, high)

    def dtype(self, choices=ALL):
        return self.pick(choices)

    def shape(self, low=0, high=4, limit=400):
        """Mostly small; sometimes with an extent of 0, sometimes long."""
        ndim = self.integer(low, high)
        if ndim and self.chance(0.03):
            shape = [1] * ndim
            shape[self.integer(0, ndim - 1)] = self.integer(500, 3000)
            return tuple(shape)
        shape = [self.pick(EXTENTS) for _ in range(ndim)]
        while ndim and np.prod(shape) > limit:
            k = max(range(ndim), key=shape.__getitem__)
            shape[k] = max(1, shape[k] // 2)
        if ndim and self.chance(0.05):
            shape[self.integer(0, ndim - 1)] = 0
        return tuple(shape)

    def part_of_broadcast(self, shape):
        """A shape that broadcasts to `shape`."""
        result = [1 if self.chance(0.25) else n for n in shape]
        if self.chance(0.25):
            result = result[self.integer(0, len(result)):]
        return tuple(result)

    def values(self, dtype, count, profile="any", specials=None):
        """Flat values. Floats: "any" (all magnitudes, NaN, infinities), "medium" (the same within
        1e5), "small" (within 9), "unit" (within 1), "positive". Integers: "any" and "medium" (all), else within 9."""
        if dtype == "bool":
            return self.rng.random(count) < 0.5
        if not is_float(dtype):
            return self.integer_values(STORAGE[dtype], count, profile)
        x = self.rng.standard_normal(count)
        if profile == "any" and self.chance(0.15):  # all magnitudes, also those without full precision
            limit = {"float16": 8, "float64": 320}.get(dtype, 46)
            x *= 10.0 ** self.rng.uniform(-limit, limit, count)
        elif profile in ("any", "medium"):
            x *= 10.0 ** self.rng.uniform(-3, 3, count)
        elif profile == "unit":
            x = self.rng.uniform(-1, 1, count)
        elif profile == "positive":
            x = np.abs(x) + 0.1
        elif profile == "small":
            x = np.where(self.rng.random(count) < 0.3, np.rint(x * 3), np.clip(x * 2, -9, 9))
        if specials is None:
            specials = profile in ("any", "medium") and self.chance(0.3)
        if specials:
            where = self.rng.random(count) < 0.15
            x = np.where(where, self.rng.choice(SPECIALS, count), x)
        return round_bfloat16(x) if dtype == "bfloat16" else x.astype(STORAGE[dtype])

    def integer_values(self, dtype, count, profile):
        low, high = (0 if dtype.kind == "u" else -9), 9
        if profile == "positive":
            low = 1
        small = self.rng.integers(low, high, count, dtype, endpoint=True)
        if profile not in ("any", "medium") or self.chance(0.4):
            return small
        limits = np.iinfo(dtype)
        x = self.rng.integers(limits.min, limits.max, count, dtype, endpoint=True)
        x = np.where(self.rng.random(count) < 0.3, small, x)
        extreme = self.rng.random(count) < 0.1
        return np.where(extreme, self.rng.choice(np.array([limits.min, limits.max], dtype), count), x)

    def array(self, dtype, shape, profile="any", layout=None, specials=None, values=None):
        """A view with the shape: contiguous, permuted, with steps of either sign, broadcast."""
        shape = tuple(shape)
        layout = layout or self.pick(["contiguous", "contiguous", "permuted", "stepped", "any",
                                      "broadcast"])
        n = len(shape)
        order = list(range(n))
        if layout in ("permuted", "any"):
            self.random.shuffle(order)
        steps = [1] * n
        if layout in ("stepped", "any"):
            steps = [self.pick([1, 1, 2, 3, -1, -2]) for _ in range(n)]
        repeated = [layout == "broadcast" and self.chance(0.4) for _ in range(n)]
        extents, cut = [], []
        for k in order:
            size = 1 if repeated[k] and shape[k] else shape[k]
            step = abs(steps[k])
            before, after = (self.integer(0, 1), self.integer(0, 1)) if step > 1 else (0, 0)
            extents.append(before + max(0, (size - 1) * step + 1) + after)
            cut.append(slice(before, before + (size - 1) * step + 1 if size else before, step))
        lead = self.integer(0, 3) if layout == "any" else 0
        count = int(np.prod(extents, dtype=np.int64))
        if values is None:
            owner = self.values(dtype, count + lead, profile, specials)
        else:
            owner = values(count + lead)
        owner = np.ascontiguousarray(owner, STORAGE[dtype])
        a = owner[lead:].reshape(extents)[(*cut, ...)]
        back = [order.index(k) for k in range(n)]
        a = a.transpose(back)
        a = a[(*(slice(None, None, -1) if s < 0 else slice(None) for s in steps), ...)]
        if any(repeated):
            a = np.lib.stride_tricks.as_strided(
                a, shape, [0 if r else t for r, t in zip(repeated, a.strides)])
        return Arr(a, dtype, owner)

    def output(self, dtype, shape):
        """An array that may be written: no element twice."""
        return self.array(dtype, shape, "small",
                          self.pick(["contiguous", "permuted", "stepped", "any"]))

    def axis(self, ndim):
        return self.integer(-ndim, ndim - 1)

    def scalar(self, dtype):
        """A host number that an array of this type may meet."""
        k = self.pick("bif")
        if k == "b":
            return self.chance(0.5)
        if k == "f":
            return self.pick([0.5, -1.25, 3.0, 0.1, 7.3, 0.0, -0.0, float("inf"), float("nan")])
        return self.integer(0 if dtype.startswith("u") else -9, 9)
