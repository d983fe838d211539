//! An operator at a terminal, who reads before typing. `script` runs the program in a real
//! terminal.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, shared_cache};

/// Maximum time until an expected string is on the screen. No test needs a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);
/// Time for which an operator reads a question. Earlier answers are not accepted.
const READS: Duration = Duration::from_millis(500);

pub(crate) struct Operator {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    /// Thread that reads the screen.
    reader: JoinHandle<()>,
    /// Number of bytes of the screen that were read.
    read: usize,
}

impl Operator {
    /// Runs a command in `folder`.
    pub(crate) fn runs(folder: &Path, arguments: &[&str]) -> Self {
        Self::runs_with(folder, arguments, &[])
    }

    /// Runs a command in `folder` with additional environment variables.
    pub(crate) fn runs_with(folder: &Path, arguments: &[&str], env: &[(&str, &str)]) -> Self {
        Self::runs_program(&binary(), folder, arguments, env)
    }

    /// Runs a command of another binary.
    pub(crate) fn runs_program(
        program: &Path,
        folder: &Path,
        arguments: &[&str],
        env: &[(&str, &str)],
    ) -> Self {
        let quoted: Vec<_> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        let line = format!("'{}' {}", program.display(), quoted.join(" "));
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(folder);
        script.env_clear().env("PATH", "/usr/bin:/bin").env("COFFERDAM_CACHE_DIR", shared_cache());
        // Permanent grants without a configuration are stored per user.
        script
            .env("XDG_DATA_HOME", folder)
            .env("XDG_STATE_HOME", folder.join("state"))
            .envs(env.iter().copied());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&screen);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, screen, reader, read: 0 }
    }

    /// Waits until `text` is on the unread part of the screen.
    pub(crate) fn sees(&mut self, text: &str) -> &mut Self {
        let since = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen[self.read..].find(text) {
                self.read += at + text.len();
                return self;
            }
            assert!(since.elapsed() < PATIENCE, "no {text:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits until `text` is on the unread part of the screen, and returns the rest of its line.
    pub(crate) fn rest_of_line(&mut self, text: &str) -> String {
        let start = self.sees(text).read;
        self.sees("\n");
        let screen = self.screen.lock().unwrap();
        screen[start..self.read].trim_end().to_owned()
    }

    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self
    }

    /// Reads the question on the screen, then types.
    pub(crate) fn answers(&mut self, keys: &str) -> &mut Self {
        std::thread::sleep(READS);
        self.types(keys)
    }

    /// Returns the exit code and the complete screen.
    pub(crate) fn ends(mut self) -> (Option<i32>, String) {
        let (code, since) = (self.child.wait().unwrap().code(), Instant::now());
        // The last output may still be in transit.
        while !self.reader.is_finished() && since.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let screen = self.screen.lock().unwrap().clone();
        (code, screen)
    }
}

impl Drop for Operator {
    /// Ends the terminal of an operator that a failing test leaves behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
