//! Reads a vector file and checks all of its format.

use std::collections::HashMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use super::{Case, Recorded, VectorError};
use crate::quant::{WeightType, q8_0_row_bytes};

/// The case in the file `path`, which holds `bytes`.
pub(super) fn case(path: &Path, bytes: &[u8]) -> Result<Case, VectorError> {
    Reader::new(path, bytes)?.case()
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
        let job = self.job("", ty, [k, rows, cols], row_bytes)?;
        let x = match self.tensors.names().contains(&"x") {
            true => Some(self.tensor("x", Dtype::F32, [cols, k])?),
            false => None,
        };
        let recorded = match self.metadata.get("scenario") {
            Some(text) => Some(self.recorded(text)?),
            None => None,
        };
        let known = ["weightstream", "type", "k", "rows", "cols", "scenario"];
        let notes = self.metadata.iter().map(|(k, v)| (k.clone(), v.clone()));
        let mut case = Case {
            path: self.path.into(),
            ty,
            k,
            rows,
            cols,
            weights: job.weights,
            activations: job.activations,
            expected: job.expected,
            x: x.map(|x| words(x).map(f32::from_bits).collect()),
            notes: notes
                .filter(|(k, _)| !known.contains(&k.as_str()))
                .collect(),
            recorded: None,
        };
        case.recorded = recorded.map(|r| self.complete(r, &case)).transpose()?;
        Ok(case)
    }

    /// The tensors of a job, whose names begin with `prefix`.
    fn job(
        &self,
        prefix: &str,
        ty: WeightType,
        [k, rows, cols]: [usize; 3],
        row_bytes: usize,
    ) -> Result<Tensors, VectorError> {
        debug_assert_eq!(ty.row_bytes(k), Some(row_bytes));
        let tensor = |name, dtype, shape| self.tensor(&format!("{prefix}{name}"), dtype, shape);
        Ok(Tensors {
            weights: tensor("weights", Dtype::U8, [rows, row_bytes])?.to_vec(),
            activations: tensor("activations", Dtype::U8, [cols, q8_0_row_bytes(k)])?.to_vec(),
            expected: words(tensor("expected", Dtype::F32, [cols, rows])?).collect(),
        })
    }

    /// The scenario without its data, and checked as far as it can be alone.
    fn recorded(&self, text: &str) -> Result<Recorded, VectorError> {
        let recorded: Recorded = match serde_json::from_str(text) {
            Ok(recorded) => recorded,
            Err(error) => return self.bad("metadata scenario", text, error),
        };
        match recorded.fault() {
            Some((field, value, expected)) => {
                self.bad(&format!("metadata scenario: {field}"), value, expected)
            }
            None => Ok(recorded),
        }
    }

    /// Gives the jobs their data; the file's own tensors are those of the case's job.
    fn complete(&self, mut recorded: Recorded, case: &Case) -> Result<Recorded, VectorError> {
        let own = recorded.case;
        let chains = recorded.scenario.chains.iter_mut();
        for (n, job) in chains.flat_map(|chain| &mut chain.jobs).enumerate() {
            let shape = [job.k, job.rows, job.cols];
            let Some(row_bytes) = job.ty.row_bytes(job.k) else {
                let block = job.ty.block_len();
                let expected = format!("a multiple of {}'s block of {block}", job.ty);
                return self.bad(&format!("k of job {n}"), job.k, expected);
            };
            let tensors = match n == own {
                true if job.ty == case.ty && shape == [case.k, case.rows, case.cols] => Tensors {
                    weights: case.weights.clone(),
                    activations: case.activations.clone(),
                    expected: case.expected.clone(),
                },
                true => {
                    let wanted = "the shape in the file's own metadata";
                    return self.bad("metadata scenario: the case's job", job, wanted);
                }
                false => self.job(&format!("job{n}."), job.ty, shape, row_bytes)?,
            };
            job.weights = tensors.weights.into();
            job.activations = tensors.activations.into();
            recorded.expected.push(tensors.expected);
        }
        Ok(recorded)
    }
}

/// What a job's tensors hold.
struct Tensors {
    weights: Vec<u8>,
    activations: Vec<u8>,
    expected: Vec<u32>,
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes(b.try_into().expect("chunks of 4 bytes")))
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
        case(path, &bytes).map_err(|e| e.to_string())
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
            ("k", "64", "shape of weights is [3, 18], expected [3, 36]"),
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
        assert!(case(Path::new("x"), bytes).is_err());
    }
}
