//! A GGUF file of more than 4 GiB: a model of the llama architecture with random weights.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::fs::{Advice, fadvise};

const LAYERS: u32 = 32;
const EMBEDDING: u64 = 4096;
const FEED_FORWARD: u64 = 11008;
const VOCABULARY: u64 = 32000;
const HEADS: u32 = 32;
const ALIGNMENT: u64 = 32;

/// Numbers of ggml's types, and bytes of a row of `k` weights.
const F32: (u32, fn(u64) -> u64) = (0, |k| k * 4);
const Q5_0: (u32, fn(u64) -> u64) = (6, |k| k / 32 * 22);

struct Tensor {
    name: String,
    shape: Vec<u64>,
    ty: (u32, fn(u64) -> u64),
}

impl Tensor {
    fn bytes(&self) -> u64 {
        (self.ty.1)(self.shape[0]) * self.shape[1..].iter().product::<u64>()
    }
}

fn tensors() -> Vec<Tensor> {
    let mut tensors = Vec::new();
    let mut matrix = |name: &str, k, rows| {
        tensors.push(Tensor {
            name: format!("{name}.weight"),
            shape: if rows == 1 { vec![k] } else { vec![k, rows] },
            ty: if rows == 1 { F32 } else { Q5_0 },
        });
    };
    matrix("token_embd", EMBEDDING, VOCABULARY);
    for layer in 0..LAYERS {
        let mut of_layer = |name: &str, k, rows| matrix(&format!("blk.{layer}.{name}"), k, rows);
        of_layer("attn_norm", EMBEDDING, 1);
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"] {
            of_layer(name, EMBEDDING, EMBEDDING);
        }
        of_layer("ffn_norm", EMBEDDING, 1);
        of_layer("ffn_gate", EMBEDDING, FEED_FORWARD);
        of_layer("ffn_up", EMBEDDING, FEED_FORWARD);
        of_layer("ffn_down", FEED_FORWARD, EMBEDDING);
    }
    matrix("output_norm", EMBEDDING, 1);
    matrix("output", EMBEDDING, VOCABULARY);
    tensors
}

/// A value in the metadata.
enum Value {
    U32(u32),
    F32(f32),
    Text(&'static str),
}

fn metadata() -> Vec<(&'static str, Value)> {
    use Value::{F32, Text, U32};
    vec![
        ("general.architecture", Text("llama")),
        ("llama.block_count", U32(LAYERS)),
        ("llama.context_length", U32(2048)),
        ("llama.embedding_length", U32(EMBEDDING as u32)),
        ("llama.feed_forward_length", U32(FEED_FORWARD as u32)),
        ("llama.attention.head_count", U32(HEADS)),
        ("llama.attention.layer_norm_rms_epsilon", F32(1e-5)),
        ("llama.vocab_size", U32(VOCABULARY as u32)),
        ("tokenizer.ggml.model", Text("no_vocab")),
    ]
}

fn header(tensors: &[Tensor]) -> Vec<u8> {
    let mut out = b"GGUF".to_vec();
    let metadata = metadata();
    let text = |out: &mut Vec<u8>, s: &str| {
        out.extend((s.len() as u64).to_le_bytes());
        out.extend(s.as_bytes());
    };
    out.extend(3u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((metadata.len() as u64).to_le_bytes());
    for (key, value) in metadata {
        text(&mut out, key);
        match value {
            Value::U32(n) => {
                out.extend(4u32.to_le_bytes());
                out.extend(n.to_le_bytes());
            }
            Value::F32(x) => {
                out.extend(6u32.to_le_bytes());
                out.extend(x.to_le_bytes());
            }
            Value::Text(s) => {
                out.extend(8u32.to_le_bytes());
                text(&mut out, s);
            }
        }
    }
    let mut offset = 0u64;
    for tensor in tensors {
        text(&mut out, &tensor.name);
        out.extend((tensor.shape.len() as u32).to_le_bytes());
        tensor
            .shape
            .iter()
            .for_each(|n| out.extend(n.to_le_bytes()));
        out.extend(tensor.ty.0.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset = (offset + tensor.bytes()).next_multiple_of(ALIGNMENT);
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT as usize), 0);
    out
}

/// Writes the file at `path` and to the disk.
pub fn write(path: &Path) -> io::Result<()> {
    let tensors = tensors();
    let mut file = BufWriter::with_capacity(4 << 20, File::create(path)?);
    file.write_all(&header(&tensors))?;
    let mut noise = vec![0; 1 << 20];
    let mut rng = SmallRng::seed_from_u64(1);
    for tensor in &tensors {
        let mut left = tensor.bytes().next_multiple_of(ALIGNMENT) as usize;
        while left > 0 {
            rng.fill_bytes(&mut noise);
            let n = left.min(noise.len());
            file.write_all(&noise[..n])?;
            left -= n;
        }
    }
    let file = file.into_inner()?;
    file.sync_all()?;
    forget(&file)
}

/// Takes the file out of the page cache.
pub fn forget(file: &File) -> io::Result<()> {
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}
