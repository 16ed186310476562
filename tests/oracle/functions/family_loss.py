"""Loss functions."""
import math

import torch
import torch.nn.functional as T

from differences import safe

REDUCTIONS = ["mean", "mean", "sum", "none"]


def reduced(losses, reduction):
    """The mean of no losses is 0 (see differences.py)."""
    if reduction == "none":
        return losses
    return losses.sum() / (max(losses.numel(), 1) if reduction == "mean" else 1)


def pair_loss(function, **options):
    """A loss of two operands of one shape, of which both want gradients."""
    def generate(g):
        shape = g.shape()
        params = {"reduction": g.pick(REDUCTIONS)}
        extra = options.get("params", lambda g: {})(g)
        first, second = options.get("profiles", ("any", "any"))
        g.case([g.x(shape, first), g.x(shape, second)], params | extra,
               lambda a, b: reduced(function(a, b, **extra), params["reduction"]),
               loose=options.get("loose", 1))

    return generate


def huber(x, t, delta):
    return T.huber_loss(x, t, reduction="none", delta=delta)


def smooth_l1(x, t, beta):
    return T.smooth_l1_loss(x, t, reduction="none", beta=beta)


def class_scores(g, most=9):
    """A shape (n, classes, ...) and that of its labels."""
    n, *rest = g.shape(1, 3, 60)
    classes = g.integer(1, most)
    return (n, classes, *rest), (n, *rest)


def label_weights(g, x_shape, params, args, place):
    """Adds class weights to the operands, now and then."""
    if g.chance(0.4):
        params["class_weight"] = place
        args.append(g.constant(x_shape[1:2], "positive"))


def softmax_cross_entropy(g):
    shape, label_shape = class_scores(g)
    params = {"normalize": g.chance(0.6), "reduction": g.pick(REDUCTIONS)}
    if g.chance(0.3):
        params["label_smoothing"] = g.pick([0.1, 0.5])
    smoothing = params.get("label_smoothing", 0.0)
    if g.chance(0.25):
        return distributions(g, shape, params, smoothing)
    params["ignore_label"] = g.pick([-1, -1, 0, 2])
    args = [g.x(shape, "any"), g.integers(label_shape, 0, shape[1], ignored=g.pick([None, -1]))]
    if params["ignore_label"] != -1:
        args[1] = g.integers(label_shape, 0, shape[1])
    label_weights(g, shape, params, args, 2)

    def reference(x, t, w=None):
        t = t.long()
        losses = T.cross_entropy(x, t, w, ignore_index=params["ignore_label"], reduction="none",
                                 label_smoothing=smoothing)
        kept = t != params["ignore_label"]
        return divided(losses, params, kept, w, torch.where(kept, t, 0), shape[0])

    return g.case(args, params, reference, loose=2)


def linear_cross_entropy(g):
    lead, size, classes = g.shape(0, 3, 60), g.integer(1, 9), g.integer(1, 12)
    params = {"normalize": True, "reduction": g.pick(REDUCTIONS), "ignore_label": g.pick([-1, 0])}
    if g.chance(0.3):
        params["label_smoothing"] = g.pick([0.1, 0.5])
    if g.chance(0.3):
        params["z_loss"] = g.pick([1e-4, 0.1])
    if g.chance(0.6):
        params["chunk"] = g.pick([1, 2, 7, 100])
    args = [g.x((*lead, size), "smooth"), g.x((classes, size), "smooth")]
    if g.chance(0.4):
        args.append(g.x((classes,), "smooth"))
    args.append(g.integers(lead, 0, classes, ignored=-1 if params["ignore_label"] else None))

    def reference(h, W, *rest):
        *bias, t = rest
        z, t = T.linear(h, W, *bias).reshape(-1, classes), t.long().reshape(-1)
        kept = t != params["ignore_label"]
        losses = T.cross_entropy(z, t, ignore_index=params["ignore_label"], reduction="none",
                                 label_smoothing=params.get("label_smoothing", 0.0))
        losses = losses + params.get("z_loss", 0) * torch.logsumexp(z, 1) ** 2 * kept
        return divided(losses.reshape(lead), params, kept, None, t, 0)

    g.case(args, params, reference, loose=8, floor=4)


def divided(losses, params, kept, w, t, samples):
    """The reduction of losses of labels."""
    if params["reduction"] != "mean":
        return reduced(losses, params["reduction"])
    if not params["normalize"]:
        return losses.sum() / max(samples, 1)
    count = kept.sum() if w is None else (w[t] * kept).sum()
    return losses.sum() / count if count > 0 else losses.sum() * 0


def distributions(g, shape, params, smoothing):
    def reference(x, t):
        losses = T.cross_entropy(x, t, reduction="none", label_smoothing=smoothing)
        labels = losses.numel() if params["normalize"] else shape[0]
        if params["reduction"] == "mean":
            return losses.sum() / max(labels, 1)
        return reduced(losses, params["reduction"])

    return g.case([g.x(shape), g.x(shape, (0, 1))], params, reference, loose=2)


def sigmoid_cross_entropy(g):
    shape = g.shape(1, 3)
    params = {"normalize": g.chance(0.5), "reduction": g.pick(REDUCTIONS)}
    soft = g.chance(0.3)
    if soft:
        args = [g.x(shape), g.x(shape, (0, 1))]
    else:
        params["ignore_label"] = g.pick([-1, -1, 0])
        args = [g.x(shape), g.integers(shape, 0, 2, ignored=-1 if params["ignore_label"] else None)]
    if g.chance(0.3):
        params["pos_weight"] = 2
        args.append(g.constant(g.part_of_broadcast(shape), "positive"))

    def reference(x, t, pos_weight=None):
        kept = torch.ones_like(x) if soft else (t != params["ignore_label"]).to(x)
        if pos_weight is not None:
            pos_weight = pos_weight.broadcast_to(x.shape)
        t = t if soft else (t != 0).to(x)
        losses = kept * T.binary_cross_entropy_with_logits(x, t, reduction="none",
                                                           pos_weight=pos_weight)
        if params["reduction"] != "mean":
            return reduced(losses, params["reduction"])
        count = kept.sum() if params["normalize"] else shape[0]
        return losses.sum() / max(float(count), 1)

    g.case(args, params, reference, loose=2)


def negative_log_likelihood(g):
    shape, label_shape = class_scores(g)
    params = {"normalize": True, "reduction": g.pick(REDUCTIONS), "ignore_label": g.pick([-1, 0])}
    args = [g.x(shape), g.integers(label_shape, 0, shape[1],
                                   ignored=-1 if params["ignore_label"] else None)]
    label_weights(g, shape, params, args, 2)

    def reference(x, t, w=None):
        t = t.long()
        kept = t != params["ignore_label"]
        losses = T.nll_loss(x, t, w, ignore_index=params["ignore_label"], reduction="none")
        return divided(losses, params, kept, w, torch.where(kept, t, 0), shape[0])

    g.case(args, params, reference)


def ctc(g):
    n, classes, labels = g.integer(1, 3), g.integer(2, 6), g.integer(1, 4)
    steps = g.integer(2 * labels, 2 * labels + 4)  # room for blanks between equal labels
    blank = g.integer(0, classes - 1)
    params = {"blank": blank, "reduction": g.pick(REDUCTIONS)}
    others = [k for k in range(classes) if k != blank]
    t = g.integers((n, labels), 0, len(others))
    t.owner[...] = [others[k] for k in t.owner]
    listed = g.chance(0.3)
    if listed:
        params["steps"] = steps
        args = [g.x((n, classes), "smooth") for _ in range(steps)] + [t]
    else:
        args = [g.x((steps, n, classes), "smooth"), t]
    lengths = {}
    for name, low, high in (("label_length", 0, labels), ("input_length", 2 * labels, steps)):
        if g.chance(0.4):
            params[name] = len(args)
            args.append(g.integers((n,), low, high + 1, ("int32",)))
            lengths[name] = args[-1].a.tolist()

    def reference(*args):
        x = torch.stack(args[:steps]) if listed else args[0]
        t = args[steps if listed else 1]
        losses = T.ctc_loss(x.log_softmax(2), t.long(), lengths.get("input_length", [steps] * n),
                            lengths.get("label_length", [labels] * n), blank, "none")
        return reduced(losses, params["reduction"])

    g.case(args, params, reference, second=False, loose=8)


def kl_divergence(g):
    shape, _ = class_scores(g)
    params = {"reduction": g.pick(REDUCTIONS)}

    def reference(log_q, p):
        if params["reduction"] == "mean":
            return T.kl_div(log_q, p, reduction="batchmean") if shape[0] else (log_q * p).sum()
        return reduced(T.kl_div(log_q, p, reduction="none").sum(1), params["reduction"])

    g.case([g.x(shape, "smooth"), g.x(shape, "positive")], params, reference, loose=2)


def hinge(g):
    n, classes = g.integer(0 if g.chance(0.05) else 1, 9), g.integer(1, 6)
    params = {"norm": g.pick(["L1", "L2"]), "reduction": g.pick(REDUCTIONS)}

    def reference(x, t):
        sign = 1 - 2 * (t.long().unsqueeze(1) == torch.arange(classes)).to(x)
        parts = torch.relu(1 + sign * x)
        parts = parts if params["norm"] == "L1" else parts ** 2
        if params["reduction"] == "mean":
            return parts.sum() / max(n, 1)
        return reduced(parts, params["reduction"])

    g.case([g.x((n, classes)), g.integers((n,), -1, classes + 1)], params, reference)


def vectors(g, least=1):
    shape = g.filled(2, 3, 150)
    return shape if shape[1] >= least else (shape[0], least, *shape[2:])


def contrastive(g):
    shape = vectors(g)
    params = {"margin": g.pick([1.0, 4.0]), "reduction": g.pick(REDUCTIONS)}

    def reference(a, b, y):
        squares = ((a - b) ** 2).flatten(1).sum(1)  # the square of d has no gradient at 0
        missing = torch.relu(params["margin"] - safe(squares, torch.sqrt))
        losses = torch.where(y == 1, squares, missing ** 2) / 2
        return reduced(losses, params["reduction"])

    g.case([g.x(shape), g.x(shape), g.integers(shape[:1], 0, 2)], params, reference, loose=64)


def triplet(g):
    shape = vectors(g)
    params = {"margin": g.pick([0.2, 2.0]), "reduction": g.pick(REDUCTIONS)}

    def reference(a, p, n):
        d = ((a - p) ** 2).flatten(1).sum(1) - ((a - n) ** 2).flatten(1).sum(1)
        return reduced(torch.relu(d + params["margin"]), params["reduction"])

    g.case([g.x(shape, "smooth") for _ in range(3)], params, reference, loose=2)


def cosine_similarity(g):
    shape = vectors(g, 2)
    axis = g.pick([1, 1 - len(shape)])
    g.case([g.x(shape, "smooth"), g.x(shape, "smooth")], {"axis": axis},
           lambda a, b: T.cosine_similarity(a, b, axis), loose=4)


def cosine_embedding_loss(g):
    n, size = g.integer(1, 8), g.integer(2, 9)
    params = {"margin": g.pick([0.0, 0.3]), "reduction": g.pick(REDUCTIONS)}
    y = g.integers((n,), 0, 2)
    y.owner[...] = 2 * y.owner - 1
    g.case([g.x((n, size), "smooth"), g.x((n, size), "smooth"), y], params,
           lambda a, b, y: reduced(torch.where(
               y == 1, 1 - T.cosine_similarity(a, b),
               torch.relu(T.cosine_similarity(a, b) - params["margin"])), params["reduction"]),
           loose=4)


def cross_covariance(g):
    n = g.integer(1, 9)
    g.case([g.x((n, g.integer(1, 5)), "smooth"), g.x((n, g.integer(1, 5)), "smooth")], {},
           lambda y, z: (((y - y.mean(0)).T @ (z - z.mean(0)) / n) ** 2).sum() / 2, loose=4)


def focal_loss(g):
    shape = g.shape()
    params = {"alpha": g.pick([0.25, 0.5, 1.0]), "gamma": g.pick([2.0, 1.0, 0.0, 1.5]),
              "reduction": g.pick(REDUCTIONS)}

    def reference(x, t):
        t = t.to(x)
        p, alpha, gamma = torch.sigmoid(x), params["alpha"], params["gamma"]
        losses = (t * alpha * (1 - p) ** gamma * -T.logsigmoid(x)
                  + (1 - t) * (1 - alpha) * p ** gamma * -T.logsigmoid(-x))
        return reduced(losses, params["reduction"])

    t = g.constant(shape, (0, 1)) if g.chance(0.3) else g.integers(shape, 0, 2)
    g.case([g.x(shape, (-5, 5)), t], params, reference, loose=4)


def negative_sampling(g):
    n, size, rows = g.integer(1, 6), g.pick([1, 2, 5, 17]), g.integer(1, 9)
    samples = g.integers((n, g.integer(1, 5)), 0, rows)

    def reference(x, samples, W):
        scores = torch.einsum("nd,nkd->nk", x, W[samples.long()])
        scores = torch.cat([-scores[:, :1], scores[:, 1:]], 1)
        return T.softplus(scores, threshold=1000).sum()

    g.case([g.x((n, size), "smooth"), samples, g.x((rows, size), "smooth")], {}, reference, loose=4)


def tree_of(g, leaves):
    """A random binary tree as nodes in pre-order, -1 for inner ones, and the path of each leaf:
    [(number of the inner node, sign), ...]."""
    nodes, paths, inner = [], {}, [0]

    def grow(leaves, path):
        if len(leaves) == 1:
            nodes.append(leaves[0])
            paths[leaves[0]] = path
            return
        nodes.append(-1)
        number = inner[0]
        inner[0] += 1
        cut = g.integer(1, len(leaves) - 1)
        grow(leaves[:cut], path + [(number, 1)])
        grow(leaves[cut:], path + [(number, -1)])

    grow(leaves, [])
    return nodes, paths


def hierarchical_softmax(g):
    leaves = g.random.sample(range(12), g.integer(2, 8))
    nodes, paths = tree_of(g, leaves)
    n, size = g.integer(1, 6), g.pick([1, 2, 5, 9])
    t = g.integers((n,), 0, len(leaves))
    t.owner[...] = [leaves[k] for k in t.owner]

    def reference(x, t, W):
        terms = [T.softplus(-sign * (x[i] @ W[node]), threshold=1000) for i, leaf in enumerate(t.tolist())
                 for node, sign in paths[leaf]]
        return torch.stack(terms).sum()

    g.case([g.x((n, size), "smooth"), t, g.constant((len(leaves) - 1, size), "smooth")],
           {"tree": nodes}, reference, loose=4)


def mean_over(g):
    counted = g.pick([0.0, 1.0, 4.0])
    g.case([g.x(g.pick([(), (1,)]))], {"counted": counted},
           lambda x: x / counted if counted > 0 else x * 0)


def gaussian_kl(mean, ln_var):
    return (mean ** 2 + torch.exp(ln_var) - ln_var - 1) / 2


def gaussian_nll(g):
    shape = g.shape()
    params = {"reduction": g.pick(REDUCTIONS)}
    g.case([g.x(shape), g.x(shape), g.x(shape, (-2, 2))], params, lambda x, mean, ln_var: reduced(
        (ln_var + math.log(2 * math.pi) + (x - mean) ** 2 * torch.exp(-ln_var)) / 2,
        params["reduction"]), loose=2)


def functions():
    own = [softmax_cross_entropy, linear_cross_entropy, sigmoid_cross_entropy,
           negative_log_likelihood, ctc, kl_divergence, hinge, contrastive, triplet,
           cosine_similarity, cosine_embedding_loss, cross_covariance, focal_loss,
           negative_sampling, hierarchical_softmax, gaussian_nll, mean_over]
    heavy = (softmax_cross_entropy, linear_cross_entropy, sigmoid_cross_entropy, ctc)
    return {f.__name__: (3 if f in heavy else 1, f) for f in own} | {
        "mean_squared_error": (1, pair_loss(lambda a, b: T.mse_loss(a, b, reduction="none"))),
        "mean_absolute_error": (1, pair_loss(lambda a, b: T.l1_loss(a, b, reduction="none"))),
        "huber_loss": (1, pair_loss(huber, params=lambda g: {"delta": g.pick([1.0, 0.5, 2.0])})),
        "smooth_l1": (1, pair_loss(smooth_l1, params=lambda g: {"beta": g.pick([1.0, 0.5, 0.0])})),
        "gaussian_kl_divergence": (1, pair_loss(gaussian_kl, profiles=("any", (-3, 3)), loose=2)),
        "bernoulli_nll": (1, pair_loss(lambda x, y: T.softplus(y, threshold=1000) - x * y,
                                       profiles=((0, 1), "any")))}
