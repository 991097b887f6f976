//! The trainers that a run can be handed to.

use std::fmt;

use crate::dataset::formats::{AXOLOTL, Configuration, LLAMA_FACTORY, MLX, TRL, UNSLOTH};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Trainer {
    Axolotl,
    Trl,
    Unsloth,
    LlamaFactory,
    Mlx,
}

impl Trainer {
    pub const ALL: [Self; 5] = [Self::Axolotl, Self::Trl, Self::Unsloth, Self::LlamaFactory, Self::Mlx];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Axolotl => "axolotl",
            Self::Trl => "trl",
            Self::Unsloth => "unsloth",
            Self::LlamaFactory => "llama-factory",
            Self::Mlx => "mlx",
        }
    }

    pub(super) const fn configuration(self) -> Configuration {
        match self {
            Self::Axolotl => AXOLOTL,
            Self::Trl => TRL,
            Self::Unsloth => UNSLOTH,
            Self::LlamaFactory => LLAMA_FACTORY,
            Self::Mlx => MLX,
        }
    }

    /// What `pip` installs: the versions that the configurations were held against (docs/finetune/scale-out.md).
    pub(super) const fn packages(self, with_deepspeed: bool) -> &'static str {
        match (self, with_deepspeed) {
            (Self::Axolotl, false) => "'axolotl==0.19.0'",
            (Self::Axolotl, true) => "'axolotl[deepspeed]==0.19.0'",
            (Self::Trl, false) => "'trl[peft]==1.16.0'",
            (Self::Trl, true) => "'trl[peft]==1.16.0' 'deepspeed==0.19.8'",
            (Self::Unsloth, _) => "'unsloth==2026.10.9'",
            (Self::LlamaFactory, false) => "'llamafactory==0.9.5'",
            (Self::LlamaFactory, true) => "'llamafactory==0.9.5' 'deepspeed==0.19.8'",
            (Self::Mlx, _) => "'mlx-lm==0.32.2'",
        }
    }
}

impl fmt::Display for Trainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
