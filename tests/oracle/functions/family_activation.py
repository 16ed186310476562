"""Activations."""
import torch
import torch.nn.functional as T

from differences import elu as elu_of
from differences import extreme, hard_sigmoid, hard_swish, leaky_relu as leaky, selu


def element_wise(function, profile="any"):
    def generate(g):
        g.element_wise(function, profile)

    return generate


def clipped_relu(g):
    z = g.pick([20.0, 6.0, 1.5, 0.25])
    g.case([g.x(g.shape())], {"z": z}, lambda x: T.hardtanh(x, 0, z))


def shrink(function):
    def generate(g):
        bound = g.pick([0.5, 0.0, 0.25, 2.0])
        g.case([g.x(g.shape())], {"bound": bound}, lambda x: function(x, bound))

    return generate


def crelu(g):
    x = g.x(g.shape(1, 4))
    axis = g.axis(x.a.ndim)
    g.case([x], {"axis": axis}, lambda x: torch.cat([T.relu(x), T.relu(-x)], axis))


def elu(g):
    alpha = g.pick([1.0, 0.5, 1.7])
    g.case([g.x(g.shape())], {"alpha": alpha}, lambda x: elu_of(x, alpha))


def leaky_relu(g):
    x = g.x(g.shape())
    if g.chance(0.5):
        g.case([x, 0.2], {}, leaky)
    else:
        slope = g.x(g.part_of_broadcast(x.a.shape), "positive")
        g.case([x, slope], {}, leaky, floor=g.summed(x.a.size, slope))


def softplus_beta(g):
    beta = g.pick([1.0, 2.0, 0.5, 3.0])
    g.case([g.x(g.shape())], {"beta": beta}, lambda x: T.softplus(x, beta, threshold=1000))


def prelu(g):
    x = g.x(g.shape(2, 4))
    W = g.x(x.a.shape[1:g.integer(1, x.a.ndim)], "positive")
    shape = W.a.shape + (1,) * (x.a.ndim - 1 - W.a.ndim)
    g.case([x, W], {}, lambda x, W: leaky(x, W.reshape(shape)),
           floor=g.summed(x.a.size, W))


def maxout(g):
    shape, size = list(g.filled()), g.integer(1, 4)
    axis = g.axis(len(shape))
    shape[axis] *= size
    x = g.x(shape)
    k = axis % len(shape)

    def reference(x):
        parts = x.reshape(*shape[:k], shape[k] // size, size, *shape[k + 1:])
        return extreme(torch.amax)(parts, (k + 1,), False)

    g.case([x], {"pool_size": size, "axis": axis}, reference)


def along_axis(function):
    def generate(g):
        x = g.x(g.shape(1, 4))
        axis = g.axis(x.a.ndim)
        g.case([x], {"axis": axis}, lambda x: function(x, axis), loose=4, floor=4)

    return generate


def lstm(g):
    n, cells, *rest = g.shape(2, 3, 100)

    def reference(c, x):
        a, i, f, o = x.chunk(4, 1)
        c = torch.tanh(a) * torch.sigmoid(i) + c * torch.sigmoid(f)
        return c, torch.tanh(c) * torch.sigmoid(o)

    g.case([g.x((n, cells, *rest)), g.x((n, 4 * cells, *rest))], {}, reference)


def gated(function):
    """Of two operands, or of the halves of one, the gate first."""
    def generate(g):
        if g.chance(0.5):
            shape = g.shape()
            g.case([g.x(shape), g.x(shape)], {}, lambda gate, x: function(gate) * x)
        else:
            shape = g.shape(1, 4)
            packed = g.x((*shape[:-1], 2 * shape[-1]))

            def halves(packed):
                gate, x = packed.chunk(2, -1)
                return function(gate) * x

            g.case([packed], {}, halves)

    return generate


def functions():
    table = {name: (1, element_wise(function)) for name, function in {
        "relu6": T.relu6, "gelu": T.gelu, "gelu_tanh": lambda x: T.gelu(x, approximate="tanh"),
        "hard_sigmoid": hard_sigmoid, "hard_swish": hard_swish, "hard_tanh": T.hardtanh,
        "log_sigmoid": T.logsigmoid, "mish": T.mish, "selu": selu, "silu": T.silu,
        "swish": T.silu, "softsign": T.softsign}.items()}
    own = [clipped_relu, crelu, elu, leaky_relu, softplus_beta, prelu, maxout, lstm]
    return table | {f.__name__: (1, f) for f in own} | {
        "swiglu": (2, gated(T.silu)), "geglu": (2, gated(T.gelu)),
        "geglu_tanh": (2, gated(lambda x: T.gelu(x, approximate="tanh"))),
        "hard_shrink": (1, shrink(T.hardshrink)), "soft_shrink": (1, shrink(T.softshrink)),
        "softmax": (2, along_axis(torch.softmax)),
        "log_softmax": (2, along_axis(torch.log_softmax))}
