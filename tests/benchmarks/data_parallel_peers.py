#!/usr/bin/env python3
"""The steps of bench_data_parallel with PyTorch's DistributedDataParallel and ZeroRedundancyOptimizer.

  python3 -m torch.distributed.run --nproc-per-node 4 data_parallel_peers.py
"""
import torch_ranks

WIDTH, LAYERS, BATCH = 4096, 8, 1024


def slowest_ms(torch, step, calls):
    """Of a call on the slowest rank."""
    slowest = torch.tensor(torch_ranks.median_ms(torch, step, 5, 7, calls), device="cuda")
    torch.distributed.all_reduce(slowest, torch.distributed.ReduceOp.MAX)
    return slowest.item()


def mnist(torch, device):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(784, 1000), nn.ReLU(), nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10))
    model = nn.parallel.DistributedDataParallel(net.to(device))
    rule = torch.optim.SGD(model.parameters(), lr=0.01)
    images = torch.rand(60000, 784, device=device)
    labels = torch.randint(0, 10, (60000,), device=device)
    order = torch.randperm(60000, device=device)
    position = [0]

    def step():
        places = order[position[0]:position[0] + 100]
        position[0] = (position[0] + 100) % 60000
        rule.zero_grad()
        nn.functional.cross_entropy(model(images[places]), labels[places]).backward()
        rule.step()

    return slowest_ms(torch, step, 200)


def linear_stack(torch, device, way, batch=BATCH, calls=20):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    from torch.distributed.optim import ZeroRedundancyOptimizer
    layers = []
    for _ in range(LAYERS):
        layers += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()]
    torch.cuda.reset_peak_memory_stats()
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers[:-1]).to(device),
                                                      gradient_as_bucket_view=True)
    if "bfloat16" in way:
        model.register_comm_hook(None, default_hooks.bf16_compress_hook)
    if "sharded" in way:
        rule = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=1e-3)
    elif way.startswith("Adam"):
        rule = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    else:
        rule = torch.optim.SGD(model.parameters(), lr=1e-2)
    x = torch.rand(batch, WIDTH, device=device)
    t = torch.zeros(batch, WIDTH, device=device)

    def step():
        rule.zero_grad()
        torch.nn.functional.mse_loss(model(x), t).backward()
        rule.step()

    return slowest_ms(torch, step, calls), torch.cuda.max_memory_allocated() / 2**30


def main():
    started = torch_ranks.start()
    if started is None:
        return
    torch, rank, ranks, device = started

    def row(name, milliseconds, gib=None):
        if rank == 0:
            memory = "" if gib is None else f"{gib:.2f} GiB"
            print(f"| {name} | {milliseconds:.3f} ms | {memory} |", flush=True)

    if rank == 0:
        print(f"| step | PyTorch {torch.__version__}, {ranks} ranks | memory |\n|---|---|---|", flush=True)
    for tf32 in (False, True):
        torch.backends.cuda.matmul.allow_tf32 = tf32
        row(f"MNIST, batch 100 a rank, SGD, {'tf32' if tf32 else 'float32'}", mnist(torch, device))
    for way in ("SGD", "SGD, bfloat16 gradients", "Adam", "Adam, sharded states"):
        row(f"8 x Linear({WIDTH}), {way}, tf32", *linear_stack(torch, device, way))
    row(f"8 x Linear({WIDTH}), batch {20 * BATCH} a rank, SGD, tf32",
        linear_stack(torch, device, "SGD", 20 * BATCH, 4)[0])
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
