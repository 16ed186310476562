#!/usr/bin/env python3
"""Batch normalization beside PyTorch, cuDNN and a copy of its input, in milliseconds.

catena and PyTorch work in processes of their own and are timed in turn, many times and briefly, so
that load of the machine hits both alike; the best time of each counts. A training step reads and
writes x's size 3 times forward and 5 times backward at least, with a residual 4 and 6 times; the
last column is the time that copies of that many bytes would take. cuDNN is called without a
framework, in its faster mode; "-" where it declines or there is none.

  build/bin must hold bench_normalization:
  normalization_peers.py build/bin/bench_normalization --device cpu:0 --threads 1
  normalization_peers.py build/bin/bench_normalization --device cuda:0 --dtypes float32,bfloat16
"""
import math
import sys

from peer_worker import Worker, best_of, parse_options, served_torch, torch_worker

# channels, height, batch on the CPU, on a GPU
SHAPES = {"64x56^2": (64, 56, 8, 256), "256x56^2": (256, 56, 4, 64), "512x7^2": (512, 7, 32, 256),
          "32x28^2": (32, 28, 100, 100)}
# times that x's bytes are read or written: forward, and with backward
TRAFFIC = {"plain": (3, 8), "relu": (3, 8), "add_relu": (4, 10)}


def serve_torch(threads):
    """Answers the requests of bench_normalization.cpp but copies."""
    torch = served_torch(threads)
    if torch is None:
        return 0
    functional = torch.nn.functional
    for line in sys.stdin:
        word = line.split()
        device, dtype, last = word[1].replace("cpu:0", "cpu"), getattr(torch, word[2]), word[3] == "1"
        shape, form, backward = tuple(map(int, word[4:8])), word[8], word[9] == "both"
        layout = torch.channels_last if last else torch.contiguous_format
        make = lambda: (torch.rand(*shape, device=device) * 2 - 1).to(dtype).to(memory_format=layout)
        x, residual, gy = make().requires_grad_(), make().requires_grad_(), make()
        bn = torch.nn.BatchNorm2d(shape[1], device=device)

        def call():
            for leaf in (x, residual, bn.weight, bn.bias):
                leaf.grad = None
            y = bn(x)
            if form == "relu":
                y = functional.relu(y)
            elif form == "add_relu":
                y = functional.relu(y + residual)
            if backward:
                y.backward(gy)

        print(best_of(float(word[10]), call, device, torch), flush=True)
    return 0


def table(options, dtype):
    catena = Worker([options.program], options.threads, "catena")
    torch = torch_worker(__file__, options.threads)
    columns = [("catena", catena, "normalization ")]
    if torch:
        columns.append((torch.name, torch, "normalization "))
    if options.device.startswith("cuda"):
        columns.append(("cuDNN", catena, "cudnn "))
    print(f"\nBatch normalization (training), ms, {dtype}, {options.device}, {options.threads} threads\n")
    print("| shape, batch, layout | form | pass | " + " | ".join(c[0] for c in columns) + " | copies |")
    print("|---" * (len(columns) + 4) + "|")
    gpu = options.device.startswith("cuda")
    for name, (c, h, *batches) in SHAPES.items():
        n = options.batch or batches[gpu]
        for last in (0, 1):
            for form, traffic in TRAFFIC.items():
                for index, direction in enumerate(("forward", "both")):
                    words = (f"{options.device} {dtype} {last} {n} {c} {h} {h} {form} {direction} {options.seconds}")
                    best = [math.inf] * (len(columns) + 1)
                    for _ in range(options.rounds):
                        for i, (_, worker, request) in enumerate(columns):
                            best[i] = min(best[i], float(worker.ask(request + words)))
                        best[-1] = min(best[-1], float(catena.ask("copy " + words)))
                    best[-1] *= traffic[index] / 2  # a copy reads and writes
                    cells = " | ".join(f"{1e3 * b:.3f}" if math.isfinite(b) else "-" for b in best)
                    print(f"| {name}, {n}, {'NHWC' if last else 'NCHW'} | {form} | {direction} | {cells} |", flush=True)


def main():
    options = parse_options(__doc__, "bench_normalization", "float32, bfloat16, float16, float64")
    if options.serve:
        return serve_torch(options.threads)
    for dtype in options.dtypes.split(","):
        table(options, dtype)
    return 0


if __name__ == "__main__":
    sys.exit(main())
