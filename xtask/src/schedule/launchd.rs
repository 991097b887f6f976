//! An agent of launchd, on macOS.

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::job::{ARGUMENTS, Job};
use super::tool;
use crate::files;

pub(super) const fn is_there() -> bool {
    cfg!(target_os = "macos")
}

pub(super) async fn add(job: &Job) -> Result<()> {
    let path = file(job)?;
    let folder = path.parent().context("a file without a folder")?;
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    if holds(job).await? {
        tool::must("launchctl", &["bootout", &target(job).await?], "").await?;
    }
    files::write(&path, text(job).as_bytes(), files::Mode::Readable)?;
    tool::must("launchctl", &["bootstrap", &domain().await?, &path.to_string_lossy()], "").await
}

pub(super) async fn take_away(job: &Job) -> Result<()> {
    if holds(job).await? {
        tool::must("launchctl", &["bootout", &target(job).await?], "").await?;
    }
    files::remove(&file(job)?).map(drop)
}

pub(super) async fn holds(job: &Job) -> Result<bool> {
    Ok(tool::succeeds("launchctl", &["print", &target(job).await?]).await)
}

async fn target(job: &Job) -> Result<String> {
    Ok(format!("{}/{}", domain().await?, job.name))
}

async fn domain() -> Result<String> {
    let output = tool::output("id", &["-u"], "").await?;
    Ok(format!("gui/{}", String::from_utf8_lossy(&output.stdout).trim()))
}

#[allow(clippy::disallowed_methods, reason = "a folder of launchd's, not a setting of ours")]
fn file(job: &Job) -> Result<PathBuf> {
    let user = std::env::var_os("HOME").context("the user's own folder is unknown")?;
    Ok(PathBuf::from(user).join("Library/LaunchAgents").join(format!("{}.plist", job.name)))
}

/// launchd.plist(5). A start that was missed while the machine slept is made up for when it wakes.
fn text(job: &Job) -> String {
    let program = job.program.display().to_string();
    let words: Vec<_> = std::iter::once(program.as_str())
        .chain(ARGUMENTS)
        .map(|word| format!("\t\t<string>{}</string>\n", escaped(word)))
        .collect();
    let words = words.concat();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n\
         <dict>\n\
         \t<key>Label</key>\n\t<string>{}</string>\n\
         \t<key>ProgramArguments</key>\n\t<array>\n{words}\t</array>\n\
         \t<key>StartInterval</key>\n\t<integer>3600</integer>\n\
         \t<key>RunAtLoad</key>\n\t<true/>\n\
         \t<key>ProcessType</key>\n\t<string>Background</string>\n\
         \t<key>LowPriorityIO</key>\n\t<true/>\n\
         </dict>\n\
         </plist>\n",
        job.name
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use memory::home::Home;

    use super::*;

    #[track_caller]
    fn check(home: &str, expected_program: &str) {
        let job = Job::of(&Home::at(home));
        let text = text(&job);
        let words = format!(
            "\t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{expected_program}</string>\n\t\t<string>backup</string>\n\
             \t\t<string>--scheduled</string>\n\t\t<string>--if-due</string>\n\t\t<string>--quiet</string>\n\t</array>\n"
        );
        assert!(text.contains(&words), "{text}");
        assert!(text.contains(&format!("<key>Label</key>\n\t<string>{}</string>", job.name)), "{text}");
        let opened = text.matches("<dict>").count() + text.matches("<array>").count();
        let closed = text.matches("</dict>").count() + text.matches("</array>").count();
        assert_eq!(opened, closed);
        assert!(text.contains("<integer>3600</integer>") && text.ends_with("</dict>\n</plist>\n"), "{text}");
    }

    #[test]
    fn writes_a_file_that_starts_the_installed_program_each_hour() {
        check(
            "/Users/ann/Library/Application Support/agent-memory",
            "/Users/ann/Library/Application Support/agent-memory/bin/agent-memory",
        );
        check("/Users/a&b/<memory>", "/Users/a&amp;b/&lt;memory&gt;/bin/agent-memory");
    }
}
