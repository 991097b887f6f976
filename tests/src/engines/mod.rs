//! Engines that load GGUF files, and a model that is published as one: what is written here must work where people use it.

pub mod llama;
pub mod smollm;
