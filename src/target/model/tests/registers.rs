//! Registers, counters, interrupts and the errors that halt a channel (`docs/registers.md`).

use super::*;
use crate::regs::axi_dma::sr;
use crate::regs::kernel;

#[test]
fn reset_values() {
    let mut rig = Rig::new(ModelConfig::default());
    for channel in [MM2S, S2MM] {
        assert_eq!(rig.read(channel + DMACR), cr::RESET_VALUE);
        assert_eq!(rig.read(channel + DMASR), sr::RESET_VALUE);
        for register in [CURDESC, CURDESC_MSB, TAILDESC, TAILDESC_MSB] {
            assert_eq!(rig.read(channel + register), 0);
        }
    }
    rig.queue(MM2S, &[(BASE, 0)]);
    assert_ne!(rig.sr(MM2S), sr::RESET_VALUE);
    // Either channel's Reset is both channels'.
    rig.set(S2MM + DMACR, cr::RESET);
    assert_eq!(rig.read(MM2S + DMACR), cr::RESET_VALUE);
    assert_eq!(rig.sr(MM2S), sr::RESET_VALUE);
}

#[test]
fn descriptor_pointers_are_64_bits_and_held_while_running() {
    let mut rig = Rig::new(ModelConfig::default());
    rig.start(MM2S, 0x9876_5432_1040);
    assert_eq!(rig.read(MM2S + CURDESC), 0x5432_1040);
    assert_eq!(rig.read(MM2S + CURDESC_MSB), 0x9876);
    rig.set(MM2S + CURDESC, 0x1000);
    assert_eq!(rig.read(MM2S + CURDESC), 0x5432_1040);
    rig.set(MM2S + DMACR, cr::RESET_VALUE);
    assert_eq!(rig.sr(MM2S), sr::RESET_VALUE);
    // The low six bits are none.
    rig.set(MM2S + CURDESC, 0x107F);
    assert_eq!(rig.read(MM2S + CURDESC), 0x1040);
}

#[test]
fn registers_that_are_not_there_read_0_and_ignore_writes() {
    let mut rig = Rig::new(ModelConfig::default());
    for offset in [0x18, 0x2C, 0x48, 0x60, 0xFFC] {
        rig.set(offset, u32::MAX);
        assert_eq!(rig.read(offset), 0);
    }
    for offset in [0x24, 0x3C, 0x78, 0xFFC] {
        rig.device
            .write32(Window::Kernel, offset, u32::MAX)
            .unwrap();
        assert_eq!(rig.kernel(offset), 0);
    }
}

#[test]
fn the_kernel_says_what_it_is() {
    let mut rig = Rig::new(ModelConfig {
        bus_bytes: 32,
        blocks_per_cycle: 2,
        max_k: 4096,
        max_cols: 8,
        ..ModelConfig::default()
    });
    assert_eq!(rig.kernel(kernel::ID), kernel::ID_VALUE);
    assert_eq!(rig.kernel(kernel::VERSION), 0x0001_0000);
    assert_eq!(rig.kernel(kernel::CAP_BUS), 0x0002_0100);
    assert_eq!(rig.kernel(kernel::CAP_MAX_K), 4096);
    assert_eq!(rig.kernel(kernel::CAP_MAX_COLS), 8);
    assert_eq!(rig.kernel(kernel::CAP_TYPES), 0x7DCC);
    assert_eq!(rig.kernel(kernel::CTRL), 0);
    assert_eq!(rig.kernel(kernel::STATUS), 0);
}

#[test]
fn counters_count_beats_and_jobs_and_are_cleared() {
    let mut rig = Rig::new(ModelConfig::default());
    let job = small(3, 2);
    job.send(&mut rig);
    job.send(&mut rig);
    // 64 + 128 + 102 bytes in, 24 + 16 bytes out, in beats of 16.
    assert_eq!(rig.kernel(kernel::BEATS_IN), 2 * (4 + 8 + 7));
    assert_eq!(rig.kernel(kernel::BEATS_OUT), 2 * 3);
    assert_eq!(rig.kernel(kernel::JOBS), 2);
    assert_eq!(rig.kernel(kernel::JOBS + 4), 0);
    assert_eq!(rig.kernel(kernel::CYCLES), 0);
    rig.device
        .write32(Window::Kernel, kernel::CTRL, kernel::CTRL_CLEAR)
        .unwrap();
    for counter in [kernel::BEATS_IN, kernel::BEATS_OUT, kernel::JOBS] {
        assert_eq!(rig.kernel(counter), 0);
    }
}

#[test]
fn interrupts_come_after_as_many_packets_as_asked_and_are_cleared() {
    let mut rig = Rig::new(ModelConfig::default());
    let job = small(1, 1);
    let room: Vec<(u64, u32)> = (0..5).map(|_| (rig.alloc(64), 64)).collect();
    let received = rig.chain(&room, 0);
    rig.set(S2MM + CURDESC, received[0] as u32);
    rig.set(S2MM + CURDESC_MSB, (received[0] >> 32) as u32);
    let control = cr::RS | cr::IOC_IRQ_EN | 3 << cr::IRQ_THRESHOLD_SHIFT;
    rig.set(S2MM + DMACR, control);
    assert_eq!(rig.read(S2MM + DMACR), control | 2);
    rig.tail(S2MM, received[4]);

    let packet = [&job.header.to_bytes()[..], &job.activations, &job.weights].concat();
    let packet = (rig.put(&packet), packet.len() as u32 | desc::TXEOF);
    let sent = rig.chain(&[packet; 5], 0);
    rig.start(MM2S, sent[0]);
    let missing = |rig: &mut Rig| rig.sr(S2MM) >> cr::IRQ_THRESHOLD_SHIFT & 0xFF;
    for (i, left) in [2, 1, 3, 2].into_iter().enumerate() {
        rig.tail(MM2S, sent[i]);
        assert_eq!(missing(&mut rig), left);
        assert_eq!(rig.sr(S2MM) & sr::IOC_IRQ != 0, i >= 2);
    }
    let lines = rig.device.wait_interrupt().unwrap();
    assert!(lines.s2mm && lines.mm2s);
    // Writing 1 clears, writing 0 does not.
    rig.set(S2MM + DMASR, !sr::IOC_IRQ);
    assert_ne!(rig.sr(S2MM) & sr::IOC_IRQ, 0);
    rig.set(S2MM + DMASR, sr::IOC_IRQ);
    rig.set(MM2S + DMASR, sr::IOC_IRQ);
    let stuck = rig.device.wait_interrupt().unwrap_err().to_string();
    assert!(stuck.contains("1 of 3 packets for an interrupt"), "{stuck}");
    // A threshold of 0 is not stored, a new one starts the count.
    rig.set(S2MM + DMACR, control & !(0xFF << cr::IRQ_THRESHOLD_SHIFT));
    assert_eq!(missing(&mut rig), 2);
    rig.set(
        S2MM + DMACR,
        cr::RS | cr::IOC_IRQ_EN | 1 << cr::IRQ_THRESHOLD_SHIFT,
    );
    rig.tail(MM2S, sent[4]);
    assert!(rig.device.wait_interrupt().unwrap().s2mm);
}

#[test]
fn the_delay_interrupt_reports_what_the_threshold_does_not() {
    let mut rig = Rig::new(ModelConfig::default());
    let job = small(1, 1);
    let to = rig.alloc(64);
    let received = rig.chain(&[(to, 64)], 0);
    rig.start(S2MM, received[0]);
    let enables = cr::IOC_IRQ_EN | cr::DLY_IRQ_EN;
    let control = cr::RS | enables | 9 << cr::IRQ_THRESHOLD_SHIFT | 1 << cr::IRQ_DELAY_SHIFT;
    rig.set(S2MM + DMACR, control);
    rig.tail(S2MM, received[0]);
    let packet = [&job.header.to_bytes()[..], &job.activations, &job.weights].concat();
    let packet = (rig.put(&packet), packet.len() as u32 | desc::TXEOF);
    let sent = rig.chain(&[packet], 0);
    rig.set(MM2S + CURDESC, sent[0] as u32);
    rig.set(MM2S + CURDESC_MSB, (sent[0] >> 32) as u32);
    rig.set(MM2S + DMACR, cr::RS);
    rig.tail(MM2S, sent[0]);
    assert_eq!(rig.sr(S2MM) & sr::IRQS, 0);
    let lines = rig.device.wait_interrupt().unwrap();
    assert!(lines.s2mm && !lines.mm2s);
    assert_eq!(rig.sr(S2MM) & sr::IRQS, sr::DLY_IRQ);
    assert_eq!(rig.sr(S2MM) >> cr::IRQ_THRESHOLD_SHIFT & 0xFF, 9);
    // It reports a packet once.
    rig.set(S2MM + DMASR, sr::DLY_IRQ);
    assert!(rig.device.wait_interrupt().is_err());
}
