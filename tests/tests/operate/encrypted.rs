//! A backup that a copy of tells nobody anything: locked for one key, and opened with it only.

use age::secrecy::ExposeSecret;
use age::x25519::Identity;
use anyhow::{Context, Result};
use memory::store;
use tests::installed::Installed;
use tests::many_rows::{self, Size};
use tests::operator;

#[tokio::test(flavor = "multi_thread")]
async fn an_encrypted_backup_is_restored_with_its_key_only() -> Result<()> {
    let installed = Installed::embedded().await?;
    many_rows::fill(installed.pool(), Size { calls: 1_000, vectors: 20 }).await?;
    let before = store::table_sums(installed.pool()).await?;
    let home = installed.home();
    let (own, other) = (Identity::generate(), Identity::generate());
    operator::set_in(home, &format!("[backup]\nrecipients = [\"{}\"]\n", own.to_public()))?;
    let path = operator::must(home, &["backup"]).await?;
    assert!(path.trim().ends_with(".dump.age"), "{path}");
    let content = std::fs::read(path.trim())?;
    assert!(content.starts_with(b"age-encryption.org/v1"));
    operator::must(home, &["backup", "verify"]).await.context("its checksum needs no key")?;

    let write = |name: &str, secret: &str| -> Result<String> {
        let path = installed.scratch().join(name);
        std::fs::write(&path, format!("{secret}\n"))?;
        Ok(path.display().to_string())
    };
    let own = write("own", own.to_string().expose_secret())?;
    let other = write("other", other.to_string().expose_secret())?;
    sqlx::query("delete from mem_tool_calls").execute(installed.pool()).await?;
    let without = operator::refused(home, &["restore", "latest", "--yes"]).await?;
    assert!(without.contains("the backup is encrypted") && without.contains("--identity"), "{without}");
    let wrong = operator::refused(home, &["restore", "latest", "--yes", "--identity", &other]).await?;
    assert!(wrong.contains("cannot be decrypted") && wrong.contains("another key"), "{wrong}");
    let calls: i64 = sqlx::query_scalar("select count(*) from mem_tool_calls").fetch_one(installed.pool()).await?;
    assert_eq!(calls, 0, "the journal is as it was");

    operator::must(home, &["backup", "verify", "--deep", "--identity", &own]).await?;
    operator::must(home, &["restore", "latest", "--yes", "--identity", &own]).await?;
    assert_eq!(store::table_sums(installed.pool()).await?, before);

    let passphrase = write("passphrase", "correct horse")?;
    operator::set_in(home, &format!("[backup]\npassphrase_file = \"{passphrase}\"\n"))?;
    operator::must(home, &["backup"]).await?;
    operator::must(home, &["restore", "latest", "--yes"]).await.context("the settings name the passphrase")?;
    assert_eq!(store::table_sums(installed.pool()).await?, before);
    Ok(())
}
