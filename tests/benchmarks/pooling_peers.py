#!/usr/bin/env python3
"""The table of bench_pooling with the times of PyTorch, in the same run.

  pooling_peers.py build/bin/bench_pooling --device cpu:0 --threads 1
  pooling_peers.py build/bin/bench_pooling --device cuda:0
"""
import os
import subprocess
import sys

from peer_worker import best_of, parse_options


def calls(functional):
    """By the names of bench_pooling.cpp."""
    return {
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


def times(torch, case, options):
    """Milliseconds of a forward pass, and with the backward pass."""
    name, dtype, layout = case.split(", ")
    device = options.device.replace("cpu:0", "cpu")
    batch = 4 if device == "cpu" else 64
    x = torch.randn(batch, 64, 112, 112, device=device).to(getattr(torch, dtype))
    if layout == "channels last":
        x = x.to(memory_format=torch.channels_last)
    call = calls(torch.nn.functional)[name]
    with torch.no_grad():
        gy = torch.ones_like(call(x))
        forward = best_of(options.seconds, lambda: call(x), device, torch)
    x.requires_grad_()

    def both():
        x.grad = None
        call(x).backward(gy)

    return forward * 1e3, best_of(options.seconds, both, device, torch) * 1e3


def main():
    options = parse_options(__doc__, "bench_pooling", "all of the table")
    import torch
    torch.set_num_threads(options.threads)
    environment = dict(os.environ, OMP_NUM_THREADS=str(options.threads))
    table = subprocess.run([options.program, options.device], env=environment, text=True, check=True,
                           stdout=subprocess.PIPE).stdout.splitlines()
    print(f"{table[0]} PyTorch {torch.__version__}: forward | forward and backward |\n{table[1]}---|---|")
    for line in table[2:]:
        forward, both = times(torch, line.split(" | ")[0].strip("| "), options)
        print(f"{line} {forward:.3f} ms | {both:.3f} ms |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
