//! What a model computes for a token, as far as its time depends on it: products of weights.

use std::path::PathBuf;

use serde::Serialize;

use crate::gguf::{Gguf, TensorInfo, type_info};
use crate::profile::{layer_of, role_of};
use crate::quant::WeightType;

/// A model's matrix products.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    pub name: String,
    /// In the order in which they are computed.
    pub products: Vec<Product>,
    /// Of keys and values, bytes a token of context: f16, in all layers.
    pub kv_bytes: u64,
    /// Bytes of tensors that are no weights of products: embeddings, norms.
    pub other_bytes: u64,
}

/// Weights, and how often a token uses them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Product {
    pub name: String,
    /// The name of its type, which may be one that the kernel has not.
    pub r#type: String,
    pub k: usize,
    pub rows: usize,
    /// Matrices of this shape: 1, or the experts.
    pub matrices: usize,
    /// How many of them a token uses.
    pub used: usize,
    /// Of all of them.
    pub bytes: u64,
}

impl Product {
    /// The kernel's type, if it has it.
    pub fn weight_type(&self) -> Option<WeightType> {
        self.r#type.parse().ok()
    }

    pub fn layer(&self) -> &str {
        layer_of(&self.name)
    }

    pub fn role(&self) -> &str {
        role_of(&self.name)
    }

    /// Bytes that a token uses.
    pub fn bytes_used(&self) -> u64 {
        self.bytes / self.matrices as u64 * self.used as u64
    }
}

/// Why a model cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    #[error("{}: {field} is {value}, expected {expected}", path.display())]
    Field {
        path: PathBuf,
        field: String,
        value: String,
        expected: String,
    },
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {message}", path.display())]
    Toml { path: PathBuf, message: String },
}

/// A product's place in a layer, and which follow it in one chain of jobs: as llama.cpp's graph and
/// the ggml backend have it (`docs/llama.md`, "Where the time goes").
const CHAINS: [&[&str]; 6] = [
    &["attn_qkv"],
    &["attn_q"],
    &["attn_v", "attn_k"],
    &["attn_output"],
    &[
        "ffn_gate",
        "ffn_up",
        "ffn_gate_exps",
        "ffn_up_exps",
        "ffn_gate_shexp",
        "ffn_up_shexp",
    ],
    &["ffn_down", "ffn_down_exps", "ffn_down_shexp"],
];

impl Model {
    /// From a GGUF file's header. Without an output matrix of its own the embeddings are it.
    pub fn from_gguf(gguf: &Gguf, name: &str) -> Model {
        let tied = gguf.tensor("output.weight").is_none();
        let used = gguf.architecture_number("expert_used_count");
        let is_weight = |t: &&TensorInfo| {
            let is_embedding = t.name.starts_with("token_embd");
            t.shape.len() > 1 && t.name.ends_with(".weight") && (tied || !is_embedding)
        };
        let tensors = gguf.tensors().iter().filter(is_weight);
        let products = tensors.map(|t| {
            let matrices = t.shape[2..].iter().product::<u64>().max(1);
            let used = match matrices {
                1 => 1,
                _ => used.unwrap_or(matrices).min(matrices),
            };
            Product {
                name: t.name.clone(),
                r#type: type_info(t.ggml_type).map_or("?", |t| t.name).into(),
                k: t.shape[0] as usize,
                rows: t.shape[1] as usize,
                matrices: matrices as usize,
                used: used as usize,
                bytes: t.bytes,
            }
        });
        let products: Vec<Product> = products.collect();
        let all: u64 = gguf.tensors().iter().map(|t| t.bytes).sum();
        let weights: u64 = products.iter().map(|p| p.bytes).sum();
        // Tied embeddings are looked up where they lie.
        Model::new(name, products, all - weights)
    }

    /// `products` in any order.
    pub fn new(name: &str, mut products: Vec<Product>, other_bytes: u64) -> Model {
        let place = |p: &Product| {
            let layer = p.layer();
            let number: Option<u64> = layer.strip_prefix("blk.").and_then(|n| n.parse().ok());
            let chain = CHAINS.iter().position(|c| c.contains(&p.role()));
            let in_chain = chain.and_then(|c| CHAINS[c].iter().position(|r| *r == p.role()));
            (number.unwrap_or(u64::MAX), chain, in_chain)
        };
        products.sort_by_key(place);
        let kv_values: u64 = products
            .iter()
            .map(|p| match p.role() {
                "attn_k" | "attn_v" => p.rows as u64,
                // What is more than the query, which is as wide as the layer's input.
                "attn_qkv" => p.rows.saturating_sub(p.k) as u64,
                _ => 0,
            })
            .sum();
        Model {
            name: name.into(),
            products,
            kv_bytes: 2 * kv_values,
            other_bytes,
        }
    }

    /// The products by the chains in which they go down.
    pub fn chains(&self) -> Vec<&[Product]> {
        let together = |a: &Product, b: &Product| {
            let chain = |p: &Product| CHAINS.iter().position(|c| c.contains(&p.role()));
            a.layer() == b.layer() && chain(a).is_some() && chain(a) == chain(b)
        };
        self.products.chunk_by(together).collect()
    }

    /// Bytes of all weights of products.
    pub fn weight_bytes(&self) -> u64 {
        self.products.iter().map(|p| p.bytes).sum()
    }
}
