//! What the memory behind a cycle-accurate target is like, and what is watched of it.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use weightstream_memory::Setting;

/// Timing of the memory behind a simulated bus. The model, which has no clock, takes no notice.
///
/// The default is a memory of 60 cycles' latency that supplies a beat every cycle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conditions {
    /// Cycles from an address (or the last write data) to the first response, at least 1.
    pub latency: u32,
    /// Bursts that a port's reads or writes may have in flight, 1 to 64.
    pub max_outstanding: u32,
    /// Most data beats of all ports together: (beats, in so many cycles).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<(u32, u32)>,
    /// No data moves for so many cycles of every interval: (interval, cycles).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh: Option<(u32, u32)>,
    /// DRAM in place of the fixed latency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dram: Option<Setting>,
    #[serde(skip_serializing_if = "Stalls::is_empty")]
    pub stalls: Stalls,
}

impl Default for Conditions {
    fn default() -> Conditions {
        Conditions {
            latency: 60,
            max_outstanding: 16,
            bandwidth: None,
            refresh: None,
            dram: None,
            stalls: Stalls::default(),
        }
    }
}

impl Conditions {
    /// Cycles for which a refresh holds the memory; 0 where there is none.
    pub fn refresh_cycles(&self) -> u64 {
        match (&self.dram, self.refresh) {
            (Some(dram), _) => dram.refresh_cycles(),
            (None, Some((_, cycles))) => cycles.into(),
            (None, None) => 0,
        }
    }
}

/// The channels of the accelerator's AXI ports, in the simulation's order.
pub const CHANNELS: [&str; 15] = [
    "ctrl_aw", "ctrl_w", "ctrl_b", "ctrl_ar", "ctrl_r", "sg_aw", "sg_w", "sg_b", "sg_ar", "sg_r",
    "mm2s_ar", "mm2s_r", "s2mm_aw", "s2mm_w", "s2mm_b",
];

/// The chance that a channel stalls in a cycle, in percent (0 to 99), for each of [`CHANNELS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "BTreeMap<String, u8>", into = "BTreeMap<String, u8>")]
pub struct Stalls(pub [u8; CHANNELS.len()]);

impl Stalls {
    /// Whether no channel stalls.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|&percent| percent == 0)
    }

    fn set(&mut self, channel: &str, percent: u8) -> Result<(), String> {
        if percent > 99 {
            return Err(format!("{percent} % on {channel} is not 0 to 99 %"));
        }
        if channel == "all" {
            self.0 = [percent; CHANNELS.len()];
            return Ok(());
        }
        let known = CHANNELS.iter().position(|name| *name == channel);
        let channel = known.ok_or_else(|| {
            format!(
                "no channel {channel:?}; there are all, {}",
                CHANNELS.join(", ")
            )
        })?;
        self.0[channel] = percent;
        Ok(())
    }
}

impl TryFrom<BTreeMap<String, u8>> for Stalls {
    type Error = String;

    fn try_from(map: BTreeMap<String, u8>) -> Result<Stalls, String> {
        let mut stalls = Stalls::default();
        map.iter()
            .try_for_each(|(channel, percent)| stalls.set(channel, *percent))?;
        Ok(stalls)
    }
}

impl From<Stalls> for BTreeMap<String, u8> {
    fn from(stalls: Stalls) -> Self {
        let stalled = CHANNELS
            .iter()
            .zip(stalls.0)
            .filter(|(_, percent)| *percent > 0);
        stalled
            .map(|(channel, percent)| (channel.to_string(), percent))
            .collect()
    }
}

/// As `mm2s_r=20,s2mm_w=5`; `all` names every channel.
impl FromStr for Stalls {
    type Err = String;

    fn from_str(s: &str) -> Result<Stalls, String> {
        let mut stalls = Stalls::default();
        for item in s.split(',').filter(|item| !item.is_empty()) {
            let (channel, percent) = item
                .split_once('=')
                .ok_or_else(|| format!("{item:?} is not CHANNEL=PERCENT"))?;
            let percent = percent
                .parse()
                .map_err(|_| format!("{percent:?} on {channel} is not 0 to 99 %"))?;
            stalls.set(channel, percent)?;
        }
        Ok(stalls)
    }
}

impl fmt::Display for Stalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.0[0];
        if first > 0 && *self == Stalls([first; CHANNELS.len()]) {
            return write!(f, "all={first}");
        }
        let map = BTreeMap::from(*self);
        let items: Vec<String> = map.iter().map(|(c, p)| format!("{c}={p}")).collect();
        f.write_str(&items.join(","))
    }
}

/// An FST trace of the RTL's signals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    pub path: PathBuf,
    /// The cycles in it, counted from the simulation's begin. The others run at full speed.
    pub cycles: Range<u64>,
}

/// Which data port of the DMA a beat is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// `m_axi_mm2s`: headers, activations, weights.
    Mm2s,
    /// `m_axi_s2mm`: results.
    S2mm,
}

/// A data beat on one of the DMA's data ports ([`super::Device::take_beats`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    pub port: Port,
    /// The cycle in which it moved.
    pub cycle: u64,
    /// Device address of the bus word.
    pub addr: u64,
    /// Cycles before in which it was due and the memory held it back.
    pub stalled: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_are_read_as_they_are_written() {
        let stalls: Stalls = "mm2s_r=20,s2mm_w=5".parse().unwrap();
        assert_eq!(stalls.0[11], 20);
        assert_eq!(stalls.0.iter().map(|p| u32::from(*p)).sum::<u32>(), 25);
        assert_eq!(stalls.to_string().parse(), Ok(stalls));
        assert_eq!("all=7".parse(), Ok(Stalls([7; 15])));
        assert_eq!(Stalls([7; 15]).to_string(), "all=7");
        assert_eq!(Stalls::default().to_string(), "");
        assert_eq!("".parse(), Ok(Stalls::default()));
        let json = serde_json::to_string(&stalls).unwrap();
        assert_eq!(json, r#"{"mm2s_r":20,"s2mm_w":5}"#);
        assert_eq!(serde_json::from_str::<Stalls>(&json).unwrap(), stalls);
    }

    #[test]
    fn bad_stalls_are_named() {
        for (text, says) in [
            ("mm2s=3", "no channel \"mm2s\"; there are all, ctrl_aw"),
            ("mm2s_r=100", "100 % on mm2s_r is not 0 to 99 %"),
            ("mm2s_r=x", "\"x\" on mm2s_r"),
            ("mm2s_r", "is not CHANNEL=PERCENT"),
        ] {
            let error = text.parse::<Stalls>().unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
