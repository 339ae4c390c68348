//! Golden vectors: one case a safetensors file (`docs/vectors.md`).

pub mod exact;
mod make;
mod noise;
mod read;
mod scenario;
mod write;

pub use make::{MakeError, from_tensor, weight_type};
pub use noise::Noise;
pub use scenario::{
    Answer, BusResponse, Chain, Event, Flaw, Job, Outcome, PartKind, Recorded, Scenario,
};

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::quant::{WeightType, q8_0_row_bytes, quantize_q8_0};

/// One case: a matrix, activation columns and the exact results.
#[derive(Clone, Debug)]
pub struct Case {
    pub path: PathBuf,
    pub ty: WeightType,
    pub k: usize,
    pub rows: usize,
    pub cols: usize,
    /// Native GGUF blocks, `rows` rows without gaps.
    pub weights: Vec<u8>,
    /// Native Q8_0 blocks, `cols` columns without gaps.
    pub activations: Vec<u8>,
    /// The bits of the results: all rows of column 0, then of column 1, and so on.
    pub expected: Vec<u32>,
    /// The activations before quantisation, `cols` columns of `k`.
    pub x: Option<Vec<f32>>,
    /// Free metadata: `source`, `seed`, `note` and whatever else is there.
    pub notes: BTreeMap<String, String>,
    /// How the case is to be run; golden cases are run as `regress` sees fit.
    pub recorded: Option<Recorded>,
}

/// What is wrong with a vector file.
#[derive(Debug, thiserror::Error)]
pub enum VectorError {
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{}: not a safetensors file: {source}", path.display())]
    Format {
        path: PathBuf,
        source: safetensors::SafeTensorError,
    },
    #[error("{}: {field} is {value}, expected {expected}", path.display())]
    Field {
        path: PathBuf,
        field: String,
        value: String,
        expected: String,
    },
}

impl Case {
    /// Reads a case and checks all of its format.
    pub fn read(path: impl AsRef<Path>) -> Result<Case, VectorError> {
        let path = path.as_ref();
        let io = |source| VectorError::Io {
            path: path.into(),
            source,
        };
        // A pipe would wait for a writer, and a device may never end.
        if !fs::metadata(path).map_err(io)?.is_file() {
            let kind = io::ErrorKind::InvalidInput;
            return Err(io(io::Error::new(kind, "not a regular file")));
        }
        let bytes = fs::read(path).map_err(io)?;
        read::case(path, &bytes)
    }

    /// The case's name: that of its file without the ending.
    pub fn name(&self) -> String {
        self.path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    }

    /// The activations of one column.
    pub fn column(&self, col: usize) -> &[u8] {
        let len = q8_0_row_bytes(self.k);
        &self.activations[col * len..][..len]
    }

    /// Where quantising `x` does not give `activations`: the first such byte's column and offset in
    /// the column, with the byte in the file and the one computed.
    pub fn quantisation_difference(&self) -> Option<(usize, usize, u8, u8)> {
        let x = self.x.as_ref()?;
        let mut quantised = vec![0; q8_0_row_bytes(self.k)];
        x.chunks_exact(self.k).enumerate().find_map(|(col, x)| {
            quantize_q8_0(x, &mut quantised);
            let column = self.column(col);
            let at = column.iter().zip(&quantised).position(|(a, b)| a != b)?;
            Some((col, at, column[at], quantised[at]))
        })
    }
}

/// The vector files that `path` names, sorted: itself, the `.safetensors` files in a folder, or
/// what matches a pattern with `*`, `?`, `[...]` or `**`.
///
/// # Errors
/// [`VectorError::Io`] if nothing is there, or a folder cannot be read.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, VectorError> {
    let io = |source| VectorError::Io {
        path: path.into(),
        source,
    };
    let is_dir = match fs::metadata(path) {
        Ok(metadata) => metadata.is_dir(),
        Err(error) => return matching(path).unwrap_or(Err(io(error))),
    };
    if !is_dir {
        return Ok(vec![path.into()]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        if file.extension().is_some_and(|e| e == "safetensors") {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}

/// The files that match `pattern`; `None` if it is no pattern.
fn matching(pattern: &Path) -> Option<Result<Vec<PathBuf>, VectorError>> {
    let text = pattern
        .to_str()
        .filter(|text| text.contains(['*', '?', '[']))?;
    let bad = |error: glob::PatternError| VectorError::Field {
        path: pattern.into(),
        field: "pattern".into(),
        value: text.into(),
        expected: error.msg.into(),
    };
    let paths = match glob::glob(text).map_err(bad) {
        Ok(paths) => paths,
        Err(error) => return Some(Err(error)),
    };
    let paths = paths.map(|path| {
        path.map_err(|error| VectorError::Io {
            path: error.path().into(),
            source: error.into(),
        })
    });
    // The crate gives them in alphabetical order.
    Some(
        paths
            .filter(|p| !p.as_ref().is_ok_and(|p| p.is_dir()))
            .collect(),
    )
}
