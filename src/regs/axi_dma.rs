//! Registers and descriptors of the AXI DMA in scatter-gather mode with 64-bit addresses.
//!
//! Source: AMD/Xilinx PG021, "Register Space" and "Scatter Gather Descriptor". What our own engine
//! implements of it is in `docs/registers.md`.

/// Offset of the MM2S channel's registers from the DMA window's base.
pub const MM2S: u32 = 0x00;
/// Offset of the S2MM channel's registers from the DMA window's base.
pub const S2MM: u32 = 0x30;

/// Registers of a channel, from its base.
pub const DMACR: u32 = 0x00;
pub const DMASR: u32 = 0x04;
pub const CURDESC: u32 = 0x08;
pub const CURDESC_MSB: u32 = 0x0C;
pub const TAILDESC: u32 = 0x10;
pub const TAILDESC_MSB: u32 = 0x14;

/// Bits of `DMACR`.
pub mod cr {
    pub const RS: u32 = 1 << 0;
    pub const RESET: u32 = 1 << 2;
    pub const IOC_IRQ_EN: u32 = 1 << 12;
    pub const DLY_IRQ_EN: u32 = 1 << 13;
    pub const ERR_IRQ_EN: u32 = 1 << 14;
    pub const IRQ_THRESHOLD_SHIFT: u32 = 16;
    pub const IRQ_DELAY_SHIFT: u32 = 24;
    /// Clock cycles in one unit of the interrupt delay.
    pub const DELAY_UNIT: u32 = 125;
    /// Value after reset: threshold 1, and bit 1, which is fixed.
    pub const RESET_VALUE: u32 = 0x0001_0002;
}

/// Bits of `DMASR`.
pub mod sr {
    pub const HALTED: u32 = 1 << 0;
    pub const IDLE: u32 = 1 << 1;
    pub const SG_INCLD: u32 = 1 << 3;
    pub const DMA_INT_ERR: u32 = 1 << 4;
    pub const DMA_SLV_ERR: u32 = 1 << 5;
    pub const DMA_DEC_ERR: u32 = 1 << 6;
    pub const SG_INT_ERR: u32 = 1 << 8;
    pub const SG_SLV_ERR: u32 = 1 << 9;
    pub const SG_DEC_ERR: u32 = 1 << 10;
    pub const IOC_IRQ: u32 = 1 << 12;
    pub const DLY_IRQ: u32 = 1 << 13;
    pub const ERR_IRQ: u32 = 1 << 14;
    /// The bits that are cleared by writing 1.
    pub const IRQS: u32 = IOC_IRQ | DLY_IRQ | ERR_IRQ;
    /// The bits that halt a channel, with their names.
    pub const ERRORS: [(u32, &str); 6] = [
        (DMA_INT_ERR, "DMAIntErr"),
        (DMA_SLV_ERR, "DMASlvErr"),
        (DMA_DEC_ERR, "DMADecErr"),
        (SG_INT_ERR, "SGIntErr"),
        (SG_SLV_ERR, "SGSlvErr"),
        (SG_DEC_ERR, "SGDecErr"),
    ];
    /// Value after reset: halted, scatter-gather included, threshold count 1.
    pub const RESET_VALUE: u32 = 0x0001_0009;
}

/// Bytes of a descriptor, and its alignment.
pub const DESCRIPTOR_BYTES: u64 = 64;

/// Offsets in a descriptor.
pub mod desc {
    pub const NXTDESC: usize = 0x00;
    pub const NXTDESC_MSB: usize = 0x04;
    pub const BUFFER_ADDRESS: usize = 0x08;
    pub const BUFFER_ADDRESS_MSB: usize = 0x0C;
    pub const CONTROL: usize = 0x18;
    pub const STATUS: usize = 0x1C;

    /// Bits of `CONTROL`.
    pub const LENGTH_MASK: u32 = (1 << 26) - 1;
    pub const TXEOF: u32 = 1 << 26;
    pub const TXSOF: u32 = 1 << 27;

    /// Bits of `STATUS`, beside the transferred bytes under `LENGTH_MASK`.
    pub const RXEOF: u32 = 1 << 26;
    pub const RXSOF: u32 = 1 << 27;
    pub const DMA_INT_ERR: u32 = 1 << 28;
    pub const DMA_SLV_ERR: u32 = 1 << 29;
    pub const DMA_DEC_ERR: u32 = 1 << 30;
    pub const CMPLT: u32 = 1 << 31;
}
