use std::fs;
use std::path::Path;

use super::*;
use crate::dma::Coherence;
use crate::driver::{Accelerator, DriverError, Input, MatMul};
use crate::target::{DeviceError, TargetOptions, TargetSpec, open};
use crate::vectors::Case;

fn case(name: &str) -> Case {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    Case::read(folder.join(format!("{name}.safetensors"))).unwrap()
}

fn options(record: Option<&Path>) -> TargetOptions {
    TargetOptions {
        heap_bytes: 64 << 20,
        coherence: Coherence::Strict,
        engines: 2,
        threads: 1,
        record: record.map(|path| std::sync::Arc::new(Recording::new(path))),
        ..TargetOptions::default()
    }
}

/// Computes `case` on `spec` in a fresh session, with `change` done to the first weight byte.
fn compute(
    spec: &TargetSpec,
    options: &TargetOptions,
    case: &Case,
    change: u8,
) -> Result<Vec<u32>, DriverError> {
    let mut accelerator = Accelerator::new(open(spec, options).unwrap())?;
    let weights = accelerator.heap().alloc(case.weights.len())?;
    let mut bytes = case.weights.clone();
    bytes[0] ^= change;
    weights.write(0, &bytes)?;
    weights.sync_for_device(0, weights.len())?;
    let mut results = vec![0f32; case.rows * case.cols];
    let matmul = MatMul {
        weights: weights.device_addr(),
        ty: case.ty,
        k: case.k,
        rows: case.rows,
        input: 0,
        out: results.chunks_exact_mut(case.rows).collect(),
    };
    let columns = (0..case.cols).map(|c| case.column(c)).collect();
    accelerator.run(&[Input::Q8_0(columns)], &mut [matmul])?;
    Ok(results.iter().map(|y| y.to_bits()).collect())
}

/// The targets that can be recorded.
fn targets() -> Vec<TargetSpec> {
    TargetSpec::built()
}

fn replay_of(path: &Path) -> TargetSpec {
    format!("replay:{}", path.display()).parse().unwrap()
}

#[test]
fn a_replay_gives_what_was_recorded_session_by_session() {
    let dir = tempfile::tempdir().unwrap();
    for (n, target) in targets().iter().enumerate() {
        let path = dir.path().join(format!("{n}.rec"));
        let cases = [case("q4_k_rows"), case("q8_0_columns_4")];
        let recorded = options(Some(&path));
        for case in &cases {
            assert_eq!(compute(target, &recorded, case, 0).unwrap(), case.expected);
        }
        let replay = replay_of(&path);
        for case in &cases {
            let results = compute(&replay, &options(None), case, 0);
            assert_eq!(results.unwrap(), case.expected, "{target}");
        }
        let error = compute(&replay, &options(None), &cases[0], 0).unwrap_err();
        assert!(error.to_string().contains("recorded is the end"), "{error}");
    }
}

#[test]
fn the_first_divergence_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.rec");
    let case = case("q4_0_rows");
    compute(&TargetSpec::Model, &options(Some(&path)), &case, 0).unwrap();
    let error = compute(&replay_of(&path), &options(None), &case, 1).unwrap_err();
    let DriverError::Device(DeviceError::Diverged(what)) = &error else {
        panic!("{error}")
    };
    assert!(
        what.contains("model.rec, line ") && what.contains("recorded is a Mm2s descriptor at 0x"),
        "{what}"
    );
    let hashes: Vec<&str> = what.split("SHA-256 ").skip(1).map(|t| &t[..64]).collect();
    assert!(hashes.len() == 2 && hashes[0] != hashes[1], "{what}");

    // A driver that does something else altogether.
    let mut other = options(None);
    other.length_width = 8;
    let error = compute(&replay_of(&path), &other, &case, 0)
        .unwrap_err()
        .to_string();
    let [recorded, now] = error.split(", now ").collect::<Vec<_>>()[..] else {
        panic!("{error}")
    };
    assert!(
        !recorded.contains("control 0xc0,") && now.contains("control 0xc0,"),
        "{error}"
    );
}

#[test]
fn recordings_of_different_targets_are_compared_by_their_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let record = |name: &str, target: &TargetSpec, case: &Case, change| {
        let path = dir.path().join(name);
        compute(target, &options(Some(&path)), case, change).unwrap();
        path
    };
    let (rows, small) = (case("q5_1_rows"), case("q5_1_small"));
    let model = record("model", &TargetSpec::Model, &rows, 0);
    for target in targets() {
        let other = record("other", &target, &rows, 0);
        assert_eq!(compare(&model, &other).unwrap(), None, "{target}");
    }
    let changed = record("changed", &TargetSpec::Model, &rows, 1);
    let found = compare(&model, &changed).unwrap().unwrap();
    assert_eq!(
        (found.engine, found.channel, found.packet),
        (0, Channel::Mm2s, 0)
    );
    let fewer = record("fewer", &TargetSpec::Model, &small, 0);
    assert!(compare(&model, &fewer).unwrap().is_some());

    // One answer's last bit.
    let text = fs::read_to_string(&model).unwrap();
    let at = text.find("\"bytes\":\"").unwrap() + 9;
    let mut flipped = text.into_bytes();
    flipped[at] = if flipped[at] == b'0' { b'1' } else { b'0' };
    let path = dir.path().join("flipped");
    fs::write(&path, flipped).unwrap();
    let found = compare(&model, &path).unwrap().unwrap();
    assert_eq!((found.channel, found.packet), (Channel::S2mm, 0));
    let [a, b] = found.packets.map(Option::unwrap);
    assert!(a.line == b.line && a.what != b.what, "{a:?} {b:?}");
}

#[test]
fn what_is_no_recording_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("bad");
    let head = r#"{"weightstream_recording":1,"target":"model"}"#;
    for (text, says) in [
        ("", "bad, line 1: not the first line"),
        ("GGUF", "bad, line 1: not the first line"),
        (
            r#"{"weightstream_recording":2,"target":"x"}"#,
            "line 1: version 2, expected 1",
        ),
        (&format!("{head}\n{{\"s\":0}}\n"), "bad, line 2: "),
        (&format!("{head}\nnothing\n"), "bad, line 2: "),
    ] {
        fs::write(&path, text).unwrap();
        let error = compare(&path, &path).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        let opened = open(&replay_of(&path), &options(None));
        let error = opened.err().expect("it is no recording").to_string();
        assert!(error.contains(says), "{error}");
    }
    let missing = open(&replay_of(&dir.path().join("none")), &options(None));
    assert!(missing.err().unwrap().to_string().contains("No such file"));
}
