#!/usr/bin/env python3
"""The table of a benchmark of functions with the times of PyTorch for the same cases, in the same run.

  function_peers.py build/bin/bench_pooling --device cpu:0 --threads 1
  function_peers.py build/bin/bench_row_normalization --device cuda:0
  function_peers.py build/bin/bench_sequence_losses --device cuda:0
"""
import os
import re
import subprocess

from peer_worker import best_of, parse_options


def pooling_case(torch, case, device):
    """The names of bench_pooling.cpp."""
    name, dtype, layout = case.split(", ")
    functional = torch.nn.functional
    calls = {
        "max pooling 3x3/2": lambda x: functional.max_pool2d(x, 3, 2, 1),
        "average pooling 3x3/2": lambda x: functional.avg_pool2d(x, 3, 2, 1),
        "average pooling 2x2/2": lambda x: functional.avg_pool2d(x, 2),
        "average pooling 3x3/1": lambda x: functional.avg_pool2d(x, 3, 1, 1),
        "global average pooling": lambda x: functional.adaptive_avg_pool2d(x, 1),
        "adaptive average pooling to 7x7": lambda x: functional.adaptive_avg_pool2d(x, 7),
        "bilinear resizing to 224x224": lambda x: functional.interpolate(
            x, (224, 224), mode="bilinear", align_corners=True),
        "nearest upsampling by 2": lambda x: functional.interpolate(x, scale_factor=2),
    }
    x = torch.randn(4 if device == "cpu" else 64, 64, 112, 112, device=device).to(getattr(torch, dtype))
    if layout == "channels last":
        x = x.to(memory_format=torch.channels_last)
    return calls[name], x


def normalization_case(torch, case, device):
    """The names of bench_row_normalization.cpp."""
    words = case.split(", ")
    dtype = getattr(torch, words[-1])
    scale = 1 if device == "cpu" else 16
    settings = {"device": device, "dtype": dtype}
    if words[1].startswith("rows of "):
        size = int(words[1].split()[-1])
        layer = {"layer": torch.nn.LayerNorm, "rms": torch.nn.RMSNorm}[words[0]](size, **settings)
        return layer, torch.randn(scale * 2097152 // size, size, **settings)
    layer = {
        "32 groups of 256 channels": torch.nn.GroupNorm(32, 256, **settings),
        "instance": torch.nn.InstanceNorm2d(256, affine=True, **settings),
        "local response": torch.nn.LocalResponseNorm(5, k=2.0),
    }[words[0]]
    x = torch.randn(2 * scale, 256, 56, 56, **settings)
    return layer, x.to(memory_format=torch.channels_last) if "channels last" in words else x


def loss_case(torch, case, device):
    """The names of bench_sequence_losses.cpp."""
    functional = torch.nn.functional
    numbers = [int(n) for n in re.findall(r"\d+", case.replace(",000", "000"))]
    if case.startswith("CTC"):
        steps, batch, classes, labels = numbers
        t = torch.randint(1, classes, (batch, labels), device=device)
        lengths = torch.full((batch,), steps, device=device), torch.full((batch,), labels, device=device)
        x = torch.randn(steps, batch, classes, device=device)
        return lambda v: functional.ctc_loss(functional.log_softmax(v, 2), t, *lengths), x
    if case.startswith("negative sampling"):
        samples, words = numbers
        weight = torch.randn(words, 100, device=device, requires_grad=True)
        rows = torch.randint(0, words, (1000, samples + 1), device=device)
        signs = torch.ones(samples + 1, device=device)
        signs[1:] = -1

        def loss(v):
            weight.grad = None
            scores = torch.bmm(functional.embedding(rows, weight), v.unsqueeze(2)).squeeze(2)
            return -functional.logsigmoid(scores * signs).sum()

        return loss, torch.randn(1000, 100, device=device)
    return None, None


CASES = {
    "bench_pooling": pooling_case,
    "bench_row_normalization": normalization_case,
    "bench_sequence_losses": loss_case,
}


def times(torch, make, case, options):
    """A forward pass and one with its backward pass, as text."""
    device = options.device.replace("cpu:0", "cpu")
    call, x = make(torch, case, device)
    if call is None:
        return "none | none"
    with torch.no_grad():
        gy = torch.ones_like(call(x))
        forward = best_of(options.seconds, lambda: call(x), device, torch)
    x.requires_grad_()

    def both():
        x.grad = None
        call(x).backward(gy)

    both_times = best_of(options.seconds, both, device, torch)
    return f"{forward * 1e3:.3f} ms | {both_times * 1e3:.3f} ms"


def main():
    options = parse_options(__doc__, "PROGRAM", "all of the table")
    import torch
    torch.set_num_threads(options.threads)
    make = CASES[os.path.basename(options.program)]
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    table = subprocess.run([options.program, options.device], env=environment, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    print(f"{table[0]} PyTorch {torch.__version__}: forward | forward and backward |\n{table[1]}---|---|")
    for line in table[2:]:
        print(f"{line} {times(torch, make, line.split(' | ')[0].strip('| '), options)} |", flush=True)


if __name__ == "__main__":
    main()
