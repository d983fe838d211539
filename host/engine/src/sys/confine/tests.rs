//! System calls of a confined process. Each attempt runs in a separate process of this test
//! program, because confinement cannot be undone.

use std::process::{Command, Stdio};

use super::{Confinement, confine_this_process};

/// Environment variable for the confined process that names the attempt.
const ATTEMPT: &str = "COFFERDAM_TEST_ATTEMPT";
const REFUSED: i32 = 40;
const DONE: i32 = 41;

/// Returns the exit codes of an attempt, with and without confinement.
fn ends(attempt: &str) -> (i32, i32) {
    let run = |first: &str| {
        let status = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "sys::confine::tests::attempt", "--nocapture"])
            .env(ATTEMPT, format!("{first} {attempt}"))
            .env("RAYON_NUM_THREADS", "2")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        status.unwrap().code().expect("the attempt is not killed")
    };
    (run("confined"), run("free"))
}

/// Runs in the separate process. Does nothing when started on its own.
#[test]
fn attempt() {
    let Ok(attempt) = std::env::var(ATTEMPT) else { return };
    let (first, attempt) = attempt.split_once(' ').unwrap();
    // Resources that an attempt needs from before the confinement. A compromised compiler would
    // find such resources as well.
    let file = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let parent = rustix::process::getppid().unwrap();
    let (start, started) = std::sync::mpsc::channel();
    let earlier = std::thread::spawn(move || {
        started.recv().unwrap();
        std::fs::File::open("/etc/passwd").is_ok()
    });
    if first == "confined" {
        assert_eq!(confine_this_process(), Confinement::Full);
    }
    let done = match attempt {
        "open" => std::fs::File::open("/etc/passwd").is_ok(),
        "create" => std::fs::File::create(std::env::temp_dir().join("cofferdam-attempt")).is_ok(),
        "list" => std::fs::read_dir("/").is_ok(),
        "look" => std::fs::metadata("/etc/passwd").is_ok(),
        "remove" => std::fs::remove_file("/nowhere")
            .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound),
        "read" => std::io::Read::read(&mut &file, &mut [0; 8]).is_ok(),
        "connect" => can_connect(),
        "datagram" => std::net::UdpSocket::bind("127.0.0.1:0").is_ok(),
        "local" => std::os::unix::net::UnixStream::pair().is_ok(),
        "spawn" => Command::new("/bin/true").status().is_ok(),
        "signal" => rustix::process::test_kill_process(parent).is_ok(),
        "thread" => std::thread::spawn(|| 7).join().unwrap() == 7,
        "inherit" => {
            std::thread::spawn(|| std::fs::File::open("/etc/passwd").is_ok()).join().unwrap()
        }
        "earlier" => {
            start.send(()).unwrap();
            earlier.join().unwrap()
        }
        "allocate" => std::hint::black_box(vec![1_u8; 300 << 20]).len() == 300 << 20,
        "compile" => compiles(),
        other => panic!("no such attempt: {other}"),
    };
    std::process::exit(if done { DONE } else { REFUSED });
}

/// Returns true if an attempt to connect reaches the network, even if nothing listens there.
fn can_connect() -> bool {
    match std::net::TcpStream::connect("127.0.0.1:9") {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
    }
}

fn compiles() -> bool {
    use crate::config::{Metering, compile_config};
    let functions =
        "(func (export \"f\") (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))";
    let component = wat::parse_str(format!("(component (core module {functions}))")).unwrap();
    let engine = wasmtime::Engine::new(&compile_config(Metering::Time)).unwrap();
    engine.precompile_component(&component).is_ok()
}

#[test]
fn what_a_compiler_needs_still_works() {
    for attempt in ["thread", "allocate", "compile"] {
        assert_eq!(ends(attempt), (DONE, DONE), "{attempt}");
    }
}

#[test]
fn everything_else_is_refused() {
    let attempts = [
        "open", "create", "list", "look", "remove", "read", "connect", "datagram", "local",
        "spawn", "signal", "inherit", "earlier",
    ];
    for attempt in attempts {
        assert_eq!(ends(attempt), (REFUSED, DONE), "{attempt}");
    }
}
