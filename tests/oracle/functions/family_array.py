"""Functions that move elements."""
import itertools

import numpy as np
import torch
import torch.nn.functional as T

from values import FLOATS


def broadcast_to(g):
    shape = g.shape()
    g.case([g.x(g.part_of_broadcast(shape))], {"shape": shape}, lambda x: x.broadcast_to(shape))


def broadcast(g):
    shape = g.shape()
    g.case([g.x(g.part_of_broadcast(shape)) for _ in range(g.integer(1, 3))], {},
           lambda *xs: torch.broadcast_tensors(*xs))


def cast(g):
    to = g.pick(FLOATS)
    # What PyTorch computes is not rounded: the bounds of `to` have room for one rounding.
    g.case([g.x(g.shape())], {"dtype": to}, lambda x: x * 1.0, dtypes=[to])


def several(g):
    """Operands that agree but for one axis, and the axis."""
    shape = list(g.shape(1, 4, 150))
    axis = g.axis(len(shape))
    xs = []
    for _ in range(g.integer(1, 4)):
        shape[axis] = g.integer(0 if g.chance(0.1) else 1, 5)
        xs.append(g.x(shape))
    return xs, axis


def concat(g):
    xs, axis = several(g)
    g.case(xs, {"axis": axis}, lambda *xs: torch.cat(xs, axis))


def stack(g):
    shape = g.shape(0, 3, 150)
    axis = g.integer(-len(shape) - 1, len(shape))
    g.case([g.x(shape) for _ in range(g.integer(1, 4))], {"axis": axis},
           lambda *xs: torch.stack(xs, axis))


def joined(function, least):
    def generate(g):
        shape = g.shape(least, 3, 150)
        g.case([g.x(shape) for _ in range(g.integer(1, 4))], {}, lambda *xs: function(xs))

    return generate


def column_stack(g):
    rows = g.integer(0, 5)
    shapes = [(rows,) if g.chance(0.5) else (rows, g.integer(0, 3))
              for _ in range(g.integer(1, 4))]
    g.case([g.x(s) for s in shapes], {}, lambda *xs: torch.column_stack(xs))


def vstack(g):
    columns = g.integer(0, 5)
    shapes = [(columns,) if g.chance(0.5) else (g.integer(0, 3), columns)
              for _ in range(g.integer(1, 4))]
    g.case([g.x(s) for s in shapes], {}, lambda *xs: torch.vstack(xs))


def block(g):
    """Two rows of blocks, of which the first has `first`."""
    width, heights = g.integer(1, 6), [g.integer(1, 3), g.integer(1, 3)]
    cuts = [sorted(g.integer(0, width) for _ in range(g.integer(0, 2))) for _ in heights]
    shapes = [(h, end - begin) for h, row in zip(heights, cuts)
              for begin, end in zip([0, *row], [*row, width])]
    first = len(cuts[0]) + 1
    g.case([g.x(s) for s in shapes], {"first": first},
           lambda *xs: torch.cat([torch.cat(xs[:first], -1), torch.cat(xs[first:], -1)], -2))


def some_axes(g, ndim, least=0):
    axes = g.random.sample(range(ndim), g.integer(min(least, ndim), ndim))
    return [k - ndim if g.chance(0.3) else k for k in axes]


def flip(g):
    x = g.x(g.shape())
    axes = some_axes(g, x.a.ndim)
    g.case([x], {"axes": axes}, lambda x: torch.flip(x, axes or tuple(range(x.ndim))))


def roll(g):
    x = g.x(g.shape(1, 4))
    axis, shift = None if g.chance(0.3) else g.axis(x.a.ndim), g.integer(-9, 9)
    g.case([x], {"shift": shift, "axis": axis}, lambda x: torch.roll(x, shift, axis))


def positive_slice(g, n):
    bound = [None, *range(-n - 1, n + 2)]
    return [g.pick(bound), g.pick(bound), g.pick([None, 1, 1, 2, 3, -1, -2])]


def get_item(g):
    shape = g.shape(1, 4)
    indices, dots = [], False
    for n in shape:
        kind = g.random.random()
        if kind < 0.3 and n:
            indices.append(g.integer(-n, n - 1))
        elif kind < 0.8:
            indices.append(positive_slice(g, n))
        elif not dots:
            indices.append("...")
            dots = True
            break
        if g.chance(0.15):
            indices.append("newaxis")
    x = g.x(shape)
    index = tuple(slice(*k) if isinstance(k, list) else {"...": Ellipsis, "newaxis": None}.get(k, k)
                  if isinstance(k, str) else k for k in indices)
    # PyTorch has no negative steps: the positions by NumPy.
    where = np.arange(x.a.size).reshape(shape)[index]
    where = torch.from_numpy(np.array(where))
    g.case([x], {"indices": indices}, lambda x: x.reshape(-1)[where])


def one_hot(g):
    classes = g.integer(1, 9)
    t, to = g.integers(g.shape(0, 3), -1, classes + 1, ("int32", "int64", "int8")), g.pick([*FLOATS, "int32"])
    g.case([t], {"classes": classes, "dtype": to},
           lambda t: (t.long().unsqueeze(-1) == torch.arange(classes)).double(), dtypes=[to])


def pad(g):
    mode = g.pick(["constant", "constant", "reflect", "edge", "wrap", "symmetric"])
    shape = g.filled(1, 3, 100)
    widths = [[g.integer(0, 3), g.integer(0, 3)] for _ in shape]
    params = {"widths": widths, "mode": mode}
    if mode == "constant":
        params["value"] = g.pick([0.0, 1.5, -2.0])
        flat = list(itertools.chain(*reversed(widths)))
        g.case([g.x(shape)], params, lambda x: T.pad(x, flat, value=params["value"]))
        return
    # PyTorch has these modes for the last axes of images only: the positions by NumPy.
    where = np.pad(np.arange(int(np.prod(shape))).reshape(shape), widths, mode)
    where = torch.from_numpy(where)
    g.case([g.x(shape)], params, lambda x: x.reshape(-1)[where])


def repeat(g):
    x, count = g.x(g.shape(1, 4, 100)), g.integer(0, 4)
    axis = None if g.chance(0.3) else g.axis(x.a.ndim)
    g.case([x], {"count": count, "axis": axis}, lambda x: x.repeat_interleave(count, axis))


def tile(g):
    x = g.x(g.shape(0, 3, 60))
    repetitions = [g.integer(0 if g.chance(0.1) else 1, 3) for _ in range(g.integer(0, 4))]
    g.case([x], {"repetitions": repetitions}, lambda x: torch.tile(x, repetitions))


def reshape(g):
    shape = g.shape()
    to = list(shape)
    g.random.shuffle(to)
    while len(to) > 1 and g.chance(0.5):
        to = [to[0] * to[1], *to[2:]]
    given = list(to)
    if given and 0 not in given and g.chance(0.3):
        given[g.integer(0, len(given) - 1)] = -1
    g.case([g.x(shape)], {"shape": given}, lambda x: x.reshape(to))


def expand_dims(g):
    x = g.x(g.shape(0, 3))
    axis = g.integer(-x.a.ndim - 1, x.a.ndim)
    g.case([x], {"axis": axis}, lambda x: x.unsqueeze(axis))


def squeeze(g):
    shape = [1 if g.chance(0.4) else n for n in g.shape()]
    ones = [k for k, n in enumerate(shape) if n == 1]
    axes = g.random.sample(ones, g.integer(0, len(ones)))
    g.case([g.x(shape)], {"axes": axes}, lambda x: x.squeeze(tuple(axes)) if axes else x.squeeze())


def image_shape(g, limit=9):
    return (g.integer(1, 3), g.integer(1, 5), g.integer(1, limit), g.integer(1, limit))


def resize_images(g):
    size = [g.integer(1, 12), g.integer(1, 12)]
    mode, corners = g.pick(["bilinear", "bilinear", "nearest"]), g.chance(0.5)
    options = {"align_corners": corners} if mode == "bilinear" else {}
    g.case([g.images(image_shape(g))],
           {"size": size, "mode": mode, "align_corners": corners},
           lambda x: T.interpolate(x, size, mode=mode, **options))


def upsampling_nearest(g):
    scale = [g.integer(1, 3), g.integer(1, 3)]
    g.case([g.images(image_shape(g, 6))], {"scale": scale},
           lambda x: T.interpolate(x, scale_factor=scale, mode="nearest"))


def select_item(g):
    n, classes = g.integer(0 if g.chance(0.1) else 1, 9), g.integer(1, 9)
    g.case([g.x((n, classes)), g.integers((n,), 0, classes)], {},
           lambda x, t: x.gather(1, t.long().unsqueeze(1)).squeeze(1))


def separate(g):
    x = g.x(g.filled(1, 4, 100))
    axis = g.axis(x.a.ndim)
    g.case([x], {"axis": axis}, lambda x: x.unbind(axis), dtypes=[g.type] * x.a.shape[axis])


def split_axis(g):
    shape = list(g.filled(1, 4, 100))
    axis = g.axis(len(shape))
    if g.chance(0.5):
        sections = g.integer(1, 4)
        shape[axis] *= sections
        g.case([g.x(shape)], {"sections": sections, "axis": axis},
               lambda x: x.chunk(sections, axis))
        return
    positions = sorted(g.integer(0, shape[axis]) for _ in range(g.integer(1, 3)))
    g.case([g.x(shape)], {"positions": positions, "axis": axis},
           lambda x: torch.tensor_split(x, positions, axis))


def take(g):
    x = g.x(g.filled(1, 3, 150))
    axis = None if g.chance(0.3) else g.axis(x.a.ndim)
    n = x.a.size if axis is None else x.a.shape[axis]
    t = g.integers(g.shape(0, 2, 30), -n, n)
    if g.chance(0.3):
        t = g.integers(g.shape(0, 2, 30), 0, n, ("uint8", "uint64"))

    def reference(x, t):
        x = x.reshape(-1) if axis is None else x
        k = 0 if axis is None else axis % x.ndim
        y = x.index_select(k, t.long().reshape(-1) % n)
        return y.reshape((*x.shape[:k], *t.shape, *x.shape[k + 1:]))

    g.case([x, t], {"axis": axis}, reference)


def take_along_axis(g):
    x = g.x(g.filled(1, 3, 150))
    axis = g.axis(x.a.ndim)
    shape, n = list(x.a.shape), x.a.shape[axis]
    shape[axis] = g.integer(1, 6)
    g.case([x, g.integers(shape, -n, n)], {"axis": axis},
           lambda x, t: x.gather(axis, t.long() % n))


def transpose(g):
    x = g.x(g.shape())
    axes = list(range(x.a.ndim))
    g.random.shuffle(axes)
    if g.chance(0.2):
        g.case([x], {"axes": []}, lambda x: x.permute(tuple(reversed(range(x.ndim)))))
        return
    given = [k - x.a.ndim if g.chance(0.3) else k for k in axes]
    g.case([x], {"axes": given}, lambda x: x.permute(axes))


def swapaxes(g):
    x = g.x(g.shape(1, 4))
    a, b = g.axis(x.a.ndim), g.axis(x.a.ndim)
    g.case([x], {"axis1": a, "axis2": b}, lambda x: x.swapaxes(a, b))


def moveaxis(g):
    x = g.x(g.shape(1, 4))
    n = g.integer(1, x.a.ndim)
    sources, destinations = (g.random.sample(range(x.a.ndim), n) for _ in range(2))
    given = [k - x.a.ndim if g.chance(0.3) else k for k in sources]
    g.case([x], {"sources": given, "destinations": destinations},
           lambda x: x.moveaxis(sources, destinations))


def rollaxis(g):
    x = g.x(g.shape(1, 4))
    axis, start = g.axis(x.a.ndim), g.integer(-x.a.ndim, x.a.ndim)
    before = start % x.a.ndim if start < x.a.ndim else start
    g.case([x], {"axis": axis, "start": start},
           lambda x: x.moveaxis(axis, before - (before > axis % x.ndim)))


def rot90(g):
    x = g.x(g.shape(2, 4))
    axes = [k - x.a.ndim if g.chance(0.3) else k for k in g.random.sample(range(x.a.ndim), 2)]
    times = g.integer(-5, 5)
    g.case([x], {"times": times, "axes": axes}, lambda x: torch.rot90(x, times, axes))


def mirrored(function, axes):
    return lambda g: g.case([g.x(g.shape(axes, 4))], {}, function)


def triangle(function):
    def generate(g):
        k = g.integer(-4, 4)
        g.case([g.x(g.shape(2, 4))], {"k": k}, lambda x: function(x, k))

    return generate


def diagonals(g):
    x = g.x(g.shape(2, 4))
    a, b = (k - x.a.ndim if g.chance(0.3) else k for k in g.random.sample(range(x.a.ndim), 2))
    # PyTorch refuses offsets beyond the array.
    offset = g.integer(-x.a.shape[a], x.a.shape[b])
    return x, {"offset": offset, "axis1": a, "axis2": b}


def diagonal(g):
    x, params = diagonals(g)
    g.case([x], params, lambda x: torch.diagonal(x, params["offset"], params["axis1"],
                                                 params["axis2"]))


def trace(g):
    x, params = diagonals(g)
    g.case([x], params, lambda x: torch.diagonal(x, params["offset"], params["axis1"],
                                                 params["axis2"]).sum(-1), floor=16)


def sort(g):
    x = g.x(g.shape(1, 4))
    axis = None if g.chance(0.2) else g.axis(x.a.ndim)
    g.case([x], {"axis": axis},
           lambda x: (x.flatten().sort(stable=True) if axis is None
                      else x.sort(stable=True, dim=axis)).values)


def functions():
    own = [moveaxis, rollaxis, rot90, diagonal, trace, sort, broadcast_to, broadcast, cast, concat,
           stack, column_stack, vstack, block, flip, roll, get_item, one_hot, pad, repeat, tile, reshape,
           expand_dims, squeeze, upsampling_nearest, select_item, separate, split_axis, take,
           take_along_axis, transpose, swapaxes]
    return {f.__name__: (1, f) for f in own} | {
        "resize_images": (2, resize_images),
        "hstack": (1, joined(torch.hstack, 1)), "dstack": (1, joined(torch.dstack, 1)),
        "tril": (1, triangle(torch.tril)), "triu": (1, triangle(torch.triu)),
        "flipud": (1, mirrored(torch.flipud, 1)), "fliplr": (1, mirrored(torch.fliplr, 2))}
