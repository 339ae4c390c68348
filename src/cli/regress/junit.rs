//! The report as JUnit XML.
//!
//! GitLab and Jenkins tell cases apart by `classname` and `name`: target and folder are the
//! first, the case the second. Both show the text within `failure`, and both take a line
//! `[[ATTACHMENT|file]]` in `system-out` for a file to link to.

use std::path::Path;
use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::report::{CaseReport, Report, Result};

/// The document's bytes.
pub fn document(report: &Report) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    junit(report).serialize(&mut bytes)?;
    Ok(bytes)
}

fn junit(report: &Report) -> quick_junit::Report {
    let mut suites: Vec<TestSuite> = Vec::new();
    for case in &report.cases {
        let same = |suite: &TestSuite| suite.name.as_str() == case.target;
        if !suites.last().is_some_and(same) {
            suites.push(TestSuite::new(case.target.as_str()));
        }
        let suite = suites.last_mut().expect("just made where there was none");
        suite.add_test_case(test_case(case));
        let time = suite.time.unwrap_or_default() + Duration::from_secs_f64(case.seconds);
        suite.set_time(time);
    }
    let mut junit = quick_junit::Report::new("weightstream regress");
    junit.set_time(Duration::from_secs_f64(report.seconds));
    junit.add_test_suites(suites);
    junit
}

fn test_case(case: &CaseReport) -> TestCase {
    let status = match case.result {
        Result::Passed => TestCaseStatus::success(),
        Result::Skipped => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(case.why.join("; "));
            status
        }
        Result::Failed => non_success(case, NonSuccessKind::Failure, "difference"),
        Result::Unreadable => non_success(case, NonSuccessKind::Error, "bad vector file"),
    };
    let mut test = TestCase::new(case.case.as_str(), status);
    let folder = Path::new(&case.file).parent().unwrap_or(Path::new(""));
    let folder = folder.to_string_lossy();
    // A dot would part it into packages.
    let folder = folder.trim_start_matches(['.', '/']).replace('.', "_");
    test.set_classname(format!("{}.{folder}", case.target.replace('.', "_")));
    test.set_time(Duration::from_secs_f64(case.seconds));
    test.extra.insert("file".into(), case.file.as_str().into());
    if let Some(waves) = &case.waves {
        let file = std::path::absolute(&waves.file).unwrap_or_else(|_| waves.file.clone().into());
        test.set_system_out(format!("[[ATTACHMENT|{}]]", file.display()));
    }
    test
}

fn non_success(case: &CaseReport, kind: NonSuccessKind, ty: &str) -> TestCaseStatus {
    let mut lines = case.lines();
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(ty);
    // The line under the title says more than the title, which CI shows anyway.
    let message = lines.get(1).or(lines.first()).map(|line| line.trim());
    status.set_message(message.unwrap_or_default().to_string());
    lines.push(String::new());
    status.set_description(lines.join("\n"));
    status
}
