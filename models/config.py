"""The embedded model's dimensions and its tensors."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    vocab: int
    context: int = 512
    width: int = 256
    layers: int = 4
    heads: int = 4
    kv_heads: int = 2
    hidden: int = 768
    rope_base: float = 10000.0
    norm_eps: float = 1e-5

    @property
    def head_width(self) -> int:
        return self.width // self.heads

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """GGUF tensor names and their shapes, matrices as (rows, k)."""
        kv = self.kv_heads * self.head_width
        shapes: dict[str, tuple[int, ...]] = {"token_embd.weight": (self.vocab, self.width)}
        for i in range(self.layers):
            shapes |= {
                f"blk.{i}.attn_norm.weight": (self.width,),
                f"blk.{i}.attn_q.weight": (self.width, self.width),
                f"blk.{i}.attn_k.weight": (kv, self.width),
                f"blk.{i}.attn_v.weight": (kv, self.width),
                f"blk.{i}.attn_output.weight": (self.width, self.width),
                f"blk.{i}.ffn_norm.weight": (self.width,),
                f"blk.{i}.ffn_gate.weight": (self.hidden, self.width),
                f"blk.{i}.ffn_up.weight": (self.hidden, self.width),
                f"blk.{i}.ffn_down.weight": (self.width, self.hidden),
            }
        return shapes | {"output_norm.weight": (self.width,), "output.weight": (self.vocab, self.width)}
