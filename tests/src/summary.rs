//! What a run used and what it could not run, one line each, so that nothing is skipped in silence.

use std::fs::OpenOptions;
use std::io::Write;

use crate::settings;

/// Adds one line to the file that [`settings::SUMMARY`] names, else to stderr, past the capture of the test runner.
pub fn line(text: &str) {
    let text = format!("{text}\n");
    let written = settings::get(settings::SUMMARY).map(|path| {
        OpenOptions::new().create(true).append(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()))
    });
    if !matches!(written, Some(Ok(()))) {
        // A summary that cannot be written is no reason to fail a test.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}
