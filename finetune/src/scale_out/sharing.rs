//! What a strategy adds: DeepSpeed's file, FSDP's settings for Accelerate, and the lines that the trainer's own configuration gets.

use super::{Shape, Strategy, Trainer};
use crate::dataset::render::Family;

pub(super) const DEEPSPEED_FILE: &str = "deepspeed.json";
pub(super) const ACCELERATE_FILE: &str = "accelerate.yaml";

/// `auto` is what the trainer's configuration says; the rest are DeepSpeed's defaults.
const ZERO2: &str = r#"{
  "bf16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 2,
    "overlap_comm": true,
    "contiguous_gradients": true
  },
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto"
}
"#;

/// The whole weights are gathered where a checkpoint is saved, else the adapter would be parted.
const ZERO3: &str = r#"{
  "bf16": {"enabled": "auto"},
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true,
    "contiguous_gradients": true,
    "reduce_bucket_size": "auto",
    "stage3_prefetch_bucket_size": "auto",
    "stage3_param_persistence_threshold": "auto",
    "stage3_gather_16bit_weights_on_model_save": true
  },
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto"
}
"#;

/// The file that goes beside the configuration, if there is one: its name and its text.
pub(super) fn file(trainer: Trainer, shape: Shape, family: Family) -> Option<(&'static str, String)> {
    match shape.strategy {
        Strategy::Ddp => None,
        Strategy::DeepspeedZero2 => Some((DEEPSPEED_FILE, ZERO2.to_owned())),
        Strategy::DeepspeedZero3 => Some((DEEPSPEED_FILE, ZERO3.to_owned())),
        Strategy::Fsdp if trainer == Trainer::Axolotl => None,
        Strategy::Fsdp => Some((ACCELERATE_FILE, accelerate(shape, family))),
    }
}

/// The lines that are added to the trainer's configuration.
pub(super) fn lines(trainer: Trainer, strategy: Strategy, family: Family) -> String {
    match strategy {
        Strategy::DeepspeedZero2 | Strategy::DeepspeedZero3 => format!("deepspeed: {DEEPSPEED_FILE}\n"),
        Strategy::Fsdp if trainer == Trainer::Axolotl => format!(
            "fsdp_version: 2\n\
             fsdp_config:\n\
            \x20 auto_wrap_policy: TRANSFORMER_BASED_WRAP\n\
            \x20 transformer_layer_cls_to_wrap: {}\n\
            \x20 state_dict_type: FULL_STATE_DICT\n\
            \x20 reshard_after_forward: true\n\
            \x20 offload_params: false\n",
            block(family)
        ),
        // For others FSDP stands in a file of its own.
        Strategy::Ddp | Strategy::Fsdp => String::new(),
    }
}

fn accelerate(shape: Shape, family: Family) -> String {
    format!(
        "compute_environment: LOCAL_MACHINE\n\
         distributed_type: FSDP\n\
         mixed_precision: bf16\n\
         num_machines: {}\n\
         num_processes: {}\n\
         machine_rank: 0\n\
         main_training_function: main\n\
         fsdp_config:\n\
        \x20 fsdp_version: 2\n\
        \x20 fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP\n\
        \x20 fsdp_transformer_layer_cls_to_wrap: {}\n\
        \x20 fsdp_state_dict_type: FULL_STATE_DICT\n\
        \x20 fsdp_reshard_after_forward: true\n\
        \x20 fsdp_cpu_ram_efficient_loading: true\n\
        \x20 fsdp_offload_params: false\n",
        shape.nodes,
        shape.devices(),
        block(family)
    )
}

/// What transformers calls a block of the model: FSDP parts the weights by them.
const fn block(family: Family) -> &'static str {
    match family {
        Family::Qwen3 => "Qwen3DecoderLayer",
        Family::Qwen25 => "Qwen2DecoderLayer",
    }
}
