//! `dataset`: asks for what is needed, builds, and says what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context as _;
use chrono::Utc;
use finetune::dataset::consent::{self, Consent, How};
use finetune::dataset::render::Base;
use finetune::dataset::{self, Build, Built, Settings, Sources};
use finetune::hint::{Hinted, hinted};
use memory::home::Home;
use memory::store::{self, Db};
use sha2::{Digest as _, Sha256};

use crate::cli::{DatasetArgs, Look};

const BASE_HINT: &str = "name the folder of a Qwen3 or Qwen2.5 chat model with --base; `hf download Qwen/Qwen3-0.6B \
                         tokenizer.json tokenizer_config.json --local-dir FOLDER` fetches what a dataset needs of one";

pub(crate) async fn dataset(arguments: &DatasetArgs) -> anyhow::Result<ExitCode> {
    let settings = settings(arguments)?;
    if arguments.common.print_config {
        return print(&toml::to_string(&settings)?);
    }
    let home = Home::locate()?;
    let out = arguments.out.clone().unwrap_or_else(|| home.root().join("data").join("processed"));
    if arguments.look.is_wanted() {
        return look(&arguments.look, &out);
    }
    let url = home.database_url().context("reading the database URL")?;
    if arguments.common.dry_run {
        let db = store::connect(&url).await?;
        return print(&crate::count::count(&db, arguments.common.json).await?);
    }
    let Some(folder) = &arguments.base else { return Err(hinted("no base model is named", BASE_HINT)) };
    let base = Base::load(folder).map_err(|error| {
        let what = format!("`{}` is no base to make a dataset for", folder.display());
        anyhow::Error::from(error).context(Hinted::new(what, BASE_HINT))
    })?;
    memory::redact::install_from(None, Some(&home.config())).context("reading your rules of redaction")?;
    let db = store::connect(&url).await?;
    let start = Instant::now();
    let built = make(arguments, &settings, &base, &db, &home, &out).await?;
    report(&built, arguments.common.json, start)
}

/// Makes a dataset for a run that has none.
pub(crate) async fn for_run(arguments: &DatasetArgs, base: &Base, home: &Home, out: &Path) -> anyhow::Result<PathBuf> {
    let settings = settings(arguments)?;
    let url = home.database_url().context("reading the database URL")?;
    memory::redact::install_from(None, Some(&home.config())).context("reading your rules of redaction")?;
    let db = store::connect(&url).await?;
    let built = make(arguments, &settings, base, &db, home, out).await?;
    let folder = built.folder.clone();
    judge(&built).map(|()| folder)
}

async fn make(
    arguments: &DatasetArgs,
    settings: &Settings,
    base: &Base,
    db: &Db,
    home: &Home,
    out: &Path,
) -> anyhow::Result<Built> {
    let usual = home.config().join("sources.toml");
    let own = arguments.sources.clone().or_else(|| usual.exists().then_some(usual));
    let sources = Sources::load(own.as_deref())?;
    let sessions = dataset::sessions(db, &sources).await?;
    let providers = dataset::restricted_providers(&sessions, &sources, settings);
    let consent = consented(arguments, &providers, home)?;
    let rules = home.config().join("redact.toml");
    let read = [
        ("offered tools", arguments.tools.as_deref()),
        ("licence classes", own.as_deref()),
        ("rules of redaction", Some(&*rules)),
    ];
    let offered = arguments.tools.as_deref().map(dataset::read_offered).transpose()?.unwrap_or_default();
    let job = Build {
        base,
        settings,
        sessions: &sessions,
        offered,
        canaries: arguments.canary.clone(),
        consent,
        providers,
        inputs: hashes(&read)?,
        base_name: arguments.base_name.clone(),
        out: &out.join(format!("{}_tools", base.family.as_str())),
    };
    dataset::build(db, job).await.map_err(explained)
}

/// The hash of each of the files that are there, by what it is.
fn hashes(files: &[(&str, Option<&Path>)]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    for (what, file) in files {
        if let Some(file) = file.filter(|file| file.exists()) {
            let bytes = std::fs::read(file).with_context(|| format!("reading `{}`", file.display()))?;
            hashes.insert((*what).to_owned(), dataset::row::hex(&Sha256::digest(bytes)));
        }
    }
    Ok(hashes)
}

fn explained(error: dataset::BuildError) -> anyhow::Error {
    match error {
        dataset::BuildError::Empty(why) => hinted(
            format!("nothing of the journal becomes a row: {why}"),
            "`cargo xtask train dataset --dry-run` counts what there is; --licence unknown takes sessions of models that \
             nobody knows, if you know that you may",
        ),
        other => other.into(),
    }
}

fn report(built: &Built, as_json: bool, start: Instant) -> anyhow::Result<ExitCode> {
    if as_json {
        let report = serde_json::json!({
            "folder": built.folder,
            "seconds": start.elapsed().as_secs_f64(),
            "peak_bytes": memory::process::peak_bytes(),
            "manifest": built.manifest,
            "audit": built.audit,
        });
        print(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    } else {
        let seconds = start.elapsed().as_secs_f64();
        print(&format!("Wrote {} rows to {} in {seconds:.1} s\n", built.audit.rows, built.folder.display()))?;
    }
    judge(built).map(|()| ExitCode::SUCCESS)
}

/// Fails if the audit did.
fn judge(built: &Built) -> anyhow::Result<()> {
    if built.audit.passed {
        return Ok(());
    }
    let failed: Vec<_> = built.audit.checks.iter().filter(|check| !check.passed).collect();
    let told = failed.iter().map(|check| format!("{} is {:.4}, must be {}", check.name, check.value, check.limit));
    Err(hinted(
        format!("the dataset failed its audit: {}", told.collect::<Vec<_>>().join("; ")),
        format!(
            "{} names the rows, docs/finetune/data-quality-gates.md the reasons; training takes this dataset only if it is \
             named explicitly",
            built.folder.join("audit.md").display()
        ),
    ))
}

fn settings(arguments: &DatasetArgs) -> anyhow::Result<Settings> {
    let mut settings = match &arguments.common.config {
        Some(file) => Settings::read(file)?,
        None => Settings::default(),
    };
    arguments.common.choice.apply(&mut settings);
    settings.check()?;
    Ok(settings)
}

/// The user's yes, where these rows need one.
fn consented(arguments: &DatasetArgs, providers: &BTreeSet<String>, home: &Home) -> anyhow::Result<Option<Consent>> {
    if providers.is_empty() {
        return Ok(None);
    }
    let file = home.config().join(consent::FILE_NAME);
    let recorded = Consent::read(&file)?;
    if let Some(recorded) = recorded.as_ref().filter(|recorded| recorded.covers(providers)) {
        return Ok(Some(recorded.clone()));
    }
    let how = if arguments.common.accept_source_terms {
        How::Flag
    } else if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() {
        let agreed = consent::ask(providers, &mut std::io::stdin().lock(), &mut std::io::stderr().lock())?;
        if !agreed {
            return Err(hinted(
                "nothing was written: you did not agree",
                "--licence open uses only what may be trained on without being asked",
            ));
        }
        How::Terminal
    } else {
        let names = providers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Err(hinted(
            format!("these rows hold outputs of models whose terms restrict training on them ({names})"),
            "read docs/finetune/consent.md; then run this in a terminal, or with --accept-source-terms, or with --licence \
             open to leave those rows out",
        ));
    };
    // A yes for some providers is not taken back by one for others.
    let earlier = recorded.filter(|recorded| recorded.covers(&BTreeSet::new()));
    let all = providers.iter().cloned().chain(earlier.into_iter().flat_map(|recorded| recorded.providers)).collect();
    let consent = Consent::new(all, how, Utc::now());
    consent.write(&file)?;
    Ok(Some(consent))
}

fn look(look: &Look, out: &Path) -> anyhow::Result<ExitCode> {
    let folder = match &look.dataset {
        Some(folder) => folder.clone(),
        None => latest(out)?,
    };
    let text = if let Some(id) = &look.explain {
        dataset::explain(&folder, id)?
    } else if let Some(count) = look.sample {
        dataset::sample(&folder, count)?
    } else {
        dataset::statistics(&folder)?
    };
    print(&text)
}

/// The dataset that was written last, of any family.
fn latest(out: &Path) -> anyhow::Result<PathBuf> {
    let families = std::fs::read_dir(out).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let datasets = families.filter_map(|family| dataset::latest(&family).ok());
    let written =
        |folder: &PathBuf| std::fs::metadata(folder.join(dataset::MANIFEST_FILE)).and_then(|file| file.modified()).ok();
    datasets.max_by_key(written).ok_or_else(|| {
        hinted(
            format!("there is no dataset in `{}` yet", out.display()),
            "`cargo xtask train dataset --base FOLDER` makes one",
        )
    })
}

pub(crate) fn print(text: &str) -> anyhow::Result<ExitCode> {
    std::io::stdout().write_all(text.as_bytes()).context("writing to the terminal")?;
    Ok(ExitCode::SUCCESS)
}
