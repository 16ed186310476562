"""What the programs share that time PyTorch over the ranks of torch.distributed.run."""
import os
import statistics
import sys
import time


def start():
    """PyTorch with NCCL, this rank, the number of ranks and this rank's GPU; None without PyTorch."""
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is left out: {error}", file=sys.stderr)
        return None
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    device = torch.device("cuda", rank)
    torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl", device_id=device)
    return torch, rank, ranks, device


def median_ms(torch, step, warm_up, runs, calls):
    """Of a call on this rank; all ranks start a run together."""
    for _ in range(warm_up):
        step()
    seconds = []
    for _ in range(runs):
        torch.distributed.barrier()
        torch.cuda.synchronize()
        start_of_run = time.perf_counter()
        for _ in range(calls):
            step()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - start_of_run) / calls)
    return statistics.median(seconds) * 1e3
