//! Loads weights: each tensor's bytes from the file straight into its place in DMA memory.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::dma::{Buffer, DmaError, Heap};
use crate::gguf::{Gguf, GgufError, TensorInfo};
use crate::quant::WeightType;

/// A tensor whose bytes are in DMA memory.
pub struct Loaded {
    pub tensor: TensorInfo,
    buffer: Buffer,
}

/// What a load came to.
pub struct Load {
    gguf: Arc<Gguf>,
    pub tensors: Vec<Loaded>,
    /// Time that the reads and syncs took.
    pub time: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Gguf(#[from] GgufError),
    #[error("tensor {tensor}: {source}")]
    Dma { tensor: String, source: DmaError },
    /// What the device would read is not what the file holds.
    #[error("tensor {tensor}: DMA memory holds sha256 {device}, the file {file}")]
    Verify {
        tensor: String,
        device: String,
        file: String,
    },
}

/// The tensors that a kernel with the type mask `types` (`CAP_TYPES`) can stream: matrices of its
/// types.
pub fn streamable(gguf: &Gguf, types: u32) -> impl Iterator<Item = &TensorInfo> {
    gguf.tensors().iter().filter(move |t| {
        t.shape.len() >= 2
            && WeightType::from_ggml(t.ggml_type).is_some_and(|ty| types & ty.mask() != 0)
    })
}

/// Reads what [`streamable`] names into buffers of `heap` and hands them to the device. `progress`
/// is told the bytes of each tensor when it is there.
pub fn load(
    gguf: Arc<Gguf>,
    heap: &Heap,
    types: u32,
    mut progress: impl FnMut(u64),
) -> Result<Load, LoadError> {
    let mut tensors = Vec::new();
    let start = Instant::now();
    for tensor in streamable(&gguf, types) {
        let of_tensor = |source| LoadError::Dma {
            tensor: tensor.name.clone(),
            source,
        };
        let len = tensor.bytes as usize;
        let buffer = heap.alloc(len).map_err(of_tensor)?;
        // SAFETY: the buffer is new; nobody else knows of it.
        gguf.read_tensor(
            tensor,
            unsafe { buffer.slice_mut(0, len) }.map_err(of_tensor)?,
        )?;
        buffer.sync_for_device(0, len).map_err(of_tensor)?;
        progress(tensor.bytes);
        tensors.push(Loaded {
            tensor: tensor.clone(),
            buffer,
        });
    }
    Ok(Load {
        gguf,
        tensors,
        time: start.elapsed(),
    })
}

impl Loaded {
    pub fn device_addr(&self) -> u64 {
        self.buffer.device_addr()
    }
}

impl Load {
    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors.iter().map(|t| t.tensor.bytes).sum()
    }

    /// Compares, by SHA-256, what the device would read with what the file holds. `progress` is
    /// told the bytes of each tensor when it has been compared.
    pub fn verify(&self, mut progress: impl FnMut(u64)) -> Result<(), LoadError> {
        let mut bytes = Vec::new();
        for Loaded { tensor, buffer } in &self.tensors {
            let of_tensor = |source| LoadError::Dma {
                tensor: tensor.name.clone(),
                source,
            };
            // The CPU's view may hold what was written and not what reached memory: take it anew.
            buffer.sync_for_cpu(0, buffer.len()).map_err(of_tensor)?;
            // SAFETY: no job is under way, and the buffer is borrowed from us.
            let device =
                Sha256::digest(unsafe { buffer.slice(0, buffer.len()) }.map_err(of_tensor)?);
            bytes.resize(tensor.bytes as usize, 0);
            self.gguf.read_tensor(tensor, &mut bytes)?;
            let file = Sha256::digest(&bytes);
            if device != file {
                return Err(LoadError::Verify {
                    tensor: tensor.name.clone(),
                    device: hex(&device),
                    file: hex(&file),
                });
            }
            progress(tensor.bytes);
        }
        Ok(())
    }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|b| format!("{b:02x}")).collect()
}
