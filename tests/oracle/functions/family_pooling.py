"""Pooling of images."""
import torch
import torch.nn.functional as T


def image_shape(g, least=1, most=11):
    return (g.integer(1, 3), g.integer(1, 5), g.integer(least, most), g.integer(least, most))


def window(g, shape, largest_pad):
    """ksize, stride (now and then that of the window) and pad for images of the shape; pad is at
    most `largest_pad` of ksize."""
    ksize = [min(g.integer(1, 4), n) for n in shape[2:]]
    stride = None if g.chance(0.3) else [g.integer(1, 3), g.integer(1, 3)]
    pad = [g.integer(0, largest_pad(k)) for k in ksize]
    params = {"ksize": ksize, "pad": pad} | ({"stride": stride} if stride else {})
    return ksize, stride or ksize, pad, params


def max_pooling_2d(g):
    shape = image_shape(g)
    ksize, stride, pad, params = window(g, shape, lambda k: k // 2)
    params["cover_all"] = g.chance(0.5)
    g.case([g.images(shape)], params,
           lambda x: T.max_pool2d(x, ksize, stride, pad, ceil_mode=params["cover_all"]))


def average_pooling_2d(g):
    shape = image_shape(g)
    cover_all = g.chance(0.3)
    ksize, stride, pad, params = window(g, shape, lambda k: k // 2 if cover_all else k)
    if cover_all:
        params["cover_all"] = True
        return g.case([g.images(shape)], params,
                      lambda x: T.avg_pool2d(x, ksize, stride, pad, ceil_mode=True))
    (top, left) = pad
    g.case([g.images(shape)], params,
           lambda x: T.avg_pool2d(T.pad(x, [left, left, top, top]), ksize, stride))


def global_average_pooling_2d(g):
    g.case([g.images(image_shape(g))], {}, lambda x: T.adaptive_avg_pool2d(x, 1))


def adaptive_average_pooling_2d(g):
    size = [g.integer(1, 7), g.integer(1, 7)]
    g.case([g.images(image_shape(g))], {"size": size}, lambda x: T.adaptive_avg_pool2d(x, size))


def adaptive_max_pooling_2d(g):
    size = [g.integer(1, 7), g.integer(1, 7)]
    g.case([g.images(image_shape(g))], {"size": size}, lambda x: T.adaptive_max_pool2d(x, size))


def spatial_pyramid_pooling_2d(g):
    shape = image_shape(g, 1, 13)

    def parts_see_elements(n, level):
        size = -(-n // 2**level)
        above = (size * 2**level - n) // 2
        return all(max(k * size - above, 0) < min((k + 1) * size - above, n)
                   for k in range(2**level))

    height = 1
    while height < 4 and all(parts_see_elements(n, height) for n in shape[2:]):
        height += 1

    def reference(x):
        levels = []
        for level in range(height):
            size = [-(-n // 2**level) for n in shape[2:]]
            rest = [s * 2**level - n for s, n in zip(size, shape[2:])]
            edges = [e for r in reversed(rest) for e in (r // 2, r - r // 2)]
            y = T.max_pool2d(T.pad(x, edges, value=float("-inf")), size)
            levels.append(y.reshape(*shape[:1], -1, 1, 1))
        return torch.cat(levels, 1)

    g.case([g.images(shape)], {"height": g.integer(height, height)}, reference)


def unpooling_2d(g):
    shape = image_shape(g, 1, 6)
    ksize, stride, pad, params = window(g, (1, 1, 4, 4), lambda k: k // 2)
    cover_all = params["cover_all"] = g.chance(0.5)
    size = [s * (n - 1) + k - 2 * p - (s - 1 if cover_all else 0)
            for n, k, s, p in zip(shape[2:], ksize, stride, pad)]
    if g.chance(0.3) or min(size) < 1:
        size = params["outsize"] = [max(1, n + g.integer(-2, 2)) for n in size]

    def reference(x):
        n, c, *_ = x.shape
        ones = torch.ones(1, 1, *ksize, dtype=x.dtype)
        y = torch.conv_transpose2d(x.reshape(n * c, 1, *x.shape[2:]), ones, stride=stride)
        y = y[..., pad[0]:pad[0] + size[0], pad[1]:pad[1] + size[1]]
        y = T.pad(y, [0, size[1] - y.shape[-1], 0, size[0] - y.shape[-2]])
        return y.reshape(n, c, *size)

    g.case([g.images(shape)], params, reference)


def functions():
    own = [max_pooling_2d, average_pooling_2d, global_average_pooling_2d,
           adaptive_average_pooling_2d, adaptive_max_pooling_2d,
           spatial_pyramid_pooling_2d, unpooling_2d]
    return {f.__name__: (3 if "pyramid" not in f.__name__ else 1, f) for f in own}
