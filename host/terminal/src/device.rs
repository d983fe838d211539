//! The terminal itself: raw mode, waiting for keys, and signals.

use std::io::{IsTerminal as _, PipeReader, PipeWriter, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::oneshot;

use crate::reading::{LineReader, ReaderStep};
use crate::{Input, InputKind, Signal, printable};

/// Time to wait for input behind the end of a line. A paste arrives in one piece, or in pieces that
/// immediately follow each other.
const LOOKAHEAD: Duration = Duration::from_millis(30);
/// Maximum number of bytes per read.
const PIECE_BYTES: usize = 4096;
/// Number of columns if the terminal does not report it.
const COLUMNS_DEFAULT: u16 = 80;

/// Sequences that start and stop bracketed paste: the terminal marks pasted input.
const MARK_PASTES: &str = "\u{1b}[?2004h";
const STOP_MARKING: &str = "\u{1b}[?2004l";
const BELL: &str = "\u{7}";

/// Held while a line is read.
static READER: Mutex<()> = Mutex::new(());
/// Settings of the terminal before reading began.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);
/// Earlier prompts. They are not written to disk, because a prompt can contain a secret.
static HISTORY: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// True if questions and prompts are bold.
static IS_BOLD: AtomicBool = AtomicBool::new(false);

/// Returns whether an operator can be asked: standard input and standard error are terminals.
pub fn is_interactive() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Shows questions and prompts in bold from now on.
pub fn embolden_prompts() {
    IS_BOLD.store(true, Ordering::Relaxed);
}

/// Shows `question` and reads a line. Blocks the thread.
pub fn read_line_blocking(question: &str, kind: InputKind) -> Input {
    read(question, kind, None)
}

/// Shows `question` and reads a line, in a task. Dropping the future withdraws the question: it
/// then has ended its line on the screen, and reads no more. A key that raises a signal sends it
/// to the process, which may handle it; the future then stays pending.
pub async fn read_line(question: &str, kind: InputKind) -> Input {
    let (send, typed) = oneshot::channel();
    let Ok((ended, end)) = std::io::pipe() else { return Input::End };
    let question = question.to_owned();
    let thread = std::thread::spawn(move || {
        let _ = send.send(read(&question, kind, Some(&ended)));
    });
    let _withdrawal = Withdrawal { end: Some(end), thread: Some(thread) };
    match typed.await {
        Ok(Input::Interrupted) => std::future::pending().await,
        Ok(typed) => typed,
        Err(_) => Input::End,
    }
}

/// Stops the thread that reads when it is dropped, and waits for the end of its line on the screen.
struct Withdrawal {
    end: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Withdrawal {
    fn drop(&mut self) {
        // The thread waits for input and for this pipe at the same time, so it ends at once.
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Restores the settings that the terminal had before reading began. Call it before the process
/// exits.
pub fn restore() {
    if let Some(before) = locked(&BEFORE).take() {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        if !is_dumb() {
            show(STOP_MARKING);
        }
    }
}

fn read(question: &str, kind: InputKind, ended: Option<&PipeReader>) -> Input {
    let Some(_reader) = wait_for_turn(ended) else { return Input::Interrupted };
    let Some(_terminal) = Raw::begin(kind) else { return Input::End };
    let history = if kind == InputKind::Prompt { locked(&HISTORY).clone() } else { Vec::new() };
    let mut reading = LineReader::new(kind, &printable(question), history, Instant::now());
    if IS_BOLD.load(Ordering::Relaxed) {
        reading.editor.embolden_prompt();
    }
    show(&reading.editor.render(columns()));
    let typed = read_on(&mut reading, kind, ended);
    if let (InputKind::Prompt, Input::Line(line)) = (kind, &typed)
        && !line.trim().is_empty()
    {
        let mut history = locked(&HISTORY);
        if history.last() != Some(line) {
            history.push(line.clone());
        }
    }
    typed
}

fn read_on(reading: &mut LineReader, kind: InputKind, ended: Option<&PipeReader>) -> Input {
    loop {
        let bytes = match wait(ended, None) {
            Event::Bytes(bytes) => bytes,
            Event::End => return closed(reading, Input::Interrupted),
            Event::Nothing => continue,
            Event::HungUp => return closed(reading, Input::End),
        };
        reading.editor.follow_resize(columns());
        reading.take(&bytes, Instant::now());
        let mut more = || match wait(None, Some(LOOKAHEAD)) {
            Event::Bytes(bytes) => bytes,
            _ => Vec::new(),
        };
        while let Some(step) = reading.step(Instant::now(), &mut more) {
            match step {
                ReaderStep::Wait => {}
                ReaderStep::Appended(c) => {
                    let shown = reading.editor.drawn_at_the_end(c, columns());
                    show(&shown.unwrap_or_else(|| reading.editor.render(columns())));
                }
                ReaderStep::Draw => show(&reading.editor.render(columns())),
                ReaderStep::DroppedPaste => {
                    let closed = reading.editor.closed(columns());
                    let drawn = reading.editor.render(columns());
                    show(&format!(
                        "{BELL}{closed}  pasted text is not taken as an answer; type it\n{drawn}"
                    ));
                }
                ReaderStep::Raise(Signal::Suspend) => {
                    show(&reading.editor.closed(columns()));
                    suspend(kind);
                    reading.editor.restart();
                    show(&reading.editor.render(columns()));
                }
                ReaderStep::Raise(signal) => {
                    // A signal handler may write immediately.
                    show(&reading.editor.closed(columns()));
                    restore();
                    raise(signal);
                    return Input::Interrupted;
                }
                ReaderStep::Done(typed) => return closed(reading, typed),
            }
        }
    }
}

/// Ends the line on the screen and returns `typed`.
fn closed(reading: &mut LineReader, typed: Input) -> Input {
    show(&reading.editor.closed(columns()));
    typed
}

/// Waits until no other thread reads. Returns `None` if the caller gave up.
fn wait_for_turn(ended: Option<&PipeReader>) -> Option<MutexGuard<'static, ()>> {
    let Some(ended) = ended else {
        return Some(READER.lock());
    };
    loop {
        if let Some(reader) = READER.try_lock() {
            return Some(reader);
        }
        let mut fds = [PollFd::new(ended, PollFlags::IN)];
        if poll(&mut fds, Some(&timespec(LOOKAHEAD))).is_ok_and(|ready| ready > 0) {
            return None;
        }
    }
}

enum Event {
    Bytes(Vec<u8>),
    Nothing,
    /// The caller gave up.
    End,
    HungUp,
}

fn wait(ended: Option<&PipeReader>, most: Option<Duration>) -> Event {
    let stdin = std::io::stdin();
    let mut fds = vec![PollFd::new(&stdin, PollFlags::IN)];
    fds.extend(ended.map(|ended| PollFd::new(ended, PollFlags::IN)));
    let most = most.map(timespec);
    match poll(&mut fds, most.as_ref()) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Event::Nothing,
        Ok(_) => {}
        Err(_) => return Event::HungUp,
    }
    let is_ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
    if is_ready(1) {
        return Event::End;
    }
    let mut bytes = vec![0; PIECE_BYTES];
    match rustix::io::read(&stdin, &mut bytes) {
        Ok(0) => Event::HungUp,
        Ok(count) => {
            bytes.truncate(count);
            Event::Bytes(bytes)
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => Event::Nothing,
        Err(_) => Event::HungUp,
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: 0, tv_nsec: i64::from(time.subsec_nanos()) }
}

/// Guard for raw mode, in which the terminal sends each key by itself.
struct Raw;

impl Raw {
    /// Enters raw mode. Returns `None` if standard input is no longer a terminal.
    fn begin(kind: InputKind) -> Option<Self> {
        let stdin = std::io::stdin();
        let before = tcgetattr(&stdin).ok()?;
        let mut raw = before.clone();
        raw.input_modes -=
            InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::ISTRIP;
        raw.local_modes -=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN | LocalModes::ISIG;
        raw.special_codes[SpecialCodeIndex::VMIN] = 1;
        raw.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&stdin, OptionalActions::Now, &raw).ok()?;
        *locked(&BEFORE) = Some(before);
        if kind != InputKind::Prompt {
            // Input that was typed or pasted earlier must not answer this question.
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

/// Suspends the process like Ctrl-Z, and enters raw mode again when the process continues.
fn suspend(kind: InputKind) {
    restore();
    raise(Signal::Suspend);
    // The guard of this reading restores the settings that `begin` has saved.
    std::mem::forget(Raw::begin(kind));
}

fn raise(signal: Signal) {
    use rustix::process::{self, Signal as Number, getpid, kill_process};
    let number = match signal {
        Signal::Interrupt => Number::INT,
        Signal::Quit => Number::QUIT,
        Signal::Suspend => Number::TSTP,
    };
    // Signals of the keyboard go to the whole process group, as if the terminal had sent them.
    if process::kill_process_group(process::getpgrp(), number).is_err() {
        let _ = kill_process(getpid(), number);
    }
}

fn columns() -> usize {
    let columns = tcgetwinsize(std::io::stderr()).map_or(0, |size| size.ws_col);
    usize::from(if columns == 0 { COLUMNS_DEFAULT } else { columns })
}

/// Returns whether the terminal supports no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Writes to standard error. The caller has escaped untrusted text.
fn show(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
    let _ = stderr.flush();
}

fn locked<T>(mutex: &'static Mutex<T>) -> MutexGuard<'static, T> {
    mutex.lock()
}
