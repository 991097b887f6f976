//! The commands of a run, as `run.sh` runs them and `run.md` tells them.

use super::sharing::ACCELERATE_FILE;
use super::{ScaleOut, Shape, Strategy, Trainer};

/// Where the nodes meet.
const PORT: u16 = 29500;

#[derive(Debug, Clone)]
pub(super) struct Commands {
    pub(super) install: String,
    /// With the variables `MAIN_HOST` and `NODE_RANK` where there are several nodes.
    pub(super) train: String,
    /// What makes the adapter one of PEFT, where it is none.
    pub(super) convert: Option<String>,
    pub(super) take_back: String,
}

pub(super) fn commands(job: &ScaleOut<'_>) -> Commands {
    let ScaleOut { trainer, shape, .. } = *job;
    let adapter = match trainer {
        Trainer::Axolotl | Trainer::Trl | Trainer::LlamaFactory => "out",
        Trainer::Unsloth => "out/adapter",
        Trainer::Mlx => "out/peft",
    };
    Commands {
        install: format!("pip install {}", trainer.packages(shape.strategy.is_deepspeed())),
        train: train(trainer, shape),
        convert: (trainer == Trainer::Mlx).then(|| "python to_peft.py".to_owned()),
        take_back: format!("cargo xtask train --adapter {adapter}"),
    }
}

fn train(trainer: Trainer, shape: Shape) -> String {
    let is_alone = shape.devices() == 1;
    let fsdp = shape.strategy == Strategy::Fsdp;
    match trainer {
        Trainer::Axolotl if is_alone => "axolotl train axolotl.yaml".to_owned(),
        Trainer::Axolotl => format!("axolotl train axolotl.yaml --launcher torchrun -- {}", meeting(shape)),
        Trainer::Trl if is_alone => "trl sft --config sft.yaml".to_owned(),
        Trainer::Trl if fsdp => format!("{} -m trl.scripts.sft --config sft.yaml", accelerate(shape)),
        Trainer::Trl => format!("torchrun {} -m trl.scripts.sft --config sft.yaml", meeting(shape)),
        Trainer::Unsloth if is_alone => "python train.py".to_owned(),
        Trainer::Unsloth => format!("torchrun {} train.py", meeting(shape)),
        Trainer::LlamaFactory if is_alone => "llamafactory-cli train train.yaml".to_owned(),
        Trainer::LlamaFactory if fsdp => format!("{} -m llamafactory.launcher train.yaml", accelerate(shape)),
        Trainer::LlamaFactory => {
            let nodes = match shape.nodes {
                1 => String::new(),
                nodes => {
                    format!("NNODES={nodes} NODE_RANK=\"$NODE_RANK\" MASTER_ADDR=\"$MAIN_HOST\" MASTER_PORT={PORT} ")
                }
            };
            format!("FORCE_TORCHRUN=1 NPROC_PER_NODE={} {nodes}llamafactory-cli train train.yaml", shape.gpus)
        }
        Trainer::Mlx if is_alone => "mlx_lm.lora --config lora.yaml".to_owned(),
        Trainer::Mlx => "mlx.launch --hosts \"$HOSTS\" --backend ring mlx_lm.lora --config lora.yaml".to_owned(),
    }
}

/// What torchrun is told of the GPUs and nodes.
fn meeting(shape: Shape) -> String {
    let Shape { gpus, nodes, .. } = shape;
    if nodes == 1 {
        return format!("--standalone --nproc_per_node {gpus}");
    }
    format!(
        "--nnodes {nodes} --nproc_per_node {gpus} --rdzv_id agent-memory --rdzv_backend c10d --rdzv_endpoint \"$MAIN_HOST:{PORT}\""
    )
}

fn accelerate(shape: Shape) -> String {
    let nodes = match shape.nodes {
        1 => String::new(),
        _ => format!(" --machine_rank \"$NODE_RANK\" --main_process_ip \"$MAIN_HOST\" --main_process_port {PORT}"),
    };
    format!("accelerate launch --config_file {ACCELERATE_FILE}{nodes}")
}

/// `run.sh`.
pub(super) fn script(job: &ScaleOut<'_>, commands: &Commands) -> String {
    let asked = asked(job).map(|(name, what)| format!(": \"${{{name}:?set it to {what}}}\"\n"));
    let convert = commands.convert.as_ref().map(|command| format!("{command}\n")).unwrap_or_default();
    // Each of them takes all GPUs that it sees, and an update would take as many times the rows.
    let one_gpu = if job.shape.devices() == 1 && job.trainer != Trainer::Mlx {
        "export CUDA_VISIBLE_DEVICES=\"${CUDA_VISIBLE_DEVICES:-0}\"\n"
    } else {
        ""
    };
    format!(
        "#!/bin/sh\n# Once, before: {}\nset -eu\ncd \"$(dirname \"$0\")\"\n{}{one_gpu}{}\n{convert}",
        commands.install,
        asked.collect::<String>(),
        commands.train,
    )
}

/// `run.md`.
pub(super) fn description(job: &ScaleOut<'_>, commands: &Commands, batch: u64) -> String {
    let ScaleOut { trainer, shape, recipe, base, .. } = *job;
    let place = match shape {
        _ if shape.devices() == 1 => "one GPU".to_owned(),
        Shape { gpus, nodes: 1, strategy } => format!("{gpus} GPUs, shared as {strategy}"),
        Shape { gpus, nodes, strategy } => format!("{nodes} nodes with {gpus} GPU(s) each, shared as {strategy}"),
    };
    let asked: Vec<_> = asked(job).map(|(name, what)| format!("- `{name}`: {what}\n")).collect();
    let asked = if asked.is_empty() {
        String::new()
    } else {
        let places = if trainer == Trainer::Mlx { "Run it on one of the machines" } else { "Run it on every node" };
        format!("{places}, each with this folder in the same place, with these variables set:\n\n{}\n", asked.concat())
    };
    let grown = if batch > recipe.batch {
        format!(" An update takes {batch} rows and not {}, for each GPU takes one at least.", recipe.batch)
    } else {
        String::new()
    };
    let convert = if commands.convert.is_some() {
        "mlx-lm writes an adapter in a form of its own; `to_peft.py`, which `run.sh` runs at the end, writes it in PEFT's to \
         `out/peft`. It turns the matrices and changes no number. Whoever wants the whole tuned model instead: `mlx_lm.fuse \
         --model BASE --adapter-path out --save-path fused`.\n\n"
    } else {
        ""
    };
    let failed = match job.failed_audit {
        super::FailedAudit::Refuse => "",
        super::FailedAudit::Allow => " A failed audit was allowed: look into the dataset's audit.md.",
    };
    format!(
        "# Train with {trainer}\n\n\
         {base} on {place}: r {}, alpha {}, learning rate {}, {} epochs.{grown}{failed}\n\n\
         These rows are private: they come from a journal. Copy this folder only to machines that may have them.\n\n\
         Install, once a machine:\n\n```sh\n{}\n```\n\n\
         Train: `sh run.sh`. {asked}It runs\n\n```sh\n{}\n```\n\n\
         {convert}Copy `out` back, and let the adapter be merged, converted and checked:\n\n```sh\n{}\n```\n",
        recipe.r,
        recipe.alpha,
        recipe.learning_rate,
        recipe.epochs,
        commands.install,
        commands.train,
        commands.take_back,
    )
}

/// The variables that a run on several nodes needs: their names, and what they are.
fn asked(job: &ScaleOut<'_>) -> impl Iterator<Item = (&'static str, &'static str)> {
    const HOST: (&str, &str) = ("MAIN_HOST", "the address of the first node, the same on all");
    const RANK: (&str, &str) = ("NODE_RANK", "0 on the first node, 1 on the second and so on");
    const HOSTS: (&str, &str) = ("HOSTS", "the machines' addresses with commas between, this one first");
    let needs_rank = job.trainer == Trainer::LlamaFactory || job.shape.strategy == Strategy::Fsdp;
    let needed: &[_] = match job.trainer {
        _ if job.shape.nodes == 1 => &[],
        Trainer::Mlx => &[HOSTS],
        Trainer::Axolotl => &[HOST],
        _ if needs_rank => &[HOST, RANK],
        _ => &[HOST],
    };
    needed.iter().copied()
}
