"""Activations, as fp32 bits, that try the Q8_0 quantiser. Each case is a list of columns."""

from fractions import Fraction
from random import Random

from blocks import random_x
from oracle import f32_bits, f32_value

SIGN = 0x80000000
INFINITY = 0x7F800000
LARGEST = 0x7F7FFFFF
# 127 * 2^-128: where the scale falls to 2^-128 or below, its reciprocal is infinite.
NO_RECIPROCAL = f32_bits(Fraction(127, 1 << 128))


def _number(value: Fraction | int) -> int:
    return f32_bits(Fraction(value))


def _block(rng: Random, largest: int, others: list[int]) -> list[int]:
    """32 activations in random order: `largest`, `others`, and +-0."""
    out = [largest, *others]
    out += [rng.choice((0, SIGN)) for _ in range(32 - len(out))]
    rng.shuffle(out)
    return out


def ties(rng: Random) -> list[list[int]]:
    """Quotients at one half and one step to either side, where the scale is a power of two."""
    out: list[int] = []
    for exponent in (0, -3, 9, -60, 40):
        unit = Fraction(2) ** exponent
        halves = [_number((2 * rng.randrange(127) + 1) * unit / 2) for _ in range(9)]
        near = [bits + step | rng.choice((0, SIGN)) for bits in halves for step in (-1, 0, 1)]
        out += _block(rng, _number(127 * unit) | rng.choice((0, SIGN)), near)
    return [out]


def reciprocal(rng: Random) -> list[list[int]]:
    """Quotients near one half where the scale's reciprocal is rounded: to divide by the scale gives other values."""
    columns = []
    for _ in range(2):
        out: list[int] = []
        for _ in range(6):
            largest = rng.randrange(0x3F000000, 0x43000000)
            scale = f32_value(f32_bits(f32_value(largest) / 127))
            near = [_number((rng.randrange(127) + Fraction(1, 2)) * scale) + step | rng.choice((0, SIGN))
                    for step in (-1, 0, 1) for _ in range(10)]
            out += _block(rng, largest, near)
        columns.append(out)
    return columns


def scale_ties(rng: Random) -> list[list[int]]:
    """Scales half way between two fp16 numbers and one fp32 step to either side: normal, subnormal, to zero, to
    infinity."""
    out: list[int] = []
    for significand, exponent in ((2049, -11), (2051, -11), (4095, 3), (2047, -25), (3, -25), (1, -25), (4095, 4)):
        largest = _number(127 * Fraction(significand) * Fraction(2) ** exponent)
        for step in (-1, 0, 1):
            others = [_number(f32_value(largest) * rng.randrange(-128, 128) / 128) for _ in range(20)]
            out += _block(rng, largest + step | rng.choice((0, SIGN)), others)
    # A scale that becomes infinite makes its column NaN, so the last three blocks are kept out of the first column.
    return [out[:-96], out[96:]]


def tiny(rng: Random) -> list[list[int]]:
    """fp32 subnormals, and magnitudes about 127 * 2^-128, below which the int8 values are 0."""
    out: list[int] = []
    for largest in (1, 63, 64, 127, 0x400000, 0x7FFFFF, 0x800000, NO_RECIPROCAL - 64, NO_RECIPROCAL - 1, NO_RECIPROCAL,
                    NO_RECIPROCAL + 1, NO_RECIPROCAL + 16, NO_RECIPROCAL + 64, NO_RECIPROCAL + 0x800000):
        others = [rng.randrange(largest + 1) | rng.choice((0, SIGN)) for _ in range(31)]
        out += _block(rng, largest, others)
    return [out]


def zeros(rng: Random) -> list[list[int]]:
    """All +0, all -0, both; and one value among them."""
    one = _number(Fraction(-3, 8))
    return [[0] * 32 + [SIGN] * 32 + [0, SIGN] * 16 + _block(rng, one, [])]


def nonfinite(rng: Random) -> list[list[int]]:
    """Infinite and NaN activations at the ends and within; a column without them beside."""
    columns = [random_x(rng, 128) for _ in range(4)]
    columns[1][0] = INFINITY
    columns[1][127] = INFINITY | SIGN
    columns[2][31] = 0x7FC00000
    columns[2][70] = 0xFF800001
    columns[2][71] = INFINITY
    columns[3][32:64] = [0x7FFFFFFF] * 32
    return columns


def large(rng: Random) -> list[list[int]]:
    """Magnitudes to the largest: scales beyond fp16 become infinite, so the results are NaN; beside them the largest
    that are finite."""
    def filled(largest: int) -> list[int]:
        return _block(rng, largest, [rng.randrange(largest) | rng.choice((0, SIGN)) for _ in range(31)])

    limit = _number(127 * 65504)
    return [filled(LARGEST) + filled(limit), filled(limit) + filled(limit - 1),
            filled(INFINITY - 0x800000) + filled(_number(127 * 65536))]


def magnitudes(rng: Random) -> list[list[int]]:
    """Blocks over the whole range of fp32 exponents that gives a finite scale."""
    out: list[int] = []
    for exponent in range(1, 150, 4):
        low = max(0, exponent - 9)
        out += [rng.getrandbits(1) << 31 | rng.randrange(low, exponent) << 23 | rng.getrandbits(23) for _ in range(32)]
    return [out]


CASES = (ties, reciprocal, scale_ties, tiny, zeros, nonfinite, large, magnitudes)
