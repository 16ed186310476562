#!/usr/bin/env python3
"""The cases of bench_routines with NumPy and PyTorch on the CPU, or PyTorch and CuPy on a GPU.

  peers_routines.py [--quick] [--gpu] [--beside FILE]
Prints one Markdown table with the names of ours, times in us. FILE is what bench_routines printed
in the same run; our time and its ratio to the faster peer become columns. A library that is not
installed is left out with a line that says so; the number of threads is the environment's.
"""
import argparse
import re
import statistics
import sys
import time


class Library:
    """What the cases ask of a library; `wait` ends when the device is idle."""

    def __init__(self, name, gpu):
        self.name, self.gpu = name, gpu
        self.wait = lambda: None


class NumpyLike(Library):
    """NumPy, and CuPy, which has its names."""

    def __init__(self, name, gpu):
        super().__init__(name, gpu)
        if gpu:
            import cupy as xp
            self.wait = xp.cuda.Device().synchronize
        else:
            import numpy as xp
        self.xp = xp
        self.version = xp.__version__

    def uniform(self, *shape):
        return self.xp.random.random_sample(shape).astype("float32") if not self.gpu else \
            self.xp.random.random(shape, dtype="float32")

    def integers(self, n, high):
        return self.xp.random.randint(0, high, size=n).astype("int64")

    def cast(self, a, dtype):
        return a.astype(dtype)

    def empty(self, shape, dtype="float32"):
        return self.xp.empty(tuple(shape), dtype)

    def copy(self, to, source):
        self.xp.copyto(to, source, casting="unsafe")

    def add(self, a, b, out):
        self.xp.add(a, b, out=out)

    def clip(self, a, low, high, out):
        if self.gpu:
            self.xp.clip(a, low, high, out=out)
        else:
            self.xp.core.umath.clip(a, low, high, out=out) if hasattr(self.xp, "core") else self.xp.clip(a, low, high, out=out)

    def unary(self, name, a, out):
        getattr(self.xp, name)(a, out=out)

    def binary(self, name, a, b, out):
        getattr(self.xp, name)(a, b, out=out)

    def where(self, condition, a, b):
        return self.xp.where(condition, a, b)

    def reverse(self, a):
        return a[::-1]

    def less(self, a, b):
        return a < b

    def permute(self, a, axes):
        return a.transpose(axes)

    def every_other(self, a):
        return a[::2]

    def empty_like(self, a):
        return self.xp.empty(a.shape, a.dtype)

    def sum(self, a, axes):
        return a.sum(axis=axes)

    def max(self, a, axis):
        return a.max(axis=axis)

    def mean(self, a, axis):
        return a.mean(axis=axis)

    def argmax(self, a, axis):
        return a.argmax(axis=axis)

    def take(self, a, indices, axis):
        return self.xp.take(a, indices, axis=axis)

    def scatter_add(self, a, rows, values):
        if self.gpu:
            import cupyx
            cupyx.scatter_add(a, rows, values)
        else:
            self.xp.add.at(a, rows, values)

    def concatenate(self, arrays, axis):
        return self.xp.concatenate(arrays, axis)

    def stack(self, arrays, axis):
        return self.xp.stack(arrays, axis)

    def split_copy(self, a):
        return [part.copy() for part in self.xp.split(a, 4, 1)]

    def rand(self, n):
        return self.uniform(n) if self.gpu else self.generator().random(n, dtype="float32")

    def randn(self, n):
        return self.xp.random.standard_normal(n, dtype="float32") if self.gpu else \
            self.generator().standard_normal(n, dtype="float32")

    def generator(self):
        if not hasattr(self, "_generator"):
            self._generator = self.xp.random.default_rng(1)
        return self._generator

    def user_kernel(self):
        if not self.gpu:
            return None
        return self.xp.ElementwiseKernel("T a, T b, T c, T d", "T y", "y = a * b + c * d", "four")

    def cumsum(self, a, axis):
        return self.xp.cumsum(a, axis=axis)

    def sort(self, a):
        return self.xp.sort(a)

    def argsort(self, a):
        return self.xp.argsort(a) if self.gpu else self.xp.argsort(a, kind="stable")

    def fused_chain(self, chain):
        if not self.gpu:
            return chain
        return self.xp.fuse()(chain)


class Torch(Library):
    def __init__(self, gpu):
        super().__init__("PyTorch", gpu)
        import torch
        self.t = torch
        self.version = torch.__version__
        self.where = "cuda" if gpu else "cpu"
        if gpu:
            if not torch.cuda.is_available():
                raise RuntimeError("it finds no GPU")
            self.wait = torch.cuda.synchronize
        torch.set_grad_enabled(False)

    def uniform(self, *shape):
        return self.t.rand(*shape, device=self.where)

    def integers(self, n, high):
        return self.t.randint(0, high, (n,), device=self.where)

    def cast(self, a, dtype):
        return a.to(getattr(self.t, dtype))

    def empty(self, shape, dtype="float32"):
        return self.t.empty(tuple(shape), dtype=getattr(self.t, dtype), device=self.where)

    def copy(self, to, source):
        to.copy_(source)

    def add(self, a, b, out):
        self.t.add(a, b, out=out)

    def clip(self, a, low, high, out):
        self.t.clamp(a, low, high, out=out)

    def unary(self, name, a, out):
        getattr(self.t, name)(a, out=out)

    def binary(self, name, a, b, out):
        getattr(self.t, name)(a, b, out=out)

    def where(self, condition, a, b):
        return self.t.where(condition, a, b)

    def reverse(self, a):
        return None  # no negative strides

    def less(self, a, b):
        return a < b

    def permute(self, a, axes):
        return a.permute(axes)

    def every_other(self, a):
        return a[::2]

    def empty_like(self, a):
        return self.t.empty(a.shape, dtype=a.dtype, device=self.where)

    def sum(self, a, axes):
        return a.sum(axes)

    def max(self, a, axis):
        return a.max() if axis is None else a.amax(axis)

    def mean(self, a, axis):
        return a.mean(axis)

    def argmax(self, a, axis):
        return a.argmax(axis)

    def take(self, a, indices, axis):
        return self.t.index_select(a, axis, indices)

    def scatter_add(self, a, rows, values):
        a.index_add_(0, rows, values)

    def concatenate(self, arrays, axis):
        return self.t.cat(arrays, axis)

    def stack(self, arrays, axis):
        return self.t.stack(arrays, axis)

    def split_copy(self, a):
        return [part.contiguous() for part in self.t.chunk(a, 4, 1)]

    def rand(self, n):
        return self.t.rand(n, device=self.where)

    def randn(self, n):
        return self.t.randn(n, device=self.where)

    def user_kernel(self):
        return None

    def cumsum(self, a, axis):
        return self.t.cumsum(a.ravel() if axis is None else a, 0 if axis is None else axis)

    def sort(self, a):
        return self.t.sort(a)

    def argsort(self, a):
        return self.t.argsort(a, stable=True)

    def fused_chain(self, chain):
        return chain


def seconds_of(library, call):
    def run(calls):
        library.wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        library.wait()
        return (time.perf_counter() - start) / calls

    run(1)
    once = min(run(1), run(1))
    calls = int(min(max(2e-3 / max(once, 1e-9), 1), 200))
    if not library.gpu:  # shared with other programs: the shortest runs, as bench_routines
        return min(once, *(run(calls) for _ in range(3 if once > 0.2 else 7 if once > 0.02 else 25)))
    return statistics.median(run(calls) for _ in range(3 if once > 0.2 else 9))


class Cases:
    def __init__(self):
        self.rows = {}

    def measure(self, library, name, dtype, call):
        try:
            figure = seconds_of(library, call) * 1e6
        except Exception as reason:  # a library may lack a case; the others go on
            print(f"peers_routines.py: {library.name} has no '{name}': {reason}", file=sys.stderr)
            return
        self.rows.setdefault((name, dtype), {})[library.name] = figure


def vectors(lib, cases, n, size):
    a, b, c, out = (lib.uniform(n) for _ in range(4))
    f = "float32"
    measure = lambda name, call: cases.measure(lib, f"{name} {size}", f, call)
    measure("copy", lambda: lib.copy(out, a))
    measure("sqrt", lambda: lib.unary("sqrt", a, out))
    measure("exp", lambda: lib.unary("exp", a, out))
    measure("add", lambda: lib.add(a, b, out))
    measure("add scalar", lambda: lib.add(a, 2.0, out))
    measure("clip by arrays", lambda: lib.clip(a, b, c, out))
    measure("less", lambda: lib.less(a, b))
    if n >= 1 << 20:
        half, other = lib.every_other(a), lib.every_other(b)
        to = lib.empty_like(half)
        measure("add every other", lambda: lib.add(half, other, to))
    i32 = lib.cast(lib.integers(n, 1000), "int32")
    for source, dtype in ((a, "float16"), (a, "float64"), (a, "int32"), (i32, "float32"), (i32, "int64")):
        to = lib.empty((n,), dtype)
        name = "int32" if source is i32 else f
        cases.measure(lib, f"cast to {dtype} {size}", name, lambda: lib.copy(to, source))
    del b, c, out, i32
    x, y = lib.uniform(n // 1000, 1000), lib.uniform(n // 1000, 1000)
    measure("concatenate axis 0", lambda: lib.concatenate([x, y], 0))
    measure("concatenate axis 1", lambda: lib.concatenate([x, y], 1))
    measure("stack axis 2", lambda: lib.stack([x, y], 2))
    measure("split in 4 and copy", lambda: lib.split_copy(x))
    del x, y
    measure("uniform", lambda: lib.rand(n))
    measure("normal", lambda: lib.randn(n))
    kernel = lib.user_kernel()
    if kernel is not None:
        p, q, r, s = (lib.uniform(n) for _ in range(4))
        measure("user kernel of 4 operands", lambda: kernel(p, q, r, s))
        del p, q, r, s
    measure("cumsum", lambda: lib.cumsum(a, None))
    chain = lib.fused_chain(fused_chain)
    b = lib.uniform(n)
    measure("fused chain of 10", lambda: chain(a, b))
    if n <= 1 << 27:
        whole = lib.cast(lib.uniform(n) * 2.0**30, "int64")
        measure("sort", lambda: lib.sort(a))
        cases.measure(lib, f"sort {size}", "int64", lambda: lib.sort(whole))
        measure("argsort", lambda: lib.argsort(a))


def types(lib, cases, n, size):
    """The everyday operations in the other dtypes."""
    for dtype in ("float64", "float16", "int64", "int32", "int16", "uint8"):
        values = lambda: lib.cast(lib.uniform(n) if "float" in dtype else lib.integers(n, 100), dtype)
        measure = lambda name, call: cases.measure(lib, f"{name} {size}", dtype, call)
        a, b = values(), values()
        out, half, back = lib.empty_like(a), lib.every_other(a), lib.reverse(a)
        halves, chosen = lib.empty_like(half), lib.less(a, b)
        measure("copy", lambda: lib.copy(out, a))
        measure("copy every other", lambda: lib.copy(halves, half))
        if back is not None:
            measure("copy reversed", lambda: lib.copy(out, back))
        measure("add", lambda: lib.add(a, b, out))
        measure("multiply", lambda: lib.binary("multiply", a, b, out))
        measure("maximum", lambda: lib.binary("maximum", a, b, out))
        measure("clip by arrays", lambda: lib.clip(a, b, b, out))
        measure("less", lambda: lib.less(a, b))
        measure("equal", lambda: a == b)
        measure("where", lambda: lib.where(chosen, a, b))
        measure("sum", lambda: lib.sum(a, None))
        measure("max", lambda: lib.max(a, None))
        measure("argmax", lambda: a.argmax())
        if "float" in dtype:
            measure("mean", lambda: a.mean())
            measure("var", lambda: a.var())


def truths(lib, cases, n, size):
    """What has no float32 row elsewhere, and the routines of bool."""
    a, b = lib.uniform(n), lib.uniform(n)
    out, p, q = lib.empty_like(a), lib.less(a, b), a < 0.5
    r, ones, none = lib.empty_like(p), a < 2.0, a < -1.0
    measure = lambda name, dtype, call: cases.measure(lib, f"{name} {size}", dtype, call)
    measure("maximum", "float32", lambda: lib.binary("maximum", a, b, out))
    measure("where", "float32", lambda: lib.where(p, a, b))
    measure("sum", "float32", lambda: lib.sum(a, None))
    measure("max", "float32", lambda: lib.max(a, None))
    measure("argmax", "float32", lambda: a.argmax())
    measure("mean", "float32", lambda: a.mean())
    measure("var", "float32", lambda: a.var())
    measure("logical_and", "bool", lambda: lib.binary("logical_and", p, q, r))
    measure("logical_not", "bool", lambda: lib.unary("logical_not", p, r))
    measure("where", "bool", lambda: lib.where(p, q, r))
    measure("sum", "bool", lambda: p.sum())
    measure("all", "bool", lambda: ones.all())
    measure("any", "bool", lambda: none.any())
    wide = lib.empty((n,))
    measure("cast to float32", "bool", lambda: lib.copy(wide, p))


def fused_chain(x, y):
    """Ten operations, the same as ours."""
    z = (x + y) * x - y
    z = z * 0.5 + 1.0
    z = abs(z) * z + x
    return (z - y) * 2.0


def matrices(lib, cases, side):
    size = f"{side}^2"
    a, b, out = (lib.uniform(side, side) for _ in range(3))
    row, column = lib.uniform(side), lib.uniform(side, 1)
    measure = lambda name, call: cases.measure(lib, f"{name} {size}", "float32", call)
    measure("add row", lambda: lib.add(a, row, out))
    measure("add column", lambda: lib.add(a, column, out))
    measure("add transposed", lambda: lib.add(a, b.T, out))
    measure("copy transposed", lambda: lib.copy(out, a.T))
    q = side // 32
    a4 = lib.permute(a.reshape(32, q, 32, q), (2, 1, 0, 3))
    b4 = lib.permute(b.reshape(32, q, 32, q), (0, 3, 2, 1))
    out4, c4 = lib.empty(a4.shape), lib.empty(b4.shape)
    measure("add 4-d, two outer axes swapped", lambda: lib.add(a4, a4, out4))
    measure("copy 4-d, inner axis moved", lambda: lib.copy(c4, b4))
    measure("cumsum axis 0", lambda: lib.cumsum(a, 0))
    measure("cumsum axis 1", lambda: lib.cumsum(a, 1))


def reductions(lib, cases, shape, size):
    a = lib.uniform(*shape)
    measure = lambda name, call: cases.measure(lib, f"{name} of {size}", "float32", call)
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        text = "all" if len(axes) == 3 else ",".join(map(str, axes))
        measure(f"sum axes {text}", lambda: lib.sum(a, axes))
    measure("max axes 1", lambda: lib.max(a, 1))
    measure("mean axes 2", lambda: lib.mean(a, 2))
    for axis in range(3):
        measure(f"argmax axis {axis}", lambda: lib.argmax(a, axis))


def indexing(lib, cases, rows, columns):
    a = lib.uniform(rows, columns)
    some, places = lib.integers(rows, rows), lib.integers(rows * columns // 4, rows * columns)
    some_columns = lib.integers(columns, columns)
    measure = lambda name, call: cases.measure(lib, f"{name} of {rows}x{columns}", "float32", call)
    measure("take rows", lambda: lib.take(a, some, 0))
    measure("take columns", lambda: lib.take(a, some_columns, 1))
    flat = a.reshape(-1)
    measure("take elements", lambda: lib.take(flat, places, 0))
    sums = lib.uniform(rows, columns)
    measure("scatter_add rows", lambda: lib.scatter_add(sums, some, a))


def permutations(lib, cases, shape, size):
    a = lib.uniform(*shape)
    for axes in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        view = lib.permute(a, axes)
        out = lib.empty(view.shape)
        cases.measure(lib, f"permute {''.join(map(str, axes))} of {size}", "float32", lambda: lib.copy(out, view))


def run_all(lib, cases, quick):
    gpu = lib.gpu
    sizes = [(1000, "10^3"), (1000000, "10^6")]
    if not quick:
        sizes.append((1 << 27, "2^27") if gpu else (100000000, "10^8"))
    for n, size in sizes:
        vectors(lib, cases, n, size)
        if not gpu:
            truths(lib, cases, n, size)
            if n <= 1000000:
                types(lib, cases, n, size)
    matrices(lib, cases, 1024 if quick else 8192)
    if quick:
        reductions(lib, cases, (16, 64, 64), "16x64x64")
        indexing(lib, cases, 1 << 12, 64)
        permutations(lib, cases, (64, 48, 32), "64x48x32")
        return
    first, second = ((512, "512"), (1 << 20, "2^20")) if gpu else ((64, "64"), (1 << 18, "2^18"))
    reductions(lib, cases, (first[0], 1024, 1024), f"{first[1]}x1024x1024")
    reductions(lib, cases, (second[0], 3, 64), f"{second[1]}x3x64")
    indexing(lib, cases, 1 << 19 if gpu else 1 << 17, 256)
    if gpu:
        permutations(lib, cases, (512, 500, 520), "512x500x520")
    else:
        permutations(lib, cases, (256, 250, 260), "256x250x260")


def ours(path):
    """{(case, precision): us} from the table of bench_routines."""
    figures = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 7 and re.fullmatch(r"[0-9.e+]+ us", cells[2]):
                figures[cells[0], cells[1]] = float(cells[2].split()[0])
    return figures


def libraries(gpu):
    makers = [("PyTorch", lambda: Torch(gpu)),
              ("CuPy" if gpu else "NumPy", lambda: NumpyLike("CuPy" if gpu else "NumPy", gpu))]
    for name, make in makers:
        try:
            yield make()
        except Exception as reason:
            print(f"peers_routines.py: {name} is left out: {reason}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small cases")
    parser.add_argument("--gpu", action="store_true", help="on the first GPU instead of the CPU")
    parser.add_argument("--beside", metavar="FILE", help="what bench_routines printed")
    arguments = parser.parse_args()
    cases, names = Cases(), []
    for lib in libraries(arguments.gpu):
        run_all(lib, cases, arguments.quick)
        names.append((lib.name, lib.version))
    if not names:
        return
    mine = ours(arguments.beside) if arguments.beside else {}
    print("\n### Routines beside other libraries\n" + ", ".join(" ".join(n) for n in names) + "\n")
    print("| case | dtype | catena | " + " | ".join(n for n, _ in names) + " | to the faster |")
    print("|---" * (4 + len(names)) + "|")
    for key, cells in cases.rows.items():
        own, best = mine.get(key), min(cells.values())
        peers = " | ".join(f"{cells[n]:.4g} us" if n in cells else "" for n, _ in names)
        print(f"| {key[0]} | {key[1]} | " + (f"{own:.4g} us" if own else "") + f" | {peers} | "
              + (f"{own / best:.2f} x" if own else "") + " |")


if __name__ == "__main__":
    main()
