//! A sweep as a picture: tokens a second over the share of the part, the Pareto front as a line.

use std::fmt::Write;

use super::sweep::Point;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 460.0;
const LEFT: f64 = 64.0;
const BOTTOM: f64 = 46.0;
const TOP: f64 = 40.0;
const RIGHT: f64 = 20.0;

/// The sweep as SVG. Points whose area is not known are left out, and counted in the caption.
pub fn svg(points: &[Point], title: &str) -> String {
    let known: Vec<(&Point, f64)> = points
        .iter()
        .filter_map(|p| Some((p, p.part_percent?)))
        .collect();
    let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
    let (x_step, x_end) = axis(most(&mut known.iter().map(|k| k.1)));
    let (y_step, y_end) = axis(most(&mut known.iter().map(|k| k.0.decode_tokens_per_s)));
    let x = |v: f64| LEFT + (WIDTH - LEFT - RIGHT) * v / x_end;
    let y = |v: f64| HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * v / y_end;

    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\
         <style>text{{font:12px system-ui,sans-serif;fill:#333}}.grid{{stroke:#ddd}}\
         .front{{stroke:#d43f3a;fill:none;stroke-width:1.6}}.best{{fill:#d43f3a}}.other{{fill:#2a78d6;fill-opacity:.55}}\
         .page{{fill:#fff}}.name{{paint-order:stroke;stroke:#fff;stroke-width:3px}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}.grid{{stroke:#444}}.page{{fill:#1b1b1a}}.name{{stroke:#1b1b1a}}}}</style>\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/><text x=\"{LEFT}\" y=\"22\">{}</text>",
        escape(title)
    );
    let mut tick = 0.0;
    while tick <= x_end * 1.0001 {
        let at = x(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{at:.1} {TOP}V{:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            HEIGHT - BOTTOM,
            HEIGHT - BOTTOM + 16.0,
            number(tick)
        );
        tick += x_step;
    }
    tick = 0.0;
    while tick <= y_end * 1.0001 {
        let at = y(tick);
        let _ = write!(
            svg,
            "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            number(tick)
        );
        tick += y_step;
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">largest share of the part, %</text>\
         <text x=\"8\" y=\"{:.1}\">tokens/s</text>",
        WIDTH - RIGHT,
        HEIGHT - 10.0,
        TOP - 6.0
    );
    let mut front: Vec<&(&Point, f64)> = known.iter().filter(|k| k.0.pareto).collect();
    front.sort_by(|a, b| a.1.total_cmp(&b.1));
    let line: Vec<String> = front
        .iter()
        .map(|(p, cost)| format!("{:.1},{:.1}", x(*cost), y(p.decode_tokens_per_s)))
        .collect();
    let _ = write!(
        svg,
        "<polyline class=\"front\" points=\"{}\"/>",
        line.join(" ")
    );
    for (point, cost) in &known {
        let class = if point.pareto { "best" } else { "other" };
        let name = name(point);
        let (px, py) = (x(*cost), y(point.decode_tokens_per_s));
        let _ = write!(
            svg,
            "<circle class=\"{class}\" cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"4\"><title>{name}: {:.2} tokens/s, {cost:.0} %</title></circle>",
            point.decode_tokens_per_s
        );
        if point.pareto {
            let (anchor, dx) = if px > 0.8 * WIDTH {
                ("end", -7.0)
            } else {
                ("start", 7.0)
            };
            let _ = write!(
                svg,
                "<text class=\"name\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{name}</text>",
                px + dx,
                py + 14.0
            );
        }
    }
    let without = points.len() - known.len();
    if without > 0 {
        let _ = write!(
            svg,
            "<text x=\"{LEFT}\" y=\"{:.1}\">{without} configurations without a known area are not shown</text>",
            HEIGHT - 10.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn name(p: &Point) -> String {
    let engines = match p.engines {
        1 => String::new(),
        n => format!("{n} × "),
    };
    format!("{engines}w{}b{}, {} MHz", p.width, p.blocks, p.clock_mhz)
}

/// Step and end of an axis from 0 to at least `most`: steps of 1, 2 or 5 times a power of ten.
fn axis(most: f64) -> (f64, f64) {
    let most = if most > 0.0 { most } else { 1.0 };
    let power = 10f64.powf((most / 5.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|step| most / step <= 6.0)
        .unwrap_or(10.0 * power);
    (step, (most / step).ceil() * step)
}

/// Without zeros at its end.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
