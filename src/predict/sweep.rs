//! Many configurations at once: what each reaches, what it costs, which are worth it.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::area::{self, Resources};
use super::host::Host;
use super::model::Model;
use super::{Platform, Request, predict};
use crate::timing::JobError;

/// What is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// MHz.
    Clock,
    /// Bits of the bus. Without an axis for blocks, blocks a cycle follow it.
    Width,
    /// Blocks of 32 weights a cycle.
    Blocks,
    /// Engines side by side.
    Engines,
    /// Most columns of a job.
    Cols,
    /// Largest k.
    MaxK,
    /// Tokens of context.
    Context,
}

const AXES: [(Axis, &str, &[u32]); 7] = [
    (Axis::Clock, "clock", &[]),
    (Axis::Width, "width", &[64, 128, 256, 512]),
    (Axis::Blocks, "blocks", &[1, 2, 4]),
    (Axis::Engines, "engines", &[1, 2, 3, 4]),
    (Axis::Cols, "cols", &[]),
    (Axis::MaxK, "max-k", &[]),
    (Axis::Context, "context", &[]),
];

impl Axis {
    pub fn name(self) -> &'static str {
        AXES.iter().find(|a| a.0 == self).map_or("", |a| a.1)
    }
}

/// An axis and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values {
    pub axis: Axis,
    pub values: Vec<u32>,
}

impl FromStr for Values {
    type Err = String;

    /// As `clock=150,200,250`.
    fn from_str(text: &str) -> Result<Values, String> {
        let names = || AXES.map(|a| a.1).join(", ");
        let (name, list) = text.split_once('=').ok_or_else(|| {
            format!(
                "{text:?} is not of the form clock=150,200; there are {}",
                names()
            )
        })?;
        let (axis, _, allowed) = AXES
            .iter()
            .find(|a| a.1 == name)
            .ok_or_else(|| format!("unknown axis {name:?}; there are {}", names()))?;
        let value = |text: &str| -> Result<u32, String> {
            let value = text
                .parse()
                .map_err(|_| format!("{name}: {text:?} is not a number"))?;
            let most = if *axis == Axis::Clock { 1000 } else { 1 << 24 };
            let fits = match allowed.is_empty() {
                true => (1..=most).contains(&value),
                false => allowed.contains(&value),
            };
            let wanted = || match allowed.is_empty() {
                true => format!("1 to {most}"),
                false => allowed
                    .iter()
                    .map(u32::to_string)
                    .collect::<Vec<_>>()
                    .join(", "),
            };
            fits.then_some(value)
                .ok_or_else(|| format!("{name}: {value} is not one of {}", wanted()))
        };
        let values = list.split(',').map(value).collect::<Result<_, _>>()?;
        Ok(Values {
            axis: *axis,
            values,
        })
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.values.iter().map(u32::to_string).collect();
        write!(f, "{}={}", self.axis.name(), values.join(","))
    }
}

/// A configuration and what it reaches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    pub clock_mhz: u32,
    pub width: usize,
    pub blocks: usize,
    pub engines: usize,
    pub cols: usize,
    pub max_k: usize,
    pub context: usize,
    pub decode_tokens_per_s: f64,
    pub prefill_tokens_per_s: f64,
    /// Of the memory's peak, while a token is decoded.
    pub use_of_peak: f64,
    pub lut: Option<f64>,
    pub ff: Option<f64>,
    pub dsp: Option<f64>,
    pub bram36: Option<f64>,
    /// The largest share of the part, percent; none where the configuration's area is not known.
    pub part_percent: Option<f64>,
    /// No other one reaches as much for as little.
    pub pareto: bool,
}

/// Blocks a cycle that go with a bus: as many Q4_0 blocks as it brings in a cycle, at least one.
pub fn blocks_of(width: usize) -> usize {
    (width / 128).clamp(1, 4)
}

/// Predicts every combination of the axes' values. `part` names the part that costs are taken of.
///
/// # Errors
/// As [`predict`].
pub fn sweep(
    model: &Model,
    base: &Platform,
    host: &Host,
    request: Request,
    axes: &[Values],
    part: &str,
) -> Result<Vec<Point>, JobError> {
    let follows =
        axes.iter().any(|a| a.axis == Axis::Width) && !axes.iter().any(|a| a.axis == Axis::Blocks);
    let mut points = Vec::new();
    let combinations = axes.iter().map(|a| a.values.len()).product::<usize>();
    for number in 0..combinations {
        let (mut platform, mut request, mut rest) = (base.clone(), request, number);
        for Values { axis, values } in axes.iter().rev() {
            let value = values[rest % values.len()] as usize;
            rest /= values.len();
            let config = &mut platform.config;
            match axis {
                Axis::Clock => platform.clock_mhz = value as u32,
                Axis::Width => config.bus_bytes = value / 8,
                Axis::Blocks => config.blocks_per_cycle = value,
                Axis::Engines => platform.engines = value,
                Axis::Cols => config.max_cols = value,
                Axis::MaxK => config.max_k = value,
                Axis::Context => request.context = value,
            }
        }
        if follows {
            platform.config.blocks_per_cycle = blocks_of(8 * platform.config.bus_bytes);
        }
        let prediction = predict(model, &platform, host, request)?;
        let config = platform.config;
        let (width, blocks) = (8 * config.bus_bytes, config.blocks_per_cycle);
        let engines = platform.engines;
        let cost = area::cost(width, blocks, part);
        let of = |f: fn(&Resources) -> f64| cost.map(|c| engines as f64 * f(&c.takes));
        points.push(Point {
            clock_mhz: platform.clock_mhz,
            width,
            blocks,
            engines,
            cols: config.max_cols,
            max_k: config.max_k,
            context: request.context,
            decode_tokens_per_s: prediction.decode.tokens_per_s,
            prefill_tokens_per_s: prediction.prefill.tokens_per_s,
            use_of_peak: prediction.decode.use_of_peak,
            lut: of(|a| a.lut),
            ff: of(|a| a.ff),
            dsp: of(|a| a.dsp),
            bram36: of(|a| a.bram36),
            part_percent: cost.map(|c| c.percent(engines)),
            pareto: false,
        });
    }
    mark(&mut points);
    Ok(points)
}

/// Marks the points that no other beats in tokens a second and in cost. What does not fit the part
/// is none of them.
fn mark(points: &mut [Point]) {
    let costs: Vec<(Option<f64>, f64)> = points
        .iter()
        .map(|p| {
            (
                p.part_percent.filter(|c| *c <= 100.0),
                p.decode_tokens_per_s,
            )
        })
        .collect();
    for (n, point) in points.iter_mut().enumerate() {
        let (Some(cost), rate) = costs[n] else {
            continue;
        };
        point.pareto = !costs.iter().any(|&(other, other_rate)| {
            other.is_some_and(|other| {
                other <= cost && other_rate >= rate && (other < cost || other_rate > rate)
            })
        });
    }
}

/// The points as CSV, a line each.
pub fn csv(points: &[Point]) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for point in points {
        writer.serialize(point)?;
    }
    writer
        .into_inner()
        .map_err(|e| csv::Error::from(e.into_error()))
}
