//! Settings: the environment, and a TOML file that it may name.

use std::env;
use std::path::PathBuf;

use glob::Pattern;
use serde::Deserialize;
use weightstream_core::dma::Coherence;
use weightstream_core::target::{TargetError, TargetOptions, TargetSpec};

/// Names the target; it counts for more than the file's `target`.
const TARGET: &str = "WEIGHTSTREAM_TARGET";
/// Names the file.
const CONFIG: &str = "WEIGHTSTREAM_CONFIG";

/// How the backend is set up.
#[derive(Debug)]
pub struct Settings {
    pub target: TargetSpec,
    pub options: TargetOptions,
    /// Names of weights that stay on the CPU.
    pub cpu: Vec<Pattern>,
    /// Log where the time goes.
    pub profile: bool,
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("{CONFIG}: cannot read {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{origin}: {source}")]
    Toml {
        origin: String,
        source: toml::de::Error,
    },
    #[error("{origin}: {source}")]
    Target { origin: String, source: TargetError },
    #[error("{origin}: cpu = {pattern:?}: {source}")]
    Pattern {
        origin: String,
        pattern: String,
        source: glob::PatternError,
    },
    #[error("{TARGET} is not text")]
    NotText,
    #[error("{origin}: heap_mib = {value} is more than an address holds")]
    Heap { origin: String, value: usize },
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    target: Option<String>,
    heap_mib: Option<usize>,
    strict: bool,
    engines: Option<usize>,
    threads: Option<usize>,
    cpu: Vec<String>,
    profile: bool,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`SettingsError`] names the variable or the file, and what is wrong.
    pub fn read() -> Result<Settings, SettingsError> {
        let target = match env::var(TARGET) {
            Ok(name) => Some(name),
            Err(env::VarError::NotPresent) => None,
            Err(env::VarError::NotUnicode(_)) => return Err(SettingsError::NotText),
        };
        let Some(path) = env::var_os(CONFIG).map(PathBuf::from) else {
            return Settings::new(target, CONFIG, "");
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Settings::new(target, &path.display().to_string(), &text),
            Err(source) => Err(SettingsError::Read { path, source }),
        }
    }

    /// Settings from the environment's target and a file's text; `origin` is the file's name.
    fn new(target: Option<String>, origin: &str, text: &str) -> Result<Settings, SettingsError> {
        let origin = || origin.to_owned();
        let file: File = toml::from_str(text).map_err(|source| SettingsError::Toml {
            origin: origin(),
            source,
        })?;
        let (place, target) = match target {
            Some(target) => (TARGET.to_owned(), Some(target)),
            None => (origin(), file.target),
        };
        let target = match target {
            None => TargetSpec::Model,
            Some(target) => target.parse().map_err(|source| SettingsError::Target {
                origin: place,
                source,
            })?,
        };
        let mut options = TargetOptions::default();
        if let Some(value) = file.heap_mib {
            options.heap_bytes = value.checked_mul(1 << 20).ok_or(SettingsError::Heap {
                origin: origin(),
                value,
            })?;
        }
        if file.strict {
            options.coherence = Coherence::Strict;
        }
        options.engines = file.engines.unwrap_or(options.engines);
        options.threads = file.threads.unwrap_or(options.threads);
        let pattern = |text: &String| {
            Pattern::new(text).map_err(|source| SettingsError::Pattern {
                origin: origin(),
                pattern: text.clone(),
                source,
            })
        };
        let cpu = file.cpu.iter().map(pattern).collect::<Result<_, _>>()?;
        Ok(Settings {
            target,
            options,
            cpu,
            profile: file.profile,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(target: Option<&str>, text: &str) -> Result<Settings, String> {
        Settings::new(target.map(Into::into), "a.toml", text).map_err(|e| e.to_string())
    }

    #[test]
    fn the_file_says_everything() {
        let text = "target = \"rtl\"\nheap_mib = 96\nstrict = true\nengines = 2\nthreads = 3\n\
                    cpu = [\"blk.?.*\", \"output*\"]\nprofile = true\n";
        let settings = settings(None, text).unwrap();
        assert_eq!(settings.target, TargetSpec::Rtl(None));
        assert_eq!(settings.options.heap_bytes, 96 << 20);
        assert_eq!(settings.options.coherence, Coherence::Strict);
        assert_eq!((settings.options.engines, settings.options.threads), (2, 3));
        let cpu: Vec<&str> = settings.cpu.iter().map(Pattern::as_str).collect();
        assert_eq!(cpu, ["blk.?.*", "output*"]);
        assert!(settings.profile);
    }

    #[test]
    fn the_environment_s_target_counts_for_more() {
        let of = |target, text| settings(target, text).unwrap().target;
        assert_eq!(of(None, ""), TargetSpec::Model);
        assert_eq!(of(Some("rtl"), "target = \"model\""), TargetSpec::Rtl(None));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        for (target, text, says) in [
            (
                Some("bord"),
                "",
                "WEIGHTSTREAM_TARGET: unknown target \"bord\"",
            ),
            (None, "target = \"bord\"", "a.toml: unknown target \"bord\""),
            (None, "engine = 2", "unknown field `engine`"),
            (
                None,
                "threads = \"two\"",
                "a.toml: TOML parse error at line 1",
            ),
            (None, "heap_mib = -1", "heap_mib"),
            (
                None,
                "heap_mib = 100000000000000",
                "is more than an address holds",
            ),
            (None, "cpu = [\"a[\"]", "a.toml: cpu = \"a[\": "),
        ] {
            let error = settings(target, text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
