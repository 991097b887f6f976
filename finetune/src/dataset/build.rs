//! From the journal to a dataset in a folder: gather, decide, write, judge.
//!
//! The rows lie in a file between the passes; in memory is what the decisions need of each, one to two kilobytes, and one session's turns
//! at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use memory::store::{self, Db, StoreError, TrainingSession};

use super::audit::{Audit, Auditor};
use super::balance::{Balance, Weighed, balance};
use super::clean::{is_somebodys, names_pattern};
use super::consent::Consent;
use super::duplicates::{Kept, shingles};
use super::gather::{DropNote, Entry, Gathered, gather};
use super::manifest::{Counts, Manifest};
use super::render::{Base, Sample, samples};
use super::row::{Row, draw_share, turn_of};
use super::schema::{SchemaError, Tools};
use super::select::Dropped;
use super::settings::Settings;
use super::sources::{Licence, Sources};
use super::split::{SessionRows, Split, split};
use super::write::Writer;

/// What is to be built, from what, into what.
#[derive(Debug)]
pub struct Build<'a> {
    pub base: &'a Base,
    pub settings: &'a Settings,
    pub sessions: &'a [(TrainingSession, Licence)],
    /// The schemas that were really offered, where they are known.
    pub offered: Vec<serde_json::Value>,
    /// Texts that were planted in the journal and must be nowhere in the dataset.
    pub canaries: Vec<String>,
    pub consent: Option<Consent>,
    /// Whose restricted outputs are used.
    pub providers: BTreeSet<String>,
    /// What else decided: the hash of each file that was read, by what it is.
    pub inputs: BTreeMap<String, String>,
    /// How trainers find the base; the family's smallest model if not known.
    pub base_name: Option<String>,
    /// The folder that the version's folder is made in.
    pub out: &'a Path,
}

/// What came of it.
#[derive(Debug)]
pub struct Built {
    pub folder: PathBuf,
    pub manifest: Manifest,
    pub audit: Audit,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("the journal could not be read")]
    Journal(#[from] StoreError),
    #[error("`{path}` could not be written or read")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Schema(#[from] SchemaError),
    #[error("nothing of the journal becomes a row: {0}")]
    Empty(String),
}

impl BuildError {
    pub(super) fn writing(path: &Path) -> impl Fn(io::Error) -> Self {
        move |source| Self::File { path: path.to_owned(), source }
    }
}

/// The sessions of the journal, and what the terms of their models say.
pub async fn sessions(db: &Db, sources: &Sources) -> Result<Vec<(TrainingSession, Licence)>, StoreError> {
    let sessions = store::training_sessions(db).await?;
    let licence = |session: &TrainingSession| sources.licence(session.source_model.as_deref());
    Ok(sessions.into_iter().map(|session| (session.clone(), licence(&session))).collect())
}

/// Whose restricted outputs these settings would use.
pub fn restricted_providers(
    sessions: &[(TrainingSession, Licence)],
    sources: &Sources,
    settings: &Settings,
) -> BTreeSet<String> {
    let used = sessions
        .iter()
        .filter(|(session, licence)| *licence == Licence::Restricted && settings.filter.takes(session, *licence));
    let providers =
        used.filter_map(|(session, _)| session.source_model.as_deref()).filter_map(|model| sources.find(model));
    providers.map(|source| source.provider.clone()).collect()
}

/// Builds the next version. Until all is written, the folder's name ends in `.partial`; what fails leaves none.
pub async fn build(db: &Db, job: Build<'_>) -> Result<Built, BuildError> {
    let folder = next_version(job.out)?;
    // Two builds at once write into a folder each; the second to end finds the name taken.
    let partial = folder.with_extension(format!("{}.partial", std::process::id()));
    private_folder(&partial).map_err(BuildError::writing(&partial))?;
    let written = match write(db, job, &partial).await {
        Ok(written) => fs::rename(&partial, &folder).map(|()| written).map_err(BuildError::writing(&folder)),
        Err(error) => Err(error),
    };
    if written.is_err() {
        // Why nothing was written is what the person must read; that its remains could not be removed would hide it.
        let _ = fs::remove_dir_all(&partial);
    }
    let (manifest, audit) = written?;
    Ok(Built { folder, manifest, audit })
}

async fn write(db: &Db, job: Build<'_>, partial: &Path) -> Result<(Manifest, Audit), BuildError> {
    let scratch = partial.join("gathered.jsonl");
    let mut gathered = gather(db, job.sessions, job.base, job.settings, &scratch).await?;
    let count = |text: &str| job.base.tokens.count(text);
    let tools = Tools::new(job.offered.clone(), &gathered.seen, &job.base.control, job.settings.tools_tokens, &count)?;
    let verdicts = decide(&mut gathered, job.settings);
    let auditor = Auditor::new(
        job.settings.limits.clone(),
        job.settings.max_tokens,
        &job.base.control,
        &tools,
        names_pattern(owners(job.sessions).iter().map(String::as_str)),
    );
    let writer = Writer::create(partial, &job.canaries)?;
    let mut pass = Pass { job: &job, tools: &tools, auditor, writer, kept: Kept::default(), lost: 0 };
    pass.rows(&scratch, &verdicts, &mut gathered)?;
    fs::remove_file(&scratch).map_err(BuildError::writing(&scratch))?;

    let Pass { mut auditor, mut writer, lost, .. } = pass;
    let mut drops = BTreeMap::new();
    for note in &gathered.dropped {
        *drops.entry(note.reason).or_default() += 1;
    }
    let counts = Counts { sessions: gathered.sessions, turns: gathered.turns, gathered: verdicts.len() as u64, drops };
    writer.drops(&gathered.dropped)?;
    for file in writer.files_with_canaries() {
        auditor.found_canary(&file);
    }
    let audit = auditor.finish(lost);
    if audit.rows == 0 {
        return Err(BuildError::Empty(reasons(&counts)));
    }
    let manifest = Manifest::new(&job, counts, &audit);
    let manifest = writer.finish(manifest, &audit, job.base_name.as_deref())?;
    Ok((manifest, audit))
}

/// Only the user may read what is in it.
fn private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// In whose homes the sessions' checkouts lie. Read in another way than the cleaning reads it: this is to find what that missed.
fn owners(sessions: &[(TrainingSession, Licence)]) -> BTreeSet<String> {
    let folders = sessions.iter().filter_map(|(session, _)| session.folder.as_deref());
    let owner = |folder: &str| {
        let mut parts = folder.split(['/', '\\']).skip(1);
        matches!(parts.next(), Some("home" | "Users")).then(|| parts.next().unwrap_or_default().to_owned())
    };
    folders.filter_map(owner).filter(|name| is_somebodys(name)).collect()
}

fn reasons(counts: &Counts) -> String {
    if counts.sessions == 0 && counts.drops.is_empty() {
        return "no session fits the filters".to_owned();
    }
    let reasons = counts.drops.iter().map(|(reason, count)| format!("{count} because {}", reason.why()));
    reasons.collect::<Vec<_>>().join("; ")
}

/// `v1`, `v2` and so on: the first number above all that are there.
fn next_version(out: &Path) -> Result<PathBuf, BuildError> {
    fs::create_dir_all(out).map_err(BuildError::writing(out))?;
    let entries = fs::read_dir(out).map_err(BuildError::writing(out))?;
    let numbers = entries.filter_map(Result::ok).filter_map(|entry| version_number(&entry.path()));
    Ok(out.join(format!("v{}", numbers.max().unwrap_or(0) + 1)))
}

/// The number of a version's folder; what is not finished has none.
pub(super) fn version_number(folder: &Path) -> Option<u32> {
    folder.file_name()?.to_str()?.strip_prefix('v')?.parse().ok()
}

/// What becomes of a gathered row.
#[derive(Debug)]
enum Verdict {
    Drop(Dropped, Option<String>),
    /// The split, and the messages that lose their loss.
    Keep(Split, Vec<u32>),
}

/// What can only be decided over all rows: near-duplicates, weights, shares, splits.
fn decide(gathered: &mut Gathered, settings: &Settings) -> Vec<Verdict> {
    let mut verdicts: Vec<Option<Verdict>> = Vec::with_capacity(gathered.entries.len());
    let mut kept = Kept::default();
    let mut kept_ids: Vec<String> = Vec::new();
    for entry in &mut gathered.entries {
        let project = &gathered.projects[entry.project as usize];
        let weight = settings.weights.get(project).copied().unwrap_or(1.0);
        if weight < 1.0 && draw_share(settings.seed, &["weight", &entry.weighed.id]) >= weight {
            verdicts.push(Some(Verdict::Drop(Dropped::Weight, None)));
            continue;
        }
        if let Some(other) = kept.add(std::mem::take(&mut entry.shingles), entry.turn) {
            verdicts.push(Some(Verdict::Drop(Dropped::NearDuplicate, Some(kept_ids[other].clone()))));
            continue;
        }
        kept_ids.push(entry.weighed.id.clone());
        verdicts.push(None);
    }
    drop(kept);

    let left: Vec<usize> = (0..verdicts.len()).filter(|place| verdicts[*place].is_none()).collect();
    let weighed: Vec<Weighed> = left.iter().map(|place| gathered.entries[*place].weighed.clone()).collect();
    let Balance { without, mut masked } = balance(&weighed, &settings.shares, settings.seed);
    for place in &without {
        verdicts[left[*place]] = Some(Verdict::Drop(Dropped::Share, None));
    }
    let kept: Vec<(usize, Vec<u32>)> = (0..left.len())
        .filter(|place| without.binary_search(place).is_err())
        .map(|place| (left[place], masked.remove(&place).unwrap_or_default()))
        .collect();
    let splits = splits(kept.iter().map(|(place, _)| &gathered.entries[*place]), settings);
    for (place, masked) in kept {
        let split = splits[&gathered.entries[place].session];
        verdicts[place] = Some(Verdict::Keep(split, masked));
    }
    verdicts.into_iter().map(|verdict| verdict.expect("every row is kept or dropped")).collect()
}

/// The split of each session that has rows. Sessions come by project and in the order of time.
fn splits<'a>(entries: impl Iterator<Item = &'a Entry>, settings: &Settings) -> BTreeMap<u32, Split> {
    let mut sessions: BTreeMap<u32, SessionRows> = BTreeMap::new();
    for entry in entries {
        sessions.entry(entry.session).or_insert(SessionRows { project: entry.project, rows: 0 }).rows += 1;
    }
    let rows: Vec<_> = sessions.values().copied().collect();
    sessions.into_keys().zip(split(&rows, &settings.split)).collect()
}

/// The second pass over the rows.
struct Pass<'a> {
    job: &'a Build<'a>,
    tools: &'a Tools,
    auditor: Auditor<'a>,
    writer: Writer,
    /// What was written so far: rows that differed only in a call that carries no loss are the same now.
    kept: Kept,
    /// How many rows could not be rendered as a server would send them.
    lost: u64,
}

impl Pass<'_> {
    fn rows(&mut self, file: &Path, verdicts: &[Verdict], gathered: &mut Gathered) -> Result<(), BuildError> {
        let lines = BufReader::new(fs::File::open(file).map_err(BuildError::writing(file))?).lines();
        for (line, verdict) in lines.zip(verdicts) {
            let line = line.map_err(BuildError::writing(file))?;
            let row: Row = serde_json::from_str(&line).map_err(|error| BuildError::writing(file)(error.into()))?;
            match verdict {
                Verdict::Drop(reason, original) => {
                    gathered.dropped.push(DropNote { like: original.clone(), ..DropNote::of_row(*reason, &row) });
                }
                Verdict::Keep(split, masked) => match self.finish(row, masked) {
                    Ok((row, samples)) => {
                        self.auditor.see(&row, *split, &samples);
                        self.writer.row(&row, *split, &samples)?;
                    }
                    Err(note) => gathered.dropped.push(*note),
                },
            }
        }
        Ok(())
    }

    /// Gives a row its tools, and renders it.
    fn finish(&mut self, mut row: Row, masked: &[u32]) -> Result<(Row, Vec<Sample>), Box<DropNote>> {
        let settings = self.job.settings;
        let note = DropNote::of_row(Dropped::NothingToTrain, &row);
        let drop = |reason| Box::new(DropNote { reason, ..note.clone() });
        row.trained.retain(|index| {
            let mut calls = row.messages[*index].calls().iter();
            !masked.contains(&(*index as u32))
                && calls.all(|call| self.tools.accepts(&call.function.name, &call.function.arguments))
        });
        let mut row = row.ends_where_trained().ok_or_else(|| drop(Dropped::NothingToTrain))?;
        row.tools = self.tools.offer(&row, settings.tools_tokens, settings.seed);
        let samples = samples(&row, self.job.base).map_err(|_| {
            self.lost += 1;
            drop(Dropped::Template)
        })?;
        if samples.iter().any(|sample| sample.ids.len() > settings.max_tokens) {
            return Err(drop(Dropped::TooLong));
        }
        // Once more: what was two texts is one now.
        if samples.iter().any(|sample| *memory::redact::clean(&sample.text) != *sample.text) {
            return Err(drop(Dropped::Secret));
        }
        if self.kept.add(shingles(&row), turn_of(&row)).is_some() {
            return Err(drop(Dropped::NearDuplicate));
        }
        Ok((row, samples))
    }
}
