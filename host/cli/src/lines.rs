//! Lines of standard input, for whoever asked last.
//!
//! Nothing can interrupt reading a line. One thread reads, while somebody waits; who gives up takes no line along, and the
//! next one that is typed is for whoever asks then.

use std::io::{BufRead, Read};
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError, mpsc};

use tokio::sync::oneshot;

/// A line without its end; `None` when there are no more.
pub(crate) type Line = Option<String>;

/// Longest line in bytes. A longer one is taken for the end of the input: it is a file that nobody has typed.
const LINE_BYTES_MAX: u64 = 1024 * 1024;

static WAITING: Mutex<Option<Waiter>> = Mutex::new(None);
static SOMEBODY_WAITS: Condvar = Condvar::new();
static READER: Once = Once::new();

enum Waiter {
    Task(oneshot::Sender<Line>),
    Thread(mpsc::Sender<Line>),
}

/// The next line, for a task. Whoever has waited until now goes away with an error.
pub(crate) fn next() -> oneshot::Receiver<Line> {
    let (send, receive) = oneshot::channel();
    wait_as(Waiter::Task(send));
    receive
}

/// The next line, for a thread that may block; `None` as well if somebody else asks meanwhile.
pub(crate) fn next_blocking() -> Line {
    let (send, receive) = mpsc::channel();
    wait_as(Waiter::Thread(send));
    receive.recv().ok().flatten()
}

fn wait_as(waiter: Waiter) {
    *waiting() = Some(waiter);
    SOMEBODY_WAITS.notify_one();
    READER.call_once(|| drop(std::thread::spawn(read)));
}

fn read() {
    loop {
        let mut waiter = waiting();
        while waiter.as_ref().is_none_or(Waiter::has_given_up) {
            waiter = SOMEBODY_WAITS.wait(waiter).unwrap_or_else(PoisonError::into_inner);
        }
        // Not held while reading: somebody else may ask.
        drop(waiter);
        let line = read_line();
        match waiting().take() {
            Some(Waiter::Task(send)) => drop(send.send(line)),
            Some(Waiter::Thread(send)) => drop(send.send(line)),
            None => {}
        }
    }
}

fn read_line() -> Line {
    let mut bytes = Vec::new();
    let mut stdin = std::io::stdin().lock().take(LINE_BYTES_MAX);
    match stdin.read_until(b'\n', &mut bytes) {
        Ok(0) | Err(_) => None,
        Ok(_) if stdin.limit() == 0 => None,
        Ok(_) => Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned()),
    }
}

fn waiting() -> MutexGuard<'static, Option<Waiter>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waiter {
    fn has_given_up(&self) -> bool {
        match self {
            Self::Task(send) => send.is_closed(),
            Self::Thread(_) => false,
        }
    }
}
