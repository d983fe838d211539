//! Chromium, driven over a pipe with its DevTools protocol.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Program of Debian's package.
const PROGRAM: &str = "chromium";
/// Maximum time of a step.
const PATIENCE: Duration = Duration::from_secs(20);
/// Starts the browser with the pipes as descriptors 3 and 4, as it expects them.
const START: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"#;

/// A browser with one page.
pub(crate) struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    next: u64,
    session: String,
    /// Messages of the console, violations of policies, and dialogs.
    problems: Vec<String>,
    /// Addresses that were requested by pages of all servers.
    requests: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser. Returns `None` with a note if there is none, except in CI.
    pub(crate) fn start() -> Option<Self> {
        let mut version = Command::new(PROGRAM);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        let is_there = version.status();
        if !is_there.is_ok_and(|status| status.success()) {
            assert!(
                std::env::var_os("CI").is_none(),
                "{PROGRAM} is not installed, and CI tests with it"
            );
            println!("skipped: {PROGRAM} is not installed");
            return None;
        }
        let profile = tempfile::tempdir().unwrap();
        let folder = format!("--user-data-dir={}", profile.path().display());
        let flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--window-size=1280,900",
            "--remote-debugging-pipe",
            &folder,
        ];
        let mut process = Command::new("sh")
            .args(["-c", START, "sh", PROGRAM])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let messages = messages(process.stdout.take().unwrap());
        let mut browser = Self {
            process,
            input,
            messages,
            next: 1,
            session: String::new(),
            problems: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = browser.command("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.command("Target.attachToTarget", attach);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network", "Audits"] {
            browser.command(&format!("{domain}.enable"), json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns its result.
    pub(crate) fn command(&mut self, method: &str, parameters: Value) -> Value {
        let result = self.try_command(method, parameters);
        result.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a command and returns its result, or the error of the browser.
    fn try_command(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        let id = self.next;
        self.next += 1;
        let mut message = json!({"id": id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let message = self.message();
            if message["id"] == json!(id) {
                let error = &message["error"];
                return if error.is_null() {
                    Ok(message["result"].clone())
                } else {
                    Err(error.clone())
                };
            }
            self.note(&message);
        }
    }

    fn message(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).unwrap()
    }

    fn note(&mut self, message: &Value) {
        let parameters = &message["params"];
        match message["method"].as_str().unwrap_or_default() {
            "Network.requestWillBeSent" => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap().to_owned());
            }
            "Runtime.consoleAPICalled"
            | "Runtime.exceptionThrown"
            | "Log.entryAdded"
            | "Audits.issueAdded"
            | "Page.javascriptDialogOpening" => self.problems.push(message.to_string()),
            _ => {}
        }
    }

    /// Opens an address and waits until it is loaded.
    pub(crate) fn open(&mut self, address: &str) {
        self.command("Page.navigate", json!({"url": address}));
        self.wait_for("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Leaves the page, so that its server can stop.
    pub(crate) fn leave(&mut self) {
        self.command("Page.navigate", json!({"url": "about:blank"}));
        self.wait_for("location.href === 'about:blank'");
    }

    /// Returns the value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        self.value_in(None, expression)
    }

    /// Returns the value of an expression in an [isolated world](Self::isolated_world), or in that
    /// of the page.
    pub(crate) fn value_in(&mut self, world: Option<u64>, expression: &str) -> Value {
        let mut parameters =
            json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        if let Some(world) = world {
            parameters["contextId"] = json!(world);
        }
        let result = self.command("Runtime.evaluate", parameters);
        let start = expression.get(..200).unwrap_or(expression);
        assert!(result["exceptionDetails"].is_null(), "{start}: {result}");
        result["result"]["value"].clone()
    }

    /// Returns the id of a world with variables of its own and the elements of the page. It exists
    /// until the page is left.
    pub(crate) fn isolated_world(&mut self) -> u64 {
        let tree = self.command("Page.getFrameTree", json!({}));
        let frame = &tree["frameTree"]["frame"]["id"];
        let world = self.command("Page.createIsolatedWorld", json!({"frameId": frame}));
        world["executionContextId"].as_u64().unwrap()
    }

    pub(crate) fn text(&mut self) -> String {
        self.value("document.body.innerText").as_str().unwrap().to_owned()
    }

    /// Waits until an expression is true.
    pub(crate) fn wait_for(&mut self, expression: &str) {
        let start = Instant::now();
        // A page that is being left has no value.
        let guarded = format!(
            "(() => {{ try {{ return Boolean({expression}) }} catch {{ return false }} }})()"
        );
        loop {
            let parameters = json!({"expression": guarded, "returnByValue": true});
            // The browser cannot evaluate anything while it leaves a page.
            let result = self.try_command("Runtime.evaluate", parameters);
            if result.is_ok_and(|result| result["result"]["value"] == json!(true)) {
                return;
            }
            if start.elapsed() > PATIENCE {
                panic!("`{expression}` did not become true on {}", self.text());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Presses a key.
    pub(crate) fn press(&mut self, key: &str) {
        let (code, text) = match key {
            "Enter" => (13, "\r"),
            " " => (32, " "),
            "Tab" => (9, ""),
            _ => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            let event =
                json!({"type": kind, "key": key, "text": text, "windowsVirtualKeyCode": code});
            self.command("Input.dispatchKeyEvent", event);
        }
    }

    /// Types text into the control that has the focus.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.command("Input.insertText", json!({"text": text}));
    }

    pub(crate) fn set_color_scheme(&mut self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.command("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Sets the width of the page. 640 pixels are a window of 1280 at 200 % zoom.
    pub(crate) fn set_width(&mut self, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.command("Emulation.setDeviceMetricsOverride", size);
    }

    /// Fails if the browser reported an error, a violation of a policy or a dialog.
    pub(crate) fn assert_no_problems(&mut self, page: &str) {
        // Reports arrive before the answer.
        self.value("new Promise(requestAnimationFrame).then(() => 1)");
        assert!(self.problems.is_empty(), "{page}: {:#?}", self.problems);
    }

    /// Returns the addresses that were requested so far, and forgets them.
    pub(crate) fn take_requests(&mut self) -> Vec<String> {
        std::mem::take(&mut self.requests)
    }

    /// Returns the problems so far, and forgets them.
    pub(crate) fn take_problems(&mut self) -> String {
        std::mem::take(&mut self.problems).join("\n")
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads messages, each of which ends in a zero byte.
fn messages(output: ChildStdout) -> Receiver<Value> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let messages = BufReader::new(output).split(0).map_while(Result::ok);
        for message in messages {
            let message = serde_json::from_slice(&message).unwrap_or(Value::Null);
            if send.send(message).is_err() {
                return;
            }
        }
    });
    receive
}
