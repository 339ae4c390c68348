//! `weightstream profile`, run as its users run it.
#![cfg(feature = "llama")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn weightstream(dir: &Path, args: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap(), text(stdout), text(stderr))
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn all<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field].as_array().unwrap()
}

fn chains(profile: &Value) -> Vec<&Value> {
    let graphs = all(profile, "steps").iter().flat_map(|s| all(s, "graphs"));
    graphs.flat_map(|g| all(g, "chains")).collect()
}

fn jobs(profile: &Value) -> Vec<&Value> {
    let chains = chains(profile).into_iter();
    chains.flat_map(|c| c["jobs"].as_array().unwrap()).collect()
}

fn sum(values: &[&Value], field: &str) -> u64 {
    values.iter().map(|v| v[field].as_u64().unwrap()).sum()
}

#[test]
fn a_profile_is_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut targets = vec!["model"];
    targets.extend(cfg!(feature = "rtl").then_some("rtl"));
    for target in targets {
        let files = [
            "--json",
            "p.json",
            "--html",
            "p.html",
            "--perfetto",
            "p.pftrace",
            "--csv-jobs",
            "jobs.csv",
            "--csv-tensors",
            "tensors.csv",
        ];
        let args = [
            &["profile", "-n", "3", "-t", target, "--engines", "2"],
            &files[..],
        ]
        .concat();
        let (status, stdout, stderr) = weightstream(dir, &args);
        assert_eq!(status, 0, "{stderr}");
        let profile = json(&dir.join("p.json"));
        let phases: Vec<_> = profile["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| &s["phase"])
            .collect();
        assert_eq!(phases, ["prefill", "decode", "decode"]);
        for role in ["attn_q", "ffn_down", "output"] {
            assert!(stdout.contains(role), "{stdout}");
        }

        // The same jobs as in a run that is not profiled.
        let (status, ..) = weightstream(
            dir,
            &[
                "run",
                "-n",
                "3",
                "-t",
                target,
                "--engines",
                "2",
                "--json",
                "run.json",
            ],
        );
        assert_eq!(status, 0);
        let run = json(&dir.join("run.json"));
        let jobs = jobs(&profile);
        assert_eq!(run["jobs"], jobs.len());
        assert_eq!(run["weight_bytes_streamed"], sum(&jobs, "weight_bytes"));
        let lines = fs::read_to_string(dir.join("jobs.csv")).unwrap();
        assert_eq!(lines.lines().count(), 1 + jobs.len());

        let clock = !profile["clock_mhz"].is_null();
        assert_eq!(clock, target == "rtl");
        for chain in chains(&profile) {
            let counters = &chain["counters"];
            let jobs: Vec<_> = chain["jobs"].as_array().unwrap().iter().collect();
            let bus = profile["bus_bytes"].as_u64().unwrap();
            let beats: u64 = jobs
                .iter()
                .map(|j| j["bytes"].as_u64().unwrap().div_ceil(bus))
                .sum();
            assert_eq!(counters["beats_in"], beats);
            assert_eq!(clock, chain["cycles"].is_u64());
            if clock {
                let cycles = chain["cycles"].as_u64().unwrap();
                let busy = counters["busy"].as_u64().unwrap();
                // A packet's first beat is taken in the cycle before the kernel is busy with it.
                let stalled = counters["stall_in"].as_u64().unwrap();
                assert!(beats + stalled <= busy + jobs.len() as u64);
                assert!(busy < cycles);
                assert!(jobs.iter().all(|j| j["cycles"].as_u64().unwrap() <= busy));
            }
        }

        // From the JSON comes what came from the run.
        let again = [
            "profile",
            "--from",
            "p.json",
            "--html",
            "q.html",
            "--perfetto",
            "q.pftrace",
        ];
        let (status, from_json, stderr) = weightstream(dir, &again);
        assert_eq!(status, 0, "{stderr}");
        assert_eq!(from_json, stdout);
        for (a, b) in [("p.html", "q.html"), ("p.pftrace", "q.pftrace")] {
            let same = fs::read(dir.join(a)).unwrap() == fs::read(dir.join(b)).unwrap();
            assert!(same, "{a} and {b} differ");
        }
    }
}

#[test]
fn diff_has_a_status() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (status, _, stderr) = weightstream(dir, &["profile", "-n", "2", "--json", "a.json"]);
    assert_eq!(status, 0, "{stderr}");
    let (status, ..) = weightstream(
        dir,
        &["profile", "diff", "a.json", "a.json", "--tolerance", "0"],
    );
    assert_eq!(status, 0);
    let mut slower = json(&dir.join("a.json"));
    let chain = &mut slower["steps"][1]["graphs"][0]["chains"][0]["kernel_ns"];
    *chain = (chain.as_f64().unwrap() * 100.0).into();
    fs::write(dir.join("b.json"), slower.to_string()).unwrap();
    let (status, stdout, _) = weightstream(
        dir,
        &["profile", "diff", "a.json", "b.json", "--by", "layer"],
    );
    assert_eq!(status, 1, "{stdout}");
    assert!(
        stdout
            .lines()
            .any(|l| l.contains("blk.0") && l.contains("slower")),
        "{stdout}"
    );
    let (status, _, stderr) = weightstream(dir, &["profile", "diff", "a.json", "none.json"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("none.json: "), "{stderr}");
    let (status, _, stderr) = weightstream(dir, &["profile", "--from", "a.json", "--clock", "100"]);
    assert_eq!(status, 2);
    assert!(stderr.contains("without a clock"), "{stderr}");
}
