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
            .env_remove("AGENT_MEMORY_DATABASE_URL")
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .expect("the program was built beside this test");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Told { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
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
