"""Replays golden vectors through the oracle, bit for bit.

    python check.py [DIR]      # default: this folder

Exit status 0: all agree; 1: a difference; 2: a bad file or no file.
"""

import argparse
import sys
from pathlib import Path

import oracle
from case import BadCase, Case, read


def differences(case: Case) -> list[str]:
    """What in `case` the oracle would have otherwise."""
    found = []
    for c, column in enumerate(case.x or []):
        if oracle.quantise(column) != case.activations[c]:
            found.append(f"activations[{c}] are not the quantised x[{c}]")
    for c, column in enumerate(oracle.matmul(case.kind, case.weights, case.activations)):
        for r, (actual, stored) in enumerate(zip(column, case.expected[c], strict=True)):
            if actual != stored:
                found.append(f"expected[{c}][{r}] is {stored:08x}, the oracle has {actual:08x}")
    for name, job in case.others.items():
        found += [f"{name}: {line}" for line in differences(job)]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dir", type=Path, nargs="?", default=Path(__file__).parent)
    paths = sorted(parser.parse_args().dir.glob("*.safetensors"))
    if not paths:
        print("no golden vectors there", file=sys.stderr)
        return 2
    bad = 0
    for path in paths:
        try:
            found = differences(read(path))
        except BadCase as error:
            print(error, file=sys.stderr)
            return 2
        bad += bool(found)
        for line in found:
            print(f"{path.name}: {line}")
    print(f"{len(paths) - bad} of {len(paths)} cases agree with the oracle")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
