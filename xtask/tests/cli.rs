//! The program as an operator meets it: what goes to stdout, what to stderr, and the exit code.

use std::net::TcpListener;
use std::path::PathBuf;

use tokio::process::Command;

/// A home that does not exist yet, and the program that would make it.
struct Operator {
    folder: tempfile::TempDir,
}

struct Told {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Operator {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("the system has a folder for temporary files") }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    async fn runs(&self, arguments: &[&str]) -> Told {
        let output = Command::new(env!("CARGO_BIN_EXE_xtask"))
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .env("AGENT_MEMORY_HOME", self.home())
            .env("HOME", self.folder.path())
            .env_remove("CLAUDE_CONFIG_DIR")
            .env_remove("CODEX_HOME")
            .env_remove("COPILOT_HOME")
            .env_remove("GEMINI_CLI_HOME")
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("AGENT_MEMORY_DATABASE_URL")
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .expect("the program was built beside this test");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Told { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// As if `up` had installed the two programs that agents start.
    fn install(&self) {
        let bin = self.home().join("bin");
        std::fs::create_dir_all(&bin).expect("the folder is the test's own");
        for program in ["agent-memory-hook", "agent-memory-mcp"] {
            std::fs::write(bin.join(format!("{program}{}", std::env::consts::EXE_SUFFIX)), "")
                .expect("the folder is there");
        }
    }

    fn write(&self, path: &str, text: &str) -> std::path::PathBuf {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is the test's own");
        std::fs::write(&path, text).expect("the folder is there");
        path
    }
}

#[tokio::test]
async fn status_without_an_installation_is_valid_json_and_no_failure() {
    let told = Operator::new().runs(&["status", "--json"]).await;
    let status: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert!(status["installation"].is_null());
    assert_eq!(told.code, Some(0));
}

#[tokio::test]
async fn doctor_without_an_installation_fails_and_names_the_command_that_mends_it() {
    let told = Operator::new().runs(&["doctor"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("mend: cargo xtask up"), "{}", told.stdout);
    assert!(told.stderr.starts_with("error: 1 of 1 parts need mending"), "{}", told.stderr);
}

#[tokio::test]
async fn a_wrong_flag_is_the_operators_failure_and_prints_nothing_on_stdout() {
    let told = Operator::new().runs(&["up", "--no-such-flag"]).await;
    assert_eq!((told.code, told.stdout.as_str()), (Some(1), ""));
    assert!(told.stderr.contains("--no-such-flag"));
}

#[tokio::test]
async fn down_without_an_installation_is_done_at_once() {
    let operator = Operator::new();
    let told = operator.runs(&["down"]).await;
    assert_eq!(told.code, Some(0));
    assert!(!operator.home().exists());
}

#[tokio::test]
async fn start_without_an_installation_says_how_to_install() {
    let told = Operator::new().runs(&["start", "--quiet"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("hint: run `cargo xtask up`"), "{}", told.stderr);
}

#[tokio::test]
async fn backup_without_an_installation_makes_nothing_and_says_how_to_install() {
    let operator = Operator::new();
    for arguments in [&["backup"][..], &["restore", "--undo", "--yes"], &["import", "all.ndjson"]] {
        let told = operator.runs(arguments).await;
        assert_eq!(told.code, Some(1), "{arguments:?}");
        assert!(told.stderr.contains("hint: run `cargo xtask up`"), "{}", told.stderr);
    }
    let told = operator.runs(&["restore", "latest"]).await;
    assert!(told.stderr.contains("hint: make one: `cargo xtask backup`"), "{}", told.stderr);
    assert!(!operator.home().exists());
}

#[tokio::test]
async fn up_refuses_a_taken_port_before_it_makes_anything() {
    let operator = Operator::new();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port().to_string();
    let told = operator.runs(&["up", "--no-register", "--runtime", "embedded", "--port", &port]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains(&format!("another program listens on 127.0.0.1:{port}")), "{}", told.stderr);
    assert!(told.stderr.contains("hint: "), "{}", told.stderr);
    assert!(!operator.home().exists());
}

#[tokio::test]
async fn up_refuses_a_database_that_is_not_there_and_never_tells_its_password() {
    let operator = Operator::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("postgres://someone:hunter2@127.0.0.1:{free}/journal");
    let told = operator.runs(&["up", "--no-register", "--port", &free.to_string(), "--database-url", &url]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains(&format!("127.0.0.1:{free}/journal")), "{}", told.stderr);
    assert!(!told.stderr.contains("hunter2"), "{}", told.stderr);
    assert!(!operator.home().exists());
}

#[tokio::test]
async fn register_refuses_to_name_programs_that_are_not_installed() {
    let operator = Operator::new();
    let told = operator.runs(&["register", "claude"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("agent-memory-hook") && told.stderr.contains("cargo xtask up"), "{}", told.stderr);
    assert!(!operator.folder.path().join(".claude").exists());
}

#[tokio::test]
async fn one_agents_broken_settings_keep_no_other_from_being_registered() {
    let operator = Operator::new();
    operator.install();
    let broken = operator.write(".codex/config.toml", "model = \n");
    let gemini = operator.write(".gemini/settings.json", "{}");
    let told = operator.runs(&["register"]).await;
    assert_eq!(told.code, Some(1), "{}", told.stderr);
    assert!(told.stderr.contains("config.toml` is not valid TOML and was left as it is"), "{}", told.stderr);
    assert!(told.stderr.contains("1 of 2 agents could not be seen to: Codex"), "{}", told.stderr);
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "model = \n");
    assert!(!operator.folder.path().join(".codex/hooks.json").exists());
    assert!(std::fs::read_to_string(&gemini).unwrap().contains("agent-memory-hook"));

    let told = operator.runs(&["unregister", "gemini"]).await;
    assert_eq!((told.code, std::fs::read_to_string(gemini).unwrap().as_str()), (Some(0), "{}"));
}

#[tokio::test]
async fn register_tells_a_script_what_became_of_each_event_of_each_agent() {
    let operator = Operator::new();
    operator.install();
    let told = operator.runs(&["register", "--agents", "codex,claude", "--json"]).await;
    assert_eq!(told.code, Some(0), "{}", told.stderr);
    let report: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&report[0]["agent"], &report[1]["agent"]), (&"claude".into(), &"codex".into()));
    let codex = &report[1];
    assert_eq!(codex["files"][0]["items"][0], serde_json::json!({"name": "SessionStart", "outcome": "added"}));
    assert_eq!(codex["unavailable"][0]["name"], "PostToolUseFailure");
    assert!(codex["remarks"][0].as_str().unwrap().contains("/hooks"), "{codex}");
    assert_eq!(told.stdout.matches("\"agent\"").count(), 2, "{}", told.stdout);

    let told = operator.runs(&["unregister", "--json"]).await;
    let report: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(report.as_array().unwrap().len(), 2, "{report}");
    assert!(!operator.folder.path().join(".codex").exists());
}

#[tokio::test]
async fn register_without_any_agent_says_how_to_name_one() {
    let operator = Operator::new();
    operator.install();
    let told = operator.runs(&["register"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stderr.contains("hint: name one"), "{}", told.stderr);
}
