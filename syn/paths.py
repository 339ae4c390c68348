"""Longest combinational paths of a netlist that Yosys has mapped to AMD cells.

Yosys's `ltp` counts cells, a carry cell as much as a LUT, and its `sta` knows no nets. Here a path
is weighed: each cell costs what the tables below say, each net that leaves a slice NET. The tables
are of the 7 series; UltraScale+ has no open ones. So a weight is for comparing paths with each
other, and says nothing of what a placed design reaches.
"""

import re
from dataclasses import dataclass, field

# Picoseconds, from Yosys's share/xilinx/cells_sim.v (prjxray's timings of an Artix-7).
CLOCK_TO_Q = 303
# A LUT's inputs, from the last: the slowest signal is given the fastest.
LUT = (127, 238, 407, 472, 631, 642)
MUXF = 296
CARRY_IN = 508  # S or DI to the cell's carry out
CARRY_PASS = 114  # a cell passed
CARRY_SUM = 313  # carry in to a sum bit
CARRY_ALONE = 618  # S or DI to a sum bit of the same cell
LUT_RAM_CLOCK = 1153
SRL_CLOCK = 1472
BLOCK_RAM_CLOCK = {0: 2454, 1: 882}  # without, with output register
DSP_CLOCK = {0: 1400, 1: 329}  # without, with register P
DSP_SETUP = {0: 2800, 1: 0}  # of A or B: through the multiplier, or into the operand's register
# A net between slices, as Yosys's mapper reckons for this family (`synth_xilinx`: abc9 -W 300).
NET = 300

FLIP_FLOP = re.compile(r"FD[RSCP]E$")
LUT_RAM = re.compile(r"RAM(32|64|128|256)[MX]")
COMBINATIONAL = re.compile(r"LUT\d$|INV$|MUXF\d$|CARRY\d$|RAM(32|64|128|256)[MX]|SRL")
PAD = re.compile(r"[IO]BUF$|BUFG$")
REGISTERED_OPERAND = {"A": "AREG", "B": "BREG", "C": "CREG"}


@dataclass
class Path:
    """The worst path into one register or memory."""

    end: str
    start: str
    picoseconds: int
    luts: int  # logic levels without carry: LUTs, LUT RAMs, wide multiplexers
    carries: int


@dataclass
class Arrival:
    """At a net: when, after how many cells, from where."""

    time: int
    luts: int
    carries: int
    start: str


@dataclass
class Netlist:
    cells: dict
    names: dict = field(default_factory=dict)  # bit to name
    driver: dict = field(default_factory=dict)  # bit to (cell, port, index)
    arrivals: dict = field(default_factory=dict)

    def __init__(self, module):
        self.cells = module["cells"]
        self.names, self.driver, self.arrivals = {}, {}, {}
        for name, net in module["netnames"].items():
            for bit in net["bits"]:
                if not name.startswith("$") or bit not in self.names:
                    self.names[bit] = name
        for name, cell in self.cells.items():
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] == "output":
                    for index, bit in enumerate(bits):
                        self.driver[bit] = (name, port, index)

    def arrival(self, bit):
        """When the net settles; with a stack of its own, as paths are deep."""
        stack = [bit]
        while stack:
            top = stack[-1]
            if top in self.arrivals:
                stack.pop()
                continue
            missing = [b for b in self.inputs_of(top) if b not in self.arrivals]
            if missing:
                stack.extend(missing)
            else:
                self.arrivals[top] = self.at(top)
                stack.pop()
        return self.arrivals[bit]

    def inputs_of(self, bit):
        """The nets whose values this one follows within a cycle."""
        if bit not in self.driver:
            return []
        name, port, index = self.driver[bit]
        cell = self.cells[name]
        ports = cell["connections"]
        kind = cell["type"]
        if kind.startswith("CARRY"):
            below = index + 1 if port == "O" else index + 1
            bits = ports["S"][:below] + ports["DI"][: below - (port == "O")]
            bits += ports["CI"] + ports.get("CYINIT", [])
        elif LUT_RAM.match(kind):
            bits = ports["ADDR" + port[-1]] if len(port) == 3 else ports["A"]
        elif kind.startswith("SRL"):
            bits = [b for p, bs in ports.items() if re.match(r"A\d?$", p) for b in bs]
        elif COMBINATIONAL.match(kind) or PAD.match(kind):
            bits = [b for p, bs in ports.items() if cell["port_directions"][p] == "input" for b in bs]
        else:
            bits = []
        return [b for b in bits if isinstance(b, int)]

    def at(self, bit):
        """The arrival at a net of which all inputs' are known."""
        if bit not in self.driver:
            return Arrival(0, 0, 0, self.label(bit))
        name, port, _ = self.driver[bit]
        kind = self.cells[name]["type"]
        begin = Arrival(self.launch(name), 0, 0, self.label(bit))
        worst = begin
        for source in self.inputs_of(bit):
            before = self.arrivals[source]
            time, luts, carries = before.time, before.luts, before.carries
            if PAD.match(kind):
                pass
            elif kind.startswith("CARRY"):
                carries += 1
                if source in self.cells[name]["connections"]["CI"]:
                    time += CARRY_SUM if port == "O" else CARRY_PASS
                else:
                    time += CARRY_ALONE if port == "O" else CARRY_IN
                    time += self.route(source, name)
            else:
                luts += 1
                time += MUXF if kind.startswith("MUXF") else self.through(name, source)
                time += self.route(source, name)
            if time > worst.time:
                worst = Arrival(time, luts, carries, before.start)
        return worst

    def through(self, name, source):
        """From an input of a LUT, or an address bit of a LUT RAM, to its output."""
        if not (size := re.match(r"LUT(\d)", self.cells[name]["type"])):
            return LUT[0]
        ports = self.cells[name]["connections"]
        return min(LUT[int(size[1]) - 1 - i] for i in range(int(size[1])) if ports[f"I{i}"] == [source])

    def route(self, source, name):
        """What the net costs on its way into a cell: none from a LUT into its slice's carry or
        multiplexer, none from a pad."""
        if source not in self.driver:
            return 0
        driver = self.cells[self.driver[source][0]]["type"]
        kind = self.cells[name]["type"]
        if PAD.match(driver):
            return 0
        if re.match(r"CARRY|MUXF", kind) and re.match(r"LUT|INV|MUXF", driver):
            return 0
        return NET

    def launch(self, name):
        """From the clock to a cell's output."""
        cell = self.cells[name]
        kind, parameters = cell["type"], cell["parameters"]
        if FLIP_FLOP.match(kind):
            return CLOCK_TO_Q
        if LUT_RAM.match(kind):
            return LUT_RAM_CLOCK
        if kind.startswith("SRL"):
            return SRL_CLOCK
        if kind.startswith("RAMB"):
            return BLOCK_RAM_CLOCK[min(int(parameters.get("DOB_REG", "0"), 2), 1)]
        if kind.startswith("DSP"):
            return DSP_CLOCK[int(parameters["PREG"], 2)]
        return 0

    def label(self, bit):
        """The register, memory or port that drives a net."""
        name = self.names.get(bit, str(bit))
        if bit in self.driver and not FLIP_FLOP.match(self.cells[self.driver[bit][0]]["type"]):
            name = self.driver[bit][0]
        return re.sub(r"^\\|\$flatten|\\", "", name)

    def paths(self):
        """The worst path into each register and memory, the longest first."""
        worst = {}
        for name, cell in self.cells.items():
            kind = cell["type"]
            if PAD.match(kind) or kind.startswith("$"):
                continue
            if COMBINATIONAL.match(kind) and not LUT_RAM.match(kind) and not kind.startswith("SRL"):
                continue
            end = name
            if FLIP_FLOP.match(kind):
                end = self.label(cell["connections"]["Q"][0])
            for port, bits in cell["connections"].items():
                if cell["port_directions"][port] != "input":
                    continue
                setup = 0
                if kind.startswith("DSP") and port in REGISTERED_OPERAND:
                    register = cell["parameters"].get(REGISTERED_OPERAND[port], "1")
                    setup = DSP_SETUP[min(int(register, 2), 1)]
                for bit in bits:
                    if not isinstance(bit, int):
                        continue
                    arrival = self.arrival(bit)
                    # A sum goes into its slice's flip-flop, a net elsewhere.
                    driver = self.driver.get(bit)
                    into = self.cells[driver[0]]["type"] if driver else "PAD"
                    local = FLIP_FLOP.match(kind) and port == "D" and re.match(r"CARRY|LUT|MUXF", into)
                    time = arrival.time + setup + (0 if local else NET)
                    if end not in worst or time > worst[end].picoseconds:
                        worst[end] = Path(end, arrival.start, time, arrival.luts, arrival.carries)
        return sorted(worst.values(), key=lambda path: -path.picoseconds)
