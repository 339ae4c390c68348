//! Reads a GGUF file's header: what tensors there are and where their bytes lie.
//!
//! Source of the format: the GGUF specification in ggml's documentation, versions 2 and 3.

mod cursor;
mod types;

pub use types::{TypeInfo, type_info};

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cursor::Cursor;

/// ggml's most dimensions of a tensor.
const MAX_DIMS: u32 = 4;
/// Alignment of tensor data where `general.alignment` is absent.
const DEFAULT_ALIGNMENT: u64 = 32;

/// A GGUF file, open, with its tensors' places.
pub struct Gguf {
    path: PathBuf,
    file: File,
    tensors: Vec<TensorInfo>,
}

/// A tensor's entry in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// Elements in each dimension, the contiguous one first.
    pub shape: Vec<u64>,
    /// ggml's number of the type.
    pub ggml_type: u32,
    /// Offset of the first byte in the file.
    pub file_offset: u64,
    pub bytes: u64,
}

impl TensorInfo {
    /// The name of the type.
    pub fn type_name(&self) -> &'static str {
        type_info(self.ggml_type).map_or("?", |t| t.name)
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum GgufError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: {field} is {value}, expected {expected}", path.display())]
    Field {
        path: PathBuf,
        field: String,
        value: String,
        expected: String,
    },
    #[error(
        "{}: the file is cut short: {field} needs {needed} bytes from offset {offset}, the file has {size}",
        path.display()
    )]
    Truncated {
        path: PathBuf,
        field: String,
        offset: u64,
        needed: u64,
        size: u64,
    },
}

impl Gguf {
    /// Opens `path` and reads its header. Every tensor's bytes are checked to lie within the file.
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        let path = path.as_ref();
        let io_error = |source| GgufError::Io {
            path: path.into(),
            source,
        };
        // A pipe would wait for a writer, and a device has no length.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(GgufError::Io {
                path: path.into(),
                source,
            });
        }
        let file = File::open(path).map_err(io_error)?;
        Self::read(file, path).map_err(|e| e.at(path))
    }

    /// As [`Gguf::open`], of a file that is open already and called `name` in messages.
    pub fn from_file(file: File, name: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        Self::read(file, name.as_ref()).map_err(|e| e.at(name.as_ref()))
    }

    fn read(file: File, path: &Path) -> Result<Gguf, cursor::Error> {
        let mut cursor = Cursor::new(&file)?;
        let magic = cursor.array::<4>("magic")?;
        if &magic != b"GGUF" {
            let found = String::from_utf8_lossy(&magic).escape_debug().to_string();
            return Err(cursor::bad("magic", found, "GGUF"));
        }
        let version = cursor.u32("version")?;
        if !matches!(version, 2 | 3) {
            return Err(cursor::bad("version", version, "2 or 3"));
        }
        let tensor_count = cursor.u64("tensor count")?;
        let entry_count = cursor.u64("metadata count")?;

        let mut alignment = DEFAULT_ALIGNMENT;
        for n in 0..entry_count {
            let key = cursor.string(&format!("key of metadata entry {n}"))?;
            let value = cursor.skip_value(&key)?;
            if key == "general.alignment" {
                alignment = match value {
                    Some(a) if a.is_power_of_two() => a,
                    Some(other) => return Err(cursor::bad(&key, other, "a power of two")),
                    None => return Err(cursor::bad(&key, "no unsigned integer", "a power of two")),
                };
            }
        }

        // The count is not trusted to reserve memory: each entry has to be there.
        let mut tensors = Vec::new();
        let mut names = HashSet::new();
        for n in 0..tensor_count {
            let tensor = read_tensor(&mut cursor, n)?;
            if !names.insert(tensor.name.clone()) {
                return Err(cursor::bad(
                    &format!("name of tensor {n}"),
                    tensor.name,
                    "a new name",
                ));
            }
            tensors.push(tensor);
        }
        let data = cursor.offset().next_multiple_of(alignment);
        for tensor in &mut tensors {
            let field = format!("offset of tensor {}", tensor.name);
            if !tensor.file_offset.is_multiple_of(alignment) {
                let expected = format!("a multiple of {alignment}");
                return Err(cursor::bad(&field, tensor.file_offset, &expected));
            }
            tensor.file_offset = data
                .checked_add(tensor.file_offset)
                .ok_or_else(|| cursor::bad(&field, tensor.file_offset, "an offset in the file"))?;
            let field = format!("data of tensor {}", tensor.name);
            cursor.check(&field, tensor.file_offset, tensor.bytes)?;
        }
        Ok(Gguf {
            path: path.into(),
            file,
            tensors,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// All tensors, in the header's order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.iter().find(|t| t.name == name)
    }

    /// Reads `tensor`'s bytes straight into `to`, which has as many.
    ///
    /// # Errors
    /// If the file was cut short since it was opened, or cannot be read.
    pub fn read_tensor(&self, tensor: &TensorInfo, to: &mut [u8]) -> Result<(), GgufError> {
        use std::os::unix::fs::FileExt;
        debug_assert_eq!(to.len() as u64, tensor.bytes);
        self.file
            .read_exact_at(to, tensor.file_offset)
            .map_err(|source| {
                let path = self.path.clone();
                match (source.kind(), self.file.metadata()) {
                    (io::ErrorKind::UnexpectedEof, Ok(now)) => GgufError::Truncated {
                        path,
                        field: format!("data of tensor {}", tensor.name),
                        offset: tensor.file_offset,
                        needed: tensor.bytes,
                        size: now.len(),
                    },
                    _ => GgufError::Io { path, source },
                }
            })
    }
}

/// Reads one tensor entry; its offset still counts from the start of the data.
fn read_tensor(cursor: &mut Cursor<'_>, n: u64) -> Result<TensorInfo, cursor::Error> {
    let name = cursor.string(&format!("name of tensor {n}"))?;
    let field = |what: &str| format!("{what} of tensor {name}");
    let dims = cursor.u32(&field("dimensions"))?;
    if dims > MAX_DIMS {
        return Err(cursor::bad(
            &field("dimensions"),
            dims,
            &format!("at most {MAX_DIMS}"),
        ));
    }
    let mut shape = Vec::new();
    for _ in 0..dims {
        shape.push(cursor.u64(&field("shape"))?);
    }
    let ggml_type = cursor.u32(&field("type"))?;
    let Some(info) = type_info(ggml_type) else {
        return Err(cursor::bad(
            &field("type"),
            ggml_type,
            "a type number of ggml 0.26",
        ));
    };
    let row = shape.first().copied().unwrap_or(1);
    if !row.is_multiple_of(info.block_len) {
        let expected = format!("rows of whole {} blocks of {}", info.name, info.block_len);
        return Err(cursor::bad(
            &field("shape"),
            format!("{shape:?}"),
            &expected,
        ));
    }
    let bytes = shape
        .iter()
        .try_fold(1u64, |all, n| all.checked_mul(*n))
        .and_then(|elements| (elements / info.block_len).checked_mul(info.block_bytes))
        .ok_or_else(|| {
            cursor::bad(
                &field("shape"),
                format!("{shape:?}"),
                "a size below 2^64 bytes",
            )
        })?;
    let file_offset = cursor.u64(&field("offset"))?;
    Ok(TensorInfo {
        name,
        shape,
        ggml_type,
        file_offset,
        bytes,
    })
}

#[cfg(test)]
mod tests;
