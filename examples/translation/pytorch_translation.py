#!/usr/bin/env python3
"""Trains the same translator with PyTorch and with train_translation and compares the losses of all
updates, and translations.

usage: examples/translation/pytorch_translation.py PROGRAM SOURCE TARGET [options]

The program trains on the first pairs of the two files. From its weights both train in float32 on
the CPU, on the same pairs in their order, once. Then both translate the first lines with what
the program has trained, the likeliest word after the other, the program with a cache of keys.
Prints the losses of each update, the number of equal translations and the largest difference;
status 1 if that is above --limit, or for other translations. Needs Python packages numpy and torch.
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

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "gpt2"))
from pytorch_gpt2 import catena_name  # noqa: E402

# Those of train_translation.
LR, DECAY, CLIP, BETAS, SMOOTHING, DEPTH = 1e-3, 0.01, 1.0, (0.9, 0.98), 0.1, 32
BEGIN, END, UNKNOWN, NOTHING = 0, 1, 2, -1
WORD = re.compile(rb"[A-Za-z0-9'\x80-\xff]+|[\x21-\x7e]")


class Translator(nn.Module):
    def __init__(self, layers, width, vocabulary):
        super().__init__()
        form = {"nhead": width // DEPTH, "dim_feedforward": 4 * width, "dropout": 0,
                "batch_first": True, "norm_first": True}
        self.tokens = nn.Embedding(vocabulary, width)
        self.encoder = nn.ModuleList(nn.TransformerEncoderLayer(width, **form) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.TransformerDecoderLayer(width, **form) for _ in range(layers))
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def load(self, file):
        with numpy.load(file) as arrays, torch.no_grad():
            for name, p in self.named_parameters():
                p.copy_(torch.from_numpy(arrays[catena_name(name)]))

    def vectors(self, ids):
        width = self.tokens.weight.shape[1]
        rates = torch.exp(torch.arange(width // 2) * (-math.log(10000) / (width // 2)))
        angles = torch.arange(ids.shape[1])[:, None] * rates
        known = (ids != NOTHING)[:, :, None]
        return (self.tokens(ids.clamp(min=0)) * known * math.sqrt(width)
                + torch.cat([angles.sin(), angles.cos()], -1))

    def forward(self, source, ids):
        """Scores of the words behind each one."""
        is_padding, memory = source == NOTHING, self.vectors(source)
        for layer in self.encoder:
            memory = layer(memory, src_key_padding_mask=is_padding)
        memory, h = self.encoder_norm(memory), self.vectors(ids)
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        for layer in self.decoder:
            h = layer(h, memory, tgt_mask=mask, tgt_is_causal=True,
                      memory_key_padding_mask=is_padding)
        return self.decoder_norm(h) @ self.tokens.weight.T


# The text -------------------------------------------------------------------------------------------
def words_of(line):
    return WORD.findall(line.lower())


def first_pairs(options):
    """Lines of up to --longest words in both languages."""
    pairs = []
    for lines in zip(*(pathlib.Path(file).read_bytes().split(b"\n") for file in (options.source, options.target))):
        if all(1 <= len(words_of(line)) <= options.longest for line in lines):
            pairs.append(lines)
    count = options.batchsize * options.iterations
    if len(pairs) < count:
        sys.exit(f"pytorch_translation: the files have {len(pairs)} pairs of up to {options.longest} "
                 f"words, {options.iterations} updates of {options.batchsize} take {count}")
    return pairs[:count]


def padded(rows):
    length = max(map(len, rows))
    return torch.tensor([row + [NOTHING] * (length - len(row)) for row in rows])


class Vocabulary:
    def __init__(self, file):
        self.pieces = [b"<begin>", b"<end>", b"<unk>", *file.read_bytes().split(b"\n")[1:-1]]
        self.numbers = {piece: i for i, piece in enumerate(self.pieces)}

    def tokens_of(self, line):
        return [self.numbers.get(word, UNKNOWN) for word in words_of(line)]


# The losses -----------------------------------------------------------------------------------------
def run_program(folder, options, *more):
    files = [f"--{name}={folder.parent / file}" for name, file in
             (("source", "source"), ("target", "target"), ("valid-source", "valid-source"),
              ("valid-target", "valid-target"))]
    subprocess.run([options.program, "--device=cpu", "--in-order", "--dropout=0", "--report=1",
                    f"--layers={options.layers}", f"--width={options.width}", "--beam=1",
                    f"--longest={options.longest}", f"--batchsize={options.batchsize}",
                    f"--warmup={options.warmup}", f"--out={folder}", *files, *more],
                   check=True, stdout=subprocess.DEVNULL)
    return [row["train_loss"] for row in json.loads((folder / "log.json").read_text())]


def losses_of_pytorch(model, pairs, vocabulary, options):
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": DECAY},
                                   {"params": vectors, "weight_decay": 0}], lr=LR, betas=BETAS)
    losses = []
    for first in range(0, len(pairs), options.batchsize):
        rows = pairs[first:first + options.batchsize]
        source = padded([vocabulary.tokens_of(a) for a, _ in rows])
        target = padded([[BEGIN, *vocabulary.tokens_of(b), END] for _, b in rows])
        n = len(losses) + 1
        for group in optimizer.param_groups:
            group["lr"] = LR * min(n / options.warmup, math.sqrt(options.warmup / n))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(source, target[:, :-1]).flatten(0, 1),
                                        target[:, 1:].flatten(), ignore_index=NOTHING,
                                        label_smoothing=SMOOTHING)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


# The translations -----------------------------------------------------------------------------------
@torch.no_grad()
def translation_of_pytorch(model, line, vocabulary):
    """The likeliest word behind all words before it, again and again."""
    source, words = vocabulary.tokens_of(line), [BEGIN]
    while len(words) <= 2 * len(source) + 20:
        words.append(int(model(torch.tensor([source]), torch.tensor([words]))[0, -1].argmax()))
        if words[-1] == END:
            return b" ".join(vocabulary.pieces[i] for i in words[1:-1])
    return b" ".join(vocabulary.pieces[i] for i in words[1:])


def translations_of_catena(folder, file, options):
    return subprocess.run([options.program, "--device=cpu", "--beam=1", f"--out={folder}",
                           f"--translate={file}"], check=True,
                          stdout=subprocess.PIPE).stdout.removesuffix(b"\n").split(b"\n")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("program", "source", "target"):
        parser.add_argument(name)
    for name, value in (("layers", 2), ("width", 64), ("longest", 30), ("batchsize", 8),
                        ("iterations", 20), ("warmup", 10), ("before", 10), ("translate", 10)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--limit", type=float, default=1e-4)
    return parser.parse_args(arguments)


def main(arguments):
    options = parse(arguments)
    pairs = first_pairs(options)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for which, rows in (("", pairs), ("valid-", pairs[:options.translate])):
            for file, lines in zip(("source", "target"), zip(*rows)):
                (folder / (which + file)).write_bytes(b"\n".join(lines) + b"\n")
        run_program(folder / "start", options, f"--epoch={options.before}")
        start = folder / "start/model.npz"
        ours = run_program(folder / "result", options, "--epoch=1", f"--start={start}")
        vocabulary = Vocabulary(folder / "result/vocabulary.txt")
        model = Translator(options.layers, options.width, len(vocabulary.pieces))
        model.load(start)
        theirs = losses_of_pytorch(model, pairs, vocabulary, options)
        model.load(folder / "result/model.npz")
        model.eval()
        texts = translations_of_catena(folder / "result", folder / "valid-source", options)
        expected = [translation_of_pytorch(model, a, vocabulary) for a, _ in pairs[:options.translate]]
    print("update    catena   PyTorch  difference")
    for step, (a, b) in enumerate(zip(ours, theirs), 1):
        print(f"{step:6} {a:9.6f} {b:9.6f}  {abs(a - b):.1e}")
    for a, b in zip(texts, expected):
        if a != b:
            print(f"catena:  {a.decode()}\nPyTorch: {b.decode()}")
    print(f"equal translations: {sum(a == b for a, b in zip(texts, expected))} of {len(expected)}, "
          f"{len(set(expected))} different ones")
    largest = max(abs(a - b) for a, b in zip(ours, theirs))
    print(f"largest difference {largest:.1e}")
    return 0 if largest <= options.limit and texts == expected else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
