"""Quantises the float checkpoint and writes the embedded model's GGUF.

    python export.py --checkpoint DIR [--out weightstream-tiny.gguf]

Every one of the ten weight types is used by some matrices, spread over the
layers, so that text from this model passes through all of the kernel's
decoders.
"""

import argparse
from pathlib import Path

import gguf
import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter
from safetensors.numpy import load_file

import tokenizer
from config import Config
from quantise import quantise

# Chosen by trying: rightly decoded, the held-out loss is that of the floats to within 0.001; with the matrices of any
# one type decoded wrongly (their halves swapped, moved by one weight, set to zero) the text visibly breaks.
#             q       k       v       output  gate    up      down
LAYERS = (("Q4_0", "Q5_0", "Q8_0", "Q4_1", "Q2_K", "Q5_1", "Q6_K"),
          ("Q5_1", "Q4_1", "Q2_K", "Q5_0", "Q3_K", "Q4_0", "Q4_K"),
          ("Q4_K", "Q6_K", "Q5_1", "Q8_0", "Q5_K", "Q5_0", "Q5_1"),
          ("Q3_K", "Q2_K", "Q6_K", "Q4_K", "Q4_1", "Q3_K", "Q5_K"))
MATRICES = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")

TYPES = {f"blk.{i}.{matrix}.weight": kind
         for i, kinds in enumerate(LAYERS) for matrix, kind in zip(MATRICES, kinds, strict=True)}
TYPES |= {"output.weight": "Q6_K", "token_embd.weight": "Q8_0"}


def write(path: Path, tensors: dict[str, np.ndarray], config: Config, vocabulary: tokenizer.Tokenizer) -> None:
    """Writes the GGUF: `tensors` are float32 under their GGUF names, norms stay as they are."""
    writer = GGUFWriter(path, "llama")
    writer.add_name("weightstream tiny")
    writer.add_description("Writes short simple stories. Uses all ten weight types of weightstream.")
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_vocab_size(config.vocab)
    writer.add_context_length(config.context)
    writer.add_embedding_length(config.width)
    writer.add_block_count(config.layers)
    writer.add_feed_forward_length(config.hidden)
    writer.add_head_count(config.heads)
    writer.add_head_count_kv(config.kv_heads)
    writer.add_layer_norm_rms_eps(config.norm_eps)
    writer.add_rope_dimension_count(config.head_width)
    writer.add_rope_freq_base(config.rope_base)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary.pieces)
    writer.add_token_scores(vocabulary.scores)
    writer.add_token_types(vocabulary.types)
    writer.add_bos_token_id(tokenizer.BOS)
    writer.add_eos_token_id(tokenizer.EOS)
    writer.add_unk_token_id(tokenizer.UNK)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    writer.add_add_space_prefix(True)
    for name in config.shapes():
        tensor = tensors[name]
        if name in TYPES:
            kind = GGMLQuantizationType[TYPES[name]]
            writer.add_tensor(name, quantise(tensor, TYPES[name]), raw_dtype=kind)
        else:
            writer.add_tensor(name, tensor.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="directory that train.py wrote")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "weightstream-tiny.gguf")
    args = parser.parse_args()
    vocabulary = tokenizer.Tokenizer.load(args.checkpoint / "tokenizer.json")
    write(args.out, load_file(args.checkpoint / "float.safetensors"), Config(vocab=len(vocabulary)), vocabulary)
    print(f"{args.out}: {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
