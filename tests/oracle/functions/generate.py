#!/usr/bin/env python3
"""Writes a file of cases, computed by PyTorch, for test_function_oracle. Start it through
tests/oracle/functions/run."""
import argparse
import importlib
import json
import pathlib
import sys
import warnings

sys.path.append(str(pathlib.Path(__file__).parent.parent))
import numpy as np  # noqa: E402
import torch  # noqa: E402

from case import FunctionGen  # noqa: E402
from generator import CaseWriter, encode  # noqa: E402


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


# Cases of a function in the small file, and bytes of one, unless there is no smaller one.
MOST, LARGE = 6, 4000


def kind(value):
    """What counts as another choice of a parameter: flags, names and small numbers are themselves."""
    if value == encode(0.0):
        return 0
    if value is None or isinstance(value, (bool, str)) or isinstance(value, int) and abs(value) < 3:
        return value
    return len(value) if isinstance(value, list) else "given"


def choices(line):
    """The parameters of a case by their kinds; where there are any, also the operand's axes."""
    params = {key: kind(value) for key, value in line["p"].items() if key not in ("wanted", "upstream")}
    if set(params) - {"operands", "second"}:
        params["axes"] = next(len(a["s"]) for a in line["a"] if isinstance(a, dict) and "s" in a)
    return set(params.items())


def small_cases(seed, name, generate):
    """Cases of few bytes, but not of none, each with a choice that those before it have not. float64
    comes first, as it hides least."""
    candidates = []
    for number in range(60):
        writer = CaseWriter()
        case = FunctionGen(seed, name, number, writer, small=True)
        generate(case)
        size = writer.offset
        candidates.append((size < 400, size > LARGE, case.type != "float64", size, number,
                           choices(json.loads(writer.lines[0]))))
    seen, cases = set(), []
    for *_, size, number, chosen in sorted(candidates, key=lambda candidate: candidate[:-1]):
        if not cases or len(cases) < MOST and size <= LARGE and not chosen <= seen:
            seen |= chosen
            cases.append((name, number))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", type=int, default=10000)
    parser.add_argument("--only", default="")
    parser.add_argument("--case", default="", help="FUNCTION/NUMBER")
    parser.add_argument("--small", action="store_true", help="small cases of each function")
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
            cases = [case for name, (_, generate) in table.items()
                     for case in small_cases(arguments.seed, name, generate)]
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
