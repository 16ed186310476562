#!/usr/bin/env python3
"""Makes defaults.npz: what functions, layers, initializers, optimizers and schedules give when nothing
but their operands is said. Run it after a documented default has changed, with a Python that has
PyTorch; tests/functions/defaults_test.cpp and tests/optimizers/defaults_test.cpp read the file.

Where the default is PyTorch's, PyTorch computes with its own. Others are the numbers of the original
(Chainer 1.x, or the paper of the method) and are written out here, with the name of the parameter.
"""
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as T
from torch import nn, optim

torch.set_default_dtype(torch.float64)
draw = np.random.default_rng(38)


def normal(*shape, scale=1.0):
    return torch.from_numpy(draw.standard_normal(shape) * scale)


INPUTS = {
    "x": normal(4, 3, scale=12),
    "wide": torch.linspace(-40, 40, 161),              # beyond every bound
    "y": normal(4, 3),
    "cube": normal(2, 3, 4),
    "other_cube": normal(3, 4, 2),
    "square": normal(3, 3),
    "image": normal(2, 6, 8, 8, scale=10),
    "small_image": normal(2, 6, 4, 4, scale=3e-3),     # variances of the size of eps
    "small": normal(4, 6, scale=3e-3),
    "tiny": normal(4, 3, scale=1e-4),                  # norms of the size of eps
    "gamma": normal(6), "beta": normal(6), "mean": normal(6), "var": normal(6) ** 2 * 1e-5,
    "weight": normal(4, 6, 3, 3), "deconvolution": normal(6, 4, 3, 3), "weight1": normal(4, 3, 2),
    "labels": torch.tensor([2, 0, 1, 2]),
    "ignored": torch.tensor([2, -1, 1, -1]),
    "wide_labels": torch.tensor([[1, 0, -1], [0, 0, 1], [-1, 1, 1], [1, 0, 0]]),
    "signs": torch.tensor([1, 0, 1, 0]),
    "plus_minus": torch.tensor([1, -1, 1, -1]),
    "steps": normal(5, 2, 4), "targets": torch.tensor([[1, 2], [3, 3]]),
    "ids": torch.tensor([1, 0, 2]),
    # Small ones for eps; in the last two columns Lion's sign is that of the first step or of the second.
    "gradients": torch.tensor([[1.0, -0.5, 1e-3, 3e-8, 1e-9, 1e-16, 1.0, 1.0],
                               [0.3, 0.7, -2e-3, 1e-8, -2e-9, 3e-16, -0.089, -0.091],
                               [-0.2, 0.1, 1e-4, -2e-8, 3e-9, 2e-16, 0.1, 0.1]]),
}
globals().update(INPUTS)
x, y, cube, image, labels, ignored = (INPUTS[k] for k in ("x", "y", "cube", "image", "labels", "ignored"))


def prelu_of_layer():
    return nn.PReLU()(x)


def bilinear_corners(size):
    return T.interpolate(image, size, mode="bilinear", align_corners=True)


def rms(a, eps):
    return a / torch.sqrt((a * a).mean(-1, keepdim=True) + eps)


def batch_norm(a, eps):
    return T.batch_norm(a, None, None, INPUTS["gamma"], INPUTS["beta"], True, 0.1, eps)


def fixed_batch_norm(a, eps):
    return T.batch_norm(a, INPUTS["mean"], INPUTS["var"], INPUTS["gamma"], INPUTS["beta"], False, 0.1, eps)


def running(decay):
    mean, var = INPUTS["mean"].clone(), INPUTS["var"].clone()
    T.batch_norm(image, mean, var, training=True, momentum=1 - decay)
    return torch.stack([mean, var])


def averages():
    """Running statistics of a new layer, and after a batch; PyTorch's momentum is 1 - decay."""
    layer = nn.BatchNorm2d(6)
    before = [layer.running_mean.clone(), layer.running_var.clone()]
    layer(image)
    return torch.stack([*before, layer.running_mean, layer.running_var])


def response(a, n, k, alpha, beta):
    return T.local_response_norm(a, n, alpha * n, beta, k)   # PyTorch divides alpha by n


def focal(a, t, alpha, gamma):
    t = t.to(a)
    p = torch.sigmoid(a)
    right, share = p * t + (1 - p) * (1 - t), alpha * t + (1 - alpha) * (1 - t)
    return (share * (1 - right) ** gamma * T.binary_cross_entropy_with_logits(a, t, reduction="none")).mean()


def contrastive(a, b, t, margin):
    d = (a - b).norm(dim=1)
    return (t * d ** 2 + (1 - t) * T.relu(margin - d) ** 2).sum() / (2 * len(a))


def squared_triplet(a, p, n, margin):
    return T.relu(((a - p) ** 2).sum(1) - ((a - n) ** 2).sum(1) + margin).mean()


def hinge(a, t):
    sign = torch.where(T.one_hot(t, a.shape[1]) == 1, 1, -1)
    return T.relu(1 - sign * a).sum() / len(a)


def by_class(a, t):
    """Precision, recall and F1 of each class."""
    guess = a.argmax(1)
    hits = torch.stack([((guess == k) & (t == k)).sum() for k in range(3)]).double()
    of_guess = torch.stack([(guess == k).sum() for k in range(3)]).double()
    of_label = torch.stack([(t == k).sum() for k in range(3)]).double()
    safe = lambda a, b: torch.where(b > 0, a / b.clamp(min=1), 0)
    return safe(hits, of_guess), safe(hits, of_label), safe(2 * hits, of_guess + of_label)


def sigmoid_loss(a, t):
    losses = T.binary_cross_entropy_with_logits(a, t.clamp(min=0).double(), reduction="none")
    return (losses * (t != -1)).sum() / len(a)


def ctc():
    each = T.ctc_loss(T.log_softmax(INPUTS["steps"], 2), INPUTS["targets"], (5, 5), (2, 2), reduction="none")
    return each.mean()


def functions():
    small, small_image, tiny = INPUTS["small"], INPUTS["small_image"], INPUTS["tiny"]
    gamma, beta, wide = INPUTS["gamma"], INPUTS["beta"], INPUTS["wide_labels"]
    known = labels.double()
    precision, recall, f1 = by_class(y, labels)
    return {
        # Activations
        "soft_shrink": T.softshrink(y), "hard_shrink": T.hardshrink(y), "elu": T.elu(y), "relu6": T.relu6(INPUTS["wide"]),
        "leaky_relu": T.leaky_relu(y, negative_slope=0.2), "clipped_relu": T.hardtanh(INPUTS["wide"], 0, 20),
        "softmax": torch.softmax(cube, 1), "log_softmax": torch.log_softmax(cube, 1),
        "crelu": torch.cat([T.relu(cube), T.relu(-cube)], 1), "PReLU": prelu_of_layer().detach(),
        "maxout": torch.maximum(image[:, ::2], image[:, 1::2]), "softplus": T.softplus(y),
        # Arrays
        "sort": torch.sort(cube).values, "diff": torch.diff(cube), "flip": torch.flip(cube, (0, 1, 2)),
        "roll": torch.roll(cube, 1), "repeat": torch.repeat_interleave(cube, 2),
        "cumsum": torch.cumsum(cube.flatten(), 0), "cumprod": torch.cumprod(cube.flatten(), 0),
        "tril": torch.tril(x), "triu": torch.triu(x), "diagonal": torch.diagonal(cube),
        "trace": torch.trace(INPUTS["square"]), "rot90": torch.rot90(cube), "transpose": cube.permute(2, 1, 0),
        "rollaxis": cube.permute(2, 0, 1), "pad": T.pad(x, (1, 1, 1, 1)), "pad_widths": T.pad(x, (1, 1, 1, 1)), "stack": torch.stack([x, y]),
        "concat": torch.cat([cube, cube], 1), "separate": cube[1], "take": torch.take(x, INPUTS["ids"]),
        "squeeze": torch.squeeze(cube[:1, :, :1]), "one_hot": T.one_hot(labels, 3).float(),
        "resize_images": bilinear_corners((5, 11)),
        # Mathematics
        "sum": cube.sum(), "mean": cube.mean(), "max": cube.max(), "min": cube.min(), "prod": cube.prod(),
        "var": cube.var(correction=0), "std": cube.std(correction=0), "norm": torch.linalg.norm(cube.flatten()),
        "logsumexp": torch.logsumexp(cube, (0, 1, 2)), "average": cube.mean(),
        "tensordot": torch.tensordot(cube, INPUTS["other_cube"]), "matmul": INPUTS["square"] @ x.T,
        "batch_matmul": torch.bmm(cube, cube.transpose(1, 2)),
        # Pooling
        "max_pooling_2d": T.max_pool2d(image, 3, ceil_mode=True), "average_pooling_2d": T.avg_pool2d(image, 3),
        "unpooling_2d": image[:, :, :2, :2].repeat_interleave(3, 2).repeat_interleave(3, 3)[:, :, :4, :4],
        # Connections
        "convolution_2d": T.conv2d(image, INPUTS["weight"]), "Convolution2D": T.conv2d(image, INPUTS["weight"]),
        "convolution_2d_stride": T.conv2d(image, INPUTS["weight"], stride=3),
        "Convolution2D_stride": T.conv2d(image, INPUTS["weight"], stride=3),
        "deconvolution_2d": T.conv_transpose2d(image, INPUTS["deconvolution"]),
        "Deconvolution2D": T.conv_transpose2d(image, INPUTS["deconvolution"]),
        "convolution_nd": T.conv1d(cube, INPUTS["weight1"]), "ConvolutionND": T.conv1d(cube, INPUTS["weight1"]),
        "convolution_nd_stride": T.conv1d(cube, INPUTS["weight1"], stride=3),
        "ConvolutionND_stride": T.conv1d(cube, INPUTS["weight1"], stride=3),
        # Normalization
        "batch_normalization": batch_norm(small_image, eps=2e-5), "running": running(decay=0.9),
        "fixed_batch_normalization": fixed_batch_norm(small_image, eps=2e-5),
        "BatchNormalization": T.batch_norm(small_image, None, None, training=True, eps=2e-5),
        "untrained": T.batch_norm(small_image, torch.zeros(6), torch.ones(6), eps=2e-5),
        "averages": averages(),
        "group_normalization": T.group_norm(small_image, 3, gamma, beta),
        "GroupNormalization": nn.GroupNorm(3, 6)(small_image).detach(),
        "instance_normalization": T.instance_norm(small_image, weight=gamma, bias=beta),
        "InstanceNormalization": nn.InstanceNorm2d(6)(small_image),
        "layer_normalization": T.layer_norm(small, (6,), gamma, beta),
        "LayerNormalization": nn.LayerNorm(6)(small).detach(),
        "rms_normalization": rms(small, eps=1e-6) * gamma, "RMSNormalization": rms(small, eps=1e-6),
        "local_response_normalization": response(image, n=5, k=2, alpha=1e-4, beta=0.75),
        # Losses
        "softmax_cross_entropy": T.cross_entropy(y, ignored, ignore_index=-1),
        "softmax_cross_entropy_options": T.cross_entropy(y, ignored, ignore_index=-1),
        "sigmoid_cross_entropy": sigmoid_loss(x, wide), "sigmoid_cross_entropy_options": sigmoid_loss(x, wide),
        "negative_log_likelihood": T.nll_loss(T.log_softmax(y, 1), ignored, ignore_index=-1),
        "mean_squared_error": T.mse_loss(x, y), "mean_absolute_error": T.l1_loss(x, y),
        "huber_loss": T.huber_loss(x, y),
        "smooth_l1": T.smooth_l1_loss(x, y), "hinge": hinge(y, labels), "triplet": squared_triplet(y, y + tiny, y - tiny, margin=0.2),
        "contrastive": contrastive(y, y + tiny, INPUTS["signs"], margin=1), "focal_loss": focal(y, wide.clamp(min=0), alpha=0.25, gamma=2),
        "kl_divergence": T.kl_div(T.log_softmax(y, 1), torch.softmax(x, 1), reduction="batchmean"),
        "cosine_similarity": T.cosine_similarity(tiny * 1e-4, y * 1e-8),
        "cosine_embedding_loss": T.cosine_embedding_loss(y, y + tiny * 1000, INPUTS["plus_minus"]),
        "gaussian_kl_divergence": 0.5 * (x ** 2 + y.exp() - y - 1).sum(),
        "bernoulli_nll": T.binary_cross_entropy_with_logits(x, torch.sigmoid(y), reduction="sum"),
        "gaussian_nll": T.gaussian_nll_loss(x, y, tiny.exp(), full=True, eps=0, reduction="sum"),
        "connectionist_temporal_classification": ctc(),
        "scores": y,   # as they were
        # Evaluation
        "accuracy": (y.argmax(1) == ignored).double().mean(),
        "binary_accuracy": (((x > 0) == (wide > 0)) & (wide >= 0)).sum() / (wide >= 0).sum(),
        "top_k_accuracy": (y.topk(2, 1).indices == ignored[:, None]).any(1).double().mean(),
        "precision": precision, "recall": recall, "f1_score": f1,
        "r2_score": 1 - ((y - x) ** 2).sum(0).div(((x - x.mean(0)) ** 2).sum(0)).mean(),
        # Noise: the share that is dropped, and what the others are multiplied by.
        "dropout": torch.tensor([nn.Dropout().p, 1 / (1 - nn.Dropout().p)]),
        "Dropout": torch.tensor([nn.Dropout().p, 1 / (1 - nn.Dropout().p)]),
        # The share of each id of a NegativeSampling with counts 1, 16 and 81.
        "NegativeSampling": torch.tensor([1.0, 16, 81]) ** 0.75 / (torch.tensor([1.0, 16, 81]) ** 0.75).sum(),
    }


def deviation(init, shape=(300, 200)):
    """Root mean square of numbers that PyTorch draws; its function of the same name says the gain."""
    torch.manual_seed(1)
    return init(torch.empty(*shape)).square().mean().sqrt()


def initializers():
    """Deviations of weights of shape (300, 200)."""
    return {
        "Uniform": torch.tensor(0.05 / math.sqrt(3)), "Normal": torch.tensor(0.05),
        "LeCunNormal": deviation(lambda w: nn.init.kaiming_normal_(w, nonlinearity="linear")),
        "LeCunUniform": deviation(lambda w: nn.init.kaiming_uniform_(w, nonlinearity="linear")),
        "GlorotNormal": deviation(nn.init.xavier_normal_), "GlorotUniform": deviation(nn.init.xavier_uniform_),
        "HeNormal": deviation(nn.init.kaiming_normal_), "HeUniform": deviation(nn.init.kaiming_uniform_),
        "Orthogonal": deviation(nn.init.orthogonal_) * 1.1,        # Chainer's scale
    }


def after(make, change=lambda optimizer, t: None):
    """A parameter after three steps."""
    p = torch.linspace(1, 2, 8).requires_grad_()
    optimizer = make([p])
    for t, gradient in enumerate(INPUTS["gradients"], 1):
        p.grad = gradient.clone()
        change(optimizer, t)
        optimizer.step()
    return p.detach()


class Own:
    """A rule that PyTorch does not have: update(p, g, t, state) changes p."""

    def __init__(self, update):
        self.update = update

    def __call__(self, parameters):
        self.p, self.t, self.state = parameters[0], 0, {}
        return self

    def step(self):
        self.t += 1
        with torch.no_grad():
            self.update(self.p, self.p.grad, self.t, self.state)


def nesterov(p, g, t, s, lr=0.01, momentum=0.9):
    s["v"] = momentum * s.get("v", 0) - lr * g
    p += momentum ** 2 * s["v"] - (1 + momentum) * lr * g


def graves(p, g, t, s, lr=1e-4, alpha=0.95, momentum=0.9, eps=1e-4):
    s["n"] = alpha * s.get("n", 0) + (1 - alpha) * g * g
    s["g"] = alpha * s.get("g", 0) + (1 - alpha) * g
    s["d"] = momentum * s.get("d", 0) - lr * g / torch.sqrt(s["n"] - s["g"] ** 2 + eps)
    p += s["d"]


def smorms3(p, g, t, s, lr=0.001, eps=1e-16):
    r = 1 / (s.get("mem", 1) + 1)
    s["g"] = (1 - r) * s.get("g", 0) + r * g
    s["g2"] = (1 - r) * s.get("g2", 0) + r * g * g
    ratio = s["g"] ** 2 / (s["g2"] + eps)
    p -= g * ratio.clamp(max=lr) / (torch.sqrt(s["g2"]) + eps)
    s["mem"] = 1 + s.get("mem", 1) * (1 - ratio)


def lion(p, g, t, s, lr=1e-4, beta1=0.9, beta2=0.99, decay=0):
    p -= lr * (torch.sign(beta1 * s.get("m", 0) + (1 - beta1) * g) + decay * p)
    s["m"] = beta2 * s.get("m", 0) + (1 - beta2) * g


def lars(p, g, t, s, lr=0.1, momentum=0.9, trust=0.001, decay=1e-4, eps=1e-9):
    g = g * 1e-9   # norms of the size of eps
    ratio = trust * p.norm() / (g.norm() + decay * p.norm() + eps)
    s["v"] = momentum * s.get("v", 0) + lr * ratio * (g + decay * p)
    p -= s["v"]


def lamb(p, g, t, s, alpha=0.001, beta1=0.9, beta2=0.999, eps=1e-6, decay=0.01):
    s["m"] = beta1 * s.get("m", 0) + (1 - beta1) * g
    s["v"] = beta2 * s.get("v", 0) + (1 - beta2) * g * g
    u = s["m"] / (1 - beta1 ** t) / (torch.sqrt(s["v"] / (1 - beta2 ** t)) + eps) + decay * p
    p -= alpha * p.norm() / u.norm() * u


def uncorrected(optimizer, t):
    """The end of section 2 of Adam's paper, which is Chainer's rule: eps beside the uncorrected root."""
    optimizer.param_groups[0]["eps"] = 1e-8 / math.sqrt(1 - 0.999 ** t)


def optimizers():
    """Rates are Chainer's, where it has the rule; other numbers are PyTorch's own, unless they are given."""
    return {
        "SGD": after(lambda p: optim.SGD(p, lr=0.01)),
        "MomentumSGD": after(lambda p: optim.SGD(p, lr=0.01, momentum=0.9)), "NesterovAG": after(Own(nesterov)),
        "Adam": after(optim.Adam, uncorrected), "Adam.corrected_eps": after(optim.Adam),
        "AdamW": after(optim.AdamW), "AdaGrad": after(lambda p: optim.Adagrad(p, lr=0.001, eps=1e-8)),
        "RMSprop": after(optim.RMSprop), "RMSpropGraves": after(Own(graves)),
        "AdaDelta": after(lambda p: optim.Adadelta(p, rho=0.95)), "SMORMS3": after(Own(smorms3)),
        "Lion": after(Own(lion)), "LARS": after(Own(lars)), "LAMB": after(Own(lamb)),
    }


def schedules():
    p = [torch.zeros(1, requires_grad=True)]
    cycle = optim.lr_scheduler.OneCycleLR(optim.SGD(p, lr=1), max_lr=0.5, total_steps=20, cycle_momentum=False)
    rates = []
    for _ in range(20):
        rates.append(cycle.get_last_lr()[0])
        cycle.optimizer.step()
        cycle.step() if len(rates) < 20 else None
    decay = optim.lr_scheduler.PolynomialLR(optim.SGD(p, lr=1), total_iters=20)
    falling = []
    for _ in range(20):
        falling.append(decay.get_last_lr()[0])
        decay.optimizer.step()
        decay.step()
    scaler = torch.amp.GradScaler("cpu")
    average = [torch.ones(3)]
    optim.swa_utils.get_ema_multi_avg_fn()(average, [torch.zeros(3)], 1)
    return {
        "one_cycle": torch.tensor(rates), "polynomial": torch.tensor(falling),
        # The first scale is half of PyTorch's; growth, backoff, interval; least and most.
        "LossScaleOptions": torch.tensor([scaler.get_scale() / 2, scaler.get_growth_factor(), scaler.get_backoff_factor(),
                                          scaler.get_growth_interval(), 1, 2.0 ** 24]),
        "MovingAverage": average[0],
    }


def noise():
    """Deviations in the first and in the tenth update (Neelakantan et al. 2015)."""
    return {"GradientNoise": torch.tensor([1 / (1 + t) ** (0.55 / 2) for t in (0, 9)])}


def main():
    groups = {"in": INPUTS, "functions": functions(), "initializers": initializers(), "optimizers": optimizers(),
              "schedules": schedules(), "noise": noise()}
    arrays = {f"{group}/{name}": value.numpy() for group, values in groups.items() for name, value in values.items()}
    np.savez_compressed(pathlib.Path(__file__).with_suffix(".npz"), **arrays)


if __name__ == "__main__":
    main()
