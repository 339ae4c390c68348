//! Compares two recordings by what counts: the jobs, and their answers.
//!
//! Registers are polled as often as a target takes, and interrupts come when they come, so two
//! targets never have the same lines. What each engine sent and what it answered must be the same.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Channel, Entry, Reader, RecordingError, from_hex};
use crate::regs::axi_dma::desc;
use crate::regs::job::{FOOTER_BYTES, Footer};

/// A packet of one recording, into the kernel or out of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Line of the packet's last descriptor.
    pub line: u64,
    pub cycle: Option<u64>,
    /// What it is, as compared.
    pub what: String,
}

/// The first difference between two recordings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    pub session: u64,
    pub engine: usize,
    pub channel: Channel,
    /// Number of the packet on its channel, from 0.
    pub packet: usize,
    /// `None` where a recording has no more.
    pub packets: [Option<Job>; 2],
}

/// Packets by session, engine and channel.
type Packets = BTreeMap<(u64, usize, u8), Vec<Job>>;

/// The first difference, in the order of the sessions and engines; what was sent goes before what
/// was answered. `None` if all is the same.
pub fn compare(a: &Path, b: &Path) -> Result<Option<Difference>, RecordingError> {
    let (a, b) = (packets(a)?, packets(b)?);
    let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).copied().collect();
    for key in keys {
        let of = |packets: &Packets| packets.get(&key).cloned().unwrap_or_default();
        let (a, b) = (of(&a), of(&b));
        for packet in 0..a.len().max(b.len()) {
            let pair = [a.get(packet).cloned(), b.get(packet).cloned()];
            let [first, second] = pair.each_ref().map(|job| job.as_ref().map(|job| &job.what));
            if first != second {
                let (session, engine, channel) = key;
                return Ok(Some(Difference {
                    session,
                    engine,
                    channel: if channel == 0 {
                        Channel::Mm2s
                    } else {
                        Channel::S2mm
                    },
                    packet,
                    packets: pair,
                }));
            }
        }
    }
    Ok(None)
}

fn packets(path: &Path) -> Result<Packets, RecordingError> {
    let (_, mut reader) = Reader::open(path)?;
    let mut packets = Packets::new();
    // Parts of packets that have not ended, as text and as bytes.
    let mut sent: BTreeMap<(u64, usize), Vec<String>> = BTreeMap::new();
    let mut answered: BTreeMap<(u64, usize), Vec<u8>> = BTreeMap::new();
    while let Some(line) = reader.next()? {
        let engine = (line.session, line.engine);
        let job = |what| Job {
            line: reader.line,
            cycle: line.cycle,
            what,
        };
        match line.entry {
            Entry::Queued {
                channel: Channel::Mm2s,
                control,
                sha256,
                ..
            } => {
                let parts = sent.entry(engine).or_default();
                let length = control & desc::LENGTH_MASK;
                let hash = sha256.unwrap_or_else(|| "no memory".into());
                parts.push(format!("{length} bytes of SHA-256 {hash}"));
                if control & desc::TXEOF != 0 {
                    let what = std::mem::take(parts).join(", ");
                    packets
                        .entry((engine.0, engine.1, 0))
                        .or_default()
                        .push(job(what));
                }
            }
            Entry::Done {
                channel: Channel::S2mm,
                status,
                bytes,
                ..
            } => {
                let answer = answered.entry(engine).or_default();
                let bytes = bytes.as_deref().map(from_hex);
                match bytes {
                    Some(Some(bytes)) => answer.extend(bytes),
                    Some(None) => return Err(reader.bad("bytes are not hexadecimal")),
                    None => {}
                }
                if status & desc::RXEOF != 0 {
                    let what = answer_text(&std::mem::take(answer));
                    packets
                        .entry((engine.0, engine.1, 1))
                        .or_default()
                        .push(job(what));
                }
            }
            _ => {}
        }
    }
    Ok(packets)
}

/// An answer without its cycles.
fn answer_text(bytes: &[u8]) -> String {
    let Some((results, footer)) = bytes.split_last_chunk::<FOOTER_BYTES>() else {
        return format!("{} bytes without a footer", bytes.len());
    };
    let footer = Footer::from_bytes(footer);
    let hash = super::sha256(results);
    format!(
        "tag {}, status {}, {} bytes of results, SHA-256 {hash}",
        footer.tag,
        footer.status,
        results.len()
    )
}
