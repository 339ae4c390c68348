//! The command line, run as its users run it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safetensors::SafeTensors;

struct Run {
    status: i32,
    stdout: String,
    stderr: String,
}

fn weightstream(args: &[&str]) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Run {
        status: status.code().expect("an exit status, not a signal"),
        stdout: text(stdout),
        stderr: text(stderr),
    }
}

fn vector(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(format!("{name}.safetensors"))
}

/// A copy of the case `name` with the byte at `offset` of tensor `tensor` changed by `flip`.
fn flipped(dir: &Path, name: &str, tensor: &str, offset: usize, flip: u8) -> PathBuf {
    let mut bytes = fs::read(vector(name)).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let data = tensors.tensor(tensor).unwrap().data().as_ptr() as usize;
    let at = data - bytes.as_ptr() as usize + offset;
    bytes[at] ^= flip;
    let path = dir.join(format!("{name}_{tensor}_{offset}.safetensors"));
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn regress_passes_and_reports() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    let run = weightstream(&[
        "regress",
        "--filter",
        "_small$",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(run.status, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("model: ") && run.stdout.contains(" passed, 0 failed"),
        "{}",
        run.stdout
    );
    let report: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    assert!(
        report["passed"].as_u64().unwrap() >= 3 && report["failed"] == 0,
        "{report}"
    );
    assert!(
        report["cases"]
            .as_array()
            .unwrap()
            .iter()
            .any(|c| c["case"] == "q4_1_small")
    );
}

#[test]
fn regress_fails_on_one_flipped_bit() {
    let dir = tempfile::tempdir().unwrap();
    for (tensor, offset, flip, what) in [
        ("expected", 0, 0x01, "the last bit of a result"),
        ("weights", 0, 0x01, "the last bit of a scale"),
        ("weights", 5, 0x10, "a bit of a quant"),
        (
            "activations",
            0,
            0x01,
            "the last bit of an activation's scale",
        ),
    ] {
        let file = flipped(dir.path(), "q8_0_rows", tensor, offset, flip);
        let run = weightstream(&["regress", "--vectors", file.to_str().unwrap()]);
        assert_eq!(run.status, 1, "{what}: {}{}", run.stdout, run.stderr);
        assert!(
            run.stdout.contains("FAILED on model: q8_0_rows"),
            "{what}: {}",
            run.stdout
        );
        let says = "row 0, col 0, weights at byte 0: expected 0x";
        assert!(
            run.stdout.contains(says) && run.stdout.contains(", actual 0x"),
            "{what}: {}",
            run.stdout
        );
    }
}

#[test]
fn regress_tells_a_bad_file_from_a_difference() {
    let dir = tempfile::tempdir().unwrap();
    let bad = dir.path().join("bad.safetensors");
    fs::write(&bad, b"no vector").unwrap();
    fs::copy(vector("q4_0_small"), dir.path().join("good.safetensors")).unwrap();
    let run = weightstream(&[
        "regress",
        "-t",
        "model",
        "--vectors",
        dir.path().to_str().unwrap(),
    ]);
    assert_eq!(run.status, 2, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout
            .contains("bad.safetensors: not a safetensors file"),
        "{}",
        run.stdout
    );
    assert!(
        run.stdout.contains("1 passed, 0 failed, 1 unreadable"),
        "{}",
        run.stdout
    );
}

#[test]
fn bad_usage_has_its_status() {
    for (args, says) in [
        (
            &["regress", "--target", "fpga"][..],
            "unknown target \"fpga\"; there are model, rtl",
        ),
        (&["regress", "--filter", "("], "regex parse error"),
        (
            &["regress", "--filter", "no such case"],
            "vectors: no vector file that matches --filter no such case",
        ),
        (
            &["regress", "--vectors", "no/such/folder"],
            "no/such/folder: No such file",
        ),
        (
            &[
                "regress",
                "--json",
                "no/such/folder/x",
                "--filter",
                "q4_0_small",
            ],
            "cannot write --json",
        ),
        (&["load"], "--model <MODEL.gguf>"),
        (
            &["load", "-m", "no-such.gguf"],
            "no-such.gguf: No such file",
        ),
    ] {
        let run = weightstream(args);
        assert_eq!(run.status, 2, "{args:?}: {}", run.stderr);
        assert!(run.stderr.contains(says), "{args:?}: {}", run.stderr);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    for args in [
        &["load", "-m", MODEL][..],
        &["regress", "-t", "model", "--filter", "q4_0_small"],
        &["targets"],
    ] {
        let run = Command::new(env!("CARGO_BIN_EXE_weightstream"))
            .args(args)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(fs::File::options().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        let stderr = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{args:?}: {stderr}");
        assert_eq!(
            stderr,
            "error: cannot write to stdout: No space left on device (os error 28)\n"
        );
    }
    let run = weightstream(&["load", "-m", MODEL, "--json", "/dev/full"]);
    assert_eq!(run.status, 2);
    assert!(
        run.stderr
            .contains("cannot write --json /dev/full: No space left on device"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_wrong_path_for_results_is_known_before_the_work() {
    // The model is not there either, and would be missed first.
    for option in ["--json", "--logits"] {
        if option == "--logits" && !cfg!(feature = "llama") {
            continue;
        }
        let command = if option == "--json" { "load" } else { "run" };
        let run = weightstream(&[command, "-m", "no-such.gguf", option, "no/such/folder/x"]);
        assert_eq!(run.status, 2);
        let says = format!("cannot write {option} no/such/folder/x");
        assert!(run.stderr.contains(&says), "{}", run.stderr);
    }
}

const MODEL: &str = "models/weightstream-tiny.gguf";

#[test]
fn load_shows_and_verifies_what_lies_in_dma_memory() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    let run = weightstream(&[
        "load",
        "-m",
        MODEL,
        "--verify",
        "--strict",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(
        run.stdout
            .contains("verified: the device reads the file's bytes"),
        "{}",
        run.stdout
    );
    let report: serde_json::Value = serde_json::from_slice(&fs::read(json).unwrap()).unwrap();
    let tensors = report["tensors"].as_array().unwrap();
    let sum: u64 = tensors.iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
    assert!(!tensors.is_empty() && report["bytes"] == sum, "{report}");
    assert!(report["peak_resident_bytes"].as_u64().unwrap() > sum);
    for tensor in tensors {
        let name = tensor["name"].as_str().unwrap();
        let address = tensor["device_address"].as_str().unwrap();
        let line = run
            .stdout
            .lines()
            .find(|l| l.split_whitespace().next() == Some(name))
            .unwrap_or_else(|| panic!("{name} is not shown"));
        assert!(line.contains(address), "{line}");
    }
}

#[test]
fn bad_models_and_small_heaps_are_errors_that_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let whole = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL)).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_string()
    };
    let cut_data = file("cut-data.gguf", &whole[..whole.len() - 1]);
    let cut_header = file("cut-header.gguf", &whole[..100]);
    let other = file("other.gguf", b"PNG or some such thing");
    let commands: &[&[&str]] = match cfg!(feature = "llama") {
        true => &[&["load"], &["run", "-n", "1"]],
        false => &[&["load"]],
    };
    for command in commands {
        for (model, says) in [
            (
                &cut_data,
                "cut-data.gguf: the file is cut short: data of tensor ",
            ),
            (&cut_header, "cut-header.gguf: the file is cut short: "),
            (&other, "other.gguf: magic is PNG , expected GGUF"),
        ] {
            let run = weightstream(&[command, &["-m", model.as_str()][..]].concat());
            assert_eq!(run.status, 2, "{command:?} {model}: {}", run.stderr);
            assert!(
                run.stderr.contains(says),
                "{command:?} {model}: {}",
                run.stderr
            );
        }
        let run = weightstream(&[command, &["-m", MODEL, "--heap-mib", "0"][..]].concat());
        assert_eq!(run.status, 2, "{command:?}: {}", run.stderr);
    }
    let run = weightstream(&["load", "-m", MODEL, "--heap-mib", "9"]);
    assert_eq!(run.status, 2, "{}", run.stderr);
    assert!(run.stderr.contains("bytes asked for, "), "{}", run.stderr);
}

#[cfg(feature = "llama")]
#[test]
fn a_heap_too_small_leaves_whole_layers_to_the_cpu_and_the_run_is_right() {
    let dir = tempfile::tempdir().unwrap();
    let run = |heap_mib: &str| {
        let path = |what: &str| dir.path().join(format!("{what}-{heap_mib}"));
        let (json, logits) = (path("report"), path("logits"));
        let run = weightstream(&[
            "run",
            "-m",
            MODEL,
            "-n",
            "1",
            "--heap-mib",
            heap_mib,
            "--json",
            json.to_str().unwrap(),
            "--logits",
            logits.to_str().unwrap(),
        ]);
        assert_eq!(run.status, 0, "{}", run.stderr);
        let report = fs::read(json).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let file = fs::read(logits).unwrap();
        let tensors = SafeTensors::deserialize(&file).unwrap();
        let bytes = tensors.tensor("logits").unwrap().data();
        let float = |b: &[u8]| f64::from(f32::from_le_bytes(b.try_into().unwrap()));
        let logits: Vec<f64> = bytes.chunks_exact(4).map(float).collect();
        (run, report, logits)
    };
    let (_, all, expected) = run("64");
    assert_eq!(all["weights_left_to_cpu"].as_array().unwrap().len(), 0);
    let (run, some, found) = run("10");
    let left = some["weights_left_to_cpu"].as_array().unwrap();
    assert!(!left.is_empty(), "{some}");
    assert!(
        left.iter()
            .all(|w| w["reason"] == "there is no room for it in DMA memory"),
        "{some}"
    );
    let said = |w: &&str| w.starts_with("left to the CPU: ") && w.ends_with("in DMA memory");
    assert!(run.stderr.lines().any(|line| said(&line)), "{}", run.stderr);
    let mut layers: BTreeMap<&str, usize> = BTreeMap::new();
    for weight in left {
        let name = weight["name"].as_str().unwrap();
        if let Some(of_layer) = name.strip_prefix("blk.") {
            *layers
                .entry(of_layer.split('.').next().unwrap())
                .or_default() += 1;
        }
    }
    // Of a layer all seven matrices or none.
    assert!(layers.values().all(|n| *n == 7), "{layers:?}");
    let (fewer, jobs) = (
        some["jobs"].as_u64().unwrap(),
        all["jobs"].as_u64().unwrap(),
    );
    assert!(0 < fewer && fewer < jobs, "{fewer} jobs of {jobs}");
    // The CPU rounds in between, and so differently.
    let square = |x: f64| x * x;
    let error: f64 = found
        .iter()
        .zip(&expected)
        .map(|(a, b)| square(a - b))
        .sum();
    let power: f64 = expected.iter().map(|b| square(*b)).sum();
    assert!(error < 1e-2 * power, "NMSE {:e}", error / power);
}
