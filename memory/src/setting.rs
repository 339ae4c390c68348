//! A memory and the clock of the fabric that sees it, as a word on the command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{PRESETS, Preset};

/// A preset seen from a fabric of so many MHz; written `ddr4-2400@250`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting {
    pub preset: &'static Preset,
    /// 1 to 1000.
    pub clock_mhz: u32,
}

/// Why a word is no setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("no memory {0:?}; there are {names}", names = PRESETS.each_ref().map(|p| p.name).join(", "))]
    UnknownPreset(String),
    #[error("the fabric's clock {0:?} is not 1 to 1000 MHz")]
    Clock(String),
}

/// The clock where none is named, MHz.
const CLOCK: u32 = 200;

impl Setting {
    /// # Errors
    /// If there is no such preset, or the clock is out of range.
    pub fn new(name: &str, clock_mhz: u32) -> Result<Setting, SettingError> {
        let preset = Preset::find(name).ok_or_else(|| SettingError::UnknownPreset(name.into()))?;
        if !(1..=1000).contains(&clock_mhz) {
            return Err(SettingError::Clock(clock_mhz.to_string()));
        }
        Ok(Setting { preset, clock_mhz })
    }

    /// Cycles of the fabric that a refresh takes, precharge included.
    pub fn refresh_cycles(&self) -> u64 {
        let preset = self.preset;
        ((preset.t_rp + preset.t_rfc) * u64::from(self.clock_mhz)).div_ceil(1_000_000)
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    fn from_str(s: &str) -> Result<Setting, SettingError> {
        let (name, clock) = match s.split_once('@') {
            Some((name, clock)) => {
                let clock = clock
                    .parse()
                    .map_err(|_| SettingError::Clock(clock.into()))?;
                (name, clock)
            }
            None => (s, CLOCK),
        };
        Setting::new(name, clock)
    }
}

impl TryFrom<String> for Setting {
    type Error = SettingError;

    fn try_from(word: String) -> Result<Setting, SettingError> {
        word.parse()
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> String {
        setting.to_string()
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.preset.name, self.clock_mhz)
    }
}
