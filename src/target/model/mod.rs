//! The behavioural model: the registers, descriptors and jobs of the accelerator, without a clock.
//!
//! All that can be done is done within the register write that makes it possible, on the memory in
//! place. Results are exact, so they are those of the RTL bit for bit (`docs/stream.md`).

mod bus;
mod channel;
mod dot;
mod kernel;
mod packet;
mod pool;

use std::sync::Arc;

use bus::Bus;
use channel::{Channel, DataError, Descriptor};
use kernel::Kernel;

use super::{Device, DeviceError, Fault, Interrupts, Window};
use crate::dma::SimMemory;
use crate::regs::axi_dma::{DMACR, MM2S, S2MM, cr, desc};

/// Which instructions the dot products may use; the results are the same bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Simd {
    /// The best that this machine has.
    #[default]
    Auto,
    /// None: plain integers.
    Off,
}

/// What a model is like.
#[derive(Clone, Debug)]
pub struct ModelConfig {
    /// Bytes of a bus word: 8, 16, 32 or 64.
    pub bus_bytes: usize,
    /// What `CAP_BUS` says; without a clock it changes nothing else.
    pub blocks_per_cycle: u32,
    /// Largest k of a job, at most 65536.
    pub max_k: u32,
    /// Most columns of a job.
    pub max_cols: u32,
    /// Threads that a job is shared among, the caller's included.
    pub threads: usize,
    pub simd: Simd,
    pub faults: Vec<Fault>,
}

impl Default for ModelConfig {
    fn default() -> ModelConfig {
        ModelConfig {
            bus_bytes: 16,
            blocks_per_cycle: 1,
            max_k: 65536,
            max_cols: 64,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            simd: Simd::Auto,
            faults: Vec::new(),
        }
    }
}

/// An S2MM descriptor that is being filled.
struct Filling {
    descriptor: Descriptor,
    filled: usize,
    /// `RXSOF`, if a packet begins in it.
    sof: u32,
}

/// `bits` of a register or a status, if they apply.
fn flag(applies: bool, bits: u32) -> u32 {
    if applies { bits } else { 0 }
}

/// One engine of the model.
pub struct ModelDevice {
    bus: Bus,
    bus_bytes: usize,
    mm2s: Channel,
    s2mm: Channel,
    filling: Option<Filling>,
    /// The stream into S2MM is between two beats of a packet.
    s2mm_in_packet: bool,
    kernel: Kernel,
}

impl ModelDevice {
    /// An engine, just reset, whose DMA masters see `memory`.
    ///
    /// # Panics
    /// If `bus_bytes` or `max_k` of `config` is not one of those allowed.
    pub fn new(memory: Arc<SimMemory>, config: ModelConfig) -> ModelDevice {
        assert!(
            [8, 16, 32, 64].contains(&config.bus_bytes),
            "a bus of {} bytes",
            config.bus_bytes
        );
        assert!(config.max_k <= 65536, "a largest k of {}", config.max_k);
        let ranges = config.faults.iter().filter_map(|fault| match fault {
            Fault::SlaveError(range) => Some(range.clone()),
            Fault::NoAnswer => None,
        });
        ModelDevice {
            bus: Bus::new(memory, ranges.collect()),
            bus_bytes: config.bus_bytes,
            mm2s: Channel::new("mm2s"),
            s2mm: Channel::new("s2mm"),
            filling: None,
            s2mm_in_packet: false,
            kernel: Kernel::new(config),
        }
    }

    fn write_dma(&mut self, offset: u32, value: u32) {
        let (channel, register) = match offset {
            S2MM.. => (&mut self.s2mm, offset - S2MM),
            _ => (&mut self.mm2s, offset - MM2S),
        };
        if register == DMACR && value & cr::RESET != 0 {
            self.mm2s = Channel::new(self.mm2s.name);
            self.s2mm = Channel::new(self.s2mm.name);
            self.s2mm_in_packet = false;
        } else {
            channel.write(register, value);
        }
        if !self.s2mm.is_running() {
            self.filling = None;
        }
    }

    /// Does all that can be done.
    fn advance(&mut self) {
        while self.step_s2mm() || self.step_mm2s() {}
        // What is queued next may come after the host has changed what was taken already.
        self.kernel.own();
    }

    /// Carries out one MM2S descriptor.
    fn step_mm2s(&mut self) -> bool {
        if self.kernel.has_answer() {
            return false;
        }
        let Some(descriptor) = self.mm2s.fetch(&self.bus, self.bus_bytes) else {
            return false;
        };
        let whole = descriptor.len.next_multiple_of(self.bus_bytes);
        match self.bus.at(descriptor.buffer, whole) {
            Err(denied) => self.mm2s.fail_data(&self.bus, &descriptor, denied.into()),
            Ok(ptr) => {
                // SAFETY: the bus gave a view of whole beats, and `advance` has the kernel own
                // what it holds before anybody else comes to change it.
                unsafe { self.kernel.take(ptr, descriptor.len, descriptor.eof) };
                let bytes = descriptor.len as u32;
                self.mm2s
                    .retire(&self.bus, &descriptor, bytes, descriptor.eof);
            }
        }
        true
    }

    /// Moves what fits of the kernel's answer into one S2MM descriptor.
    fn step_s2mm(&mut self) -> bool {
        if self.filling.is_none() {
            let descriptor = self.s2mm.fetch(&self.bus, self.bus_bytes);
            self.filling = descriptor.map(|descriptor| Filling {
                descriptor,
                filled: 0,
                sof: 0,
            });
        }
        let left = self.kernel.answer_left();
        let Some(filling) = self.filling.as_mut().filter(|_| left != 0) else {
            return false;
        };
        if !self.s2mm_in_packet {
            filling.sof = desc::RXSOF;
        }
        let room = filling.descriptor.len - filling.filled;
        // Beats are whole except for a packet's last.
        let len = match left <= room {
            true => left,
            false => room - room % self.bus_bytes,
        };
        let error = match self
            .bus
            .at(filling.descriptor.buffer + filling.filled as u64, len)
        {
            Err(denied) => Some(denied.into()),
            Ok(to) => {
                // SAFETY: the bus gave a view of `len` bytes, and no more are left.
                unsafe { self.kernel.send(to, len) };
                filling.filled += len;
                // The rest of the room is too small for a beat.
                (len < left && len < room).then_some(DataError::Internal)
            }
        };
        self.s2mm_in_packet = self.kernel.has_answer();
        let filling = self.filling.take().expect("the descriptor being filled");
        match error {
            Some(error) => self.s2mm.fail_data(&self.bus, &filling.descriptor, error),
            None => {
                let eof = !self.s2mm_in_packet;
                let status = filling.filled as u32 | filling.sof | flag(eof, desc::RXEOF);
                self.s2mm
                    .retire(&self.bus, &filling.descriptor, status, eof);
            }
        }
        true
    }

    fn interrupts(&self) -> Interrupts {
        Interrupts {
            mm2s: self.mm2s.interrupt(),
            s2mm: self.s2mm.interrupt(),
        }
    }

    /// What keeps anything from happening.
    fn stuck(&self) -> String {
        let mut reasons = vec![self.s2mm.stuck(), self.mm2s.stuck()];
        let (begun, swallowed) = self.kernel.waits_for();
        if swallowed != 0 {
            reasons.push(format!(
                "kernel: {swallowed} packets taken and not answered"
            ));
        }
        if begun != 0 {
            reasons.push(format!(
                "kernel: {begun} bytes of a packet that does not end"
            ));
        }
        if self.kernel.has_answer() {
            let left = self.kernel.answer_left();
            reasons.push(format!("kernel: {left} bytes of an answer are not taken"));
        }
        reasons.join("; ")
    }
}

impl Device for ModelDevice {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        Ok(match (window, offset) {
            (Window::Kernel, _) => self.kernel.read(offset),
            (Window::Dma, S2MM..) => self.s2mm.read(offset - S2MM, self.filling.is_some()),
            (Window::Dma, _) => self.mm2s.read(offset - MM2S, false),
        })
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        match window {
            Window::Kernel => self.kernel.write(offset, value),
            Window::Dma => self.write_dma(offset, value),
        }
        self.advance();
        Ok(())
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        let lines = self.interrupts();
        if lines.any() {
            return Ok(lines);
        }
        // All that could happen has happened, so the delay timers run out.
        self.mm2s.pass_delay();
        self.s2mm.pass_delay();
        let lines = self.interrupts();
        match lines.any() {
            true => Ok(lines),
            false => Err(DeviceError::Timeout {
                stuck: self.stuck(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
