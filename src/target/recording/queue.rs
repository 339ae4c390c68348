//! The descriptors that a driver queues, seen from the device's side of the border.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Channel, Entry, sha256, to_hex};
use crate::dma::SimMemory;
use crate::regs::axi_dma::{
    CURDESC, CURDESC_MSB, DESCRIPTOR_BYTES, DMACR, MM2S, S2MM, TAILDESC, TAILDESC_MSB, cr, desc,
};

/// Most descriptors followed from one doorbell: a broken ring has no end.
const MOST: usize = 1 << 16;

/// What the two channels have queued and are not done with.
pub struct Queues {
    memory: Arc<SimMemory>,
    channels: [Queue; 2],
}

#[derive(Default)]
struct Queue {
    /// The descriptor that comes next; `CURDESC` until the first doorbell.
    next: u64,
    tail: u64,
    pending: VecDeque<u64>,
}

const CHANNELS: [(Channel, u32); 2] = [(Channel::Mm2s, MM2S), (Channel::S2mm, S2MM)];

impl Queues {
    pub fn new(memory: Arc<SimMemory>) -> Queues {
        Queues {
            memory,
            channels: Default::default(),
        }
    }

    pub fn memory(&self) -> &SimMemory {
        &self.memory
    }

    /// Notes a write of one of the DMA's registers, before the device sees it. Returns the
    /// descriptors that it queues, if it is a doorbell.
    pub fn write(&mut self, offset: u32, value: u32) -> Vec<Entry> {
        let high = |addr: u64, value: u32| addr & 0xFFFF_FFFF | u64::from(value) << 32;
        let low = |addr: u64, value: u32| addr >> 32 << 32 | u64::from(value);
        for (n, (channel, base)) in CHANNELS.into_iter().enumerate() {
            let queue = &mut self.channels[n];
            match offset.checked_sub(base) {
                Some(DMACR) if value & cr::RESET != 0 => {
                    self.channels.iter_mut().for_each(|q| q.pending.clear());
                }
                Some(CURDESC) => queue.next = low(queue.next, value),
                Some(CURDESC_MSB) => queue.next = high(queue.next, value),
                Some(TAILDESC_MSB) => queue.tail = high(queue.tail, value),
                Some(TAILDESC) => {
                    queue.tail = low(queue.tail, value);
                    return self.queue(n, channel);
                }
                _ => {}
            }
        }
        Vec::new()
    }

    fn queue(&mut self, n: usize, channel: Channel) -> Vec<Entry> {
        let mut queued = Vec::new();
        while queued.len() < MOST {
            let addr = self.channels[n].next;
            let Some(bytes) = self.bytes(addr, DESCRIPTOR_BYTES) else {
                break;
            };
            let control = word(&bytes, desc::CONTROL);
            let buffer = pair(&bytes, desc::BUFFER_ADDRESS);
            let length = u64::from(control & desc::LENGTH_MASK);
            let data = (channel == Channel::Mm2s).then(|| self.bytes(buffer, length));
            queued.push(Entry::Queued {
                channel,
                addr,
                buffer,
                control,
                sha256: data.flatten().map(|bytes| sha256(&bytes)),
            });
            let queue = &mut self.channels[n];
            queue.pending.push_back(addr);
            queue.next = pair(&bytes, desc::NXTDESC);
            if addr == queue.tail {
                break;
            }
        }
        queued
    }

    /// The descriptors that the device is done with since the last call.
    pub fn done(&mut self) -> Vec<Entry> {
        let mut done = Vec::new();
        for (n, (channel, _)) in CHANNELS.into_iter().enumerate() {
            while let Some(&addr) = self.channels[n].pending.front() {
                let Some(bytes) = self.bytes(addr, DESCRIPTOR_BYTES) else {
                    break;
                };
                let status = word(&bytes, desc::STATUS);
                if status & desc::CMPLT == 0 {
                    break;
                }
                self.channels[n].pending.pop_front();
                let buffer = pair(&bytes, desc::BUFFER_ADDRESS);
                let length = u64::from(status & desc::LENGTH_MASK);
                let data = (channel == Channel::S2mm).then(|| self.bytes(buffer, length));
                done.push(Entry::Done {
                    channel,
                    addr,
                    status,
                    bytes: data.flatten().map(|bytes| to_hex(&bytes)),
                });
            }
        }
        done
    }

    /// What the device sees at `addr`.
    fn bytes(&self, addr: u64, len: u64) -> Option<Vec<u8>> {
        let from = self.memory.at_device_addr(addr, len).ok()?;
        let mut bytes = vec![0; len as usize];
        // SAFETY: the range was checked. The device runs only within calls, of which none is
        // under way.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        Some(bytes)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("a descriptor's word"))
}

fn pair(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}
