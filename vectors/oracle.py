"""The exact dot product of GGUF weights and Q8_0 activations, over Python integers.

This is the judge of the golden vectors. It shares no code with the kernel's
model or RTL and rounds only where the numerics say so: once, at the end.

Units. An fp16 number that is finite is an integer multiple of 2^-24, so a
dequantised weight or activation is too, and a dot product is an integer
multiple of 2^-48. All values below are such integers.

The layout of the blocks is ggml's (`ggml-common.h`), the order of the weights
in them that of its reference dequantisers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

Q8_0_BYTES = 34
F32_NAN = 0x7FC00000
F16_NAN = 0x7E00


# --- numbers -----------------------------------------------------------------

def f16_units(bits: int) -> int | None:
    """fp16 `bits` as a multiple of 2^-24; None if infinite or NaN."""
    exponent, mantissa = bits >> 10 & 0x1F, bits & 0x3FF
    if exponent == 0x1F:
        return None
    units = mantissa if exponent == 0 else (0x400 | mantissa) << (exponent - 1)
    return -units if bits & 0x8000 else units


def f32_value(bits: int) -> Fraction | None:
    """fp32 `bits` as an exact number; None if infinite or NaN."""
    exponent, mantissa = bits >> 23 & 0xFF, bits & 0x7FFFFF
    if exponent == 0xFF:
        return None
    units = mantissa if exponent == 0 else (0x800000 | mantissa) << (exponent - 1)
    return Fraction(-units if bits & 0x80000000 else units, 1 << 149)


def _round(value: Fraction, precision: int, smallest: int, exponents: int) -> int:
    """The bits of the IEEE number nearest to `value`, ties to even.

    `precision`: significant bits; `smallest`: log2 of the least subnormal;
    `exponents`: bits of the exponent field. Too large becomes infinity; zero is +0.
    """
    magnitude = abs(value)
    # The exponent of the unit in the last place, at least that of subnormals.
    ulp = smallest
    if magnitude:
        lead = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < Fraction(2) ** lead:
            lead -= 1
        ulp = max(ulp, lead - precision + 1)
    scaled = magnitude / Fraction(2) ** ulp
    integer, rest = divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest
    if twice > scaled.denominator or (twice == scaled.denominator and integer & 1):
        integer += 1
    # A mantissa that carries into the next power of two carries into the exponent field.
    bits = integer + ((ulp - smallest) << (precision - 1))
    bits = min(bits, ((1 << exponents) - 1) << (precision - 1))
    sign = 1 << (precision - 1 + exponents) if value < 0 else 0
    return sign | bits


def f32_bits(value: Fraction) -> int:
    """`value` rounded once to fp32, ties to even."""
    return _round(value, 24, -149, 8)


def f16_bits(value: Fraction) -> int:
    """`value` rounded once to fp16, ties to even."""
    return _round(value, 11, -24, 5)


def _u16(data: bytes, at: int) -> int:
    return int.from_bytes(data[at:at + 2], "little")


def _i8(byte: int) -> int:
    return byte - 256 if byte & 0x80 else byte


# --- blocks ------------------------------------------------------------------
# Each decoder takes a block and its scales in units (the minimum's where the
# type has one), and gives its weights in units.

def _nibble(block: bytes, at: int, i: int) -> int:
    """Weight `i` of 32 in 16 bytes: low nibbles first, then the high ones."""
    return block[at + i] & 15 if i < 16 else block[at + i - 16] >> 4


def _q4_0(block: bytes, d: int) -> list[int]:
    return [d * (_nibble(block, 2, i) - 8) for i in range(32)]


def _q4_1(block: bytes, d: int, m: int) -> list[int]:
    return [d * _nibble(block, 4, i) + m for i in range(32)]


def _fifth(block: bytes, at: int, i: int) -> int:
    """The fifth bit of weight `i`, worth 16."""
    return (block[at + i // 8] >> i % 8 & 1) << 4


def _q5_0(block: bytes, d: int) -> list[int]:
    return [d * ((_nibble(block, 6, i) | _fifth(block, 2, i)) - 16) for i in range(32)]


def _q5_1(block: bytes, d: int, m: int) -> list[int]:
    return [d * (_nibble(block, 8, i) | _fifth(block, 4, i)) + m for i in range(32)]


def _q8_0(block: bytes, d: int) -> list[int]:
    return [d * _i8(q) for q in block[2:34]]


def _q2_k(block: bytes, d: int, dmin: int) -> list[int]:
    scales, quants = block[0:16], block[16:80]
    out = []
    for i in range(256):
        half, pair, lane = i // 128, i // 32 % 4, i % 32
        q = quants[32 * half + lane] >> 2 * pair & 3
        code = scales[i // 16]
        out.append(d * (code & 15) * q - dmin * (code >> 4))
    return out


def _q3_k(block: bytes, d: int) -> list[int]:
    high, quants, codes = block[0:32], block[32:96], block[96:108]
    scales = [(codes[j % 8] >> 4 * (j // 8) & 15 | (codes[8 + j % 4] >> 2 * (j // 4) & 3) << 4) - 32
              for j in range(16)]
    out = []
    for i in range(256):
        half, pair, lane = i // 128, i // 32 % 4, i % 32
        q = quants[32 * half + lane] >> 2 * pair & 3
        if not high[lane] >> i // 32 & 1:
            q -= 4
        out.append(d * scales[i // 16] * q)
    return out


def _k_scales(codes: bytes) -> list[tuple[int, int]]:
    """Eight 6-bit (scale, minimum) pairs from the 12 bytes of Q4_K and Q5_K."""
    pairs = []
    for j in range(4):
        pairs.append((codes[j] & 63, codes[j + 4] & 63))
    for j in range(4):
        pairs.append((codes[j + 8] & 15 | codes[j] >> 6 << 4, codes[j + 8] >> 4 | codes[j + 4] >> 6 << 4))
    return pairs


def _q4_k(block: bytes, d: int, dmin: int) -> list[int]:
    scales, quants = _k_scales(block[4:16]), block[16:144]
    out = []
    for i in range(256):
        scale, minimum = scales[i // 32]
        q = quants[32 * (i // 64) + i % 32] >> 4 * (i // 32 % 2) & 15
        out.append(d * scale * q - dmin * minimum)
    return out


def _q5_k(block: bytes, d: int, dmin: int) -> list[int]:
    scales, high, quants = _k_scales(block[4:16]), block[16:48], block[48:176]
    out = []
    for i in range(256):
        scale, minimum = scales[i // 32]
        q = quants[32 * (i // 64) + i % 32] >> 4 * (i // 32 % 2) & 15
        q |= (high[i % 32] >> i // 32 & 1) << 4
        out.append(d * scale * q - dmin * minimum)
    return out


def _q6_k(block: bytes, d: int) -> list[int]:
    low, high, scales = block[0:128], block[128:192], block[192:208]
    out = []
    for i in range(256):
        half, quarter, lane = i // 128, i // 32 % 4, i % 32
        q = low[64 * half + 32 * (quarter % 2) + lane] >> 4 * (quarter // 2) & 15
        q |= (high[32 * half + lane] >> 2 * quarter & 3) << 4
        out.append(d * _i8(scales[i // 16]) * (q - 32))
    return out


@dataclass(frozen=True)
class WeightType:
    """One of ggml's block formats."""

    name: str
    block_weights: int
    block_bytes: int
    scale_offsets: tuple[int, ...]
    """Where the fp16 scales stand in a block: d, and the minimum's if there is one."""
    decode_finite: Callable[..., list[int]]

    def row_bytes(self, k: int) -> int:
        """Bytes of a row of `k` weights; ValueError if `k` is no multiple of the block."""
        if k <= 0 or k % self.block_weights:
            raise ValueError(f"k = {k} is not a positive multiple of {self.name}'s block of {self.block_weights}")
        return k // self.block_weights * self.block_bytes

    def decode(self, row: bytes) -> list[int] | None:
        """The weights of `row` in units of 2^-24; None if one of its scales is infinite or NaN."""
        if len(row) % self.block_bytes:
            raise ValueError(f"{len(row)} bytes are not whole {self.name} blocks of {self.block_bytes}")
        out: list[int] = []
        for at in range(0, len(row), self.block_bytes):
            block = row[at:at + self.block_bytes]
            scales = [f16_units(_u16(block, offset)) for offset in self.scale_offsets]
            if None in scales:
                return None
            out += self.decode_finite(block, *scales)
        return out


TYPES = {t.name: t for t in (
    WeightType("Q4_0", 32, 18, (0,), _q4_0),
    WeightType("Q4_1", 32, 20, (0, 2), _q4_1),
    WeightType("Q5_0", 32, 22, (0,), _q5_0),
    WeightType("Q5_1", 32, 24, (0, 2), _q5_1),
    WeightType("Q8_0", 32, Q8_0_BYTES, (0,), _q8_0),
    WeightType("Q2_K", 256, 84, (80, 82), _q2_k),
    WeightType("Q3_K", 256, 110, (108,), _q3_k),
    WeightType("Q4_K", 256, 144, (0, 2), _q4_k),
    WeightType("Q5_K", 256, 176, (0, 2), _q5_k),
    WeightType("Q6_K", 256, 210, (208,), _q6_k),
)}


# --- the kernel --------------------------------------------------------------

def dot_bits(weights: list[int] | None, activations: list[int] | None) -> int:
    """fp32 bits of one result, from a decoded row and a decoded column."""
    if weights is None or activations is None:
        return F32_NAN
    total = sum(w * x for w, x in zip(weights, activations, strict=True))
    return f32_bits(Fraction(total, 1 << 48))


def matmul(kind: WeightType, weights: list[bytes], activations: list[bytes]) -> list[list[int]]:
    """fp32 bits of every result, [column][row], from rows of blocks and columns of Q8_0 blocks."""
    rows = [kind.decode(row) for row in weights]
    columns = [TYPES["Q8_0"].decode(column) for column in activations]
    return [[dot_bits(row, column) for row in rows] for column in columns]


# --- the activations' quantiser ----------------------------------------------

def quantise(x: list[int]) -> bytes:
    """Q8_0 blocks of the activations whose fp32 bits are `x`, as ggml's reference makes them.

    In a block with an infinite or NaN activation the scale is the quiet NaN
    0x7E00 and the int8 values are 0.
    """
    if len(x) % 32:
        raise ValueError(f"{len(x)} activations are not whole blocks of 32")
    return b"".join(_quantise_block(x[at:at + 32]) for at in range(0, len(x), 32))


def _quantise_block(x: list[int]) -> bytes:
    values = [f32_value(bits) for bits in x]
    if None in values:
        return F16_NAN.to_bytes(2, "little") + bytes(32)
    scale = f32_value(f32_bits(max(abs(v) for v in values) / 127))
    # The reciprocal is fp32 as well: it is infinite where the scale is below 2^-128.
    reciprocal = f32_value(f32_bits(1 / scale)) if scale else None
    if reciprocal is None:
        quants = [0] * 32
    else:
        quants = [_half_away(f32_value(f32_bits(v * reciprocal))) for v in values]
    return f16_bits(scale).to_bytes(2, "little") + bytes(q & 0xFF for q in quants)


def _half_away(value: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    magnitude = (2 * abs(value) + 1) // 2
    return -magnitude if value < 0 else magnitude
