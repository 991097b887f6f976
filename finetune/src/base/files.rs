//! The files of a model's folder besides its weights.

/// What belongs to the tokenizer and the template, where it is there; copied as it is to every folder that is made of a base.
pub const TOKENIZER_FILES: [&str; 7] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
    "generation_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "merges.txt",
];
