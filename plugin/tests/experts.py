"""Writes a small mixture-of-experts model with random weights: `python experts.py OUT.gguf`.

The vocabulary is the built-in model's, so that text can be tokenised.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import quantize

BUILT_IN = Path(__file__).parents[2] / "models" / "weightstream-tiny.gguf"
LAYERS, EMBEDDING, FEED_FORWARD, HEADS, KV_HEADS = 2, 256, 512, 4, 2
EXPERTS, USED = 8, 2


def write(path: str | Path) -> None:
    rng = np.random.default_rng(5)
    writer = GGUFWriter(path, "llama")
    vocabulary = 0
    for field in GGUFReader(BUILT_IN).fields.values():
        if not field.name.startswith("tokenizer."):
            continue
        element = field.types[1] if field.types[0] == GGUFValueType.ARRAY else None
        writer.add_key_value(field.name, field.contents(), field.types[0], element)
        if field.name == "tokenizer.ggml.tokens":
            vocabulary = len(field.data)
    writer.add_block_count(LAYERS)
    writer.add_context_length(512)
    writer.add_embedding_length(EMBEDDING)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(USED)
    writer.add_vocab_size(vocabulary)

    def add(name: str, shape: tuple[int, ...], kind: Type) -> None:
        values = rng.normal(0, shape[-1] ** -0.5, shape).astype(np.float32)
        writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(EMBEDDING, np.float32))

    kv = EMBEDDING // HEADS * KV_HEADS
    add("token_embd.weight", (vocabulary, EMBEDDING), Type.Q8_0)
    ones("output_norm.weight")
    add("output.weight", (vocabulary, EMBEDDING), Type.Q8_0)
    for n in range(LAYERS):
        ones(f"blk.{n}.attn_norm.weight")
        ones(f"blk.{n}.ffn_norm.weight")
        for name, rows in ("q", EMBEDDING), ("k", kv), ("v", kv), ("output", EMBEDDING):
            add(f"blk.{n}.attn_{name}.weight", (rows, EMBEDDING), Type.Q5_0)
        add(f"blk.{n}.ffn_gate_inp.weight", (EXPERTS, EMBEDDING), Type.F32)
        add(f"blk.{n}.ffn_gate_exps.weight", (EXPERTS, FEED_FORWARD, EMBEDDING), Type.Q4_0)
        add(f"blk.{n}.ffn_up_exps.weight", (EXPERTS, FEED_FORWARD, EMBEDDING), Type.Q4_1)
        add(f"blk.{n}.ffn_down_exps.weight", (EXPERTS, EMBEDDING, FEED_FORWARD), Type.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    write(sys.argv[1])
