#!/usr/bin/env python3
"""The table of a benchmark of functions or rules with the times of PyTorch for the same cases in the same run, and
catena's times divided by them: medians on a GPU, the shortest on a CPU.

  function_peers.py build/bin/bench_functions --device cpu:0 --threads 1 [--only TEXT...]
  function_peers.py build/bin/bench_optimizers --device cuda:0 [--only TEXT]
"""
import os
import re
import statistics
import subprocess
import sys

from peer_worker import best_of, parse_options


def seconds_of(call, options, torch):
    device = options.device.replace("cpu:0", "cpu")
    return best_of(options.seconds, call, device, torch, min if device == "cpu" else statistics.median)


def by_cudnn(case, device):
    """Whether PyTorch's attention is cuDNN's, the fastest that it has."""
    return case.startswith("attention") and device.startswith("cuda") and case.endswith("bfloat16")


def function_case(torch, case, device):
    """Of a case of bench_functions: a call, its input, and what else has a gradient. None where PyTorch
    has no such loss."""
    words = case.split(", ")
    name, shape = words[0], [int(n) for n in re.findall(r"\d+", words[1])]
    dtype = getattr(torch, words[-1].replace("tf32", "float32"))
    last = "channels last" in words
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = words[-1] == "tf32"
    # Plans are measured, as of a network that is trained for long.
    torch.backends.cudnn.benchmark = True
    settings = {"device": device, "dtype": dtype}
    functional = torch.nn.functional

    def draw(*extents):
        x = torch.randn(*extents, **settings)
        return x.to(memory_format=torch.channels_last) if last else x

    def layer(kind, *arguments, parameters=dtype, **options):
        made = kind(*arguments, device=device, dtype=parameters, **options)
        return made.to(memory_format=torch.channels_last) if last else made

    if name == "embedding":
        count, ids, size = shape
        vectors = layer(torch.nn.Embedding, ids, size)
        t = torch.randint(0, ids, (count,), device=device)
        return lambda _: vectors(t), None, list(vectors.parameters())
    if name == "attention":
        batch, heads, positions, depth = shape
        q, k, v = (torch.randn(batch, positions, heads, depth, **settings).requires_grad_() for _ in range(3))
        for other in ("flash", "mem_efficient", "math"):
            getattr(torch.backends.cuda, f"enable_{other}_sdp")(not by_cudnn(case, device))
        view = lambda a: a.transpose(1, 2)
        return (lambda x: functional.scaled_dot_product_attention(view(x), view(k), view(v), is_causal="causal" in words),
                q.detach(), [k, v])
    if name == "softmax cross entropy":
        t = torch.randint(0, shape[1], (shape[0],), device=device)
        return lambda x: functional.cross_entropy(x, t), draw(*shape), []
    if name == "maxout":
        rows, columns, pool = shape
        return lambda x: x.view(rows, columns // pool, pool).max(2).values, draw(rows, columns), []
    if name == "LSTM cell":
        batch, cells = shape
        c = draw(batch, cells).requires_grad_()

        def cell(x):
            a, i, f, o = x.chunk(4, 1)
            after = torch.tanh(a) * torch.sigmoid(i) + c * torch.sigmoid(f)
            return torch.tanh(after) * torch.sigmoid(o)

        return cell, draw(batch, 4 * cells), [c]
    if name == "LSTM layer":
        batch, cells = (int(n) for n in re.findall(r"\d+", ", ".join(words[2:4])))
        step = layer(torch.nn.LSTMCell, cells, cells)
        # Of its two biases, which are added, ours has one.
        step.bias_hh.requires_grad_(False)
        h, c = draw(batch, cells).requires_grad_(), draw(batch, cells).requires_grad_()
        return lambda x: step(x, (h, c))[0], draw(batch, cells), [h, c, *step.parameters()]
    if name == "CTC":
        steps, batch, classes, labels = (int(word) for word in re.findall(r"\d+", ", ".join(words[1:5])))
        t = torch.randint(1, classes, (batch, labels), device=device)
        lengths = torch.full((batch,), steps, device=device), torch.full((batch,), labels, device=device)
        return (lambda x: functional.ctc_loss(functional.log_softmax(x, 2), t, *lengths), draw(steps, batch, classes),
                [])
    if name == "negative sampling":
        samples, ids = shape
        weight = draw(ids, 100).requires_grad_()
        rows = torch.randint(0, ids, (1000, samples + 1), device=device)
        signs = torch.ones(samples + 1, device=device)
        signs[1:] = -1

        def loss(x):
            scores = torch.bmm(functional.embedding(rows, weight), x.unsqueeze(2)).squeeze(2)
            return -functional.logsigmoid(scores * signs).sum()

        return loss, draw(1000, 100), [weight]
    if name == "hierarchical softmax":
        return None
    x = draw(*shape)
    if name.endswith("with residual"):
        residual = torch.randn_like(x).requires_grad_()
        norm = layer(torch.nn.LayerNorm if name.startswith("layer") else torch.nn.RMSNorm, shape[1])

        def normalize(x):
            total = x + residual
            return norm(total), total

        return normalize, x, [residual, *norm.parameters()]
    if name == "depthwise convolution 3x3":
        call = layer(torch.nn.Conv2d, shape[1], shape[1], 3, padding=1, groups=shape[1], bias=False)
    elif name == "transposed convolution 4x4/2":
        call = layer(torch.nn.ConvTranspose2d, shape[1], shape[1] // 2, 4, stride=2, padding=1, bias=False)
    elif name == "PReLU":
        call = layer(torch.nn.PReLU, shape[1])
    elif name == "layer normalization":
        call = layer(torch.nn.LayerNorm, shape[1])
    elif name == "group normalization (32)":
        call = layer(torch.nn.GroupNorm, 32, shape[1])
    elif name == "rms normalization":
        call = layer(torch.nn.RMSNorm, shape[1])
    elif name == "instance normalization":
        call = layer(torch.nn.InstanceNorm2d, shape[1], affine=True)
    else:
        return {
            "dropout": lambda x: functional.dropout(x, 0.5),
            "gelu (tanh)": lambda x: functional.gelu(x, approximate="tanh"),
            "gelu": functional.gelu,
            "local response normalization": torch.nn.LocalResponseNorm(5, k=2.0),
            "max pooling 3x3/2": lambda x: functional.max_pool2d(x, 3, 2, 1),
            "average pooling 3x3/2": lambda x: functional.avg_pool2d(x, 3, 2, 1),
            "average pooling 2x2/2": lambda x: functional.avg_pool2d(x, 2),
            "average pooling 3x3/1": lambda x: functional.avg_pool2d(x, 3, 1, 1),
            "global average pooling": lambda x: functional.adaptive_avg_pool2d(x, 1),
            "adaptive average pooling to 7x7": lambda x: functional.adaptive_avg_pool2d(x, 7),
            "bilinear resizing to 224x224": lambda x: functional.interpolate(
                x, (224, 224), mode="bilinear", align_corners=True),
            "nearest upsampling by 2": lambda x: functional.interpolate(x, scale_factor=2),
        }[name], x, []
    return call, x, list(call.parameters())


def training_times(torch, case, options):
    """The seconds of a recorded forward pass and of one with its backward pass, each with what computed it."""
    device = options.device.replace("cpu:0", "cpu")
    found = function_case(torch, case, device)
    if found is None:
        return None, None
    call, x, others = found

    def results():
        made = call(x)
        return made if isinstance(made, tuple) else (made,)

    roots = [v for v in [x, *others] if v is not None]
    for v in others:
        assert v.is_leaf
    if x is not None:
        x.requires_grad_()
    try:
        gradients = [torch.ones_like(y) for y in results()]
    except NotImplementedError:  # local response normalization in 16 bits on the CPU
        return None, None

    def both():
        for v in roots:
            v.grad = None
        torch.autograd.backward(results(), gradients)

    both()
    assert all(v.grad is not None for v in roots if v.requires_grad), case
    way = " (cuDNN)" if by_cudnn(case, device) else ""
    return tuple((seconds_of(f, options, torch), way) for f in (lambda: call(x), both))


def rules(torch, name):
    """The rule of that name, and its options; None where PyTorch has none. Of RMSpropGraves the centred RMSprop with
    momentum, which has the same states."""
    optim = torch.optim
    return {
        "SGD": (optim.SGD, {}),
        "MomentumSGD": (optim.SGD, {"momentum": 0.9}),
        "NesterovAG": (optim.SGD, {"momentum": 0.9, "nesterov": True}),
        "AdaGrad": (optim.Adagrad, {}),
        "RMSprop": (optim.RMSprop, {}),
        "RMSpropGraves": (optim.RMSprop, {"centered": True, "momentum": 0.9}),
        "AdaDelta": (optim.Adadelta, {}),
        "Adam": (optim.Adam, {}),
        "AdamW": (optim.AdamW, {}),
    }.get(name)


def update_time(torch, case, options):
    """The fastest way that the rule offers, of parameters in float32, as PyTorch keeps them of either dtype."""
    device = options.device.replace("cpu:0", "cpu")
    name, count, _ = case.split(", ")
    rule = rules(torch, name)
    if rule is None:
        return (None,)
    best = None
    for way in ({"fused": True}, {"foreach": True}, {"foreach": False}):
        parameters = [torch.randn(int(count.split()[0]) // 32, device=device, requires_grad=True) for _ in range(32)]
        for p in parameters:
            p.grad = torch.randn_like(p)
        try:
            optimizer = rule[0](parameters, lr=1e-3, **rule[1], **way)
            optimizer.step()
        except (TypeError, RuntimeError):  # not offered, or not on this device
            continue
        seconds = seconds_of(optimizer.step, options, torch)
        if best is None or seconds < best[0]:
            best = seconds, f" ({next(iter(way)) if next(iter(way.values())) else 'one by one'})"
    return (best,)


def cell(ours, found):
    """PyTorch's time and what computed it, and the ratio; ours is text, in milliseconds."""
    if found is None:
        return "none"
    seconds, way = found
    return f"{seconds * 1e3:.4f} ms{way}, {float(ours) / (seconds * 1e3):.2f}"


def main():
    options = parse_options(__doc__, "PROGRAM", "all of the table")
    import torch
    torch.set_num_threads(options.threads)
    program = os.path.basename(options.program)
    columns, times = {
        "bench_functions": ("forward, ratio | forward and backward, ratio", training_times),
        "bench_optimizers": ("update, ratio", update_time),
    }[program]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    command = [options.program, options.device, *options.only]
    finished = subprocess.run(command, env=environment, text=True, stdout=subprocess.PIPE)
    table = finished.stdout.splitlines()
    print(f"{table[0]} PyTorch {torch.__version__}: {columns} |\n{table[1]}{'---|' * (columns.count('|') + 1)}")
    for line in table[2:]:
        ours = re.findall(r"\| ([\d.]+) ms (?=\|)", line)
        found = times(torch, line.split(" | ")[0].strip("| "), options)
        print(f"{line} {' | '.join(map(cell, ours, found))} |", flush=True)
    sys.exit(finished.returncode)


if __name__ == "__main__":
    main()
