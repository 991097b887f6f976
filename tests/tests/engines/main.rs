//! GGUF files where people use them: real engines load what is written here and say what the model says, and a model that others published
//! says the same in both engines.

mod agreement;
mod published;
mod written;
