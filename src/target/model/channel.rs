//! One channel of the AXI DMA: its registers, its descriptors, its interrupt (PG021; what of it
//! there is, is in `docs/registers.md`).

use super::bus::{Bus, Denied};
use super::flag;
use crate::regs::axi_dma::{
    CURDESC, CURDESC_MSB, DESCRIPTOR_BYTES, DMACR, DMASR, TAILDESC, TAILDESC_MSB, cr, desc, sr,
};

const ENABLES: u32 = cr::IOC_IRQ_EN | cr::DLY_IRQ_EN | cr::ERR_IRQ_EN;

/// The bits of `DMASR` and of a descriptor's status that say what went wrong with its data.
#[derive(Clone, Copy)]
pub enum DataError {
    Internal,
    Slave,
    Decode,
}

impl From<Denied> for DataError {
    fn from(denied: Denied) -> DataError {
        match denied {
            Denied::Slave => DataError::Slave,
            Denied::Decode => DataError::Decode,
        }
    }
}

/// What a descriptor asks for.
pub struct Descriptor {
    /// Its own device address.
    pub addr: u64,
    pub buffer: u64,
    /// Bytes, at least 1.
    pub len: usize,
    pub eof: bool,
}

pub struct Channel {
    pub name: &'static str,
    /// `RS`. A channel of the model halts as soon as this is cleared.
    run: bool,
    enables: u32,
    threshold: u8,
    delay: u8,
    errors: u32,
    irqs: u32,
    /// Packets missing to the next `IOC_Irq`.
    missing: u8,
    /// Packets are done that no interrupt has reported.
    unreported: bool,
    curdesc: u64,
    taildesc: u64,
    /// Where the next descriptor is.
    next: u64,
    /// Descriptors up to `TAILDESC` are still to be fetched.
    active: bool,
    /// `TAILDESC` was written since the channel began to run.
    tail_seen: bool,
}

fn set_low(word: &mut u64, low: u32) {
    *word = *word & !0xFFFF_FFFF | u64::from(low) & !(DESCRIPTOR_BYTES - 1);
}

fn set_high(word: &mut u64, high: u32) {
    *word = *word & 0xFFFF_FFFF | u64::from(high) << 32;
}

impl Channel {
    pub fn new(name: &'static str) -> Channel {
        let threshold = (cr::RESET_VALUE >> cr::IRQ_THRESHOLD_SHIFT) as u8;
        Channel {
            name,
            run: false,
            enables: 0,
            threshold,
            delay: 0,
            errors: 0,
            irqs: 0,
            missing: threshold,
            unreported: false,
            curdesc: 0,
            taildesc: 0,
            next: 0,
            active: false,
            tail_seen: false,
        }
    }

    /// Reads a register by its offset from the channel's base. `busy`: a descriptor is being
    /// carried out.
    pub fn read(&self, offset: u32, busy: bool) -> u32 {
        match offset {
            DMACR => {
                cr::RESET_VALUE & 0xFFFF
                    | self.enables
                    | flag(self.run, cr::RS)
                    | u32::from(self.threshold) << cr::IRQ_THRESHOLD_SHIFT
                    | u32::from(self.delay) << cr::IRQ_DELAY_SHIFT
            }
            DMASR => {
                let idle = self.tail_seen && !self.active && !busy;
                sr::SG_INCLD
                    | flag(!self.run, sr::HALTED)
                    | flag(idle, sr::IDLE)
                    | self.errors
                    | self.irqs
                    | u32::from(self.missing) << cr::IRQ_THRESHOLD_SHIFT
            }
            CURDESC => self.curdesc as u32,
            CURDESC_MSB => (self.curdesc >> 32) as u32,
            TAILDESC => self.taildesc as u32,
            TAILDESC_MSB => (self.taildesc >> 32) as u32,
            _ => 0,
        }
    }

    /// Writes a register by its offset from the channel's base. `Reset` is the engine's business.
    pub fn write(&mut self, offset: u32, value: u32) {
        match offset {
            DMACR => self.control(value),
            DMASR => self.irqs &= !(value & sr::IRQS),
            CURDESC if !self.run => set_low(&mut self.curdesc, value),
            CURDESC_MSB if !self.run => set_high(&mut self.curdesc, value),
            TAILDESC => {
                set_low(&mut self.taildesc, value);
                self.active = self.run;
                self.tail_seen = self.run;
            }
            TAILDESC_MSB => set_high(&mut self.taildesc, value),
            _ => {}
        }
    }

    fn control(&mut self, value: u32) {
        self.enables = value & ENABLES;
        self.delay = (value >> cr::IRQ_DELAY_SHIFT) as u8;
        let threshold = (value >> cr::IRQ_THRESHOLD_SHIFT) as u8;
        if threshold != 0 && threshold != self.threshold {
            self.threshold = threshold;
            self.missing = threshold;
        }
        match (self.run, value & cr::RS != 0) {
            (false, true) if self.errors == 0 => {
                self.run = true;
                self.next = self.curdesc;
            }
            (true, false) => self.halt(),
            _ => {}
        }
    }

    fn halt(&mut self) {
        self.run = false;
        self.active = false;
        self.tail_seen = false;
    }

    fn fail(&mut self, error: u32) {
        self.errors |= error;
        self.irqs |= sr::ERR_IRQ;
        self.halt();
    }

    fn fail_sg(&mut self, denied: Denied) {
        self.fail(match denied {
            Denied::Slave => sr::SG_SLV_ERR,
            Denied::Decode => sr::SG_DEC_ERR,
        });
    }

    pub fn is_running(&self) -> bool {
        self.run
    }

    /// Fetches the next descriptor, if there is one to fetch and nothing is wrong with it; what is
    /// wrong halts the channel. Buffers are aligned to `bus_bytes`.
    pub fn fetch(&mut self, bus: &Bus, bus_bytes: usize) -> Option<Descriptor> {
        if !self.active {
            return None;
        }
        let addr = self.next;
        let bytes: [u8; desc::STATUS + 4] = match bus.read(addr) {
            Ok(bytes) => bytes,
            Err(denied) => {
                self.curdesc = addr;
                self.fail_sg(denied);
                return None;
            }
        };
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
        let address = |low, high| u64::from(word(low)) | u64::from(word(high)) << 32;
        if word(desc::STATUS) & desc::CMPLT != 0 {
            self.curdesc = addr;
            self.fail(sr::SG_INT_ERR);
            return None;
        }
        self.active = addr != self.taildesc;
        self.next = address(desc::NXTDESC, desc::NXTDESC_MSB) & !(DESCRIPTOR_BYTES - 1);
        let control = word(desc::CONTROL);
        let descriptor = Descriptor {
            addr,
            buffer: address(desc::BUFFER_ADDRESS, desc::BUFFER_ADDRESS_MSB),
            len: (control & desc::LENGTH_MASK) as usize,
            eof: control & desc::TXEOF != 0,
        };
        if descriptor.len == 0 || !descriptor.buffer.is_multiple_of(bus_bytes as u64) {
            self.fail_data(bus, &descriptor, DataError::Internal);
            return None;
        }
        Some(descriptor)
    }

    /// Writes a descriptor back as done. `status`: the bits beside `Cmplt`; `eof`: a packet ends.
    pub fn retire(&mut self, bus: &Bus, descriptor: &Descriptor, status: u32, eof: bool) {
        if self.write_back(bus, descriptor, status) && eof {
            self.missing -= 1;
            self.unreported = self.missing != 0;
            if self.missing == 0 {
                self.missing = self.threshold;
                self.irqs |= sr::IOC_IRQ;
            }
        }
    }

    /// Writes a descriptor back as failed and halts the channel.
    pub fn fail_data(&mut self, bus: &Bus, descriptor: &Descriptor, error: DataError) {
        let (status, error) = match error {
            DataError::Internal => (desc::DMA_INT_ERR, sr::DMA_INT_ERR),
            DataError::Slave => (desc::DMA_SLV_ERR, sr::DMA_SLV_ERR),
            DataError::Decode => (desc::DMA_DEC_ERR, sr::DMA_DEC_ERR),
        };
        self.write_back(bus, descriptor, status);
        self.fail(error);
    }

    fn write_back(&mut self, bus: &Bus, descriptor: &Descriptor, status: u32) -> bool {
        self.curdesc = descriptor.addr;
        let word = (status | desc::CMPLT).to_le_bytes();
        let written = bus.write(descriptor.addr + desc::STATUS as u64, &word);
        if let Err(denied) = written {
            self.fail_sg(denied);
        }
        written.is_ok()
    }

    /// Lets so much time pass that the delay interrupt comes, if one is due.
    pub fn pass_delay(&mut self) {
        if self.delay != 0 && self.unreported {
            self.unreported = false;
            self.missing = self.threshold;
            self.irqs |= sr::DLY_IRQ;
        }
    }

    /// The interrupt line. Each enable bit of `DMACR` stands where its event stands in `DMASR`.
    pub fn interrupt(&self) -> bool {
        self.irqs & self.enables != 0
    }

    /// Why no interrupt comes from this channel.
    pub fn stuck(&self) -> String {
        let name = self.name;
        if !self.run {
            let errors: Vec<&str> = sr::ERRORS
                .iter()
                .filter(|(bit, _)| self.errors & bit != 0)
                .map(|(_, name)| *name)
                .collect();
            return match errors.is_empty() {
                true => format!("{name} halted: RS is 0"),
                false => format!(
                    "{name} halted: {} at descriptor 0x{:x}",
                    errors.join(", "),
                    self.curdesc
                ),
            };
        }
        if self.active {
            return format!("{name} waits at descriptor 0x{:x}", self.next);
        }
        let waiting = match self.unreported {
            true => format!(
                "; {} of {} packets for an interrupt",
                self.threshold - self.missing,
                self.threshold
            ),
            false => String::new(),
        };
        format!("{name}: no descriptor queued{waiting}")
    }
}
