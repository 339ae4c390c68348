//! A channel: its banks, its data bus, its refresh. All times are in ps.

use std::collections::VecDeque;
use std::ops::Add;

use crate::Preset;

/// Where an access goes within a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub bank: usize,
    pub row: u64,
}

/// What a memory has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Accesses to a row that was open, to a bank without one, to a bank with another.
    pub hits: u64,
    pub closed: u64,
    pub conflicts: u64,
    pub refreshes: u64,
    /// Turns of the data bus.
    pub turnarounds: u64,
}

impl Add for Stats {
    type Output = Stats;

    fn add(self, other: Stats) -> Stats {
        Stats {
            hits: self.hits + other.hits,
            closed: self.closed + other.closed,
            conflicts: self.conflicts + other.conflicts,
            refreshes: self.refreshes + other.refreshes,
            turnarounds: self.turnarounds + other.turnarounds,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Bank {
    open: Option<u64>,
    /// From when on it may be activated, accessed, precharged.
    activate: u64,
    access: u64,
    precharge: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Read,
    Write,
}

/// Accesses that writes wait for until they go together: half of the 32 entries or so that a
/// controller's write queue has.
const WRITE_BATCH: usize = 16;

pub struct Channel {
    preset: &'static Preset,
    banks: Vec<Bank>,
    /// The last four activations, the oldest first, and the last one's bank group.
    activations: [u64; 4],
    group: usize,
    /// The last column command: when, which way, to which bank group; none yet.
    last: Option<(u64, Direction, usize)>,
    next_refresh: u64,
    /// Writes that the controller holds, with their arrival.
    writes: VecDeque<(u64, Place)>,
    stats: Stats,
}

impl Channel {
    pub fn new(preset: &'static Preset) -> Channel {
        Channel {
            preset,
            banks: vec![Bank::default(); preset.bank_groups * preset.banks],
            activations: [0; 4],
            group: usize::MAX,
            last: None,
            next_refresh: preset.t_refi,
            writes: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// An access arrives at `at`; when its data has passed the bus.
    pub fn read(&mut self, at: u64, place: Place) -> u64 {
        let idle = self
            .last
            .is_none_or(|(last, ..)| last + self.preset.t_idle() < at);
        if idle || self.writes.len() >= WRITE_BATCH {
            while let Some((arrived, place)) = self.writes.pop_front() {
                self.access(arrived, place, Direction::Write);
            }
        }
        self.access(at, place, Direction::Read)
    }

    /// As [`Channel::read`]; the controller has the data, and keeps it for a while.
    pub fn write(&mut self, at: u64, place: Place) {
        self.writes.push_back((at, place));
    }

    fn access(&mut self, at: u64, place: Place, direction: Direction) -> u64 {
        let p = self.preset;
        let group = place.bank / p.banks;
        let bus = self.bus(direction, group);
        self.refresh(at.max(bus));

        let bank = self.banks[place.bank];
        let ready = if bank.open == Some(place.row) {
            self.stats.hits += 1;
            bank.access
        } else {
            let mut activate = at.max(bank.activate);
            if bank.open.is_some() {
                self.stats.conflicts += 1;
                activate = activate.max(at.max(bank.precharge) + p.t_rp);
            } else {
                self.stats.closed += 1;
            }
            let apart = if group == self.group {
                p.t_rrd_l
            } else {
                p.t_rrd_s
            };
            if self.group != usize::MAX {
                activate = activate.max(self.activations[3] + apart);
            }
            if self.stats.hits + self.stats.closed + self.stats.conflicts > 4 {
                activate = activate.max(self.activations[0] + p.t_faw);
            }
            self.activations.rotate_left(1);
            self.activations[3] = activate;
            self.group = group;
            let bank = &mut self.banks[place.bank];
            bank.open = Some(place.row);
            bank.activate = activate + p.t_ras + p.t_rp;
            bank.precharge = activate + p.t_ras;
            bank.access = activate + p.t_rcd;
            bank.access
        };

        let column = at.max(ready).max(bus);
        let turned = self.last.is_some_and(|(_, last, _)| last != direction);
        self.stats.turnarounds += u64::from(turned);
        self.last = Some((column, direction, group));
        let bank = &mut self.banks[place.bank];
        let (end, precharge) = match direction {
            Direction::Read => (column + p.cl + p.t_burst(), column + p.t_rtp),
            Direction::Write => {
                let end = column + p.cwl + p.t_burst();
                (end, end + p.t_wr)
            }
        };
        bank.precharge = bank.precharge.max(precharge);
        bank.activate = bank.activate.max(bank.precharge + p.t_rp);
        end
    }

    /// From when on the bus and the command rules allow a column command.
    fn bus(&self, direction: Direction, group: usize) -> u64 {
        let p = self.preset;
        let Some((last, before, last_group)) = self.last else {
            return 0;
        };
        let same = last_group == group;
        match (before, direction) {
            (Direction::Read, Direction::Read) | (Direction::Write, Direction::Write) => {
                last + if same { p.t_ccd_l } else { p.t_ccd_s }
            }
            // The data bus must be free of the read's data, and turn.
            (Direction::Read, Direction::Write) => {
                (last + p.cl + p.t_burst() + 2 * p.t_ck).saturating_sub(p.cwl)
            }
            (Direction::Write, Direction::Read) => {
                last + p.cwl + p.t_burst() + if same { p.t_wtr_l } else { p.t_wtr_s }
            }
        }
    }

    /// Refreshes all that is due by `now`: every bank is precharged first.
    fn refresh(&mut self, now: u64) {
        let p = self.preset;
        while self.next_refresh <= now {
            let open = self.banks.iter().filter(|bank| bank.open.is_some());
            let closed = open.map(|bank| bank.precharge + p.t_rp).max().unwrap_or(0);
            let end = self.next_refresh.max(closed) + p.t_rfc;
            for bank in &mut self.banks {
                bank.open = None;
                bank.activate = bank.activate.max(end);
            }
            self.next_refresh += p.t_refi;
            self.stats.refreshes += 1;
        }
    }
}
