//! Settings: the environment, and a TOML file that it may name.

use std::env;
use std::path::PathBuf;

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
        Ok(Settings { target, options })
    }
}
