#!/usr/bin/env python3
"""The cases of bench_routines with NumPy and PyTorch on the CPU, or PyTorch and CuPy on a GPU.

  peers_routines.py [--quick] [--large] [--gpu] [--beside FILE]
Prints one Markdown table with the names of ours, times in us. FILE is what bench_routines printed
in the same run; our time and its ratio to the faster peer become columns. A library that is not
installed is left out with a line that says so; the number of threads is the environment's.
"""
import argparse
import re
import statistics
import sys
import time

from peer_libraries import NumpyLike, Torch


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
    sorts(lib, cases, n, size)


def sorts(lib, cases, n, size):
    a = lib.uniform(n)
    whole = lib.cast(lib.uniform(n) * 2.0**30, "int64")
    cases.measure(lib, f"sort {size}", "float32", lambda: lib.sort(a))
    cases.measure(lib, f"sort {size}", "int64", lambda: lib.sort(whole))
    cases.measure(lib, f"argsort {size}", "float32", lambda: lib.argsort(a))


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
    all_sums, values = sums.reshape(-1), flat[:rows * columns // 4]
    measure("put elements", lambda: lib.put(all_sums, places, values))
    measure("scatter_add elements", lambda: lib.scatter_add(all_sums, places, values))
    measure("scatter_add rows", lambda: lib.scatter_add(sums, some, a))
    measure("sort rows", lambda: lib.sort(a))
    halves, half_sums = lib.cast(a, "float16"), lib.cast(sums, "float16")
    cases.measure(lib, f"scatter_add rows of {rows}x{columns}", "float16",
                  lambda: lib.scatter_add(half_sums, some, halves))


def permutations(lib, cases, shape, size):
    a = lib.uniform(*shape)
    for axes in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        view = lib.permute(a, axes)
        out = lib.empty(view.shape)
        cases.measure(lib, f"permute {''.join(map(str, axes))} of {size}", "float32", lambda: lib.copy(out, view))


def run_size(lib, cases, n, size):
    vectors(lib, cases, n, size)
    if not lib.gpu:
        truths(lib, cases, n, size)
        types(lib, cases, n, size)


def run_all(lib, cases, quick, large):
    gpu = lib.gpu
    if large and not quick:
        return run_size(lib, cases, 100000000, "10^8")
    run_size(lib, cases, 1000, "10^3")
    run_size(lib, cases, 1000000, "10^6")
    if gpu and not quick:
        run_size(lib, cases, 1 << 27, "2^27")
        sorts(lib, cases, 1 << 26, "2^26")
    matrices(lib, cases, 1024 if quick else 8192)
    if quick:
        reductions(lib, cases, (16, 64, 64), "16x64x64")
        indexing(lib, cases, 1 << 12, 64)
        permutations(lib, cases, (64, 48, 32), "64x48x32")
        return None
    first, second = ((512, "512"), (1 << 20, "2^20")) if gpu else ((64, "64"), (1 << 18, "2^18"))
    reductions(lib, cases, (first[0], 1024, 1024), f"{first[1]}x1024x1024")
    reductions(lib, cases, (second[0], 3, 64), f"{second[1]}x3x64")
    indexing(lib, cases, 1 << 19 if gpu else 1 << 17, 256)
    if gpu:
        permutations(lib, cases, (512, 500, 520), "512x500x520")
    else:
        permutations(lib, cases, (256, 250, 260), "256x250x260")
    return None


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
    parser.add_argument("--large", action="store_true", help="the cases of 10^8 elements, and nothing else")
    parser.add_argument("--gpu", action="store_true", help="on the first GPU instead of the CPU")
    parser.add_argument("--beside", metavar="FILE", help="what bench_routines printed")
    arguments = parser.parse_args()
    cases, names = Cases(), []
    for lib in libraries(arguments.gpu):
        run_all(lib, cases, arguments.quick, arguments.large)
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
