//! Writes a recording.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::queue::Queues;
use super::{Entry, Head, Line, RecordingError, VERSION};
use crate::dma::SimMemory;
use crate::target::{Activity, Beat, Device, DeviceError, Interrupts, Window};

/// A recording under way. Its file is made when a target is opened for the first time.
#[derive(Debug)]
pub struct Recording {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    file: Option<File>,
    sessions: u64,
    /// The first thing that went wrong in writing.
    error: Option<std::io::Error>,
}

impl Recording {
    pub fn new(path: &Path) -> Recording {
        Recording {
            path: path.into(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a new session: `target` is being opened.
    pub fn begin(&self, target: &str) -> Result<u64, RecordingError> {
        let io = |source| RecordingError::Io {
            path: self.path.clone(),
            source,
        };
        let mut state = self.lock();
        if state.file.is_none() {
            let mut file = File::create(&self.path).map_err(io)?;
            let head = Head {
                weightstream_recording: VERSION,
                target: target.into(),
            };
            write_line(&mut file, &head).map_err(io)?;
            state.file = Some(file);
        }
        state.sessions += 1;
        Ok(state.sessions - 1)
    }

    fn write(&self, line: &Line) {
        let mut state = self.lock();
        let Some(file) = &mut state.file else { return };
        if let Err(error) = write_line(file, line)
            && state.error.is_none()
        {
            log::error!(
                "{}: {error}; the recording is not whole",
                self.path.display()
            );
            state.error = Some(error);
        }
    }
}

/// Writes a line at once: what is recorded is whole to the last call, however the process ends.
fn write_line(file: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    file.write_all(&text)
}

/// A device whose every call is recorded.
pub struct Recorder {
    device: Box<dyn Device>,
    recording: Arc<Recording>,
    queues: Queues,
    session: u64,
    engine: usize,
}

impl Recorder {
    /// Engine `engine` of session `session`, whose masters see `memory`.
    pub fn new(
        device: Box<dyn Device>,
        memory: Arc<SimMemory>,
        recording: Arc<Recording>,
        session: u64,
        engine: usize,
    ) -> Recorder {
        Recorder {
            device,
            recording,
            queues: Queues::new(memory),
            session,
            engine,
        }
    }

    fn note(&self, entry: Entry) {
        self.recording.write(&Line {
            session: self.session,
            engine: self.engine,
            cycle: self.device.activity().map(|a| a.cycles),
            entry,
        });
    }

    /// Notes what a call gave, and what the device has done by its end.
    fn note_call<T>(
        &mut self,
        result: Result<T, DeviceError>,
        entry: impl Fn(&T) -> Entry,
    ) -> Result<T, DeviceError> {
        match &result {
            Ok(value) => self.note(entry(value)),
            Err(DeviceError::Timeout { stuck }) => self.note(Entry::Timeout(stuck.clone())),
            Err(other) => self.note(Entry::Failed(other.to_string())),
        }
        for done in self.queues.done() {
            self.note(done);
        }
        result
    }
}

impl Device for Recorder {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        let read = self.device.read32(window, offset);
        self.note_call(read, |&value| Entry::Read {
            window,
            offset,
            value,
        })
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        let queued = match window {
            Window::Dma => self.queues.write(offset, value),
            Window::Kernel => Vec::new(),
        };
        // What the device is to read goes before what it does.
        queued.into_iter().for_each(|entry| self.note(entry));
        let written = self.device.write32(window, offset, value);
        self.note_call(written, |()| Entry::Write {
            window,
            offset,
            value,
        })
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        let waited = self.device.wait_interrupt();
        self.note_call(waited, |&lines| Entry::Interrupt(lines))
    }

    fn activity(&self) -> Option<Activity> {
        self.device.activity()
    }

    fn take_beats(&mut self) -> Vec<Beat> {
        self.device.take_beats()
    }
}
