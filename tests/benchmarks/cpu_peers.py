#!/usr/bin/env python3
"""Products, the MNIST step and a step of LeNet on the CPU beside other libraries.

Every library works in a process of its own and is timed in turn with the others, many times and
briefly, so that load of the machine hits all alike; the best time of each counts. Libraries that
are not there are left out: NumPy and PyTorch of this Python, oneDNN (libdnnl), OpenBLAS with the
kernels that fit the processor.

  build/bin must hold bench_products:
  cpu_peers.py build/bin/bench_products --threads 1 [--rounds 20] [--quick] [--only step|lenet|products]
"""
import argparse
import ctypes
import os
import sys
import time

from peer_worker import Worker, lenet

# m, n, k, a transposed, b transposed
SHAPES = [
    (2048, 2048, 2048, 0, 0), (1024, 1024, 1024, 0, 0), (512, 512, 512, 0, 0), (256, 256, 256, 0, 0),
    (128, 128, 128, 0, 0), (64, 64, 64, 0, 0), (32, 32, 32, 0, 0), (333, 777, 555, 1, 1),
    (100, 1000, 784, 0, 1), (100, 1000, 1000, 0, 1), (100, 10, 1000, 0, 1), (1000, 784, 100, 1, 0),
    (1000, 1000, 100, 1, 0), (10, 1000, 100, 1, 0), (100, 1000, 1000, 0, 0), (100, 1000, 10, 0, 0),
    (100, 64, 64, 0, 1), (4096, 64, 64, 0, 1), (64, 4096, 512, 0, 1), (1, 1000, 1000, 0, 1),
]


def best_of(seconds, calls, call):
    call()
    best, end, runs = 1e30, time.perf_counter() + seconds, 0
    while runs < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(calls):
            call()
        best = min(best, (time.perf_counter() - start) / calls)
        runs += 1
    return best


def calls_for(m, n, k):
    return max(1, int(2e6 / (2.0 * m * n * k)))


class Numpy:
    def __init__(self, threads):
        import numpy
        self.np = numpy
        self.name = "NumPy " + numpy.__version__

    def product(self, dtype, m, n, k, ta, tb, seconds):
        if dtype not in ("float32", "float64"):
            return None
        a = self.np.random.rand(*((k, m) if ta else (m, k))).astype(dtype)
        b = self.np.random.rand(*((n, k) if tb else (k, n))).astype(dtype)
        a, b = (a.T if ta else a), (b.T if tb else b)
        c = self.np.empty((m, n), dtype)
        return best_of(seconds, calls_for(m, n, k), lambda: self.np.matmul(a, b, out=c))


class Torch:
    def __init__(self, threads):
        import torch
        torch.set_num_threads(threads)
        self.torch = torch
        self.name = "PyTorch " + torch.__version__
        self.train = self.train_lenet = None

    def product(self, dtype, m, n, k, ta, tb, seconds):
        torch, kind = self.torch, getattr(self.torch, dtype)
        a = torch.rand((k, m) if ta else (m, k)).to(kind)
        b = torch.rand((n, k) if tb else (k, n)).to(kind)
        a, b = (a.T if ta else a), (b.T if tb else b)
        c = torch.empty((m, n), dtype=kind)
        return best_of(seconds, calls_for(m, n, k), lambda: torch.mm(a, b, out=c))

    def step(self, seconds):
        torch = self.torch
        if self.train is None:
            nn = torch.nn
            model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(),
                                  nn.Linear(1000, 10))
            rule = torch.optim.SGD(model.parameters(), lr=0.01)
            x, t = torch.rand(100, 784), torch.randint(0, 10, (100,))

            def train():
                rule.zero_grad()
                nn.functional.cross_entropy(model(x), t).backward()
                rule.step()
            self.train = train
        return best_of(seconds, 1, self.train)

    def lenet(self, seconds):
        if self.train_lenet is None:
            torch, nn = self.torch, self.torch.nn
            model = lenet(torch)
            rule = torch.optim.SGD(model.parameters(), lr=0.01)
            x, t = torch.rand(64, 1, 28, 28), torch.randint(0, 10, (64,))

            def train():
                rule.zero_grad()
                nn.functional.cross_entropy(model(x), t).backward()
                rule.step()
            self.train_lenet = train
        return best_of(seconds, 1, self.train_lenet)


class Foreign:
    """A C library; the memory is NumPy's."""

    def product(self, dtype, m, n, k, ta, tb, seconds):
        import numpy
        call = self.routine(dtype)
        if call is None:
            return None
        a = numpy.random.rand(*((k, m) if ta else (m, k))).astype(dtype)
        b = numpy.random.rand(*((n, k) if tb else (k, n))).astype(dtype)
        c = numpy.empty((m, n), dtype)
        pointers = [ctypes.c_void_p(x.ctypes.data) for x in (a, b, c)]
        bound = call(m, n, k, ta, tb, *pointers)
        return best_of(seconds, calls_for(m, n, k), bound)


class OneDnn(Foreign):
    def __init__(self, threads):
        for name in ("libdnnl.so.3", "libdnnl.so.2"):
            try:
                self.library = ctypes.CDLL(name)
                break
            except OSError:
                pass
        else:
            raise ImportError("no libdnnl")
        version = ctypes.cast(self.library.dnnl_version, ctypes.CFUNCTYPE(ctypes.POINTER(ctypes.c_int * 3)))
        self.name = "oneDNN " + ".".join(str(x) for x in version().contents)

    def routine(self, dtype):
        if dtype != "float32":
            return None
        size, real = ctypes.c_int64, ctypes.c_float
        f = self.library.dnnl_sgemm

        def bind(m, n, k, ta, tb, a, b, c):
            arguments = (ctypes.c_char(b"NT"[ta]), ctypes.c_char(b"NT"[tb]), size(m), size(n), size(k), real(1), a,
                         size(m if ta else k), b, size(k if tb else n), real(0), c, size(n))
            return lambda: f(*arguments)
        return bind


class OpenBlas(Foreign):
    def __init__(self, threads):
        flags = open("/proc/cpuinfo").read()
        if "avx2" in flags:
            os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX" if "avx512bw" in flags else "Haswell")
        folder = "/usr/lib/x86_64-linux-gnu/openblas-openmp/libopenblas.so.0"
        try:
            self.library = ctypes.CDLL(folder if os.path.exists(folder) else "libopenblas.so.0")
        except OSError as error:
            raise ImportError(error)
        self.library.openblas_get_corename.restype = ctypes.c_char_p
        self.name = "OpenBLAS, " + self.library.openblas_get_corename().decode()

    def routine(self, dtype):
        if dtype not in ("float32", "float64"):
            return None
        f = self.library.cblas_sgemm if dtype == "float32" else self.library.cblas_dgemm
        real = ctypes.c_float if dtype == "float32" else ctypes.c_double

        def bind(m, n, k, ta, tb, a, b, c):
            arguments = (101, 112 if ta else 111, 112 if tb else 111, m, n, k, real(1), a, m if ta else k, b,
                         k if tb else n, real(0), c, n)
            return lambda: f(*arguments)
        return bind


PEERS = {"numpy": Numpy, "torch": Torch, "onednn": OneDnn, "openblas": OpenBlas}


def serve(kind, threads):
    """Answers the requests of bench_products, for another library; the first line is its name."""
    try:
        peer = PEERS[kind](threads)
    except ImportError as error:
        print("-", error, flush=True)
        return
    print(peer.name, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] in ("step", "lenet"):
            seconds = getattr(peer, words[0])(float(words[1])) if hasattr(peer, words[0]) else None
        else:
            seconds = peer.product(words[1], *(int(x) for x in words[2:7]), float(words[7]))
        print(seconds, flush=True)


def minima(workers, request, rounds):
    best = {w.name: None for w in workers}
    for _ in range(rounds):
        for worker in workers:
            answer = worker.ask(request)
            if answer != "None":
                best[worker.name] = min(best[worker.name] or float(answer), float(answer))
    return best


def row(title, best, show, better):
    others = [v for name, v in best.items() if name != "catena" and v is not None]
    ratio = f"{better(best['catena'], others):.2f}" if others else ""
    cells = [show(v) if v is not None else "" for v in best.values()]
    print("| " + " | ".join([title] + cells + [ratio]) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench_products", nargs="?")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=0.03, help="of one library at a time")
    parser.add_argument("--quick", action="store_true", help="few shapes and rounds")
    parser.add_argument("--only", choices=("step", "lenet", "products"))
    parser.add_argument("--serve", choices=sorted(PEERS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve, options.threads)
    if not options.bench_products:
        parser.error("name the program bench_products")
    workers = [Worker([options.bench_products], options.threads, "catena")]
    for kind in PEERS:
        worker = Worker([sys.executable, __file__, "--serve", kind, "--threads", str(options.threads)],
                        options.threads)
        if worker.name.startswith("-"):
            print(f"{kind}: left out,{worker.name[1:]}", file=sys.stderr)
        else:
            workers.append(worker)
    rounds = 3 if options.quick else options.rounds
    threads = f"{options.threads} thread" + ("s" if options.threads > 1 else "")
    head = [w.name for w in workers]
    if options.only in (None, "products"):
        print(f"\nProducts, GFLOP/s, {threads}\n\n| m x n x k | " + " | ".join(head) + " | of the best |")
        print("|---" * (len(head) + 2) + "|")
        for dtype in ("float32", "float64"):
            for m, n, k, ta, tb in SHAPES[2:5] if options.quick else SHAPES:
                best = minima(workers, f"product {dtype} {m} {n} {k} {ta} {tb} {options.seconds}", rounds)
                row(f"{dtype} {m} x {n} x {k} {'NT'[ta]}{'NT'[tb]}", best,
                    lambda s: f"{2e-9 * m * n * k / s:.1f}", lambda own, others: min(others) / own)
    able = [w for w in workers if w.name == "catena" or w.name.startswith("PyTorch")]
    for request, title in (("step", "MNIST step (784-1000-1000-10, batch 100, SGD, float32)"),
                           ("lenet", "LeNet step (20-50-500-10, batch 64, SGD, float32)")):
        if options.only not in (None, request):
            continue
        print(f"\n{title}, ms, {threads}\n")
        print("| | " + " | ".join(w.name for w in able) + " | time to the best |")
        print("|---" * (len(able) + 2) + "|")
        row("step", minima(able, f"{request} 0.1", rounds * 2), lambda s: f"{1e3 * s:.3f}",
            lambda own, others: own / min(others))
    return 0


if __name__ == "__main__":
    sys.exit(main())
