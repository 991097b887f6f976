//! `logs`: the last lines of the services' logs, and with `--follow` what comes after.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use memory::home::Home;

use crate::cli::{LogsArgs, Service};
use crate::files;
use crate::output::Printer;
use crate::runtime::{self, Installation, LogRequest, RuntimeKind, docker};

pub(super) async fn run(arguments: &LogsArgs, home: &Home, printer: &Printer) -> Result<()> {
    let installation = Installation::require(home)?;
    let request = LogRequest { service: arguments.service, follow: arguments.follow, lines: arguments.lines };
    if installation.runtime == RuntimeKind::Docker {
        return docker::logs(&docker::require().await?, home, printer, request).await;
    }
    let mut logs: Vec<_> = [Service::Postgres, Service::Server]
        .into_iter()
        .filter(|service| request.service.is_none_or(|wanted| wanted == *service))
        // The user's own Postgres keeps its log elsewhere.
        .filter(|service| installation.runtime == RuntimeKind::Embedded || *service == Service::Server)
        .map(|service| Log::of(service, home))
        .collect();
    for log in &mut logs {
        log.print_last(request.lines, printer);
    }
    if !request.follow {
        return Ok(());
    }
    // Until the operator ends it.
    loop {
        tokio::time::sleep(Duration::from_millis(250)).await;
        for log in &mut logs {
            log.print_new(printer);
        }
    }
}

struct Log {
    label: &'static str,
    path: PathBuf,
    printed_bytes: u64,
}

impl Log {
    fn of(service: Service, home: &Home) -> Self {
        let (label, name) = match service {
            Service::Server => ("server  ", "server.log"),
            Service::Postgres => ("postgres", "postgres.log"),
        };
        Self { label, path: home.logs().join(name), printed_bytes: 0 }
    }

    fn print_last(&mut self, lines: usize, printer: &Printer) {
        self.printed_bytes = std::fs::metadata(&self.path).map_or(0, |metadata| metadata.len());
        self.print(&files::tail(&self.path, lines), printer);
    }

    fn print_new(&mut self, printer: &Printer) {
        let Ok(mut file) = File::open(&self.path) else { return };
        // A shorter file is a new one: the old was put aside.
        if file.metadata().is_ok_and(|metadata| metadata.len() < self.printed_bytes) {
            self.printed_bytes = 0;
        }
        let mut bytes = Vec::new();
        let read = file.seek(SeekFrom::Start(self.printed_bytes)).and_then(|_| file.read_to_end(&mut bytes));
        // Half a line waits for its other half.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if read.is_ok() && whole > 0 {
            self.printed_bytes += whole as u64;
            self.print(&String::from_utf8_lossy(&bytes[..whole]), printer);
        }
    }

    fn print(&self, text: &str, printer: &Printer) {
        for line in text.lines() {
            printer.data(format_args!("{} | {}", self.label, runtime::readable(line)));
        }
    }
}
