//! The log of whoever loaded us.

use std::ffi::CString;
use std::sync::OnceLock;

use ::log::{Level, LevelFilter, Log, Metadata, Record};

use crate::ggml::LogFunction;

static GGML: OnceLock<LogFunction> = OnceLock::new();

/// Passes records on to ggml's log, which filters them as the program wishes.
struct ToGgml;

/// Sends what is logged from now on to ggml's log.
pub fn to_ggml(function: LogFunction) {
    // A second call comes after a first that ended without a backend; it finds the same ggml.
    if GGML.set(function).is_ok() && ::log::set_logger(&ToGgml).is_ok() {
        ::log::set_max_level(LevelFilter::Debug);
    }
}

/// Logs an error; to stderr as long as no ggml was found.
pub fn error(text: &str) {
    match GGML.get() {
        Some(_) => ::log::error!("{text}"),
        None => eprintln!("weightstream: {text}"),
    }
}

impl Log for ToGgml {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let Some(log) = GGML.get() else { return };
        // `enum ggml_log_level`.
        let level = match record.level() {
            Level::Trace | Level::Debug => 1,
            Level::Info => 2,
            Level::Warn => 3,
            Level::Error => 4,
        };
        let text = format!("weightstream: {}\n", record.args()).replace('\0', "");
        let text = CString::new(text).expect("without NUL");
        // SAFETY: a format with one string, and that string.
        unsafe { log(level, c"%s".as_ptr(), text.as_ptr()) };
    }

    fn flush(&self) {}
}
