//! `weightstream predict` beside what it predicts.
#![cfg(all(feature = "llama", feature = "rtl"))]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const MODEL: &str = "models/weightstream-tiny.gguf";

fn weightstream(args: &[&str]) -> (i32, String) {
    let ended = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let stderr = String::from_utf8(ended.stderr).unwrap();
    (ended.status.code().unwrap(), stderr)
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_token_is_as_the_rtl_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    let text = |name: &str| file(name).to_str().unwrap().to_string();
    // Only the header is there.
    let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL)).unwrap();
    fs::write(file("header.gguf"), &whole[..whole.len() / 2]).unwrap();
    let (status, stderr) = weightstream(&[
        "predict",
        "-m",
        &text("header.gguf"),
        "--json",
        &text("p.json"),
    ]);
    assert_eq!(status, 0, "{stderr}");
    let run = [
        "profile",
        "-m",
        MODEL,
        "-t",
        "rtl",
        "-n",
        "2",
        "--json",
        &text("r.json"),
    ];
    let (status, stderr) = weightstream(&run);
    assert_eq!(status, 0, "{stderr}");

    let predicted = &json(&file("p.json"))["decode"];
    let profile = json(&file("r.json"));
    let array = |v: &Value, field: &str| v[field].as_array().unwrap().clone();
    let graphs = array(&profile["steps"][1], "graphs");
    let chains: Vec<Value> = graphs.iter().flat_map(|g| array(g, "chains")).collect();
    let jobs: Vec<Value> = chains.iter().flat_map(|c| array(c, "jobs")).collect();
    let sum =
        |of: &[Value], field: &str| of.iter().map(|v| v[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(predicted["jobs"], jobs.len());
    assert_eq!(predicted["chains"], chains.len());
    let names: Vec<&Value> = jobs
        .iter()
        .map(|j| &profile["tensors"][j["tensor"].as_u64().unwrap() as usize]["name"])
        .collect();
    let predicted_names: Vec<&Value> = predicted["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| &t["name"])
        .collect();
    assert_eq!(predicted_names, names);
    // A job's bytes are known but for what is skipped to its first row, less than a bus word.
    let bytes = predicted["bytes"].as_u64().unwrap();
    let streamed = sum(&jobs, "bytes");
    assert!(
        streamed - bytes < 16 * jobs.len() as u64,
        "{bytes} and {streamed}"
    );
    // The prediction counts the driver's register accesses, too.
    let cycles = predicted["kernel_ns"].as_f64().unwrap() / 5.0;
    let measured = sum(&chains, "cycles") as f64;
    assert!(
        (cycles / measured - 1.0).abs() < 0.03,
        "{cycles} and {measured}"
    );

    // With that profile as its host, driver and CPU are what they were.
    let with_host = [
        "predict",
        "-m",
        MODEL,
        "--host",
        &text("r.json"),
        "--json",
        &text("q.json"),
    ];
    let (status, stderr) = weightstream(&with_host);
    assert_eq!(status, 0, "{stderr}");
    let predicted = &json(&file("q.json"))["decode"];
    let host: f64 = graphs.iter().map(|g| g["host_ns"].as_f64().unwrap()).sum();
    assert!((predicted["host_ns"].as_f64().unwrap() / host - 1.0).abs() < 1e-6);
}

#[test]
fn a_model_that_is_not_at_hand_on_a_board() {
    let dir = tempfile::tempdir().unwrap();
    let text = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let (json_file, csv, svg) = (text("s.json"), text("s.csv"), text("s.svg"));
    let args = [
        &["predict", "--arch", "archs/llama-3-70b.toml"][..],
        &["--board", "boards/kv260.toml", "--max-k", "32768"],
        &["--sweep", "clock=200,300", "--sweep", "width=128,512"],
        &["--json", &json_file, "--csv", &csv, "--plot", &svg],
    ];
    let (status, stderr) = weightstream(&args.concat());
    assert_eq!(status, 0, "{stderr}");
    let points = json(Path::new(&json_file));
    let rate = |n: usize| points[n]["decode_tokens_per_s"].as_f64().unwrap();
    assert!(rate(0) < rate(1) && rate(1) < rate(3) && rate(0) < rate(2));
    // 39.37 GB a token from memory of 19.2 GB/s.
    assert!(rate(3) > 0.4 && rate(3) < 19.2 / 39.37, "{points}");
    assert_eq!(fs::read_to_string(csv).unwrap().lines().count(), 5);
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
}

#[test]
fn bad_questions_have_their_status() {
    for (args, says) in [
        (&["predict"][..], "--model"),
        (
            &["predict", "-m", MODEL, "--board", "Cargo.toml"],
            "Cargo.toml: ",
        ),
        (
            &["predict", "--arch", "archs/none.toml"],
            "archs/none.toml: ",
        ),
        (&["predict", "-m", "Cargo.toml"], "Cargo.toml: magic is"),
        (
            &["predict", "-m", MODEL, "--sweep", "width=100"],
            "width: 100",
        ),
        (
            &["predict", "-m", MODEL, "--host", "Cargo.toml"],
            "not a profile",
        ),
        (&["predict", "-m", MODEL, "--max-k", "100"], "100 is not in"),
    ] {
        let (status, stderr) = weightstream(args);
        assert_eq!(status, 2, "{args:?}: {stderr}");
        assert!(stderr.contains(says), "{args:?}: {stderr}");
    }
}
