//! `libweightstream.so`: the ggml backend as a shared object, for an unmodified llama.cpp.
//!
//! llama.cpp loads it where `GGML_BACKEND_PATH` names it, other programs by `ggml_backend_load`.
//! The functions of ggml that the backend calls are those of the ggml that is in the process
//! ([`ggml`]); settings come from the environment and a file ([`settings`]); what weightstream logs
//! goes to ggml's log ([`log`]).

mod ggml;
mod log;
mod settings;

use std::panic::catch_unwind;
use std::ptr::null_mut;
use std::sync::Mutex;

use weightstream_core::driver::{Accelerator, DriverError};
use weightstream_core::ggml::{GgmlError, Registration, abi};
use weightstream_core::target::{TargetError, open};

use ggml::{Ggml, NoGgml};
use settings::{Settings, SettingsError};

const _: () = assert!(
    !weightstream_core::LINKS_LLAMA_CPP,
    "libweightstream.so must not carry a ggml of its own: build it by itself, \
     with `cargo build -p weightstream-ggml`"
);

/// Why there is no backend.
#[derive(Debug, thiserror::Error)]
enum InitError {
    #[error(transparent)]
    NoGgml(#[from] NoGgml),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("cannot open target {target}: {source}")]
    Target { target: String, source: TargetError },
    #[error("cannot start target {target}: {source}")]
    Driver { target: String, source: DriverError },
    #[error(transparent)]
    Ggml(#[from] GgmlError),
    #[error("the backend panicked")]
    Panicked,
}

/// What ggml calls after it has loaded the shared object: the backend, or NULL if there can be
/// none, and the log says why. A later call gives the same backend.
#[unsafe(no_mangle)]
pub extern "C" fn ggml_backend_init() -> *mut abi::Reg {
    static BACKEND: Mutex<Option<Registration>> = Mutex::new(None);
    let init = || -> Result<Registration, InitError> {
        let mut backend = BACKEND.lock().unwrap_or_else(|e| e.into_inner());
        match *backend {
            Some(backend) => Ok(backend),
            None => Ok(*backend.insert(start()?)),
        }
    };
    match catch_unwind(init).unwrap_or(Err(InitError::Panicked)) {
        Ok(backend) => backend.reg(),
        Err(error) => {
            log::error(&error.to_string());
            null_mut()
        }
    }
}

fn start() -> Result<Registration, InitError> {
    let ggml = Ggml::find()?;
    log::to_ggml(ggml.log);
    // A ggml that is not known is not worth opening a target for.
    ggml.api.check()?;
    let settings = Settings::read()?;
    let target = settings.target.to_string();
    let opened = open(&settings.target, &settings.options).map_err(|source| InitError::Target {
        target: target.clone(),
        source,
    })?;
    let accelerator = Accelerator::new(opened).map_err(|source| InitError::Driver {
        target: target.clone(),
        source,
    })?;
    let backend = Registration::new(ggml.api, "weightstream", accelerator)?;
    backend.leave_to_cpu(settings.cpu);
    backend.set_log_profile(settings.profile);
    ::log::info!(
        "target {target}, {} MiB of DMA memory, {} engines",
        backend.heap().total() >> 20,
        backend.engines()
    );
    Ok(backend)
}
