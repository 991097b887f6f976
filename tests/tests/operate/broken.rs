//! What can go wrong with backups: a kill in the middle, a damaged file, a full disk. None of it is ever taken for a whole backup, and
//! none touches those that are there.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use memory::home::Home;
use memory::store::{self, TableSum};
use serde_json::Value;
use sqlx::PgPool;
use tests::installed::Installed;
use tests::many_rows::{self, Size};
use tests::{operator, summary, wait};

const SIZE: Size = Size { calls: 60_000, vectors: 0 };

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_not_whole_is_restored_and_whole_ones_stay() -> Result<()> {
    let installed = Installed::embedded().await?;
    many_rows::fill(installed.pool(), SIZE).await?;
    let before = all_but_the_audit(installed.pool()).await?;
    let home = installed.home();
    let nothing = operator::refused(home, &["restore", "latest", "--yes"]).await?;
    assert!(nothing.contains("hint: make one: `cargo xtask backup`"), "{nothing}");

    let whole = made(home, &[]).await?;
    killed_half_way(home, &whole).await?;
    damaged(home, &whole).await?;
    rotated(home, &whole).await?;
    match small_disk(installed.scratch()) {
        Ok(disk) => full_disk(home, &disk).await?,
        Err(why) => {
            summary::line(&format!("backup on a full disk: NOT TESTED, no small disk can be mounted here: {why:#}"));
        }
    }
    assert_eq!(all_but_the_audit(installed.pool()).await?, before, "and the journal is as it was all the time");
    Ok(())
}

/// Every attempt is noted there.
async fn all_but_the_audit(pool: &PgPool) -> Result<Vec<TableSum>> {
    let mut sums = store::table_sums(pool).await?;
    sums.retain(|sum| sum.table != "mem_audit_log");
    Ok(sums)
}

async fn made(home: &Home, more: &[&str]) -> Result<PathBuf> {
    let made = operator::must(home, &[&["backup", "--json"], more].concat()).await?;
    let made: Value = serde_json::from_str(&made)?;
    Ok(PathBuf::from(made["path"].as_str().context("no path")?))
}

async fn killed_half_way(home: &Home, whole: &Path) -> Result<()> {
    let mut running = operator::command(home).await?.arg("backup").spawn().context("starting a backup")?;
    let unfinished = unfinished_in(&home.backups()).await?;
    running.kill().await?;
    assert!(unfinished.exists(), "it was killed in the middle");
    assert_eq!(names(&home.backups())?, [name(whole)], "no other file is named like a backup");
    for command in [&["restore", "--yes"][..], &["backup", "verify"]] {
        let told = operator::refused(home, &[command, &[unfinished.to_str().context("a path")?]].concat()).await?;
        assert!(told.contains("is not named like a backup"), "{told}");
    }
    // Even with a backup's name it is none.
    let renamed = home.backups().join("agent-memory-20300101T000000Z-manual.dump");
    std::fs::copy(&unfinished, &renamed)?;
    let told = operator::refused(home, &["restore", "latest", "--yes"]).await?;
    assert!(told.contains("its checksum") && told.contains("is missing"), "{told}");
    std::fs::remove_file(&renamed)?;
    std::fs::remove_file(made(home, &["--label", "after"]).await?)?;
    assert!(!unfinished.exists(), "the next one sweeps it away");
    Ok(())
}

async fn damaged(home: &Home, whole: &Path) -> Result<()> {
    let content = std::fs::read(whole)?;
    let mut edited = content.clone();
    edited[content.len() / 2] ^= 1;
    for (damage, told) in [(&content[..content.len() - 100], "bytes)"), (&edited[..], "was changed after it was made")]
    {
        std::fs::write(whole, damage)?;
        for command in
            [&["backup", "verify"][..], &["restore", "latest", "--yes"], &["restore", "latest", "--into", "x"]]
        {
            let said = operator::refused(home, command).await?;
            assert!(said.contains("is no whole backup") && said.contains(told) && said.contains("hint: "), "{said}");
        }
    }
    std::fs::write(whole, &content)?;
    operator::must(home, &["backup", "verify"]).await.map(drop)
}

/// Scheduled ones make room for each other, a manual one for none.
async fn rotated(home: &Home, whole: &Path) -> Result<()> {
    operator::set_in(home, "[backup]\ndaily = 1\nweekly = 0\nmonthly = 0\n")?;
    let old = home.backups().join("agent-memory-20200101T000000Z-scheduled.dump");
    std::fs::copy(whole, &old)?;
    let planned: Value =
        serde_json::from_str(&operator::must(home, &["backup", "prune", "--dry-run", "--json"]).await?)?;
    assert_eq!(planned["files"], serde_json::json!([]), "the newest stays: {planned}");
    let scheduled = made(home, &["--scheduled"]).await?;
    assert_eq!(names(&home.backups())?, [name(whole), name(&scheduled)]);
    operator::must(home, &["backup", "prune"]).await?;
    assert_eq!(names(&home.backups())?, [name(whole), name(&scheduled)]);
    std::fs::remove_file(scheduled)?;
    Ok(())
}

async fn full_disk(home: &Home, disk: &Disk) -> Result<()> {
    operator::set_in(home, &format!("[backup]\nfolder = \"{}\"\n", disk.folder.display()))?;
    let filler = disk.folder.join("filler");
    let first = made(home, &[]).await?;
    let content = std::fs::read(&first)?;

    fill(&filler)?;
    let told = operator::refused(home, &["backup"]).await?;
    assert!(
        told.contains("there is no room for a backup") && told.contains("hint: earlier backups are as they were"),
        "{told}"
    );

    // With room at the start, and none in the middle.
    std::fs::remove_file(&filler)?;
    let mut command = operator::command(home).await?;
    command.arg("backup");
    let running = tokio::spawn(operator::told(command));
    unfinished_in(&disk.folder).await?;
    fill(&filler)?;
    let ended = running.await??;
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("is full") && ended.stderr.contains("hint: earlier backups"), "{}", ended.stderr);

    assert_eq!(names(&disk.folder)?, [name(&first)], "the earlier one stays alone");
    assert_eq!(std::fs::read(&first)?, content);
    operator::must(home, &["backup", "verify"]).await?;
    let status = operator::must(home, &["status"]).await?;
    assert!(status.contains("FAILED") && status.contains("is full"), "{status}");
    let doctor = operator::run_in(home, &["doctor"]).await?;
    assert!(doctor.stdout.contains("FAIL  backup"), "{}", doctor.stdout);
    std::fs::remove_file(&filler)?;
    made(home, &[]).await?;
    assert!(!operator::must(home, &["status"]).await?.contains("FAILED"));
    Ok(())
}

/// A file that is being written, once something is in it.
async fn unfinished_in(folder: &Path) -> Result<PathBuf> {
    wait::until("the beginning of a backup", async || {
        let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
        let hidden = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".tmp-backup-"));
        let begun = hidden.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.len() > 100_000));
        Ok(begun.map(|entry| entry.path()).next())
    })
    .await
}

/// What a person would take for backups, by name.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder)?.filter_map(Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.starts_with("agent-memory-") && (name.ends_with(".dump") || name.ends_with(".age")));
    names.sort_unstable();
    Ok(names)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A tmpfs that is gone when this is.
struct Disk {
    folder: PathBuf,
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("--lazy").arg(&self.folder).output());
    }
}

fn small_disk(scratch: &Path) -> Result<Disk> {
    let folder = scratch.join("disk");
    std::fs::create_dir(&folder)?;
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=300m,mode=700", "tmpfs"]).arg(&folder);
    let output = mount.output().context("cannot run mount")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(Disk { folder })
}

fn fill(path: &Path) -> Result<()> {
    use std::io::Write;
    let mut file = std::fs::File::create(path)?;
    let zeros = vec![0; 1 << 20];
    while file.write(&zeros).is_ok_and(|written| written > 0) {}
    Ok(())
}
