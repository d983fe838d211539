//! `cofferdam workflow` with scripted models: output, exit codes, and files that a run leaves.

mod labels;
mod locks;

use std::io::BufRead as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cli_inspector::PageClient;

/// Maximum time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(120);

/// Folder with workflows and scripts.
struct Scene {
    folder: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    /// Creates a folder with a workflow and the scripts of its agents' models.
    fn new(workflow: &str, scripts: &[(&str, &[Value])]) -> Self {
        let scene = Self { folder: tempfile::tempdir().unwrap() };
        scene.write("w.yaml", workflow);
        for (name, lines) in scripts {
            scene.script(name, lines);
        }
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn script(&self, name: &str, lines: &[Value]) {
        let lines: Vec<_> = lines.iter().map(Value::to_string).collect();
        self.write(&format!("{name}.jsonl"), &lines.join("\n"));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            // The call log is not that of the user who runs the tests.
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .current_dir(self.folder.path());
        command.arg("workflow").args(arguments).stdin(Stdio::null());
        command
    }

    fn ran(&self, arguments: &[&str]) -> Ran {
        let output = self.command(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs `w.yaml`.
    fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(&[&["run", "w.yaml"], arguments].concat())
    }

    /// Returns the error of an invalid workflow.
    fn wrong(&self, workflow: &str) -> String {
        self.write("wrong.yaml", workflow);
        let ran = self.ran(&["check", "wrong.yaml"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{workflow}: {}", ran.stderr);
        ran.stderr.trim_end().to_owned()
    }
}

impl Ran {
    fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

fn says(text: &str) -> Value {
    json!({"text": text})
}

const REVIEW: &str = "\
name: review
agents:
  writer: {model: 'script:writer.jsonl', instructions: Write.}
  reviewer: {model: 'script:reviewer.jsonl'}
  printer: {model: 'script:printer.jsonl'}
people:
  approve: {prompt: Print this?, passes: message}
start: writer
edges:
  - {from: writer, to: reviewer}
  - from: reviewer
    switch:
      - {when: {contains: good, ignore-case: true}, to: approve}
      - {otherwise: writer}
  - {from: approve, to: printer}
output-from: [printer]
intermediate-output-from: all-other
";

fn review() -> Scene {
    Scene::new(
        REVIEW,
        &[
            ("writer", &[says("Tides rise."), says("Tides rise and fall.")]),
            ("reviewer", &[says("More."), says("Good.")]),
            ("printer", &[says("Printed.")]),
        ],
    )
}

#[test]
fn outputs_go_to_stdout_and_the_course_to_stderr() {
    let ran = review().run(&["tides", "--answer", "approve-1=yes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Printed.\n"), "{}", ran.stderr);
    let course: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with(['s', '>'])).collect();
    let expected = [
        "superstep 1",
        "> writer",
        "superstep 2",
        "> reviewer",
        "superstep 3",
        "> writer",
        "superstep 4",
        "> reviewer",
        "superstep 5",
        "> approve",
        "superstep 6",
        "> approve",
        "superstep 7",
        "> printer",
    ];
    assert_eq!(course, expected);
    assert!(ran.stderr.contains("  reviewer:\n  | More.\n"), "{}", ran.stderr);
}

/// Checks that only the owner can read the checkpoints below a directory.
fn assert_private(directory: &Path) {
    let entries = std::fs::read_dir(directory).unwrap().map(Result::unwrap);
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).unwrap());
    let modes: Vec<_> =
        files.map(|file| file.unwrap().metadata().unwrap().mode() & 0o777).collect();
    assert!(modes.len() >= 5 && modes.iter().all(|mode| *mode == 0o600), "{modes:?}");
}

#[test]
fn a_run_without_an_answer_waits_in_its_checkpoint() {
    let scene = review();
    let paused = scene.run(&["tides", "--checkpoints", "runs"]);
    assert_eq!((paused.code, paused.stdout.as_str()), (Some(4), ""), "{}", paused.stderr);
    assert_private(&scene.path("runs"));
    let prompt = "approve-1 waits for an answer:\n  | Print this?\n  | \n  | Good.\n\
                go on with the flags of this run and --checkpoints runs --resume --answer approve-1=TEXT\n";
    assert!(paused.stderr.ends_with(prompt), "{}", paused.stderr);
    let listed = scene.ran(&["checkpoints", "w.yaml", "--checkpoints", "runs"]);
    assert_eq!(listed.stdout.lines().count(), 5);
    assert!(listed.stdout.ends_with("  superstep 5, waits for approve-1\n"), "{}", listed.stdout);
    // The agents are not asked again: their scripts have ended.
    for (answer, printed) in [("no", ""), ("yes", "Printed.\n")] {
        let id = listed.stdout.lines().last().unwrap().split(' ').next().unwrap().to_owned();
        let resume = format!("--resume={id}");
        let answer = format!("approve-1={answer}");
        let ran = scene.run(&["--checkpoints", "runs", &resume, "--answer", &answer]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), printed), "{}", ran.stderr);
    }
    let again = scene.run(&["--checkpoints", "runs", "--resume"]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (Some(0), ""),
        "the last one is done: {}",
        again.stderr
    );
    let unused = scene.run(&["--checkpoints", "runs", "--resume", "--answer", "approve-1=yes"]);
    assert_eq!(unused.code, Some(2), "{}", unused.stderr);
    assert!(unused.stderr.contains("`approve-1` was not used"), "{}", unused.stderr);
}

#[test]
fn a_checkpoint_is_for_the_workflow_that_it_was_taken_of() {
    let scene = review();
    scene.run(&["tides", "--checkpoints", "runs"]);
    scene.write("w.yaml", &REVIEW.replace("contains: good", "contains: well"));
    let ran = scene.run(&["--checkpoints", "runs", "--resume", "--answer", "approve-1=yes"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("error: the checkpoint is of a workflow with another structure"),
        "{}",
        ran.stderr
    );
    let missing = scene.run(&["--checkpoints", "runs", "--resume=0193c0ffee00a1b2c3d4-000002"]);
    assert_eq!(missing.code, Some(2));
    assert!(
        missing.stderr.contains("there is no checkpoint `0193c0ffee00a1b2c3d4-000002`"),
        "{}",
        missing.stderr
    );
    let odd = scene.run(&["--checkpoints", "runs", "--resume=../../x"]);
    assert_eq!((odd.code, odd.stderr.lines().count()), (Some(2), 1), "{}", odd.stderr);
    let mistyped = scene.run(&["--checkpoints", "elsewhere", "--resume"]);
    assert_eq!(mistyped.code, Some(2));
    assert!(
        mistyped.stderr.contains("cannot open the directory `elsewhere`"),
        "{}",
        mistyped.stderr
    );
    std::fs::create_dir(scene.folder.path().join("elsewhere")).unwrap();
    let empty = scene.run(&["--checkpoints", "elsewhere", "--resume"]);
    assert!(
        empty.stderr.contains("there is no checkpoint of the workflow `review` in elsewhere"),
        "{}",
        empty.stderr
    );
}

#[test]
fn a_killed_process_loses_no_more_than_the_superstep_that_was_running() {
    let hangs = json!({"text": "never", "delay_ms": 600_000});
    let scene = Scene::new(
        "agents:\n  a: {model: 'script:a.jsonl'}\n  b: {model: 'script:b.jsonl'}\n  c: {model: 'script:c.jsonl'}\n\
         start: a\nedges: [chain: [a, b, c]]\n",
        &[("a", &[says("A")]), ("b", &[says("B")]), ("c", &[hangs])],
    );
    let mut child = scene
        .command(&["run", "w.yaml", "x", "--checkpoints", "runs"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let stored = || {
        std::fs::read_dir(scene.path("runs/w")).map_or(0, |entries| {
            entries
                .filter(|entry| {
                    entry
                        .as_ref()
                        .unwrap()
                        .path()
                        .extension()
                        .is_some_and(|ending| ending == "json")
                })
                .count()
        })
    };
    while stored() < 2 {
        assert!(begun.elapsed() < PATIENCE, "no checkpoints");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // `a` and `b` are not asked again, and `c` answers this time.
    for name in ["a", "b"] {
        scene.script(name, &[]);
    }
    scene.script("c", &[says("C")]);
    let ran = scene.run(&["--checkpoints", "runs", "--resume"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "C\n"), "{}", ran.stderr);
}

#[test]
fn json_is_events_and_an_end() {
    let scene = Scene::new("agents:\n  a: {model: 'script:a.jsonl'}\n", &[("a", &[says("hi")])]);
    let lines = scene.run(&["x", "--json"]).lines();
    let types: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types[..2], ["superstep_started", "executor_invoked"]);
    assert_eq!(
        lines[2],
        json!({"type": "output", "executor": "a", "value": {"type": "text", "value": "hi"}})
    );
    assert_eq!(lines.last().unwrap(), &json!({"type": "end", "outcome": "done"}));
    let failed = scene.run(&["x", "--model", "script:none.jsonl", "--max-iterations", "1"]);
    assert_eq!(failed.code, Some(0));
    scene.script("a", &[]);
    let failed = scene.run(&["x", "--json"]);
    assert_eq!(
        (failed.code, failed.lines().last().unwrap()["outcome"].as_str()),
        (Some(4), Some("failed"))
    );
    assert!(failed.stderr.contains("the executor `a` failed: the script"), "{}", failed.stderr);
}

#[test]
fn agents_have_the_tools_that_they_name_and_approvals_are_requests() {
    let deletes =
        json!({"calls": [{"tool": "file_access_delete_file", "arguments": {"file_name": "a.md"}}]});
    let scene = Scene::new(
        "agents:\n  a: {model: 'script:a.jsonl', tools: [file_access_delete_file]}\n",
        &[("a", &[deletes.clone(), says("done")])],
    );
    std::fs::create_dir(scene.path("notes")).unwrap();
    std::fs::write(scene.path("notes/a.md"), "x").unwrap();
    let flags = ["x", "--files", "notes"];
    let paused = scene.run(&flags);
    assert_eq!(paused.code, Some(4));
    assert!(
        paused.stderr.contains(
            "the agent `a` wants to call `file_access_delete_file` with {\"file_name\":\"a.md\"}"
        ),
        "{}",
        paused.stderr
    );
    let refused = scene.run(&[&flags[..], &["--answer", "a-1=no"]].concat());
    assert_eq!(
        (refused.code, scene.path("notes/a.md").exists()),
        (Some(0), true),
        "{}",
        refused.stderr
    );
    let approved = scene.run(&[&flags[..], &["--approve", "file_access_delete_file"]].concat());
    assert_eq!(
        (approved.code, scene.path("notes/a.md").exists()),
        (Some(0), false),
        "{}",
        approved.stderr
    );
    // Tools that the workflow does not name are unavailable.
    scene.write("w.yaml", "agents:\n  a: {model: 'script:a.jsonl'}\n");
    scene.script("a", &[deletes, says("done")]);
    std::fs::write(scene.path("notes/a.md"), "x").unwrap();
    let without = scene.run(&[&flags[..], &["--yes"]].concat());
    assert_eq!(
        (without.code, scene.path("notes/a.md").exists()),
        (Some(0), true),
        "{}",
        without.stderr
    );
}

#[test]
fn a_page_answers_the_requests_of_a_run_without_a_terminal() {
    let deletes =
        json!({"calls": [{"tool": "file_access_delete_file", "arguments": {"file_name": "a.md"}}]});
    let scene = Scene::new(
        "name: tidy\nagents:\n  a: {model: 'script:a.jsonl', tools: [file_access_delete_file]}\n\
         people:\n  ask: {prompt: 'Which one?'}\nstart: a\nedges:\n  - {from: a, to: ask}\n\
         output-from: [ask]\n",
        &[("a", &[deletes, says("done")])],
    );
    std::fs::create_dir(scene.path("notes")).unwrap();
    std::fs::write(scene.path("notes/a.md"), "x").unwrap();
    let run = ["run", "w.yaml", "x", "--files", "notes", "--inspector=approve"];
    let mut running = scene.command(&run);
    running.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = running.spawn().unwrap();
    let mut errors = std::io::BufReader::new(running.stderr.take().unwrap()).lines();
    let mut printed = errors.by_ref().map_while(Result::ok);
    let address = printed.find(|line| line.contains("within five minutes: ")).unwrap();
    let rest = std::thread::spawn(move || errors.map_while(Result::ok).collect::<Vec<_>>());
    let mut pages = PageClient::new(&address);
    pages.log_in();
    let prompt = pages.waiting();
    assert!(prompt.1.contains("Allow a call of <bdi>file_access_delete_file</bdi>?"));
    assert!(pages.answer(&prompt, json!({"action": "approve"})).starts_with("200 "));
    let prompt = pages.waiting();
    assert!(prompt.1.contains("Which one?"), "{}", prompt.1);
    let answer = json!({"action": "send", "content": r#"{"answer":"this one"}"#});
    assert!(pages.answer(&prompt, answer).starts_with("200 "));
    let output = running.wait_with_output().unwrap();
    let rest = rest.join().unwrap().join("\n");
    assert_eq!(output.status.code(), Some(0), "{rest}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "this one\n", "{rest}");
    assert!(rest.contains("waiting for an answer in the inspector\napproved in"), "{rest}");
    assert!(!scene.path("notes/a.md").exists());
}

#[test]
fn plugins_are_tools_of_agents() {
    let counts = json!({"calls": [{"tool": "word_count", "arguments": {"text": "a b"}}]});
    let scene = Scene::new(
        "agents:\n  a: {model: 'script:a.jsonl', tools: all}\n",
        &[("a", &[counts, says("Two.")])],
    );
    let ran = scene.run(&["x", "--plugin", &guest("text").display().to_string()]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Two.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("  a calls word_count {\"text\":\"a b\"}\n"), "{}", ran.stderr);
}

#[test]
fn no_tool_may_write_checkpoints_or_the_workflow() {
    let scene = Scene::new("agents:\n  a: {model: 'script:a.jsonl'}\n", &[("a", &[says("hi")])]);
    std::fs::create_dir(scene.path("runs")).unwrap();
    for (files, more) in [("runs", ["--checkpoints", "runs"].as_slice()), (".", &[])] {
        let ran = scene.run(&[&["x", "--files", files], more].concat());
        assert_eq!(ran.code, Some(2), "{files}: {}", ran.stderr);
    }
}

#[test]
fn agents_work_together_in_the_known_ways() {
    let agents = "agents:\n  a: {model: 'script:a.jsonl'}\n  b: {model: 'script:b.jsonl'}\n";
    let scene = Scene::new("", &[("a", &[says("A")]), ("b", &[says("B")])]);
    for (orchestration, shown) in [
        ("sequential", "B\n"),
        ("concurrent", "A\nB\n"),
        ("{kind: group-chat, max-rounds: 2}", "A\nB\n"),
        ("{kind: group-chat, max-rounds: 1}", "A\n"),
    ] {
        scene.write("w.yaml", &format!("{agents}orchestration: {orchestration}\n"));
        let ran = scene.run(&["x"]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), shown),
            "{orchestration}: {}",
            ran.stderr
        );
    }
    scene.script("a", &[json!({"calls": [{"tool": "handoff_to_b"}]})]);
    scene.script("b", &[says("What?"), says("There.")]);
    scene.write("w.yaml", &format!("{agents}orchestration: handoff\n"));
    let ran = scene.run(&["x", "--answer", "b-1=Tea.", "--answer", "b-2="]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "What?\nThere.\n"), "{}", ran.stderr);
    let ledger =
        json!({"is_request_satisfied": true, "is_in_loop": false, "is_progress_being_made": true});
    scene.script("a", &[says("facts"), says("plan"), says(&ledger.to_string()), says("Final.")]);
    scene.write("w.yaml", &format!("{agents}orchestration: {{kind: magentic, planner: a}}\n"));
    let ran = scene.run(&["x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Final.\n"), "{}", ran.stderr);
}

#[test]
fn errors_in_a_file_have_a_position() {
    let scene = Scene::new("", &[]);
    let agent = "agents:\n  a: {}\n  b: {}\nstart: a\nedges:\n";
    let wrong = |text: &str| scene.wrong(text).replace("error: wrong.yaml", "");
    assert_eq!(
        wrong(&format!("{agent}  - {{from: a, to: c}}")),
        ":6:5: there is no agent or person `c`; there are: a, b"
    );
    assert!(
        wrong("agents:\n  a: {modell: x}\n")
            .starts_with(":2:7: unknown field `modell`, expected one of name, file, model,")
    );
    assert!(
        wrong("agents:\n  a: {}\norchestration: pipeline\n")
            .starts_with(":3:1: unknown variant `pipeline`")
    );
    assert!(wrong("agents:\n  a: {\n").starts_with(":"));
    assert_eq!(
        wrong("agents:\n  a: {}\norchestration: {kind: sequential, max-rounds: 3}\n"),
        ":3:16: `max-rounds` is for another kind of orchestration"
    );
    assert!(wrong(&format!("{agent}  - {{from: a}}")).starts_with(":6:5: an edge is one of:"));
    assert!(
        wrong(&format!("{agent}  - {{from: a, to: b, when: {{matches: '('}}}}"))
            .starts_with(":6:5: invalid regex in `matches`")
    );
    assert_eq!(
        wrong(&format!("{agent}  - {{from: a, to: b}}\n  - {{from: a, to: b}}")),
        ": [EDGE_DUPLICATION] Duplicate edge detected: a->b. Each edge in the workflow must be \
         unique."
    );
    assert_eq!(
        wrong("agents:\n  a: {}\n  b: {}\nstart: a\n"),
        ": [GRAPH_CONNECTIVITY] The following executors are unreachable from the start executor \
         'a': [\"b\"]."
    );
    assert_eq!(wrong("{}"), ": the workflow has no agents; write `agents:` with at least one");
    assert!(
        wrong(&format!("{agent}  - {{from: a, to: b}}\noutput-from: some\n"))
            .ends_with("Unsupported output_from literal 'some'; use 'all' or a list of executors.")
    );
    // A YAML string that expands to more than its size.
    let bomb: String = (0..8)
        .map(|level| {
            format!(
                "l{level}: &l{level} [{}]\n",
                vec![format!("*l{}", level - 1).replace("*l-1", "x"); 9].join(",")
            )
        })
        .collect();
    assert!(!wrong(&bomb).is_empty());
}

#[test]
fn a_loop_without_end_ends() {
    let scene = Scene::new(
        "agents:\n  a: {model: 'script:a.jsonl'}\nstart: a\nedges: \
         [{from: a, to: a}]\nmax-iterations: 2\n",
        &[("a", &[says("1"), says("2"), says("3")])],
    );
    let ran = scene.run(&["x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), "1\n2\n"));
    assert!(
        ran.stderr.ends_with("error: Runner did not converge after 2 iterations.\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(scene.run(&["x", "--max-iterations", "1"]).stdout, "1\n");
}

#[test]
fn a_graph_is_drawn_without_any_model() {
    let scene = Scene::new(REVIEW, &[]);
    let ran = scene.ran(&["graph", "w.yaml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.starts_with("flowchart TD\n    n0([\"writer\"])\n"), "{}", ran.stdout);
    let json = scene.ran(&["graph", "w.yaml", "--json"]);
    assert_eq!(json.lines()[0], json!({"name": "review", "mermaid": ran.stdout}));
    let checked = scene.ran(&["check", "w.yaml"]);
    assert_eq!(checked.stdout, "review: 4 executors, at most 100 supersteps\n");
}

#[test]
fn what_agents_name_is_checked_with_the_tools_of_a_run() {
    const WORKFLOW: &str = "agents: {a: {model: 'openai:gpt-5.2', tools: [file_access_read_file]}, b: {model: NAME}}\nstart: a\nedges: [{from: a, to: b}]\n";
    let scene = Scene::new(&WORKFLOW.replace("NAME", "'script:b.jsonl'"), &[("b", &[says("x")])]);
    let checked = |flags: &[&str]| scene.ran(&[&["check", "w.yaml"], flags].concat());
    let outline = checked(&[]);
    assert_eq!(outline.code, Some(0), "{}", outline.stderr);
    assert!(outline.stderr.contains("models and tools of the agents are not checked"));
    // No key of OpenAI is set.
    let all = checked(&["--files", "memory", "--json"]);
    assert_eq!(all.lines()[0]["has_agents_checked"], json!(true), "{}", all.stderr);
    let without = checked(&["--model", "openai:gpt-5.2"]);
    assert_eq!(without.code, Some(2), "{}", without.stderr);
    let expected = "there is no tool called 'file_access_read_file'";
    assert!(without.stderr.contains(expected), "{}", without.stderr);
    for (name, expected) in
        [("large", "defines a model `large`"), ("'script:missing.jsonl'", "missing.jsonl")]
    {
        scene.write("w.yaml", &WORKFLOW.replace("NAME", name));
        let wrong = checked(&["--files", "memory"]);
        assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
        assert!(wrong.stderr.contains(expected), "{}", wrong.stderr);
    }
}

#[test]
fn a_condition_on_a_field_that_no_answer_has_is_a_warning() {
    const WORKFLOW: &str = "agents: {a: {output: {type: object, properties: {kind: {type: string}}}}, b: {}}\nstart: a\nedges:\n  - {from: a, to: b, when: {field: FIELD, equals: bug}}\n";
    for (field, warns) in [("kind", false), ("kynd", true), ("kind.more", true)] {
        let scene = Scene::new(&WORKFLOW.replace("FIELD", field), &[]);
        let checked = scene.ran(&["check", "w.yaml"]);
        assert_eq!(checked.code, Some(0), "{}", checked.stderr);
        let warning = format!(
            "warning: w.yaml:4:5: a condition tests the field `{field}`, which no answer of `a` has"
        );
        assert_eq!(checked.stderr.contains(&warning), warns, "{}", checked.stderr);
    }
}

/// Compares the workflow, the graph and the run on the page with the output of the command.
#[test]
fn what_the_page_shows_is_what_happens() {
    let page = std::fs::read_to_string(cofferdam_tests::root().join("docs/workflows.md")).unwrap();
    let block = |language: &str| {
        let begin = format!("```{language}\n");
        page.split(&begin).nth(1).unwrap().split("```").next().unwrap().to_owned()
    };
    let scene = review();
    scene.write("w.yaml", &block("yaml"));
    assert_eq!(scene.ran(&["graph", "w.yaml"]).stdout, block("mermaid"));
    let example =
        std::fs::read_to_string(cofferdam_tests::root().join("tests/examples/workflow.rs"))
            .unwrap();
    let shown = block("rust");
    assert!(
        shown.lines().all(|line| example.contains(line.trim())),
        "the Rust of the page is not in the example"
    );
}

#[test]
fn agents_have_memory_files_todos_and_a_plan_mode() {
    let calls =
        |tool: &str, arguments: Value| json!({"calls": [{"tool": tool, "arguments": arguments}]});
    let saves =
        |name: &str| calls("file_access_save_file", json!({"file_name": name, "content": "x"}));
    let planner = [
        calls("todos_add", json!({"todos": [{"title": "Save"}]})),
        saves("early.md"),
        calls("mode_set", json!({"mode": "execute"})),
        saves("late.md"),
        says("Saved."),
    ];
    let note = json!({"file_name": "tea.md", "content": "green"});
    let keeper = [calls("file_memory_write", note), says("Noted.")];
    let workflow = "\
agents:
  planner: {model: 'script:planner.jsonl', tools: [file_access_save_file], memory-files: false, plan-mode: true}
  keeper: {model: 'script:keeper.jsonl', todos: false}
start: planner
edges: [chain: [planner, keeper]]
";
    let scene = Scene::new(workflow, &[("planner", &planner), ("keeper", &keeper)]);
    for name in ["notes", "memories"] {
        std::fs::create_dir(scene.path(name)).unwrap();
    }
    let config = "[stores.memories]\ndirectory = \"memories\"\n[agent]\nmemory-files = \"memories\"\ntodos = true\n";
    scene.write("c.toml", config);
    let flags = ["x", "--files", "notes", "--config", "c.toml", "--yes", "--json"];
    let ran = scene.run(&flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!scene.path("notes/early.md").exists(), "{}", ran.stderr);
    assert!(scene.path("notes/late.md").exists(), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(scene.path("memories/tea.md")).unwrap(), "green");
    for (written, changed, expected) in [
        (
            "todos: false",
            "memory-files: none",
            "w.yaml:3:56: there is no store `none`; stores of the configuration: `memories`",
        ),
        (
            "todos: false",
            "memory-files: true",
            "w.yaml:3:56: expected the name of a store of [stores], or false",
        ),
        ("todos: false", "memory-files: [a]", "the name of a store, or false"),
        (
            "plan-mode: true",
            "plan-mode: true, bounded: {until: {contains: x}}",
            "so it can have no plan mode",
        ),
    ] {
        scene.write("w.yaml", &workflow.replace(written, changed));
        let ran = scene.run(&flags);
        assert_eq!(ran.code, Some(2), "{changed}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{changed}: {}", ran.stderr);
    }
    scene.write("w.yaml", &workflow.replace("todos: false", "memory-files: memories"));
    let ran = scene.run(&["x", "--files", "notes", "--yes"]);
    let expected = "memory files need a store of a configuration; pass --config FILE";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    scene.write("w.yaml", workflow);
    scene.write("c.toml", &config.replace("directory = \"memories\"", "directory = \".\""));
    let ran = scene.run(&flags);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("the memory holds"), "{}", ran.stderr);
}
