//! `bench gguf`: makes a base of random numbers, and writes it as files, here and with llama.cpp.

use anyhow::{Result, anyhow, bail, ensure};

use super::random_base::{self, Scratch};
use crate::bench::gguf::{self, GgufBench, LlamaCpp, Parameters};
use crate::bench::record;
use crate::cli::BenchGgufArgs;
use crate::output::{Printer, hinted};

pub(super) async fn run(arguments: &BenchGgufArgs, printer: &Printer) -> Result<()> {
    ensure!(arguments.rounds > 0, "at least one round is needed");
    let script = arguments.converter.join("convert_hf_to_gguf.py");
    if !script.is_file() {
        return Err(hinted(
            anyhow!("there is no `{}`", script.display()),
            "`pip download --no-deps --no-binary llama-cpp-python llama-cpp-python` brings it, in vendor/llama.cpp",
        ));
    }
    let tokenizer = Some(&*arguments.tokenizer);
    let measured = random_base::with(tokenizer, printer, async |scratch| measure(scratch, arguments, printer).await);
    let measured = measured.await?;
    super::print(&measured, arguments.json, printer)?;
    if arguments.write {
        record::record("gguf", &measured.to_string(), printer)?;
    }
    if !measured.meets_its_limits() {
        bail!("writing a file is slower, or takes more memory, than it may");
    }
    Ok(())
}

async fn measure(scratch: &Scratch<'_>, arguments: &BenchGgufArgs, printer: &Printer) -> Result<GgufBench> {
    let step = printer.step("Writing it as files, here and with llama.cpp");
    let BenchGgufArgs { python, converter, library, rounds, .. } = arguments;
    let llama_cpp = LlamaCpp { python, converter, library: library.as_deref() };
    let Scratch { program, folder, base } = scratch;
    let parameters = Parameters { program, base, scratch: folder, rounds: *rounds, llama_cpp };
    let measured = gguf::run(&parameters).await?;
    step.done("Wrote it as files, here and with llama.cpp");
    Ok(measured)
}
