//! Chains that also run on a second engine, which is cycle-accurate: their answers are compared,
//! their cycles tallied.

use super::engine::{Packet, Part};
use super::{Answer, DriverError, Engine};
use crate::dma::{Buffer, Heap};
use crate::regs::job::{FOOTER_BYTES, Footer};
use crate::sample::{Shape, Tally};
use crate::target::Device;

pub(super) struct Sampler {
    engine: Engine,
    pub tally: Tally,
    /// The last chain ran here too, so the activations it left are held here too.
    held: bool,
}

/// What the second engine answered to a job.
pub(super) struct Expected {
    len: usize,
    bytes: Vec<u8>,
}

impl Sampler {
    pub fn new(
        heap: &Heap,
        device: Box<dyn Device>,
        length_width: u32,
        tally: Tally,
    ) -> Result<Sampler, DriverError> {
        Ok(Sampler {
            engine: Engine::new(heap, device, length_width)?,
            tally,
            held: false,
        })
    }

    /// Runs `packets`, a chain of `shapes`, if it is drawn, and returns the answers, which are in
    /// `buffer`.
    pub fn run(
        &mut self,
        shapes: &[Shape],
        packets: &[Packet],
        buffer: &Buffer,
    ) -> Result<Option<Vec<Expected>>, DriverError> {
        // A chain that goes on with the activations of the one before can only follow it.
        let follows = shapes.first().is_some_and(|shape| shape.reuse);
        let drawn = self.tally.draw(shapes);
        self.held = if follows { self.held } else { drawn };
        if !self.held {
            return Ok(None);
        }
        let cycles = |engine: &Engine| engine.activity().map_or(0, |activity| activity.cycles);
        let before = cycles(&self.engine);
        let answers = self.engine.run(packets)?;
        self.tally.measured(shapes, cycles(&self.engine) - before);
        let read = |(packet, answer): (&Packet, Answer)| {
            let bytes = read_answer(buffer, packet.answer, answer.len)?;
            Ok(Expected {
                len: answer.len,
                bytes,
            })
        };
        packets
            .iter()
            .zip(answers)
            .map(read)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    /// Compares the answers to the same packets, which are in `buffer` now, bit for bit, but for the
    /// cycles in their footers.
    pub fn compare(
        packets: &[Packet],
        expected: &[Expected],
        answers: &[Answer],
        buffer: &Buffer,
    ) -> Result<(), DriverError> {
        for ((packet, expected), answer) in packets.iter().zip(expected).zip(answers) {
            let bytes = read_answer(buffer, packet.answer, answer.len)?;
            // The footer ends in its cycles.
            let compared = bytes.len().saturating_sub(8);
            let same =
                answer.len == expected.len && bytes[..compared] == expected.bytes[..compared];
            if !same {
                let at = bytes.iter().zip(&expected.bytes).position(|(a, b)| a != b);
                let footer = bytes.last_chunk::<FOOTER_BYTES>().map(Footer::from_bytes);
                return Err(DriverError::Differs {
                    tag: footer.map_or(0, |footer| footer.tag),
                    found: expected.len,
                    expected: answer.len,
                    at: at.unwrap_or(bytes.len().min(expected.bytes.len())),
                });
            }
        }
        Ok(())
    }
}

fn read_answer(buffer: &Buffer, part: Part, len: usize) -> Result<Vec<u8>, DriverError> {
    let at = (part.addr - buffer.device_addr()) as usize;
    let mut bytes = vec![0; len.min(part.len)];
    buffer.sync_for_cpu(at, bytes.len())?;
    buffer.read(at, &mut bytes)?;
    Ok(bytes)
}
