"""Steps of optimizers with equal gradients: a parameter after one to four of them."""
import math

from torch import optim


def steps(g, params, make, before=lambda optimizer, t: None):
    """`make` gives PyTorch's optimizer of a list of parameters; `before` gets it and the number of
    the step, from 1 on."""
    shape = g.filled(0, 3, 200)
    p = g.constant(shape, "smooth")
    gradients = [g.constant(shape, "smooth", layout="contiguous") for _ in range(g.integer(1, 4))]
    if g.type in ("float64", "float32"):
        if g.chance(0.3):
            params["decay"] = g.pick([0.1, 0.01])
        if g.chance(0.3):
            params["maxnorm"] = g.pick([0.5, 5.0])

    def reference(p, *gradients):
        p = p.clone()
        optimizer = make([p])
        for t, gradient in enumerate(gradients, 1):
            gradient = gradient + params.get("decay", 0) * p
            norm = gradient.norm()
            if norm > params.get("maxnorm", math.inf):
                gradient = gradient * (params["maxnorm"] / norm)
            p.grad = gradient
            before(optimizer, t)
            optimizer.step()
        return p

    g.case([p, *gradients], params, reference, loose=2)


def sgd(g):
    params = {"lr": g.pick([0.1, 0.01])}
    steps(g, params, lambda p: optim.SGD(p, params["lr"]))


def momentum_sgd(g):
    params = {"lr": g.pick([0.1, 0.01]), "momentum": g.pick([0.9, 0.5])}
    steps(g, params, lambda p: optim.SGD(p, params["lr"], params["momentum"]))


class NesterovAG:
    """Chainer's rule; see differences.py."""

    def __init__(self, parameters, lr, momentum):
        self.p, self.lr, self.m, self.v = parameters[0], lr, momentum, 0

    def step(self):
        self.v = self.m * self.v - self.lr * self.p.grad
        self.p += self.m**2 * self.v - (1 + self.m) * self.lr * self.p.grad


def nesterov_ag(g):
    params = {"lr": g.pick([0.1, 0.01]), "momentum": g.pick([0.9, 0.5])}
    steps(g, params, lambda p: NesterovAG(p, params["lr"], params["momentum"]))


def betas(params):
    return params["beta1"], params["beta2"]


def adam(g):
    params = {"lr": g.pick([0.1, 0.001]), "beta1": g.pick([0.9, 0.5]),
              "beta2": g.pick([0.999, 0.9]), "eps": g.pick([1e-8, 1e-3]),
              "corrected": g.chance(0.5)}

    def before(optimizer, t):
        # PyTorch adds eps behind the bias correction of v.
        correction = 1 if params["corrected"] else math.sqrt(1 - params["beta2"]**t)
        optimizer.param_groups[0]["eps"] = params["eps"] / correction

    steps(g, params, lambda p: optim.Adam(p, params["lr"], betas(params)), before)


def adamw(g):
    params = {"lr": g.pick([0.1, 0.001]), "beta1": g.pick([0.9, 0.5]),
              "beta2": g.pick([0.999, 0.9]), "eps": g.pick([1e-8, 1e-3]),
              "own_decay": g.pick([0.0, 0.01, 0.3])}
    steps(g, params, lambda p: optim.AdamW(p, params["lr"], betas(params), params["eps"],
                                           params["own_decay"]))


def ada_grad(g):
    params = {"lr": g.pick([0.1, 0.001]), "eps": g.pick([1e-8, 1e-3])}
    steps(g, params, lambda p: optim.Adagrad(p, params["lr"], eps=params["eps"]))


def ada_delta(g):
    params = {"rho": g.pick([0.95, 0.5]), "eps": g.pick([1e-6, 1e-3])}
    steps(g, params, lambda p: optim.Adadelta(p, 1.0, params["rho"], params["eps"]))


def rmsprop(g):
    params = {"lr": g.pick([0.1, 0.001]), "alpha": g.pick([0.99, 0.5]), "eps": g.pick([1e-8, 1e-3])}
    steps(g, params, lambda p: optim.RMSprop(p, params["lr"], params["alpha"], params["eps"]))


def functions():
    return {"SGD": (1, sgd), "MomentumSGD": (1, momentum_sgd), "NesterovAG": (1, nesterov_ag),
            "Adam": (1, adam), "AdamW": (1, adamw), "AdaGrad": (1, ada_grad),
            "AdaDelta": (1, ada_delta), "RMSprop": (1, rmsprop)}
