"""Tests of the embedded model's file and of what makes it, but for training (which needs torch)."""

from collections import Counter
from itertools import islice
from pathlib import Path

import gguf
import numpy as np
import pytest

import export
import quantise
import tokenizer
from config import Config
from stories import stories

MODEL = Path(__file__).parent / "weightstream-tiny.gguf"

# Root mean square error over that of normal weights, a little above what the quantisers reach.
ERRORS = {"Q4_0": 0.085, "Q4_1": 0.073, "Q5_0": 0.043, "Q5_1": 0.036, "Q8_0": 0.006, "Q2_K": 0.28, "Q3_K": 0.15,
          "Q4_K": 0.075, "Q5_K": 0.038, "Q6_K": 0.018}


def _through(matrix: np.ndarray, kind: str) -> np.ndarray:
    """`matrix` quantised, and dequantised by gguf."""
    return gguf.dequantize(quantise.quantise(matrix, kind), gguf.GGMLQuantizationType[kind])


@pytest.mark.parametrize("kind", quantise.QUANTISERS)
def test_quantiser_error(kind: str) -> None:
    matrix = np.random.default_rng(1).standard_normal((64, 512)).astype(np.float32) * 0.05
    error = np.sqrt(np.square(_through(matrix, kind) - matrix).mean() / np.square(matrix).mean())
    assert error < ERRORS[kind]


@pytest.mark.parametrize("kind", quantise.QUANTISERS)
@pytest.mark.parametrize("value", [0.0, 1.0, -0.3])
def test_constant_blocks(kind: str, value: float) -> None:
    matrix = np.full((2, 256), value, np.float32)
    assert np.abs(_through(matrix, kind) - matrix).max() <= abs(value) * 1e-3


def test_quantiser_refuses_a_part_of_a_block() -> None:
    with pytest.raises(ValueError, match="k = 128 is not a multiple of Q4_K's block of 256"):
        quantise.quantise(np.zeros((1, 128), np.float32), "Q4_K")


def test_stories_are_whole_and_a_function_of_the_seed() -> None:
    texts = list(islice(stories(3), 500))
    assert texts == list(islice(stories(3), 500))
    assert texts != list(islice(stories(4), 500))
    for text in texts:
        assert text.isascii() and not set("[]{}|") & set(text) and "  " not in text and " ," not in text
        assert text[0].isupper() and text[-1] in '.!?"'


def test_tokenizer_gives_text_back() -> None:
    vocabulary = tokenizer.train(islice(stories(1), 200), 600)
    assert len(vocabulary) == 600
    for text in [*islice(stories(2), 50), "A caf\u00e9, two  spaces;\na line \U0001F600"]:
        assert vocabulary.decode(vocabulary.encode(text)) == text


def test_tokenizer_merges_in_order_of_score() -> None:
    space = tokenizer.SPACE
    vocabulary = tokenizer.Tokenizer(["bc", "ab", space + "ab", space, "a", "b", "c"])
    pieces = [vocabulary.pieces[i] for i in vocabulary.encode("abc ab\n")]
    assert pieces == [space, "a", "bc", space + "ab", "<0x0A>"]


def test_model_file() -> None:
    reader = gguf.GGUFReader(MODEL)
    assert MODEL.stat().st_size <= 4 << 20
    pieces = reader.fields["tokenizer.ggml.tokens"].contents()
    shapes = Config(vocab=len(pieces)).shapes()
    # GGUF lists the row length first.
    assert {t.name: tuple(t.shape[::-1].tolist()) for t in reader.tensors} == shapes
    types = {t.name: t.tensor_type.name for t in reader.tensors}
    assert types == {name: export.TYPES.get(name, "F32") for name in shapes}
    multiplied = Counter(kind for name, kind in types.items() if name != "token_embd.weight")
    assert set(quantise.QUANTISERS) <= multiplied.keys()
    assert all(np.isfinite(gguf.dequantize(t.data, t.tensor_type)).all() for t in reader.tensors)
    for name in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        assert len(reader.fields[name].contents()) == len(pieces)
