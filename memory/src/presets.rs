//! Memories that boards have. The sources of the figures are in `docs/timing.md`.

use crate::channel::Place;

/// A kind of memory. All times are in ps.
#[derive(Debug, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    pub channels: usize,
    /// Bytes that lie in one channel before the next one's turn.
    pub interleave: u64,
    /// Of a channel: bytes of the data bus, transfers of a burst.
    pub bus_bytes: u64,
    pub burst: u64,
    pub bank_groups: usize,
    /// Banks of a group.
    pub banks: usize,
    /// Bytes of an open row, over all chips of the channel.
    pub row_bytes: u64,
    pub t_ck: u64,
    pub cl: u64,
    pub cwl: u64,
    pub t_rcd: u64,
    pub t_rp: u64,
    pub t_ras: u64,
    pub t_rrd_s: u64,
    pub t_rrd_l: u64,
    pub t_faw: u64,
    pub t_ccd_s: u64,
    pub t_ccd_l: u64,
    pub t_wtr_s: u64,
    pub t_wtr_l: u64,
    pub t_wr: u64,
    pub t_rtp: u64,
    pub t_rfc: u64,
    pub t_refi: u64,
    /// Interconnect and controller, there and back.
    pub path: u64,
}

/// Chips of 16 bits: 2 KiB of row each, two groups of four banks. Speed grade 2400T.
const DDR4_2400_X16: Preset = Preset {
    name: "ddr4-2400",
    title: "DDR4-2400, 64 bits, of four 8 Gb chips of 16",
    channels: 1,
    interleave: 4096,
    bus_bytes: 8,
    burst: 8,
    bank_groups: 2,
    banks: 4,
    row_bytes: 8192,
    t_ck: 833,
    cl: 17 * 833,
    cwl: 12 * 833,
    t_rcd: 14_160,
    t_rp: 14_160,
    t_ras: 32_000,
    t_rrd_s: 5_300,
    t_rrd_l: 6_400,
    t_faw: 30_000,
    t_ccd_s: 4 * 833,
    t_ccd_l: 5_000,
    t_wtr_s: 2_500,
    t_wtr_l: 7_500,
    t_wr: 15_000,
    t_rtp: 7_500,
    t_rfc: 350_000,
    t_refi: 7_800_000,
    path: 150_000,
};

pub static PRESETS: [Preset; 4] = [
    Preset {
        name: "ddr3-1050",
        title: "DDR3-1050, 16 bits, one 4 Gb chip of speed grade 1600K at 525 MHz",
        channels: 1,
        interleave: 4096,
        bus_bytes: 2,
        burst: 8,
        bank_groups: 1,
        banks: 8,
        row_bytes: 2048,
        t_ck: 1905,
        cl: 8 * 1905,
        cwl: 6 * 1905,
        t_rcd: 13_750,
        t_rp: 13_750,
        t_ras: 35_000,
        t_rrd_s: 7_620,
        t_rrd_l: 7_620,
        t_faw: 40_000,
        t_ccd_s: 4 * 1905,
        t_ccd_l: 4 * 1905,
        t_wtr_s: 7_620,
        t_wtr_l: 7_620,
        t_wr: 15_000,
        t_rtp: 7_620,
        t_rfc: 260_000,
        t_refi: 7_800_000,
        path: 150_000,
    },
    DDR4_2400_X16,
    // RDIMMs of chips of 4 bits: 512 bytes of row each, four groups of four banks.
    Preset {
        name: "4xddr4-2400",
        title: "DDR4-2400, four channels of 64 bits, each an RDIMM of 8 Gb chips of 4",
        channels: 4,
        bank_groups: 4,
        t_rrd_s: 4 * 833,
        t_rrd_l: 4_900,
        t_faw: 13_328,
        ..DDR4_2400_X16
    },
    Preset {
        name: "hbm2",
        title: "HBM2 at 900 MHz, one pseudo-channel of 64 bits",
        channels: 1,
        interleave: 4096,
        bus_bytes: 8,
        burst: 4,
        bank_groups: 4,
        banks: 4,
        row_bytes: 1024,
        t_ck: 1111,
        cl: 18_000,
        cwl: 7_000,
        t_rcd: 12_000,
        t_rp: 14_000,
        t_ras: 28_000,
        t_rrd_s: 4_000,
        t_rrd_l: 6_000,
        t_faw: 16_000,
        t_ccd_s: 2 * 1111,
        t_ccd_l: 3_333,
        t_wtr_s: 4_000,
        t_wtr_l: 9_000,
        t_wr: 14_000,
        t_rtp: 5_000,
        t_rfc: 260_000,
        t_refi: 3_900_000,
        path: 150_000,
    },
];

impl Preset {
    /// The preset of that name.
    pub fn find(name: &str) -> Option<&'static Preset> {
        PRESETS.iter().find(|preset| preset.name == name)
    }

    /// Bytes of an access: a burst on the data bus.
    pub fn access_bytes(&self) -> u64 {
        self.bus_bytes * self.burst
    }

    /// Most bytes a second, of all channels together.
    pub fn peak(&self) -> f64 {
        (2 * self.bus_bytes * self.channels as u64) as f64 / self.t_ck as f64 * 1e12
    }

    /// An access on the data bus, ps.
    pub(crate) fn t_burst(&self) -> u64 {
        self.burst / 2 * self.t_ck
    }

    /// The bus has been silent when the last column command is as long ago.
    pub(crate) fn t_idle(&self) -> u64 {
        self.cl + self.t_burst()
    }

    /// Channel, bank and row of an address. From below: the access, the bank group, so that a stream
    /// goes through the groups in turn, the column, the bank, the row.
    pub(crate) fn place(&self, addr: u64) -> (usize, Place) {
        let stripe = addr / self.interleave;
        let channel = (stripe % self.channels as u64) as usize;
        let addr = stripe / self.channels as u64 * self.interleave + addr % self.interleave;
        let group = addr / self.access_bytes() % self.bank_groups as u64;
        let above = addr / (self.row_bytes * self.bank_groups as u64);
        let bank = above % self.banks as u64;
        let place = Place {
            bank: (group * self.banks as u64 + bank) as usize,
            row: above / self.banks as u64,
        };
        (channel, place)
    }
}
