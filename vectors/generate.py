"""Writes the golden vectors of this folder. The same code gives the same bytes.

    python generate.py [--out DIR]
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from random import Random

import quantiser_cases
from blocks import (F16_LARGEST, F16_ONE, F16_SIGN, LARGEST, MINIMUM, ONE, f16, has_minimum, minimum_sign, negated,
                    ordinary_scale, random_block, random_column, random_row, random_x, sparse, with_scales)
from case import Case, make, make_from_x, write
from oracle import Q8_0_BYTES, TYPES, WeightType

# +-0, least and largest subnormal, least normal, one, 2^15, largest.
SCALES = [bits | sign for bits in (0, 1, 0x3FF, 0x400, F16_ONE, 0x7800, F16_LARGEST) for sign in (0, F16_SIGN)]
# Infinities, quiet and signalling NaNs of several payloads.
NONFINITE = [0x7C00, 0xFC00, 0x7E00, 0xFE00, 0x7C01, 0xFDFF, 0x7FFF]


def smallest(kind: WeightType, rng: Random) -> Case:
    """One block, one row, one column."""
    return make_from_x(kind, [random_row(kind, rng, 1)], [random_x(rng, kind.block_weights)])


def small(kind: WeightType, rng: Random) -> Case:
    """Five rows of three blocks, three columns."""
    return make_from_x(kind, [random_row(kind, rng, 3) for _ in range(5)],
                       [random_x(rng, 3 * kind.block_weights) for _ in range(3)])


def rows(kind: WeightType, rng: Random) -> Case:
    """An odd number of rows of an odd number of blocks, one column."""
    blocks = 1 if kind.block_weights == 256 else 5
    return make(kind, [random_row(kind, rng, blocks) for _ in range(17)], [random_column(kind, rng, blocks)])


def columns_2(kind: WeightType, rng: Random) -> Case:
    """Two columns."""
    return make(kind, [random_row(kind, rng, 2) for _ in range(3)], [random_column(kind, rng, 2) for _ in range(2)])


def columns_4(kind: WeightType, rng: Random) -> Case:
    """Four columns."""
    return make(kind, [random_row(kind, rng, 2) for _ in range(7)], [random_column(kind, rng, 2) for _ in range(4)])


def columns_8(kind: WeightType, rng: Random) -> Case:
    """Eight columns."""
    return make(kind, [random_row(kind, rng, 1) for _ in range(4)], [random_column(kind, rng, 1) for _ in range(8)])


def long(kind: WeightType, rng: Random) -> Case:
    """Rows of a few thousand weights."""
    blocks = 4096 // kind.block_weights + 1
    return make(kind, [random_row(kind, rng, blocks) for _ in range(3)],
                [random_column(kind, rng, blocks) for _ in range(2)])


def scales(kind: WeightType, rng: Random) -> Case:
    """Each special scale against each: zero, -0, subnormal, least normal, largest; one pair a result."""
    return make(kind, [random_row(kind, rng, 1, [s]) for s in SCALES],
                [random_column(kind, rng, 1, [s]) for s in SCALES[:12:2] + [0x8001, 0xFBFF]])


def wild_scales(kind: WeightType, rng: Random) -> Case:
    """Special scales of all kinds side by side in a row."""
    return make(kind, [random_row(kind, rng, 4, SCALES) for _ in range(7)],
                [random_column(kind, rng, 4, SCALES) for _ in range(2)])


def zeros(kind: WeightType, rng: Random) -> Case:
    """Results that are exactly zero, and +0: zero and -0 scales, zero quants, sums that cancel."""
    zero_scales = [0, F16_SIGN]
    block = random_block(kind, rng)
    once = random_column(kind, rng, 1)
    weights = [
        random_row(kind, rng, 2, [0]),
        random_row(kind, rng, 2, [F16_SIGN]),
        random_row(kind, rng, 2, zero_scales),
        block + negated(kind, block),
        negated(kind, block) + block,
        random_row(kind, rng, 2),
    ]
    blocks = 2 * kind.block_weights // 32
    no_quants = b"".join(ordinary_scale(rng).to_bytes(2, "little") + bytes(32) for _ in range(blocks))
    return make(kind, weights, [once + once, random_column(kind, rng, 2, [F16_SIGN]), no_quants])


def nonfinite(kind: WeightType, rng: Random) -> Case:
    """Infinite and NaN scales in single blocks of weights, minimums included, and of activations; rows without them
    in between."""
    weights = []
    for bits in NONFINITE:
        for offset in kind.scale_offsets:
            row = bytearray(random_row(kind, rng, 3))
            at = rng.randrange(3) * kind.block_bytes
            if bits in (0x7C00, 0x7FFF):    # Not even zero quants make it finite.
                row[at:at + kind.block_bytes] = with_scales(kind, ONE[kind.name], F16_SIGN)
            row[at + offset:at + offset + 2] = bits.to_bytes(2, "little")
            weights.append(bytes(row))
        weights.append(random_row(kind, rng, 3))
    columns = [bytearray(random_column(kind, rng, 3)) for _ in range(3)]
    columns[1][-Q8_0_BYTES:] = 0xFC00.to_bytes(2, "little") + bytes(32)
    columns[2][0:2] = 0x7E00.to_bytes(2, "little")
    return make(kind, weights, [bytes(column) for column in columns])


def cancel(kind: WeightType, rng: Random) -> Case:
    """Huge sums that cancel and leave a term of a few 2^-48."""
    weights = []
    for i in range(8):
        huge = random_block(kind, rng, [F16_LARGEST, F16_LARGEST | F16_SIGN])
        tiny = random_block(kind, rng, [1, 2, F16_SIGN | 1])
        # Odd rows cancel in the column that holds the activations again, even rows in that of their negatives.
        weights.append(huge + tiny + (negated(kind, huge) if i % 2 else huge))
    once = sparse(kind, F16_LARGEST, {i: rng.randrange(-127, 128) for i in range(kind.block_weights)})
    minus = negated(TYPES["Q8_0"], once) if kind.block_weights == 32 else b"".join(
        negated(TYPES["Q8_0"], once[at:at + Q8_0_BYTES]) for at in range(0, len(once), Q8_0_BYTES))
    middle = [sparse(kind, 1, {rng.randrange(kind.block_weights): rng.randrange(-128, 128) for _ in range(3)})
              for _ in range(2)]
    return make(kind, weights, [once + middle[0] + once, once + middle[1] + minus])


def ties(kind: WeightType, rng: Random) -> Case:
    """fp32 ties, exact and broken by one unit of 2^-48."""
    # 25 significant bits, the last one set, in pieces of 11, 11 and 3: odd and even neighbours, and a carry over all
    # bits. Each piece is d * dx of a block of ones; the fourth block adds -1, 0 or 1 unit.
    numbers = [1 << 24 | 1, 1 << 24 | 3, (1 << 25) - 1, *(rng.randrange(1 << 24, 1 << 25) | 1 for _ in range(3))]
    scale_exponents = (24, 16, 8)
    weights = []
    for number in numbers:
        for unit in (-1, 0, 1):
            shift = rng.randrange(13, 40)
            sign = rng.choice((-1, 1))
            pieces = (number >> 14, number >> 3 & 0x7FF, number & 7)
            row = b""
            for piece, place, exponent in zip(pieces, (14, 3, 0), scale_exponents, strict=True):
                row += with_scales(kind, ONE[kind.name], f16(sign * piece << shift + place - exponent))
            weights.append(row + with_scales(kind, ONE[kind.name], f16(unit)))
            if has_minimum(kind):
                weights.append(row + with_scales(kind, MINIMUM[kind.name], 0, f16(minimum_sign(kind) * unit)))
    columns = []
    for value, unit_value in ((1, 1), (-1, -1), (1, -1)):
        place = rng.randrange(kind.block_weights)
        columns.append(b"".join(sparse(kind, f16(1 << e), {place: value}) for e in scale_exponents)
                       + sparse(kind, f16(1), {place: unit_value}))
    return make(kind, weights, columns)


def largest(kind: WeightType, rng: Random) -> Case:
    """The largest sums of either sign; and those that cancel but for one product."""
    blocks = 1024 // kind.block_weights
    minimum = F16_LARGEST | (F16_SIGN if minimum_sign(kind) < 0 else 0)
    top = with_scales(kind, LARGEST[kind.name], F16_LARGEST, minimum)
    bottom = negated(kind, top)
    last = random_block(kind, rng, [1])
    half = blocks // 2
    weights = [top * (blocks + 1), bottom * (blocks + 1), (top * half + bottom * half) + last,
               (top + bottom) * half + last, bottom * half + top * half + negated(kind, last)]
    every = range(kind.block_weights)
    full, turned = (sparse(kind, scale, dict.fromkeys(every, -128)) for scale in (F16_LARGEST, 0xFBFF))
    one = sparse(kind, 1, {rng.randrange(kind.block_weights): -128})
    return make(kind, weights, [full * (blocks + 1), turned * (blocks + 1), full * blocks + one])


def int8(kind: WeightType, rng: Random) -> Case:
    """Activations of -128, alone and among others, against the extreme quants."""
    weights = [with_scales(kind, bytes([fill]) * kind.block_bytes, ordinary_scale(rng), ordinary_scale(rng))
               for fill in (0x00, 0xFF, 0x80, 0x7F, 0x0F, 0xF0)]
    weights += [random_row(kind, rng, 1) for _ in range(3)]
    every = range(kind.block_weights)
    columns = [sparse(kind, F16_ONE, dict.fromkeys(every, -128)),
               sparse(kind, ordinary_scale(rng), dict.fromkeys(every, 127)),
               sparse(kind, ordinary_scale(rng), {i: -128 if i % 2 else 127 for i in every}),
               sparse(kind, ordinary_scale(rng), {i: rng.choice((-128, -127, -1, 0, 1, 127)) for i in every})]
    return make(kind, weights, columns)


CASES: tuple[Callable[[WeightType, Random], Case], ...] = (
    smallest, small, rows, columns_2, columns_4, columns_8, long, scales, wild_scales, zeros, nonfinite, cancel, ties,
    largest, int8)


def cases() -> dict[str, Case]:
    """All cases by file name (without its suffix). The name is the seed."""
    out: dict[str, Case] = {}
    for kind in TYPES.values():
        for function in CASES:
            name = f"{kind.name.lower()}_{function.__name__}"
            out[name] = function(kind, Random(name))
            _describe(out[name], name, function)
    for function in quantiser_cases.CASES:
        name = f"quantise_{function.__name__}"
        rng = Random(name)
        x = function(rng)
        # A type of 32 weights, another one each time.
        kind = list(TYPES.values())[len(out) % 5]
        out[name] = make_from_x(kind, [random_row(kind, rng, len(x[0]) // 32) for _ in range(2)], x)
        _describe(out[name], name, function)
    return out


def _describe(case: Case, name: str, function: Callable[..., object]) -> None:
    case.note = {"source": "vectors/generate.py", "seed": name, "note": " ".join((function.__doc__ or "").split())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    for name, case in cases().items():
        write(case, out / f"{name}.safetensors")


if __name__ == "__main__":
    main()
