//! What configurations cost, and what parts have: `syn/area.csv`, which `syn/synth.py` makes, and
//! `syn/parts.csv`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The tables of this build.
const AREAS: &str = include_str!("../../syn/area.csv");
const PARTS: &str = include_str!("../../syn/parts.csv");

/// Of each resource, how many.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    pub lut: f64,
    pub ff: f64,
    pub dsp: f64,
    /// Block RAMs of 36 Kb.
    pub bram36: f64,
}

/// What a configuration takes in a family.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Area {
    /// Bits of the bus, blocks a cycle: `w128b1`.
    configuration: String,
    /// As Yosys's `synth_xilinx` names it.
    family: String,
    lut: f64,
    ff: f64,
    dsp: f64,
    bram36: f64,
}

/// What a part has.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Part {
    /// How its name begins.
    part: String,
    family: String,
    lut: f64,
    ff: f64,
    dsp: f64,
    bram36: f64,
}

/// What a configuration takes of a part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    pub takes: Resources,
    pub of: Resources,
}

/// What one engine with `bus_bits` and `blocks` a cycle takes of `part`, as its vendor's tools name
/// it; none where a table does not have it.
pub fn cost(bus_bits: usize, blocks: usize, part: &str) -> Option<Cost> {
    let configuration = format!("w{bus_bits}b{blocks}");
    let part = rows::<Part>(PARTS).find(|p| part.starts_with(&p.part))?;
    let area = rows::<Area>(AREAS)
        .find(|a| a.configuration == configuration && a.family == part.family)?;
    Some(Cost {
        takes: Resources {
            lut: area.lut,
            ff: area.ff,
            dsp: area.dsp,
            bram36: area.bram36,
        },
        of: Resources {
            lut: part.lut,
            ff: part.ff,
            dsp: part.dsp,
            bram36: part.bram36,
        },
    })
}

fn rows<T: DeserializeOwned>(table: &'static str) -> impl Iterator<Item = T> {
    let rows = csv::Reader::from_reader(table.as_bytes()).into_deserialize();
    rows.map(|row| row.expect("the table is ours and tested"))
}

impl Cost {
    /// The largest share of the part that `engines` take, in percent.
    pub fn percent(&self, engines: usize) -> f64 {
        let Cost { takes, of } = self;
        let shares = [
            takes.lut / of.lut,
            takes.ff / of.ff,
            takes.dsp / of.dsp,
            takes.bram36 / of.bram36,
        ];
        100.0 * engines as f64 * shares.into_iter().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_what_parts_need() {
        for area in rows::<Area>(AREAS) {
            let digits: Vec<usize> = area.configuration[1..]
                .split('b')
                .map(|n| n.parse().unwrap())
                .collect();
            for part in rows::<Part>(PARTS).filter(|p| p.family == area.family) {
                let name = format!("{}-some-package", part.part);
                let cost = cost(digits[0], digits[1], &name).unwrap();
                assert!(cost.percent(1) > 0.0 && cost.percent(1) < 100.0, "{cost:?}");
                assert_eq!(cost.percent(2), 2.0 * cost.percent(1));
            }
        }
        assert!(cost(128, 1, "xck26-sfvc784-2LV-c").is_some());
        assert!(cost(128, 1, "unheard of").is_none());
    }
}
