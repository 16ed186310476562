"""Element-wise mathematics, reductions and products."""
import numpy as np
import torch
import torch.nn.functional as T

from differences import clip as clip_of
from differences import cumprod as cumprod_of
from differences import hypot as hypot_of
from differences import extreme, maximum, minimum, norm, product, sign, std
from values import promote

AWAY_FROM_0 = "positive"


def element_wise(function, profile="any", **options):
    def generate(g):
        g.element_wise(function, profile, **options)

    return generate


def cbrt(x):
    return torch.sign(x) * torch.abs(x) ** (1 / 3)


def binary(function, first="any", second="any", numbers=(0.5, -1.25, 3.0, 2), second_order=True):
    """Two arrays of broadcast shapes, now and then of different types, or one of them a number."""
    def generate(g):
        shape = g.shape()
        kind = g.random.random()
        if kind < 0.12 and numbers:
            g.case([g.x(shape, first), g.pick(numbers)], {}, wide(function), second=second_order)
            return
        if kind < 0.24 and numbers and first == "any":
            g.case([g.pick(numbers), g.x(shape, second)], {}, wide(function), second=second_order)
            return
        other = g.type if kind < 0.85 else g.pick(["float64", "float32", "float16", "bfloat16"])
        a = g.x(g.part_of_broadcast(shape), first)
        b = g.x(g.part_of_broadcast(shape), second, other)
        result = promote(g.type, other)
        size = np.prod(np.broadcast_shapes(a.a.shape, b.a.shape))
        g.case([a, b], {}, function, dtypes=[result], second=second_order,
               floor=g.summed(size, a, b))

    return generate


def wide(function):
    """Numbers as tensors, for PyTorch's functions that take none."""
    def call(*args):
        return function(*(a if torch.is_tensor(a) else torch.tensor(a, dtype=torch.float64)
                          for a in args))

    return call


def hypot(g):
    """Second gradients have a pole at (0, 0), near which they are small differences of large terms:
    where they are asked for, one operand is away from 0."""
    zeros = g.chance(0.3)
    profiles = ["any", "any"] if zeros else [AWAY_FROM_0, "smooth"]
    g.random.shuffle(profiles)
    binary(hypot_of, *profiles, numbers=(), second_order=not zeros)(g)


def clip(g):
    low, high = sorted([g.pick([-2.0, -1.5, 0.0, -0.75]), g.pick([0.0, 1.5, 0.75, 3.0])])
    g.case([g.x(g.shape()), low, high], {}, clip_of)


def where(g):
    shape = g.shape()
    condition = g.array("bool", g.part_of_broadcast(shape))
    a, b = g.x(g.part_of_broadcast(shape)), g.x(g.part_of_broadcast(shape))
    g.case([condition, a, b], {}, torch.where)


def reduced(g, empty=False):
    """A shape, the axes of a reduction (an empty list: all) and keepdims."""
    shape = g.shape(0, 4) if empty else g.filled(0, 4)
    axes = []
    if shape and g.chance(0.75):
        axes = g.random.sample(range(len(shape)), g.integer(1, len(shape)))
        axes = [k - len(shape) if g.chance(0.3) else k for k in axes]
    return shape, {"axes": axes, "keepdims": g.chance(0.4)}


def all_axes(x, axes):
    return tuple(k % x.ndim for k in axes) if axes else tuple(range(x.ndim))


def reduction(function, profile="any", empty=False, **options):
    """`function` gets x, the axes and keepdims."""
    def generate(g):
        shape, params = reduced(g, empty)
        x = g.x(shape, profile)
        g.case([x], params, lambda x: function(x, all_axes(x, params["axes"]), params["keepdims"]),
               **options)

    return generate


def prod(g):
    """Of numbers near 1, lest products leave the range of float32, and zeros."""
    shape, params = reduced(g)
    x = g.x(shape, (-1.2, 1.2))
    if g.chance(0.4):
        x.owner[g.rng.random(x.owner.size) < 0.05] = 0
    g.case([x], params, lambda x: product(x, all_axes(x, params["axes"]), params["keepdims"]),
           loose=4)


def moments(name):
    def generate(g):
        shape, params = reduced(g)
        axes = [k % len(shape) for k in params["axes"]] or range(len(shape))
        count = int(np.prod([shape[k] for k in axes], dtype=int))
        params["ddof"] = float(g.pick([0, 1]) if count > 1 else 0)
        function = torch.var if name == "var" else std

        def reference(x):
            if x.ndim == 0:
                return x * 0
            return function(x, all_axes(x, params["axes"]), correction=int(params["ddof"]),
                            keepdim=params["keepdims"])

        # Not broadcast: equal numbers have no deviation, and PyTorch's is not quite 0.
        layout = g.pick(["contiguous", "permuted", "stepped", "any"])
        g.case([g.x(shape, "smooth", layout=layout)], params, reference,
               second=name == "var" or count > 2, loose=4)

    return generate


def norms(g):
    shape, params = reduced(g)
    params["p"] = g.pick([2.0, 1.0, float("inf"), 3.0, 1.5])
    profile = "any" if params["p"] in (1.0, 2.0) else "smooth"
    axes = [k % len(shape) for k in params["axes"]] or range(len(shape))
    several = np.prod([shape[k] for k in axes]) > 1  # of one number: its size, without curvature
    g.case([g.x(shape, profile)], params,
           lambda x: norm(x, params["p"], all_axes(x, params["axes"]), params["keepdims"]),
           second=several and profile == "smooth", loose=2, floor=16)


def sum_to(g):
    shape = g.shape()
    target = g.part_of_broadcast(shape)
    g.case([g.x(shape)], {"shape": target}, lambda x: x.sum_to_size(target), floor=16)


def cumsum(g):
    x = g.x(g.shape(1, 4))
    axis = None if g.chance(0.2) else g.axis(x.a.ndim)
    g.case([x], {"axis": axis}, lambda x: x.flatten().cumsum(0) if axis is None else x.cumsum(axis),
           floor=16)


def cumprod(g):
    """Of numbers near 1, lest products leave the range of float32, and zeros."""
    x = g.x(g.shape(1, 4), (-1.2, 1.2))
    if g.chance(0.4):
        x.owner[g.rng.random(x.owner.size) < 0.05] = 0
    axis = None if g.chance(0.2) else g.axis(x.a.ndim)
    g.case([x], {"axis": axis},
           lambda x: cumprod_of(x.flatten(), 0) if axis is None else cumprod_of(x, axis), loose=4,
           floor=16)


def diff(g):
    x = g.x(g.shape(1, 4))
    axis, n = g.axis(x.a.ndim), g.integer(0, 3)
    g.case([x], {"n": n, "axis": axis}, lambda x: torch.diff(x, n, axis), loose=4, floor=16)


def few(g, low=0, high=2):
    return [g.pick([1, 2, 3, 5]) for _ in range(g.integer(low, high))]


def dot(g):
    k = g.pick([0, 1, 2, 5, 17])
    a = g.x((*few(g), k), "smooth")
    b = g.x((*few(g), k, *few(g, 1, 1)) if g.chance(0.6) else (k,), "smooth")
    g.case([a, b], {}, lambda a, b: torch.tensordot(a, b, ([-1], [max(b.ndim - 2, 0)])), floor=4)


def inner(g):
    k = g.pick([0, 1, 2, 5, 17])
    g.case([g.x((*few(g), k), "smooth"), g.x((*few(g), k), "smooth")], {}, torch.inner, floor=4)


def vdot(g):
    shape = few(g)
    n = int(np.prod(shape, dtype=int))
    g.case([g.x(shape, "smooth"), g.x((n,), "smooth")], {},
           lambda a, b: torch.dot(a.flatten(), b), floor=4)


def each_with_each(function):
    """Products of each element of one operand with each of the other."""
    def generate(g):
        a, b = g.x(few(g)), g.x(few(g))
        g.case([a, b], {}, function, floor=g.summed(a.a.size * b.a.size, a, b))

    return generate


def tensordot(g):
    summed = few(g)
    axes = list(range(len(summed)))
    a, b = g.x((*few(g), *summed), "smooth"), g.x((*summed, *few(g)), "smooth")
    if g.chance(0.4):
        g.case([a, b], {"axes": len(summed)}, lambda a, b: torch.tensordot(a, b, len(summed)),
               floor=4)
        return
    g.random.shuffle(axes)
    left = [k - len(summed) for k in axes]
    g.case([a, b], {"axes_a": left, "axes_b": axes},
           lambda a, b: torch.tensordot(a, b, (left, axes)), floor=4)


def as_matrix(x, trans):
    x = x.unsqueeze(-1) if x.ndim in (1, 0) else x
    return x.mT if trans else x


def matrix(g, rows, columns, trans, batch=()):
    return g.x((*batch, columns, rows) if trans else (*batch, rows, columns), "smooth")


def matmul(g):
    m, n, k = (g.pick([1, 2, 3, 5, 8, 17, 40]) for _ in range(3))
    if g.chance(0.05):
        k = 0
    ta, tb = g.chance(0.4), g.chance(0.4)
    stack = g.filled(1, 2, 6) if g.chance(0.4) else ()
    a, b = (g.part_of_broadcast(stack) for _ in range(2))
    g.case([matrix(g, m, k, ta, a), matrix(g, k, n, tb, b)], {"transa": ta, "transb": tb},
           lambda a, b: as_matrix(a, ta) @ as_matrix(b, tb), floor=4)


SUBSCRIPTS = ["ij,jk->ki", "bij,bjk->bik", "bqhd,bkhd->bhqk", "i,j->ij", "ij,ij->", "ij->ji", "ij->j",
              "ii->i", "iji->ji", "ii->", "iijj->ij", "iij,j->i", "i,i->i", "bij,bj->ib", "ij,jk,ik->",
              "i,j,k->kji", ",ij->ji", "ij,jk,k->i", "...ij,...j->i..."]


def einsum(g):
    subscripts = g.pick(SUBSCRIPTS)
    extents = {letter: g.integer(1, 4) for letter in "bdhijkq"}
    lead = g.filled(0, 2, 6)
    operands = [g.x((*(lead if "..." in term else ()), *(extents[k] for k in term.replace("...", ""))),
                    "smooth") for term in subscripts.split("->")[0].split(",")]
    # Terms of sums that cancel are products that are rounded, of three operands twice.
    g.case(operands, {"subscripts": subscripts}, lambda *x: torch.einsum(subscripts, *x), floor=16)


def batch_matmul(g):
    batch = g.integer(1, 4)
    m, n, k = (g.pick([1, 2, 3, 5, 8, 17]) for _ in range(3))
    ta, tb = g.chance(0.4), g.chance(0.4)
    g.case([matrix(g, m, k, ta, (batch,)), matrix(g, k, n, tb, (batch,))],
           {"transa": ta, "transb": tb}, lambda a, b: as_matrix(a, ta) @ as_matrix(b, tb))


def functions():
    constants = {"sign": sign, "rint": torch.round, "floor": torch.floor, "ceil": torch.ceil,
                 "trunc": torch.trunc}
    table = {name: (1, element_wise(lambda x, f=f: f(x).detach())) for name, f in constants.items()}
    small = (-4, 4)
    table |= {name: (1, element_wise(function, profile)) for name, (function, profile) in {
        "negative": (torch.neg, "any"), "positive": (torch.positive, "any"),
        "absolute": (torch.abs, "any"), "square": (torch.square, "any"),
        "reciprocal": (torch.reciprocal, AWAY_FROM_0), "exp": (torch.exp, small),
        "exp2": (torch.exp2, small), "log": (torch.log, AWAY_FROM_0),
        "log2": (torch.log2, AWAY_FROM_0), "log10": (torch.log10, AWAY_FROM_0),
        "log1p": (torch.log1p, AWAY_FROM_0), "sqrt": (torch.sqrt, AWAY_FROM_0),
        "rsqrt": (torch.rsqrt, AWAY_FROM_0), "cbrt": (cbrt, AWAY_FROM_0),
        "sin": (torch.sin, "any"), "cos": (torch.cos, "any"), "tan": (torch.tan, "unit"),
        "arcsin": (torch.arcsin, "unit"), "arccos": (torch.arccos, "unit"),
        "arctan": (torch.arctan, "any"), "sinh": (torch.sinh, small), "cosh": (torch.cosh, small),
        "arcsinh": (torch.arcsinh, "any"),
        "arccosh": (torch.arccosh, (1.2, 9)), "arctanh": (torch.arctanh, "unit"),
        "deg2rad": (torch.deg2rad, "any"), "rad2deg": (torch.rad2deg, "any"),
        "erf": (torch.erf, "any"),
        "softplus": (lambda x: T.softplus(x, threshold=1000), "any"), "relu": (torch.relu, "any"),
        "identity": (lambda x: x, "any")}.items()}
    # Their gradients are made of results that are rounded.
    table |= {f.__name__: (1, element_wise(f, loose=2, floor=8)) for f in (torch.tanh, torch.sigmoid)}
    table["expm1"] = (1, element_wise(torch.expm1, small, loose=2, floor=8))
    table |= {name: (1, generate) for name, generate in {
        "add": binary(torch.add), "subtract": binary(torch.sub), "multiply": binary(torch.mul),
        "divide": binary(torch.div, second=AWAY_FROM_0),
        "power": binary(torch.pow, AWAY_FROM_0, (-2, 2)),
        "maximum": binary(maximum), "minimum": binary(minimum),
        "arctan2": binary(torch.arctan2, AWAY_FROM_0, "smooth"), "hypot": hypot,
        "logaddexp": binary(torch.logaddexp)}.items()}
    table |= {f.__name__: (1, f) for f in (
        clip, where, sum_to, cumsum, cumprod, diff, matmul, batch_matmul, dot, einsum, inner, vdot,
        tensordot)}
    table |= {"kron": (1, each_with_each(torch.kron)),
              "outer": (1, each_with_each(lambda a, b: torch.outer(a.flatten(), b.flatten())))}
    # The terms of sums are larger than what cancels to.
    mean = reduction(lambda x, axes, keep: x.mean(axes, keepdim=keep) if x.ndim else x, floor=16)
    return table | {
        "sum": (2, reduction(lambda x, axes, keep: x.sum(axes, keepdim=keep) if x.ndim else x,
                             empty=True, floor=16)),
        "mean": (2, mean), "average": (1, mean),
        "max": (1, reduction(extreme(torch.amax))), "min": (1, reduction(extreme(torch.amin))),
        "prod": (1, prod),
        "logsumexp": (1, reduction(lambda x, axes, keep: torch.logsumexp(x, axes, keep))),
        "var": (1, moments("var")), "std": (1, moments("std")), "norm": (2, norms)}
