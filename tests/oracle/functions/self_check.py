#!/usr/bin/env python3
"""Checks the oracle without PyTorch: catena computes the stored cases of stored.npz, some of
each function; and when a number of their expected results is changed, each of these cases fails.

    self_check.py PROGRAM
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("SKIPPED: no NumPy for this Python; apt-get install python3-numpy")
    sys.exit(77)

STORED = pathlib.Path(__file__).parent / "stored.npz"


def run(program, path):
    """How many cases passed and failed, and what was printed."""
    done = subprocess.run([program, path], capture_output=True, text=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", done.stdout, re.M)
    if not counts:
        sys.exit(f"self_check.py: {program} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return int(counts[1]), int(counts[2]), done.stdout


def changed(members, result):
    """The cases that have an expected result of this number with elements, each with another first
    element: its last bytes are those of larger numbers of the other sign."""
    buffer, lines = members["buffer"].copy(), []
    for line in bytes(members["cases"]).decode().splitlines():
        case = json.loads(line)
        expected = case["e"][result:result + 1]
        if not expected or expected[0]["l"][1] == 0:
            continue
        width = {"float64": 8, "float32": 4, "int64": 8}.get(expected[0]["d"], 2)
        for bound in "lh":
            if bound in expected[0]:
                buffer[expected[0][bound][0] + width - 1] ^= 0x81
        lines.append(line)
    text = "\n".join(lines) + "\n"
    return members | {"buffer": buffer, "cases": np.frombuffer(text.encode(), np.uint8)}, len(lines)


def main():
    program = sys.argv[1]
    passed, failed, printed = run(program, STORED)
    if failed or not passed:
        sys.exit(f"self_check.py: {failed} stored cases failed\n{printed}")
    members = dict(np.load(STORED))
    with tempfile.TemporaryDirectory() as folder:
        for result in range(3):
            path = pathlib.Path(folder) / "changed.npz"
            other, count = changed(members, result)
            np.savez(path, **other)
            wrong = subprocess.run([program, path, "--partial"], capture_output=True, text=True)
            if f"0 passed, {count} failed" not in wrong.stdout:
                sys.exit(f"self_check.py: {count} cases with a wrong result {result} should fail\n"
                         + wrong.stdout)
    print(f"{passed} stored cases pass, and fail when their expected results are changed")


if __name__ == "__main__":
    main()
