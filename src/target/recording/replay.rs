//! A target that answers as a recording says.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::queue::Queues;
use super::{Channel, Entry, Line, Reader, RecordingError, from_hex};
use crate::dma::SimMemory;
use crate::regs::axi_dma::desc;
use crate::target::{Device, DeviceError, Interrupts, Window};

/// A recording as a target; each opening is its next session.
#[derive(Clone, Debug)]
pub struct ReplayFile {
    path: PathBuf,
    opened: Arc<AtomicU64>,
}

impl ReplayFile {
    pub fn new(path: impl Into<PathBuf>) -> ReplayFile {
        ReplayFile {
            path: path.into(),
            opened: Arc::default(),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of the next session.
    pub fn begin(&self) -> u64 {
        self.opened.fetch_add(1, Ordering::Relaxed)
    }
}

impl PartialEq for ReplayFile {
    fn eq(&self, other: &ReplayFile) -> bool {
        self.path == other.path
    }
}

impl Eq for ReplayFile {}

/// One engine, from a recording. A driver that does anything else than the recorded one gets an
/// error that names the first difference.
pub struct Replay {
    reader: Reader,
    queues: Queues,
    session: u64,
    engine: usize,
    /// The line that comes next.
    next: Option<(u64, Line)>,
    /// The cycle of the line taken last, for messages.
    cycle: Option<u64>,
    /// What was the first difference; nothing is answered after it.
    diverged: Option<String>,
}

impl Replay {
    /// Engine `engine` of session `session`, which writes results into `memory`.
    pub fn new(
        path: &Path,
        memory: Arc<SimMemory>,
        session: u64,
        engine: usize,
    ) -> Result<Replay, RecordingError> {
        let (_, reader) = Reader::open(path)?;
        let mut replay = Replay {
            reader,
            queues: Queues::new(memory),
            session,
            engine,
            next: None,
            cycle: None,
            diverged: None,
        };
        replay.read_next()?;
        Ok(replay)
    }

    /// Goes to the next line of this engine in this session.
    fn read_next(&mut self) -> Result<(), RecordingError> {
        while let Some(line) = self.reader.next()? {
            if (line.session, line.engine) == (self.session, self.engine) {
                self.next = Some((self.reader.line, line));
                return Ok(());
            }
        }
        self.next = None;
        Ok(())
    }

    /// Takes the next line, which `accept` must know; what it makes of it is the result.
    fn take<T>(
        &mut self,
        found: &dyn fmt::Display,
        accept: impl Fn(&Entry) -> Option<T>,
    ) -> Result<T, DeviceError> {
        if let Some(what) = &self.diverged {
            return Err(DeviceError::Diverged(what.clone()));
        }
        let accepted = match &self.next {
            Some((_, line)) => accept(&line.entry).ok_or_else(|| line.entry.to_string()),
            None => Err("the end of the recording".into()),
        };
        let result = match accepted {
            Ok(result) => result,
            Err(recorded) => {
                let line = self
                    .next
                    .as_ref()
                    .map_or(self.reader.line, |(number, _)| *number);
                let cycle = self.cycle.map_or(String::new(), |c| format!(", cycle {c}"));
                let path = self.reader.path.display();
                let what =
                    format!("{path}, line {line}{cycle}: recorded is {recorded}, now {found}");
                self.diverged = Some(what.clone());
                return Err(DeviceError::Diverged(what));
            }
        };
        if let Some((_, line)) = &self.next {
            self.cycle = line.cycle.or(self.cycle);
        }
        self.advance()?;
        Ok(result)
    }

    fn advance(&mut self) -> Result<(), DeviceError> {
        self.read_next()
            .map_err(|error| DeviceError::Diverged(error.to_string()))
    }

    /// Does to memory what the device had done by the end of the call that has just been answered.
    fn apply_done(&mut self) -> Result<(), DeviceError> {
        while let Some((_, line)) = &self.next
            && let Entry::Done {
                channel,
                addr,
                status,
                bytes,
            } = line.entry.clone()
        {
            self.apply(channel, addr, status, bytes.as_deref())
                .ok_or_else(|| {
                    let error = self
                        .reader
                        .bad("a descriptor that cannot be written as it says");
                    DeviceError::Diverged(error.to_string())
                })?;
            self.advance()?;
        }
        Ok(())
    }

    fn apply(
        &mut self,
        channel: Channel,
        addr: u64,
        status: u32,
        bytes: Option<&str>,
    ) -> Option<()> {
        if let (Channel::S2mm, Some(text)) = (channel, bytes) {
            let mut buffer = [0; 8];
            self.copy(addr + desc::BUFFER_ADDRESS as u64, &mut buffer, false)?;
            self.copy(u64::from_le_bytes(buffer), &mut from_hex(text)?, true)?;
        }
        self.copy(addr + desc::STATUS as u64, &mut status.to_le_bytes(), true)
    }

    /// Copies `bytes` to device address `addr`, or from there.
    fn copy(&self, addr: u64, bytes: &mut [u8], to_memory: bool) -> Option<()> {
        let memory = self.queues.memory();
        let at = memory.at_device_addr(addr, bytes.len() as u64).ok()?;
        // SAFETY: the range was checked, and the driver owns none of it while a call is under way.
        unsafe {
            match to_memory {
                true => std::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()),
                false => std::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), bytes.len()),
            }
        }
        Some(())
    }
}

/// The error that a recorded call ended in.
fn failure(entry: &Entry) -> Option<DeviceError> {
    match entry {
        Entry::Timeout(stuck) => Some(DeviceError::Timeout {
            stuck: stuck.clone(),
        }),
        Entry::Failed(what) => Some(DeviceError::Simulation(what.clone())),
        _ => None,
    }
}

impl Device for Replay {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        let now = format!("a read of {window:?} 0x{offset:02x}");
        let read = self.take(&now, |entry| match entry {
            Entry::Read {
                window: w,
                offset: o,
                value,
            } if (*w, *o) == (window, offset) => Some(Ok(*value)),
            entry => failure(entry).map(Err),
        })?;
        self.apply_done()?;
        read
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        if window == Window::Dma {
            for queued in self.queues.write(offset, value) {
                self.take(&queued, |entry| (*entry == queued).then_some(()))?;
            }
        }
        let now = Entry::Write {
            window,
            offset,
            value,
        };
        let written = self.take(&now, |entry| match entry == &now {
            true => Some(Ok(())),
            false => failure(entry).map(Err),
        })?;
        self.apply_done()?;
        written
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        let waited = self.take(&"a wait for an interrupt", |entry| match entry {
            Entry::Interrupt(lines) => Some(Ok(*lines)),
            entry => failure(entry).map(Err),
        })?;
        self.apply_done()?;
        waited
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Read {
                window,
                offset,
                value,
            } => write!(f, "a read of {window:?} 0x{offset:02x} (0x{value:x})"),
            Entry::Write {
                window,
                offset,
                value,
            } => write!(f, "a write of 0x{value:x} to {window:?} 0x{offset:02x}"),
            Entry::Interrupt(_) => f.write_str("a wait for an interrupt"),
            Entry::Timeout(what) | Entry::Failed(what) => write!(f, "an error: {what}"),
            Entry::Queued {
                channel,
                addr,
                buffer,
                control,
                sha256,
            } => {
                write!(
                    f,
                    "a {channel:?} descriptor at 0x{addr:x} with buffer 0x{buffer:x}, control 0x{control:x}"
                )?;
                match sha256 {
                    Some(hash) => write!(f, ", bytes of SHA-256 {hash}"),
                    None => Ok(()),
                }
            }
            Entry::Done {
                channel,
                addr,
                status,
                ..
            } => write!(
                f,
                "{channel:?} descriptor 0x{addr:x} done with status 0x{status:x}"
            ),
        }
    }
}
