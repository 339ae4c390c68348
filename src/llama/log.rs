//! llama.cpp's log, passed on to the `log` crate.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::{Mutex, Once, PoisonError};

use ::log::{Level, log};
use llama_cpp_sys_2 as sys;

/// The first error that llama.cpp logged since the last was taken, for the caller of a function
/// that says no more than NULL. Those that follow say that what called it failed, too.
static ERROR: Mutex<Option<String>> = Mutex::new(None);

/// Sends what llama.cpp logs to the `log` crate, under the target `llama.cpp`: warnings and errors
/// as info, because what fails is told by the error that the caller gets, and the rest as debug.
/// Called by everything here that calls llama.cpp.
pub fn quiet() {
    static ONCE: Once = Once::new();
    // SAFETY: the callback takes no user data and may be called on any thread.
    ONCE.call_once(|| unsafe { sys::llama_log_set(Some(on_log), std::ptr::null_mut()) });
}

/// Takes the first error llama.cpp logged since this was called before.
pub(super) fn take_error() -> Option<String> {
    ERROR.lock().unwrap_or_else(PoisonError::into_inner).take()
}

thread_local! {
    /// A line that is not yet at its end, with the level of its first piece; llama.cpp logs some
    /// in pieces.
    static LINE: RefCell<(sys::ggml_log_level, String)> =
        const { RefCell::new((sys::GGML_LOG_LEVEL_NONE, String::new())) };
}

unsafe extern "C" fn on_log(level: sys::ggml_log_level, text: *const c_char, _: *mut c_void) {
    // SAFETY: llama.cpp passes a string.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    LINE.with_borrow_mut(|(level_of_line, line)| {
        if line.is_empty() {
            *level_of_line = level;
        }
        line.push_str(&text);
        if line.ends_with('\n') {
            finish_line(*level_of_line, &std::mem::take(line));
        }
    });
}

fn finish_line(level: sys::ggml_log_level, line: &str) {
    let is_error = level == sys::GGML_LOG_LEVEL_ERROR;
    let level = match level {
        sys::GGML_LOG_LEVEL_ERROR | sys::GGML_LOG_LEVEL_WARN => Level::Info,
        _ => Level::Debug,
    };
    for line in line.lines().map(str::trim).filter(|l| !l.is_empty()) {
        log!(target: "llama.cpp", level, "{line}");
        if is_error {
            let mut error = ERROR.lock().unwrap_or_else(PoisonError::into_inner);
            error.get_or_insert_with(|| line.to_owned());
        }
    }
}
