#!/usr/bin/env python3
"""The pipelines of bench_pipeline with torch.distributed.pipelining: 16 x (Linear(4096), relu), tf32,
16 micro-batches of 512, SGD, mean squared error against zeros. A rank of four prints milliseconds a step.

  python3 -m torch.distributed.run --nproc-per-node 4 pipeline_peers.py
"""
import torch_ranks

LAYERS, WIDTH, MICRO_BATCHES, BATCH = 16, 4096, 16, 16 * 512


def stage_numbers(name, rank, ranks):
    """The stages of a rank: one; two, in rounds; or two, as a V."""
    if name in ("GPipe", "1F1B"):
        return [rank]
    if name == "ZBVZeroBubble":
        return [rank, 2 * ranks - 1 - rank]
    return [rank, rank + ranks]


def make_schedule(torch, name, rank, ranks, device):
    from torch.distributed import pipelining
    numbers = stage_numbers(name, rank, ranks)
    count = ranks * len(numbers)
    stages = []
    for number in numbers:
        layers = []
        for _ in range(LAYERS // count):
            layers += [torch.nn.Linear(WIDTH, WIDTH, device=device), torch.nn.ReLU()]
        stages.append(pipelining.PipelineStage(torch.nn.Sequential(*layers), number, count, device))
    kind = getattr(pipelining, "Schedule" + name)
    only = stages[0] if len(stages) == 1 else stages
    schedule = kind(only, MICRO_BATCHES, loss_fn=torch.nn.functional.mse_loss)
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    return schedule, parameters, 0 in numbers, count - 1 in numbers


def time_schedule(torch, name, rank, ranks, device):
    schedule, parameters, first, last = make_schedule(torch, name, rank, ranks, device)
    rule = torch.optim.SGD(parameters, lr=1e-6)
    x = torch.randn(BATCH, WIDTH, device=device)
    t = torch.zeros(BATCH, WIDTH, device=device)

    def step():
        rule.zero_grad()
        schedule.step(*([x] if first else []), **({"target": t, "losses": []} if last else {}))
        rule.step()

    return torch_ranks.median_ms(torch, step, 3, 9, 5)


def main():
    started = torch_ranks.start()
    if started is None:
        return
    torch, rank, ranks, device = started
    torch.backends.cuda.matmul.allow_tf32 = True
    if rank == 0:
        print(f"| schedule | PyTorch {torch.__version__}, {ranks} ranks |\n|---|---|", flush=True)
    for name in ("GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble"):
        milliseconds = time_schedule(torch, name, rank, ranks, device)
        if rank == 0:
            print(f"| {name} | {milliseconds:.1f} ms |", flush=True)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
