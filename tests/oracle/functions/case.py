"""A case in the making: random operands, PyTorch's results and gradients, and their bounds.

A function's generator receives a FunctionGen and makes one case:

    def softmax(g):
        x = g.x(g.shape(1, 4))                      # an operand that wants a gradient, of g.type
        axis = g.axis(x.a.ndim)
        g.case([x], {"axis": axis}, lambda x: torch.softmax(x, axis))

PyTorch computes in float64, on the operands as they are in their own type, so that the expected
numbers have no rounding of PyTorch's: what catena's may be is in `bounds`.
"""

import numpy as np
import torch

from generator import SPECIALS, Gen
from values import STORAGE, Arr, Exact, is_float, near, round_bfloat16

# float64 and float32 twice as often.
TYPES = ["float64", "float64", "float32", "float32", "float16", "bfloat16"]
# Unit in the last place of 1.
UNITS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
# How many of them a result may be off: of itself, and of the largest number of its array, where
# terms cancel. The types of 16 bits are rounded after every function, the others add up sums.
OF_ITSELF = {"float64": 64, "float32": 32, "float16": 2, "bfloat16": 2}
OF_LARGEST = {"float64": 64, "float32": 32, "float16": 2, "bfloat16": 2}
# The least "largest number" that counts: results that cancel to nothing have rounding of terms of
# this size.
FLOOR = {"float64": 1.0, "float32": 1.0, "float16": 0.125, "bfloat16": 0.125}


def bounds(exact, dtype, loose, floor):
    """The results that pass. `loose` multiplies what is allowed, `floor` what FLOOR says."""
    with np.errstate(all="ignore"):
        size = np.abs(exact[np.isfinite(exact)])
        largest = max(size.max(initial=0.0), floor * FLOOR[dtype])
        allowed = UNITS[dtype] * loose * (OF_ITSELF[dtype] * np.abs(exact)
                                          + OF_LARGEST[dtype] * largest)
    return near(exact, allowed, dtype)


def to_torch(a):
    """A copy in C order, of float64 where the array has floats."""
    return torch.from_numpy(np.array(a, np.float64 if a.dtype.kind == "f" else None, order="C"))


def repeats(a):
    """Whether elements are broadcast: sums of equal terms round to the same side each time, so that
    their errors add up."""
    return any(n > 1 and step == 0 for n, step in zip(a.shape, a.strides))


def listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


class FunctionGen(Gen):
    """Random choices and operands of one case; the same for a seed, a function and a number."""

    def __init__(self, seed, function, number, writer, small=False):
        super().__init__(seed, f"{function}/{number}", writer)
        self.function, self.number, self.small = function, number, small
        self.type = self.pick(TYPES)
        self.wanted = []

    # Operands ------------------------------------------------------------------------------------

    def shape(self, low=0, high=4, limit=400):
        return super().shape(low, high, min(limit, 12) if self.small else limit)

    def numbers(self, profile):
        """Makes flat float64 values: "any" (of both signs, with zeros, ties and some large ones),
        "smooth" (the same without zeros, ties and large ones), "special" (with NaN, infinities and
        zeros of both signs), "positive", "unit" (within 0.95), or a range (low, high)."""
        tied, large = self.chance(0.3), self.chance(0.1)

        def make(count):
            if isinstance(profile, tuple):
                return self.rng.uniform(*profile, count)
            x = self.rng.standard_normal(count)
            if profile == "positive":
                return np.exp(np.clip(x, -2, 2))
            if profile == "unit":
                return self.rng.uniform(-0.95, 0.95, count)
            if profile == "special":
                x = np.where(self.rng.random(count) < 0.5, self.rng.choice(SPECIALS, count), x)
            if profile == "any" and tied:
                x = np.rint(x * 3) / 2
            if profile == "any" and large:
                x = np.where(self.rng.random(count) < 0.1, x * 20, x)
            return x * 1.5

        return make

    def constant(self, shape, profile="any", dtype=None, layout=None):
        """A float operand without gradient."""
        dtype = dtype or self.type
        make = self.numbers(profile)

        def values(count):
            x = make(count)
            return round_bfloat16(x) if dtype == "bfloat16" else x.astype(STORAGE[dtype])

        return self.array(dtype, shape, layout=layout, values=values)

    def x(self, shape, profile="any", dtype=None, layout=None):
        """A float operand with gradient."""
        return self.want(self.constant(shape, profile, dtype, layout))

    def want(self, operand):
        self.wanted.append(operand)
        return operand

    def images(self, shape, profile="any", layout=None):
        """An operand with gradient of shape (n, channels, ...), often with its channels last."""
        if self.chance(0.6):
            return self.x(shape, profile, layout=layout)
        a = self.constant((shape[0], *shape[2:], shape[1]), profile, layout="contiguous")
        return self.want(a.view(np.moveaxis(a.a, -1, 1)))

    def integers(self, shape, low, high, dtypes=("int32", "int64"), ignored=None):
        """Integers of [low, high); with `ignored` a tenth of them is that number."""
        def values(count):
            t = self.rng.integers(low, max(high, low + 1), count)
            return t if ignored is None else np.where(self.rng.random(count) < 0.1, ignored, t)

        return self.array(self.pick(dtypes), shape, values=values)

    def filled(self, low=1, high=4, limit=400):
        """A shape without extents of 0."""
        return tuple(max(n, 1) for n in self.shape(low, high, limit))

    def element_wise(self, function, profile="any", **options):
        """A case of a function of one operand, element by element; now and then of special values
        and without gradient."""
        if self.chance(0.1):
            self.case([self.constant(self.shape(), "special")], {}, function, **options)
        else:
            self.case([self.x(self.shape(), profile)], {}, function, **options)

    @staticmethod
    def summed(size, *operands):
        """The floor of gradients that are sums over broadcast axes, of terms rounded to the type;
        `size` is that of the result."""
        least = min(a.a.size for a in operands)
        wide = all(a.dtype in ("float64", "float32") for a in operands)
        return 1 if wide or not least else 1 + 8 * np.sqrt(size / least)

    # The case ------------------------------------------------------------------------------------

    def case(self, args, params, function, dtypes=None, second=True, loose=1, floor=1, terms=None):
        """Ends the case. `function` gets the operands as tensors and gives one result or several;
        `dtypes` are those of the results (g.type unless given), `second` says whether there are
        second gradients; `loose` widens the bounds, `floor` those of arrays of small numbers; `terms` is
        how many a sum has at most, as many as the largest operand has numbers unless given."""
        tensors = [to_torch(a.a) if isinstance(a, Arr) else a for a in args]
        wanted = [k for k, a in enumerate(args) if any(a is w for w in self.wanted)]
        for k in wanted:
            tensors[k].requires_grad_()
        outputs = listed(function(*tensors))
        types = dtypes or [self.type] * len(outputs)
        recorded = [k for k, y in enumerate(outputs) if y.requires_grad]
        second = second and self.all_wide(args, wanted, types) and self.chance(0.5)
        upstream = [self.constant(outputs[k].shape, "smooth", types[k]) for k in recorded]
        directions = [self.constant(args[k].a.shape, "smooth") for k in wanted] if second else []
        gradients, names = self.gradients(tensors, wanted, outputs, recorded, upstream, directions)
        arrays = [a.a for a in [*args, *upstream, *directions] if isinstance(a, Arr)]
        most = max((a.a.size for a in [*args, *upstream] if isinstance(a, Arr)), default=1)
        if any(repeats(a) for a in arrays):
            loose *= max(1, (terms or most) / 256)
        expected = [self.expected(y, t, loose, floor, most) for y, t in zip(outputs, types)]
        expected += [self.expected(g, t, loose, floor, most) for g, t in
                     zip(gradients, self.gradient_types(args, wanted, upstream, second))]
        params = dict(params) | {"operands": len(args), "wanted": wanted if recorded else [],
                                 "upstream": recorded, "second": bool(second and recorded)}
        call = self.call(self.function, [*args, *upstream, *directions] if recorded else args, params)
        call.line["c"] = f"{self.function}/{self.number}"
        call.line["n"] = [f"result {k}" for k in range(len(outputs))] + names
        call.expect(*expected)

    @staticmethod
    def all_wide(args, wanted, types):
        return bool(wanted) and all(args[k].dtype == "float64" for k in wanted) and \
            all(t == "float64" for t in types if is_float(t))

    @staticmethod
    def gradient_types(args, wanted, upstream, second):
        first = [args[k].dtype for k in wanted]
        return first + first + [u.dtype for u in upstream] if second else first

    @staticmethod
    def gradients(tensors, wanted, outputs, recorded, upstream, directions):
        """Gradients in the order of the results of routine_of in evaluate.cpp, and their names."""
        if not recorded:
            return [], []
        xs = [tensors[k] for k in wanted]
        us = [to_torch(u.a).requires_grad_(bool(directions)) for u in upstream]
        first = torch.autograd.grad([outputs[k] for k in recorded], xs, us, allow_unused=True,
                                    materialize_grads=True, create_graph=bool(directions))
        names = [f"gradient of operand {k}" for k in wanted]
        if not directions:
            return list(first), names
        pairs = [(g, to_torch(v.a)) for g, v in zip(first, directions) if g.requires_grad]
        roots = xs + us
        if pairs:
            second = torch.autograd.grad([g for g, _ in pairs], roots, [v for _, v in pairs],
                                         allow_unused=True, materialize_grads=True)
        else:
            second = [torch.zeros_like(x) for x in roots]
        names = names + [f"second gradient of operand {k}" for k in wanted]
        return [*first, *second], names + [f"second gradient of upstream {k}" for k in recorded]

    @staticmethod
    def expected(y, dtype, loose, floor, most):
        """`most` is the size of the largest operand: where it is more than that of the result, sums
        have many terms that may cancel."""
        floor *= np.sqrt(max(1, most / max(y.numel(), 1)))
        y = y.numpy(force=True)
        if not is_float(dtype):
            return Exact(y.astype(STORAGE[dtype]), dtype)
        return bounds(y.astype(np.float64), dtype, loose, floor)
