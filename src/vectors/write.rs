//! Writes a vector file. The same case gives the same bytes.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Case, VectorError};
use crate::quant::{WeightType, q8_0_row_bytes};

/// A tensor: name, dtype, shape, bytes.
type Tensor = (String, &'static str, [usize; 2], Vec<u8>);

impl Case {
    /// Writes the case to `path`, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<(), VectorError> {
        let io = |source| VectorError::Io {
            path: path.into(),
            source,
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let draft = folder
            .unwrap_or(Path::new("."))
            .join(format!(".{name}.{}", std::process::id()));
        let written = fs::write(&draft, self.to_bytes()).and_then(|()| fs::rename(&draft, path));
        written.map_err(|error| {
            let _ = fs::remove_file(&draft);
            io(error)
        })
    }

    /// The file's bytes. Written by hand because the safetensors crate puts metadata in no fixed
    /// order.
    fn to_bytes(&self) -> Vec<u8> {
        let mut tensors = Vec::new();
        let Case {
            ty, k, rows, cols, ..
        } = *self;
        let mut job = |prefix: &str, ty: WeightType, [k, rows, cols]: [usize; 3], parts: Parts| {
            let row_bytes = ty.row_bytes(k).expect("a case has whole blocks");
            let weights = (rows, row_bytes, parts.weights);
            let activations = (cols, q8_0_row_bytes(k), parts.activations);
            for (name, (lines, bytes, data)) in [("weights", weights), ("activations", activations)]
            {
                let name = format!("{prefix}{name}");
                tensors.push((name, "U8", [lines, bytes], data.to_vec()));
            }
            let name = format!("{prefix}expected");
            tensors.push((name, "F32", [cols, rows], words(parts.expected)));
        };
        let own = Parts {
            weights: &self.weights,
            activations: &self.activations,
            expected: &self.expected,
        };
        job("", ty, [k, rows, cols], own);
        let mut metadata = Map::new();
        if let Some(recorded) = &self.recorded {
            for (n, other) in recorded.scenario.jobs().enumerate() {
                if n == recorded.case {
                    continue;
                }
                let parts = Parts {
                    weights: &other.weights,
                    activations: &other.activations,
                    expected: &recorded.expected[n],
                };
                let shape = [other.k, other.rows, other.cols];
                job(&format!("job{n}."), other.ty, shape, parts);
            }
            let text = serde_json::to_string(recorded).expect("plain data is JSON");
            metadata.insert("scenario".into(), text.into());
        }
        if let Some(x) = &self.x {
            let bytes = x.iter().flat_map(|v| v.to_le_bytes()).collect();
            tensors.push(("x".into(), "F32", [cols, k], bytes));
        }
        let fields = [
            ("weightstream", "1".to_string()),
            ("type", ty.to_string()),
            ("k", k.to_string()),
            ("rows", rows.to_string()),
            ("cols", cols.to_string()),
        ];
        metadata.extend(fields.map(|(key, value)| (key.to_string(), value.into())));
        let notes = self.notes.iter();
        metadata.extend(notes.map(|(key, value)| (key.clone(), value.clone().into())));
        serialise(metadata, tensors)
    }
}

/// A job's data.
struct Parts<'a> {
    weights: &'a [u8],
    activations: &'a [u8],
    expected: &'a [u32],
}

fn words(bits: &[u32]) -> Vec<u8> {
    bits.iter().flat_map(|b| b.to_le_bytes()).collect()
}

/// Source of the format: the safetensors specification (a 64-bit length, a JSON header padded with
/// spaces, the tensors' bytes).
fn serialise(metadata: Map<String, Value>, mut tensors: Vec<Tensor>) -> Vec<u8> {
    // Four-byte tensors first, so that each starts at a multiple of its element size.
    tensors.sort_by(|a, b| (a.1 != "F32", &a.0).cmp(&(b.1 != "F32", &b.0)));
    let mut header = Map::new();
    header.insert("__metadata__".into(), Value::Object(metadata));
    let mut at = 0;
    for (name, dtype, shape, bytes) in &tensors {
        let end = at + bytes.len();
        let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [at, end]});
        header.insert(name.clone(), entry);
        at = end;
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend(text);
    tensors.iter().for_each(|(.., bytes)| file.extend(bytes));
    file
}

#[cfg(test)]
mod tests {
    use super::super::{Answer, Chain, Event, Flaw, Job, Outcome, Recorded, Scenario};
    use super::*;
    use crate::target::Conditions;
    use std::path::PathBuf;
    use std::sync::Arc;

    /// Two chains; the case is the second job of the first.
    fn recorded() -> Case {
        let job = |ty: WeightType, rows: usize, fill: u8| Job {
            ty,
            k: 256,
            rows,
            cols: 2,
            offset: 5,
            reuse: fill == 2,
            flaw: (fill == 3).then_some(Flaw::Long(70)),
            weights: vec![fill; rows * ty.row_bytes(256).unwrap()].into(),
            activations: Arc::from(vec![fill; 2 * q8_0_row_bytes(256)]),
        };
        let jobs = vec![job(WeightType::Q4_0, 3, 1), job(WeightType::Q6_K, 1, 2)];
        let reset = Some(Event::Reset { reads: 9 });
        let scenario = Scenario {
            stall_seed: u64::MAX,
            conditions: Conditions {
                stalls: "mm2s_r=20".parse().unwrap(),
                bandwidth: Some((3, 4)),
                ..Conditions::default()
            },
            length_width: 8,
            chains: vec![
                Chain { jobs, event: None },
                Chain {
                    jobs: vec![job(WeightType::Q8_0, 2, 3)],
                    event: reset,
                },
            ],
        };
        let own = scenario.chains[0].jobs[1].clone();
        Case {
            path: PathBuf::new(),
            ty: own.ty,
            k: own.k,
            rows: own.rows,
            cols: own.cols,
            weights: own.weights.to_vec(),
            activations: own.activations.to_vec(),
            expected: vec![7, 0x7FC0_0000],
            x: None,
            notes: [("note".to_string(), "made".to_string())].into(),
            recorded: Some(Recorded {
                scenario,
                case: 1,
                outcomes: vec![
                    Outcome::Answers(vec![Answer::default(), Answer::good(vec![0x7FC0_0000])]),
                    Outcome::Reset,
                ],
                expected: vec![(10..16).collect(), vec![7, 0x7FC0_0000], (20..24).collect()],
            }),
        }
    }

    #[test]
    fn a_recorded_case_survives_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("case.safetensors");
        let mut case = recorded();
        case.write(&path).unwrap();
        let read = Case::read(&path).unwrap();
        let recorded = read.recorded.as_ref().unwrap();
        // The kept answers have no results of their own: those are the tensors.
        let Outcome::Answers(answers) = &mut case.recorded.as_mut().unwrap().outcomes[0] else {
            unreachable!()
        };
        answers[1].results.clear();
        assert_eq!(Some(recorded), case.recorded.as_ref());
        assert_eq!(read.expected, case.expected);
        assert_eq!(read.notes, case.notes);
        let Outcome::Answers(answers) = &recorded.outcomes()[0] else {
            unreachable!()
        };
        // Kernel order: row 0 of every column first.
        assert_eq!(answers[0].results, [10, 13, 11, 14, 12, 15]);
        assert_eq!(answers[1].results, [7, 0x7FC0_0000]);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "no draft is left"
        );
    }

    #[test]
    fn the_same_case_gives_the_same_bytes() {
        assert_eq!(recorded().to_bytes(), recorded().to_bytes());
    }

    #[test]
    fn what_breaks_a_recorded_scenario_is_named() {
        type Break = fn(&mut Recorded);
        let breaks: [(Break, &str); 10] = [
            (|r| r.scenario.conditions.latency = 0, "latency is 0"),
            (
                |r| r.scenario.conditions.max_outstanding = 65,
                "max_outstanding is 65",
            ),
            (
                |r| r.scenario.conditions.bandwidth = Some((0, 4)),
                "bandwidth is (0, 4)",
            ),
            (
                |r| r.scenario.conditions.refresh = Some((9, 9)),
                "refresh is (9, 9)",
            ),
            (|r| r.case = 3, "case is 3, expected one of the 3 jobs"),
            (|r| r.case = 0, "the case's job is Q4_0, k 256, rows 3"),
            (|r| r.scenario.length_width = 7, "length_width is 7"),
            (
                |r| drop(r.outcomes.pop()),
                "outcomes is 1, expected one for each of 2",
            ),
            (|r| r.scenario.chains[1].jobs[0].k = 0, "k is 0"),
            (
                |r| r.scenario.chains[0].jobs[0].offset = 64,
                "offset + 1 is 65",
            ),
        ];
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("case.safetensors");
        for (break_it, says) in breaks {
            let mut case = recorded();
            // The tensors as they were; only what the metadata say changes.
            let tensors = recorded().to_bytes();
            break_it(case.recorded.as_mut().unwrap());
            let broken = serde_json::to_string(&case.recorded).unwrap();
            fs::write(&path, with_scenario(&tensors, &broken)).unwrap();
            let error = Case::read(&path).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    fn with_scenario(file: &[u8], scenario: &str) -> Vec<u8> {
        let len = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let mut header: Value = serde_json::from_slice(&file[8..8 + len]).unwrap();
        header["__metadata__"]["scenario"] = scenario.into();
        let text = header.to_string();
        let mut changed = (text.len() as u64).to_le_bytes().to_vec();
        changed.extend(text.as_bytes());
        changed.extend(&file[8 + len..]);
        changed
    }
}
