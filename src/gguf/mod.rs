//! Reads a GGUF model's headers: what tensors there are and where their bytes lie.
//!
//! A model is one file or several (`NAME-00001-of-00003.gguf` and so on), each with a header of its
//! own. Source of the format: the GGUF specification in ggml's documentation, versions 2 and 3.

mod cursor;
mod header;
mod types;

pub use types::{TypeInfo, type_info};

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use header::{Extent, Header};

/// A GGUF model, its files open, with its tensors' places.
pub struct Gguf {
    parts: Vec<Part>,
    tensors: Vec<TensorInfo>,
    numbers: BTreeMap<String, u64>,
}

/// One of a model's files.
pub struct Part {
    pub path: PathBuf,
    pub file: File,
}

/// A tensor's entry in the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    pub name: String,
    /// Elements in each dimension, the contiguous one first.
    pub shape: Vec<u64>,
    /// ggml's number of the type.
    pub ggml_type: u32,
    /// Which of [`Gguf::parts`] holds it.
    pub part: usize,
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
    /// Opens the model whose only or first file is `path` and reads the headers of all its files.
    /// Every tensor's bytes are checked to lie within its file.
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        Self::open_extent(path.as_ref(), Extent::Whole)
    }

    /// As [`Gguf::open`], of files that may end behind their headers: the start of a model that is
    /// not at hand. Its tensors cannot be read.
    pub fn open_header(path: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        Self::open_extent(path.as_ref(), Extent::HeaderOnly)
    }

    fn open_extent(path: &Path, extent: Extent) -> Result<Gguf, GgufError> {
        let (first, header) = Part::open(path, 0, extent)?;
        let mut gguf = Gguf {
            parts: vec![first],
            tensors: header.tensors,
            numbers: header.numbers,
        };
        if header.split.count <= 1 {
            return Ok(gguf);
        }
        let bad = |field: &str, value: String, expected: String| {
            cursor::bad(field, value, &expected).at(path)
        };
        let count = header.split.count;
        if header.split.no != 0 {
            let (no, expected) = (header.split.no.to_string(), "0, a model's first file");
            return Err(bad("split.no", no, expected.into()));
        }
        for no in 1..count {
            let path = neighbour(path, no, count).ok_or_else(|| {
                let expected = format!("one that ends in -00001-of-{count:05}.gguf");
                bad("the file's name", path.display().to_string(), expected)
            })?;
            gguf.add(&path, no, count, extent)?;
        }
        let found = gguf.tensors.len() as u64;
        if let Some(said) = header.split.tensors.filter(|n| *n != found) {
            let expected = format!("{found}, the tensors in its {count} files");
            return Err(bad("split.tensors.count", said.to_string(), expected));
        }
        Ok(gguf)
    }

    /// As [`Gguf::open`], of a model in one file that is open already and called `name` in messages.
    pub fn from_file(file: File, name: impl AsRef<Path>) -> Result<Gguf, GgufError> {
        let path = name.as_ref().to_path_buf();
        let header = header::read(&file, 0, Extent::Whole).map_err(|e| e.at(&path))?;
        if header.split.count > 1 {
            let error = cursor::bad("split.count", header.split.count, "1, one file by itself");
            return Err(error.at(&path));
        }
        Ok(Gguf {
            parts: vec![Part { path, file }],
            tensors: header.tensors,
            numbers: header.numbers,
        })
    }

    /// Adds file `no` of `count`.
    fn add(&mut self, path: &Path, no: u64, count: u64, extent: Extent) -> Result<(), GgufError> {
        let (part, header) = Part::open(path, self.parts.len(), extent)?;
        for (field, value, expected) in [
            ("split.no", header.split.no, no),
            ("split.count", header.split.count, count),
        ] {
            if value != expected {
                return Err(cursor::bad(field, value, &expected.to_string()).at(path));
            }
        }
        let names: HashSet<&str> = self.tensors.iter().map(|t| t.name.as_str()).collect();
        for (n, tensor) in header.tensors.iter().enumerate() {
            if names.contains(tensor.name.as_str()) {
                let field = format!("name of tensor {n}");
                return Err(cursor::bad(&field, &tensor.name, "a new name").at(path));
            }
        }
        self.parts.push(part);
        self.tensors.extend(header.tensors);
        Ok(())
    }

    /// The model's files.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// All tensors, in the headers' order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The architecture's number `key`, as `expert_used_count` of `llama.expert_used_count`, from
    /// the first file's metadata.
    pub fn architecture_number(&self, key: &str) -> Option<u64> {
        let of_key = |(name, _): &(&String, &u64)| {
            name.split_once('.')
                .is_some_and(|(architecture, rest)| rest == key && architecture != "general")
        };
        self.numbers.iter().find(of_key).map(|(_, value)| *value)
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
        self.parts[tensor.part]
            .file
            .read_exact_at(to, tensor.file_offset)
            .map_err(|source| self.read_error(tensor, source))
    }

    /// The error that reading `tensor` failed with `source`: that the file has become too short, if
    /// it has.
    pub fn read_error(&self, tensor: &TensorInfo, source: io::Error) -> GgufError {
        let part = &self.parts[tensor.part];
        let path = part.path.clone();
        match (source.kind(), part.file.metadata()) {
            (io::ErrorKind::UnexpectedEof, Ok(now)) => GgufError::Truncated {
                path,
                field: format!("data of tensor {}", tensor.name),
                offset: tensor.file_offset,
                needed: tensor.bytes,
                size: now.len(),
            },
            _ => GgufError::Io { path, source },
        }
    }
}

impl Part {
    /// Opens `path`, file number `part` of a model, and reads its header.
    fn open(path: &Path, part: usize, extent: Extent) -> Result<(Part, Header), GgufError> {
        let io_error = |source| GgufError::Io {
            path: path.into(),
            source,
        };
        // A pipe would wait for a writer, and a device has no length.
        if !std::fs::metadata(path).map_err(io_error)?.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
            return Err(io_error(source));
        }
        let file = File::open(path).map_err(io_error)?;
        let header = header::read(&file, part, extent).map_err(|e| e.at(path))?;
        let path = path.into();
        Ok((Part { path, file }, header))
    }
}

/// The path of file `no`, from 0, of the `count` whose first is `first`; none if that has another
/// name than `gguf-split` gives.
fn neighbour(first: &Path, no: u64, count: u64) -> Option<PathBuf> {
    let suffix = |no: u64| format!("-{:05}-of-{count:05}.gguf", no + 1);
    let name = first.file_name()?.to_str()?;
    let stem = name.strip_suffix(&suffix(0))?;
    Some(first.with_file_name(format!("{stem}{}", suffix(no))))
}

#[cfg(test)]
pub(crate) mod tests;
