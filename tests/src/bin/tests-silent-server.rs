//! A server program that starts and never answers: what an upgrade can bring in the worst case. It ends when it is told to.

fn main() {
    loop {
        std::thread::park();
    }
}
