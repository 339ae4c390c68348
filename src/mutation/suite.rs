//! What a fault is built into, what is run on it, and by when that has to end.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde::Deserialize;
use weightstream_sim::dut::{Dut, DutError, Part};

use super::{Mutant, MutationError, Source, Verdict, io_error};

/// The object, in a check's environment.
const OBJECT: &str = "WEIGHTSTREAM_SIM_DUT";

/// Ends of a process are looked for that often.
const POLL: Duration = Duration::from_millis(20);
/// A check may take so many times as long as on the RTL as it is, and some seconds: the machine has
/// other things to do, too.
const PATIENCE: u32 = 10;
const LEAST: Duration = Duration::from_secs(20);
/// The RTL as it is may take that long.
const MOST: Duration = Duration::from_secs(3600);

/// What a fault is built into, and what is run on that.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Relative to the folder of the RTL. It has a module `weightstream`, and it is faults of its
    /// sources that the checks are for.
    pub filelist: String,
    /// Parameters of `weightstream`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Commands that fail if the RTL is wrong, the quickest first. `weightstream` is this program,
    /// `{object}` the path of the object, which is in the environment, too, as
    /// WEIGHTSTREAM_SIM_DUT.
    pub checks: Vec<String>,
}

/// One worker's copy of the RTL, and the object of a suite that is built of it.
pub struct Bench<'a> {
    suite: &'a Suite,
    folder: PathBuf,
    sources: Vec<Source>,
    parameters: Vec<(String, String)>,
    /// The object of the RTL as it is, and how long each check may take.
    object: Vec<u8>,
    limits: Vec<Duration>,
}

impl<'a> Bench<'a> {
    /// Copies the RTL from `rtl` to `folder`, builds it as it is, and runs all checks on it.
    ///
    /// # Errors
    /// If it cannot be built, or a check fails.
    pub fn new(rtl: &Path, folder: &Path, suite: &'a Suite) -> Result<Bench<'a>, MutationError> {
        copy(rtl, &folder.join("rtl"))?;
        let parameters = suite.parameters.iter();
        let mut bench = Bench {
            suite,
            folder: folder.canonicalize().map_err(io_error(folder))?,
            sources: super::sources(rtl, &suite.filelist)?,
            parameters: parameters.map(|(k, v)| (k.clone(), v.clone())).collect(),
            object: Vec::new(),
            limits: Vec::new(),
        };
        bench.build()?;
        let object = bench.object_path();
        bench.object = fs::read(&object).map_err(io_error(&object))?;
        for check in &suite.checks {
            let start = Instant::now();
            let reason = match bench.run(check, MOST)? {
                Some(status) if status.success() => {
                    bench.limits.push(start.elapsed() * PATIENCE + LEAST);
                    continue;
                }
                Some(status) => format!("{status}, see {}", bench.log().display()),
                None => format!("no end in {} s", MOST.as_secs()),
            };
            let check = check.clone();
            return Err(MutationError::Check { check, reason });
        }
        Ok(bench)
    }

    /// Whether the fault is in what it builds.
    pub fn has(&self, mutant: &Mutant) -> bool {
        self.sources.iter().any(|s| s.file == mutant.file)
    }

    /// Builds the RTL with the fault and runs the checks, until one fails.
    ///
    /// # Errors
    /// If a file cannot be written or a program not be started: that says nothing of the fault.
    pub fn judge(&self, mutant: &Mutant) -> Result<Verdict, MutationError> {
        let source = self.sources.iter().find(|s| s.file == mutant.file);
        let text = &source.expect("mutants are of the sources").text;
        let path = self.folder.join("rtl").join(&mutant.file);
        fs::write(&path, mutant.apply(text)).map_err(io_error(&path))?;
        let verdict = self.judge_changed();
        fs::write(&path, text).map_err(io_error(&path))?;
        verdict
    }

    fn judge_changed(&self) -> Result<Verdict, MutationError> {
        match self.build() {
            Ok(()) => {}
            Err(DutError::Refused { .. } | DutError::Compile { .. }) => {
                return Ok(Verdict::Refused);
            }
            Err(e) => return Err(e.into()),
        }
        let object = self.object_path();
        if fs::read(&object).map_err(io_error(&object))? == self.object {
            return Ok(Verdict::Same);
        }
        for (check, limit) in self.suite.checks.iter().zip(&self.limits) {
            let by = check.clone();
            match self.run(check, *limit)? {
                None => return Ok(Verdict::TimedOut { by }),
                Some(status) if !status.success() => return Ok(Verdict::Killed { by }),
                Some(_) => {}
            }
        }
        Ok(Verdict::Survived)
    }

    fn object_path(&self) -> PathBuf {
        self.folder.join("weightstream.so")
    }

    /// What the last check said.
    fn log(&self) -> PathBuf {
        self.folder.join("check.log")
    }

    fn build(&self) -> Result<(), DutError> {
        let dut = Dut {
            part: Part::Accelerator,
            top: "weightstream",
            filelists: &[self.folder.join("rtl").join(&self.suite.filelist)],
            parameters: &self.parameters,
            output: &self.object_path(),
            build_dir: &self.folder.join("build"),
            coverage: false,
            quick: true,
            jobs: 1,
        };
        // What a fault provokes is no news.
        dut.build(|_| {})
    }

    /// Runs a check: None if it had not ended in `limit`.
    fn run(&self, check: &str, limit: Duration) -> Result<Option<ExitStatus>, MutationError> {
        let object = self.object_path();
        let said = self.log();
        let output = fs::File::create(&said).map_err(io_error(&said))?;
        let errors = output.try_clone().map_err(io_error(&said))?;
        let words = shlex::split(check).filter(|words| !words.is_empty());
        let mut words = words.ok_or_else(|| MutationError::Check {
            check: check.into(),
            reason: "not a command".into(),
        })?;
        let arguments = words.split_off(1);
        let program = match words[0].as_str() {
            "weightstream" => env::current_exe().map_err(io_error(Path::new("/proc/self/exe")))?,
            program => program.into(),
        };
        let child = Command::new(&program)
            .args(
                arguments
                    .iter()
                    .map(|a| a.replace("{object}", &object.to_string_lossy())),
            )
            .env(OBJECT, &object)
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            // So that it can be ended with all that it started.
            .process_group(0)
            .spawn();
        wait(child.map_err(io_error(&program))?, limit).map_err(io_error(&program))
    }
}

fn wait(mut child: Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            // Not yet waited for, so the number is still its own.
            kill_process_group(Pid::from_child(&child), Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

/// Copies a folder's files, as deep as it goes.
fn copy(from: &Path, to: &Path) -> Result<(), MutationError> {
    fs::create_dir_all(to).map_err(io_error(to))?;
    for entry in fs::read_dir(from).map_err(io_error(from))? {
        let entry = entry.map_err(io_error(from))?;
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &to)?;
        } else {
            fs::copy(&path, &to).map_err(io_error(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 60 & echo $!; wait"])
            .process_group(0);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut pid = String::new();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut out, &mut pid).unwrap();
        assert_eq!(wait(child, Duration::from_millis(50)).unwrap(), None);
        // Its output is closed once nobody of the group lives.
        assert_eq!(std::io::BufRead::read_line(&mut out, &mut pid).unwrap(), 0);
    }

    #[test]
    fn an_exit_status_is_passed_on() {
        let run = |code: &str| {
            let child = Command::new("sh").args(["-c", code]).spawn().unwrap();
            wait(child, Duration::from_secs(60)).unwrap().unwrap()
        };
        assert!(run("exit 0").success());
        assert_eq!(run("exit 3").code(), Some(3));
    }
}
