"""Attention, by its definition with all scores in memory."""
import numpy as np
import torch

HUGE = 1e30


def sizes(g):
    """Batch, heads, groups, queries and keys; some around the sizes of tiles."""
    groups = g.integer(1, 2)
    heads = groups * g.integer(1, 3)
    if g.small or g.chance(0.8):
        return g.integer(1, 2), heads, groups, g.integer(1, 9), g.integer(1, 12)
    return 1, heads, groups, g.pick([1, 63, 64, 65, 70]), g.pick([1, 127, 128, 129, 197])


def given_numbers(g, values):
    def make(count):
        assert count == len(values)
        return np.array(values)

    return g.array(g.pick(["int32", "int64"]), (len(values),), layout="contiguous", values=make)


def offsets(g, extent, documents):
    cuts = sorted(g.integer(0, extent) for _ in range(documents - 1))
    return given_numbers(g, [0, *cuts, extent])


class Rules:
    """Which keys a query attends to, and the operands and parameters that say so."""

    def __init__(self, g, batch, heads, queries, keys):
        self.params, self.operands, self.names = {}, [], []
        i, j = np.arange(queries)[:, None], np.arange(keys)[None]
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
        if g.chance(0.3):
            mask = self.add(g, "mask", g.array("bool", g.part_of_broadcast((batch, heads, queries, keys))))
            allowed = allowed & mask
        self.params["causal"] = g.chance(0.5)
        if self.params["causal"]:
            allowed = allowed & (j <= position)
        if g.chance(0.25):
            self.params["window"] = g.integer(1, keys + 1)
            allowed = allowed & (np.abs(position - j) < self.params["window"])
        self.allowed = torch.from_numpy(np.array(np.broadcast_to(allowed, (batch, heads, queries, keys))))

    def add(self, g, name, operand):
        self.names.append(name)
        self.operands.append(operand)
        return np.asarray(operand.a)


def attention(g, statistics=False):
    batch, heads, groups, queries, keys = sizes(g)
    depth, width = g.integer(1, 8), g.integer(1, 8)
    args = [g.x((batch, heads, queries, depth), "smooth"), g.x((batch, groups, keys, depth), "smooth"),
            g.x((batch, groups, keys, width), "smooth")]
    params = {"scale": g.pick([0.0, 0.3, 1.0]), "softcap": g.pick([0.0, 0.0, 2.0])}
    has_bias = g.chance(0.3)
    if has_bias:
        args.append(g.x(g.part_of_broadcast((batch, heads, queries, keys)), "smooth"))
    rules = Rules(g, batch, heads, queries, keys)
    params |= rules.params | {"bias": has_bias, "given": " ".join(rules.names)}
    statistics = statistics and bool(rules.allowed.any(-1).all())
    params["statistics"] = statistics

    def reference(q, k, v, *rest):
        k, v = (a.repeat_interleave(heads // groups, 1) for a in (k, v))
        scores = q @ k.transpose(2, 3) * (params["scale"] or 1 / np.sqrt(depth))
        if params["softcap"]:
            scores = params["softcap"] * torch.tanh(scores / params["softcap"])
        if has_bias:
            scores = scores + rest[0]
        scores = scores.masked_fill(~rules.allowed, -HUGE)
        y = torch.softmax(scores, 3) * rules.allowed @ v
        return (y, torch.logsumexp(scores, 3)) if statistics else y

    wide = "float64" if g.type == "float64" else "float32"
    g.case([*args, *rules.operands], params, reference, dtypes=[g.type] + [wide] * statistics, loose=24,
           floor=4 if g.type in ("float64", "float32") else 16)


def functions():
    return {"scaled_dot_product_attention": (8, attention),
            "attention_with_statistics": (3, lambda g: attention(g, True))}
