"""The embedded model's tokenizer: a SentencePiece-style BPE vocabulary.

The vocabulary goes into the GGUF as `tokenizer.ggml.model` = "llama", so it
follows that tokenizer's rules: a space is written U+2581 and one is put before
the text; neighbouring pieces are merged, the pair whose union has the highest
score first (the leftmost of equals), until no union is in the vocabulary; what
has no piece falls back to one token per UTF-8 byte.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SPACE = "\u2581"
UNK, BOS, EOS = 0, 1, 2
_SPECIAL = ("<unk>", "<s>", "</s>")
_FIRST_BYTE = len(_SPECIAL)

# Words and punctuation stay apart, so that a word is the same token everywhere.
_PIECE = re.compile(f"{SPACE}?[A-Za-z]+|{SPACE}?[^A-Za-z{SPACE}]+")

# Token types as `tokenizer.ggml.token_type` stores them.
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


class Tokenizer:
    """Pieces by id. Scores order the merges: the earlier learned, the higher."""

    def __init__(self, pieces: list[str]):
        """`pieces`: the learned pieces in order, without specials and bytes."""
        self.pieces = [*_SPECIAL, *(f"<0x{b:02X}>" for b in range(256)), *pieces]
        first = len(self.pieces) - len(pieces)
        self.scores = [0.0] * first + [-float(i) for i in range(len(pieces))]
        self.types = [UNKNOWN, CONTROL, CONTROL] + [BYTE] * 256 + [NORMAL] * len(pieces)
        self.learned = pieces
        self._id = {piece: first + i for i, piece in enumerate(pieces)}
        self._words: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Token ids of `text`, without BOS and EOS."""
        ids: list[int] = []
        for word in _words(text):
            if word not in self._words:
                self._words[word] = self._encode_word(word)
            ids += self._words[word]
        return ids

    def _encode_word(self, word: str) -> list[int]:
        parts = list(word)
        while True:
            unions = [(self._id[a + b], i) for i, (a, b) in enumerate(zip(parts, parts[1:])) if a + b in self._id]
            if not unions:
                break
            _, i = min(unions)
            parts[i:i + 2] = [parts[i] + parts[i + 1]]
        ids: list[int] = []
        for part in parts:
            known = self._id.get(part)
            ids += [known] if known is not None else [_FIRST_BYTE + b for b in part.encode()]
        return ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of `ids`; specials are left out."""
        data = b""
        for i in ids:
            if self.types[i] == BYTE:
                data += bytes([i - _FIRST_BYTE])
            elif self.types[i] == NORMAL:
                data += self.pieces[i].encode()
        return data.decode(errors="replace").replace(SPACE, " ").removeprefix(" ")

    @classmethod
    def of_pieces(cls, pieces: list[str]) -> "Tokenizer":
        """The tokenizer whose `pieces`, specials and bytes included, a GGUF lists."""
        return cls(pieces[_FIRST_BYTE + 256:])

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.learned, ensure_ascii=False))

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        return cls(json.loads(path.read_text()))


def _words(text: str) -> list[str]:
    """`text` cut before each space. No piece holds a space but at its start, so
    merging within words is the same as merging within the text."""
    return (SPACE + text.replace(" ", " " + SPACE)).split(" ")


def train(texts: Iterable[str], size: int) -> Tokenizer:
    """Learns a vocabulary of at most `size` tokens by byte-pair encoding.

    All printable ASCII is among the pieces. Merges come first in the order they
    were learned, single characters after them, as SentencePiece scores them.
    """
    counts = Counter(word for text in texts for word in _words(text))
    words = {tuple(word): n for word, n in counts.items()}
    characters = [SPACE, *(chr(c) for c in range(0x21, 0x7F))]
    room = size - _FIRST_BYTE - 256 - len(characters)
    merges: list[str] = []
    while len(merges) < room:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                if _PIECE.fullmatch(pair[0] + pair[1]):
                    pairs[pair] += n
        if not pairs:
            break
        pair = max(pairs, key=lambda p: (pairs[p], p))
        union = pair[0] + pair[1]
        merges.append(union)
        words = {_merge(word, pair, union): n for word, n in words.items()}
    return Tokenizer(list(dict.fromkeys(merges)) + characters)


def _merge(word: tuple[str, ...], pair: tuple[str, str], union: str) -> tuple[str, ...]:
    out: list[str] = []
    i = 0
    while i < len(word):
        if word[i:i + 2] == pair:
            out.append(union)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)
