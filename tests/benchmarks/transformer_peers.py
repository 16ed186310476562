#!/usr/bin/env python3
"""Training steps of transformers with PyTorch, beside bench_transformers and train_gpt2 --bench.

On a GPU each in bfloat16 with fused AdamW, eager or compiled; prints milliseconds of a step (the
median), tokens or images a second, and the most memory that tensors had.

    python3 transformer_peers.py [gpt2] [qwen] [vit] [--eager] [--autocast]

On a CPU small ones in float32, catena, PyTorch and PyTorch compiled in turn, one step each; prints
the shortest step and the median, and catena's by theirs. Each is a process of its own.

    python3 transformer_peers.py --beside build/bin/bench_transformers [--threads 1] [--rounds 15] [--eager]
"""
import argparse
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

from peer_worker import Worker

DTYPE = torch.bfloat16
# Requests of bench_transformers: what is trained, batch, tokens.
CPU_CASES = {"gpt2 4 256": "GPT-2, 4 layers, 256 wide, bytes, 4 x 256",
             "gpt2 2 1024": "the same, 2 x 1024",
             "vit-tiny 8": "ViT-Ti/16, batch 8"}


class SelfAttention(nn.Module):
    def __init__(self, size, heads, groups=None, bias=True, out_bias=True, rotary=None, causal=True):
        super().__init__()
        self.heads, self.groups, self.rotary, self.causal = heads, groups or heads, rotary, causal
        self.depth = size // heads
        self.project = nn.Linear(size, (heads + 2 * self.groups) * self.depth, bias=bias)
        self.out = nn.Linear(size, size, bias=out_bias)

    def turned(self, x):
        half = self.depth // 2
        steps = torch.arange(half, device=x.device, dtype=torch.float32) / half
        angles = torch.outer(torch.arange(x.shape[2], device=x.device), self.rotary ** -steps)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        a, b = x[..., :half], x[..., half:]
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x):
        b, t, c = x.shape
        sizes = [c, self.groups * self.depth, self.groups * self.depth]
        q, k, v = (part.view(b, t, -1, self.depth).transpose(1, 2)
                   for part in self.project(x).split(sizes, 2))
        if self.rotary:
            q, k = self.turned(q), self.turned(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal,
                                           enable_gqa=self.groups != self.heads)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    """A block with normalizations before its parts, as in GPT-2 and ViT."""

    def __init__(self, size, heads, causal, approximate):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = SelfAttention(size, heads, causal=causal)
        self.inner, self.outer = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.approximate = approximate

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.outer(F.gelu(self.inner(self.norm2(x)), approximate=self.approximate))


class QwenBlock(nn.Module):
    def __init__(self, size=1536, heads=12, groups=2, inner=8960):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(size, 1e-6), nn.RMSNorm(size, 1e-6)
        self.attention = SelfAttention(size, heads, groups, out_bias=False, rotary=1e6)
        self.gate, self.up, self.down = (nn.Linear(size, inner, bias=False),
                                         nn.Linear(size, inner, bias=False),
                                         nn.Linear(inner, size, bias=False))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class LanguageModel(nn.Module):
    """The classes are the words again."""

    def __init__(self, words, size, positions, blocks, norm):
        super().__init__()
        self.words = nn.Embedding(words, size)
        self.places = nn.Embedding(positions, size) if positions else None
        self.blocks, self.norm = nn.ModuleList(blocks), norm

    def forward(self, ids, labels):
        h = self.words(ids)
        if self.places:
            h = h + self.places(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            h = block(h)
        scores = F.linear(self.norm(h), self.words.weight)
        return F.cross_entropy(scores.flatten(0, 1), labels.flatten())


class Vit(nn.Module):
    def __init__(self, size=768):  # heads have 64 numbers
        super().__init__()
        self.patches = nn.Conv2d(3, size, 16, 16)
        self.first = nn.Parameter(torch.zeros(1, 1, size))
        self.places = nn.Parameter(torch.zeros(1, 197, size))
        self.blocks = nn.ModuleList(Block(size, size // 64, False, "none") for _ in range(12))
        self.norm, self.classes = nn.LayerNorm(size), nn.Linear(size, 1000)

    def forward(self, images, labels):
        h = self.patches(images).flatten(2).transpose(1, 2)
        h = torch.cat((self.first.expand(len(h), -1, -1), h), 1) + self.places
        for block in self.blocks:
            h = block(h)
        return F.cross_entropy(self.classes(self.norm(h[:, 0])), labels)


def tokens(batch, words):
    return torch.randint(words, (batch, 1024), device="cuda")


def made(name):
    """The model, its batch, and what counts of a step."""
    if name == "gpt2":
        blocks = [Block(768, 12, True, "tanh") for _ in range(12)]
        model = LanguageModel(50304, 768, 1024, blocks, nn.LayerNorm(768))
        return model, (tokens(32, 50304), tokens(32, 50304)), 32 * 1024, "tokens"
    if name == "qwen":
        model = LanguageModel(151936, 1536, 0, [QwenBlock() for _ in range(28)],
                              nn.RMSNorm(1536, 1e-6))
        return model, (tokens(8, 151936), tokens(8, 151936)), 8 * 1024, "tokens"
    images = torch.randn(256, 3, 224, 224, device="cuda", dtype=DTYPE)
    return Vit(), (images, torch.randint(1000, (256,), device="cuda")), 256, "images"


def cpu_step(request, compiled):
    """A training step of a request in float32."""
    name, batch, *more = request.split()
    batch = int(batch)
    if name == "gpt2":
        size = (batch, int(more[0]))
        blocks = [Block(256, 4, True, "tanh") for _ in range(4)]
        model = LanguageModel(256, 256, size[1], blocks, nn.LayerNorm(256))
        data = torch.randint(256, size), torch.randint(256, size)
    else:
        model, data = Vit(192), (torch.randn(batch, 3, 224, 224), torch.randint(1000, (batch,)))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    call = torch.compile(model) if compiled else model

    def step():
        optimizer.zero_grad(set_to_none=True)
        call(*data).backward()
        optimizer.step()

    return step


def serve(options):
    """Answers each request with the seconds of a step; the first line is the name."""
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}" + ("" if options.eager else ", compiled"), flush=True)
    steps = {}
    for request in map(str.strip, sys.stdin):
        if request not in steps:
            steps[request] = cpu_step(request, not options.eager)
            steps[request]()
        start = time.perf_counter()
        steps[request]()
        print(time.perf_counter() - start, flush=True)


def run_beside(options):
    torch_command = [sys.executable, __file__, "--serve", "--threads", str(options.threads)]
    workers = [Worker([options.beside, "serve"], options.threads, "catena"),
               Worker(torch_command + ["--eager"], options.threads)]
    if not options.eager:
        workers.append(Worker(torch_command, options.threads))
    print(f"| float32, {options.threads} thread(s), ms | " + " | ".join(w.name for w in workers) + " | ratios |")
    print("|---" * (len(workers) + 2) + "|")
    for request, title in CPU_CASES.items():
        times = [[] for _ in workers]
        for _ in range(options.rounds):
            for worker, own in zip(workers, times):
                own.append(1e3 * float(worker.ask(request)))
        pairs = [(min(own), statistics.median(own)) for own in times]
        ratios = "; ".join(f"{pairs[0][0] / s:.2f}, {pairs[0][1] / m:.2f}" for s, m in pairs[1:])
        print(f"| {title} | " + " | ".join(f"{s:.1f}, {m:.1f}" for s, m in pairs) + f" | {ratios} |",
              flush=True)


def run(name, options):
    torch.manual_seed(0)
    with torch.device("cuda"):
        model, batch, count, unit = made(name)
    if not options.autocast:
        model.to(DTYPE)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=0.02)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-4, fused=True)
    call = model if options.eager else torch.compile(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", DTYPE, enabled=options.autocast):
            loss = call(*batch)
        loss.backward()
        optimizer.step()

    for _ in range(5):
        step()
    times = []
    for _ in range(15):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    time = sorted(times)[len(times) // 2]
    way = ("eager" if options.eager else "compiled") + (", autocast" if options.autocast else "")
    print(f"| {name}, PyTorch {torch.__version__}, {way} | {time:.2f} ms | "
          f"{count / time * 1e3:.0f} {unit}/s | "
          f"{torch.cuda.max_memory_allocated() / 2**30:.1f} GiB |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", default=["gpt2", "qwen", "vit"])
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--beside", metavar="BENCH_TRANSFORMERS", help="on the CPU, in turn with it")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    if options.beside:
        return run_beside(options)
    for name in options.models:
        run(name, options)


if __name__ == "__main__":
    main()
