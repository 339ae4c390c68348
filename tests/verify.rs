//! `verify`: a planted fault is found, shrunk to what it takes, kept, and replayed.

mod faulty;

use std::process::Command;
use std::time::Duration;

use weightstream::dma::Coherence;
use weightstream::quant::WeightType;
use weightstream::regress::{MismatchKind, Opener, Verdict, replay};
use weightstream::regs::job::{Header, REUSE_ACTIVATIONS};
use weightstream::target::{Conditions, Stalls, TargetOptions};
use weightstream::vectors::{Case, exact};
use weightstream::verify::{Failure, Verifier};

fn options() -> TargetOptions {
    TargetOptions {
        heap_bytes: 256 << 20,
        coherence: Coherence::Strict,
        ..TargetOptions::default()
    }
}

/// The first failing case, shrunk; a fault that is not found within some hundred cases is none.
fn find(open: &Opener<'_>) -> Option<Failure> {
    let verifier = Verifier::new(open, &options(), 5, false).unwrap();
    let failing = |n: &u64| !verifier.check(*n).unwrap().mismatches.is_empty();
    let number = (0..600).find(failing)?;
    let shrunk = verifier
        .shrink(number, Duration::from_secs(600), || ())
        .unwrap();
    Some(shrunk.expect("the same case fails again"))
}

/// The failure's vector, after its way through a file.
fn through_a_file(failure: &Failure) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("found.safetensors");
    failure.case.write(&path).unwrap();
    Case::read(path).unwrap()
}

#[test]
fn without_a_fault_nothing_is_found() {
    assert!(find(&|options| faulty::open(options, |_| false)).is_none());
}

#[test]
fn a_fault_is_shrunk_to_the_smallest_job_and_the_mildest_stalls_that_show_it() {
    // Wrong only where weights of one type start off a bus word, there are columns, and the
    // weights' channel stalls enough.
    let condition =
        |h: &Header| h.ty == WeightType::Q5_1.ggml() && h.skip % 2 == 1 && h.cols >= 2 && h.k >= 96;
    let open = |options: &TargetOptions| {
        let stalls = options.conditions.stalls.0[11] >= 20;
        faulty::open(options, if stalls { condition } else { |_| false })
    };
    let failure = find(&open).expect("it is found");
    assert!(
        !failure.model_is_wrong && failure.taken > 3,
        "{}",
        failure.taken
    );

    let case = through_a_file(&failure);
    let shape = (case.ty, case.k, case.rows, case.cols);
    assert_eq!(shape, (WeightType::Q5_1, 96, 1, 2));
    let recorded = case.recorded.as_ref().unwrap();
    let [job] = &recorded.scenario.jobs().collect::<Vec<_>>()[..] else {
        panic!("one job shows it")
    };
    assert_eq!((job.offset, job.reuse, job.flaw), (1, false, None));
    let mut stalls = Stalls::default();
    stalls.0[11] = 20;
    let mildest = Conditions {
        stalls,
        ..Conditions::default()
    };
    assert_eq!(recorded.scenario.conditions, mildest);
    assert_eq!(exact::check(&case), []);

    // The same fault shows again, and without it the case passes.
    let replayed = |open: &Opener<'_>| replay(open, &options(), 0, &case).unwrap().0;
    let Verdict::Failed(mismatches) = replayed(&open) else {
        panic!("it fails again")
    };
    let [mismatch] = &mismatches[..] else {
        panic!("{mismatches:?}")
    };
    let MismatchKind::Results {
        first,
        wrong: 1,
        of: 2,
    } = &mismatch.kind
    else {
        panic!("{mismatch:?}")
    };
    assert_eq!(first[0].expected ^ 1, first[0].actual);
    assert_eq!(
        replayed(&|options| faulty::open(options, |_| false)),
        Verdict::Passed
    );
}

#[test]
fn a_fault_that_takes_two_jobs_is_shrunk_to_two() {
    let condition = |h: &Header| h.flags & REUSE_ACTIVATIONS != 0;
    let failure = find(&|options| faulty::open(options, condition)).expect("it is found");
    let case = through_a_file(&failure);
    let recorded = case.recorded.as_ref().unwrap();
    let jobs: Vec<_> = recorded.scenario.jobs().collect();
    assert_eq!(jobs.len(), 2, "{jobs:?}");
    assert!(!jobs[0].reuse && jobs[1].reuse && recorded.case == 1);
    assert!(
        jobs.iter().all(|j| (j.k, j.rows, j.cols) == (32, 1, 1)),
        "{jobs:?}"
    );
    assert_eq!(recorded.scenario.conditions, Conditions::default());
    assert_eq!(exact::check(&case), []);
}

#[test]
fn the_same_seed_gives_the_same_cases_and_another_gives_others() {
    let open = |options: &TargetOptions| faulty::open(options, |_| false);
    let scenarios = |seed| {
        let verifier = Verifier::new(&open, &options(), seed, false).unwrap();
        [3, 4].map(|n| verifier.check(n).unwrap().built.scenario)
    };
    assert_eq!(scenarios(1), scenarios(1));
    let [a, b] = scenarios(1);
    assert_ne!(a, b);
    assert_ne!(scenarios(2)[0], a);
}

fn weightstream(args: &[&str]) -> (Option<i32>, String) {
    let out = Command::new(env!("CARGO_BIN_EXE_weightstream"))
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap() + &String::from_utf8(out.stderr).unwrap();
    (out.status.code(), text)
}

#[test]
fn targets_agree_and_coverage_is_reported_with_its_holes() {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("report.json");
    let targets: &[&str] = match cfg!(feature = "rtl") {
        true => &["model", "rtl"],
        false => &["model"],
    };
    for target in targets {
        let (status, text) = weightstream(&[
            "verify",
            "-t",
            target,
            "--cases",
            "60",
            "--seed",
            "3",
            "--jobs",
            "2",
            "--strict",
            "--json",
            json.to_str().unwrap(),
            "--out",
            dir.path().to_str().unwrap(),
        ]);
        assert_eq!(status, Some(0), "{text}");
        assert!(
            text.contains(&format!("{target}: PASSED, 60 cases")),
            "{text}"
        );
        let report: serde_json::Value =
            serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        assert_eq!(report["cycles"].as_u64().unwrap() > 0, *target == "rtl");
        for cross in report["coverage"].as_array().unwrap() {
            let number = |key: &str| cross[key].as_u64().unwrap();
            let holes = cross["holes"].as_array().unwrap();
            assert_eq!(holes.is_empty(), number("met") == number("of"), "{cross}");
            assert!(number("met") > 0, "{cross}");
        }
        assert_eq!(report["coverage"][0]["name"], "traffic");
    }
    let (status, text) = weightstream(&["verify", "-t", "rtl:nothing"]);
    assert_eq!(status, Some(2), "{text}");
}
