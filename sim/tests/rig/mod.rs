//! A bench around a simulation: memory that Rust and the simulation share, descriptors, and the
//! DMA engine's registers as the tests use them.
#![allow(dead_code, reason = "every test file uses its own part")]

pub mod jobs;
pub mod packets;

use std::{
    alloc::{Layout, alloc, dealloc},
    env,
    path::Path,
    ptr::NonNull,
    slice,
};

use weightstream_sim::{DeviceMemory, Sim, SimError, SimOptions};

/// Where the memory lies for the device: above 4 GiB, so that high address words count.
pub const BASE: u64 = 0x12_4000_0000;

pub const MM2S: u16 = 0x00;
pub const S2MM: u16 = 0x30;
pub const DMACR: u16 = 0x00;
pub const DMASR: u16 = 0x04;
pub const CURDESC: u16 = 0x08;
pub const TAILDESC: u16 = 0x10;

pub const RS: u32 = 1;
pub const RESET: u32 = 1 << 2;
pub const IOC: u32 = 1 << 12;
pub const DLY: u32 = 1 << 13;
pub const ERR: u32 = 1 << 14;
pub const HALTED: u32 = 1;
pub const IDLE: u32 = 2;
pub const DMA_INT: u32 = 1 << 4;
pub const DMA_SLV: u32 = 1 << 5;
pub const DMA_DEC: u32 = 1 << 6;
pub const SG_INT: u32 = 1 << 8;
pub const SG_SLV: u32 = 1 << 9;
pub const SG_DEC: u32 = 1 << 10;
pub const ERRORS: u32 = DMA_INT | DMA_SLV | DMA_DEC | SG_INT | SG_SLV | SG_DEC;

pub const EOF: u32 = 1 << 26;
pub const SOF: u32 = 1 << 27;
pub const LENGTH: u32 = (1 << 26) - 1;
pub const CMPLT: u32 = 1 << 31;

/// The control register of the loop that stands for the kernel.
pub const LOOP: u16 = 0x1000;

/// Memory that outlives the simulation on it, filled with bytes that are not zero.
pub struct Arena {
    data: NonNull<u8>,
    layout: Layout,
}

impl Arena {
    pub fn new(length: usize) -> Arena {
        let layout = Layout::from_size_align(length, 4096).unwrap();
        // SAFETY: the layout is not empty, and all bytes are written before anything reads them.
        let data = unsafe {
            let data = NonNull::new(alloc(layout)).expect("memory");
            let mut x = 0x9E37_79B9_u32;
            for i in 0..length {
                x ^= x << 13;
                x ^= x >> 17;
                x ^= x << 5;
                data.add(i).write(x as u8);
            }
            data
        };
        Arena { data, layout }
    }

    pub fn view(&self) -> DeviceMemory {
        DeviceMemory {
            data: self.data,
            length: self.layout.size(),
            base: BASE,
        }
    }

    /// The bytes. Only between calls on the simulation.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is that long and initialised, and no simulation call is running.
        unsafe { slice::from_raw_parts_mut(self.data.as_ptr(), self.layout.size()) }
    }
}

// SAFETY: the allocation is the arena's alone.
unsafe impl Send for Arena {}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.data.as_ptr(), self.layout) }
    }
}

/// A simulation with its memory. The fields drop in this order.
pub struct Rig {
    pub sim: Sim,
    pub arena: Arena,
}

/// The configurations whose place an object takes that the environment names: the accelerator, or
/// the DMA engine with a loop, by which tests are run on it.
const REPLACED: [&str; 2] = ["w128b1", "loop128"];
/// Names the object: `weightstream coverage` and `mutate` set it.
const OBJECT: &str = "WEIGHTSTREAM_SIM_DUT";

/// The configurations to test: those of the build, or the one whose place is taken.
pub fn configs() -> Vec<String> {
    match env::var_os(OBJECT) {
        Some(_) => vec![REPLACED[0].into()],
        None => weightstream_sim::configs(),
    }
}

impl Rig {
    pub fn new(config: &str, length: usize, options: &SimOptions) -> Rig {
        let arena = Arena::new(length);
        let object = env::var_os(OBJECT).filter(|_| REPLACED.contains(&config));
        // SAFETY: `arena` outlives `sim`, and is only accessed between calls.
        let sim = unsafe {
            match object {
                Some(file) => Sim::load(Path::new(&file), arena.view(), options),
                None => Sim::new(config, arena.view(), options),
            }
        };
        Rig {
            sim: sim.unwrap(),
            arena,
        }
    }

    pub fn word(&mut self, offset: usize) -> u32 {
        u32::from_le_bytes(self.arena.bytes()[offset..][..4].try_into().unwrap())
    }

    pub fn put_word(&mut self, offset: usize, value: u32) {
        self.arena.bytes()[offset..][..4].copy_from_slice(&value.to_le_bytes());
    }

    /// A descriptor at arena offset `at`, followed by the one at `next`.
    pub fn put_desc(&mut self, at: usize, next: usize, buffer: u64, control: u32) {
        let next = BASE + next as u64;
        self.put_word(at, next as u32);
        self.put_word(at + 0x04, (next >> 32) as u32);
        self.put_word(at + 0x08, buffer as u32);
        self.put_word(at + 0x0C, (buffer >> 32) as u32);
        self.put_word(at + 0x18, control);
        self.put_word(at + 0x1C, 0);
    }

    pub fn status(&mut self, desc: usize) -> u32 {
        self.word(desc + 0x1C)
    }

    pub fn read(&mut self, channel: u16, register: u16) -> u32 {
        self.sim.read32(channel + register).unwrap()
    }

    pub fn write(&mut self, channel: u16, register: u16, value: u32) {
        self.sim.write32(channel + register, value).unwrap();
    }

    fn write64(&mut self, channel: u16, register: u16, value: u64) {
        self.write(channel, register + 4, (value >> 32) as u32);
        self.write(channel, register, value as u32);
    }

    /// Points a halted channel at its first descriptor and lets it run, interrupts on.
    pub fn start(&mut self, channel: u16, desc: usize) {
        self.start_with(channel, desc, RS | IOC | ERR | 1 << 16);
    }

    pub fn start_with(&mut self, channel: u16, desc: usize, control: u32) {
        self.write64(channel, CURDESC, BASE + desc as u64);
        self.write(channel, DMACR, control);
    }

    pub fn tail(&mut self, channel: u16, desc: usize) {
        self.write64(channel, TAILDESC, BASE + desc as u64);
    }

    /// Resets the DMA engine; false if it did not end within `limit` cycles.
    pub fn soft_reset(&mut self, limit: u64) -> bool {
        self.write(MM2S, DMACR, RESET);
        let end = self.sim.now() + limit;
        while self.sim.now() < end {
            if self.read(MM2S, DMACR) & RESET == 0 {
                return true;
            }
        }
        false
    }

    /// Runs in steps until `done` holds.
    pub fn run_until(
        &mut self,
        limit: u64,
        mut done: impl FnMut(&mut Rig) -> bool,
    ) -> Result<(), SimError> {
        let end = self.sim.now() + limit;
        while !done(self) {
            assert!(self.sim.now() < end, "not done after {limit} cycles");
            self.sim.run(50)?;
        }
        Ok(())
    }
}
