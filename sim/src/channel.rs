//! The channels of the accelerator's ports.

use std::fmt;

/// A channel of one of the accelerator's AXI ports, or a stream between DMA engine and kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Channel {
    /// `s_axi_ctrl`: write address.
    CtrlAw,
    /// `s_axi_ctrl`: write data.
    CtrlW,
    /// `s_axi_ctrl`: write response.
    CtrlB,
    /// `s_axi_ctrl`: read address.
    CtrlAr,
    /// `s_axi_ctrl`: read data.
    CtrlR,
    /// `m_axi_sg`: write address.
    SgAw,
    /// `m_axi_sg`: write data.
    SgW,
    /// `m_axi_sg`: write response.
    SgB,
    /// `m_axi_sg`: read address.
    SgAr,
    /// `m_axi_sg`: read data.
    SgR,
    /// `m_axi_mm2s`: read address.
    Mm2sAr,
    /// `m_axi_mm2s`: read data.
    Mm2sR,
    /// `m_axi_s2mm`: write address.
    S2mmAw,
    /// `m_axi_s2mm`: write data.
    S2mmW,
    /// `m_axi_s2mm`: write response.
    S2mmB,
    /// The stream into the kernel. Only watchdog errors name it.
    KernelIn,
    /// The stream out of the kernel. Only watchdog errors name it.
    KernelOut,
}

impl Channel {
    /// All channels, in the harness's order.
    pub const ALL: [Channel; 17] = [
        Channel::CtrlAw,
        Channel::CtrlW,
        Channel::CtrlB,
        Channel::CtrlAr,
        Channel::CtrlR,
        Channel::SgAw,
        Channel::SgW,
        Channel::SgB,
        Channel::SgAr,
        Channel::SgR,
        Channel::Mm2sAr,
        Channel::Mm2sR,
        Channel::S2mmAw,
        Channel::S2mmW,
        Channel::S2mmB,
        Channel::KernelIn,
        Channel::KernelOut,
    ];

    /// Those on AXI: all but the kernel's streams.
    pub const AXI: usize = 15;

    /// The channels of the memory behind the accelerator.
    pub fn memory() -> impl Iterator<Item = Channel> {
        Self::ALL.into_iter().filter(|c| c.is_memory())
    }

    /// Is the memory at the other end?
    pub fn is_memory(self) -> bool {
        (Channel::SgAw as u8..=Channel::S2mmB as u8).contains(&(self as u8))
    }

    pub(crate) fn from_index(index: u8) -> Option<Channel> {
        Self::ALL.get(usize::from(index)).copied()
    }

    /// As an engineer would look it up in a waveform: port and channel.
    pub fn name(self) -> &'static str {
        match self {
            Channel::CtrlAw => "s_axi_ctrl AW",
            Channel::CtrlW => "s_axi_ctrl W",
            Channel::CtrlB => "s_axi_ctrl B",
            Channel::CtrlAr => "s_axi_ctrl AR",
            Channel::CtrlR => "s_axi_ctrl R",
            Channel::SgAw => "m_axi_sg AW",
            Channel::SgW => "m_axi_sg W",
            Channel::SgB => "m_axi_sg B",
            Channel::SgAr => "m_axi_sg AR",
            Channel::SgR => "m_axi_sg R",
            Channel::Mm2sAr => "m_axi_mm2s AR",
            Channel::Mm2sR => "m_axi_mm2s R",
            Channel::S2mmAw => "m_axi_s2mm AW",
            Channel::S2mmW => "m_axi_s2mm W",
            Channel::S2mmB => "m_axi_s2mm B",
            Channel::KernelIn => "the stream into the kernel",
            Channel::KernelOut => "the stream out of the kernel",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
