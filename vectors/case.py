"""A golden vector: one case in one safetensors file (format: docs/vectors.md)."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from safetensors import SafetensorError, safe_open

import oracle


class BadCase(ValueError):
    """A file that breaks the format; the message names the file and the field."""


@dataclass
class Case:
    kind: oracle.WeightType
    k: int
    weights: list[bytes]
    """A row's blocks each."""
    activations: list[bytes]
    """A column's Q8_0 blocks each."""
    expected: list[list[int]]
    """fp32 bits, [column][row]."""
    x: list[list[int]] | None = None
    """fp32 bits of the activations before quantisation, [column][k]."""
    note: dict[str, str] = field(default_factory=dict)
    """Free metadata: source, seed, note."""
    others: dict[str, "Case"] = field(default_factory=dict)
    """The other jobs of a recorded scenario, by name (`job0`): what went down beside this case."""


def make(kind: oracle.WeightType, weights: list[bytes], activations: list[bytes]) -> Case:
    """A case with the oracle's results."""
    k = len(weights[0]) // kind.block_bytes * kind.block_weights
    return Case(kind, k, weights, activations, oracle.matmul(kind, weights, activations))


def make_from_x(kind: oracle.WeightType, weights: list[bytes], x: list[list[int]]) -> Case:
    """A case with the oracle's activations and results."""
    case = make(kind, weights, [oracle.quantise(column) for column in x])
    case.x = x
    return case


def write(case: Case, path: Path) -> None:
    """Writes `case`; the same case gives the same bytes.

    Written by hand because the safetensors package puts metadata in no fixed order.
    """
    rows, cols = len(case.weights), len(case.activations)
    tensors = {
        "weights": ("U8", [rows, case.kind.row_bytes(case.k)], b"".join(case.weights)),
        "activations": ("U8", [cols, case.k // 32 * oracle.Q8_0_BYTES], b"".join(case.activations)),
        "expected": ("F32", [cols, rows], _words(case.expected)),
    }
    if case.x is not None:
        tensors["x"] = ("F32", [cols, case.k], _words(case.x))
    # Four-byte tensors first, so that each starts at a multiple of its element size.
    names = sorted(tensors, key=lambda name: (tensors[name][0] != "F32", name))
    header: dict[str, object] = {"__metadata__": {
        "weightstream": "1", "type": case.kind.name, "k": str(case.k), "rows": str(rows), "cols": str(cols),
        **case.note}}
    at = 0
    for name in names:
        dtype, shape, data = tensors[name]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(tensors[name][2] for name in names))


def read(path: Path) -> Case:
    """Reads and checks a case; BadCase names the file and the field."""
    try:
        with safe_open(path, "numpy") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except SafetensorError as error:
        raise BadCase(f"{path}: {error}") from error
    return _case(str(path), metadata, tensors)


def _case(path: str, metadata: dict[str, str], tensors: dict) -> Case:
    version = metadata.pop("weightstream", None)
    if version != "1":
        raise BadCase(f"{path}: metadata weightstream is {version!r}, not '1'")
    kind = oracle.TYPES.get(metadata.pop("type", ""))
    if kind is None:
        raise BadCase(f"{path}: metadata type is none of {', '.join(oracle.TYPES)}")
    k, rows, cols = (_number(path, metadata, name) for name in ("k", "rows", "cols"))
    try:
        row_bytes = kind.row_bytes(k)
    except ValueError as error:
        raise BadCase(f"{path}: metadata k: {error}") from error
    shapes = {"weights": ("uint8", (rows, row_bytes)),
              "activations": ("uint8", (cols, k // 32 * oracle.Q8_0_BYTES)),
              "expected": ("float32", (cols, rows))}
    if "x" in tensors:
        shapes["x"] = ("float32", (cols, k))
    for name, (dtype, shape) in shapes.items():
        if name not in tensors:
            raise BadCase(f"{path}: tensor {name} is missing")
        if (tensors[name].dtype, tensors[name].shape) != (dtype, shape):
            raise BadCase(f"{path}: tensor {name} is {tensors[name].dtype} {list(tensors[name].shape)}, "
                          f"not {dtype} {list(shape)}")
    others = _scenario(path, metadata.pop("scenario"), tensors) if "scenario" in metadata else {}
    for name in tensors:
        if name not in shapes:
            raise BadCase(f"{path}: tensor {name} is not of the format")
    bits = {name: tensors[name].view("uint32").tolist() for name in ("expected", "x") if name in tensors}
    return Case(kind, k, [row.tobytes() for row in tensors["weights"]],
                [column.tobytes() for column in tensors["activations"]], bits["expected"], bits.get("x"), metadata,
                others)


def _scenario(path: str, text: str, tensors: dict) -> dict[str, Case]:
    """The jobs beside the file's own that metadata `scenario` names; their tensors are taken out of `tensors`."""
    try:
        recorded = json.loads(text)
        jobs = [job for chain in recorded["scenario"]["chains"] for job in chain["jobs"]]
        own = recorded["case"]
        shapes = {f"job{n}": (job["type"], job["k"], job["rows"], job["cols"]) for n, job in enumerate(jobs)
                  if n != own}
    except (ValueError, KeyError, TypeError) as error:
        raise BadCase(f"{path}: metadata scenario: {error!r}") from error
    if own not in range(len(jobs)):
        raise BadCase(f"{path}: metadata scenario: case is {own!r}, not one of {len(jobs)} jobs")
    others = {}
    for name, (kind, k, rows, cols) in shapes.items():
        parts = {part: tensors.pop(f"{name}.{part}") for part in ("weights", "activations", "expected")
                 if f"{name}.{part}" in tensors}
        metadata = {"weightstream": "1", "type": kind, "k": str(k), "rows": str(rows), "cols": str(cols)}
        others[name] = _case(f"{path}: {name}", metadata, parts)
    return others


def _number(path: str, metadata: dict[str, str], name: str) -> int:
    text = metadata.pop(name, None)
    if text is None or not text.isdecimal() or int(text) == 0:
        raise BadCase(f"{path}: metadata {name} is {text!r}, not a positive number")
    return int(text)


def _words(table: list[list[int]]) -> bytes:
    return b"".join(bits.to_bytes(4, "little") for line in table for bits in line)
