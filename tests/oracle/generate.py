#!/usr/bin/env python3
"""Writes a file of cases, computed by NumPy, for test_oracle. Start it through tests/oracle/run."""
import argparse
import importlib
import os
import pathlib
import sys
import warnings

os.environ.setdefault("NPY_PROMOTION_STATE", "weak")  # NumPy 2's rules in NumPy 1.24 to 1.26
# Of NumPy 2.4 np.sort gives float16 with many equal numbers unsorted on processors with these.
os.environ.setdefault("NPY_DISABLE_CPU_FEATURES", "AVX512_ICL AVX512_SPR")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of features that this NumPy does not know
    import numpy as np  # noqa: E402

from generator import CaseWriter, Gen  # noqa: E402


def families():
    here = pathlib.Path(__file__).parent
    return [importlib.import_module(p.stem) for p in sorted(here.glob("cases_*.py"))]


def routines(only):
    """{name: (weight, generator)} of all families."""
    table = {}
    for family in families():
        for name, entry in family.routines().items():
            if name in table:
                sys.exit(f"generate.py: two families have a routine {name}")
            if not only or only in name:
                table[name] = entry
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=20000)
    parser.add_argument("--only", default="")
    parser.add_argument("file")
    arguments = parser.parse_args()
    weak = (np.array(1, np.int8) + 1).dtype == np.int8
    if not weak or (np.zeros(1, np.float32) + np.float64(1)).dtype != np.float64:
        sys.exit(f"generate.py: NumPy {np.__version__} does not promote as NumPy 2; "
                 "1.24 or newer is needed")
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    table = routines(arguments.only)
    if not table:
        sys.exit(f"generate.py: no routine is named like {arguments.only!r}")
    total = sum(weight for weight, _ in table.values())
    writer = CaseWriter()
    for name, (weight, generate) in table.items():
        g = Gen(arguments.seed, name, writer)
        for _ in range(max(4, -(-arguments.cases * weight // total))):
            generate(g)
    writer.save(arguments.file, {"origin": f"NumPy {np.__version__}", "seed": arguments.seed})


if __name__ == "__main__":
    main()
