//! `weightstream vectors` as its users run it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use weightstream::vectors::Case;

const MODEL: &str = "models/weightstream-tiny.gguf";

fn weightstream(args: &[&str]) -> (i32, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let text = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
    (status.code().expect("an exit status, not a signal"), text)
}

fn path(dir: &Path) -> &str {
    dir.to_str().unwrap()
}

#[test]
fn vectors_made_from_a_model_hold_its_bytes_are_exact_and_pass_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let make = |out: &Path, more: &[&str]| {
        let common = [
            "vectors",
            "make",
            "-m",
            MODEL,
            "--tensor",
            r"blk\.1\..*",
            "--out",
            path(out),
        ];
        let (status, text) = weightstream(&[&common, more].concat());
        assert_eq!(status, 0, "{text}");
        text
    };
    let first = dir.path().join("new/folder");
    let text = make(&first, &["--rows", "5..12", "--cols", "3", "--seed", "9"]);
    assert_eq!(
        text.lines().count(),
        7,
        "its seven matrices, not its norms: {text}"
    );

    let file = first.join("blk.1.ffn_up.weight.safetensors");
    let case = Case::read(&file).unwrap();
    assert_eq!((case.rows, case.cols, &*case.notes["seed"]), (7, 3, "9"));
    let model = fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(MODEL)).unwrap();
    let found = model.windows(case.weights.len()).any(|w| w == case.weights);
    assert!(found, "native blocks, as they lie in the file");

    let (status, text) = weightstream(&["vectors", "check", path(&first)]);
    assert_eq!(status, 0, "{text}");
    let (status, text) = weightstream(&["regress", "--vectors", path(&first)]);
    assert_eq!(status, 0, "{text}");

    let again = dir.path().join("again");
    make(&again, &["--rows", "5..12", "--cols", "3", "--seed", "9"]);
    let name = file.file_name().unwrap();
    assert_eq!(
        fs::read(&file).unwrap(),
        fs::read(again.join(name)).unwrap()
    );
    make(&again, &["--rows", "5..12", "--cols", "3", "--seed", "10"]);
    let other = Case::read(again.join(name)).unwrap();
    assert_eq!(other.weights, case.weights);
    assert_ne!(other.activations, case.activations);
}

#[cfg(feature = "llama")]
#[test]
fn activations_come_from_a_forward_pass() {
    let dir = tempfile::tempdir().unwrap();
    let make = |cols: &str| {
        weightstream(&[
            "vectors",
            "make",
            "-m",
            MODEL,
            "--tensor",
            r"blk\.[01]\.(attn_q|attn_k)\.weight",
            "--cols",
            cols,
            "--prompt",
            "Once upon a time",
            "--out",
            path(dir.path()),
        ])
    };
    let (status, text) = make("2");
    assert_eq!(status, 0, "{text}");
    let case =
        |name: &str| Case::read(dir.path().join(format!("{name}.weight.safetensors"))).unwrap();
    let x = |name: &str| case(name).x.unwrap();
    assert_eq!(
        x("blk.0.attn_q"),
        x("blk.0.attn_k"),
        "both see the layer's normed input"
    );
    assert_ne!(x("blk.0.attn_q"), x("blk.1.attn_q"));
    let x = x("blk.0.attn_q");
    let (a, b) = x.split_at(x.len() / 2);
    assert!(a != b && x.iter().all(|v| v.is_finite()) && x.iter().any(|v| *v != 0.0));
    let (status, text) = weightstream(&["vectors", "check", path(dir.path())]);
    assert_eq!(status, 0, "{text}");
    let (status, text) = make("1000");
    assert_eq!(status, 2);
    assert!(
        text.contains("columns in the forward pass, --cols 1000 asks for more"),
        "{text}"
    );
}

#[test]
fn a_vector_is_shown_as_a_table() {
    let (status, text) = weightstream(&["vectors", "show", "vectors/q4_0_small.safetensors"]);
    assert_eq!(status, 0, "{text}");
    let case =
        Case::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/q4_0_small.safetensors"))
            .unwrap();
    assert!(text.contains("Q4_0, k 96, rows 5, cols 3"), "{text}");
    for row in 0..case.rows {
        let line = text
            .lines()
            .find(|l| l.split_whitespace().next() == Some(&row.to_string()))
            .unwrap_or_else(|| panic!("row {row}: {text}"));
        for col in 0..case.cols {
            let bits = case.expected[col * case.rows + row];
            assert!(line.contains(&format!("(0x{bits:08x})")), "{line}");
        }
    }
}

#[test]
fn check_tells_inexact_from_unreadable() {
    let dir = tempfile::tempdir().unwrap();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    let good = Case::read(vectors.join("q4_1_small.safetensors")).unwrap();
    let mut case = good.clone();
    case.expected[1] ^= 1;
    case.write(&dir.path().join("result.safetensors")).unwrap();
    let mut case = good.clone();
    case.x.as_mut().unwrap()[0] = f32::INFINITY;
    case.write(&dir.path().join("x.safetensors")).unwrap();
    good.write(&dir.path().join("good.safetensors")).unwrap();
    let (status, text) = weightstream(&["vectors", "check", path(dir.path())]);
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("result.safetensors: expected[0][1] is 0x"),
        "{text}"
    );
    assert!(
        text.contains("x.safetensors: byte 0 of column 0 of activations is 0x"),
        "{text}"
    );
    assert!(
        text.contains("1 of 3 vectors are well formed and exact"),
        "{text}"
    );

    fs::write(dir.path().join("bad.safetensors"), b"none").unwrap();
    let (status, text) = weightstream(&["vectors", "check", path(dir.path())]);
    assert_eq!(status, 2, "{text}");
    assert!(
        text.contains("bad.safetensors: not a safetensors file"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_made_is_named() {
    for (args, says) in [
        (&["--tensor", "none"][..], "no tensor matches --tensor none"),
        (
            &["--tensor", "output_norm.weight"],
            "tensor output_norm.weight is F32",
        ),
        (
            &["--tensor", "blk.0.attn_q.weight", "--rows", "0..999"],
            "rows 0 to 999 are not all among the 256",
        ),
        (
            &["--tensor", "x", "--rows", "3..3"],
            "\"3..3\" is not FIRST..END",
        ),
        (&["--tensor", "("], "regex parse error"),
    ] {
        let common = ["vectors", "make", "-m", MODEL, "--out", "no/such"];
        let (status, text) = weightstream(&[&common, args].concat());
        assert_eq!(status, 2, "{args:?}: {text}");
        assert!(text.contains(says), "{args:?}: {text}");
    }
    assert!(!Path::new(env!("CARGO_MANIFEST_DIR")).join("no").exists());
}
