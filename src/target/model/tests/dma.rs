//! The DMA channels: chains, packets over several descriptors, and what goes wrong.

use super::*;
use crate::dma::Heap;
use crate::regs::axi_dma::sr;
use crate::regs::kernel;
use crate::target::{DeviceError, Fault};

fn whole(job: &Small) -> Vec<u8> {
    [&job.header.to_bytes()[..], &job.activations, &job.weights].concat()
}

fn rig() -> Rig {
    Rig::new(ModelConfig::default())
}

fn faulty(fault: Fault) -> Rig {
    Rig::new(ModelConfig {
        faults: vec![fault],
        ..ModelConfig::default()
    })
}

fn stuck(rig: &mut Rig) -> String {
    match rig.device.wait_interrupt() {
        Err(DeviceError::Timeout { stuck }) => stuck,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_fills_several_descriptors_and_waits_for_more() {
    let mut rig = rig();
    let job = small(10, 4);
    let packet = rig.put(&whole(&job));
    let len = whole(&job).len() as u32;
    let sent = rig.queue(MM2S, &[(packet, len | desc::TXEOF)]);
    // The packet is taken though its answer has nowhere to go.
    assert_eq!(rig.status(sent[0]), desc::CMPLT | len);
    assert_eq!(rig.kernel(kernel::STATUS), kernel::STATUS_BUSY);

    let to = rig.alloc(1024);
    let (second, third) = (to + 64, to + 128);
    let received = rig.chain(&[(to, 64), (second, 64), (third, 256)], 0);
    rig.start(S2MM, received[0]);
    rig.tail(S2MM, received[1]);
    assert_eq!(rig.status(received[0]), desc::CMPLT | desc::RXSOF | 64);
    assert_eq!(rig.status(received[1]), desc::CMPLT | 64);
    assert_eq!(rig.kernel(kernel::JOBS), 0);
    assert_eq!(
        rig.sr(S2MM) & (sr::IDLE | sr::HALTED | sr::IOC_IRQ),
        sr::IDLE
    );
    assert_eq!(
        rig.sr(MM2S) & (sr::IDLE | sr::HALTED | sr::IOC_IRQ),
        sr::IDLE | sr::IOC_IRQ
    );
    rig.set(MM2S + DMASR, sr::IOC_IRQ);
    let why = stuck(&mut rig);
    assert!(why.contains("s2mm: no descriptor queued"), "{why}");
    assert!(why.contains("48 bytes of an answer are not taken"), "{why}");

    rig.tail(S2MM, received[2]);
    assert_eq!(rig.status(received[2]), desc::CMPLT | desc::RXEOF | 48);
    assert_eq!(rig.read(S2MM + CURDESC), received[2] as u32);
    assert_eq!(rig.kernel(kernel::STATUS), 0);
    assert!(rig.device.wait_interrupt().unwrap().s2mm);
    let (results, footer) = answer(&rig.bytes(to, 176));
    assert_eq!((results, footer.status.0), (job.expected(), 0));
}

#[test]
fn chained_jobs_are_answered_in_order_in_a_ring() {
    let mut rig = rig();
    let jobs: Vec<Small> = (0..6).map(|i| small(i + 1, 2)).collect();
    // Rings of two descriptors, used over and over.
    let to = rig.alloc(512);
    let sent = rig.chain(&[(0, 0), (0, 0)], 0);
    let received = rig.chain(&[(to, 256), (to + 256, 256)], 0);
    for ring in [&sent, &received] {
        rig.write(ring[1] + desc::NXTDESC as u64, &ring[0].to_le_bytes());
    }
    rig.start(S2MM, received[0]);
    rig.start(MM2S, sent[0]);
    for (i, job) in jobs.iter().enumerate() {
        let at = i % 2;
        let bytes = whole(job);
        let buffer = rig.put(&bytes);
        let control = bytes.len() as u32 | desc::TXEOF;
        rig.write(
            sent[at] + desc::BUFFER_ADDRESS as u64,
            &buffer.to_le_bytes(),
        );
        rig.write(sent[at] + desc::CONTROL as u64, &control.to_le_bytes());
        for descriptor in [sent[at], received[at]] {
            rig.write(descriptor + desc::STATUS as u64, &[0; 4]);
        }
        rig.tail(S2MM, received[at]);
        rig.tail(MM2S, sent[at]);
        let len = rig.status(received[at]) & desc::LENGTH_MASK;
        let (results, _) = answer(&rig.bytes(to + 256 * at as u64, len as usize));
        assert_eq!(results, job.expected());
    }
    assert_eq!(rig.kernel(kernel::JOBS), 6);
}

#[test]
fn a_packet_may_be_queued_in_pieces_whose_memory_changes() {
    let mut rig = rig();
    let job = small(3, 1);
    let to = rig.alloc(256);
    let received = rig.queue(S2MM, &[(to, 256)]);
    let header = rig.put(&job.header.to_bytes());
    let activations = rig.put(&job.activations);
    let weights = rig.put(&job.weights);
    let sizes = [job.activations.len() as u32, job.weights.len() as u32];
    let of = [
        (header, 64),
        (activations, sizes[0]),
        (weights, sizes[1] | desc::TXEOF),
    ];
    let sent = rig.chain(&of, 0);
    rig.start(MM2S, sent[0]);
    for (i, (buffer, _)) in of.iter().enumerate() {
        rig.tail(MM2S, sent[i]);
        assert_ne!(rig.status(sent[i]) & desc::CMPLT, 0);
        // What is done is the host's again.
        rig.write(*buffer, &[0xFF; 64]);
    }
    assert_eq!(rig.status(received[0]) & desc::LENGTH_MASK, 28);
    let (results, footer) = answer(&rig.bytes(to, 28));
    assert_eq!((results, footer.status.0), (job.expected(), 0));
}

#[test]
fn a_stale_descriptor_is_an_sg_internal_error() {
    let mut rig = rig();
    let job = whole(&small(1, 1));
    let packet = rig.put(&job);
    let sent = rig.chain(&[(packet, job.len() as u32 | desc::TXEOF)], 0);
    rig.write(sent[0] + desc::STATUS as u64, &desc::CMPLT.to_le_bytes());
    rig.start(MM2S, sent[0]);
    rig.tail(MM2S, sent[0]);
    let expected = sr::SG_INT_ERR | sr::ERR_IRQ | sr::HALTED;
    assert_eq!(rig.sr(MM2S) & !(0xFF << 16), expected | sr::SG_INCLD);
    assert_eq!(rig.read(MM2S + DMACR) & cr::RS, 0);
    assert!(rig.device.wait_interrupt().unwrap().mm2s);
    // It stays halted until it is reset.
    rig.start(MM2S, sent[0]);
    assert_eq!(rig.read(MM2S + DMACR) & cr::RS, 0);
    rig.set(MM2S + DMASR, sr::ERR_IRQ);
    let why = stuck(&mut rig);
    let expected = format!("mm2s halted: SGIntErr at descriptor 0x{:x}", sent[0]);
    assert!(why.contains(&expected), "{why}");
    let good = small(2, 1);
    assert_eq!(good.send(&mut rig).0, good.expected());
}

#[test]
fn a_buffer_that_cannot_be_is_a_dma_internal_error() {
    for channel in [MM2S, S2MM] {
        for (offset, len) in [(0, 0), (8, 64), (1, 64)] {
            let mut rig = rig();
            let buffer = rig.alloc(128);
            let queued = rig.queue(channel, &[(buffer + offset, len | desc::TXEOF)]);
            assert_eq!(rig.status(queued[0]), desc::CMPLT | desc::DMA_INT_ERR);
            let expected = sr::DMA_INT_ERR | sr::ERR_IRQ | sr::HALTED;
            assert_eq!(rig.sr(channel) & !(0xFF << 16), expected | sr::SG_INCLD);
        }
    }
}

#[test]
fn addresses_outside_the_memory_are_decode_errors() {
    let end = BASE + SIZE as u64;
    for (buffer, len) in [(end, 64), (end - 64, 128), (0, 64), (u64::MAX - 63, 64)] {
        let mut rig = rig();
        let sent = rig.queue(MM2S, &[(buffer, len | desc::TXEOF)]);
        assert_eq!(rig.status(sent[0]), desc::CMPLT | desc::DMA_DEC_ERR);
        assert_ne!(rig.sr(MM2S) & sr::DMA_DEC_ERR, 0);
        assert!(rig.device.wait_interrupt().unwrap().mm2s);

        let mut rig = Rig::new(ModelConfig::default());
        let received = rig.queue(S2MM, &[(buffer, len)]);
        // Nothing is written, and nothing wrong, before there is an answer.
        assert_eq!(rig.status(received[0]), 0);
        let job = whole(&small(20, 1));
        let packet = rig.put(&job);
        rig.queue(MM2S, &[(packet, job.len() as u32 | desc::TXEOF)]);
        assert_eq!(rig.status(received[0]), desc::CMPLT | desc::DMA_DEC_ERR);
        assert_ne!(rig.sr(S2MM) & sr::DMA_DEC_ERR, 0);
    }
    for descriptor in [end, BASE - 64] {
        let mut rig = rig();
        rig.start(MM2S, descriptor);
        rig.tail(MM2S, descriptor);
        assert_ne!(rig.sr(MM2S) & sr::SG_DEC_ERR, 0);
        let line = format!("SGDecErr at descriptor 0x{descriptor:x}");
        rig.set(MM2S + DMASR, sr::ERR_IRQ);
        assert!(stuck(&mut rig).contains(&line));
    }
}

#[test]
fn slave_errors_halt_the_channel_that_met_them() {
    let job = small(2, 1);
    // The rig hands memory out from BASE on: first the S2MM buffer, then its descriptor, then the
    // packet, then its descriptor.
    let run = |fault: u64| {
        let mut rig = faulty(Fault::SlaveError(fault..fault + 1));
        let to = rig.alloc(64);
        let received = rig.queue(S2MM, &[(to, 64)])[0];
        let bytes = whole(&job);
        let packet = rig.put(&bytes);
        let sent = rig.queue(MM2S, &[(packet, bytes.len() as u32 | desc::TXEOF)])[0];
        let errors = [MM2S, S2MM].map(|channel| rig.sr(channel) & 0x770);
        let status = [sent, received].map(|d| rig.status(d) & !desc::LENGTH_MASK);
        ([to, received, packet, sent], errors, status)
    };
    let ends = desc::RXSOF | desc::RXEOF | desc::CMPLT;
    let ([to, received, packet, sent], errors, status) = run(0);
    assert_eq!((errors, status), ([0, 0], [desc::CMPLT, ends]));
    let failed = desc::CMPLT | desc::DMA_SLV_ERR;
    assert_eq!(run(to + 20).1, [0, sr::DMA_SLV_ERR]);
    assert_eq!(run(to + 20).2, [desc::CMPLT, failed]);
    assert_eq!(run(packet + 70).1, [sr::DMA_SLV_ERR, 0]);
    assert_eq!(run(packet + 70).2, [failed, 0]);
    assert_eq!(run(received).1, [0, sr::SG_SLV_ERR]);
    assert_eq!(run(sent).1, [sr::SG_SLV_ERR, 0]);
}

#[test]
fn a_packet_too_long_for_the_rest_of_a_descriptor_is_an_internal_error() {
    let mut rig = rig();
    let to = rig.alloc(64);
    let received = rig.queue(S2MM, &[(to, 24), (to, 64)]);
    let job = whole(&small(5, 1));
    let packet = rig.put(&job);
    rig.queue(MM2S, &[(packet, job.len() as u32 | desc::TXEOF)]);
    assert_eq!(rig.status(received[0]), desc::CMPLT | desc::DMA_INT_ERR);
    assert_ne!(rig.sr(S2MM) & sr::DMA_INT_ERR, 0);
}

#[test]
fn a_silent_kernel_takes_packets_and_is_named() {
    let mut rig = faulty(Fault::NoAnswer);
    let to = rig.alloc(64);
    rig.queue(S2MM, &[(to, 64)]);
    let job = whole(&small(2, 1));
    let packet = rig.put(&job);
    let sent = rig.queue(MM2S, &[(packet, job.len() as u32 | desc::TXEOF)]);
    assert_eq!(rig.status(sent[0]), desc::CMPLT | job.len() as u32);
    assert_eq!(rig.kernel(kernel::STATUS), kernel::STATUS_BUSY);
    rig.set(MM2S + DMASR, sr::IOC_IRQ);
    assert!(stuck(&mut rig).contains("kernel: 1 packets taken and not answered"));
}

#[test]
fn what_is_missing_is_named() {
    let mut rig = rig();
    assert_eq!(
        stuck(&mut rig),
        "s2mm halted: RS is 0; mm2s halted: RS is 0"
    );
    rig.start(MM2S, BASE);
    rig.start(S2MM, BASE);
    let why = stuck(&mut rig);
    assert_eq!(
        why,
        "s2mm: no descriptor queued; mm2s: no descriptor queued"
    );
    let part = rig.put(&[0; 64]);
    rig.reset();
    rig.queue(MM2S, &[(part, 64)]);
    assert!(stuck(&mut rig).contains("64 bytes of a packet that does not end"));
}

#[test]
fn resets_in_the_middle_of_a_packet() {
    let mut rig = rig();
    let job = small(2, 1);
    let part = rig.put(&job.header.to_bytes());
    // The DMA engine's reset leaves the kernel with half a packet, to which the next is joined.
    rig.queue(MM2S, &[(part, 64)]);
    assert_ne!(job.send(&mut rig).1.status.0, 0);
    // With the kernel's reset too, the next packet is a new one.
    rig.queue(MM2S, &[(part, 64)]);
    rig.device
        .write32(Window::Kernel, kernel::CTRL, kernel::CTRL_SOFT_RESET)
        .unwrap();
    assert_eq!(rig.kernel(kernel::STATUS), 0);
    assert_eq!(job.send(&mut rig).0, job.expected());
}

#[test]
fn the_device_sees_memory_only_after_syncs() {
    let memory = Arc::new(SimMemory::new(SIZE, BASE, Coherence::Strict, 1).unwrap());
    let heap = Heap::new(memory.clone()).unwrap();
    let mut device = ModelDevice::new(memory.clone(), ModelConfig::default());
    let job = small(2, 1);
    let buffer = heap.alloc(4096).unwrap();
    let base = buffer.device_addr();
    let descriptor = |buffer: u64, control: u32| {
        let mut bytes = [0; 64];
        bytes[desc::BUFFER_ADDRESS..][..8].copy_from_slice(&buffer.to_le_bytes());
        bytes[desc::CONTROL..][..4].copy_from_slice(&control.to_le_bytes());
        bytes
    };
    let bytes = whole(&job);
    buffer.write(0, &descriptor(base + 1024, 64)).unwrap();
    let control = bytes.len() as u32 | desc::TXEOF;
    buffer.write(64, &descriptor(base + 2048, control)).unwrap();
    buffer.sync_for_device(0, 128).unwrap();
    buffer.write(2048, &bytes).unwrap();
    // The last weight block is forgotten.
    buffer.sync_for_device(2048, bytes.len() - 34).unwrap();
    for (channel, at) in [(S2MM, base), (MM2S, base + 64)] {
        let registers = [
            (CURDESC, at as u32),
            (CURDESC_MSB, (at >> 32) as u32),
            (DMACR, cr::RS | cr::IOC_IRQ_EN),
            (TAILDESC_MSB, (at >> 32) as u32),
            (TAILDESC, at as u32),
        ];
        for (register, value) in registers {
            let offset = channel + register;
            device.write32(Window::Dma, offset, value).unwrap();
        }
    }
    assert!(device.wait_interrupt().unwrap().s2mm);
    let mut seen = [0; 24];
    buffer.read(1024, &mut seen).unwrap();
    assert_ne!(answer(&seen).1.tag, 0xC0DE);
    buffer.sync_for_cpu(1024, 24).unwrap();
    buffer.read(1024, &mut seen).unwrap();
    let (results, footer) = answer(&seen);
    assert_eq!((footer.tag, results[0]), (0xC0DE, 0.0));
    assert_ne!(results[1], job.expected()[1]);
    assert_eq!(memory.device_base(), base);
}
