"""Quantises matrices to the ten GGUF block types. Plain searches, no tables.

A block's weights are chosen from d * q (symmetric) or d * q + m (affine). The
scale is searched around the one that just covers the largest weight, and the
candidate with the least squared error is kept; where there are inner scales
(the K types), they are searched as real numbers, rounded to the block's codes,
and the quants are then chosen for the scales as stored. The layouts are ggml's
(`ggml-common.h`).

All functions take float32 [blocks, weights] and give uint8 [blocks, bytes].
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Codes = NDArray[np.uint8]

_FACTORS = np.linspace(0.6, 1.15, 45, dtype=np.float32)


# --- choosing scales and quants ----------------------------------------------

def _half(x: Floats) -> Floats:
    """`x` as fp16 stores it."""
    return x.astype(np.float16).astype(np.float32)


def _quants(w: Floats, scale: Floats, offset: Floats | float, low: int, high: int) -> NDArray[np.float32]:
    """The q in [low, high] for which scale * q + offset is nearest to `w`; scale and offset are per block."""
    safe = np.where(scale == 0, 1, scale)[..., None]
    shifted = w - (offset[..., None] if isinstance(offset, np.ndarray) else offset)
    return np.where(scale[..., None] == 0, 0, np.clip(np.rint(shifted / safe), low, high)).astype(np.float32)


def _symmetric_scale(w: Floats, low: int, high: int) -> Floats:
    """The scale with the least squared error for quants in [low, high], signed so that the end with more room is
    used by the largest weight."""
    at = np.abs(w).argmax(-1, keepdims=True)
    full = np.take_along_axis(w, at, -1)[..., 0] / low
    best, least = full, np.full(full.shape, np.inf, np.float32)
    for factor in _FACTORS:
        scale = full * factor
        error = np.square(scale[..., None] * _quants(w, scale, 0, low, high) - w).sum(-1)
        best, least = np.where(error < least, scale, best), np.minimum(error, least)
    return best


def _affine_scale(w: Floats, levels: int, below_zero: bool) -> tuple[Floats, Floats]:
    """Scale (not negative) and offset with the least squared error for quants in [0, levels].

    `below_zero`: the offset must not be positive.
    """
    low, high = w.min(-1), w.max(-1)
    if below_zero:
        low = np.minimum(low, 0)
    span = np.maximum(high - low, 0) / levels
    best, offset, least = span, low, np.full(span.shape, np.inf, np.float32)
    for factor in _FACTORS:
        scale, start = span * factor, low * min(factor, 1)
        # Two rounds of: choose the quants, then fit the line to them.
        for _ in range(2):
            q = _quants(w, scale, start, 0, levels)
            scale, start = _fit(w, q, scale, start, below_zero)
        q = _quants(w, scale, start, 0, levels)
        error = np.square(scale[..., None] * q + start[..., None] - w).sum(-1)
        better = error < least
        best, offset = np.where(better, scale, best), np.where(better, start, offset)
        least = np.minimum(error, least)
    return best, offset


def _fit(w: Floats, q: Floats, scale: Floats, offset: Floats, below_zero: bool) -> tuple[Floats, Floats]:
    """The line through (q, w) with the least squares; the given one where the quants do not tell."""
    n = w.shape[-1]
    sum_q, sum_qq = q.sum(-1), np.square(q).sum(-1)
    sum_w, sum_qw = w.sum(-1), (q * w).sum(-1)
    spread = n * sum_qq - sum_q**2
    known = spread > 0
    spread = np.where(known, spread, 1)
    slope = (n * sum_qw - sum_q * sum_w) / spread
    start = (sum_qq * sum_w - sum_q * sum_qw) / spread
    if below_zero:
        through_zero = sum_qw / np.where(sum_qq > 0, sum_qq, 1)
        slope, start = np.where(start > 0, through_zero, slope), np.minimum(start, 0)
    known &= slope > 0
    return np.where(known, slope, scale), np.where(known, start, offset)


# --- packing -----------------------------------------------------------------

def _f16_bytes(x: Floats) -> Bytes:
    return x.astype("<f2")[:, None].view(np.uint8)


def _nibbles(q: Codes, width: int) -> Bytes:
    """Four bits a weight: in each group of 2 * width weights the first `width` are the low nibbles."""
    groups = q.reshape(len(q), -1, 2, width) & 15
    return (groups[:, :, 0] | groups[:, :, 1] << 4).reshape(len(q), -1)


def _pairs(q: Codes) -> Bytes:
    """Two bits a weight: in each group of 128 weights, weights 32 j to 32 j + 31 are bits 2 j of 32 bytes."""
    groups = q.reshape(len(q), 2, 4, 32) & 3
    return (groups[:, :, 0] | groups[:, :, 1] << 2 | groups[:, :, 2] << 4 | groups[:, :, 3] << 6).reshape(len(q), 64)


def _high_bits(q: Codes) -> Bytes:
    """One bit a weight of 256: bit j of byte i is that of weight 32 j + i."""
    return np.packbits(q.reshape(len(q), 8, 32), axis=1, bitorder="little")[:, 0]


def _codes(q: Floats, bias: int = 0) -> Codes:
    """Quants as unsigned codes; negative ones after `bias` wrap to two's complement."""
    return (q.astype(np.int32) + bias).astype(np.uint8).reshape(len(q), -1)


# --- blocks of 32 ------------------------------------------------------------

def _symmetric_32(w: Floats, low: int) -> tuple[Floats, Codes]:
    d = _half(_symmetric_scale(w, low, -low - 1))
    return d, _codes(_quants(w, d, 0, low, -low - 1), -low)


def _affine_32(w: Floats, levels: int) -> tuple[Floats, Floats, Codes]:
    d, m = map(_half, _affine_scale(w, levels, below_zero=False))
    return d, m, _codes(_quants(w, d, m, 0, levels))


def _fifth_bits(q: Codes) -> Bytes:
    return np.packbits(q >> 4, axis=1, bitorder="little")


def q4_0(w: Floats) -> Bytes:
    d, q = _symmetric_32(w, -8)
    return np.hstack([_f16_bytes(d), _nibbles(q, 16)])


def q4_1(w: Floats) -> Bytes:
    d, m, q = _affine_32(w, 15)
    return np.hstack([_f16_bytes(d), _f16_bytes(m), _nibbles(q, 16)])


def q5_0(w: Floats) -> Bytes:
    d, q = _symmetric_32(w, -16)
    return np.hstack([_f16_bytes(d), _fifth_bits(q), _nibbles(q, 16)])


def q5_1(w: Floats) -> Bytes:
    d, m, q = _affine_32(w, 31)
    return np.hstack([_f16_bytes(d), _f16_bytes(m), _fifth_bits(q), _nibbles(q, 16)])


def q8_0(w: Floats) -> Bytes:
    d = _half(np.abs(w).max(-1) / 127)
    return np.hstack([_f16_bytes(d), _codes(_quants(w, d, 0, -127, 127))])


# --- blocks of 256 -----------------------------------------------------------

def _symmetric_256(w: Floats, low: int, code_low: int) -> tuple[Floats, NDArray[np.int32], Floats]:
    """d, 16 inner scale codes in [code_low, -code_low - 1], and quants in [low, -low - 1] by groups of 16."""
    groups = w.reshape(-1, 16, 16)
    scales = _symmetric_scale(groups, low, -low - 1)
    at = np.abs(scales).argmax(-1, keepdims=True)
    d = _half(np.take_along_axis(scales, at, -1)[:, 0] / code_low)
    codes = _quants(scales, d, 0, code_low, -code_low - 1)
    return d, codes.astype(np.int32), _quants(groups, d[:, None] * codes, 0, low, -low - 1)


def _affine_256(w: Floats, group: int, levels: int, top: int) -> tuple[Floats, Floats, Codes, Codes, Codes]:
    """d, dmin, inner scale and minimum codes in [0, top], and quants in [0, levels]; groups of `group` weights."""
    groups = w.reshape(len(w), -1, group)
    scales, offsets = _affine_scale(groups, levels, below_zero=True)
    d, dmin = _half(scales.max(-1) / top), _half((-offsets).max(-1) / top)
    scale_codes = _quants(scales, d, 0, 0, top)
    minimum_codes = _quants(-offsets, dmin, 0, 0, top)
    q = _quants(groups, d[:, None] * scale_codes, -dmin[:, None] * minimum_codes, 0, levels)
    return d, dmin, _codes(scale_codes), _codes(minimum_codes), _codes(q)


def _six_bit_pairs(scales: Codes, minimums: Codes) -> Bytes:
    """The 12 bytes of eight 6-bit scales and minimums in Q4_K and Q5_K."""
    return np.hstack([scales[:, :4] | scales[:, 4:] >> 4 << 6, minimums[:, :4] | minimums[:, 4:] >> 4 << 6,
                      scales[:, 4:] & 15 | minimums[:, 4:] << 4])


def q2_k(w: Floats) -> Bytes:
    d, dmin, scales, minimums, q = _affine_256(w, 16, 3, 15)
    return np.hstack([scales | minimums << 4, _pairs(q), _f16_bytes(d), _f16_bytes(dmin)])


def q3_k(w: Floats) -> Bytes:
    d, codes, quants = _symmetric_256(w, -4, -32)
    q, s = _codes(quants, 4), (codes + 32).astype(np.uint8)
    low = s[:, :8] & 15 | s[:, 8:] << 4
    high = s[:, 0:4] >> 4 | s[:, 4:8] >> 4 << 2 | s[:, 8:12] >> 4 << 4 | s[:, 12:16] >> 4 << 6
    return np.hstack([_high_bits(q >> 2), _pairs(q), low, high, _f16_bytes(d)])


def q4_k(w: Floats) -> Bytes:
    d, dmin, scales, minimums, q = _affine_256(w, 32, 15, 63)
    return np.hstack([_f16_bytes(d), _f16_bytes(dmin), _six_bit_pairs(scales, minimums), _nibbles(q, 32)])


def q5_k(w: Floats) -> Bytes:
    d, dmin, scales, minimums, q = _affine_256(w, 32, 31, 63)
    return np.hstack([_f16_bytes(d), _f16_bytes(dmin), _six_bit_pairs(scales, minimums), _high_bits(q >> 4),
                      _nibbles(q, 32)])


def q6_k(w: Floats) -> Bytes:
    d, codes, quants = _symmetric_256(w, -32, -128)
    q = _codes(quants, 32)
    return np.hstack([_nibbles(q, 64), _pairs(q >> 4), codes.astype(np.int8).view(np.uint8), _f16_bytes(d)])


QUANTISERS: dict[str, tuple[int, Callable[[Floats], Bytes]]] = {
    "Q4_0": (32, q4_0), "Q4_1": (32, q4_1), "Q5_0": (32, q5_0), "Q5_1": (32, q5_1), "Q8_0": (32, q8_0),
    "Q2_K": (256, q2_k), "Q3_K": (256, q3_k), "Q4_K": (256, q4_k), "Q5_K": (256, q5_k), "Q6_K": (256, q6_k),
}


def quantise(matrix: Floats, kind: str) -> Bytes:
    """The blocks of `matrix` [rows, k] as uint8 [rows, row bytes]; ValueError if k is no multiple of the block."""
    width, function = QUANTISERS[kind]
    rows, k = matrix.shape
    if k % width:
        raise ValueError(f"k = {k} is not a multiple of {kind}'s block of {width}")
    return function(np.ascontiguousarray(matrix, np.float32).reshape(-1, width)).reshape(rows, -1)
