//! What comes of the answers, without a terminal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::bail;
use candle_core::DType;
use finetune::base::ModelConfig;
use finetune::base::random::{Spread, random};
use finetune::dataset::render::Base;
use finetune::dataset::{Manifest, Settings, Split};
use finetune::gguf::Quantisation;
use finetune::stages::{DatasetChoice, Folders, Preset, RunConfig};
use tempfile::TempDir;

use super::around::{Around, Project};
use super::ask::{Asked, Left};
use super::dataset::Filters;
use super::questions::{self, Answers, Decision, FILE_NAME};
use super::scripted::{Say, ScriptedAsker};
use Say::{Enter, Leave, No, Pick, PickSome, Type, Yes};

/// A home with one base, `tiny`, and what else a test puts there.
struct Place {
    folder: TempDir,
    around: Around,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let folders = Folders::at(folder.path().join("models"));
        base(&folders.base("tiny"));
        let around = Around {
            folders,
            named_models: None,
            datasets: folder.path().join("processed"),
            user: Some(folder.path().to_owned()),
            usual_lm_studio: Some(folder.path().join(".lmstudio/models")),
            named_lm_studio: None,
            seed: None,
            here: folder.path().to_owned(),
            projects: Some(vec![project("widgets", 120), project("gadgets", 30)]),
            fetch: |model, _| bail!("{model} is out of reach"),
        };
        Self { folder, around }
    }

    /// A dataset for the base, of that verdict.
    fn with_dataset(self, audit_passed: bool) -> Self {
        let folder = self.dataset();
        std::fs::create_dir_all(&folder).unwrap();
        let base = Base::load(&self.around.folders.base("tiny")).unwrap();
        let manifest = Manifest {
            manifest: 1,
            program: String::new(),
            family: base.family,
            template_sha256: base.template_sha256,
            tokenizer_sha256: base.tokenizer_sha256,
            settings: Settings::default(),
            inputs: BTreeMap::new(),
            providers: BTreeSet::new(),
            consent: None,
            counts: finetune::dataset::Counts::default(),
            splits: BTreeMap::from([(Split::Train, 90), (Split::Test, 10)]),
            audit_passed,
            sealed_sha256: String::new(),
            files: BTreeMap::new(),
        };
        self.write_manifest(&manifest);
        self
    }

    fn write_manifest(&self, manifest: &Manifest) {
        std::fs::write(self.dataset().join("manifest.json"), serde_json::to_vec(manifest).unwrap()).unwrap();
    }

    fn dataset(&self) -> PathBuf {
        self.around.datasets.join("qwen3_tools/v1")
    }

    fn model(&self) -> String {
        self.around.folders.base("tiny").display().to_string()
    }

    /// The small preset with this base.
    fn usual(&self) -> RunConfig {
        let mut config = Preset::Small.config();
        config.base.model = self.model();
        config
    }

    fn ask(&self, says: &[Say]) -> (Asked<Decision>, ScriptedAsker) {
        let mut asker = ScriptedAsker::new(says.to_vec());
        let decision = questions::ask(&mut asker, &self.around);
        assert!(asker.is_through(), "not all was asked; shown: {:#?}", asker.shown);
        (decision, asker)
    }

    /// What is started after these answers.
    fn started(&self, says: &[Say]) -> (Answers, ScriptedAsker) {
        match self.ask(says) {
            (Ok(Decision::Start(answers)), asker) => (*answers, asker),
            (other, _) => panic!("{other:?}"),
        }
    }

    fn files(&self) -> BTreeSet<(PathBuf, u64)> {
        let (mut found, mut folders) = (BTreeSet::new(), vec![self.folder.path().to_owned()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                found.insert((path.clone(), std::fs::metadata(&path).unwrap().len()));
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found
    }
}

fn project(name: &str, prompts: i64) -> Project {
    Project { name: name.to_owned(), prompts }
}

fn base(folder: &Path) {
    let reference = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/gguf-reference/qwen3");
    let config = ModelConfig::read(&reference).unwrap();
    random(folder, &config, Some(&reference), (DType::F32, Spread::SMALL, 1)).unwrap();
}

/// Base, dataset, size, form, LM Studio, what now.
fn enter_all() -> [Say; 6] {
    [Enter, Enter, Enter, Enter, Enter, Enter]
}

#[test]
fn enter_alone_trains_small_on_the_latest_dataset() {
    let place = Place::new().with_dataset(true);
    let (answers, asker) = place.started(&enter_all());
    let mut expected = place.usual();
    expected.dataset.folder = Some(place.dataset());
    assert_eq!(answers, Answers { preset: Preset::Small, config: expected, filters: Filters::default() });
    assert!(asker.has_shown("v1 of 20") && asker.has_shown("100 rows, passed its audit"), "{:#?}", asker.shown);
}

#[test]
fn enter_alone_makes_a_dataset_where_there_is_none() {
    let place = Place::new();
    // Projects and turns in the place of the dataset.
    let (answers, asker) = place.started(&[Enter, Enter, Enter, Enter, Enter, Enter, Enter]);
    let mut expected = place.usual();
    expected.dataset.fresh = true;
    assert_eq!(answers.config, expected);
    assert_eq!(answers.filters, Filters::default());
    assert!(asker.has_shown("There is no dataset for a qwen3 yet"));
    assert!(asker.has_shown("All: 150 prompts in 2 projects"));
}

#[test]
fn every_answer_is_in_the_configuration() {
    let mut place = Place::new().with_dataset(true);
    place.around.seed = Some(5);
    let elsewhere = place.folder.path().join("elsewhere");
    base(&elsewhere);
    let (answers, asker) = place.started(&[
        Pick("Another folder"),
        Type("~/elsewhere".to_owned()),
        Pick("A new one"),
        Pick("Only some"),
        PickSome(vec!["gadgets"]),
        Pick("every call worked"),
        Pick("tiny"),
        Pick("f16: "),
        Pick("Another folder"),
        Type("~/lm".to_owned()),
        Pick("Start"),
    ]);
    let mut expected = Preset::Tiny.config();
    expected.base.model = elsewhere.display().to_string();
    expected.dataset = DatasetChoice { folder: None, fresh: true };
    expected.gguf.quantisation = Quantisation::F16;
    expected.install.lm_studio = Some(place.folder.path().join("lm"));
    expected.train.seed = 5;
    assert_eq!(answers.config, expected);
    assert_eq!(answers.filters, Filters { projects: vec!["gadgets".to_owned()], only_successful: true });
    assert!(asker.has_shown("a new one of the journal: gadgets; turns in which every call worked"));
}

#[test]
fn settings_that_lie_here_are_taken_if_they_can_be_read() {
    let place = Place::new().with_dataset(true);
    let file = place.around.here.join(FILE_NAME);
    std::fs::write(&file, "[train]\nranks = 4\n").unwrap();
    let says = [Enter, Enter, Pick("As the train.toml here says"), Pick("tiny"), Enter, Enter, Enter];
    let (answers, asker) = place.started(&says);
    assert_eq!(answers.preset, Preset::Tiny);
    assert!(asker.has_shown("`ranks`"), "{:#?}", asker.shown);

    std::fs::write(&file, "[train]\nrank = 4\n[gate]\nmin_rows = 30\n").unwrap();
    let says = [Enter, Enter, Pick("As the train.toml here says"), Enter, Enter, Enter];
    let (answers, _) = place.started(&says);
    let mut expected = place.usual();
    expected.dataset.folder = Some(place.dataset());
    (expected.train.rank, expected.gate.min_rows) = (4, 30);
    assert_eq!(answers.config, expected);
}

#[test]
fn tells_at_the_question_what_is_wrong_with_a_base() {
    let place = Place::new().with_dataset(true);
    let empty = place.folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    std::fs::write(place.around.folders.base("tiny").join("config.json"), "{\"model_type\": \"llama\"}").unwrap();
    let (left, asker) = place.ask(&[
        Pick("tiny"),
        Pick("Another folder"),
        Type(empty.display().to_string()),
        Pick("Another folder"),
        Type("nowhere".to_owned()),
        Pick("Another model"),
        Type("owner/model".to_owned()),
        Pick("Another model"),
        Enter,
        Leave,
    ]);
    assert_eq!(left, Err(Left));
    for said in [
        "model_type = \"llama\"",
        "hint: Qwen3 and Qwen2.5",
        "empty/config.json` cannot",
        "`nowhere` is no folder",
        "owner/model is out of reach",
    ] {
        assert!(asker.has_shown(said), "{said} is not in {:#?}", asker.shown);
    }
}

#[test]
fn names_what_was_fetched_as_the_hub_does() {
    let mut place = Place::new();
    std::fs::remove_dir_all(place.around.folders.base("tiny")).unwrap();
    place.around.fetch = |_, folder| {
        base(folder);
        Ok(())
    };
    let usual = "Qwen/Qwen3-0.6B";
    let says = [Enter, Enter, Enter, Enter, Enter, Enter, Enter];
    assert_eq!(place.started(&says).0.config.base.model, usual);
    place.around.fetch = |model, _| bail!("{model} is fetched twice");
    let (answers, asker) = place.started(&says);
    assert_eq!(answers.config.base.model, usual);
    assert!(!asker.has_shown("Qwen/Qwen3-0.6B, fetched now"), "it is here: {:#?}", asker.shown);
}

#[test]
fn a_dataset_that_failed_is_taken_only_after_a_yes() {
    let place = Place::new().with_dataset(false);
    let (answers, _) = place.started(&[Enter, Enter, Enter, Enter, Enter, Enter, Enter, Enter]);
    assert!(answers.config.dataset.fresh, "Enter makes a new one");
    let (answers, asker) =
        place.started(&[Enter, Pick("FAILED its audit"), Enter, Pick("FAILED"), Yes, Enter, Enter, Enter, Enter]);
    assert_eq!(answers.config.dataset, DatasetChoice { folder: Some(place.dataset()), fresh: false });
    assert!(asker.has_shown("audit.md names the rows"));
    let (left, _) = place.ask(&[Enter, Pick("FAILED"), No, Leave]);
    assert_eq!(left, Err(Left));
}

#[test]
fn a_dataset_for_another_base_is_not_offered() {
    let place = Place::new().with_dataset(true);
    let mut manifest = Manifest::read(&place.dataset()).unwrap();
    manifest.tokenizer_sha256 = "another".to_owned();
    place.write_manifest(&manifest);
    let (answers, asker) = place.started(&[Enter, Enter, Enter, Enter, Enter, Enter, Enter]);
    assert!(answers.config.dataset.fresh && asker.has_shown("another tokenizer or template"));
    std::fs::write(place.dataset().join("manifest.json"), "{").unwrap();
    let (answers, asker) = place.started(&[Enter, Enter, Enter, Enter, Enter, Enter, Enter]);
    assert!(answers.config.dataset.fresh && asker.has_shown("is no manifest of a dataset"));
}

#[test]
fn projects_can_be_typed_where_the_database_does_not_answer() {
    let mut place = Place::new();
    place.around.projects = None;
    let says = [
        Enter,
        Pick("Only some"),
        Enter,
        Pick("Only some"),
        Type("widgets, it's".to_owned()),
        Enter,
        Enter,
        Enter,
        Enter,
        Pick("Write"),
    ];
    let (decision, asker) = place.ask(&says);
    assert!(asker.has_shown("`cargo xtask up` starts it"));
    let Ok(Decision::Wrote(_, command)) = decision else { panic!("{decision:?}") };
    assert_eq!(command, r"cargo xtask train --config train.toml --preset small --project widgets --project 'it'\''s'");
}

#[test]
fn what_is_written_reads_back_to_the_same() {
    for (size, preset) in [("tiny: ", Preset::Tiny), ("small: ", Preset::Small), ("full: ", Preset::Full)] {
        let place = Place::new().with_dataset(true);
        let says = [Enter, Enter, Pick(size), Pick("q4_k_m"), Enter];
        let (answers, _) = place.started(&[&says[..], &[Enter]].concat());
        let (decision, _) = place.ask(&[&says[..], &[Pick("Write")]].concat());
        let file = place.folder.path().join(FILE_NAME);
        let Ok(Decision::Wrote(written, command)) = decision else { panic!("{decision:?}") };
        assert_eq!(written, file);
        assert_eq!(RunConfig::read(&file, preset).unwrap(), answers.config);
        assert!(std::fs::read_to_string(&file).unwrap().starts_with(&format!("# {command}\n")));
    }
}

#[test]
fn a_file_that_is_there_is_replaced_only_after_a_yes() {
    let place = Place::new().with_dataset(true);
    let file = place.folder.path().join(FILE_NAME);
    std::fs::write(&file, "mine").unwrap();
    let answered = [Enter, Enter, Enter, Enter, Enter];
    let (left, _) = place.ask(&[&answered[..], &[Pick("Write"), Enter, Pick("Leave")]].concat());
    assert_eq!((left, std::fs::read_to_string(&file).unwrap()), (Err(Left), "mine".to_owned()));
    place.ask(&[&answered[..], &[Pick("Write"), Yes]].concat()).0.unwrap();
    assert_ne!(std::fs::read_to_string(&file).unwrap(), "mine");
}

#[test]
fn goes_back_to_the_first_question() {
    let place = Place::new().with_dataset(true);
    let answered = [Enter, Enter, Pick("full"), Enter, Enter, Pick("Answer again")];
    let (answers, _) = place.started(&[&answered[..], &enter_all()].concat());
    assert_eq!(answers.preset, Preset::Small);
}

#[test]
fn leaving_at_any_question_changes_nothing() {
    let place = Place::new().with_dataset(false);
    let before = place.files();
    let says = [
        Pick("Another folder"),
        Enter,
        Enter,
        Pick("FAILED"),
        No,
        Pick("A new one"),
        Pick("Only some"),
        PickSome(vec!["widgets"]),
        Enter,
        Enter,
        Enter,
        Pick("Another folder"),
        Type("~/lm".to_owned()),
    ];
    for answered in 0..=says.len() {
        let (left, _) = place.ask(&[&says[..answered], &[Leave]].concat());
        assert_eq!(left, Err(Left));
        assert_eq!(place.files(), before, "after {answered} answers");
    }
}
