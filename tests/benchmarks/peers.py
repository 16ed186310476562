#!/usr/bin/env python3
"""The cases of bench_gpu_array and bench_gpu_train with PyTorch and CuPy, where they are installed.

Prints one Markdown table whose rows have the names of ours, in the same precision:
  peers.py [--quick] [--beside FILE]
FILE is what our programs printed in the same run; its figures become a column. Without a GPU, or
without either library, one line says so and the status is 0.
"""
import argparse
import re
import statistics
import sys
import time

from peer_worker import lenet


class Cases:
    """What was measured: {(case, precision): {library: (text, seconds or None)}} in order."""

    def __init__(self):
        self.rows = {}

    def add(self, case, precision, column, text):
        self.rows.setdefault((case, precision), {})[column] = text
        print(f"  {column}: {case} {precision}: {text}", file=sys.stderr, flush=True)


def median_seconds(call, wait, warm_up, runs, calls):
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(runs):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        wait()
        times.append((time.perf_counter() - start) / calls)
    return statistics.median(times)


def host_seconds(call, wait, warm_up, runs, calls):
    for _ in range(warm_up):
        call()
    times = []
    for _ in range(runs):
        wait()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        times.append((time.perf_counter() - start) / calls)
    wait()
    return statistics.median(times)


def us(seconds):
    return f"{seconds * 1e6:.1f} us"


def rate(size, seconds):
    return f"{size / seconds * 1e-12:.3f} TB/s"


def array_cases(xp, column, cases, quick, out_add, copy, softmax, wait):
    """xp: torch or cupy through the few calls that differ."""
    sampling = (3, 3, 5) if quick else (5, 9, 10)
    log2 = 26 if quick else 28
    n, side = 1 << log2, 8192 if quick else 16384

    def measure(name, size, call):
        cases.add(name, "float32", column, rate(size, median_seconds(call, wait, *sampling)))

    a, b, c = xp.vector(n), xp.vector(n), xp.vector(n)
    measure(f"add 2^{log2}", 12 * n, lambda: out_add(a, b, c))
    measure(f"copy 2^{log2}", 8 * n, lambda: copy(c, a))
    measure(f"sum 2^{log2}", 4 * n, lambda: a.sum())
    del a, b, c
    m, row, out = xp.matrix(side), xp.vector(side), xp.matrix(side)
    size = 4 * side * side
    measure(f"add row {side}^2", 2 * size, lambda: out_add(m, row, out))
    measure(f"sum axis 0 {side}^2", size, lambda: m.sum(0))
    measure(f"sum axis 1 {side}^2", size, lambda: m.sum(1))
    measure(f"transpose to contiguous {side}^2", 2 * size, lambda: copy(out, m.T))
    if softmax:
        measure(f"softmax {side}^2", 2 * size, lambda: softmax(m))
    x, y = xp.matrix(32), xp.matrix(32)
    cases.add("add 32x32, host time", "float32", column, us(host_seconds(lambda: x + y, wait, 200, 5 if quick else 25, 400)))


def torch_lenet_alone(cases, quick):
    import torch

    torch_lenet(torch, cases, quick)


def torch_cases(cases, quick):
    import torch

    class Make:
        vector = staticmethod(lambda n: torch.rand(n, device="cuda"))
        matrix = staticmethod(lambda n: torch.rand(n, n, device="cuda"))

    with torch.no_grad():
        array_cases(Make, "PyTorch eager", cases, quick, lambda a, b, c: torch.add(a, b, out=c),
                    lambda to, source: to.copy_(source), lambda m: torch.softmax(m, 1), torch.cuda.synchronize)
    torch.cuda.empty_cache()
    for precision in ("float32", "bfloat16"):
        torch_embedding(torch, cases, quick, precision)
    torch_chain(torch, cases, quick)
    for rule, batch, tf32 in (("SGD", 100, False), ("SGD", 100, True), ("Adam", 100, False), ("Adam", 100, True),
                              ("SGD", 1000, False), ("SGD", 1000, True)):
        torch_mnist(torch, cases, quick, rule, batch, tf32)
    torch_stack(torch, cases, quick)
    torch_lenet(torch, cases, quick)
    torch_update(torch, cases, quick)
    for precision in ("float32", "bfloat16"):
        torch_residual(torch, cases, quick, precision)


def eager_and_graph(torch, cases, name, precision, step, sampling):
    """Times step() eagerly, then captured as a CUDA graph."""
    wait = torch.cuda.synchronize
    cases.add(f"{name}, eager", precision, "PyTorch eager", us(median_seconds(step, wait, *sampling)))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    cases.add(f"{name}, replayed", precision, "PyTorch graph", us(median_seconds(graph.replay, wait, *sampling)))


def torch_embedding(torch, cases, quick, precision):
    dtype, sampling = getattr(torch, precision), (3, 3, 5) if quick else (5, 9, 10)
    table = torch.randn(50304, 768, device="cuda").to(dtype).requires_grad_()
    ids, gy = torch.randint(0, 50304, (32768,), device="cuda"), torch.rand(32768, 768, device="cuda").to(dtype)

    def both():
        table.grad = None
        torch.nn.functional.embedding(ids, table).backward(gy)

    for name, call in (("forward", lambda: torch.nn.functional.embedding(ids, table)), ("forward + backward", both)):
        seconds = median_seconds(call, torch.cuda.synchronize, *sampling)
        cases.add(f"embedding 32768 of 50304x768, {name}", precision, "PyTorch eager", f"{seconds * 1e3:.3f} ms")


def torch_chain(torch, cases, quick):
    torch.backends.cuda.matmul.allow_tf32 = False
    weight = (torch.rand(32, 32, device="cuda") * 0.15 - 0.05).requires_grad_()
    x = torch.rand(32, 32, device="cuda")

    def step():
        weight.grad = None
        h = x
        for _ in range(20):
            h = torch.relu(h @ weight)
        h.sum().backward()

    eager_and_graph(torch, cases, "20 x (matmul 32x32, relu)", "float32", step, (10, 3 if quick else 9, 30 if quick else 100))


def rule_of(torch, rule, model):
    """The fastest form of each rule that can be captured."""
    if rule == "AdamW":
        return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True, capturable=True)
    if rule == "Adam":
        return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
    return torch.optim.SGD(model.parameters(), lr=1e-2, fused=True)


def torch_mnist(torch, cases, quick, rule, batch, tf32):
    nn = torch.nn
    torch.backends.cuda.matmul.allow_tf32 = tf32
    model = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10)).cuda()
    optimizer = rule_of(torch, rule, model)
    images, labels = torch.rand(60000, 784, device="cuda"), torch.randint(0, 10, (60000,), device="cuda")
    order, offsets = torch.randperm(60000, device="cuda"), torch.arange(batch, device="cuda")
    cursor = torch.zeros((), dtype=torch.int64, device="cuda")

    def step():
        positions = order[(offsets + cursor) % 60000]
        optimizer.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(images[positions]), labels[positions]).backward()
        optimizer.step()
        cursor.add_(batch)

    eager_and_graph(torch, cases, f"MNIST step, batch {batch}, {rule}", "tf32" if tf32 else "float32", step,
                    (20, 3 if quick else 9, 30 if quick else 100))


def torch_stack(torch, cases, quick):
    nn = torch.nn
    width = 1024 if quick else 4096
    torch.backends.cuda.matmul.allow_tf32 = True
    layers = []
    for i in range(8):
        layers += ([nn.ReLU()] if i else []) + [nn.Linear(width, width)]
    model = nn.Sequential(*layers).cuda()
    optimizer = rule_of(torch, "SGD", model)
    x, target = torch.rand(1024, width, device="cuda"), torch.zeros(1024, width, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        nn.functional.mse_loss(model(x), target).backward()
        optimizer.step()

    seconds = median_seconds(step, torch.cuda.synchronize, 5, 3 if quick else 7, 20)
    cases.add(f"8 x Linear({width}, {width}), batch 1024, SGD, eager", "tf32", "PyTorch eager", f"{seconds * 1e3:.3f} ms")


def torch_lenet(torch, cases, quick):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    model = lenet(torch).cuda()
    optimizer = rule_of(torch, "SGD", model)
    x, labels = torch.rand(64, 1, 28, 28, device="cuda"), torch.randint(0, 10, (64,), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    eager_and_graph(torch, cases, "LeNet step, batch 64, SGD", "tf32", step, (10, 3 if quick else 9, 30 if quick else 100))


def torch_update(torch, cases, quick):
    """PyTorch keeps the parameters in float32 for mixed precision: one row stands beside both of ours."""
    log2 = 22 if quick else 26
    parameter = torch.nn.Parameter(torch.zeros(1 << log2, device="cuda"))
    parameter.grad = torch.ones_like(parameter)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, fused=True, capturable=True)
    seconds = median_seconds(optimizer.step, torch.cuda.synchronize, 5, 3 if quick else 9, 20)
    for precision in ("float32", "bfloat16"):
        cases.add(f"AdamW update, 2^{log2} parameters", precision, "PyTorch eager", us(seconds))


def residual_network(torch):
    """The network of examples/mnist/models.h."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
            self.bn1, self.bn2 = nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)
            self.shortcut = nn.Identity()
            if stride != 1 or inputs != outputs:
                self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

        def forward(self, x):
            h = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
            return torch.relu(h + self.shortcut(x))

    layers, inputs = [nn.Conv2d(1, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()], 32
    for outputs in (32, 64, 128):
        layers += [Block(inputs, outputs, 1 if outputs == inputs else 2), Block(outputs, outputs, 1)]
        inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))


def torch_residual(torch, cases, quick, precision):
    """bfloat16 by autocast; the faster of its two layouts counts."""
    batch = 256
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    labels = torch.randint(0, 10, (batch,), device="cuda")
    for layout in ("contiguous_format", "channels_last"):
        memory_format = getattr(torch, layout)
        model = residual_network(torch).cuda().to(memory_format=memory_format)
        optimizer = rule_of(torch, "AdamW", model)
        x = torch.rand(batch, 1, 28, 28, device="cuda").to(memory_format=memory_format)

        def step():
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False):
                loss = torch.nn.functional.cross_entropy(model(x).float(), labels)
            loss.backward()
            optimizer.step()

        of_layout = Cases()
        eager_and_graph(torch, of_layout, f"residual network, batch {batch}, AdamW", precision, step, (10, 3 if quick else 7, 20))
        for (case, _), cells in of_layout.rows.items():
            for column, text in cells.items():
                before = cases.rows.get((case, precision), {}).get(column)
                if before is None or float(text.split()[0]) < float(before.split()[0]):
                    cases.add(case, precision, column, text)


def cupy_cases(cases, quick):
    import cupy

    class Make:
        vector = staticmethod(lambda n: cupy.random.random(n, dtype=cupy.float32))
        matrix = staticmethod(lambda n: cupy.random.random((n, n), dtype=cupy.float32))

    array_cases(Make, "CuPy", cases, quick, lambda a, b, c: cupy.add(a, b, out=c), lambda to, source: cupy.copyto(to, source),
                None, cupy.cuda.Device().synchronize)


def ours(path):
    """{(case, precision): figure} from the tables of our programs."""
    figures = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if line.startswith("|") and len(cells) == 7 and re.match(r"[0-9.]+ ", cells[2]):
                figures[cells[0], cells[1]] = cells[2]
    return figures


def library(name, usable, run, cases, arguments):
    """Its version, or None with the reason printed. run(cases, quick) measures."""
    try:
        module = __import__(name)
        if not usable(module):
            raise RuntimeError("it finds no GPU")
    except Exception as reason:  # a library that cannot be used is left out, whatever the cause
        print(f"peers.py: {name} is left out: {reason}")
        return None
    run(cases, arguments.quick)
    return f"{name} {module.__version__}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small cases and few runs")
    parser.add_argument("--only", choices=("lenet",), help="this case of PyTorch alone")
    parser.add_argument("--beside", metavar="FILE", help="what our programs printed, to be shown beside")
    arguments = parser.parse_args()
    cases = Cases()
    versions = [library("torch", lambda m: m.cuda.is_available(), torch_lenet_alone if arguments.only else torch_cases, cases,
                        arguments)]
    if not arguments.only:
        versions.append(library("cupy", lambda m: m.cuda.runtime.getDeviceCount() > 0, cupy_cases, cases, arguments))
    if not any(versions):
        return
    mine = ours(arguments.beside) if arguments.beside else {}
    columns = (["catena"] if mine else []) + ["PyTorch eager", "PyTorch graph", "CuPy"]
    print("\n### Beside other libraries\n" + ", ".join(v for v in versions if v) + "\n")
    print("| case | precision | " + " | ".join(columns) + " |\n" + "|---" * (2 + len(columns)) + "|")
    for key, cells in cases.rows.items():
        cells = dict(cells, catena=mine.get(key, ""))
        print(f"| {key[0]} | {key[1]} | " + " | ".join(cells.get(column, "") for column in columns) + " |")


if __name__ == "__main__":
    main()
