//! The embedded Postgres for real: unpacked, started, used, stopped, and nothing of it left.

use std::path::PathBuf;
use std::time::Duration;

use memory::store;
use xtask::output::{Printer, Verbosity};
use xtask::runtime::embedded::{self, InstalledPostgres, Postgres};
use xtask::runtime::{ServiceStatus, postgres_url};

fn cache() -> PathBuf {
    embedded::private_cache().expect("the user has a folder for caches")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_private_server_takes_the_migrations_and_leaves_nothing_behind() {
    Postgres::ensure_program(&cache(), &Printer::new(Verbosity::Quiet)).await.unwrap();
    let postgres = Postgres::start_private(&cache()).await.unwrap();
    let url = postgres.url().to_owned();
    let db = store::connect(&url).await.unwrap();
    store::migrate(&db).await.unwrap();
    assert!(store::schema_version(&db).await.unwrap().is_some());
    db.close().await;
    postgres.stop().await.unwrap();
    assert!(store::connect(&url).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installed_server_keeps_its_data_and_its_address_from_start_to_start() {
    let folder = tempfile::tempdir().unwrap();
    let home = memory::home::Home::at(folder.path().join("home"));
    xtask::install::layout::create(&home).unwrap();
    let postgres = InstalledPostgres::of_home(&home).unwrap();
    postgres
        .ensure_program(&xtask::install::downloads::Downloads::into_folder(cache().join("downloads")))
        .await
        .unwrap();

    let first = postgres.start().await.unwrap();
    let db = store::connect(&first).await.unwrap();
    store::migrate(&db).await.unwrap();
    db.close().await;
    assert_eq!(postgres.start().await.unwrap(), first, "a running server is left alone");
    assert_eq!(postgres.state().status, ServiceStatus::Running);
    assert!(!postgres.state().detail.contains(postgres_url::NAME));

    postgres.stop().await.unwrap();
    assert_eq!(postgres.processes(), []);
    assert_eq!(postgres.state().status, ServiceStatus::Stopped);

    let second = postgres.start().await.unwrap();
    assert_eq!(second, first);
    let db = store::connect(&second).await.unwrap();
    assert!(store::schema_version(&db).await.unwrap().is_some(), "the migrations are still there");
    db.close().await;
    // A machine that loses power leaves a pid file, and its number goes to another program.
    for process in postgres.processes() {
        process.stop(Duration::ZERO).await.unwrap();
    }
    postgres.stop().await.unwrap();
    let data = postgres.data_folder();
    std::fs::write(data.join("postmaster.pid"), format!("{}\n{}\n", std::process::id(), data.display())).unwrap();
    assert_eq!(postgres.state().status, ServiceStatus::Stopped, "this test is no Postgres");
    assert_eq!(postgres.start().await.unwrap(), first);

    postgres.stop().await.unwrap();
    postgres.remove().unwrap();
    assert!(!data.exists());
}
