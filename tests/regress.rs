//! `weightstream regress` as a CI farm runs it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use quick_junit::{NonSuccessKind, TestCaseStatus};
use serde_json::Value;
use weightstream::vectors::Case;

fn weightstream<S: AsRef<std::ffi::OsStr>>(args: &[S]) -> (i32, String) {
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

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A folder with good cases, one whose expected value is off by its last bit, and no vector.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
    for name in ["q4_0_small", "q5_k_small"] {
        let file = format!("{name}.safetensors");
        fs::copy(vectors.join(&file), dir.path().join(&file)).unwrap();
    }
    let mut case = Case::read(vectors.join("q8_0_rows.safetensors")).unwrap();
    case.expected[3] ^= 1;
    case.write(&dir.path().join("one bit.safetensors")).unwrap();
    dir
}

fn names(report: &Value) -> Vec<String> {
    let cases = report["cases"].as_array().unwrap().iter();
    cases.map(|c| c["case"].as_str().unwrap().into()).collect()
}

#[test]
fn every_case_is_in_exactly_one_shard() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let cases = |shard: &[&str]| {
        let common = ["regress", "-t", "model", "--json", report.to_str().unwrap()];
        let (status, text) = weightstream(&[&common, shard].concat());
        assert_eq!(status, 0, "{text}");
        names(&json(&report))
    };
    let mut sharded: Vec<String> = ["1/3", "2/3", "3/3"]
        .iter()
        .flat_map(|shard| cases(&["--shard", shard]))
        .collect();
    sharded.sort();
    let all = cases(&[]);
    assert!(all.is_sorted() && all.len() > 100);
    assert_eq!(sharded, all);
}

#[test]
fn a_glob_names_what_it_matches_and_jobs_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let report = dir.path().join("report.json");
    let replay = |jobs: &str| {
        let report = report.to_str().unwrap();
        let (status, text) = weightstream(&[
            "regress",
            "--vectors",
            "vectors/q?_k_small.*",
            "vectors/q4_0_small.safetensors",
            "--jobs",
            jobs,
            "--json",
            report,
            "--strict",
        ]);
        assert_eq!(status, 0, "{text}");
        let report = json(report.as_ref());
        let key = |c: &Value| (c["target"].clone(), c["case"].clone(), c["cycles"].clone());
        let cases: Vec<_> = report["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(key)
            .collect();
        (names(&report), cases)
    };
    let (names, one) = replay("1");
    let distinct: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    assert!(
        distinct.iter().all(|name| name.ends_with("_small")),
        "{distinct:?}"
    );
    assert_eq!(
        distinct.len(),
        6,
        "five types of 256, and one more: {distinct:?}"
    );
    assert_eq!(replay("3").1, one, "the same cycles, in the same order");
}

#[test]
fn a_failure_is_reported_to_ci_and_repeated_by_its_command() {
    let dir = folder();
    fs::write(dir.path().join("bad.safetensors"), b"no vector").unwrap();
    let junit = dir.path().join("junit.xml");
    let (status, text) = weightstream(&[
        "regress",
        "-t",
        "model",
        "--vectors",
        dir.path().to_str().unwrap(),
        "--junit",
        junit.to_str().unwrap(),
        "--strict",
    ]);
    assert_eq!(status, 2, "a file is unreadable: {text}");

    let report =
        quick_junit::Report::deserialize_from_str(&fs::read_to_string(junit).unwrap()).unwrap();
    assert_eq!((report.tests, report.failures, report.errors), (4, 1, 1));
    let [suite] = &report.test_suites[..] else {
        panic!("one target, one suite")
    };
    let keys: BTreeSet<_> = suite
        .test_cases
        .iter()
        .map(|c| (&c.classname, &c.name))
        .collect();
    assert_eq!(
        keys.len(),
        4,
        "GitLab and Jenkins tell cases apart by these"
    );
    let failure = |wanted| {
        suite.test_cases.iter().find_map(|case| match &case.status {
            TestCaseStatus::NonSuccess {
                kind, description, ..
            } if *kind == wanted => Some((case.name.as_str(), description.clone().unwrap())),
            _ => None,
        })
    };
    let (name, description) = failure(NonSuccessKind::Failure).unwrap();
    assert_eq!(name, "one bit");
    assert!(
        description
            .as_str()
            .contains("row 3, col 0, weights at byte 0: expected 0x")
    );
    assert!(
        failure(NonSuccessKind::Error)
            .unwrap()
            .1
            .as_str()
            .contains("not a safetensors file")
    );

    let command = description
        .as_str()
        .lines()
        .find_map(|l| l.trim().strip_prefix("repeat: "));
    let words = shlex::split(command.expect("a command line")).unwrap();
    assert!(words.contains(&"--strict".to_string()), "{words:?}");
    let (status, text) = weightstream(&words[1..]);
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("FAILED: 1 of 1") && text.contains("row 3, col 0"),
        "{text}"
    );
}

#[cfg(feature = "rtl")]
#[test]
fn waves_of_a_failure_hold_its_first_wrong_result() {
    let dir = folder();
    let (report, waves) = (
        dir.path().join("report.json"),
        dir.path().join("waves/deep"),
    );
    let (status, text) = weightstream(&[
        "regress",
        "-t",
        "rtl",
        "-t",
        "model",
        "--vectors",
        dir.path().to_str().unwrap(),
        "--waves-on-failure",
        waves.to_str().unwrap(),
        "--json",
        report.to_str().unwrap(),
        "--stalls",
        "s2mm_w=60",
        "--latency",
        "200",
    ]);
    assert_eq!(status, 1, "{text}");
    let report = json(&report);
    assert_eq!(report["failed"], 2);
    let cases = report["cases"].as_array().unwrap();
    let of = |target: &str| {
        let found = cases
            .iter()
            .find(|c| c["target"] == target && c["verdict"] == "failed");
        &found.unwrap()["waves"]
    };
    assert_eq!(of("model"), &Value::Null, "the model has no signals");
    let waves = of("rtl");
    let file = Path::new(waves["file"].as_str().unwrap());
    assert!(fs::metadata(file).unwrap().len() > 1000);
    let [first, cycle, end] =
        ["first_cycle", "cycle", "end_cycle"].map(|key| waves[key].as_u64().unwrap());
    assert!(first < cycle && cycle < end, "{waves}");
    assert_eq!(
        waves["scope"], "weightstream.u_kernel.u_round",
        "off by the last bit"
    );
    assert!(
        text.contains(&format!("cycle {cycle} (time {})", 2 * cycle)),
        "{text}"
    );
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn bad_usage_is_told_before_anything_runs() {
    for (args, says) in [
        (&["--shard", "0/3"][..], "\"0/3\" is not I/N"),
        (&["--jobs", "0"], "0 is not in 1..="),
        (&["--stalls", "mm2s=3"], "no channel \"mm2s\""),
        (&["--vectors", "vectors/no*"], "no vector file"),
        (&["--vectors", "vectors/[*"], "vectors/[*: pattern is"),
        (&["-t", "rtl:nothing"], "cannot open target rtl:nothing"),
        (
            &["--trace", "x.fst"],
            "--trace holds one case on one target",
        ),
        (&["--record", "x.rec", "--jobs", "2"], "--jobs must be 1"),
        (&["-t", "replay:none"], "none: No such file"),
    ] {
        let (status, text) = weightstream(&[&["regress"], args].concat());
        assert_eq!(status, 2, "{args:?}: {text}");
        assert!(text.contains(says), "{args:?}: {text}");
    }
}

#[test]
fn a_recording_answers_and_is_compared() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let run = |target: &str, more: &[&str]| {
        let common = ["regress", "-t", target, "--filter", "_small$", "--strict"];
        weightstream(&[&common, more].concat())
    };
    let targets: &[&str] = match cfg!(feature = "rtl") {
        true => &["model", "rtl"],
        false => &["model"],
    };
    for target in targets {
        let (status, text) = run(target, &["--record", &file(target)]);
        assert_eq!(status, 0, "{text}");
        let replay = format!("replay:{}", file(target));
        let (status, text) = run(&replay, &[]);
        assert_eq!(status, 0, "{text}");
        let (status, text) = run(&replay, &["--filter", "_rows$"]);
        assert_eq!(status, 2, "--filter twice: {text}");
        let (status, text) = weightstream(&[
            "regress",
            "-t",
            &replay,
            "--filter",
            "q4_0_rows",
            "--strict",
        ]);
        assert_eq!(status, 1, "another case than the recorded one: {text}");
        assert!(text.contains("recorded is a S2mm descriptor"), "{text}");
        let (status, text) = weightstream(&["compare", &file("model"), &file(target)]);
        assert_eq!(status, 0, "{text}");
    }
    let (status, _) = run("model", &["--record", &file("one"), "--stall-seed", "1"]);
    assert_eq!(status, 0);
    let (status, text) = weightstream(&["compare", &file("model"), &file("one")]);
    // The seed changes what memory holds at first: the padding of the activations.
    assert_eq!(status, 1, "{text}");
    assert!(
        text.contains("first difference: job 0 of engine 0, session 1"),
        "{text}"
    );
    let (status, text) = weightstream(&["compare", &file("model"), "Cargo.toml"]);
    assert_eq!(status, 2, "{text}");
    assert!(
        text.contains("Cargo.toml, line 1: not the first line of a recording"),
        "{text}"
    );
}

#[cfg(feature = "rtl")]
#[test]
fn cycles_are_held_to_a_baseline() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cycles.json");
    let path = file.to_str().unwrap();
    let with = |more: &[&str]| {
        let args = [
            "regress", "-t", "rtl", "--filter", "^q6_k", "--cycles", path,
        ];
        weightstream(&[&args[..], more].concat())
    };
    assert_eq!(with(&[]).0, 2, "there is none yet");
    assert_eq!(with(&["--bless"]).0, 0);
    assert_eq!(with(&["--jobs", "2"]).0, 0);

    // A case that was quicker, one that was slower, one that was not there.
    let mut baseline = json(&file);
    let cases = baseline["w128b1"].as_object_mut().unwrap();
    let names: Vec<String> = cases.keys().take(3).cloned().collect();
    let now = |cases: &serde_json::Map<String, Value>, i: usize| cases[&names[i]].as_u64().unwrap();
    let (quicker, slower) = (now(cases, 0) * 100 / 101, now(cases, 1) + 1);
    cases[&names[0]] = quicker.into();
    cases[&names[1]] = slower.into();
    cases.remove(&names[2]);
    std::fs::write(&file, baseline.to_string()).unwrap();
    let (code, text) = with(&[]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("FAILED: 2 of"), "{text}");
    assert!(text.contains(&format!("{quicker} in {path}")), "{text}");
    assert!(text.contains("--bless takes them in"), "{text}");
    assert!(text.contains(&names[1]), "the table tells what got better");

    let (code, text) = with(&["--cycles-tolerance", "2"]);
    assert!(code == 1 && text.contains("FAILED: 1 of"), "{text}");
    assert_eq!(with(&["--bless"]).0, 0);
    assert_eq!(with(&[]).0, 0);

    std::fs::write(&file, "{\"w128b1\": {\"a\": -1}}").unwrap();
    let (code, text) = with(&[]);
    assert!(code == 2 && text.contains("cycles.json"), "{text}");
}
