//! Programs that wait in a session of `chat` for an approval, and continue in another process. A
//! server counts the requests that a program makes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::network::server::Server;
use crate::operator::Operator;

/// Maximum time to wait for an event. No test needs a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);
/// File with the state of the session.
const STATE: &str = "kept/s.session.json";
const SESSION: [&str; 4] = ["--session", "s", "--session-dir", "kept"];

/// A folder with notes, a configuration and scripts of models, and a server.
struct Scene {
    folder: tempfile::TempDir,
    server: Server,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Returns a program that sends `first`, writes a note, sends `second`, which needs approval, and
/// sends `third` to a path of the server.
fn program(server: &Server, last: &str) -> String {
    format!(
        "const send = (url, body) => tools.http({{method: 'POST', url, body}});
         await send('{0}', 'first');
         await tools.file_access_save_file({{file_name: 'b.md', content: 'kept'}});
         try {{ await send('{0}', 'second'); }} catch (error) {{ return error.message; }}
         await send('{1}', 'third');
         return 'all sent';",
        server.url("/fine"),
        server.url(last),
    )
}

impl Scene {
    async fn new(last: &str) -> Self {
        Self::running(|server| program(server, last)).await
    }

    /// Creates a scene whose model runs a program.
    async fn running(program: impl Fn(&Server) -> String) -> Self {
        let (folder, server) = (tempfile::tempdir().unwrap(), Server::start().await);
        let scene = Self { folder, server };
        std::fs::create_dir(scene.folder.path().join("notes")).unwrap();
        scene.configure("");
        let program = program(&scene.server);
        let call = json!({"calls": [{"tool": "run_code", "arguments": {"code": program}}]});
        let end = json!({"text": "Done."});
        scene.write("model.jsonl", &format!("{call}\n{end}"));
        scene.write("after.jsonl", &format!("{end}\n{end}"));
        scene
    }

    /// Writes the configuration, with more lines for the plugin.
    fn configure(&self, more: &str) {
        let config = format!(
            "[plugins.web]\ncomponent = {:?}\ngrants.http = [\"{}\"]\n{more}\n\
             [[agent.approvals]]\neffect = \"ask\"\ntool = \"http\"\n\
             arguments = {{ body = {{ equals = \"second\" }} }}\n",
            guest("http"),
            self.server.url("/"),
        );
        self.write("c.toml", &config);
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.folder.path().join(name)).ok()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .env("TOKEN", "a-long-enough-secret")
            .current_dir(self.folder.path())
            .arg("chat")
            .args(arguments)
            .args(["--config", "c.toml", "--files", "notes", "--code=only", "--json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn chat(&self, arguments: &[&str]) -> Ran {
        let mut command = self.command(arguments);
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs a workflow of one agent whose model runs the program.
    async fn workflow(&self, arguments: &[&str]) -> Ran {
        let agent = "{model: \"script:model.jsonl\", tools: [run_code]}";
        self.write("w.yaml", &format!("agents: {{a: {agent}}}\nstart: a\n"));
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .current_dir(self.folder.path())
            .args(["workflow", "run"])
            .args(arguments)
            .args(["--config", "c.toml", "--files", "notes", "--code=only"])
            .stdin(Stdio::null());
        let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs the program until it waits, and returns the id of the request.
    async fn suspend(&self) -> String {
        let ran =
            self.chat(&[&["Send.", "--model", "script:model.jsonl"], &SESSION[..]].concat()).await;
        ran.waits()
    }

    fn answer(&self, answer: &str) -> Command {
        let model = ["--model", "script:after.jsonl", "--answer", answer];
        self.command(&[&model[..], &SESSION[..]].concat())
    }

    async fn continues(&self, answer: &str) -> Ran {
        let model = ["--model", "script:after.jsonl", "--answer", answer];
        self.chat(&[&model[..], &SESSION[..]].concat()).await
    }

    /// Returns how often the server received `first`, `second` and `third`.
    fn sent(&self) -> [usize; 3] {
        let requests = self.server.requests();
        ["first", "second", "third"]
            .map(|body| requests.iter().filter(|request| request.contains(body)).count())
    }

    /// Changes the ledger of the session.
    fn tamper(&self, change: impl FnOnce(&str) -> String) {
        let mut state: Value = serde_json::from_str(&self.read(STATE).unwrap()).unwrap();
        let ledger = &mut state["state"]["open_approvals"]["requests"][0]["program"]["ledger"];
        *ledger = change(ledger.as_str().unwrap()).into();
        self.write(STATE, &state.to_string());
    }
}

impl Ran {
    /// Returns the id of the request for which the program waits.
    fn waits(&self) -> String {
        assert_eq!(self.code, Some(4), "{}{}", self.stdout, self.stderr);
        assert!(self.stdout.contains(r#""outcome":"waiting""#), "{}", self.stdout);
        assert!(self.stderr.contains("waits for your approval to call `http`"), "{}", self.stderr);
        let (_, after) = self.stderr.split_once("--answer ").unwrap();
        after.split_once("=yes").unwrap().0.to_owned()
    }

    /// Returns the only result of a call.
    fn result(&self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        let lines = self.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let lines: Vec<_> = lines.collect();
        let contents = lines.iter().filter_map(|line| line["contents"].as_array()).flatten();
        let results = contents.filter(|content| content["type"] == "function_result");
        let results: Vec<_> = results.map(|result| result["result"].as_str().unwrap()).collect();
        assert_eq!(results.len(), 1, "{}", self.stdout);
        results[0].to_owned()
    }
}

#[tokio::test]
async fn another_process_continues_a_program_and_no_call_is_made_twice() {
    let scene = Scene::new("/fine").await;
    let id = scene.suspend().await;
    assert_eq!((scene.sent(), scene.read("notes/b.md")), ([1, 0, 0], None));
    let before = scene.read(STATE).unwrap();
    // Without an answer, nothing happens, and the program still waits.
    let ran =
        scene.chat(&[&["And?", "--model", "script:after.jsonl"], &SESSION[..]].concat()).await;
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("--answer {id}=yes")), "{}", ran.stderr);
    assert_eq!(scene.sent(), [1, 0, 0]);
    let wrong = scene.continues("0=yes").await;
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("no request `0` waits in the session"), "{}", wrong.stderr);
    let yes = format!("{id}=yes");
    let ran = scene.continues(&yes).await;
    assert_eq!(ran.result(), r#"{"result":"all sent"}"#);
    assert!(ran.stdout.contains("Done."), "{}", ran.stdout);
    assert_eq!(scene.sent(), [1, 1, 1]);
    assert_eq!(scene.read("notes/b.md").as_deref(), Some("kept"));
    assert_eq!(scene.continues(&yes).await.code, Some(2), "the request is answered");
    // An older copy of the session.
    scene.write(STATE, &before);
    let ran = scene.continues(&yes).await;
    assert!(ran.result().contains("its ledger was used before"), "{}", ran.stdout);
    assert_eq!(scene.sent(), [1, 1, 1]);
}

#[tokio::test]
async fn a_refused_call_throws_in_the_program() {
    let scene = Scene::new("/fine").await;
    let id = scene.suspend().await;
    let ran = scene.continues(&format!("{id}=no: too early")).await;
    let result = ran.result();
    assert!(result.contains("the user did not approve the call to 'http': too early"), "{result}");
    assert_eq!(scene.sent(), [1, 0, 0]);
    assert_eq!(scene.read("notes/b.md").as_deref(), Some("kept"), "the program has succeeded");
}

/// A program may need several approvals, also for calls that it makes at the same time.
#[tokio::test]
async fn each_approval_is_a_wait_of_its_own() {
    let program = |server: &Server| {
        format!(
            "const send = (body) => tools.http({{method: 'POST', url: '{}', body}});
             await send('first');
             const sent = await Promise.allSettled([send('second'), send('second again')]);
             await send('third');
             return sent.map((one) => one.status);",
            server.url("/fine"),
        )
    };
    let scene = Scene::running(program).await;
    let more = "[[agent.approvals]]\neffect = \"ask\"\ntool = \"http\"\n\
                arguments = { body = { equals = \"second again\" } }\n";
    scene.configure(more);
    let first = scene.suspend().await;
    assert_eq!(scene.sent(), [1, 0, 0]);
    let second = scene.continues(&format!("{first}=yes")).await.waits();
    assert_ne!(first, second);
    assert_eq!(scene.sent(), [1, 1, 0]);
    let ran = scene.continues(&format!("{second}=no")).await;
    assert_eq!(ran.result(), r#"{"result":["fulfilled","rejected"]}"#);
    assert_eq!(scene.sent(), [1, 1, 1]);
}

/// At a terminal, the user is asked before the conversation goes on.
#[tokio::test]
async fn a_user_at_a_terminal_is_asked() {
    let scene = Scene::new("/fine").await;
    scene.suspend().await;
    let folder = scene.folder.path().to_owned();
    let asked = tokio::task::spawn_blocking(move || {
        let flags = ["chat", "Then?", "--model", "script:after.jsonl", "--config", "c.toml"];
        let more = ["--files", "notes", "--code=only"];
        let mut operator =
            Operator::runs_with(&folder, &[&flags[..], &more, &SESSION].concat(), &[]);
        operator.sees("the program wants to call `http` with").sees("Allow it?").answers("y\n");
        operator.sees("ok, ").sees("Done.").sees("Done.");
        operator.ends().0
    });
    assert_eq!(asked.await.unwrap(), Some(0));
    assert_eq!(scene.sent(), [1, 1, 1]);
}

/// Waits until the server has received a request.
async fn received(scene: &Scene, expected: [usize; 3], child: &mut Child) {
    let since = Instant::now();
    while scene.sent() != expected {
        assert!(since.elapsed() < PATIENCE && child.try_wait().unwrap().is_none());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_process_that_is_killed_while_it_continues_makes_no_call_twice() {
    // The server never answers the last request.
    let scene = Scene::new("/silent").await;
    let id = scene.suspend().await;
    let yes = format!("{id}=yes");
    let mut child = scene.answer(&yes).spawn().unwrap();
    received(&scene, [1, 1, 1], &mut child).await;
    child.kill().unwrap();
    child.wait().unwrap();
    let ran = scene.continues(&yes).await;
    assert!(ran.result().contains("its ledger was used before"), "{}", ran.stdout);
    assert_eq!((scene.sent(), scene.read("notes/b.md")), ([1, 1, 1], None));
}

#[tokio::test]
async fn forged_truncated_and_foreign_ledgers_are_refused() {
    let scene = Scene::new("/fine").await;
    let yes = format!("{}=yes", scene.suspend().await);
    let before = scene.read(STATE).unwrap();
    let invalid = "its ledger was changed or is incomplete";
    let forged = |ledger: &str| {
        let middle = ledger.len() / 2;
        let other = if ledger.as_bytes()[middle] == b'A' { "B" } else { "A" };
        let (before, after) = (ledger.split_at(middle).0, ledger.split_at(middle + 1).1);
        format!("{before}{other}{after}")
    };
    let changes: [&dyn Fn(&str) -> String; 4] = [
        &forged,
        &|ledger| ledger.split_at(ledger.len() / 2).0.to_owned(),
        &|ledger| ledger.split_at(ledger.len() - 1).0.to_owned(),
        &|_| String::new(),
    ];
    for change in changes {
        scene.tamper(change);
        let ran = scene.continues(&yes).await;
        assert!(ran.result().contains(invalid), "{}", ran.stdout);
        assert!(
            ran.result().contains("Check what the calls before the approval"),
            "{}",
            ran.stdout
        );
        scene.write(STATE, &before);
    }
    // Another installation has another key.
    let (state, other) = (scene.folder.path().join("state"), scene.folder.path().join("other"));
    std::fs::rename(&state, &other).unwrap();
    let ran = scene.continues(&yes).await;
    assert!(ran.result().contains("by another installation"), "{}", ran.stdout);
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(&other, &state).unwrap();
    scene.write(STATE, &before);
    assert_eq!(scene.sent(), [1, 0, 0]);
    // Nothing of this has used the ledger.
    assert_eq!(scene.continues(&yes).await.result(), r#"{"result":"all sent"}"#);
    assert_eq!(scene.sent(), [1, 1, 1]);
}

#[tokio::test]
async fn a_ledger_is_refused_in_another_session_and_after_a_change_of_tools() {
    let scene = Scene::new("/fine").await;
    let yes = format!("{}=yes", scene.suspend().await);
    let mut state: Value = serde_json::from_str(&scene.read(STATE).unwrap()).unwrap();
    state["session_id"] = "t".into();
    scene.write("kept/t.session.json", &state.to_string());
    let flags = ["--model", "script:after.jsonl", "--answer", &yes, "--session-dir", "kept"];
    let ran = scene.chat(&[&flags[..], &["--session", "t"]].concat()).await;
    assert!(ran.result().contains("its ledger belongs to another session"), "{}", ran.stdout);
    let scene = Scene::new("/fine").await;
    let yes = format!("{}=yes", scene.suspend().await);
    let config = scene.read("c.toml").unwrap();
    scene.write("c.toml", &config.replace("[plugins.web]", "[plugins.net]"));
    let ran = scene.continues(&yes).await;
    assert!(ran.result().contains("tools have changed since: 'http'"), "{}", ran.stdout);
    assert_eq!((scene.sent(), scene.read("notes/b.md")), ([1, 0, 0], None));
}

#[tokio::test]
async fn a_file_that_others_change_meanwhile_ends_the_program() {
    let scene = Scene::new("/fine").await;
    let yes = format!("{}=yes", scene.suspend().await);
    scene.write("notes/b.md", "of others");
    let ran = scene.continues(&yes).await;
    assert!(ran.result().contains("`b.md`"), "{}", ran.stdout);
    assert_eq!((scene.sent(), scene.read("notes/b.md").unwrap()), ([1, 0, 0], "of others".into()));
}

/// Flags answer as well, and without a session nothing waits.
#[tokio::test]
async fn flags_approve_and_without_a_session_the_call_fails_at_once() {
    let scene = Scene::new("/fine").await;
    scene.suspend().await;
    let flags = ["--model", "script:after.jsonl", "--approve", "http", "Then?"];
    let ran = scene.chat(&[&flags[..], &SESSION[..]].concat()).await;
    assert_eq!(ran.result(), r#"{"result":"all sent"}"#);
    assert_eq!(ran.stdout.matches("Done.").count(), 2, "{}", ran.stdout);
    assert_eq!(scene.sent(), [1, 1, 1]);
    let scene = Scene::new("/fine").await;
    let ran = scene.chat(&["Send.", "--model", "script:model.jsonl"]).await;
    assert!(ran.result().contains("no user can be asked to approve"), "{}", ran.stdout);
    assert!(!Path::new(&scene.folder.path().join("state/cofferdam/ledgers")).exists());
    assert_eq!(scene.sent(), [1, 0, 0]);
}

/// Results in a ledger would not be redacted.
#[tokio::test]
async fn no_program_waits_if_results_are_redacted() {
    let scene = Scene::new("/fine").await;
    scene.configure("[secrets]\ntoken = { env = \"TOKEN\" }\n[agent.calls]\nredact = [\"token\"]");
    let ran =
        scene.chat(&[&["Send.", "--model", "script:model.jsonl"], &SESSION[..]].concat()).await;
    assert!(ran.result().contains("no user can be asked to approve"), "{}", ran.stdout);
    assert!(!scene.read(STATE).unwrap().contains("ledger"));
    assert_eq!(scene.sent(), [1, 0, 0]);
}

#[tokio::test]
async fn programs_in_python_wait_as_well() {
    let program = |server: &Server| {
        format!(
            "import random
send = lambda body: tools.http(method='POST', url='{}', body=body)
drawn = random.random()
await send('first')
await tools.file_access_save_file(file_name='b.md', content=str(drawn))
await send('second')
await send('third')
return random.random() != drawn",
            server.url("/fine"),
        )
    };
    let scene = Scene::running(program).await;
    scene.configure("[code]\nlanguage = \"python\"");
    let id = scene.suspend().await;
    assert_eq!((scene.sent(), scene.read("notes/b.md")), ([1, 0, 0], None));
    // The file has the number that the first run has drawn, or the program would end here.
    let ran = scene.continues(&format!("{id}=yes")).await;
    assert_eq!(ran.result(), r#"{"result":true}"#);
    assert_eq!(scene.sent(), [1, 1, 1]);
    assert!(scene.read("notes/b.md").unwrap().starts_with("0."));
}

/// The user sees why no program can wait, and the model gets no path.
#[tokio::test]
async fn a_damaged_key_is_shown_to_the_user() {
    let scene = Scene::new("/fine").await;
    std::fs::create_dir_all(scene.folder.path().join("state/cofferdam/ledgers")).unwrap();
    scene.write("state/cofferdam/ledgers/key", "no key");
    let ran =
        scene.chat(&[&["Send.", "--model", "script:model.jsonl"], &SESSION[..]].concat()).await;
    let shown = "warning: no program can wait for an approval: expected a key of 64 hexadecimal";
    assert!(ran.stderr.contains(shown), "{}", ran.stderr);
    assert!(ran.result().contains("programs cannot be kept at the moment"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("ledgers/key"), "{}", ran.stdout);
    assert_eq!(scene.sent(), [1, 0, 0]);
}

/// Returns the files in a folder and those below it.
fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let content = |path: PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![(path.clone(), std::fs::read(path).unwrap())],
    };
    paths.flat_map(content).collect()
}

/// A program of an agent in a workflow waits in the checkpoint, or for a flag, or fails at once.
#[tokio::test]
async fn programs_of_workflows_wait_in_checkpoints() {
    let scene = Scene::new("/fine").await;
    let paused = scene.workflow(&["w.yaml", "Send.", "--checkpoints", "runs"]).await;
    assert_eq!(paused.code, Some(4), "{}{}", paused.stdout, paused.stderr);
    assert_eq!((scene.sent(), scene.read("notes/b.md")), ([1, 0, 0], None));
    let (_, id) = paused.stderr.split_once("--answer ").unwrap();
    let answer = format!("{}=yes", id.split_once('=').unwrap().0);
    scene.write("model.jsonl", &scene.read("after.jsonl").unwrap());
    let runs = scene.folder.path().join("runs");
    let checkpoints = files(&runs);
    let resumed = ["w.yaml", "--checkpoints", "runs", "--resume", "--answer", &answer];
    let ran = scene.workflow(&resumed).await;
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(scene.sent(), [1, 1, 1]);
    assert_eq!(scene.read("notes/b.md").as_deref(), Some("kept"));
    // The checkpoints from before the program went on.
    for (path, _) in files(&runs) {
        std::fs::remove_file(path).unwrap();
    }
    for (path, bytes) in checkpoints {
        std::fs::write(path, bytes).unwrap();
    }
    let again = scene.workflow(&resumed).await;
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    let message = b"its ledger was used before";
    let is_said = |bytes: &[u8]| bytes.windows(message.len()).any(|part| part == message);
    assert!(files(&runs).iter().any(|(_, bytes)| is_said(bytes)));
    assert_eq!(scene.sent(), [1, 1, 1]);

    let scene = Scene::new("/fine").await;
    let ran = scene.workflow(&["w.yaml", "Send.", "--approve", "http"]).await;
    assert_eq!((ran.code, scene.sent()), (Some(0), [1, 1, 1]), "{}", ran.stderr);

    let scene = Scene::new("/fine").await;
    let ran = scene.workflow(&["w.yaml", "Send."]).await;
    assert_eq!((ran.code, scene.sent()), (Some(0), [1, 0, 0]), "{}", ran.stderr);
}
