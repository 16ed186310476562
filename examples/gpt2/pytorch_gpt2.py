#!/usr/bin/env python3
"""Trains the same GPT-2 with PyTorch and with train_gpt2 and compares the losses of all updates,
and the likeliest tokens that follow the beginning of the text.

usage: examples/gpt2/pytorch_gpt2.py PROGRAM TEXT [TEXT ...] [options]

PyTorch draws the start values, which the program reads with --start, and both train in float32 on
the CPU, on the windows of the texts in their order. Then both write --sample tokens with what the
program has trained, the program with a cache of keys. Prints the losses of each update, the number
of equal tokens and the largest difference; status 1 if that is above --limit, or for other tokens.
examples/gpt2/loss.svg was drawn by
  examples/gpt2/pytorch_gpt2.py build/bin/train_gpt2 TEXT --iterations 200 --svg examples/gpt2/loss.svg
Needs Python packages numpy and torch.
"""
import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import torch
from torch import nn
from torch.nn import functional

SIZES = {"nano": (2, 128), "tiny": (4, 256), "small": (12, 768)}  # layers, width
LR, DECAY, CLIP, BETAS = 6e-4, 0.1, 1.0, (0.9, 0.95)  # those of train_gpt2


def gelu_tanh(x):
    return functional.gelu(x, approximate="tanh")


class Gpt2(nn.Module):
    def __init__(self, layers, width, vocabulary, positions):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0, activation=gelu_tanh,
                                       batch_first=True, norm_first=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for name, p in self.named_parameters():
            if p.dim() > 1:
                last = name.endswith(("out_proj.weight", "linear2.weight"))
                nn.init.normal_(p, std=0.02 / math.sqrt(2 * layers) if last else 0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(p)

    def forward(self, ids):
        h = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.layers:
            h = layer(h, src_mask=mask, is_causal=True)
        return self.norm(h) @ self.tokens.weight.T


def catena_name(name):
    """layers.0.norm1.weight: layers/0/norm1/gamma."""
    path, _, last = name.replace(".", "/").rpartition("/")
    if "norm" in path.rpartition("/")[2]:
        return f"{path}/{'gamma' if last == 'weight' else 'beta'}"
    return f"{path}/{last.replace('weight', 'W').replace('bias', 'b')}"


def rate(step, options):
    if step < options.warmup:
        return LR * (step + 1) / options.warmup
    total = max(1, options.iterations - options.warmup)
    part = min(1, (step - options.warmup) / total)
    return LR / 10 + (LR - LR / 10) * (1 + math.cos(math.pi * part)) / 2


def batches(options):
    """Windows of the first nine tenths, one after the other, as (batchsize, context + 1)."""
    text = numpy.concatenate([numpy.fromfile(file, numpy.uint8) for file in options.text])
    text = text[:len(text) - len(text) // 10]
    windows, batch = (len(text) - 1) // options.context, options.batchsize
    if windows < batch:
        sys.exit(f"pytorch_gpt2: the text has {windows} windows, fewer than the {batch} of an update")
    for step in range(options.iterations):
        first = step % (windows // batch) * batch
        rows = [text[i * options.context:][:options.context + 1] for i in range(first, first + batch)]
        yield torch.from_numpy(numpy.stack(rows).astype(numpy.int64))


def first_letters(options):
    """Five of the first text, without what a terminal would not show."""
    letters = bytes(b for b in pathlib.Path(options.text[0]).read_bytes() if 32 <= b < 127)
    return letters[:5]


def losses_of_pytorch(model, options):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": DECAY}, {"params": vectors, "weight_decay": 0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS)
    losses = []
    for step, rows in enumerate(batches(options)):
        for group in optimizer.param_groups:
            group["lr"] = rate(step, options)
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of_catena(start, folder, options):
    subprocess.run([options.program, "--device=cpu", "--in-order", "--report=1", "--valid-batches=1",
                    f"--start={start}", f"--batchsize={options.batchsize}",
                    f"--iterations={options.iterations}", f"--warmup={options.warmup}",
                    f"--out={folder}", "--text", *options.text], check=True, stdout=subprocess.DEVNULL)
    return [row["train_loss"] for row in json.loads((folder / "log.json").read_text())]


# The tokens ---------------------------------------------------------------------------------------
@torch.no_grad()
def tokens_of_pytorch(model, trained, prompt, options):
    """The likeliest token behind the last --context ones, again and again, as bytes."""
    with numpy.load(trained) as arrays:
        for name, p in model.named_parameters():
            p.copy_(torch.from_numpy(arrays[catena_name(name)]))
    model.eval()
    tokens = list(prompt)
    while len(tokens) < len(prompt) + options.sample:
        tokens.append(int(model(torch.tensor([tokens[-options.context:]]))[0, -1].argmax()))
    return bytes(tokens)


def tokens_of_catena(trained, prompt, options):
    written = subprocess.run([options.program, "--device=cpu", f"--start={trained}", "--temperature=0",
                              f"--sample={options.sample}", "--prompt", prompt.decode()],
                             check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return written.removesuffix(b"\n")


def without_escapes(text):
    """The program prints bytes that do not belong on a terminal as \\x1b, by rules of its own."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), text)


def equal_count(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


# The drawing ----------------------------------------------------------------------------------------
CATENA, PYTORCH, GREY = "#2563eb", "#ea580c", "#8a8f98"
LEFT, TOP, WIDTH, HEIGHT = 60, 60, 280, 190  # of the first pair of axes
SECOND = 440


def text_at(x, y, content, anchor="middle", color=GREY, weight="400"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" '
            f'fill="{color}">{content}</text>')


def line_at(x1, y1, x2, y2):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{GREY}" '
            f'stroke-opacity="0.3"/>')


def axes(left, title, count, low, high, ticks):
    """Lines and numbers; ticks are (value, text) between low and high."""
    parts = [text_at(left, TOP - 14, title, "start", weight="600")]
    for value, label in ticks:
        y = TOP + HEIGHT * (high - value) / (high - low)
        parts += [line_at(left, y, left + WIDTH, y), text_at(left - 8, y + 4, label, "end")]
    for step in (1, count // 2, count):
        parts.append(text_at(left + WIDTH * (step - 1) / max(count - 1, 1), TOP + HEIGHT + 18, str(step)))
    return parts


def points(left, values, low, high):
    for i, value in enumerate(values):
        yield (left + WIDTH * i / max(len(values) - 1, 1), TOP + HEIGHT * (high - value) / (high - low))


def curve(left, values, low, high, color):
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points(left, values, low, high))
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>'


def drawing(ours, theirs):
    low, high = math.floor(min(ours + theirs)), math.ceil(max(ours + theirs))
    logs = [math.log10(max(abs(a - b), 1e-8)) for a, b in zip(ours, theirs)]
    loss_ticks = [(v, str(v)) for v in range(low, high + 1)]
    parts = [*axes(LEFT, "loss by update", len(ours), low, high, loss_ticks),
             curve(LEFT, ours, low, high, CATENA)]
    shown = list(points(LEFT, theirs, low, high))
    for x, y in shown[::max(1, len(shown) // 25)]:
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="none" stroke="{PYTORCH}"/>')
    parts += [*axes(SECOND, "difference of the losses", len(ours), -8, -3,
                    [(e, f"1e{e}") for e in range(-8, -2)]), curve(SECOND, logs, -8, -3, GREY)]
    for x, name, color in ((210, "catena", CATENA), (280, "PyTorch", PYTORCH)):
        parts.append(text_at(x, TOP - 14, name, "start", color))
    return ('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 290" font-family="sans-serif" '
            'font-size="12">\n' + "\n".join(parts) + "\n</svg>\n")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("text", nargs="+")
    parser.add_argument("--size", choices=SIZES, default="nano")
    for name, value in (("context", 64), ("batchsize", 8), ("iterations", 20), ("warmup", 10), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--sample", type=int, default=100)
    parser.add_argument("--limit", type=float, default=1e-4)
    parser.add_argument("--svg")
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    torch.manual_seed(options.seed)
    model = Gpt2(*SIZES[options.size], 256, options.context)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        start = folder / "start.npz"
        numpy.savez(start, **{catena_name(n): p.detach().numpy() for n, p in model.named_parameters()})
        ours = losses_of_catena(start, folder / "result", options)
        theirs = losses_of_pytorch(model, options)
        trained, prompt = folder / "result/model.npz", first_letters(options)
        text = without_escapes(tokens_of_catena(trained, prompt, options))
        expected = without_escapes(tokens_of_pytorch(model, trained, prompt, options))
    print("update    catena   PyTorch  difference")
    for step, (a, b) in enumerate(zip(ours, theirs), 1):
        print(f"{step:6} {a:9.6f} {b:9.6f}  {abs(a - b):.1e}")
    largest = max(abs(a - b) for a, b in zip(ours, theirs))
    if text == expected:
        print(f"equal tokens: {options.sample}")
    else:
        print(f"the tokens differ from letter {equal_count(text, expected)} on:\n{text!a}\n{expected!a}")
    print(f"largest difference {largest:.1e}")
    if options.svg:
        pathlib.Path(options.svg).write_text(drawing(ours, theirs))
    return 0 if largest <= options.limit and text == expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
