//! The model driven by hand: registers, descriptors and packets as a driver would write them.

mod dma;
mod jobs;
mod registers;

use std::sync::Arc;

use super::{ModelConfig, ModelDevice};
use crate::dma::{Coherence, DmaMemory, SimMemory};
use crate::quant::WeightType;
use crate::regs::axi_dma::{
    CURDESC, CURDESC_MSB, DESCRIPTOR_BYTES, DMACR, DMASR, MM2S, S2MM, TAILDESC, TAILDESC_MSB, cr,
    desc,
};
use crate::regs::job::{self, FOOTER_BYTES, Footer, Header};
use crate::target::{Device, Window};

const BASE: u64 = 0x12_3450_0000;
const SIZE: usize = 16 << 20;

/// An engine and its memory, handed out from the start and never given back.
struct Rig {
    memory: Arc<SimMemory>,
    device: ModelDevice,
    next: u64,
}

impl Rig {
    fn new(config: ModelConfig) -> Rig {
        let memory = Arc::new(SimMemory::new(SIZE, BASE, Coherence::Coherent, 1).unwrap());
        let device = ModelDevice::new(memory.clone(), config);
        Rig {
            memory,
            device,
            next: BASE,
        }
    }

    /// Device address of `len` bytes, aligned as a descriptor is.
    fn alloc(&mut self, len: usize) -> u64 {
        let addr = self.next;
        self.next = (addr + len as u64).next_multiple_of(DESCRIPTOR_BYTES);
        assert!(self.next <= BASE + SIZE as u64);
        addr
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) {
        let to = self
            .memory
            .at_device_addr(addr, bytes.len() as u64)
            .unwrap();
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn bytes(&self, addr: u64, len: usize) -> Vec<u8> {
        let from = self.memory.at_device_addr(addr, len as u64).unwrap();
        unsafe { std::slice::from_raw_parts(from, len) }.to_vec()
    }

    fn word(&self, addr: u64) -> u32 {
        u32::from_le_bytes(self.bytes(addr, 4).try_into().unwrap())
    }

    /// `bytes` in memory of their own.
    fn put(&mut self, bytes: &[u8]) -> u64 {
        let addr = self.alloc(bytes.len());
        self.write(addr, bytes);
        addr
    }

    /// A chain of descriptors, each (buffer, length with flags); their addresses. The last one
    /// leads to `next`.
    fn chain(&mut self, of: &[(u64, u32)], next: u64) -> Vec<u64> {
        let addrs: Vec<u64> = of.iter().map(|_| self.alloc(64)).collect();
        for (i, (buffer, control)) in of.iter().enumerate() {
            let next = addrs.get(i + 1).copied().unwrap_or(next);
            let mut bytes = [0; 64];
            bytes[desc::NXTDESC..][..8].copy_from_slice(&next.to_le_bytes());
            bytes[desc::BUFFER_ADDRESS..][..8].copy_from_slice(&buffer.to_le_bytes());
            bytes[desc::CONTROL..][..4].copy_from_slice(&control.to_le_bytes());
            self.write(addrs[i], &bytes);
        }
        addrs
    }

    fn status(&self, descriptor: u64) -> u32 {
        self.word(descriptor + desc::STATUS as u64)
    }

    fn read(&mut self, register: u32) -> u32 {
        self.device.read32(Window::Dma, register).unwrap()
    }

    fn set(&mut self, register: u32, value: u32) {
        self.device.write32(Window::Dma, register, value).unwrap();
    }

    fn kernel(&mut self, register: u32) -> u32 {
        self.device.read32(Window::Kernel, register).unwrap()
    }

    /// Sets the channel running from `first`, with the interrupts for packets and errors on.
    fn start(&mut self, channel: u32, first: u64) {
        self.set(channel + CURDESC, first as u32);
        self.set(channel + CURDESC_MSB, (first >> 32) as u32);
        let enables = cr::IOC_IRQ_EN | cr::ERR_IRQ_EN;
        self.set(channel + DMACR, cr::RESET_VALUE | cr::RS | enables);
    }

    fn tail(&mut self, channel: u32, last: u64) {
        self.set(channel + TAILDESC_MSB, (last >> 32) as u32);
        self.set(channel + TAILDESC, last as u32);
    }

    /// Starts the channel and queues a chain; gives the descriptors' addresses.
    fn queue(&mut self, channel: u32, of: &[(u64, u32)]) -> Vec<u64> {
        let chain = self.chain(of, 0);
        self.start(channel, chain[0]);
        self.tail(channel, *chain.last().unwrap());
        chain
    }

    fn sr(&mut self, channel: u32) -> u32 {
        self.read(channel + DMASR)
    }

    fn reset(&mut self) {
        self.set(MM2S + DMACR, cr::RESET);
    }

    /// Queues an S2MM buffer and `parts` as one packet; gives the answer.
    fn send(&mut self, parts: &[&[u8]]) -> (Vec<f32>, Footer) {
        self.reset();
        let room = 16 << 10;
        let to = self.alloc(room);
        let received = self.queue(S2MM, &[(to, room as u32)])[0];
        let mut of: Vec<(u64, u32)> = parts
            .iter()
            .map(|part| (self.put(part), part.len() as u32))
            .collect();
        of.last_mut().unwrap().1 |= desc::TXEOF;
        self.queue(MM2S, &of);
        assert!(self.device.wait_interrupt().unwrap().s2mm);
        let status = self.status(received);
        assert_eq!(
            status & !desc::LENGTH_MASK,
            desc::CMPLT | desc::RXSOF | desc::RXEOF
        );
        answer(&self.bytes(to, (status & desc::LENGTH_MASK) as usize))
    }
}

fn answer(bytes: &[u8]) -> (Vec<f32>, Footer) {
    let (results, footer) = bytes.split_last_chunk::<FOOTER_BYTES>().unwrap();
    let words = results.chunks_exact(4);
    let results = words.map(|w| f32::from_le_bytes(w.try_into().unwrap()));
    (results.collect(), Footer::from_bytes(footer))
}

/// A good header.
fn header(ty: WeightType, k: usize, rows: usize, cols: usize) -> Header {
    Header {
        magic: job::MAGIC,
        version: job::VERSION,
        ty: ty.ggml(),
        k: k as u32,
        rows: rows as u32,
        cols: cols as u32,
        skip: 0,
        flags: 0,
        tag: 0xC0DE,
    }
}

const ONE: u16 = 0x3C00;

/// Q8_0 blocks with a scale of 1.
fn q8_0(quants: &[i8]) -> Vec<u8> {
    let blocks = quants.chunks(32).map(|block| {
        let quants = block.iter().map(|q| *q as u8);
        ONE.to_le_bytes().into_iter().chain(quants).collect()
    });
    blocks.collect::<Vec<Vec<u8>>>().concat()
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(job::PART_ALIGN), 0xA5);
    bytes
}

/// A job with k = 32 of Q8_0 rows whose results are `310 · row + 32 · col`.
struct Small {
    header: Header,
    activations: Vec<u8>,
    weights: Vec<u8>,
}

fn small(rows: usize, cols: usize) -> Small {
    let row = |row: usize| {
        let mut quants = [10 * row as i8; 32];
        quants[31] = 1;
        quants
    };
    let col = |col: usize| {
        let mut quants = [1i8; 32];
        quants[31] = 32 * col as i8;
        quants
    };
    Small {
        header: header(WeightType::Q8_0, 32, rows, cols),
        activations: padded(q8_0(&(0..cols).flat_map(col).collect::<Vec<_>>())),
        weights: q8_0(&(0..rows).flat_map(row).collect::<Vec<_>>()),
    }
}

impl Small {
    fn expected(&self) -> Vec<f32> {
        let (rows, cols) = (self.header.rows, self.header.cols);
        let result = |row: u32, col: u32| (310 * row + 32 * col) as f32;
        (0..rows)
            .flat_map(|row| (0..cols).map(move |col| result(row, col)))
            .collect()
    }

    fn send(&self, rig: &mut Rig) -> (Vec<f32>, Footer) {
        rig.send(&[&self.header.to_bytes(), &self.activations, &self.weights])
    }
}
