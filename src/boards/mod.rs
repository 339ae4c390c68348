//! Boards as their files in `boards/` describe them: memory, fabric, host.
//!
//! The file's table `[device]`, how the board is opened, belongs to the target for boards.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::memory::{Setting, SettingError};
use crate::target::Conditions;
use crate::timing::Config;

/// A board's description.
#[derive(Clone, Debug, PartialEq)]
pub struct Board {
    pub name: String,
    /// The FPGA, as its vendor's tools name it.
    pub part: String,
    pub memory: Memory,
    pub fabric: Fabric,
    pub host: Option<Host>,
}

/// The file's tables that are ours.
#[derive(Deserialize)]
struct File {
    board: Identity,
    memory: Memory,
    fabric: Fabric,
    host: Option<Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Identity {
    name: String,
    part: String,
    /// Where the description is from, for its readers.
    #[serde(rename = "source")]
    _source: String,
}

/// The memory that weights are streamed from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Memory {
    /// Name of a memory of [`crate::memory::PRESETS`], all its channels.
    pub preset: String,
    /// For DMA buffers, MiB.
    pub heap_mib: u64,
}

/// The accelerator's configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fabric {
    /// Clock of accelerator and ports.
    pub clock_mhz: u32,
    /// Width of an engine's bus.
    pub bus_bits: usize,
    /// Blocks of 32 weights a cycle, an engine.
    pub blocks_per_cycle: usize,
    #[serde(default = "one")]
    pub engines: usize,
}

fn one() -> usize {
    1
}

/// The CPU beside it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub cpu: String,
    pub cores: u32,
    pub clock_mhz: u32,
    /// At which it reads its memory, where that is known.
    pub gb_per_s: Option<f64>,
}

/// Why a board's file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BoardError {
    #[error("{}: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("{}: {field} is {value}, not {wanted}", path.display())]
    Value {
        path: PathBuf,
        field: &'static str,
        value: String,
        wanted: String,
    },
}

impl Board {
    /// Reads a board's file.
    ///
    /// # Errors
    /// If it cannot be read, is no TOML, lacks a field, has one that is not known, or a value that
    /// cannot be.
    pub fn read(path: &Path) -> Result<Board, BoardError> {
        let text = std::fs::read_to_string(path).map_err(|source| BoardError::Io {
            path: path.to_owned(),
            source,
        })?;
        Board::parse(path, &text)
    }

    /// As [`Board::read`], of the text of the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Board, BoardError> {
        let file: File = toml::from_str(text).map_err(|e| BoardError::Syntax {
            path: path.to_owned(),
            message: e.to_string(),
        })?;
        let board = Board {
            name: file.board.name,
            part: file.board.part,
            memory: file.memory,
            fabric: file.fabric,
            host: file.host,
        };
        match board.wrong() {
            None => Ok(board),
            Some((field, value, wanted)) => Err(BoardError::Value {
                path: path.to_owned(),
                field,
                value,
                wanted,
            }),
        }
    }

    /// A field that cannot be so, its value, what is wanted.
    fn wrong(&self) -> Option<(&'static str, String, String)> {
        let Board {
            memory,
            fabric,
            host,
            ..
        } = self;
        match Setting::new(&memory.preset, fabric.clock_mhz) {
            Err(e @ SettingError::UnknownPreset(_)) => {
                return Some(("memory.preset", memory.preset.clone(), e.to_string()));
            }
            Err(SettingError::Clock(clock)) => {
                return Some(("fabric.clock_mhz", clock, "1 to 1000".into()));
            }
            Ok(_) => {}
        }
        if memory.heap_mib == 0 {
            return Some(("memory.heap_mib", "0".into(), "at least 1".into()));
        }
        let choices = [
            ("fabric.bus_bits", fabric.bus_bits, &[64, 128, 256, 512][..]),
            (
                "fabric.blocks_per_cycle",
                fabric.blocks_per_cycle,
                &[1, 2, 4],
            ),
            ("fabric.engines", fabric.engines, &[1, 2, 3, 4]),
        ];
        for (field, value, wanted) in choices {
            if !wanted.contains(&value) {
                return Some((field, value.to_string(), format!("one of {wanted:?}")));
            }
        }
        let host = host.as_ref()?;
        if host.cores == 0 {
            return Some(("host.cores", "0".into(), "at least 1".into()));
        }
        let rate = host
            .gb_per_s
            .filter(|rate| !rate.is_finite() || *rate <= 0.0)?;
        Some(("host.gb_per_s", rate.to_string(), "more than 0".into()))
    }

    /// The accelerator's parameters; those that a file does not have are at the RTL's defaults.
    pub fn config(&self) -> Config {
        Config::new(self.fabric.bus_bits / 8, self.fabric.blocks_per_cycle)
    }

    /// The memory as the fabric sees it, for the timing model or the RTL's simulation.
    pub fn conditions(&self) -> Conditions {
        let setting = Setting::new(&self.memory.preset, self.fabric.clock_mhz);
        Conditions {
            // Checked when the file was read.
            dram: setting.ok(),
            ..Conditions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("boards")
    }

    #[test]
    fn every_board_is_read() {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder()).unwrap() {
            let board = Board::read(&entry.unwrap().path()).unwrap();
            assert!(board.conditions().dram.is_some());
            assert_eq!(board.config().bus_bytes * 8, board.fabric.bus_bits);
            names.push(board.name);
        }
        names.sort();
        assert_eq!(names, ["Alveo U250", "KV260", "PYNQ-Z1", "ZCU104"]);
    }

    #[test]
    fn what_cannot_be_is_named() {
        let path = folder().join("kv260.toml");
        let good = std::fs::read_to_string(&path).unwrap();
        for (from, to, says) in [
            ("\"ddr4-2400\"", "\"ddr9\"", "memory.preset is ddr9"),
            ("clock_mhz = 300", "clock_mhz = 0", "fabric.clock_mhz is 0"),
            (
                "bus_bits = 512",
                "bus_bits = 96",
                "fabric.bus_bits is 96, not one of [64",
            ),
            ("engines = 1", "engines = 9", "fabric.engines is 9"),
            ("cores = 4", "cores = 0", "host.cores is 0"),
            ("heap_mib = 3584", "heap_mib = 0", "memory.heap_mib is 0"),
            (
                "cores = 4",
                "cores = 4\ncolour = 1",
                "unknown field `colour`",
            ),
            ("bus_bits = 512", "", "missing field `bus_bits`"),
            ("[memory]", "[memory", "TOML parse error"),
        ] {
            assert!(good.contains(from), "{from}");
            let bad = good.replacen(from, to, 1);
            let error = Board::parse(&path, &bad).unwrap_err().to_string();
            assert!(
                error.contains(says) && error.contains("kv260.toml"),
                "{error}"
            );
        }
    }
}
