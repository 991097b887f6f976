//! The losses of a run as a picture.

use std::fmt::Write as _;

use crate::train::Record;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 36.0;
const MARGIN: f64 = 16.0;

/// Training loss as a line, validation loss as points; from zero, so that a fall looks as large as it is.
pub(super) fn svg(log: &[Record]) -> String {
    let of = |wanted: fn(&Record) -> Option<f64>| -> Vec<(f64, f64)> {
        log.iter().filter_map(|record| Some((record.step() as f64, wanted(record)?))).collect()
    };
    let train = of(|record| match record {
        Record::Step { loss, .. } => Some(*loss),
        Record::Validation { .. } => None,
    });
    let validation = of(|record| match record {
        Record::Validation { loss, .. } => Some(*loss),
        Record::Step { .. } => None,
    });
    let greatest =
        |axis: fn(&(f64, f64)) -> f64| train.iter().chain(&validation).map(axis).fold(f64::MIN_POSITIVE, f64::max);
    let (steps, losses) = (greatest(|point| point.0), greatest(|point| point.1));
    let place = |(step, loss): (f64, f64)| {
        let across = LEFT + (WIDTH - LEFT - MARGIN) * step / steps;
        let down = MARGIN + (HEIGHT - BOTTOM - MARGIN) * (1.0 - loss / losses);
        (across, down)
    };
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Loss over {steps} steps</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    // Writing to a string does not fail.
    for quarter in 0..=4 {
        let loss = losses * f64::from(quarter) / 4.0;
        let (_, down) = place((0.0, loss));
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" y1=\"{down:.1}\" x2=\"{}\" y2=\"{down:.1}\" stroke=\"#ddd\"/>",
            WIDTH - MARGIN
        );
        let _ =
            writeln!(out, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{loss:.2}</text>", LEFT - 6.0, down + 4.0);
    }
    let middle = (LEFT + WIDTH - MARGIN) / 2.0;
    let _ =
        writeln!(out, "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">step (of {steps})</text>", HEIGHT - 10.0);
    let line: Vec<_> = train.iter().map(|point| place(*point)).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    let _ = writeln!(
        out,
        "<polyline fill=\"none\" stroke=\"#3b6ea5\" stroke-width=\"1.5\" points=\"{}\"/>",
        line.join(" ")
    );
    for point in &validation {
        let (x, y) = place(*point);
        let _ = writeln!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"#c4572a\"/>");
    }
    let _ = writeln!(
        out,
        "<text x=\"{}\" y=\"28\" text-anchor=\"end\" fill=\"#3b6ea5\">training</text>",
        WIDTH - MARGIN - 70.0
    );
    let _ =
        writeln!(out, "<text x=\"{}\" y=\"28\" text-anchor=\"end\" fill=\"#c4572a\">validation</text>", WIDTH - MARGIN);
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_every_step_within_the_picture() {
        let step = |step: usize, loss| Record::Step {
            step,
            loss,
            learning_rate: 1e-4,
            gradient_norm: 1.0,
            tokens: 10,
            tokens_per_second: 1.0,
            peak_bytes: None,
        };
        let log = [step(1, 4.0), step(2, 1.0), Record::Validation { step: 2, loss: 1.5, is_best: true }];
        let picture = svg(&log);
        assert!(picture.contains("points=\"380.0,16.0 704.0,217.0\""), "{picture}");
        assert_eq!(picture.matches("<circle").count(), 1);
    }
}
