//! The benches and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::bench::chaos::Scenario;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// The hook's wall time against an empty process and `node -e 0`
    Hook(BenchHookArgs),
    /// The hook's wall time before a call with up to 10,000 lessons, against the same without any
    Gate(BenchGateArgs),
    /// Reading transcripts against parsing their lines, and what memory it takes
    Backfill(BenchBackfillArgs),
    /// One measurement of `bench backfill`
    #[command(hide = true)]
    BackfillWorker(BackfillWorkerArgs),
    /// Events a second into the journal against the same rows inserted by hand
    Ingest(BenchIngestArgs),
    /// Training rows out of a journal of many calls, against tokenising their text alone, and what memory it takes
    Dataset(BenchDatasetArgs),
    /// Training a model of the shape of Qwen3-0.6B, against PyTorch and PEFT
    Train(BenchTrainArgs),
    /// Writing a model of the shape of Qwen3-0.6B as a GGUF, against llama.cpp's converter and quantizer
    Gguf(BenchGgufArgs),
    /// Break things under load and count what is lost, doubled, stuck or late
    Chaos(BenchChaosArgs),
    /// Taking secrets out of 4 KiB of text against the keyword scan alone
    Redact(BenchRedactArgs),
    /// How much of what answers a question a search finds, on conversations in the form of LoCoMo
    Locomo(BenchLocomoArgs),
    /// How long a search takes in up to a million documents, against single scans of the indexes, and what memory it takes
    Recall(BenchRecallArgs),
}

#[derive(Debug, Args)]
pub struct BenchDatasetArgs {
    /// Folder of the base model's tokenizer and chat template
    pub base: PathBuf,

    /// Tool calls in the journal
    #[arg(long, default_value_t = 100_000)]
    pub calls: u64,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchTrainArgs {
    /// A Python that has torch, transformers and peft
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// How often everything is measured
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,

    /// Steps of each run; the first is not counted
    #[arg(long, default_value_t = 3)]
    pub steps: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchGgufArgs {
    /// Folder of the tokenizer and chat template of Qwen3
    pub tokenizer: PathBuf,

    /// llama.cpp's folder with convert_hf_to_gguf.py and gguf-py
    #[arg(long, value_name = "FOLDER")]
    pub converter: PathBuf,

    /// llama.cpp's library (libllama), whose quantizer is measured too
    #[arg(long, value_name = "FILE")]
    pub library: Option<PathBuf>,

    /// A Python that has torch, transformers and sentencepiece
    #[arg(long, default_value = "python3")]
    pub python: PathBuf,

    /// How often everything is measured
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchGateArgs {
    /// Calls of each kind
    #[arg(long, default_value_t = 1_000)]
    pub calls: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchRecallArgs {
    /// Transcripts that the documents are mixed of
    pub folder: PathBuf,

    /// How many documents, rising
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 100_000, 1_000_000])]
    pub sizes: Vec<u64>,

    /// Searches of each kind
    #[arg(long, default_value_t = 300)]
    pub queries: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchBackfillArgs {
    /// The size of the transcripts that are made and read
    #[arg(long, default_value_t = 1.0)]
    pub gigabytes: f64,

    /// The size of those that are also stored
    #[arg(long, default_value_t = 0.05)]
    pub stored_gigabytes: f64,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchLocomoArgs {
    /// The conversations, a JSON file each
    pub folder: PathBuf,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BackfillWorkerArgs {
    #[arg(value_enum)]
    pub work: BackfillWork,

    pub path: PathBuf,

    #[arg(long, default_value_t = 0)]
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackfillWork {
    WriteMany,
    WriteOne,
    Parse,
    Read,
    Store,
}

impl BackfillWork {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WriteMany => "write-many",
            Self::WriteOne => "write-one",
            Self::Parse => "parse",
            Self::Read => "read",
            Self::Store => "store",
        }
    }
}

#[derive(Debug, Args)]
pub struct BenchRedactArgs {
    /// How often each kind of text is cleaned
    #[arg(long, default_value_t = 2000)]
    pub rounds: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchHookArgs {
    /// How often each program is run
    #[arg(long, default_value_t = 300)]
    pub rounds: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchIngestArgs {
    /// How often everything is measured
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,

    /// Events in one run
    #[arg(long, default_value_t = 3000)]
    pub events: usize,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct BenchChaosArgs {
    /// Play only this scenario; may be given several times
    #[arg(long, value_enum, value_name = "SCENARIO")]
    pub only: Vec<Scenario>,

    /// How long Postgres is stopped where it is stopped
    #[arg(long, default_value_t = 60)]
    pub outage_seconds: u64,

    /// Without an embedding model: jobs wait, and are only looked at for those that died
    #[arg(long)]
    pub no_model: bool,

    /// Also write the figures into docs/benchmarks.md
    #[arg(long)]
    pub write: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
