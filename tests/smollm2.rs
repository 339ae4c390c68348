//! A real model end to end: the same tokens and the same logits on every target, in coherent and in
//! strict memory, with the file's bytes in DMA memory and no second copy of them.

#[path = "common/real_model.rs"]
mod real_model;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use serde_json::Value;

/// Runs `weightstream` with `args`, and `--json`; returns stdout and the report.
fn weightstream(dir: &Path, args: &[&str]) -> (String, Value) {
    let json = dir.join("report.json");
    let output = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .args(["--json", json.to_str().unwrap()])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    println!("{stderr}");
    let stdout = String::from_utf8(output.stdout).unwrap();
    (
        stdout,
        serde_json::from_slice(&fs::read(json).unwrap()).unwrap(),
    )
}

#[test]
fn sixteen_tokens_have_the_same_logits_on_every_target_and_in_strict_memory() {
    let model = real_model::smollm2();
    let model = model.to_str().unwrap();
    // Side by side, since a simulation takes one core and minutes.
    let runs = thread::scope(|scope| {
        let runs = [
            ("model", false),
            ("model", true),
            ("rtl", false),
            ("rtl", true),
        ]
        .map(|(target, strict)| scope.spawn(move || sixteen_tokens(model, target, strict)));
        runs.map(|run| run.join().unwrap())
    });
    let [(text, logits), others @ ..] = &runs;
    assert!(text.contains("Paris"), "{text}");
    assert!(logits.len() > 16 * 49152 * 4);
    for ((other, their_logits), name) in
        others.iter().zip(["model --strict", "rtl", "rtl --strict"])
    {
        assert_eq!(other, text, "{name}");
        assert!(their_logits == logits, "{name}: the logits differ");
    }
}

/// Text and file of logits.
fn sixteen_tokens(model: &str, target: &str, strict: bool) -> (String, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let logits = dir.path().join("logits.safetensors");
    let prompt = "The capital of France is";
    let mut args = vec!["run", "-m", model, "-p", prompt, "-n", "16"];
    args.extend(["--target", target, "--logits", logits.to_str().unwrap()]);
    if strict {
        args.push("--strict");
    }
    let (text, report) = weightstream(dir.path(), &args);
    assert_eq!(report["tokens"].as_array().unwrap().len(), 16);
    let left = report["weights_left_to_cpu"].as_array().unwrap();
    assert!(left.is_empty(), "{report}");
    (text, fs::read(logits).unwrap())
}

#[test]
fn dma_memory_holds_the_files_bytes_and_nothing_else_holds_them_too() {
    let model = real_model::smollm2();
    let dir = tempfile::tempdir().unwrap();
    let model = model.to_str().unwrap();
    for target in ["model", "rtl"] {
        let (text, report) = weightstream(
            dir.path(),
            &["load", "-m", model, "--verify", "--target", target],
        );
        assert!(text.contains("verified"), "{text}");
        let (bytes, peak) = (
            report["bytes"].as_u64().unwrap(),
            report["peak_resident_bytes"].as_u64().unwrap(),
        );
        assert!(bytes > 96_000_000, "{report}");
        assert!(
            peak < bytes + bytes / 2,
            "{target}: {peak} bytes resident for {bytes} of weights"
        );
    }
    let args = ["run", "-m", model, "-n", "2"];
    let (_, report) = weightstream(dir.path(), &args);
    let (dma, peak) = (
        report["dma_bytes"].as_u64().unwrap(),
        report["peak_resident_bytes"].as_u64().unwrap(),
    );
    assert!(
        dma > 96_000_000 && peak < dma + dma / 2,
        "{peak} bytes resident with {dma} in DMA buffers"
    );
}
