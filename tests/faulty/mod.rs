//! A target with a planted fault: the model, with a bit of some results flipped.

use std::sync::Arc;

use weightstream::dma::{Heap, SimMemory};
use weightstream::regs::axi_dma::{CURDESC, CURDESC_MSB, MM2S, S2MM, TAILDESC, desc};
use weightstream::regs::job::{FOOTER_BYTES, HEADER_BYTES, Header};
use weightstream::target::model::{ModelConfig, ModelDevice};
use weightstream::target::{
    Device, DeviceError, Interrupts, Target, TargetError, TargetOptions, TargetSpec, Window,
};

/// Which jobs the fault hits.
pub type Condition = fn(&Header) -> bool;

/// A model of a small kernel, four columns, whose jobs under `condition` get the last bit of
/// their first result flipped.
pub fn open(options: &TargetOptions, condition: Condition) -> Result<Target, TargetError> {
    let memory = Arc::new(SimMemory::new(
        options.heap_bytes,
        options.heap_base,
        options.coherence,
        options.seed,
    )?);
    let device = device(memory.clone(), options, condition);
    Ok(Target {
        spec: TargetSpec::Model,
        heap: Heap::new(memory)?,
        devices: vec![device],
        sample: None,
        length_width: options.length_width,
    })
}

/// The engine of such a target, on `memory`.
pub fn device(
    memory: Arc<SimMemory>,
    options: &TargetOptions,
    condition: Condition,
) -> Box<dyn Device> {
    let config = ModelConfig {
        max_cols: 4,
        max_k: 16384,
        threads: 1,
        faults: options.faults.clone(),
        ..ModelConfig::default()
    };
    Box::new(Faulty {
        model: ModelDevice::new(memory.clone(), config),
        memory,
        condition,
        curdesc: [0; 2],
        headers: Vec::new(),
    })
}

struct Faulty {
    model: ModelDevice,
    memory: Arc<SimMemory>,
    condition: Condition,
    /// The next descriptor of MM2S and of S2MM.
    curdesc: [u64; 2],
    /// Of the jobs sent and not yet looked at.
    headers: Vec<Header>,
}

impl Faulty {
    fn bytes(&self, addr: u64, len: usize) -> Option<Vec<u8>> {
        let at = self.memory.at_device_addr(addr, len as u64).ok()?;
        // SAFETY: the range was checked, and nothing else runs on this memory.
        Some(unsafe { std::slice::from_raw_parts(at, len) }.to_vec())
    }

    fn word(&self, addr: u64, offset: usize) -> u64 {
        let bytes = self.bytes(addr + offset as u64, 4).unwrap();
        u32::from_le_bytes(bytes.try_into().unwrap()).into()
    }

    fn pair(&self, addr: u64, offset: usize) -> u64 {
        self.word(addr, offset) | self.word(addr, offset + 4) << 32
    }

    /// The descriptors from the next one to the one at `tail`.
    fn descriptors(&mut self, channel: usize, tail: u64) -> Vec<u64> {
        let mut found = Vec::new();
        loop {
            let at = self.curdesc[channel];
            found.push(at);
            self.curdesc[channel] = self.pair(at, desc::NXTDESC);
            if at == tail {
                return found;
            }
        }
    }

    /// Notes the headers of the packets that are about to go.
    fn note_headers(&mut self, tail: u64) {
        let mut first = true;
        for at in self.descriptors(0, tail) {
            if first
                && let Some(bytes) = self.bytes(self.pair(at, desc::BUFFER_ADDRESS), HEADER_BYTES)
            {
                self.headers
                    .push(Header::from_bytes(&bytes.try_into().unwrap()));
            }
            first = self.word(at, desc::CONTROL) as u32 & desc::TXEOF != 0;
        }
    }

    /// Flips a bit in the answers that have come.
    fn spoil(&mut self, queued: &[u64]) {
        let mut headers = std::mem::take(&mut self.headers).into_iter();
        let mut first = true;
        for &at in queued {
            let status = self.word(at, desc::STATUS) as u32;
            let results = (status & desc::LENGTH_MASK) as usize > FOOTER_BYTES;
            if first {
                let Some(header) = headers.next() else { return };
                if results && status & desc::CMPLT != 0 && (self.condition)(&header) {
                    let answer = self.pair(at, desc::BUFFER_ADDRESS);
                    let byte = self.memory.at_device_addr(answer, 1).unwrap();
                    // SAFETY: as in `bytes`.
                    unsafe { *byte ^= 1 };
                }
            }
            first = status & desc::RXEOF != 0;
        }
    }
}

impl Device for Faulty {
    fn read32(&mut self, window: Window, offset: u32) -> Result<u32, DeviceError> {
        self.model.read32(window, offset)
    }

    fn write32(&mut self, window: Window, offset: u32, value: u32) -> Result<(), DeviceError> {
        for (channel, base) in [MM2S, S2MM].into_iter().enumerate() {
            let at = &mut self.curdesc[channel];
            if window == Window::Dma && offset == base + CURDESC {
                *at = *at >> 32 << 32 | u64::from(value);
            } else if window == Window::Dma && offset == base + CURDESC_MSB {
                *at = u64::from(value) << 32 | *at & 0xFFFF_FFFF;
            }
        }
        // A ring lies within 4 GiB, and the driver writes S2MM's tail before MM2S's.
        let high = self.curdesc.map(|addr| addr >> 32 << 32);
        match (window, offset) {
            (Window::Dma, o) if o == MM2S + TAILDESC => {
                let tail = high[0] | u64::from(value);
                self.note_headers(tail);
                self.model.write32(window, offset, value)?;
                let low = self.model.read32(Window::Dma, S2MM + TAILDESC)?;
                let tail = high[1] | u64::from(low);
                let queued = self.descriptors(1, tail);
                self.spoil(&queued);
                Ok(())
            }
            _ => self.model.write32(window, offset, value),
        }
    }

    fn wait_interrupt(&mut self) -> Result<Interrupts, DeviceError> {
        self.model.wait_interrupt()
    }
}
