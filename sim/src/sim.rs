//! A running simulation.

use std::{
    ops::Range,
    path::{Path, PathBuf},
    pin::Pin,
};

use cxx::UniquePtr;

use crate::{Channel, DeviceMemory, SimError, SimOptions, bridge::ffi};

/// The accelerator's interrupt lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lines {
    pub mm2s: bool,
    pub s2mm: bool,
}

impl Lines {
    /// Both.
    pub const ALL: Lines = Lines {
        mm2s: true,
        s2mm: true,
    };

    /// Is any of them high?
    pub fn any(self) -> bool {
        self.mm2s || self.s2mm
    }

    fn bits(self) -> u32 {
        u32::from(self.mm2s) | u32::from(self.s2mm) << 1
    }

    fn from_bits(bits: u32) -> Lines {
        Lines {
            mm2s: bits & 1 != 0,
            s2mm: bits & 2 != 0,
        }
    }
}

/// An error response that the memory gives on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorResponse {
    /// SLVERR: the memory knows the address and fails.
    Slave,
    /// DECERR: nothing answers to the address.
    Decode,
}

/// A data beat of a memory port ([`Sim::log_beats`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Beat {
    pub channel: Channel,
    /// The cycle in which it moved.
    pub cycle: u64,
    /// Device address of the bus word.
    pub addr: u64,
    /// Cycles before in which it was due and the memory held it back.
    pub stalled: u32,
}

/// The names of the configurations in this build, the default one first.
pub fn configs() -> Vec<String> {
    env!("WEIGHTSTREAM_SIM_CONFIGS")
        .split(',')
        .map(str::to_owned)
        .collect()
}

/// One accelerator, simulated cycle by cycle, with the memory behind it.
///
/// A simulation runs on the thread that calls it, and nowhere else; several can run side by side.
/// Time passes only inside calls. After an error of the RTL itself ([`SimError::Protocol`],
/// [`SimError::Assertion`]) every later call gives the same error.
pub struct Sim {
    handle: UniquePtr<ffi::Handle>,
    watchdog: u64,
    trace: PathBuf,
    bus_bytes: usize,
}

// SAFETY: the C++ side keeps no state that belongs to a thread between calls; it makes the model's
// context current in each.
unsafe impl Send for Sim {}

impl Sim {
    /// Makes the accelerator `config` (a name of [`configs`]) with `memory` behind it, and resets
    /// it.
    ///
    /// # Errors
    /// [`SimError::UnknownConfig`]; [`SimError::Option`] for an option out of range; an error of
    /// the RTL in its reset.
    ///
    /// # Safety
    /// `memory` must be readable and writable until the `Sim` is dropped, and while a call on the
    /// `Sim` runs, nothing else may access it. Between calls it may be accessed.
    pub unsafe fn new(
        config: &str,
        memory: DeviceMemory,
        options: &SimOptions,
    ) -> Result<Sim, SimError> {
        let found = ffi::find_config(config);
        if found.is_null() {
            return Err(SimError::UnknownConfig {
                name: config.into(),
                known: configs(),
            });
        }
        // SAFETY: as the caller promises.
        unsafe { Sim::make(found, memory, options) }
    }

    /// Makes the accelerator in the shared object `file`, which [`crate::dut::Dut::build`] made,
    /// and resets it. The object stays loaded until the process ends.
    ///
    /// # Errors
    /// [`SimError::Dut`] if it cannot be loaded; otherwise as [`Sim::new`].
    ///
    /// # Safety
    /// As of [`Sim::new`]. The object's code runs in this process.
    pub unsafe fn load(
        file: &Path,
        memory: DeviceMemory,
        options: &SimOptions,
    ) -> Result<Sim, SimError> {
        let fail = |message: String| SimError::Dut {
            file: file.to_owned(),
            message,
        };
        // A bare name would be looked for among the system's libraries.
        let path = file.canonicalize().map_err(|e| fail(e.to_string()))?;
        let Some(path) = path.to_str() else {
            return Err(fail("the path is not UTF-8".into()));
        };
        let found = ffi::load_config(path, crate::dut::HARNESS).map_err(|e| fail(e.to_string()))?;
        // SAFETY: as the caller promises.
        unsafe { Sim::make(found, memory, options) }
    }

    /// # Safety
    /// As of [`Sim::new`]; `config` is a model.
    unsafe fn make(
        config: *const ffi::Config,
        memory: DeviceMemory,
        options: &SimOptions,
    ) -> Result<Sim, SimError> {
        let options_ffi = options.to_ffi(memory)?;
        // SAFETY: `config` is a model.
        let (handle, bus_bytes) =
            unsafe { (ffi::create(config, &options_ffi), ffi::bus_bytes(config)) };
        let sim = Sim {
            handle,
            watchdog: options.watchdog,
            trace: PathBuf::new(),
            bus_bytes: bus_bytes as usize,
        };
        if sim.handle.ok() {
            Ok(sim)
        } else {
            Err(sim.error())
        }
    }

    /// The width of the stream and of the data ports, in bytes.
    pub fn bus_bytes(&self) -> usize {
        self.bus_bytes
    }

    /// Clock cycles since the simulation began.
    pub fn now(&self) -> u64 {
        self.handle.now()
    }

    /// The interrupt lines now.
    pub fn lines(&self) -> Lines {
        Lines::from_bits(self.handle.lines())
    }

    /// Transfers on an AXI channel since the simulation began; 0 for the kernel's streams.
    pub fn beats(&self, channel: Channel) -> u64 {
        let beats = self.handle.beats();
        beats.get(channel as usize).copied().unwrap_or(0)
    }

    /// Reads the register at byte address `addr` of the control port.
    pub fn read32(&mut self, addr: u16) -> Result<u32, SimError> {
        let mut value = 0;
        let good = self.pin().read32(addr.into(), &mut value);
        self.check(good)?;
        Ok(value)
    }

    /// Writes the register at byte address `addr` of the control port; returns when the
    /// accelerator has answered.
    pub fn write32(&mut self, addr: u16, value: u32) -> Result<(), SimError> {
        let good = self.pin().write32(addr.into(), value);
        self.check(good)
    }

    /// Runs for so many cycles.
    ///
    /// # Errors
    /// [`SimError::Watchdog`] when a transfer is stuck. That nothing at all is under way is none.
    pub fn run(&mut self, cycles: u64) -> Result<(), SimError> {
        self.run_lines(cycles, Lines::default()).map(|_| ())
    }

    /// Runs until one of `lines` is high, at most `limit` cycles. Returns the lines that are high,
    /// none of those asked for where the limit came first.
    ///
    /// # Errors
    /// [`SimError::Watchdog`] when nothing has moved for the watchdog's time.
    pub fn run_until_irq(&mut self, lines: Lines, limit: u64) -> Result<Lines, SimError> {
        self.run_lines(limit, lines)
    }

    fn run_lines(&mut self, cycles: u64, lines: Lines) -> Result<Lines, SimError> {
        let mut levels = 0;
        let good = self.pin().run(cycles, lines.bits(), &mut levels);
        self.check(good)?;
        Ok(Lines::from_bits(levels))
    }

    /// Holds `aresetn` low for so many cycles (at least 4). The memory forgets all transfers.
    pub fn reset(&mut self, cycles: u32) -> Result<(), SimError> {
        let good = self.pin().reset(cycles.max(4));
        self.check(good)
    }

    /// Begins to write an FST trace of every signal to `path`, which is overwritten. It costs one
    /// to two orders of magnitude of speed.
    pub fn trace_start(&mut self, path: &Path) -> Result<(), SimError> {
        self.trace_cycles(path, 0..u64::MAX)
    }

    /// As [`Sim::trace_start`], of the cycles `cycles` alone, counted as [`Sim::now`] does; the
    /// rest runs at full speed. Cycles that have passed are not in the trace.
    pub fn trace_cycles(&mut self, path: &Path, cycles: Range<u64>) -> Result<(), SimError> {
        self.trace = path.to_owned();
        let Some(text) = path.to_str() else {
            return Err(SimError::Trace {
                path: path.to_owned(),
                message: "the path is not UTF-8".into(),
            });
        };
        let good = self.pin().trace_start(text, cycles.start, cycles.end);
        self.check(good)
    }

    /// Ends the trace and completes its file. Dropping the `Sim` does so too.
    pub fn trace_stop(&mut self) -> Result<(), SimError> {
        let good = self.pin().trace_stop();
        self.check(good)
    }

    /// From now on, the memory answers with an error where an access of `channel` touches the
    /// device addresses `range`.
    ///
    /// # Errors
    /// [`SimError::Option`] unless `channel` is a memory's response channel: `SgR`, `SgB`, `Mm2sR`
    /// or `S2mmB`.
    pub fn inject_error(
        &mut self,
        channel: Channel,
        range: Range<u64>,
        response: ErrorResponse,
    ) -> Result<(), SimError> {
        if !matches!(
            channel,
            Channel::SgR | Channel::SgB | Channel::Mm2sR | Channel::S2mmB
        ) {
            return Err(SimError::Option {
                option: "inject_error",
                value: channel.to_string(),
                rule: "must be a response channel of the memory",
            });
        }
        let length = range.end.saturating_sub(range.start);
        let decode = response == ErrorResponse::Decode;
        self.pin()
            .inject(channel as u8, range.start, length, decode);
        Ok(())
    }

    /// Ends all injected errors.
    pub fn clear_errors(&mut self) {
        self.pin().clear_injected();
    }

    /// From now on, the memory does not move on this channel: it takes no address or data, or
    /// gives no response.
    ///
    /// # Errors
    /// [`SimError::Option`] unless `channel` is one of the memory's.
    pub fn mute(&mut self, channel: Channel) -> Result<(), SimError> {
        if !channel.is_memory() {
            return Err(SimError::Option {
                option: "mute",
                value: channel.to_string(),
                rule: "must be a channel of the memory",
            });
        }
        self.pin().mute(channel as u8);
        Ok(())
    }

    /// All channels move again.
    pub fn unmute(&mut self) {
        self.pin().unmute();
    }

    /// From now on, or no more, the data beats of all memory ports are logged.
    pub fn log_beats(&mut self, on: bool) {
        self.pin().log_beats(on);
    }

    /// The beats logged since the last call, in the order of their cycles.
    pub fn take_beats(&mut self) -> Vec<Beat> {
        let beats = self.pin().take_beats();
        let beat = |b: ffi::BeatData| {
            Some(Beat {
                channel: Channel::from_index(b.channel)?,
                cycle: b.cycle,
                addr: b.addr,
                stalled: b.stalled,
            })
        };
        beats.into_iter().filter_map(beat).collect()
    }

    fn pin(&mut self) -> Pin<&mut ffi::Handle> {
        self.handle.pin_mut()
    }

    fn check(&self, good: bool) -> Result<(), SimError> {
        if good { Ok(()) } else { Err(self.error()) }
    }

    fn error(&self) -> SimError {
        SimError::from_fault(self.handle.fault(), self.watchdog, &self.trace)
    }
}
