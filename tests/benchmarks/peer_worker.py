"""What comparisons with PyTorch share: processes that time one library each, and their options.

A process answers each line of a request with one line."""
import argparse
import os
import subprocess
import sys
import time


class Worker:
    """The name is given, or the first line that the process writes."""

    def __init__(self, command, threads, name=None, **settings):
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads),
                           MKL_NUM_THREADS=str(threads), **settings)
        # A library that waits for work does not keep the next one from its core.
        if "OMP_WAIT_POLICY" not in environment:
            environment.setdefault("GOMP_SPINCOUNT", "1000")
            environment.setdefault("KMP_BLOCKTIME", "0")
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment)
        self.name = name or self.process.stdout.readline().strip()

    def ask(self, request):
        self.process.stdin.write(request + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"{self.name} ended at: {request}")
        return answer


def parse_options(description, program, dtypes):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", metavar=program)
    parser.add_argument("--device", default="cpu:0")
    parser.add_argument("--dtypes", default="float32", help=dtypes + "; by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--batch", type=int, help="instead of each one's own")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.05, help="of one library at a time")
    parser.add_argument("--only", nargs="+", default=[], help="the cases whose names contain these texts")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.serve and not options.program:
        parser.error(f"name the program {program}")
    return options


def torch_worker(script, threads, **settings):
    """The script as the process that serves PyTorch, or None where there is none."""
    worker = Worker([sys.executable, script, "--serve", "--threads", str(threads)], threads, **settings)
    if not worker.name.startswith("-"):
        return worker
    print(f"PyTorch is left out: {worker.name[1:]}", file=sys.stderr)
    return None


def served_torch(threads):
    """In the serving process: the module, and its name as the first line, or None and the reason."""
    try:
        import torch
    except ImportError as error:
        print(f"-{error}", flush=True)
        return None
    torch.set_num_threads(threads)
    print(f"PyTorch {torch.__version__}", flush=True)
    return torch


def lenet(torch):
    """The network "lenet" of examples/mnist."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 20, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10))


def best_of(seconds, call, device, torch, best=min):
    """The seconds of a call: the shortest run, or what `best` makes of all."""
    def timed(calls):
        if device == "cpu":
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e-3 / calls
    timed(2)
    calls = max(1, int(2e-3 / timed(1)))
    runs, end = [], time.perf_counter() + seconds
    while len(runs) < 3 or time.perf_counter() < end:
        runs.append(timed(calls))
    return best(runs)
