"""Normalization functions."""
import numpy as np
import torch
import torch.nn.functional as T


def scale_type(g):
    """The element type of gamma and beta."""
    if g.type in ("float64", "float32"):
        return g.type
    return g.pick(["float32", g.type])


def statistics_type(g):
    return "float64" if g.type == "float64" else "float32"


def affine(g, shape):
    dtype = scale_type(g)
    return [g.x(shape, "smooth", dtype), g.x(shape, "smooth", dtype)]


def batch_shape(g, least):
    """A shape (n, channels, ...), and how many of its axes are channels."""
    while True:
        shape = g.filled(2, 4, 200)
        axes = g.pick([1, 1, 1, min(2, len(shape) - 1)])
        if np.prod(shape) // np.prod(shape[1:1 + axes]) >= least:
            return shape, axes


def fused(g, shape, args, params):
    """relu and residual, behind the other operands; what follows the reference."""
    params["relu"], params["residual"] = g.chance(0.3), g.chance(0.3)
    if params["residual"]:
        args.append(g.x(shape, "smooth"))

    def follow(y, residual):
        y = y if residual is None else y + residual
        return torch.relu(y) if params["relu"] else y

    return follow


def bounds(row, eps):
    """What case() gets for rows of so many numbers: two may have hardly any deviation, and then
    gradients are differences of large numbers; those of long rows are sums that cancel."""
    return {"loose": 16, "floor": 1 / np.sqrt(eps) if row <= 2 else max(1, row / 20),
            "second": row > 2}


def operand(g, shape):
    """Not broadcast: such rows have no deviation."""
    layout = g.pick(["contiguous", "permuted", "stepped", "any"])
    return g.images(shape, "smooth", layout) if len(shape) > 2 else g.x(shape, "smooth", layout=layout)


def batch_normalization(g):
    shape, axes = batch_shape(g, 4)
    channels = shape[1:1 + axes]
    params = {"eps": g.pick([2e-5, 1e-3, 0.1])}
    args = [operand(g, shape), *affine(g, channels)]
    averages = g.chance(0.5)
    if averages:
        params["decay"] = g.pick([0.9, 0.5, 0.0, 1.0])
        dtype = statistics_type(g)
        args += [g.constant(channels, "smooth", dtype), g.constant(channels, "positive", dtype)]
    follow = fused(g, shape, args, params)

    def reference(x, gamma, beta, *rest):
        rest = list(rest)
        mean, var = (rest.pop(0), rest.pop(0)) if averages else (None, None)
        flat = x.reshape(shape[0], int(np.prod(channels)), -1)
        statistics = [None if s is None else s.reshape(-1).clone() for s in (mean, var)]
        y = T.batch_norm(flat, *statistics, gamma.reshape(-1), beta.reshape(-1), True,
                         1 - params.get("decay", 0.9), params["eps"])
        y = follow(y.reshape(shape), rest[0] if rest else None)
        return (y, *(s.reshape(channels) for s in statistics)) if averages else y

    dtypes = [g.type] + [statistics_type(g)] * (2 if averages else 0)
    row = np.prod(shape) / np.prod(channels)
    g.case(args, params, reference, dtypes=dtypes, loose=16, floor=max(1, row / 20))


def fixed_batch_normalization(g):
    shape, axes = batch_shape(g, 1)
    channels = shape[1:1 + axes]
    params = {"eps": g.pick([2e-5, 1e-3, 0.1])}
    dtype = scale_type(g)
    args = [operand(g, shape), *affine(g, channels), g.x(channels, "smooth", dtype),
            g.x(channels, "positive", dtype)]
    follow = fused(g, shape, args, params)

    def reference(x, gamma, beta, mean, var, residual=None):
        flat = [s.reshape(*channels, *[1] * (x.ndim - 1 - axes)) for s in (gamma, beta, mean, var)]
        gamma, beta, mean, var = flat
        return follow((x - mean) / torch.sqrt(var + params["eps"]) * gamma + beta, residual)

    g.case(args, params, reference, loose=16)


def layer_normalization(g):
    shape = g.filled(2, 4, 300)
    size = shape[g.integer(1, len(shape) - 1):]
    eps = g.pick([1e-5, 1e-3, 0.1])
    g.case([operand(g, shape), *affine(g, size)], {"eps": eps},
           lambda x, gamma, beta: T.layer_norm(x, size, gamma, beta, eps),
           **bounds(np.prod(size), eps))


def rms_normalization(g):
    shape = g.filled(2, 4, 300)
    size = shape[g.integer(1, len(shape) - 1):]
    eps = g.pick([1e-6, 1e-3, 0.1])
    g.case([operand(g, shape), affine(g, size)[0]], {"eps": eps},
           lambda x, gamma: T.rms_norm(x, size, gamma, eps),
           **bounds(np.prod(size), eps))


def rounded_sum(g, x, residual):
    """As catena rounds it before it is normalized."""
    total = x + residual
    narrow = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    if g.type in narrow:
        total = total + (total.to(narrow[g.type]).double() - total).detach()
    return total


def add_normalization(g, least_eps, normalize, parameters):
    shape = g.filled(2, 4, 300)
    size = shape[g.integer(1, len(shape) - 1):]
    eps = g.pick([least_eps, 1e-3, 0.1])

    def reference(x, residual, *affine):
        total = rounded_sum(g, x, residual)
        return normalize(total, size, *affine, eps), total

    g.case([operand(g, shape), operand(g, shape), *affine(g, size)[:parameters]], {"eps": eps},
           reference, **bounds(np.prod(size), eps))


def add_layer_normalization(g):
    add_normalization(g, 1e-5, T.layer_norm, 2)


def add_rms_normalization(g):
    add_normalization(g, 1e-6, T.rms_norm, 1)


def group_normalization(g):
    groups = g.integer(1, 3)
    shape = (g.integer(1, 3), groups * g.integer(1, 4), *g.filled(0, 2, 30))
    eps = g.pick([1e-5, 1e-3, 0.1])
    g.case([operand(g, shape), *affine(g, shape[1:2])], {"groups": groups, "eps": eps},
           lambda x, gamma, beta: torch.group_norm(x, groups, gamma, beta, eps),
           **bounds(np.prod(shape[1:]) // groups, eps))


def instance_normalization(g):
    shape = (g.integer(1, 3), g.integer(1, 5), *g.filled(1, 2, 40))
    eps = g.pick([1e-5, 1e-3, 0.1])
    g.case([operand(g, shape), *affine(g, shape[1:2])], {"eps": eps},
           lambda x, gamma, beta: torch.group_norm(x, shape[1], gamma, beta, eps),
           **bounds(np.prod(shape[2:]), eps))


def local_response_normalization(g):
    shape = g.filled(2, 4, 150)
    n = g.integer(1, 7)
    window = n + 1 - n % 2
    params = {"n": n, "k": g.pick([1.0, 2.0]), "alpha": g.pick([1e-4, 0.1, 0.5]),
              "beta": g.pick([0.75, 0.5, 1.0])}

    def reference(x):
        x = x.reshape(*shape, *[1] * (4 - len(shape)))
        return T.local_response_norm(x, window, params["alpha"] * window, params["beta"],
                                     params["k"]).reshape(shape)

    g.case([operand(g, shape)], params, reference)


def functions():
    own = [batch_normalization, fixed_batch_normalization, layer_normalization, rms_normalization,
           add_layer_normalization, add_rms_normalization, group_normalization, instance_normalization, local_response_normalization]
    return {f.__name__: (3, f) for f in own}
