#!/usr/bin/env python3
"""Convolutions of each provider beside PyTorch, in GFLOP/s.

catena and PyTorch work in processes of their own and are timed in turn, many times and briefly, so
that load of the machine hits both alike; the best time of each counts.

  build/bin must hold bench_convolution:
  convolution_peers.py build/bin/bench_convolution --device cpu:0 --threads 1
  convolution_peers.py build/bin/bench_convolution --device cuda:0 --dtypes float32,tf32,bfloat16
"""
import os
import sys

from peer_worker import Worker, best_of, parse_options, served_torch, torch_worker

# name: channels, height, filters, kernel, stride, pad, batch on the CPU, on a GPU
LAYERS = {
    "3x3 64->64 56^2": (64, 56, 64, 3, 1, 1, 16, 256),
    "1x1 256->64 56^2": (256, 56, 64, 1, 1, 0, 16, 256),
    "1x1 64->256 56^2": (64, 56, 256, 1, 1, 0, 16, 256),
    "1x1 1024->256 14^2": (1024, 14, 256, 1, 1, 0, 16, 256),
    "1x1 512->2048 7^2": (512, 7, 2048, 1, 1, 0, 16, 256),
    "7x7/2 3->64 224^2": (3, 224, 64, 7, 2, 3, 16, 256),
    "5x5 1->20 28^2": (1, 28, 20, 5, 1, 0, 100, 100),
}
PASSES = ("forward", "grad_x", "grad_w")


def serve_torch(threads):
    """Answers the requests of bench_convolution.cpp; PROVIDER is not read."""
    torch = served_torch(threads)
    if torch is None:
        return 0
    torch.set_flush_denormal(True)
    tf32 = os.environ.get("CATENA_MATMUL_PRECISION") == "tf32"
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = False
    for line in sys.stdin:
        word = line.split()
        device, dtype, last = word[1].replace("cpu:0", "cpu"), getattr(torch, word[2]), word[3] == "1"
        n, c, h, w, o, k, stride, pad = map(int, word[4:12])
        layout = torch.channels_last if last else torch.contiguous_format
        make = lambda *shape: torch.rand(*shape, device=device).to(dtype).to(memory_format=layout)
        out = (h + 2 * pad - k) // stride + 1
        x, weights, gy = make(n, c, h, w), make(o, c, k, k), make(n, o, out, out)
        mask = {"forward": None, "grad_x": [True, False, False], "grad_w": [False, True, False]}[word[12]]

        def call():
            if mask is None:
                return torch.ops.aten.convolution(x, weights, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1)
            return torch.ops.aten.convolution_backward(
                gy, x, weights, None, [stride] * 2, [pad] * 2, [1, 1], False, [0, 0], 1, mask)

        with torch.no_grad():
            print(best_of(float(word[14]), call, device, torch), flush=True)
    return 0


def table(options, name, rows):
    precision = "tf32" if name == "tf32" else "float32"
    dtype = "float32" if name == "tf32" else name
    catena = Worker([options.program], options.threads, "catena", CATENA_MATMUL_PRECISION=precision,
                    CATENA_CUDNN="always")
    providers = catena.ask(f"providers {options.device}").split()
    columns = [(p, catena, p) for p in providers]
    torch = torch_worker(__file__, options.threads, CATENA_MATMUL_PRECISION=precision)
    if torch:
        columns.append((torch.name, torch, "-"))
    print(f"\nConvolutions, GFLOP/s, {name}, {options.device}, {options.threads} threads\n")
    print("| layer, batch, layout | pass | " + " | ".join(c[0] for c in columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    gpu = options.device.startswith("cuda")
    for layer, (c, h, o, k, stride, pad, *batches) in rows:
        n = options.batch or batches[gpu]
        out = (h + 2 * pad - k) // stride + 1
        flops = 2.0 * n * o * out * out * c * k * k
        for last in (0, 1):
            for direction in PASSES:
                best = {}
                for _ in range(options.rounds):
                    for title, worker, provider in columns:
                        answer = worker.ask(f"convolution {options.device} {dtype} {last} {n} {c} {h} {h} {o} {k} "
                                            f"{stride} {pad} {direction} {provider} {options.seconds}")
                        if answer != "-":
                            best[title] = min(best.get(title, 1e30), float(answer))
                cells = [f"{1e-9 * flops / best[t]:.1f}" if t in best else "-" for t, _, _ in columns]
                print(f"| {layer}, {n}, {'NHWC' if last else 'NCHW'} | {direction} | " + " | ".join(cells) + " |",
                      flush=True)


def main():
    options = parse_options(__doc__, "bench_convolution", "float32, tf32, bfloat16, float16, float64")
    if options.serve:
        return serve_torch(options.threads)
    for name in options.dtypes.split(","):
        table(options, name, LAYERS.items())
    return 0


if __name__ == "__main__":
    sys.exit(main())
