"""Views, joins, splits and rearrangements."""
import numpy as np

import deviations
from values import Exact, cast, promote


def shares(name, result, x):
    return deviations.shared(name, np.may_share_memory(result, x.owner), x)


def unary(name, choose=lambda g, x: {}, low=0, high=4, keys=None, view=True):
    """np.<name>(x, **parameters); `keys` maps the file's names to NumPy's."""
    f = getattr(np, name)

    def generate(g):
        x = g.array(g.dtype(), g.shape(low, high), "small")
        params = choose(g, x)
        call = g.call(name, [x], params)
        if deviations.axis_of_0d(x.a.shape, params) and name != "expand_dims":
            call.expect_error("IndexError")
            return
        values = [tuple(v) if isinstance(v, list) else v for v in params.values()]
        with call:
            result = f(x.a, **dict(zip(keys, values))) if keys else f(x.a, *values)
            call.expect(Exact(result, x.dtype), shared=shares(name, result, x) if view else None)
    return generate


def flatten(g):
    x = g.array(g.dtype(), g.shape(), "small")
    g.call("flatten", [x]).expect(Exact(x.a.flatten(), x.dtype),
                                  shared=None if x.a.size == 0 else False)


def any_axis(g, ndim):
    """An axis, now and then one that does not exist."""
    return g.axis(ndim) if ndim and not g.chance(0.03) else ndim + g.integer(0, 1)


def new_shape(g, x):
    """Another factorisation of the size, often one that a view can have."""
    if g.chance(0.05):
        return {"shape": [g.integer(0, 5) for _ in range(g.integer(1, 3))]}
    factors = []
    for n in x.a.shape:
        if n and n % 2 == 0 and g.chance(0.5):
            factors += [2, n // 2]
        elif factors and n and g.chance(0.4):
            factors[-1] *= n
        else:
            factors.append(n)
    if g.chance(0.2):
        factors.insert(g.integer(0, len(factors)), 1)
    if factors and g.chance(0.3) and 0 not in factors:
        factors[g.integer(0, len(factors) - 1)] = -1
    return {"shape": factors}


def permutation(g, x):
    axes = list(range(x.a.ndim))
    g.random.shuffle(axes)
    if not axes or g.chance(0.2):
        return {}
    axes = [k - x.a.ndim if g.chance(0.2) else k for k in axes]
    if g.chance(0.05):
        axes[0] = axes[-1] if len(axes) > 1 else 5
    return {"axes": axes}


def squeezed(g, x):
    ones = [k for k, n in enumerate(x.a.shape) if n == 1]
    if ones and g.chance(0.5):
        return {"axis": g.random.sample(ones, g.integer(1, len(ones)))}
    return {"axis": [g.axis(x.a.ndim)]} if x.a.ndim and g.chance(0.2) else {}


def squeeze(g):
    shape = tuple(1 if g.chance(0.4) else n for n in g.shape())
    x = g.array(g.dtype(), shape, "small")
    params = squeezed(g, x)
    with g.call("squeeze", [x], params) as call:
        result = np.squeeze(x.a, tuple(params["axis"]) if params else None)
        call.expect(Exact(result, x.dtype), shared=shares("squeeze", result, x))


def expand_dims(g, x):
    n = x.a.ndim + 1
    return {"axis": g.axis(n) if not g.chance(0.03) else n}


def broadcast_to(g):
    shape = g.shape()
    x = g.array(g.dtype(), g.part_of_broadcast(shape), "small")
    if g.chance(0.05):
        shape = g.shape()
    with g.call("broadcast_to", [x], {"shape": shape}) as call:
        result = np.broadcast_to(x.a, shape)
        shared = shares("broadcast_to", result, x) if result.size else None
        call.expect(Exact(result, x.dtype), shared=shared)


def broadcast_arrays(g):
    shape = g.shape()
    parts = [g.array(g.dtype(), g.part_of_broadcast(shape), "small")
             for _ in range(g.integer(1, 3))]
    call = g.call("broadcast_arrays", parts)
    results = np.broadcast_arrays(*[x.a for x in parts])
    call.expect(*[Exact(r, x.dtype) for r, x in zip(results, parts)],
                shared=True)


def same_but_one_axis(g, low=1, same=False):
    shape = list(g.shape(low, 4, 200))
    axis = g.axis(len(shape)) if shape else 0
    arrays, dtype = [], g.dtype()
    for _ in range(g.integer(1, 4)):
        part = list(shape)
        if not same and part:
            part[axis] = g.integer(0, 5)
        if g.chance(0.02):
            part.append(2)
        if g.chance(0.3):
            dtype = g.dtype()
        arrays.append(g.array(dtype, part, "small"))
    return arrays, axis


def common_dtype(arrays):
    dtype = arrays[0].dtype
    for x in arrays[1:]:
        dtype = promote(dtype, x.dtype)
    return dtype


def join(name, with_axis):
    """concatenate and stack take an axis; vstack, hstack and dstack choose their own."""
    fixed = {"vstack": 0, "hstack": 1, "dstack": 2}

    def generate(g):
        arrays, axis = same_but_one_axis(g, 0 if name in ("stack", "vstack", "hstack") else 1,
                                         name == "stack")
        params = {}
        if with_axis:
            n = arrays[0].a.ndim + (name == "stack")
            params["axis"] = axis if name == "concatenate" else g.axis(n) if n else 0
            if g.chance(0.02):
                params["axis"] = n
        elif arrays[0].a.ndim and g.chance(0.9):
            where = fixed[name] if arrays[0].a.ndim > 1 or name == "dstack" else 0
            shape = arrays[0].a.shape
            arrays = [g.array(x.dtype, [g.integer(0, 4) if k == where else n
                                        for k, n in enumerate(shape)], "small") for x in arrays]
        dtype = common_dtype(arrays)
        with g.call(name, arrays, params) as call:
            result = getattr(np, name)([cast(x.a, dtype) for x in arrays], **params)
            call.expect(Exact(result, dtype))
    return generate


def split(g):
    x = g.array(g.dtype(), g.shape(1, 3), "small")
    axis = any_axis(g, x.a.ndim)
    if g.chance(0.5):
        n = x.a.shape[axis] if axis < x.a.ndim else 4
        divisors = [d for d in range(1, n + 1) if n % d == 0] or [1]
        params = {"sections": g.pick(divisors) if g.chance(0.9) else g.integer(1, 5), "axis": axis}
        how = params["sections"]
    else:
        cuts = sorted(g.integer(-4, 12) for _ in range(g.integer(0, 3)))
        params = {"positions": cuts, "axis": axis}
        how = cuts
    with g.call("split", [x], params) as call:
        parts = np.split(x.a, how, axis)
        expect_views(call, parts, x)


def expect_views(call, parts, x):
    call.expect(*[Exact(p, x.dtype) for p in parts], shared=True)


def array_split(g):
    x = g.array(g.dtype(), g.shape(1, 3), "small")
    params = {"sections": g.integer(1, 7), "axis": g.axis(x.a.ndim)}
    call = g.call("array_split", [x], params)
    expect_views(call, np.array_split(x.a, *params.values()), x)


def repetitions(g, x):
    return {"repetitions": [g.integer(0 if g.chance(0.1) else 1, 3)
                            for _ in range(g.integer(0, 4))]}


def flip_axes(g, x):
    if x.a.ndim == 0 or g.chance(0.3):
        return {}
    return {"axis": g.random.sample(range(x.a.ndim), g.integer(1, x.a.ndim))}


def routines():
    def one_axis(*names):
        return lambda g, x: {n: any_axis(g, x.a.ndim) for n in names}

    return {
        "reshape": (3, unary("reshape", new_shape)),
        "ravel": (1, unary("ravel")),
        "flatten": (1, flatten),
        "transpose": (2, unary("transpose", permutation)),
        "swapaxes": (1, unary("swapaxes", one_axis("axis1", "axis2"))),
        "rollaxis": (1, unary("rollaxis", lambda g, x: {
            "axis": any_axis(g, x.a.ndim), "start": g.integer(-x.a.ndim, x.a.ndim)})),
        "moveaxis": (1, unary("moveaxis", one_axis("source", "destination"))),
        "squeeze": (1, squeeze),
        "expand_dims": (1, unary("expand_dims", expand_dims)),
        "broadcast_to": (1, broadcast_to),
        "broadcast_arrays": (1, broadcast_arrays),
        "atleast_1d": (1, unary("atleast_1d")),
        "atleast_2d": (1, unary("atleast_2d")),
        "atleast_3d": (1, unary("atleast_3d")),
        "concatenate": (3, join("concatenate", True)),
        "stack": (2, join("stack", True)),
        "vstack": (1, join("vstack", False)),
        "hstack": (1, join("hstack", False)),
        "dstack": (1, join("dstack", False)),
        "split": (2, split),
        "array_split": (1, array_split),
        "tile": (2, unary("tile", repetitions, 0, 3, view=False)),
        "repeat": (1, unary("repeat", lambda g, x: {
            "count": g.integer(0, 4), "axis": any_axis(g, x.a.ndim)}, view=False)),
        "roll": (2, unary("roll", lambda g, x: {
            "shift": g.integer(-9, 9), "axis": any_axis(g, x.a.ndim)}, view=False)),
        "flip": (1, unary("flip", flip_axes)),
        "flipud": (1, unary("flipud")),
        "fliplr": (1, unary("fliplr")),
        "rot90": (1, unary("rot90", lambda g, x: {"times": g.integer(-5, 5)})),
    }
