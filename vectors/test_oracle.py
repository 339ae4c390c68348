"""Tests of the oracle and of the golden vectors. Run with pytest."""

import dataclasses
import struct
from fractions import Fraction
from pathlib import Path
from random import Random

import gguf
import numpy as np
import pytest

import blocks
import case
import check
import generate
import oracle
from oracle import TYPES, WeightType

HERE = Path(__file__).parent
KINDS = pytest.mark.parametrize("kind", TYPES.values(), ids=TYPES)


def _bits(values: np.ndarray) -> list[int]:
    return values.view(f"u{values.itemsize}").tolist()


# --- the oracle --------------------------------------------------------------

@KINDS
def test_block_sizes_are_ggufs(kind: WeightType) -> None:
    sizes = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind.name]]
    assert (kind.block_weights, kind.block_bytes) == sizes


@KINDS
def test_decoding_is_ggufs(kind: WeightType) -> None:
    """Both scales of a block have one exponent, so gguf's fp32 arithmetic is exact too."""
    rng = Random(f"decode {kind.name}")
    for _ in range(200):
        exponent = rng.randrange(31)
        scales = [rng.getrandbits(1) << 15 | exponent << 10 | rng.getrandbits(10) for _ in kind.scale_offsets]
        block = blocks.with_scales(kind, rng.randbytes(kind.block_bytes), *scales)
        theirs = gguf.dequantize(np.frombuffer(block, np.uint8), gguf.GGMLQuantizationType[kind.name])
        assert kind.decode(block) == [int(Fraction(float(w)) * 2**24) for w in theirs]


def test_q8_0_quantiser_is_ggufs() -> None:
    rng = Random("quantise")
    x = np.array([blocks.random_x(rng, 4096) for _ in range(4)], np.uint32).view(np.float32)
    theirs = gguf.quantize(x, gguf.GGMLQuantizationType.Q8_0)
    assert [oracle.quantise(column) for column in x.view(np.uint32).tolist()] == [row.tobytes() for row in theirs]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_rounding_is_ieee() -> None:
    rng = np.random.default_rng(1)
    # Random bits hold NaNs, which are left out below.
    doubles = rng.integers(0, 2**64, 20000, np.uint64).view(np.float64)
    near_f32 = rng.integers(0, 2**32, 20000, np.uint64).astype(np.uint32).view(np.float32).astype(np.float64)
    near_f16 = rng.integers(0, 2**16, 20000, np.uint64).astype(np.uint16).view(np.float16).astype(np.float64)
    halfway = (near_f16 + np.nextafter(near_f16.astype(np.float16), np.float16(0)).astype(np.float64)) / 2
    values = np.concatenate([doubles, near_f32, near_f32 * (1 + 2.0**-24), near_f16, halfway, [65519.99, 65520.0]])
    values = values[np.isfinite(values) & (values != 0)]
    exact = [Fraction(v) for v in values.tolist()]
    with np.errstate(over="ignore"):
        singles, halves = values.astype(np.float32), values.astype(np.float16)
    # A negative value that rounds to zero keeps its sign; zero itself is +0.
    assert [oracle.f32_bits(v) for v in exact] == _bits(singles)
    assert [oracle.f16_bits(v) for v in exact] == _bits(halves)
    assert oracle.f32_bits(Fraction(0)) == 0


def test_f16_units() -> None:
    for bits in range(1 << 16):
        value = struct.unpack("<e", bits.to_bytes(2, "little"))[0]
        units = oracle.f16_units(bits)
        if units is None:
            assert not np.isfinite(value)
        else:
            assert units == Fraction(value) * 2**24


def test_errors_name_the_numbers() -> None:
    with pytest.raises(ValueError, match="k = 48 .* Q4_0's block of 32"):
        TYPES["Q4_0"].row_bytes(48)
    with pytest.raises(ValueError, match="143 bytes .* Q4_K blocks of 144"):
        TYPES["Q4_K"].decode(bytes(143))
    with pytest.raises(ValueError, match="33 activations"):
        oracle.quantise([0] * 33)


# --- what the cases are made of ----------------------------------------------

@KINDS
def test_templates(kind: WeightType) -> None:
    one = blocks.with_scales(kind, blocks.ONE[kind.name], blocks.f16(3))
    assert kind.decode(one) == [3] * kind.block_weights
    assert blocks.has_minimum(kind) == (kind.name in blocks.MINIMUM)
    if blocks.has_minimum(kind):
        minimum = blocks.with_scales(kind, blocks.MINIMUM[kind.name], 0, blocks.f16(3))
        assert kind.decode(minimum) == [3 * blocks.minimum_sign(kind)] * kind.block_weights
    magnitude = {"Q4_0": 8, "Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "Q8_0": 128, "Q2_K": 15 * 3, "Q3_K": 32 * 4,
                 "Q4_K": 63 * 15, "Q5_K": 63 * 31, "Q6_K": 128 * 32}[kind.name]
    largest = blocks.with_scales(kind, blocks.LARGEST[kind.name], blocks.f16(1))
    assert {abs(w) for w in kind.decode(largest)} == {magnitude}


def _f64_result(kind: WeightType, row: bytes, column: bytes) -> int:
    """A result as a kernel with an f64 accumulator has it: exact products, rounded sums."""
    total = np.float64(0)
    for w, x in zip(kind.decode(row), TYPES["Q8_0"].decode(column), strict=True):
        total += np.float64(w * x)
    return _bits(np.array([total * 2.0**-48 + 0.0], np.float32))[0]


@KINDS
@pytest.mark.parametrize("function", [generate.cancel, generate.ties])
def test_f64_accumulation_fails(kind: WeightType, function) -> None:
    made = function(kind, Random("f64"))
    actual = [[_f64_result(kind, row, column) for row in made.weights] for column in made.activations]
    assert actual != made.expected


@KINDS
def test_ties_go_to_even_and_are_broken(kind: WeightType) -> None:
    made = generate.ties(kind, Random("ties"))
    last_bits, rests = set(), set()
    for row in map(kind.decode, made.weights):
        column = TYPES["Q8_0"].decode(made.activations[0])
        total = abs(sum(w * x for w, x in zip(row, column, strict=True)))
        half = 1 << total.bit_length() - 25
        # One unit below a power of two has a binade of its own; it is no tie there.
        rest = total % (2 * half) - half
        if abs(rest) <= 1:
            rests.add(rest)
            last_bits.add(total // (2 * half) & 1)
    assert rests == {-1, 0, 1}
    assert last_bits == {0, 1}


# --- the files ---------------------------------------------------------------

def test_committed_files_are_those_generated(tmp_path: Path) -> None:
    made = generate.cases()
    assert {path.stem for path in HERE.glob("*.safetensors")} == made.keys()
    for name, one in made.items():
        path = tmp_path / "case.safetensors"
        case.write(one, path)
        assert path.read_bytes() == (HERE / f"{name}.safetensors").read_bytes(), name


def test_committed_files_agree_with_the_oracle() -> None:
    for path in sorted(HERE.glob("*.safetensors")):
        assert check.differences(case.read(path)) == [], path.name


def test_results_are_finite_normal_zero_or_the_nan() -> None:
    seen = set()
    for made in generate.cases().values():
        for bits in (bits for column in made.expected for bits in column):
            exponent = bits >> 23 & 0xFF
            assert 127 - 48 <= exponent < 255 or bits in (0, oracle.F32_NAN), f"{bits:08x}"
            seen.add("zero" if bits == 0 else "nan" if bits == oracle.F32_NAN else "number")
    assert seen == {"zero", "nan", "number"}


def test_one_turned_bit_is_found() -> None:
    good = case.read(HERE / "q4_k_small.safetensors")
    weights = bytearray(good.weights[2])
    weights[0] ^= 1
    expected = [list(column) for column in good.expected]
    expected[1][3] ^= 1
    activations = bytearray(good.activations[0])
    activations[5] ^= 1
    for change in ({"weights": [*good.weights[:2], bytes(weights), *good.weights[3:]]}, {"expected": expected},
                   {"activations": [bytes(activations), *good.activations[1:]]}):
        assert check.differences(dataclasses.replace(good, **change))


@pytest.mark.parametrize(("old", "new", "message"), [
    (b'"weightstream":"1"', b'"weightstream":"2"', "weightstream is '2'"),
    (b'"type":"Q4_0"', b'"type":"Q4_9"', "type is none of"),
    (b'"k":"96"', b'"k":"95"', "k: k = 95"),
    (b'"rows":"5"', b'"rows":"0"', "rows is '0'"),
    (b'"rows":"5"', b'"rows":"6"', r"weights is uint8 \[5, 54\], not uint8 \[6, 54\]"),
    (b'"cols":"3"', b'"cols":"x"', "cols is 'x'"),
    (b'"expected"', b'"expecte_"', "expected is missing"),
    (b'"x":{', b'"y":{', "y is not of the format"),
    (b'{"__meta', b'["__meta', "header"),
])
def test_bad_files(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    data = (HERE / "q4_0_small.safetensors").read_bytes()
    assert old in data
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data.replace(old, new, 1))
    with pytest.raises(case.BadCase, match=f"bad.safetensors: .*{message}"):
        case.read(path)
