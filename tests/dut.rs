//! RTL from outside in the harness: the example kernel, right and with its planted fault.
#![cfg(feature = "rtl")]

use std::path::Path;
use std::process::{Command, Output};

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/examples/serial-kernel/serial_kernel.f"
);
const VECTORS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors");

fn weightstream(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap()
}

fn build(dir: &Path, output: &str, more: &[&str]) -> Output {
    let args = ["dut", "build", "--top", "serial_kernel", "-F", EXAMPLE];
    let to = ["-o", output, "--build-dir", "build"];
    weightstream(dir, &[&args[..], &to, more].concat())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_kernel_from_outside_is_built_checked_and_its_fault_found() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let built = build(dir, "serial.so", &[]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    assert_eq!(text(&built.stdout), "dut:serial.so\n");

    let regress = ["regress", "-t", "dut:serial.so", "--strict", "--vectors"];
    let replayed = weightstream(dir, &[&regress[..], &[VECTORS]].concat());
    let report = text(&replayed.stdout);
    assert_eq!(replayed.status.code(), Some(0), "{report}");
    assert!(report.contains("not in this kernel"), "{report}");
    let verify = ["verify", "--cases", "60", "-t"];
    let agrees = weightstream(dir, &[&verify[..], &["dut:serial.so"]].concat());
    assert_eq!(agrees.status.code(), Some(0), "{}", text(&agrees.stdout));

    // Only what the parameter changes is compiled again.
    let built = build(dir, "fault.so", &["--param", "FAULT=1"]);
    assert!(built.status.success(), "{}", text(&built.stderr));
    let found = weightstream(dir, &[&verify[..], &["dut:fault.so"]].concat());
    let report = text(&found.stdout);
    assert_eq!(found.status.code(), Some(1), "{report}");
    let shrunk = report.lines().skip_while(|l| !l.starts_with("shrunk"));
    let shrunk = shrunk.collect::<Vec<_>>().join("\n");
    assert!(shrunk.contains("k 32, rows 1,"), "{report}");
    assert!(shrunk.contains("no stalls"), "{report}");

    // The vector that was kept shows the fault, and nothing in the right kernel.
    let kept = ["regress", "--vectors", "verify-failures", "-t"];
    let fails = weightstream(dir, &[&kept[..], &["dut:fault.so"]].concat());
    assert_eq!(fails.status.code(), Some(1), "{}", text(&fails.stdout));
    let passes = weightstream(dir, &[&kept[..], &["dut:serial.so"]].concat());
    assert_eq!(passes.status.code(), Some(0), "{}", text(&passes.stdout));
}

#[test]
fn what_cannot_be_built_is_told_and_leaves_the_old_object() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let fails = |args: &[&str], message: &str| {
        let output = build(dir, "old.so", args);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
        assert_eq!(std::fs::read(dir.join("old.so")).unwrap(), b"old");
    };
    std::fs::write(dir.join("old.so"), "old").unwrap();
    fails(&["--param", "NONE=1"], "NONE");
    fails(&["--bus-width", "96"], "must be 64, 128, 256 or 512 bits");
    fails(&["--bus-width", "256"], "does not fit a stream of 256 bits");
    fails(&["-F", "none.f"], "none.f");
    std::fs::write(dir.join("bad.v"), "module bad; wire endmodule").unwrap();
    std::fs::write(dir.join("bad.f"), "bad.v").unwrap();
    fails(&["-F", "bad.f"], "bad.v:1");
}

#[test]
fn an_object_of_something_else_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("text.so"), "no object".repeat(100)).unwrap();
    let refused = |target: &str, message: &str| {
        let output = weightstream(dir, &["regress", "-t", target, "--vectors", VECTORS]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(
            stderr.contains(target) && stderr.contains(message),
            "{stderr}"
        );
    };
    refused("dut:none.so", "No such file");
    refused("dut:text.so", "invalid ELF header");
}
