"""The llama architecture in torch, as llama.cpp computes it.

RMS norm, rotary positions in interleaved pairs (the "normal" RoPE of the GGUF
architecture `llama`, so no weight is permuted on export), grouped-query
attention, a gated feed-forward with SiLU, and an output matrix of its own.
Parameters carry their GGUF names.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from config import Config


class Llama(nn.Module):
    """Maps token ids [batch, n] to logits [batch, n, vocab]."""

    def __init__(self, config: Config):
        super().__init__()
        self.config = config
        self.weights = nn.ParameterDict()
        for name, shape in config.shapes().items():
            if len(shape) == 1:
                value = torch.ones(shape)
            else:
                # The matrices that add to the residual stream start smaller.
                adds = name.endswith(("attn_output.weight", "ffn_down.weight"))
                value = torch.randn(shape) * 0.02 * ((2 * config.layers) ** -0.5 if adds else 1.0)
            self.weights[_key(name)] = nn.Parameter(value)
        position = torch.arange(config.context, dtype=torch.float64)
        rate = config.rope_base ** (-torch.arange(0, config.head_width, 2) / config.head_width)
        angle = torch.outer(position, rate.double())
        self.register_buffer("cos", angle.cos().float(), persistent=False)
        self.register_buffer("sin", angle.sin().float(), persistent=False)

    def tensors(self) -> dict[str, Tensor]:
        """The parameters under their GGUF names."""
        return {name: self.weights[_key(name)].detach() for name in self.config.shapes()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        for name in self.config.shapes():
            self.weights[_key(name)].data.copy_(tensors[name])

    def forward(self, ids: Tensor) -> Tensor:
        c = self.config
        x = F.embedding(ids, self._w("token_embd"))
        for i in range(c.layers):
            x = x + self._attention(i, self._norm(x, f"blk.{i}.attn_norm"))
            h = self._norm(x, f"blk.{i}.ffn_norm")
            gate = F.silu(F.linear(h, self._w(f"blk.{i}.ffn_gate")))
            up = F.linear(h, self._w(f"blk.{i}.ffn_up"))
            x = x + F.linear(gate * up, self._w(f"blk.{i}.ffn_down"))
        return F.linear(self._norm(x, "output_norm"), self._w("output"))

    def _attention(self, i: int, x: Tensor) -> Tensor:
        c = self.config
        batch, n, _ = x.shape
        q = F.linear(x, self._w(f"blk.{i}.attn_q")).view(batch, n, c.heads, c.head_width)
        k = F.linear(x, self._w(f"blk.{i}.attn_k")).view(batch, n, c.kv_heads, c.head_width)
        v = F.linear(x, self._w(f"blk.{i}.attn_v")).view(batch, n, c.kv_heads, c.head_width)
        share = c.heads // c.kv_heads
        q = self._rope(q).to(v.dtype).transpose(1, 2)
        k = self._rope(k).to(v.dtype).repeat_interleave(share, 2).transpose(1, 2)
        v = v.repeat_interleave(share, 2).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.linear(y.transpose(1, 2).reshape(batch, n, c.width), self._w(f"blk.{i}.attn_output"))

    def _rope(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        cos, sin = self.cos[:n, None], self.sin[:n, None]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, (self.config.width,), self._w(name), self.config.norm_eps)

    def _w(self, name: str) -> Tensor:
        return self.weights[_key(name + ".weight")]


def _key(name: str) -> str:
    """A parameter's key: torch does not allow dots in it."""
    return name.replace(".", "/")
