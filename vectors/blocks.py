"""Blocks and columns for the cases: with chosen scales, chosen or random quants.

The templates say what a block's bytes are where all its weights are alike;
their scales are left 0 and are put in by `with_scales`.
"""

from fractions import Fraction
from random import Random

from oracle import TYPES, WeightType, f16_bits, f16_units

F16_ONE = 0x3C00
F16_LARGEST = 0x7BFF
F16_SIGN = 0x8000

# Quants and inner scales are 1, minimum codes 0: every weight is d (plus m).
ONE = {
    "Q4_0": bytes(2) + b"\x99" * 16,
    "Q4_1": bytes(4) + b"\x11" * 16,
    "Q5_0": bytes(2) + b"\xff" * 4 + b"\x11" * 16,
    "Q5_1": bytes(8) + b"\x11" * 16,
    "Q8_0": bytes(2) + b"\x01" * 32,
    "Q2_K": b"\x01" * 16 + b"\x55" * 64 + bytes(4),
    "Q3_K": b"\xff" * 32 + b"\x55" * 64 + b"\x11" * 8 + b"\xaa" * 4 + bytes(2),
    "Q4_K": bytes(4) + b"\x01" * 4 + bytes(4) + b"\x01" * 4 + b"\x11" * 128,
    "Q5_K": bytes(4) + b"\x01" * 4 + bytes(4) + b"\x01" * 4 + bytes(32) + b"\x11" * 128,
    "Q6_K": b"\x11" * 128 + b"\xaa" * 64 + b"\x01" * 16 + bytes(2),
}

# Quants are 0, minimum codes 1: every weight is m (Q4_1, Q5_1) or -dmin (K types).
MINIMUM = {
    "Q4_1": bytes(20),
    "Q5_1": bytes(24),
    "Q2_K": b"\x10" * 16 + bytes(68),
    "Q4_K": bytes(8) + b"\x01" * 4 + b"\x10" * 4 + bytes(128),
    "Q5_K": bytes(8) + b"\x01" * 4 + b"\x10" * 4 + bytes(160),
}

# The quants and codes that give the largest magnitude.
LARGEST = {
    "Q4_0": bytes(18),                      # -8
    "Q4_1": b"\xff" * 20,                   # 15 d + m
    "Q5_0": bytes(22),                      # -16
    "Q5_1": b"\xff" * 24,                   # 31 d + m
    "Q8_0": b"\x80" * 34,                   # -128
    "Q2_K": b"\xff" * 84,                   # 15 * 3 d - 15 dmin
    "Q3_K": bytes(110),                     # -32 * -4
    "Q4_K": b"\xff" * 144,                  # 63 * 15 d - 63 dmin
    "Q5_K": b"\xff" * 176,                  # 63 * 31 d - 63 dmin
    "Q6_K": bytes(192) + b"\x80" * 16 + bytes(2),   # -128 * -32
}


def has_minimum(kind: WeightType) -> bool:
    return len(kind.scale_offsets) == 2


def minimum_sign(kind: WeightType) -> int:
    """-1 where the minimum is subtracted."""
    return -1 if kind.name.endswith("_K") else 1


def with_scales(kind: WeightType, block: bytes, *scales: int) -> bytes:
    """`block` with fp16 `scales`: d, and the minimum's (0 if not given) where the type has one."""
    out = bytearray(block)
    for i, offset in enumerate(kind.scale_offsets):
        out[offset:offset + 2] = (scales[i] if i < len(scales) else 0).to_bytes(2, "little")
    return bytes(out)


def negated(kind: WeightType, block: bytes) -> bytes:
    """The block whose every weight is the negative: the signs of its scales are turned."""
    out = bytearray(block)
    for offset in kind.scale_offsets:
        out[offset + 1] ^= 0x80
    return bytes(out)


def f16(units: int) -> int:
    """The fp16 bits of a multiple of 2^-24, which must be an fp16 number."""
    bits = f16_bits(Fraction(units, 1 << 24))
    if f16_units(bits) != units:
        raise ValueError(f"{units} * 2^-24 is not an fp16 number")
    return bits


def ordinary_scale(rng: Random) -> int:
    """fp16 bits of a magnitude between 2^-10 and 1, of either sign."""
    return rng.getrandbits(1) << 15 | rng.randrange(5, 15) << 10 | rng.getrandbits(10)


def random_block(kind: WeightType, rng: Random, scales: list[int] | None = None) -> bytes:
    """Random quants and codes; scales ordinary, or each one of `scales`."""
    chosen = [rng.choice(scales) if scales else ordinary_scale(rng) for _ in kind.scale_offsets]
    return with_scales(kind, rng.randbytes(kind.block_bytes), *chosen)


def random_row(kind: WeightType, rng: Random, blocks: int, scales: list[int] | None = None) -> bytes:
    return b"".join(random_block(kind, rng, scales) for _ in range(blocks))


def random_column(kind: WeightType, rng: Random, blocks: int, scales: list[int] | None = None) -> bytes:
    """Q8_0 activations for a row of `blocks` blocks of `kind`."""
    return random_row(TYPES["Q8_0"], rng, blocks * kind.block_weights // 32, scales)


def sparse(kind: WeightType, scale: int, values: dict[int, int]) -> bytes:
    """Activations for one block of `kind`: int8 `values` by position, 0 elsewhere; one fp16 scale."""
    out = b""
    for at in range(0, kind.block_weights, 32):
        out += scale.to_bytes(2, "little") + bytes(values.get(at + i, 0) & 0xFF for i in range(32))
    return out


def random_x(rng: Random, k: int) -> list[int]:
    """fp32 bits of `k` activations, as large as those of a model: each block has its own magnitude."""
    out: list[int] = []
    for _ in range(k // 32):
        exponent = rng.randrange(118, 130)
        for _ in range(32):
            out.append(rng.getrandbits(1) << 31 | exponent - min(7, rng.getrandbits(3)) << 23 | rng.getrandbits(23))
    return out
