"""A process that times one library: it answers each line of a request with one line."""
import os
import subprocess


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
