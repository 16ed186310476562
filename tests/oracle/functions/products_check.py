#!/usr/bin/env python3
"""Checks what stands for PyTorch's prod and cumprod (differences.py) by exact fractions: values,
gradients and second gradients, with small factors, zeros, and one factor alone.

    products_check.py
"""
import math
import sys
from fractions import Fraction

try:
    import torch
except ImportError:
    print("SKIPPED: no PyTorch for this Python")
    sys.exit(77)

from differences import cumprod, product

UNIT = Fraction(1, 2**52)
FACTORS = ([0.75], [1e-9, 0.3, -1.1], [0.0, 0.7, 1e-5, -0.4], [0.9, 0.0, 0.0, 1.1],
           [1.0 / k - 0.4 for k in range(1, 8)])


def without(x, *left_out):
    return math.prod((f for k, f in enumerate(x) if k not in left_out), start=Fraction(1))


def exact(x, v):
    """The product, its gradient, and that of the gradient's product with v: lists of terms."""
    every = range(len(x))
    second = [[v[j] * without(x, j, k) for j in every if j != k] for k in every]
    return [[without(x)]] + [[without(x, k)] for k in every] + second


def by_autograd(function, x, v):
    x = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = function(x)
    upstream = torch.ones((), dtype=torch.float64, requires_grad=True)
    first, = torch.autograd.grad(y, x, upstream, create_graph=True)
    second, = torch.autograd.grad(first, x, torch.tensor(v, dtype=torch.float64), allow_unused=True,
                                  materialize_grads=True)
    return [y.item(), *first.tolist(), *second.tolist()]


def check(name, function, x):
    v = [0.5 + k for k in range(len(x))]
    terms = exact([Fraction(f) for f in x], [Fraction(f) for f in v])
    for k, (got, expected) in enumerate(zip(by_autograd(function, x, v), terms, strict=True)):
        allowed = 4 * len(x) * UNIT * sum(map(abs, expected))
        if abs(Fraction(got) - sum(expected)) > allowed:
            sys.exit(f"products_check.py: {name} of {x}: number {k} should be "
                     f"{float(sum(expected))!r}, got {got!r}")


def main():
    for x in FACTORS:
        check("product", lambda x: product(x, (0,), False), x)
        check("cumprod", lambda x: cumprod(x, 0)[-1], x)
    print(f"{len(FACTORS)} products are as fractions say")


if __name__ == "__main__":
    main()
