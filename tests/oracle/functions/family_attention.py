"""Attention, by its definition with all scores in memory."""
import numpy as np
import torch

from case import to_torch
from values import STORAGE, round_bfloat16

HUGE = 1e30


# Around the sizes of tiles.
LENGTHS = [1, 63, 64, 65, 70, 127, 128, 129, 197, 255, 256, 257]
DEPTHS = [16, 32, 64, 96, 128, 200]


def sizes(g):
    """Batch, heads, groups, queries, keys, depth and width. Heads are few where lengths or depths are
    large, so that a case stays small."""
    groups = g.integer(1, 2)
    heads = groups * g.integer(1, 3)
    if g.small or g.chance(0.6):
        return g.integer(1, 2), heads, groups, g.integer(1, 9), g.integer(1, 12), g.integer(1, 8), g.integer(1, 8)
    groups = g.integer(1, 2)
    heads = g.integer(1, 2) * groups
    kind = g.pick(["deep", "deep", "long", "both"])
    depth, width = g.pick(DEPTHS), g.pick(DEPTHS)
    if g.chance(0.6):
        width = depth
    if kind == "deep":
        return g.integer(1, 2), heads, groups, g.integer(1, 9), g.integer(1, 12), depth, width
    if kind == "both":
        return 1, 1, 1, g.pick(LENGTHS), g.pick(LENGTHS), depth, width
    return 1, heads, groups, g.pick(LENGTHS), g.pick(LENGTHS), g.pick([4, 8, 16, 32]), g.pick([4, 8, 16, 32])


def broadcast(g, shape, limit):
    """A shape that broadcasts to this one, of at most `limit` elements."""
    for _ in range(20):
        own = g.part_of_broadcast(shape)
        if np.prod(own) <= limit:
            return own
    return shape[3:]


def given_numbers(g, values):
    def make(count):
        assert count == len(values)
        return np.array(values)

    return g.array(g.pick(["int32", "int64"]), (len(values),), layout="contiguous", values=make)


def offsets(g, extent, documents):
    cuts = sorted(g.integer(0, extent) for _ in range(documents - 1))
    return given_numbers(g, [0, *cuts, extent])


def additive_mask(g, shape):
    """Floats that are added to the scores: of small size, with zeros, and with what forbids a key or
    nearly does."""
    dtype = g.pick([g.type, "float64" if g.type == "float64" else "float32"])
    lowest, share = g.pick([-np.inf, -1e4, -6e4 if dtype == "float16" else -1e30]), g.pick([0.1, 0.5])

    def values(count):
        x = np.where(g.rng.random(count) < 0.5, 0.0, g.rng.standard_normal(count))
        x = np.where(g.rng.random(count) < share, lowest, x)
        return round_bfloat16(x) if dtype == "bfloat16" else x.astype(STORAGE[dtype])

    return g.array(dtype, broadcast(g, shape, 2**15), values=values)


class Rules:
    """Which keys a query attends to, and the operands and parameters that say so."""

    def __init__(self, g, batch, heads, queries, keys):
        self.params, self.operands, self.names = {}, [], []
        i, j = np.arange(queries)[:, None], np.arange(keys)[None]
        shape = (batch, heads, queries, keys)
        allowed = np.ones((batch, 1, queries, keys), bool)
        position = np.broadcast_to(i + keys - queries, (batch, 1, queries, 1))
        if batch == 1 and g.chance(0.2):
            count = g.integer(1, 3)
            own = self.add(g, "documents", offsets(g, queries, count))
            others = self.add(g, "key_documents", offsets(g, keys, count))
            of_query = np.searchsorted(own[1:], i[:, 0], "right")
            of_key = np.searchsorted(others[1:], j[0], "right")
            allowed = allowed & (of_query[:, None] == of_key[None])
            position = (i[:, 0] - own[of_query + 1] + others[of_query + 1])[None, None, :, None]
        elif g.chance(0.2):
            start = self.add(g, "query_start", given_numbers(g, [g.integer(0, keys) for _ in range(batch)]))
            position = i + start.reshape(-1, 1, 1, 1)
        if g.chance(0.2):
            lengths = self.add(g, "key_lengths", given_numbers(g, [g.integer(0, keys) for _ in range(batch)]))
            allowed = allowed & (j < lengths.reshape(-1, 1, 1, 1))
        self.added = torch.zeros(())
        if g.chance(0.4):
            allowed = allowed & self.mask(g, shape)
        self.params["causal"] = g.chance(0.5)
        if self.params["causal"]:
            allowed = allowed & (j <= position)
        if g.chance(0.25):
            self.params["window"] = g.integer(1, keys + 1)
            allowed = allowed & (np.abs(position - j) < self.params["window"])
        self.allowed = torch.from_numpy(np.array(np.broadcast_to(allowed, shape)))

    def mask(self, g, shape):
        """Adds one, and gives what it allows."""
        if g.chance(0.6):
            return self.add(g, "mask", g.array("bool", broadcast(g, shape, 2**17)))
        mask = self.add(g, "mask", additive_mask(g, shape)).astype(np.float64)
        allowed = mask > -np.inf
        self.added = torch.from_numpy(np.where(allowed, mask, 0.0))
        return allowed

    def add(self, g, name, operand):
        self.names.append(name)
        self.operands.append(operand)
        return np.asarray(operand.a)


def log_sum_exp(scores):
    """PyTorch's own makes gradients of exp(score - result), and a result of -1e30 has lost the logarithm of
    the number of keys."""
    largest = scores.detach().amax(3, keepdim=True)
    return (largest + (scores - largest).exp().sum(3, keepdim=True).log()).squeeze(3)


def largest_row(scores):
    """The largest score of a query, of either sign: its rounding is that of the weights."""
    largest = scores.amax(3)
    return largest[largest > -HUGE / 10].abs().max().item() if (largest > -HUGE / 10).any() else 0


def attention(g, statistics=False):
    batch, heads, groups, queries, keys, depth, width = sizes(g)
    args = [g.x((batch, heads, queries, depth), "smooth"), g.x((batch, groups, keys, depth), "smooth"),
            g.x((batch, groups, keys, width), "smooth")]
    params = {"scale": g.pick([0.0, 0.3, 1.0]), "softcap": g.pick([0.0, 0.0, 2.0])}
    if g.chance(0.15):
        params["scale"] = float(g.pick([8, 40]) / np.sqrt(depth))
    has_bias = g.chance(0.3)
    if has_bias:
        shape = broadcast(g, (batch, heads, queries, keys), 2**15)
        args.append(g.x(shape, g.pick(["smooth", "smooth", (900, 1100), (-1100, -900)])))
    rules = Rules(g, batch, heads, queries, keys)
    params |= rules.params | {"bias": has_bias, "given": " ".join(rules.names)}
    statistics = statistics and bool(rules.allowed.any(-1).all())
    params["statistics"] = statistics
    scale = params["scale"] or 1 / np.sqrt(depth)

    def scores_of(q, k, *rest):
        scores = q @ k.repeat_interleave(heads // groups, 1).transpose(2, 3) * scale
        if params["softcap"]:
            scores = params["softcap"] * torch.tanh(scores / params["softcap"])
        if has_bias:
            scores = scores + rest[0]
        return (scores + rules.added).masked_fill(~rules.allowed, -HUGE * 10)

    def reference(q, k, v, *rest):
        scores = scores_of(q, k, *rest)
        y = torch.softmax(scores, 3) * rules.allowed @ v.repeat_interleave(heads // groups, 1)
        return (y, log_sum_exp(scores)) if statistics else y

    terms = max(depth, width, keys, queries * heads // groups)
    if has_bias:
        terms = max(terms, rules.allowed.numel() // args[3].a.size)
    largest = largest_row(scores_of(*(to_torch(a.a) for a in (args[:2] + args[3:]))))
    wide = "float64" if g.type == "float64" else "float32"
    # Gradients of queries and keys are rounded in proportion to the scale, second gradients to its square.
    # Where weights are near 1 the terms of the latter cancel, in PyTorch's float64, too: in case 2727 of seed
    # 303, from 2e4 to 7e-6, of which PyTorch's numbers are farther than catena's by 60 digits.
    factor = max(1, scale) ** (2 if g.type == "float64" else 1)
    # GPUs make float32 products of three in tf32, and rows of values of up to 200 columns cancel.
    floor = 4 if g.type == "float64" else 16
    g.case([*args, *rules.operands], params, reference, dtypes=[g.type] + [wide] * statistics,
           loose=max(24, largest / 8), floor=floor * factor, terms=terms)


def scaled_frequencies(g, size, base, params):
    """The frequencies of rotary positions, and the factor of cosines and sines."""
    theta = base ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    factor, original = params["factor"], params["original"]
    if params["scaling"] == "llama3":
        wave = 2 * np.pi / theta
        kept = (original / wave - 1.0) / (4.0 - 1.0)
        between = (1 - kept) * theta / factor + kept * theta
        return torch.where(wave < original / 4.0, theta, torch.where(wave > original / 1.0, theta / factor, between)), 1
    if params["scaling"] == "yarn":
        def pair(turns):
            return size * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(base))

        low, high = max(np.floor(pair(32)), 0), min(np.ceil(pair(1)), size - 1)
        high += 0.001 * (low == high)
        ramp = ((torch.arange(size // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
        return theta / factor * ramp + theta * (1 - ramp), 0.1 * np.log(factor) + 1
    return theta, 1


def rotary(g):
    batch, heads, positions, depth = g.integer(1, 3), g.integer(1, 3), g.integer(1, 6), g.integer(2, 40)
    size = depth // 2 * 2
    params = {"base": g.pick([10000.0, 500000.0, 100.0]), "interleaved": g.chance(0.5), "start": g.integer(0, 3000),
              "scaling": g.pick(["", "", "llama3", "yarn"]), "factor": g.pick([8.0, 4.0, 32.0]),
              "original": g.pick([64, 2048, 8192]), "positions": g.chance(0.5)}
    if size < depth or g.chance(0.5):
        size = params["rotated"] = 2 * g.integer(1, size // 2)
    args = [g.x((batch, heads, positions, depth), "smooth")]
    place = np.arange(positions)[None]
    if params["positions"]:
        shape = g.pick([(batch, positions), (1, positions), (batch, 1), (positions,)])
        args.append(g.array(g.pick(["int32", "int64"]), shape, layout="contiguous",
                            values=lambda count: g.rng.integers(-5, 4000, count)))
        place = np.asarray(args[1].a).reshape((-1, shape[-1]))
    place = torch.from_numpy(np.array(np.broadcast_to(place, (batch, positions)) + params["start"], np.float64))
    theta, factor = scaled_frequencies(g, size, params["base"], params)
    angle = (place[..., None] * theta)[:, None]
    cos, sin = factor * torch.cos(angle), factor * torch.sin(angle)

    def reference(x, *rest):
        turned = x[..., :size]
        if params["interleaved"]:
            a, b = turned[..., 0::2], turned[..., 1::2]
            turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
        else:
            a, b = turned.chunk(2, -1)
            turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
        return torch.cat([turned, x[..., size:]], -1)

    # The last digit of a frequency is that of an angle of several thousand.
    g.case(args, params, reference, loose=128 if g.type == "float64" else 1)


def slopes_of(heads):
    """As the authors' code has them."""
    def of_power(n):
        start = 2 ** (-(2 ** -(np.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if heads & (heads - 1) == 0:
        return of_power(heads)
    below = 2 ** int(np.floor(np.log2(heads)))
    return of_power(below) + slopes_of(2 * below)[0::2][:heads - below]


def alibi(g):
    batch, heads, queries, keys, depth = g.integer(1, 2), g.integer(1, 12), g.integer(1, 5), g.integer(1, 7), g.integer(1, 4)
    causal = g.chance(0.5)
    queries = min(queries, keys)
    slopes = torch.tensor(slopes_of(heads), dtype=torch.float64).reshape(-1, 1, 1)
    distance = torch.arange(queries)[:, None] + keys - queries - torch.arange(keys)[None]
    bias = (-slopes * distance.abs()).masked_fill((distance < 0) & causal, -HUGE)

    def reference(q, k, v):
        return torch.softmax(q @ k.transpose(2, 3) / np.sqrt(depth) + bias, 3) @ v

    g.case([g.x((batch, heads, n, depth), "smooth") for n in (queries, keys, keys)], {"causal": causal}, reference,
           loose=24, floor=4 if g.type in ("float64", "float32") else 16)


def functions():
    return {"scaled_dot_product_attention": (8, attention),
            "rotary_embedding": (5, rotary), "alibi": (2, alibi),
            "attention_with_statistics": (3, lambda g: attention(g, True))}
