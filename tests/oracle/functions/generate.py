#!/usr/bin/env python3
"""Writes a file of cases, computed by PyTorch, for test_function_oracle. Start it through
tests/oracle/functions/run."""
import argparse
import importlib
import pathlib
import sys
import warnings

sys.path.append(str(pathlib.Path(__file__).parent.parent))
import numpy as np  # noqa: E402
import torch  # noqa: E402

from case import FunctionGen  # noqa: E402
from generator import CaseWriter  # noqa: E402


def functions(only):
    """{name: (weight, generator)} of all families."""
    here = pathlib.Path(__file__).parent
    table = {}
    for path in sorted(here.glob("family_*.py")):
        for name, entry in importlib.import_module(path.stem).functions().items():
            if name in table:
                sys.exit(f"generate.py: two families have a function {name}")
            if only in name:
                table[name] = entry
    return table


def numbered(table, cases):
    """The cases: (function, number), each function with its share."""
    total = sum(weight for weight, _ in table.values())
    for name, (weight, _) in table.items():
        for number in range(max(4, -(-cases * weight // total))):
            yield name, number


def small_case(seed, name, generate):
    """The number of a case of few bytes, but not of none."""
    sizes = {}
    for number in range(40):
        writer = CaseWriter()
        generate(FunctionGen(seed, name, number, writer, small=True))
        sizes[writer.offset] = number
    return name, sizes[min(sizes, key=lambda size: (size < 400, size))]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", default="", help="FUNCTION/NUMBER")
    parser.add_argument("--small", action="store_true", help="one small case of each function")
    parser.add_argument("file")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    torch.set_num_threads(1)
    if arguments.case:
        name, _, number = arguments.case.rpartition("/")
        table = functions("")
        if name not in table or not number.isdecimal():
            sys.exit(f"generate.py: expected FUNCTION/NUMBER, such as softmax/3, got {arguments.case!r}")
        cases = [(name, int(number))]
    else:
        table = functions(arguments.only)
        if not table:
            sys.exit(f"generate.py: no function is named like {arguments.only!r}")
        cases = numbered(table, arguments.cases)
        if arguments.small:
            cases = [small_case(arguments.seed, name, table[name][1]) for name in table]
    writer = CaseWriter()
    for name, number in cases:
        try:
            table[name][1](FunctionGen(arguments.seed, name, number, writer, arguments.small))
        except Exception as error:
            error.add_note(f"while case {name}/{number} of seed {arguments.seed} was made")
            raise
    writer.save(arguments.file, {"origin": f"PyTorch {torch.__version__}", "seed": arguments.seed},
                compressed=arguments.small)


if __name__ == "__main__":
    main()
