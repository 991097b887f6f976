//! The trainers' configurations: one text for each, filled for the dataset's own folder (one GPU, the usual settings) and for the
//! folder of a run elsewhere (the shape and settings that are asked for).

use super::recipe::Recipe;
use crate::dataset::render::Family;

/// A file that is the same for every dataset but for what stands in `{{...}}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Configuration {
    /// In the dataset's folder.
    pub(crate) path: &'static str,
    /// The training data that it reads, which says how many updates there are.
    pub(crate) data: &'static str,
    /// How many rows a device takes at once where the batch has room for it.
    rows_at_once: u64,
    text: &'static str,
}

pub(crate) const AXOLOTL: Configuration = Configuration {
    path: "formats/axolotl/axolotl.yaml",
    data: "formats/axolotl/tokens/train.jsonl",
    rows_at_once: 2,
    text: include_str!("axolotl.yaml"),
};
pub(crate) const TRL: Configuration = Configuration {
    path: "formats/trl/sft.yaml",
    data: "formats/trl/data/train.jsonl",
    rows_at_once: 2,
    text: include_str!("trl.yaml"),
};
pub(crate) const UNSLOTH: Configuration = Configuration {
    path: "formats/unsloth/train.py",
    data: "formats/unsloth/train.jsonl",
    rows_at_once: 2,
    text: include_str!("unsloth.py"),
};
pub(crate) const LLAMA_FACTORY: Configuration = Configuration {
    path: "formats/llama-factory/train.yaml",
    data: "formats/llama-factory/train.jsonl",
    rows_at_once: 1,
    text: include_str!("llama-factory.yaml"),
};
/// Names the data files to LLaMA-Factory.
const DATASET_INFO: Configuration = Configuration {
    path: "formats/llama-factory/dataset_info.json",
    data: "formats/llama-factory/train.jsonl",
    rows_at_once: 1,
    text: include_str!("dataset_info.json"),
};
pub(crate) const MLX: Configuration = Configuration {
    path: "formats/mlx/lora.yaml",
    data: "formats/mlx/train.jsonl",
    rows_at_once: 1,
    text: include_str!("mlx.yaml"),
};

pub(in crate::dataset) const CONFIGURATIONS: [Configuration; 6] =
    [AXOLOTL, TRL, UNSLOTH, LLAMA_FACTORY, DATASET_INFO, MLX];

/// What a configuration is filled with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filling<'a> {
    pub(crate) family: Family,
    /// The name or folder of the base model; without it the family's smallest.
    pub(crate) base: Option<&'a str>,
    pub(crate) max_tokens: usize,
    pub(crate) recipe: &'a Recipe,
    /// The lines of the training data.
    pub(crate) lines: u64,
    /// All devices that train together.
    pub(crate) devices: u64,
    /// Whether the rows of all devices are one number in the configuration, and not those of each.
    pub(crate) counts_all_devices: bool,
}

impl Configuration {
    /// How many rows each device takes at once, and how many times before an update. Where the batch is smaller than one row a
    /// device, it becomes that.
    pub(crate) fn steps(self, batch: u64, devices: u64) -> Steps {
        let rows_at_once = self.rows_at_once.min(batch / devices).max(1);
        let accumulation = batch.div_ceil(rows_at_once * devices).max(1);
        Steps { rows_at_once, accumulation, batch: rows_at_once * devices * accumulation }
    }

    pub(crate) fn filled(self, filling: &Filling<'_>) -> String {
        let (usual, template) = match filling.family {
            Family::Qwen3 => ("Qwen/Qwen3-0.6B", "qwen3\nenable_thinking: false"),
            Family::Qwen25 => ("Qwen/Qwen2.5-0.5B-Instruct", "qwen"),
        };
        let recipe = filling.recipe;
        let steps = self.steps(recipe.batch, filling.devices);
        let updates = (filling.lines * recipe.epochs).div_ceil(steps.batch).max(1);
        let rows_at_once =
            if filling.counts_all_devices { steps.rows_at_once * filling.devices } else { steps.rows_at_once };
        // A text in quotes is the same in JSON, YAML and Python.
        let base = serde_json::Value::from(filling.base.unwrap_or(usual)).to_string();
        let values = [
            ("base", base),
            ("template", template.to_owned()),
            ("max_tokens", filling.max_tokens.to_string()),
            ("r", recipe.r.to_string()),
            ("alpha", recipe.alpha.to_string()),
            ("scale", decimal(recipe.alpha as f64 / recipe.r as f64)),
            ("dropout", decimal(recipe.dropout)),
            ("learning_rate", decimal(recipe.learning_rate)),
            ("epochs", recipe.epochs.to_string()),
            ("rows_at_once", rows_at_once.to_string()),
            ("accumulation", steps.accumulation.to_string()),
            ("updates", updates.to_string()),
            ("warmup_updates", ((updates as f64 * recipe.warmup).round() as u64).to_string()),
            ("iterations", (updates * steps.accumulation).to_string()),
            ("seed", recipe.seed.to_string()),
        ];
        values.iter().fold(self.text.to_owned(), |text, (name, value)| text.replace(&format!("{{{{{name}}}}}"), value))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    pub(crate) rows_at_once: u64,
    pub(crate) accumulation: u64,
    /// The rows of an update.
    pub(crate) batch: u64,
}

/// Never with an exponent: readers of YAML take `1e-4` for a text.
fn decimal(value: f64) -> String {
    let text = value.to_string();
    if text.contains('.') { text } else { text + ".0" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_takes_the_batch_whatever_the_devices() {
        for (batch, devices, expected) in [(8, 1, (2, 4, 8)), (8, 4, (2, 1, 8)), (8, 8, (1, 1, 8)), (8, 16, (1, 1, 16))]
        {
            let Steps { rows_at_once, accumulation, batch: all } = AXOLOTL.steps(batch, devices);
            assert_eq!((rows_at_once, accumulation, all), expected, "{batch} on {devices}");
        }
    }

    #[test]
    fn numbers_have_a_point_and_no_exponent() {
        assert_eq!([decimal(1e-4), decimal(0.0), decimal(2.0), decimal(5e-7)], ["0.0001", "0.0", "2.0", "0.0000005"]);
    }

    #[test]
    fn nothing_is_left_to_fill() {
        let recipe = Recipe::default();
        for configuration in CONFIGURATIONS {
            for family in [Family::Qwen3, Family::Qwen25] {
                let filling = Filling {
                    family,
                    base: None,
                    max_tokens: 2048,
                    recipe: &recipe,
                    lines: 100,
                    devices: 1,
                    counts_all_devices: false,
                };
                let text = configuration.filled(&filling);
                assert!(!text.contains("{{") && !text.contains("}}"), "{text}");
            }
        }
    }
}
