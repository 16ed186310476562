#!/usr/bin/env python3
"""Checks the tables of docs/guide/from-pytorch.md against PyTorch.

    compare.py PAGE PROGRAM

PROGRAM (page.cpp) has computed spellings of catena's and written their texts, operands and results.
Here PyTorch computes the spellings beside them, and the results must be equal. Each piece of code in a
left column must be part of such a row, with a piece of the right column of the same line, or be listed
in NOT_COMPUTED. Without PyTorch only that is checked, and the exit status is 77.
"""
import copy
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types

other = os.environ.pop("CATENA_TEST_TORCH_PYTHON", "")
if other:
    os.execvp(other, [other, *sys.argv])
try:
    import numpy as np
except ImportError:
    print("SKIPPED: no NumPy for this Python; CATENA_TEST_TORCH_PYTHON names another one")
    sys.exit(77)

# Code that is not computed, and why.
NOT_COMPUTED = {
    "needs GPUs": [
        'torch.zeros(2, 3, device="cuda:0")', 'x.to("cuda:1")', 'net.to("cuda")', "torch.cuda.graphs", "torch.compile"],
    "needs ranks: tests/parallel": [
        "nn.SyncBatchNorm.convert_sync_batchnorm(model)", "ZeroRedundancyOptimizer", "fully_shard(block)",
        "fully_shard(net)", "MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)", "DistributedDataParallel(net)", "torchrun"],
    "a declaration": ["torch.autograd.Function", "nn.Parameter(t)", "register_buffer"],
    "memory: tests/functions": [
        "torch.utils.checkpoint.checkpoint(f, x)", "torch.autograd.graph.save_on_cpu(pin_memory=True)",
        "torch._functorch.config.activation_memory_budget"],
    "files: tests/serializers": [
        'net.load_state_dict(torch.load("net.pt"))', "safetensors.torch.load_file", "save_file"],
    "draws its own order or samples: tests/datasets": [
        "Dataset", "DataLoader(data, 100, shuffle=True, drop_last=True)", "DataLoader(data, 100, collate_fn=pad)",
        "pad_sequence", "WeightedRandomSampler(weights, n)", "Sampler", "random_split(data, [0.8, 0.2])", "Subset",
        "ConcatDataset", "torch.multinomial(p, n, replacement=True)"],
    "another loss, as its line says": ["F.triplet_margin_loss"],
    "a training loop: tests/training": ["loss / 4", "backward()", "step()", "net.eval()", "with torch.no_grad():"],
    "not a part of PyTorch": [
        "Accuracy(top_k=5)", "ConfusionMatrix", "Precision", "Recall", "F1Score", "R2Score", "sigmoid_focal_loss"],
}


def plain(text):
    """Code without spaces that mean nothing."""
    return re.sub(r"\s+", " ", re.sub(r"[^\S\n]*([^\w\s])\s*", r"\1", text.replace("\n", ";"))).strip()


class Line:
    """A line of a table: the pieces of code of its columns."""

    def __init__(self, text):
        left, right = (re.findall(r"`([^`]+)`", cell) for cell in re.split(r"(?<!\\)\|", text)[1:3])
        self.left, self.right = left, right


def lines_of(page):
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ") and "`" in line]
    return [Line(line) for line in rows]


class Row:
    """A spelling of each system; see Page::add in page.h."""

    def __init__(self, number, fields, arrays):
        self.set, self.pytorch, self.result, self.catena, tolerance, _ = fields
        self.tolerance = float(tolerance)
        inside = lambda prefix: {k[len(prefix):]: v for k, v in arrays.items() if k.startswith(prefix)}
        self.operands = inside(f"operand/{self.set}/") | inside(f"row/{number}/")
        self.expected = [v for _, v in sorted(inside(f"result/{number}/").items())]

    def text(self):
        return f"{self.pytorch}; {self.result}"

    def covers(self, line, piece):
        return has(self.text(), piece) and self.is_in(line)

    def is_in(self, line):
        return any(has(self.catena, piece) for piece in line.right)


def has(text, piece):
    """Whether code has a piece, not as a part of a longer name."""
    piece = plain(piece)
    pattern = (r"(?<!\w)" if piece[0].isalnum() else "") + re.escape(piece) + (r"(?!\w)" if piece[-1].isalnum() else "")
    return re.search(pattern, plain(text)) is not None


def rows_of(path):
    arrays = dict(np.load(path))
    texts = bytes(arrays.pop("rows")).decode().split("\x1e")[:-1]
    return [Row(number, text.split("\x1f"), arrays) for number, text in enumerate(texts)]


def uncovered(lines, rows):
    listed = {piece for pieces in NOT_COMPUTED.values() for piece in pieces}
    seen = set()
    for line in lines:
        for piece in line.left:
            found = [row for row in rows if row.covers(line, piece)]
            seen.update([piece] if not found else [])
            if not found and piece not in listed:
                yield f"`{piece}` is neither computed nor listed in NOT_COMPUTED; its line has {line.right}"
    yield from (f"NOT_COMPUTED lists `{piece}`, which is computed or not there" for piece in listed - seen)
    yield from (f"the page does not have {row.catena!r}" for row in rows if not any(map(row.is_in, lines)))


# PyTorch's side -----------------------------------------------------------------------------------------


def names(torch):
    """What the spellings of PyTorch use."""
    nn, F = torch.nn, torch.nn.functional
    scheduler = torch.optim.lr_scheduler

    def with_parameters(module, p):
        for parameter, values in zip(module.parameters(), p, strict=True):
            parameter.data = values.clone()
        return module

    def by_pytorch(W):
        a, i, f, o = W.chunk(4, 0)
        return torch.cat([i, f, a, o])

    def by_catena(W):
        i, f, a, o = W.chunk(4, 0)
        return torch.cat([a, i, f, o])

    def lstm_with(module, p):
        full = []
        for k in range(0, len(p), 3):
            Wx, Wh, b = map(by_pytorch, p[k:k + 3])
            full += [Wx, Wh, b, torch.zeros_like(b)]
        return with_parameters(module, full)

    def cell_with(module, p):
        Wx, b, Wh = map(by_pytorch, p)
        return with_parameters(module, [Wx, Wh, b, torch.zeros_like(b)])

    def linear(W, b):
        return with_parameters(nn.Linear(*W.shape[::-1]), [W, b])

    def rates(make, *numbers):
        """100 learning rates, from 0.1 on."""
        optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
        schedule = make(optimizer, *numbers)
        result = []
        for k in range(100):
            result.append(schedule.get_last_lr()[0])
            optimizer.step()
            if k < 99:
                schedule.step()
        return result

    table = {name: getattr(scheduler, name) for name in
             ("StepLR", "MultiStepLR", "ExponentialLR", "PolynomialLR", "OneCycleLR", "CosineAnnealingLR")}
    average = torch.optim.swa_utils
    return table | {
        "torch": torch, "nn": nn, "F": F, "copy": copy, "with_parameters": with_parameters, "by_catena": by_catena,
        "lstm_with": lstm_with, "cell_with": cell_with, "linear": linear, "rates": rates,
        "pack_padded_sequence": nn.utils.rnn.pack_padded_sequence,
        "pad_packed_sequence": nn.utils.rnn.pad_packed_sequence,
        "clip_grad_norm_": nn.utils.clip_grad_norm_, "clip_grad_value_": nn.utils.clip_grad_value_,
        "AveragedModel": average.AveragedModel, "get_ema_multi_avg_fn": average.get_ema_multi_avg_fn,
        "sgd": lambda net: torch.optim.SGD(net.parameters(), lr=0.1), "self": types.SimpleNamespace(training=False)}


def operands_of(torch, row):
    tensors = {name: torch.from_numpy(a.copy()) for name, a in row.operands.items()}
    parameters = sorted((name for name in tensors if re.fullmatch(r"p\d+", name)), key=lambda name: int(name[1:]))
    if parameters or "p" not in tensors:
        tensors["p"] = [tensors[name] for name in parameters]
    if "size" in tensors:
        tensors["h"], tensors["w"] = (int(n) for n in tensors["size"])
    if "W" in tensors and "x" in tensors and "t" in tensors:
        loss_of = lambda net: torch.nn.functional.cross_entropy(net(tensors["x"]), tensors["t"])

        def train(net, optimizer, times=1, before=lambda: None, after=lambda: None):
            for _ in range(3):
                optimizer.zero_grad()
                (loss_of(net) * times).backward()
                before()
                optimizer.step()
                after()

        tensors |= {"loss_of": loss_of, "train": train}
    return tensors


def flat(torch, result):
    if isinstance(result, torch.Tensor):
        return [result.detach().numpy()]
    if isinstance(result, (list, tuple)) and any(isinstance(part, torch.Tensor) for part in result):
        return [part.detach().numpy() for part in result]
    return [np.array(result)]


def computed(torch, row, folder):
    scope = names(torch) | operands_of(torch, row) | {"file": str(pathlib.Path(folder) / "net.pt")}
    if not row.result:
        return flat(torch, eval(row.pytorch, scope))
    exec(row.pytorch, scope)
    return flat(torch, eval(row.result, scope))


def difference(torch, row, folder):
    """What is wrong with a row, or None."""
    got = computed(torch, row, folder)
    if [a.shape for a in got] != [a.shape for a in row.expected]:
        return f"shapes {[a.shape for a in got]}, catena's {[a.shape for a in row.expected]}"
    for mine, other in zip(row.expected, got):
        if not np.allclose(mine.astype(float), other.astype(float), row.tolerance, row.tolerance * 0.1, equal_nan=True):
            return f"PyTorch has {other.ravel()[:6]}, catena {mine.ravel()[:6]}"
    return None


def main():
    page, program = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.npz"
        subprocess.run([program.resolve(), path], check=True, cwd=folder)
        rows = rows_of(path)
        problems = list(uncovered(lines_of(page), rows))
        try:
            import torch
        except ImportError:
            torch = None
        if torch:
            torch.set_num_threads(1)
        for row in rows if torch else []:
            try:
                wrong = difference(torch, row, folder)
            except Exception as error:
                wrong = f"PyTorch: {type(error).__name__}: {error}"
            if wrong:
                problems.append(f"{row.text()!r} and {row.catena!r}: {wrong}")
    if problems:
        sys.exit("\n".join([*problems, f"{len(problems)} problems"]))
    if torch is None:
        print("SKIPPED: no PyTorch for this Python; CATENA_TEST_TORCH_PYTHON names another one")
        sys.exit(77)
    print(f"{len(rows)} rows of {page.name} give the same in PyTorch {torch.__version__} and in catena")


if __name__ == "__main__":
    main()
