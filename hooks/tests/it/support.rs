//! What the tests share: a folder of their own, a server that plays one answer, and the program under test.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

pub(crate) const TOKEN: &str = "token-of-the-test";
pub(crate) const PAYLOAD: &str = r#"{"session_id":"s", "tool_input":{"command":"echo \"ü\""}}"#;

/// A folder that goes away with its owner.
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("agent-memory-hook-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        // Where the temporary folder is a link, the program sees where it leads.
        Self { path: path.canonicalize().unwrap() }
    }

    /// A home with a token and that address.
    pub(crate) fn home(address: &str) -> Self {
        let home = Self::new();
        home.write("token", &format!("{TOKEN}\n"));
        home.write("address", &format!("{address}\n"));
        home
    }

    /// A home whose server is away.
    pub(crate) fn home_without_server() -> Self {
        // Bound and dropped: nobody listens there, and nobody else is given the port soon.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Self::home(&address.to_string())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path.join(name), text).unwrap();
    }

    /// The names in the spool, in order. Nothing where there is no spool.
    pub(crate) fn spooled_names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.path.join("spool")) else { return Vec::new() };
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// The one envelope in the spool.
    pub(crate) fn spooled(&self) -> String {
        let names = self.spooled_names();
        assert_eq!(names.len(), 1, "{names:?}");
        std::fs::read_to_string(self.path.join("spool").join(&names[0])).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

/// A server that answers every request with the same bytes.
pub(crate) struct FakeServer {
    pub(crate) address: String,
    requests: Receiver<String>,
}

impl FakeServer {
    pub(crate) fn answering(answer: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let is_over = sender.send(request).is_err();
                // Like the real one, it says in its answer whose it is.
                let answer = answer.replacen("\r\n", "\r\nServer: agent-memory/0\r\n", 1);
                let _ = stream.write_all(answer.as_bytes());
                if is_over {
                    break;
                }
            }
        });
        Self { address, requests }
    }

    /// The head and the body of the one request.
    pub(crate) fn request(&self) -> (String, String) {
        let request = self.requests.recv_timeout(Duration::from_secs(10)).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }

    pub(crate) fn has_no_request(&self) -> bool {
        self.requests.try_recv().is_err()
    }
}

/// As much of a request as comes: the program may give up in the middle.
fn read_request(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut received = Vec::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => received.extend_from_slice(&buffer[..count]),
        }
        if is_whole(&received) {
            break;
        }
    }
    String::from_utf8_lossy(&received).into_owned()
}

fn is_whole(received: &[u8]) -> bool {
    let Some(head_length) = received.windows(4).take(4096).position(|window| window == b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&received[..head_length]);
    let length = head.split_once("Content-Length: ").unwrap().1.split("\r\n").next().unwrap();
    received.len() >= head_length + 4 + length.parse::<usize>().unwrap()
}

/// The program, with nothing in its environment but what it is given.
pub(crate) fn hook() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_agent-memory-hook"));
    command.env_clear();
    command
}

pub(crate) fn hook_in(home: &Folder, event: &str) -> Command {
    let mut command = hook();
    command.env("AGENT_MEMORY_HOME", home.path()).args(["claude-code", event]).current_dir(home.path());
    command
}

/// Runs the command with that on stdin. It must end with 0 and say nothing on stderr; returns its stdout.
#[track_caller]
pub(crate) fn run(command: &mut Command, stdin: &[u8]) -> String {
    let output = output_of(command, stdin);
    assert_eq!(output.status.code(), Some(0), "{:?}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap()
}

fn output_of(command: &mut Command, stdin: &[u8]) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut child = loop {
        match command.spawn() {
            // A program that was just copied is open for writing in the child of another thread, until that child runs its own.
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy && Instant::now() < deadline => {
                std::thread::yield_now();
            }
            child => break child.unwrap(),
        }
    };
    // A program that does nothing does not read either.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    child.wait_with_output().unwrap()
}

/// The shortest of a few runs: what the program itself takes on a busy machine.
pub(crate) fn shortest(runs: usize, mut run: impl FnMut()) -> Duration {
    let elapsed = (0..runs).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    elapsed.min().unwrap()
}

/// Waits until the condition holds.
#[track_caller]
pub(crate) fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < deadline, "still waiting after ten seconds");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs a program that must succeed, and returns its stdout without the last line's end.
#[track_caller]
pub(crate) fn output(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(arguments.iter().map(OsStr::new)).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
