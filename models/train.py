"""Trains the embedded model on generated stories; writes a float checkpoint.

    python train.py --out DIR      # DIR/tokenizer.json, DIR/float.safetensors

`export.py` makes the GGUF from it.
"""

import argparse
import math
import random
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

import tokenizer
from config import Config
from net import Llama
from stories import stories

VOCAB = 1024
TOKENIZER_STORIES = 5000
# Seeds of the text: training and held-out stories never come from the same one.
TRAIN_SEED, HELD_OUT_SEED = 1, 2


def rows(seed: int, vocabulary: tokenizer.Tokenizer, length: int) -> Iterator[list[int]]:
    """Token rows of `length`: BOS story EOS BOS story EOS ..., cut at the end.

    A third of the rows begin at a later sentence of a story, so that a prompt
    from the middle of a story is continued too.
    """
    rng = random.Random(seed)
    source = stories(seed)
    while True:
        text = next(source)
        if rng.random() < 1 / 3:
            sentences = text.split(". ")
            text = ". ".join(sentences[rng.randrange(len(sentences)):])
        row: list[int] = []
        while len(row) < length:
            row += [tokenizer.BOS, *vocabulary.encode(text), tokenizer.EOS]
            text = next(source)
        yield row[:length]


def loss_of(model: Llama, batch: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy in nats a token over `batch` [rows, n + 1]."""
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.flatten(0, 1).float(), batch[:, 1:].flatten())


def held_out_loss(model: Llama, vocabulary: tokenizer.Tokenizer, count: int = 32) -> float:
    """Loss in nats a token on `count` rows of stories that were not trained on."""
    batch = torch.tensor(list(islice(rows(HELD_OUT_SEED, vocabulary, model.config.context + 1), count)))
    with torch.no_grad():
        return sum(loss_of(model, part).item() for part in batch.split(8)) / len(batch.split(8))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="directory for the checkpoint")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--batch", type=int, default=16, help="rows of 512 tokens a step")
    parser.add_argument("--rate", type=float, default=2e-3, help="peak learning rate")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(1)

    vocabulary = tokenizer.train(islice(stories(TRAIN_SEED), TOKENIZER_STORIES), VOCAB)
    vocabulary.save(args.out / "tokenizer.json")
    model = Llama(Config(vocab=len(vocabulary)))
    matrices = [p for p in model.parameters() if p.dim() == 2]
    norms = [p for p in model.parameters() if p.dim() == 1]
    optimiser = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}],
        lr=args.rate, betas=(0.9, 0.95))
    source = rows(TRAIN_SEED, vocabulary, model.config.context + 1)
    start = time.monotonic()
    for step in range(args.steps):
        warm = min(1.0, (step + 1) / 100)
        rate = args.rate * warm * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * step / args.steps)))
        for group in optimiser.param_groups:
            group["lr"] = rate
        batch = torch.tensor(list(islice(source, args.batch)))
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if step % 50 == 0 or step + 1 == args.steps:
            print(f"step {step:5}  loss {loss.item():.4f}  rate {rate:.2e}  {time.monotonic() - start:.0f} s",
                  flush=True)
        if (step + 1) % 250 == 0 or step + 1 == args.steps:
            save_file(model.tensors(), args.out / "float.safetensors")
            print(f"step {step:5}  held-out loss {held_out_loss(model, vocabulary):.4f}", flush=True)


if __name__ == "__main__":
    main()
