//! The one place that reads what an operator types at a terminal.
//!
//! The terminal sends each key by itself while a line is read, so that the program knows what a line discipline hides: when
//! something has come, whether more comes right behind it, and what was pasted. Before a question all that waits is thrown
//! away, and an answer counts only after the question was on the screen for a while. What was typed ahead or pasted for
//! something else so answers no question.
//!
//! No library for line editing is used. rustyline and reedline read until a line is complete: that can neither be taken back
//! when a call ends meanwhile, nor can it be looked at what comes behind a line end, and reedline asks the terminal for the
//! cursor's position through the input that is thrown away here.

mod editor;
mod keys;
mod reading;

use std::io::{IsTerminal as _, PipeReader, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcgetwinsize, tcsetattr,
};
use tokio::sync::oneshot;

use self::reading::{Reading, Step};
use crate::print;

/// Purpose of a line that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// A prompt of a conversation. It may have several lines, and what was typed ahead is its beginning.
    Prompt,
    /// A choice. It is typed, not pasted.
    Choice,
    /// An answer that may be pasted.
    Text,
}

/// Result of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// Nothing: the process got a signal, or the answer is not waited for any more.
    Interrupted,
    /// The end of the input.
    End,
}

/// A key that stands for a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Suspend,
    Quit,
}

/// Time to wait for input behind the end of a line. A paste comes in one piece, or in pieces right behind each other.
const LOOKAHEAD: Duration = Duration::from_millis(30);
/// Bytes that are read at a time.
const PIECE_BYTES: usize = 4096;
/// Columns of a terminal that does not say how many it has.
const COLUMNS_DEFAULT: u16 = 80;

/// Makes the terminal mark what is pasted, and stop marking it.
const MARK_PASTES: &str = "\u{1b}[?2004h";
const STOP_MARKING: &str = "\u{1b}[?2004l";
const BELL: &str = "\u{7}";

/// Held by the one who reads.
static READER: Mutex<()> = Mutex::new(());
/// Settings of the terminal before a line was read.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Earlier prompts. They are not written to disk: a prompt may hold a secret.
static HISTORY: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Returns whether an operator is there: standard input and standard error are a terminal.
pub(crate) fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows `question` and reads a line, for a thread that may block.
pub(crate) fn read_blocking(question: &str, reads: Reads) -> Typed {
    read(question, reads, None)
}

/// Shows `question` and reads a line, for a task. Dropping the future ends the reading. A signal of the keyboard goes to the
/// process and to whoever handles signals there; the future stays pending.
pub(crate) async fn read_later(question: &str, reads: Reads) -> Typed {
    let (send, typed) = oneshot::channel();
    // Whoever drops this half ends the reading.
    let Ok((ended, _end)) = std::io::pipe() else { return Typed::End };
    let question = question.to_owned();
    std::thread::spawn(move || send.send(read(&question, reads, Some(&ended))));
    match typed.await {
        Ok(Typed::Interrupted) => std::future::pending().await,
        Ok(typed) => typed,
        Err(_) => Typed::End,
    }
}

/// Makes the terminal what it was before a line was read. For the end of the process.
pub(crate) fn restore() {
    if let Some(before) = locked(&BEFORE).take() {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        if !is_dumb() {
            show(STOP_MARKING);
        }
    }
}

fn read(question: &str, reads: Reads, ended: Option<&PipeReader>) -> Typed {
    let Some(_reader) = wait_for_turn(ended) else { return Typed::Interrupted };
    let Some(_terminal) = Raw::begin(reads) else { return Typed::End };
    let history = if reads == Reads::Prompt { locked(&HISTORY).clone() } else { Vec::new() };
    let mut reading = Reading::new(reads, &print::printable(question), history, Instant::now());
    show(&reading.editor.drawn(columns()));
    let typed = read_on(&mut reading, reads, ended);
    if let (Reads::Prompt, Typed::Line(line)) = (reads, &typed)
        && !line.trim().is_empty()
    {
        let mut history = locked(&HISTORY);
        if history.last() != Some(line) {
            history.push(line.clone());
        }
    }
    typed
}

fn read_on(reading: &mut Reading, reads: Reads, ended: Option<&PipeReader>) -> Typed {
    loop {
        let bytes = match wait(ended, None) {
            Came::Bytes(bytes) => bytes,
            Came::End => return closed(reading, Typed::Interrupted),
            Came::Nothing => continue,
            Came::HungUp => return closed(reading, Typed::End),
        };
        reading.take(&bytes, Instant::now());
        let mut more = || match wait(None, Some(LOOKAHEAD)) {
            Came::Bytes(bytes) => bytes,
            _ => Vec::new(),
        };
        while let Some(step) = reading.step(Instant::now(), &mut more) {
            match step {
                Step::Wait => {}
                Step::Appended(c) => {
                    let shown = reading.editor.drawn_at_the_end(c, columns());
                    show(&shown.unwrap_or_else(|| reading.editor.drawn(columns())));
                }
                Step::Draw => show(&reading.editor.drawn(columns())),
                Step::DroppedPaste => {
                    let closed = reading.editor.closed(columns());
                    let drawn = reading.editor.drawn(columns());
                    show(&format!("{BELL}{closed}  pasted text is not taken as an answer; type it\n{drawn}"));
                }
                Step::Raise(Signal::Suspend) => {
                    show(&reading.editor.closed(columns()));
                    suspend(reads);
                    reading.editor.begin_anew();
                    show(&reading.editor.drawn(columns()));
                }
                Step::Raise(signal) => {
                    // The one who handles the signal may write at once.
                    show(&reading.editor.closed(columns()));
                    restore();
                    raise(signal);
                    return Typed::Interrupted;
                }
                Step::Done(typed) => return closed(reading, typed),
            }
        }
    }
}

/// Ends the line on the screen.
fn closed(reading: &mut Reading, typed: Typed) -> Typed {
    show(&reading.editor.closed(columns()));
    typed
}

/// Waits until nobody else reads. `None` when the wait was ended.
fn wait_for_turn(ended: Option<&PipeReader>) -> Option<MutexGuard<'static, ()>> {
    let Some(ended) = ended else { return Some(READER.lock().unwrap_or_else(PoisonError::into_inner)) };
    loop {
        match READER.try_lock() {
            Ok(reader) => return Some(reader),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {}
        }
        let mut fds = [PollFd::new(ended, PollFlags::IN)];
        if poll(&mut fds, Some(&timespec(LOOKAHEAD))).is_ok_and(|ready| ready > 0) {
            return None;
        }
    }
}

enum Came {
    Bytes(Vec<u8>),
    Nothing,
    /// The reading was ended.
    End,
    HungUp,
}

fn wait(ended: Option<&PipeReader>, most: Option<Duration>) -> Came {
    let stdin = std::io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
    let most = most.map(timespec);
    match poll(&mut fds, most.as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Came::Nothing,
        Ok(_) => {}
        Err(_) => return Came::HungUp,
    }
    let is_ready = |place: usize| fds.get(place).is_some_and(|fd| !fd.revents().is_empty());
    if is_ready(1) {
        return Came::End;
    }
    let mut bytes = vec![0; PIECE_BYTES];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(0) => Came::HungUp,
        Ok(count) => {
            bytes.truncate(count);
            Came::Bytes(bytes)
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Came::Nothing,
        Err(_) => Came::HungUp,
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// The terminal while it sends each key by itself.
struct Raw;

impl Raw {
    /// `None` when standard input is no terminal any more.
    fn begin(reads: Reads) -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.input_modes -= InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
        raw.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        *locked(&BEFORE) = Some(before);
        if reads != Reads::Prompt {
            // What was typed or pasted for something else answers nothing.
            let _ = tcflush(&stdin, QueueSelector::IFlush);
        }
        if !is_dumb() {
            show(MARK_PASTES);
        }
        Some(Self)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Stops the process like Ctrl-Z does, and goes on when it does.
fn suspend(reads: Reads) {
    restore();
    raise(Signal::Suspend);
    // The guard of this reading still restores what is kept here.
    std::mem::forget(Raw::begin(reads));
}

fn raise(signal: Signal) {
    use rustix::process::{self, Signal as Number, getpid, kill_process};
    let number = match signal {
        Signal::Interrupt => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Suspend => Number::TSTP,
    };
    // The keyboard's signals are for the whole group, like those of the terminal itself.
    if process::kill_process_group(process::getpgrp(), number).is_err() {
        let _ = kill_process(getpid(), number);
    }
}

fn columns() -> usize {
    let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    usize::from(if columns == 0 { COLUMNS_DEFAULT } else { columns })
}

/// Returns whether the terminal understands no sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Shows something that is safe to show.
fn show(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
