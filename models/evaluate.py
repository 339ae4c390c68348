"""Loads a GGUF of the embedded model's kind into torch; reports its loss and what it writes.

    python evaluate.py [--model weightstream-tiny.gguf] [--checkpoint DIR] [--prompt TEXT]...

Weights are dequantised by the `gguf` package, so the text is what the file
holds, without any kernel of ours.
"""

import argparse
from pathlib import Path

import gguf
import torch
from safetensors.torch import load_file

from config import Config
from net import Llama
from tokenizer import BOS, EOS, Tokenizer
from train import held_out_loss

PROMPTS = ("Once upon a time", "One day, the little dog", "In a small village")


def load(path: Path) -> tuple[Llama, Tokenizer]:
    """The model in `path`, weights as the GGUF's blocks decode, and its tokenizer."""
    reader = gguf.GGUFReader(path)

    def field(name: str):
        return reader.fields[name].contents()

    config = Config(
        vocab=field("llama.vocab_size"), context=field("llama.context_length"),
        width=field("llama.embedding_length"), layers=field("llama.block_count"),
        heads=field("llama.attention.head_count"), kv_heads=field("llama.attention.head_count_kv"),
        hidden=field("llama.feed_forward_length"), rope_base=field("llama.rope.freq_base"),
        norm_eps=field("llama.attention.layer_norm_rms_epsilon"))
    vocabulary = Tokenizer.of_pieces(field("tokenizer.ggml.tokens"))
    model = Llama(config)
    model.load({t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in reader.tensors})
    return model, vocabulary


def greedy(model: Llama, vocabulary: Tokenizer, prompt: str, count: int) -> list[int]:
    """`prompt` and at most `count` tokens more, the most likely each; ends before EOS."""
    ids = [BOS, *vocabulary.encode(prompt)]
    with torch.no_grad():
        for _ in range(min(count, model.config.context - len(ids))):
            best = int(model(torch.tensor([ids]))[0, -1].argmax())
            if best == EOS:
                break
            ids.append(best)
    return ids


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=Path(__file__).parent / "weightstream-tiny.gguf")
    parser.add_argument("--checkpoint", type=Path, help="directory that train.py wrote, for the float model's loss")
    parser.add_argument("--prompt", action="append", help="may be given several times")
    parser.add_argument("--tokens", type=int, default=250)
    args = parser.parse_args()
    torch.set_num_threads(1)
    model, vocabulary = load(args.model)
    if args.checkpoint:
        floats = Llama(model.config)
        floats.load(load_file(args.checkpoint / "float.safetensors"))
        print(f"held-out loss, float:     {held_out_loss(floats, vocabulary):.4f} nats a token")
    print(f"held-out loss, quantised: {held_out_loss(model, vocabulary):.4f} nats a token")
    for prompt in args.prompt or PROMPTS:
        ids = greedy(model, vocabulary, prompt, args.tokens)
        print(f"\n{len(ids)} tokens: {vocabulary.decode(ids)}")


if __name__ == "__main__":
    main()
