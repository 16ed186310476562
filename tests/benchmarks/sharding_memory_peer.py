#!/usr/bin/env python3
"""The case of bench_sharding_memory with PyTorch's FSDP2, each layer wrapped.

  python3 -m torch.distributed.run --nproc-per-node 2 tests/benchmarks/sharding_memory_peer.py [WIDTH [LAYERS]]
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

STEPS, BATCH = 10, 1024


def used_mib():
    free, total = torch.cuda.mem_get_info()
    return (total - free) / 2**20


def make_model(width, layers):
    """Made without memory, as one whole copy would be the highest moment."""
    with torch.device("meta"):
        model = nn.Sequential(*(m for _ in range(layers) for m in (nn.Linear(width, width), nn.ReLU())))
    for module in model:
        if isinstance(module, nn.Linear):
            fully_shard(module)
    fully_shard(model)
    model.to_empty(device="cuda")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(0, 0.01) if parameter.dim() > 1 else parameter.zero_()
    return model


def main():
    width = int(sys.argv[1]) if len(sys.argv) > 1 else 8192
    layers = int(sys.argv[2]) if len(sys.argv) > 2 else 16
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    torch.zeros(1, device=device)
    base = used_mib()
    model = make_model(width, layers)
    optimizer = torch.optim.Adam(model.parameters(), 1e-5, fused=True)
    x = torch.randn(BATCH, width, device=device)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    torch.cuda.synchronize()
    took = (time.perf_counter() - start) / STEPS
    if dist.get_rank() == 0:
        print(f"| {layers} x Linear({width}), FSDP2 of PyTorch {torch.__version__}, with NCCL's buffers | eager "
              f"| {used_mib() - base:.0f} MiB | {took * 1e3:.1f} ms |")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
