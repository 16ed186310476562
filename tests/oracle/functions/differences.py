"""Every deliberate difference between catena and PyTorch that the cases know, in one place, and what
stands for PyTorch's function where that is more than an option.

Values
- hard_sigmoid: the slope is 0.2, as Chainer's; PyTorch's is 1/6.
- softplus has no threshold behind which it is x.
- hard_swish of minus infinity is 0, and sign of NaN is NaN; PyTorch gives NaN and 0.
- A mean over nothing is 0, as is the loss of labels all of which are ignored; PyTorch gives NaN.
- softmax_cross_entropy without `normalize` divides by the samples; PyTorch has no such choice.
- ctc: the mean does not divide by the number of labels, as Chainer's does not.
- kl_divergence: the mean divides by the samples alone, PyTorch's "batchmean".
- local_response_normalization: alpha is not divided by n; an even n takes as many channels as n + 1.
- batch_normalization: decay is 1 - momentum.
- var and std have ddof 0 unless given; PyTorch's correction is 1.
- Adam's eps is added before the bias correction of v unless corrected_eps is set; PyTorch's behind it.
- NesterovAG reads the new velocity, as Chainer's does.
- clipping by a norm has no 1e-6 in the divisor.
- prod, cumprod: PyTorch's gradients are divided by elements, so that second ones lose digits where
  those are small, and are not 0 where the product is of one element.

Forms
- bilinear and embed_id flatten as Chainer's; weights of bilinear are (left, right, out).
- LSTM gates have the order a, i, f, o and one bias; PyTorch's i, f, a, o and two.
- gru, and n_step_gru in Chainer's form, multiply the state by r before its product with U.
- cover_all is PyTorch's ceil_mode, and a choice of convolutions as well.
- Padding may be more than half of a window: less than max_pooling_2d's, anything of
  average_pooling_2d.
- unpooling_2d has no positions; windows that overlap add up.

Gradients
- maximum, minimum: that of equal operands goes to the first one; PyTorch halves it.
- max, min, maxout, and norm(infinity): to each element that equals the extreme, as Chainer's; PyTorch
  shares it among them.
- elu, selu, leaky_relu, prelu: at 0 that of positive numbers; PyTorch's is that of negative ones.
- clip passes it on its bounds; PyTorch's clamp does not.
- norm, std, hypot: 0 at 0; PyTorch's std and hypot have NaN.
"""
import functools

import torch


def sign(x):
    return torch.where(x.isnan(), x, torch.sign(x))


def hard_swish(x):
    return torch.where(x == -torch.inf, 0, torch.nn.functional.hardswish(x))


def elu(x, alpha=1.0):
    return torch.where(x >= 0, x, alpha * torch.expm1(x.clamp(max=1)))


def selu(x):
    return 1.0507009873554805 * elu(x, 1.6732632423543772)


def leaky_relu(x, slope):
    return torch.where(x >= 0, x, slope * x)


def clip(x, low, high):
    return torch.where((x < low) | (x > high), torch.clamp(x, low, high).detach(), x)


def hard_sigmoid(x):
    constant = torch.where(x.isnan(), x.detach(), (x > 0).to(x))
    return (0.2 * x + 0.5).where((x > -2.5) & (x < 2.5), constant)


def maximum(a, b):
    return torch.where(a >= b, a, b)


def minimum(a, b):
    return torch.where(a <= b, a, b)


def extreme(function):
    """amax or amin, whose gradient goes to all equal elements."""
    def call(x, axes, keepdims):
        if x.ndim == 0:
            return x
        equal = x.detach() == function(x.detach(), axes, keepdim=True)
        kept = function(x.detach(), axes, keepdim=True)
        y = kept + ((x - x.detach()) * equal).sum(axes, keepdim=True)
        return y if keepdims else y.squeeze(axes)

    return call


def cumprod(x, axis):
    if x.shape[axis] == 0:
        return torch.cumprod(x, axis)
    parts = list(x.unbind(axis))
    for k in range(1, len(parts)):
        parts[k] = parts[k - 1] * parts[k]
    return torch.stack(parts, axis)


def product(x, axes, keepdims):
    """One factor after the other. catena multiplies halves."""
    if not axes:
        return x
    kept = [k for k in range(x.ndim) if k not in axes]
    factors = x.permute(*axes, *kept).flatten(0, len(axes) - 1).unbind()
    y = functools.reduce(torch.mul, factors)
    return functools.reduce(torch.unsqueeze, sorted(axes), y) if keepdims else y


def safe(x, function):
    """The function where x is above 0, else 0 with gradient 0."""
    return torch.where(x > 0, function(torch.where(x > 0, x, torch.ones_like(x))), 0 * x)


def hypot(a, b):
    return safe(a * a + b * b, torch.sqrt)


def std(x, axes, correction, keepdim):
    return safe(torch.var(x, axes, correction=correction, keepdim=keepdim), torch.sqrt)


def norm(x, p, axes, keepdims):
    size = torch.abs(x)
    if p == float("inf"):
        return extreme(torch.amax)(size, axes, keepdims)
    if x.ndim == 0:
        return size
    return safe((size ** p).sum(axes, keepdim=keepdims), lambda s: s ** (1 / p))
