//! Loads weights: each tensor's bytes from the file straight into its place in DMA memory.
//!
//! Files are read past the page cache, with O_DIRECT, several large reads at once through io_uring,
//! each into its tensor's buffer: a buffer starts as far past a block as its tensor does in the
//! file, so whole blocks can be read and the tensor's bytes land in place. What cannot be read so is
//! read by pread(2), and [`Reads`] says why.

mod direct;
mod reader;
mod ring;

pub use reader::{Done, Reader, Reads};

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::dma::{Buffer, DmaError, Heap};
use crate::gguf::{Gguf, GgufError, TensorInfo};
use crate::quant::WeightType;

/// A tensor whose bytes are in DMA memory.
pub struct Loaded {
    pub tensor: TensorInfo,
    /// SHA-256 of its bytes, in hexadecimal, if it was asked for.
    pub sha256: Option<String>,
    buffer: Buffer,
}

/// What a load came to.
pub struct Load {
    gguf: Arc<Gguf>,
    pub tensors: Vec<Loaded>,
    pub reads: Reads,
    /// Time from the first read until all tensors were there, handed to the device and, if asked
    /// for, their checksums taken.
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
    gguf.tensors()
        .iter()
        .filter(move |tensor| is_streamable(tensor, types))
}

fn is_streamable(tensor: &TensorInfo, types: u32) -> bool {
    let ty = WeightType::from_ggml(tensor.ggml_type);
    tensor.shape.len() >= 2 && ty.is_some_and(|ty| types & ty.mask() != 0)
}

/// Reads what [`streamable`] names into buffers of `heap` and hands them to the device; with
/// `checksum` it takes their checksums meanwhile. `progress` is told bytes as they are there.
///
/// # Errors
/// If the heap has no room, a file was cut short since it was opened, or cannot be read.
pub fn load(
    gguf: Arc<Gguf>,
    heap: &Heap,
    types: u32,
    checksum: bool,
    mut progress: impl FnMut(u64),
) -> Result<Load, LoadError> {
    let start = Instant::now();
    // In the files' order.
    let mut indices: Vec<usize> = (0..gguf.tensors().len()).collect();
    indices.retain(|index| is_streamable(&gguf.tensors()[*index], types));
    indices.sort_by_key(|index| {
        let tensor = &gguf.tensors()[*index];
        (tensor.part, tensor.file_offset)
    });
    let (sender, complete) = mpsc::channel::<(usize, Loaded)>();
    let (mut tensors, reads) = thread::scope(|scope| {
        let collector = scope.spawn(move || {
            let all = complete.into_iter().map(|(index, mut loaded)| {
                if checksum {
                    let buffer = &loaded.buffer;
                    // SAFETY: it is read, and nothing writes it from here on.
                    let bytes = unsafe { buffer.slice(0, buffer.len()) };
                    loaded.sha256 = bytes.ok().map(|bytes| hex(&Sha256::digest(bytes)));
                }
                (index, loaded)
            });
            all.collect::<Vec<_>>()
        });
        let reads = read_all(&gguf, heap, &indices, &sender, &mut progress);
        drop(sender);
        let tensors = collector.join().expect("nothing in it panics");
        reads.map(|reads| (tensors, reads))
    })?;
    tensors.sort_by_key(|(index, _)| *index);
    Ok(Load {
        tensors: tensors.into_iter().map(|(_, loaded)| loaded).collect(),
        gguf,
        reads,
        time: start.elapsed(),
    })
}

/// Reads the tensors number `indices` and passes each one on when it is there.
fn read_all(
    gguf: &Arc<Gguf>,
    heap: &Heap,
    indices: &[usize],
    complete: &mpsc::Sender<(usize, Loaded)>,
    progress: &mut impl FnMut(u64),
) -> Result<Reads, LoadError> {
    /// A tensor that is being read.
    struct Pending {
        buffer: Buffer,
        left: u64,
    }
    let tensors = gguf.tensors();
    let of_tensor = |index: usize| {
        move |source| LoadError::Dma {
            tensor: tensors[index].name.clone(),
            source,
        }
    };
    // In a cell, for the reader's reports come while it is given new work. Dropped after the reader,
    // which waits for what is under way.
    let pending: RefCell<HashMap<usize, Pending>> = RefCell::default();
    let mut reader = Reader::new(gguf.clone());
    let mut done = |done: Done| {
        progress(done.bytes);
        let mut pending = pending.borrow_mut();
        let Entry::Occupied(mut entry) = pending.entry(done.tensor) else {
            return Ok(());
        };
        entry.get_mut().left -= done.bytes;
        if entry.get().left > 0 {
            return Ok(());
        }
        let buffer = entry.remove().buffer;
        let synced = buffer.sync_for_device(0, buffer.len());
        synced.map_err(of_tensor(done.tensor))?;
        let tensor = tensors[done.tensor].clone();
        let loaded = Loaded {
            tensor,
            sha256: None,
            buffer,
        };
        // It takes them until we are done.
        let _ = complete.send((done.tensor, loaded));
        Ok::<(), LoadError>(())
    };
    for &index in indices {
        let TensorInfo {
            file_offset, bytes, ..
        } = tensors[index];
        let buffer = heap.alloc_for_file(file_offset, bytes as usize);
        let buffer = buffer.map_err(of_tensor(index))?;
        let to = buffer.as_ptr();
        let left = bytes;
        pending.borrow_mut().insert(index, Pending { buffer, left });
        if bytes == 0 {
            done(Done {
                tensor: index,
                bytes,
            })?;
            continue;
        }
        // SAFETY: the buffer starts as `to` has to, its granules are its own, and it is kept in
        // `pending` until it is read.
        unsafe { reader.start(index, to, &mut done) }?;
    }
    reader.wait_all(&mut done)?;
    Ok(reader.reads().clone())
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
        for Loaded { tensor, buffer, .. } in &self.tensors {
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

#[cfg(test)]
mod tests;
