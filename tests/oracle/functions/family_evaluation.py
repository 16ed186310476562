"""Measures of answers. No gradients."""
import numpy as np
import torch

from family_loss import class_scores


def result_type(g):
    return "float64" if g.type == "float64" else "float32"


def answers_and_labels(g):
    """Scores (n, classes, ...), labels, and a label to be ignored or none."""
    shape, label_shape = class_scores(g, 6)
    ignored = g.pick([None, -1, 0])
    t = g.integers(label_shape, 0, shape[1], ignored=-1 if ignored == -1 else None)
    return g.constant(shape), t, {} if ignored is None else {"ignore_label": ignored}


def first_best(y):
    """The first of the largest scores, which PyTorch's argmax does not promise."""
    return torch.from_numpy(np.argmax(y.numpy(), 1))


def share(right, kept):
    return (right & kept).sum().double() / max(int(kept.sum()), 1)


def accuracy(g):
    y, t, params = answers_and_labels(g)

    def reference(y, t):
        return share(first_best(y) == t, t != params.get("ignore_label", 99))

    g.case([y, t], params, reference, dtypes=[result_type(g)])


def top_k_accuracy(g):
    y, t, params = answers_and_labels(g)
    params["k"] = g.integer(1, 6)

    def reference(y, t):
        best = torch.sort(y, dim=1, descending=True, stable=True).indices[:, :params["k"]]
        return share((best == t.unsqueeze(1)).any(1), t != params.get("ignore_label", 99))

    g.case([y, t], params, reference, dtypes=[result_type(g)])


def binary_accuracy(g):
    shape = g.shape()
    g.case([g.constant(shape), g.integers(shape, 0, 2, ignored=-1)], {},
           lambda y, t: share((y >= 0) == (t == 1), t != -1), dtypes=[result_type(g)])


def counts(y, t, params):
    """The confusion matrix."""
    classes = y.shape[1]
    kept = t != params.get("ignore_label", -1)
    both = t[kept].long() * classes + first_best(y)[kept]
    return torch.bincount(both, minlength=classes ** 2).reshape(classes, classes)


def confusion_matrix(g):
    y, t, params = answers_and_labels(g)
    g.case([y, t], params, lambda y, t: counts(y, t, params), dtypes=["int64"])


def measure(name):
    def generate(g):
        y, t, params = answers_and_labels(g)
        average = params["average"] = g.pick(["none", "macro", "micro"])

        def reference(y, t):
            matrix = counts(y, t, params).double()
            right, samples, answers = matrix.diagonal(), matrix.sum(1), matrix.sum(0)
            below = {"precision": answers, "recall": samples, "f1_score": (samples + answers) / 2}
            below = below[name]
            if average == "micro":
                right, below = right.sum(), below.sum()
            value = torch.where(below > 0, right / below.clamp(min=0.5), 0)
            if average == "macro":
                occurs = (samples + answers) > 0
                value = value[occurs].sum() / occurs.sum().clamp(min=1)
            return value

        g.case([y, t], params, reference, dtypes=[result_type(g)])

    return generate


def r2_score(g):
    shape = g.filled(1, 3, 100)
    raw = g.chance(0.5)

    def reference(pred, truth):
        below = ((truth - truth.mean(0)) ** 2).sum(0)
        value = torch.where(below > 0, 1 - ((pred - truth) ** 2).sum(0) / below, 0)
        return value if raw else value.mean()

    # Not broadcast: equal numbers have no deviation, and PyTorch's is not quite 0.
    truth = g.constant(shape, layout=g.pick(["contiguous", "permuted", "stepped"]))
    g.case([g.constant(shape), truth], {"raw_values": raw}, reference,
           dtypes=[result_type(g)], loose=4)


def functions():
    own = [accuracy, top_k_accuracy, binary_accuracy, confusion_matrix, r2_score]
    return {f.__name__: (1, f) for f in own} | {
        name: (1, measure(name)) for name in ("precision", "recall", "f1_score")}
