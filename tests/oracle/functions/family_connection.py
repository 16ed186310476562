"""Products with weights: fully connected, convolutional and recurrent functions."""
import torch
import torch.nn.functional as T
from torch.func import functional_call
from torch.nn.utils import rnn

CONVOLUTIONS = {1: torch.conv1d, 2: torch.conv2d, 3: torch.conv3d}


def linear(g):
    x = g.x(g.filled(1, 4, 100), "smooth")
    inputs, outputs = x.a.shape[-1], g.pick([1, 2, 3, 8, 17, 40])
    weights = [g.x((outputs, inputs), "smooth")]
    if g.chance(0.6):
        weights.append(g.x((outputs,), "smooth"))
    g.case([x, *weights], {}, lambda x, W, b=None: T.linear(x, W, b), floor=2)


def linear_relu(g):
    x = g.x(g.filled(1, 4, 100), "smooth")
    outputs = g.pick([1, 2, 3, 8, 17])
    g.case([x, g.x((outputs, x.a.shape[-1]), "smooth"), g.x((outputs,), "smooth")], {},
           lambda x, W, b: torch.relu(T.linear(x, W, b)), floor=2)


def feed_forward(g):
    x = g.x(g.filled(1, 4, 100), "smooth")
    inner, outputs = g.pick([1, 3, 8, 17, 32]), g.pick([1, 2, 8, 17])
    name = g.pick(["relu", "gelu", "gelu_tanh"])
    weights = [[g.x((inner, x.a.shape[-1]), "smooth")], [g.x((outputs, inner), "smooth")]]
    if g.chance(0.6):
        for each in weights:
            each.append(g.x((each[0].a.shape[0],), "smooth"))

    def reference(x, *weights):
        half = len(weights) // 2
        h = T.linear(x, *weights[:half])
        h = torch.relu(h) if name == "relu" else \
            T.gelu(h, approximate="tanh" if name == "gelu_tanh" else "none")
        return T.linear(h, *weights[half:])

    # In 16 bits what is between the products is rounded, too. A long sum cancels before the
    # activation, whose gradients bend with it.
    loose = 8 * max(1, x.a.shape[-1] / 256)
    g.case([x, *weights[0], *weights[1]], {"activation": name}, reference, loose=loose, floor=4)


def bilinear(g):
    n, J, K, L = g.integer(1, 5), g.integer(1, 6), g.integer(1, 6), g.integer(1, 5)
    args = [g.x((n, J), "smooth"), g.x((n, K), "smooth"), g.x((J, K, L), "smooth")]
    if g.chance(0.6):
        args += [g.x((J, L), "smooth"), g.x((K, L), "smooth"), g.x((L,), "smooth")]

    def reference(e1, e2, W, V1=None, V2=None, b=None):
        y = T.bilinear(e1, e2, W.permute(2, 0, 1), b)
        return y if V1 is None else y + e1 @ V1 + e2 @ V2

    g.case(args, {}, reference, loose=8, floor=4)


class Window:
    """How a window moves along some axes, and channels in groups."""

    def __init__(self, g, ndim, largest=11):
        self.k = [g.integer(1, 4) for _ in range(ndim)]
        self.stride = [g.integer(1, 3) for _ in range(ndim)]
        self.pad = [g.integer(0, 2) for _ in range(ndim)]
        self.dilation = [g.integer(1, 2) if g.chance(0.4) else 1 for _ in range(ndim)]
        self.reach = [d * (k - 1) + 1 for d, k in zip(self.dilation, self.k)]
        self.size = [g.integer(max(1, r - 2 * p), max(r, largest)) for r, p in zip(self.reach, self.pad)]
        self.groups = g.pick([1, 1, 1, 2, 3])
        self.channels = self.groups * g.integer(1, 3 if self.groups > 1 else 9)
        self.out = self.groups * g.integer(1, 3 if self.groups > 1 else 9)
        if g.chance(0.15):  # depthwise
            self.groups = self.channels
            self.out = self.channels * g.integer(1, 2)
        if g.chance(0.15):
            self.k, self.reach = [1] * ndim, [1] * ndim
        self.params = {"stride": self.stride, "pad": self.pad, "dilation": self.dilation,
                       "groups": self.groups}

    def rests(self):
        """Zeros behind the padded edge that the positions of cover_all need."""
        rest = []
        for n, p, r, s in zip(self.size, self.pad, self.reach, self.stride):
            positions = -(-(n + 2 * p - r) // s) + 1
            rest.append((positions - 1) * s + r - n - 2 * p)
        return rest


def convolution(ndim):
    def generate(g):
        axes = ndim or g.pick([1, 1, 2, 3])
        w = Window(g, axes, {1: 20, 2: 11, 3: 6}[axes])
        w.params["cover_all"] = g.chance(0.2)
        batch = g.integer(0 if g.chance(0.05) else 1, 3)
        args = [g.images((batch, w.channels, *w.size), "smooth"),
                g.images((w.out, w.channels // w.groups, *w.k), "smooth")]
        if g.chance(0.5):
            args.append(g.x((w.out,), "smooth"))
        behind = w.rests() if w.params["cover_all"] else [0] * axes
        flat = [n for rest in reversed(behind) for n in (0, max(rest, 0))]

        def reference(x, W, b=None):
            # The padding by hand, for what PyTorch has no name for.
            edge = [n for p in reversed(w.pad) for n in (p, p)]
            x = T.pad(x, [e + r for e, r in zip(edge, flat)])
            return CONVOLUTIONS[axes](x, W, b, w.stride, 0, w.dilation, w.groups)

        g.case(args, w.params, reference, loose=4)

    return generate


def deconvolution_2d(g):
    w = Window(g, 2, 7)
    w.pad = [min(p, (r - 1) // 2) for p, r in zip(w.pad, w.reach)]
    w.params["pad"] = w.pad
    rest = [g.integer(0, s - 1) for s in w.stride] if g.chance(0.4) else [0, 0]
    size = [s * (n - 1) + r - 2 * p + e
            for s, n, r, p, e in zip(w.stride, w.size, w.reach, w.pad, rest)]
    if rest != [0, 0] or g.chance(0.2):
        w.params["outsize"] = size
    args = [g.images((g.integer(1, 3), w.channels, *w.size), "smooth"),
            g.images((w.channels, w.out // w.groups, *w.k), "smooth")]
    if g.chance(0.5):
        args.append(g.x((w.out,), "smooth"))
    g.case(args, w.params, lambda x, W, b=None: torch.conv_transpose2d(
        x, W, b, w.stride, w.pad, rest, w.groups, w.dilation), loose=4)


def embed_id(g):
    ids, size = g.integer(1, 12), g.pick([1, 2, 5, 8, 33])
    ignored = g.pick([None, None, -1, 0, 2])
    x = g.integers(g.shape(0, 3, 60), 0, ids, ("int32", "int64", "int8", "uint16"))
    if ignored == -1:
        x = g.integers(g.shape(0, 3, 60), 0, ids, ignored=-1)

    def reference(x, W):
        kept = torch.ones_like(x, dtype=torch.bool) if ignored is None else x != ignored
        return W[torch.where(kept, x.long(), 0)] * kept.unsqueeze(-1)

    g.case([x, g.x((ids, size))], {"ignore_label": ignored}, reference)


def by_torch(W):
    """Rows of the blocks a, i, f, o in PyTorch's order i, f, a, o."""
    a, i, f, o = W.chunk(4, 0)
    return torch.cat([i, f, a, o])


def n_step_lstm(g):
    layers, steps, n = g.integer(1, 2), g.integer(1, 4), g.integer(1, 3)
    inputs, cells = g.integer(1, 5), g.integer(1, 5)
    args = [g.x((steps, n, inputs), "smooth")]
    states = g.chance(0.6)
    if states:
        args += [g.x((layers, n, cells), "smooth") for _ in range(2)]
    for k in range(layers):
        args += [g.x((4 * cells, cells if k else inputs), "unit"), g.x((4 * cells, cells), "unit"),
                 g.x((4 * cells,), "unit")]

    def reference(xs, *rest):
        hx, cx = rest[:2] if states else [torch.zeros(layers, n, cells).double()] * 2
        weights = []
        for k in range(0, 3 * layers, 3):
            Wx, Wh, b = map(by_torch, rest[k + (2 if states else 0):][:3])
            weights += [Wx, Wh, b, torch.zeros_like(b)]
        ys, hy, cy = torch.lstm(xs, (hx, cx), weights, True, layers, 0.0, True, False, False)
        return hy, cy, ys

    g.case(args, {"layers": layers, "states": states}, reference, loose=8, floor=4)


def lengths_of(g, steps, n):
    """Lengths in any order; often one that reaches the end."""
    return g.integers((n,), 1, steps + 1)


def packed(x, lengths, batch_first=False):
    return rnn.pack_padded_sequence(x, lengths.long(), batch_first, enforce_sorted=False)


def packed_lstm(g):
    layers, steps, n = g.integer(1, 2), g.integer(1, 5), g.integer(1, 4)
    inputs, cells = g.integer(1, 4), g.integer(1, 4)
    args = [g.x((steps, n, inputs), "smooth"), lengths_of(g, steps, n)]
    args += [g.x((layers, n, cells), "smooth") for _ in range(2)]
    for k in range(layers):
        args += [g.x((4 * cells, cells if k else inputs), "unit"), g.x((4 * cells, cells), "unit"),
                 g.x((4 * cells,), "unit")]
    module = torch.nn.LSTM(inputs, cells, layers).double()

    def reference(xs, lengths, hx, cx, *rest):
        weights = []
        for k in range(0, 3 * layers, 3):
            Wx, Wh, b = map(by_torch, rest[k:k + 3])
            weights += [Wx, Wh, b, torch.zeros_like(b)]
        parameters = dict(zip((name for name, _ in module.named_parameters()), weights))
        ys, (hy, cy) = functional_call(module, parameters, (packed(xs, lengths), (hx, cx)))
        return hy, cy, rnn.pad_packed_sequence(ys, total_length=steps)[0]

    g.case(args, {"layers": layers}, reference, loose=8, floor=4)


def n_step_gru(g):
    steps, n, inputs, cells = g.integer(1, 5), g.integer(1, 4), g.integer(1, 4), g.integer(1, 4)
    chainer = g.chance(0.5)
    args = [g.x((steps, n, inputs), "smooth"), lengths_of(g, steps, n),
            g.x((1, n, cells), "smooth"), g.x((3 * cells, inputs), "unit"),
            g.x((3 * cells, cells), "unit"), g.x((3 * cells,), "unit"), g.x((3 * cells,), "unit")]

    def step(x, h, Wx, Wh, bx, bh):
        xr, xz, xn = (x @ Wx.T + bx).chunk(3, 1)
        hr, hz, hn = (h @ Wh.T + bh).chunk(3, 1)
        r, z = torch.sigmoid(xr + hr), torch.sigmoid(xz + hz)
        if chainer:
            W, b = Wh.chunk(3)[2], bh.chunk(3)[2]
            return (1 - z) * h + z * torch.tanh(xn + (r * h) @ W.T + b)
        return (1 - z) * torch.tanh(xn + r * hn) + z * h

    def reference(xs, lengths, hx, *weights):
        h, ys = hx[0], []
        for t in range(steps):
            goes_on = (lengths > t)[:, None]
            h = torch.where(goes_on, step(xs[t], h, *weights), h)
            ys.append(torch.where(goes_on, h, 0.0))
        return h[None], torch.stack(ys)

    g.case(args, {"chainer": chainer}, reference, loose=16, floor=4)


def sequence_layer(make, gates):
    """A layer of PyTorch with its own weights over padded sequences; weights are constants."""
    def generate(g):
        layers, both, bias = g.integer(1, 2), g.chance(0.6), g.chance(0.8)
        steps, n, inputs, cells = g.integer(1, 5), g.integer(1, 4), g.integer(1, 4), g.integer(1, 3)
        batch_first, states = g.chance(0.4), g.chance(0.6)
        module = make(inputs, cells, layers, bias=bias, batch_first=batch_first,
                      bidirectional=both).double()
        lstm = gates == 4
        x = g.x((n, steps, inputs) if batch_first else (steps, n, inputs), "smooth")
        args = [x, lengths_of(g, steps, n)]
        if states:
            shape = ((2 if both else 1) * layers, n, cells)
            args += [g.x(shape, "smooth") for _ in range(2 if lstm else 1)]
        names = [name for name, _ in module.named_parameters()]
        args += [g.constant(tuple(p.shape), "unit") for p in module.parameters()]

        def reference(x, lengths, *rest):
            given = rest[:len(rest) - len(names)]
            hx = None if not given else given if lstm else given[0]
            parameters = dict(zip(names, rest[len(given):]))
            ys, h = functional_call(module, parameters, (packed(x, lengths, batch_first), hx))
            ys = rnn.pad_packed_sequence(ys, batch_first, total_length=steps)[0]
            return (*(h if lstm else [h]), ys)

        g.case(args, {"layers": layers, "both": both, "bias": bias, "cells": cells,
                      "batch_first": batch_first, "states": states}, reference, loose=32, floor=4)

    return generate


def gru(g):
    n, inputs, cells = g.integer(1, 4), g.integer(1, 5), g.integer(1, 5)
    args = [g.x((n, inputs), "smooth"), g.x((n, cells), "smooth")]
    for _ in range(3):
        args += [g.constant((cells, inputs), "unit"), g.constant((cells,), "unit"),
                 g.constant((cells, cells), "unit")]

    def reference(x, h, Wr, br, Ur, Wz, bz, Uz, W, b, U):
        r, z = torch.sigmoid(x @ Wr.T + br + h @ Ur.T), torch.sigmoid(x @ Wz.T + bz + h @ Uz.T)
        return (1 - z) * h + z * torch.tanh(x @ W.T + b + (r * h) @ U.T)

    g.case(args, {}, reference, loose=4)


def lstm_layer(g):
    n, inputs, cells = g.integer(1, 4), g.integer(1, 5), g.integer(1, 5)
    args = [g.x((n, inputs), "smooth"), g.x((n, inputs), "smooth"), g.x((n, cells), "smooth"),
            g.x((n, cells), "smooth"), g.constant((4 * cells, inputs), "unit"),
            g.constant((4 * cells,), "unit"), g.constant((4 * cells, cells), "unit")]

    def reference(x0, x1, c, h, W, b, U):
        W, b, U = map(by_torch, (W, b, U))
        first, c = torch.lstm_cell(x0, (h, c), W, U, b, torch.zeros_like(b))
        return first, torch.lstm_cell(x1, (first, c), W, U, b, torch.zeros_like(b))[0]

    g.case(args, {}, reference, loose=4)


def functions():
    own = [linear_relu, bilinear, embed_id, n_step_lstm, packed_lstm, n_step_gru, gru, lstm_layer]
    return {f.__name__: (1, f) for f in own} | {
        "sequence_lstm": (1, sequence_layer(torch.nn.LSTM, 4)),
        "sequence_gru": (1, sequence_layer(torch.nn.GRU, 3)),
        "linear": (2, linear), "feed_forward": (2, feed_forward), "convolution_2d": (5, convolution(2)),
        "convolution_nd": (3, convolution(None)), "deconvolution_2d": (4, deconvolution_2d)}
