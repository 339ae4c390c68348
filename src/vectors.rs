//! Golden vectors: one case a safetensors file (`docs/vectors.md`).

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};

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
        Reader::new(path, &bytes)?.case()
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

/// A file's parts, not checked yet.
struct Reader<'a> {
    path: &'a Path,
    metadata: HashMap<String, String>,
    tensors: SafeTensors<'a>,
}

impl<'a> Reader<'a> {
    fn new(path: &'a Path, bytes: &'a [u8]) -> Result<Self, VectorError> {
        let format = |source| VectorError::Format {
            path: path.into(),
            source,
        };
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(format)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(format)?;
        let metadata = metadata.metadata().clone().unwrap_or_default();
        Ok(Reader {
            path,
            metadata,
            tensors,
        })
    }

    fn bad<T>(
        &self,
        field: &str,
        value: impl ToString,
        expected: impl ToString,
    ) -> Result<T, VectorError> {
        Err(VectorError::Field {
            path: self.path.into(),
            field: field.into(),
            value: value.to_string(),
            expected: expected.to_string(),
        })
    }

    fn metadata(&self, field: &str) -> Result<&str, VectorError> {
        match self.metadata.get(field) {
            Some(value) => Ok(value),
            None => self.bad(&format!("metadata {field}"), "absent", "a string"),
        }
    }

    fn count(&self, field: &str) -> Result<usize, VectorError> {
        let text = self.metadata(field)?;
        match text.parse() {
            Ok(n) if (1..1 << 24).contains(&n) => Ok(n),
            _ => self.bad(
                &format!("metadata {field}"),
                text,
                "a number from 1 to 16777215",
            ),
        }
    }

    fn tensor(&self, name: &str, dtype: Dtype, shape: [usize; 2]) -> Result<&'a [u8], VectorError> {
        let Ok(view) = self.tensors.tensor(name) else {
            return self.bad(
                &format!("tensor {name}"),
                "absent",
                format!("{dtype:?} {shape:?}"),
            );
        };
        if view.dtype() != dtype {
            return self.bad(
                &format!("dtype of {name}"),
                format!("{:?}", view.dtype()),
                format!("{dtype:?}"),
            );
        }
        if view.shape() != shape {
            return self.bad(
                &format!("shape of {name}"),
                format!("{:?}", view.shape()),
                format!("{shape:?}"),
            );
        }
        Ok(view.data())
    }

    fn case(&self) -> Result<Case, VectorError> {
        let version = self.metadata("weightstream")?;
        if version != "1" {
            return self.bad("metadata weightstream", version, "1");
        }
        let (k, rows, cols) = (self.count("k")?, self.count("rows")?, self.count("cols")?);
        let name = self.metadata("type")?;
        let Ok(ty) = name.parse::<WeightType>() else {
            return self.bad("metadata type", name, "a weight type such as Q4_K");
        };
        let Some(row_bytes) = ty.row_bytes(k) else {
            return self.bad(
                "metadata k",
                k,
                format!("a multiple of {ty}'s block of {}", ty.block_len()),
            );
        };
        let expected = self.tensor("expected", Dtype::F32, [cols, rows])?;
        let x = match self.tensors.names().contains(&"x") {
            true => Some(self.tensor("x", Dtype::F32, [cols, k])?),
            false => None,
        };
        Ok(Case {
            path: self.path.into(),
            ty,
            k,
            rows,
            cols,
            weights: self
                .tensor("weights", Dtype::U8, [rows, row_bytes])?
                .to_vec(),
            activations: self
                .tensor("activations", Dtype::U8, [cols, q8_0_row_bytes(k)])?
                .to_vec(),
            expected: words(expected).collect(),
            x: x.map(|x| words(x).map(f32::from_bits).collect()),
        })
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes(b.try_into().expect("chunks of 4 bytes")))
}

/// The vector files that `path` names: itself, or the `.safetensors` files in it, by name.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, VectorError> {
    let io = |source| VectorError::Io {
        path: path.into(),
        source,
    };
    if !fs::metadata(path).map_err(io)?.is_dir() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    type Tensors = Vec<(&'static str, Dtype, Vec<usize>, Vec<u8>)>;

    fn good() -> (Tensors, HashMap<String, String>) {
        let tensors = vec![
            ("weights", Dtype::U8, vec![3, 18], vec![0; 54]),
            ("activations", Dtype::U8, vec![2, 34], vec![0; 68]),
            ("expected", Dtype::F32, vec![2, 3], vec![0; 24]),
            ("x", Dtype::F32, vec![2, 32], vec![0; 256]),
        ];
        let metadata = [
            ("weightstream", "1"),
            ("type", "Q4_0"),
            ("k", "32"),
            ("rows", "3"),
            ("cols", "2"),
        ];
        (tensors, metadata.map(|(k, v)| (k.into(), v.into())).into())
    }

    fn read(tensors: &Tensors, metadata: HashMap<String, String>) -> Result<Case, String> {
        let views = tensors.iter().map(|(name, dtype, shape, data)| {
            (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
        let path = Path::new("made.safetensors");
        Reader::new(path, &bytes)
            .and_then(|r| r.case())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_good_case_is_read() {
        let (tensors, metadata) = good();
        let case = read(&tensors, metadata).unwrap();
        assert_eq!(
            (case.ty, case.k, case.rows, case.cols),
            (WeightType::Q4_0, 32, 3, 2)
        );
        assert_eq!(
            (
                case.name().as_str(),
                case.expected.len(),
                case.column(1).len()
            ),
            ("made", 6, 34)
        );
        assert_eq!(case.quantisation_difference(), None);
    }

    #[test]
    fn a_difference_in_quantisation_is_found() {
        let (mut tensors, metadata) = good();
        tensors[1].3[34 + 5] = 9;
        let case = read(&tensors, metadata).unwrap();
        assert_eq!(case.quantisation_difference(), Some((1, 5, 9, 0)));
    }

    #[test]
    fn each_broken_field_is_named() {
        for (field, value, says) in [
            (
                "weightstream",
                "2",
                "metadata weightstream is 2, expected 1",
            ),
            ("type", "Q9_9", "metadata type is Q9_9"),
            (
                "k",
                "33",
                "metadata k is 33, expected a multiple of Q4_0's block of 32",
            ),
            ("k", "64", "shape of x is [2, 32], expected [2, 64]"),
            ("rows", "0", "metadata rows is 0"),
            ("rows", "x", "metadata rows is x"),
            ("cols", "-1", "metadata cols is -1"),
        ] {
            let (tensors, mut metadata) = good();
            metadata.insert(field.into(), value.into());
            let error = read(&tensors, metadata).unwrap_err();
            assert!(
                error.starts_with(&format!("made.safetensors: {says}")),
                "{error}"
            );
        }
        for field in ["weightstream", "type", "k", "rows", "cols"] {
            let (tensors, mut metadata) = good();
            metadata.remove(field);
            let error = read(&tensors, metadata).unwrap_err();
            assert!(
                error.contains(&format!("metadata {field} is absent")),
                "{error}"
            );
        }
        for n in 0..3 {
            let (mut tensors, metadata) = good();
            let (name, ..) = tensors.remove(n);
            let error = read(&tensors, metadata).unwrap_err();
            assert!(
                error.contains(&format!("tensor {name} is absent")),
                "{error}"
            );
        }
        let (mut tensors, metadata) = good();
        tensors[2].1 = Dtype::I32;
        assert!(
            read(&tensors, metadata)
                .unwrap_err()
                .contains("dtype of expected is I32, expected F32")
        );
        let bytes = b"not a safetensors file";
        assert!(Reader::new(Path::new("x"), bytes).is_err());
    }
}
