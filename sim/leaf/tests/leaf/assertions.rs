//! The assertions beside the logic bite: a neighbour that breaks a module's rules is stopped.

use weightstream_leaf::{Leaf, LeafError, Result};

/// After a reset and some inputs, the module runs until it stops itself; returns its message.
fn stopped(module: &str, inputs: &[(&str, u64)]) -> Result<String> {
    let mut leaf = Leaf::new(module)?;
    leaf.reset()?;
    for &(port, value) in inputs {
        leaf.set(port, value)?;
    }
    for _ in 0..12 {
        match leaf.tick() {
            Ok(()) => {}
            Err(LeafError::Stopped { message, .. }) => return Ok(message),
            Err(other) => return Err(other),
        }
    }
    Ok(String::new())
}

/// Module, inputs.
type Case = (&'static str, &'static [(&'static str, u64)]);

#[test]
fn a_neighbour_that_breaks_the_rules_is_stopped() -> Result<()> {
    let cases: &[Case] = &[
        // Answers that nothing asked for.
        ("ws_dma_mm2s_128", &[("rvalid_i", 1), ("rlast_i", 1)]),
        ("ws_dma_s2mm_128", &[("bvalid_i", 1)]),
        ("ws_dma_sg", &[("rvalid_i", 1)]),
        ("ws_dma_sg", &[("bvalid_i", 1)]),
        ("ws_dma_fetch", &[("word_valid_i", 1)]),
        // More than there is room for, and more than is there.
        ("ws_dma_fifo", &[("push_i", 1)]),
        ("ws_dma_fifo", &[("pop_i", 1)]),
        ("ws_dma_stream_fifo", &[("push_i", 1)]),
        ("ws_dma_stream_fifo", &[("pop_i", 1)]),
        ("ws_issue", &[("word_pop_i", 1)]),
        ("ws_realign_16", &[("take_i", 1), ("take_bytes_i", 1)]),
        ("ws_realign_16", &[("word_i", 1)]),
        ("ws_realign_16", &[("push_i", 1)]),
        // Two moves at once, once there is something to move over.
        (
            "ws_realign_16",
            &[("take_i", 1), ("take_bytes_i", 0), ("all_i", 1)],
        ),
        // A threshold of no packets.
        ("ws_dma_irq", &[("load_i", 1), ("packet_i", 1)]),
    ];
    for (module, inputs) in cases {
        let message = stopped(module, inputs)?;
        assert!(
            message.contains("Assertion failed"),
            "{module} with {inputs:?} stopped with {message:?}"
        );
    }
    Ok(())
}
