//! Vectors from a model's own weights.

use std::ops::Range;
use std::path::PathBuf;

use super::{Case, exact};
use crate::gguf::{Gguf, GgufError, TensorInfo};
use crate::quant::WeightType;

/// Why a tensor makes no vector.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error("tensor {tensor} is {ty}, which is not a weight type of the kernel")]
    Type { tensor: String, ty: &'static str },
    #[error("rows {first} to {end} are not all among the {rows} of tensor {tensor}")]
    Rows {
        tensor: String,
        first: u64,
        end: u64,
        rows: u64,
    },
    #[error("a column of {found} activations does not fit tensor {tensor}, whose k is {k}")]
    Column {
        tensor: String,
        found: usize,
        k: usize,
    },
}

/// The weight type of `tensor`.
pub fn weight_type(tensor: &TensorInfo) -> Result<WeightType, MakeError> {
    WeightType::from_ggml(tensor.ggml_type).ok_or_else(|| MakeError::Type {
        tensor: tensor.name.clone(),
        ty: tensor.type_name(),
    })
}

/// A case of `rows` rows of `tensor` and the columns `x` of f32 activations, with exact results.
pub fn from_tensor(
    gguf: &Gguf,
    tensor: &TensorInfo,
    rows: Range<u64>,
    x: &[Vec<f32>],
) -> Result<Case, MakeError> {
    let ty = weight_type(tensor)?;
    let name = || tensor.name.clone();
    let k = tensor.shape.first().copied().unwrap_or(0);
    let all: u64 = tensor.shape.iter().skip(1).product();
    if rows.is_empty() || rows.end > all {
        return Err(MakeError::Rows {
            tensor: name(),
            first: rows.start,
            end: rows.end,
            rows: all,
        });
    }
    let k = k as usize;
    if let Some(column) = x.iter().find(|column| column.len() != k) {
        return Err(MakeError::Column {
            tensor: name(),
            found: column.len(),
            k,
        });
    }
    let row_bytes = tensor.bytes / all;
    let slice = TensorInfo {
        file_offset: tensor.file_offset + rows.start * row_bytes,
        bytes: (rows.end - rows.start) * row_bytes,
        ..tensor.clone()
    };
    let mut weights = vec![0; slice.bytes as usize];
    gguf.read_tensor(&slice, &mut weights)?;
    let activations: Vec<u8> = x
        .iter()
        .flat_map(|column| exact::quantise(column))
        .collect();
    Ok(Case {
        path: PathBuf::new(),
        ty,
        k,
        rows: (rows.end - rows.start) as usize,
        cols: x.len(),
        expected: exact::results(ty, k, &weights, &activations),
        weights,
        activations,
        x: Some(x.concat()),
        notes: Default::default(),
        recorded: None,
    })
}
