//! The Verilated RTL as a target.

use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

pub use weightstream_sim::dut;
use weightstream_sim::{
    Channel, DeviceMemory, ErrorResponse, Lines, Sim, SimError, SimOptions, configs,
};

use super::{
    Activity, Beat, Conditions, Device, DeviceError, Fault, Interrupts, Port, TargetOptions, Window,
};
use crate::dma::{DmaMemory, SimMemory};
use crate::regs::kernel;

/// RTL, simulated cycle by cycle.
pub struct RtlDevice {
    sim: Sim,
    /// Wall time spent in the simulator, seconds.
    seconds: f64,
    /// The simulation reads and writes it.
    _memory: Arc<SimMemory>,
}

/// Which RTL.
#[derive(Clone, Copy, Debug)]
pub enum RtlModel<'a> {
    /// The configuration of that name in this binary, or the default one.
    Built(Option<&'a str>),
    /// What is in a shared object that `weightstream dut build` made.
    Dut(&'a Path),
}

impl RtlDevice {
    /// Resets `model`, with `memory` behind its AXI ports.
    pub fn new(
        memory: Arc<SimMemory>,
        model: RtlModel,
        options: &TargetOptions,
    ) -> Result<RtlDevice, DeviceError> {
        let view = DeviceMemory {
            data: NonNull::new(memory.device_ptr()).expect("a mapping is not at address 0"),
            length: memory.len(),
            base: memory.device_base(),
        };
        let sim_options = sim_options(&options.conditions, options.seed);
        // SAFETY: the memory lives as long as the simulation, and simulated cycles pass only in the
        // device's calls, in which the driver owns what it handed over.
        let mut sim = unsafe {
            match model {
                RtlModel::Built(Some(config)) => Sim::new(config, view, &sim_options),
                RtlModel::Built(None) => {
                    let default = configs().into_iter().next().unwrap_or_default();
                    Sim::new(&default, view, &sim_options)
                }
                RtlModel::Dut(file) => Sim::load(file, view, &sim_options),
            }
        }?;
        if let Some(trace) = &options.trace {
            sim.trace_cycles(&trace.path, trace.cycles.clone())?;
        }
        sim.log_beats(options.log_beats);
        for fault in &options.faults {
            match fault {
                Fault::SlaveError(range) => {
                    for channel in [Channel::SgR, Channel::SgB, Channel::Mm2sR, Channel::S2mmB] {
                        sim.inject_error(channel, range.clone(), ErrorResponse::Slave)?;
                    }
                }
                Fault::NoAnswer => sim.mute(Channel::S2mmW)?,
            }
        }
        Ok(RtlDevice {
            sim,
            seconds: 0.0,
            _memory: memory,
        })
    }

    /// Runs `call` in the simulator and counts its time.
    fn timed<T>(
        &mut self,
        call: impl FnOnce(&mut Sim) -> Result<T, SimError>,
    ) -> Result<T, DeviceError> {
        let start = Instant::now();
        let done = call(&mut self.sim);
        self.seconds += start.elapsed().as_secs_f64();
        Ok(done?)
    }
}

impl Device for RtlDevice {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        let addr = address(window, offset)?;
        self.timed(|sim| sim.read32(addr))
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        let addr = address(window, offset)?;
        self.timed(|sim| sim.write32(addr, value))
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        // No limit in cycles: a long job is no fault. The watchdog ends a run without progress.
        let lines = self.timed(|sim| sim.run_until_irq(Lines::ALL, u64::MAX))?;
        Ok(Interrupts {
            mm2s: lines.mm2s,
            s2mm: lines.s2mm,
        })
    }

    fn activity(&self) -> Option<Activity> {
        Some(Activity {
            cycles: self.sim.now(),
            mm2s_beats: self.sim.beats(Channel::Mm2sR),
            s2mm_beats: self.sim.beats(Channel::S2mmW),
            seconds: self.seconds,
        })
    }

    fn take_beats(&mut self) -> Vec<Beat> {
        let beats = self.sim.take_beats().into_iter();
        let beats = beats.filter_map(|b| {
            let port = match b.channel {
                Channel::Mm2sR => Port::Mm2s,
                Channel::S2mmW => Port::S2mm,
                _ => return None,
            };
            Some(Beat {
                port,
                cycle: b.cycle,
                addr: b.addr,
                stalled: b.stalled,
            })
        });
        beats.collect()
    }
}

fn sim_options(conditions: &Conditions, seed: u64) -> SimOptions {
    let stalls = Channel::ALL.into_iter().zip(conditions.stalls.0);
    SimOptions {
        latency: conditions.latency,
        max_outstanding: conditions.max_outstanding,
        bandwidth: conditions.bandwidth,
        refresh: conditions.refresh,
        dram: conditions.dram,
        stalls: stalls
            .filter(|(_, percent)| *percent > 0)
            .map(|(channel, percent)| (channel, f64::from(percent) / 100.0))
            .collect(),
        seed,
        ..SimOptions::default()
    }
}

/// The address of a register on `s_axi_ctrl`.
fn address(window: Window, offset: u32) -> Result<u16, DeviceError> {
    let base = match window {
        Window::Dma => 0,
        Window::Kernel => kernel::WINDOW,
    };
    u16::try_from(base + offset).map_err(|_| {
        DeviceError::Simulation(format!(
            "register offset 0x{offset:x} is outside the address map"
        ))
    })
}

impl From<SimError> for DeviceError {
    fn from(error: SimError) -> Self {
        match error {
            SimError::Watchdog { .. } => DeviceError::Timeout {
                stuck: error.to_string(),
            },
            _ => DeviceError::Simulation(error.to_string()),
        }
    }
}
