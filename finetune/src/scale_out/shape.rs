//! How many GPUs there are and what they share, and which trainer can do that.

use std::fmt;

use super::Trainer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Of each node.
    pub gpus: u64,
    pub nodes: u64,
    pub strategy: Strategy,
}

/// What the GPUs share. With one GPU there is only `Ddp`, and nothing to share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Strategy {
    /// Each has the whole model and other rows.
    Ddp,
    /// DeepSpeed; gradients and the optimiser's state are parted.
    #[value(name = "deepspeed-zero2")]
    DeepspeedZero2,
    /// DeepSpeed; the weights are parted too.
    #[value(name = "deepspeed-zero3")]
    DeepspeedZero3,
    /// PyTorch's own way to part all of it, in its second version.
    Fsdp,
}

/// A shape that a trainer cannot have, and what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Impossible {
    #[error("{nodes} nodes of {gpus} GPUs are none: a run needs one GPU at least")]
    Nothing { nodes: u64, gpus: u64 },
    #[error("one GPU has no other to share a model with as {0} does: take ddp")]
    Alone(Strategy),
    #[error(
        "the script for unsloth has each GPU hold the whole model and write one adapter, so {0} is not to be had: take ddp, or \
         axolotl for models that one GPU cannot hold"
    )]
    UnslothShares(Strategy),
    #[error(
        "mlx has neither DeepSpeed nor FSDP, so {0} is not to be had: take ddp, which has each machine train on other rows"
    )]
    MlxShares(Strategy),
    #[error("a Mac has one GPU, and {0} were asked for: take one GPU a node and more nodes")]
    MlxGpus(u64),
}

impl Strategy {
    pub const ALL: [Self; 4] = [Self::Ddp, Self::DeepspeedZero2, Self::DeepspeedZero3, Self::Fsdp];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ddp => "ddp",
            Self::DeepspeedZero2 => "deepspeed-zero2",
            Self::DeepspeedZero3 => "deepspeed-zero3",
            Self::Fsdp => "fsdp",
        }
    }

    pub(super) const fn is_deepspeed(self) -> bool {
        matches!(self, Self::DeepspeedZero2 | Self::DeepspeedZero3)
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Shape {
    pub const fn devices(self) -> u64 {
        self.gpus * self.nodes
    }

    /// Whether a trainer can have this shape.
    pub fn check(self, trainer: Trainer) -> Result<(), Impossible> {
        let Self { gpus, nodes, strategy } = self;
        let shares_model = strategy != Strategy::Ddp;
        if self.devices() == 0 {
            return Err(Impossible::Nothing { nodes, gpus });
        }
        match trainer {
            Trainer::Unsloth if shares_model => Err(Impossible::UnslothShares(strategy)),
            Trainer::Mlx if shares_model => Err(Impossible::MlxShares(strategy)),
            Trainer::Mlx if gpus > 1 => Err(Impossible::MlxGpus(gpus)),
            _ if shares_model && self.devices() == 1 => Err(Impossible::Alone(strategy)),
            _ => Ok(()),
        }
    }
}
