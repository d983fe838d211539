//! Code mode in `call`, `chat` and `serve`.

use std::collections::BTreeSet;
use std::path::Path;

use cofferdam_tests::guest;
use serde_json::{Value, json};

use crate::cli_skills;
use crate::cluster::{self, Nats};
use crate::serve_changes;
use crate::wire::{Pipe, command};

const PROGRAM: &str = "const n = (await tools.word_count({text: 'a b'})).words; return {n}";

fn run(folder: &Path, flags: &[&str]) -> (Option<i32>, String, String) {
    let output = cli_skills::command(folder, flags).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn call_runs_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = guest("text").display().to_string();
    let code = format!("code={PROGRAM}");
    let flags = ["call", "run_code", &code, "-p", &plugin, "--code"];
    let (exit, shown, errors) = run(folder.path(), &flags);
    assert_eq!(exit, Some(0), "{errors}");
    assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), json!({"result": {"n": 2}}));
    let (exit, shown, _) = run(folder.path(), &["list", "-p", &plugin, "--code=only"]);
    assert_eq!(exit, Some(0));
    assert!(shown.contains("run_code") && !shown.contains("\nword_count"), "{shown}");
    let flags = ["call", "word_count", "text=a", "-p", &plugin, "--code=only"];
    assert_eq!(run(folder.path(), &flags).0, Some(2));
    let (exit, _, errors) = run(folder.path(), &["list", "-p", &plugin, "--code=some"]);
    assert_eq!(exit, Some(2));
    assert!(errors.contains("`both` or `only`"), "{errors}");
}

#[test]
fn the_model_of_a_chat_writes_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = guest("text").display().to_string();
    let replies = [
        json!({"calls": [{"tool": "run_code", "arguments": {"code": PROGRAM}}]}),
        json!({"text": "Two words."}),
    ];
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("model.jsonl"), lines.join("\n")).unwrap();
    let flags =
        ["chat", "Count.", "--model", "script:model.jsonl", "-p", &plugin, "--code=only", "--json"];
    let (exit, shown, errors) = run(folder.path(), &flags);
    assert_eq!(exit, Some(0), "{errors}");
    assert!(shown.contains(r#"{\"result\":{\"n\":2}}"#), "{shown}");
}

/// A call inside of a program needs the approval that the same call of the model needs.
#[test]
fn calls_of_a_program_need_approval() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    let code = "return await tools.file_access_delete_file({file_name: 'a.md'})";
    let replies = [
        json!({"calls": [{"tool": "run_code", "arguments": {"code": code}}]}),
        json!({"text": "Done."}),
    ];
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("model.jsonl"), lines.join("\n")).unwrap();
    for (flag, is_deleted) in [("", false), ("--yes", true)] {
        let note = folder.path().join("notes/a.md");
        std::fs::write(&note, "x").unwrap();
        let mut flags =
            vec!["chat", "Tidy.", "--model", "script:model.jsonl", "--files", "notes", "--code"];
        if is_deleted {
            flags.push(flag);
        }
        let (_, _, errors) = run(folder.path(), &flags);
        assert_eq!(!note.exists(), is_deleted, "{flag}: {errors}");
        assert_eq!(errors.contains("needs approval"), !is_deleted, "{flag}: {errors}");
    }
}

#[test]
fn a_server_offers_only_programs() {
    let mut pipe = Pipe::of(&mut command(&["text"], &["--code=only"]));
    let listed = pipe.modern("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 1, "{listed}");
    let description = tools[0]["description"].as_str().unwrap();
    assert!(description.contains("word_count(args"), "{description}");
    let answer = pipe.call("run_code", json!({"code": PROGRAM}));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        json!({"result": {"n": 2}}),
        "{answer}"
    );
    let refused = pipe.call("word_count", json!({"text": "a"}));
    assert!(refused.get("error").is_some() || refused["result"]["isError"] == true, "{refused}");
}

#[test]
fn a_missing_interpreter_is_one_clear_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("c.toml"),
        "[code]\noffer = \"both\"\ninterpreter = \"x.wasm\"\n",
    )
    .unwrap();
    let plugin = guest("text").display().to_string();
    let flags = ["list", "--config", "c.toml", "-p", &plugin];
    let (exit, _, errors) = run(folder.path(), &flags);
    assert_ne!(exit, Some(0));
    assert!(errors.contains("x.wasm"), "{errors}");
    std::fs::write(
        folder.path().join("c.toml"),
        format!("[code]\noffer = \"both\"\ninterpreter = {plugin:?}\n"),
    )
    .unwrap();
    let (exit, _, errors) = run(folder.path(), &flags);
    assert_eq!(exit, Some(2), "{errors}");
    assert!(errors.contains("no tool `run_code`"), "{errors}");
}

/// Folder with a configuration and notes, of which a program writes one and deletes another.
struct Notes(tempfile::TempDir);

impl Notes {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("notes")).unwrap();
        std::fs::write(folder.path().join("notes/a.md"), "x").unwrap();
        let text = format!(
            "[plugins.text]\ncomponent = {:?}\n[records]\ndirectory = \"log\"\n",
            guest("text")
        );
        std::fs::write(folder.path().join("c.toml"), text).unwrap();
        Self(folder)
    }

    fn flags(&self) -> [String; 5] {
        let path = |name: &str| self.0.path().join(name).display().to_string();
        let (config, files) = (path("c.toml"), path("notes"));
        ["--config".into(), config, "--files".into(), files, "--code=only".into()]
    }

    /// Runs the program, and answers each of its questions in a new request.
    fn change(&self, pipe: &mut Pipe) {
        let notes = self.0.path().join("notes");
        let code = "const {words} = await tools.word_count({text: 'a b'});
            await tools.file_access_save_file({file_name: 'b.md', content: String(words)});
            await tools.file_access_delete_file({file_name: 'a.md'}); return words";
        let program = json!({ "code": code });
        let asked = |id: &str, answers: Option<(&Value, Value)>| {
            serve_changes::asked(id, "run_code", program.clone(), answers)
        };
        let mut last = pipe.ask(&asked("1", None));
        let (mut questions, mut answered) = (Vec::new(), None);
        while last["result"]["resultType"] == "input_required" {
            assert!(notes.join("a.md").exists() && !notes.join("b.md").exists());
            let asked_for = last["result"]["inputRequests"].as_object().unwrap().clone();
            let (key, form) = asked_for.iter().next().unwrap();
            questions.push(form["params"]["message"].as_str().unwrap().to_owned());
            let answer = json!({ key: {"action": "accept", "content": {"allow": true}} });
            let request = asked("2", Some((&last, answer)));
            last = pipe.ask(&request);
            answered = Some(request);
        }
        assert!(questions.last().is_some_and(|last| last.contains("a.md")), "{questions:?} {last}");
        assert_eq!(last["result"]["isError"], false, "{last}");
        assert!(!notes.join("a.md").exists());
        assert_eq!(std::fs::read_to_string(notes.join("b.md")).unwrap(), "2");
        // The answer was used.
        let again = pipe.ask(&answered.unwrap());
        assert_eq!(again["result"]["isError"], true, "{again}");
        assert!(again.to_string().contains("its ledger no longer exists"), "{again}");
    }
}

/// A client that answers in a new request makes the program run again, without the calls that have
/// ended.
#[test]
fn a_program_continues_with_the_answer_in_a_new_request() {
    let notes = Notes::new();
    let flags = notes.flags();
    let mut pipe = Pipe::of(&mut command(&[], &flags.each_ref().map(String::as_str)));
    notes.change(&mut pipe);
    drop(pipe);
    let flags = ["log", "--config", "c.toml", "--tool", "word_count", "--json"];
    let (exit, shown, errors) = run(notes.0.path(), &flags);
    assert_eq!(exit, Some(0), "{errors}");
    // The log also has a line for a kept result, with the figures of the call that has run.
    let lines = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    // A figure of 0 is left out.
    let runs: BTreeSet<_> = lines.filter_map(|line| line["cpu_us"].as_u64()).collect();
    assert_eq!(runs.len(), 1, "{shown}");
}

/// The gateway makes the call at the worker that has asked, of several.
#[test]
fn a_program_on_a_worker_continues_with_the_answer_in_a_new_request() {
    let Some(nats) = Nats::start(&[]) else { return };
    let notes = Notes::new();
    let workers = [(); 4].map(|()| Pipe::of(cluster::worker(&nats.url()).args(notes.flags())));
    for worker in &workers {
        worker.has_said("is ready with");
    }
    notes.change(&mut nats.gateway());
}

/// Types of results come from the call log that the configuration names.
#[test]
fn recorded_results_have_types() {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        "[plugins.echo]\ncomponent = {:?}\n[records]\nenabled = true\ndirectory = \"log\"\npayloads = \"local\"\n",
        guest("echo")
    );
    std::fs::write(folder.path().join("c.toml"), text).unwrap();
    let call = |tool: &str, argument: &str| {
        let flags = ["call", tool, argument, "--config", "c.toml", "--code"];
        let (exit, shown, errors) = run(folder.path(), &flags);
        assert_eq!(exit, Some(0), "{errors}");
        shown
    };
    let describe = "code=return await tools.$describe('greet_all')";
    assert!(!call("run_code", describe).contains("observed"));
    call("greet_all", r#"{"names":["jane"]}"#);
    let described = call("run_code", describe);
    assert!(described.contains("observed") && described.contains("string[]"), "{described}");
    assert!(!described.contains("jane"), "{described}");
}

/// Programs of an agent call the tools that the agent names, and all if it names only `run_code`.
#[test]
fn programs_of_an_agent_have_its_tools() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = guest("text").display().to_string();
    let code = "try { return await tools.lines_matching({text: 'a', pattern: 'a'}) } catch (e) { return e.code }";
    let replies = [
        json!({"calls": [{"tool": "run_code", "arguments": {"code": code}}]}),
        json!({"text": "Done."}),
    ];
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("model.jsonl"), lines.join("\n")).unwrap();
    for (tools, is_known) in [("[run_code]", true), ("[run_code, word_count]", false)] {
        let text = format!("name: counter\ntools: {tools}\n");
        std::fs::write(folder.path().join("a.yaml"), text).unwrap();
        let flags = [
            "chat",
            "Count.",
            "--agent",
            "a.yaml",
            "--model",
            "script:model.jsonl",
            "-p",
            &plugin,
            "--code",
            "--json",
        ];
        let (exit, shown, errors) = run(folder.path(), &flags);
        assert_eq!(exit, Some(0), "{errors}");
        assert_eq!(shown.contains("unknown tool `lines_matching`"), !is_known, "{shown}");
    }
}

/// A program that writes whether it has `word_count`.
const ASKS_FOR_WORDS: &str = "const name = 'word_count'; let has = true;
    try { await tools[name]({text: 'a'}) } catch (e) { has = false }
    await tools.file_access_save_file({file_name: 'program.md', content: String(has)})";

/// Agents in files and in workflows have programs if the configuration offers them.
#[test]
fn agents_and_workflows_run_programs() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    let save = json!({"file_name": "direct.md", "content": "x"});
    let replies = [
        json!({"calls": [{"tool": "file_access_save_file", "arguments": save}]}),
        json!({"calls": [{"tool": "run_code", "arguments": {"code": ASKS_FOR_WORDS}}]}),
        json!({"text": "Done."}),
    ];
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    write("model.jsonl", &lines.join("\n"));
    let rows = [
        ("both", "tools: [run_code]", true, false),
        ("only", "tools: [run_code]", true, false),
        ("both", "tools: [run_code, file_access_save_file]", false, true),
        ("both", "tools: [file_access_save_file], code: only", false, false),
        ("only", "tools: [file_access_save_file], code: only", false, false),
        ("only", "tools: [file_access_save_file], code: both", false, true),
        ("only", "tools: all, code: only", true, false),
    ];
    for (offer, agent, has_words, is_direct) in rows {
        let plugin = guest("text").display().to_string();
        write(
            "c.toml",
            &format!("[plugins.text]\ncomponent = {plugin:?}\n[code]\noffer = {offer:?}\n"),
        );
        write("a.yaml", &format!("{{model: \"script:model.jsonl\", {agent}}}\n"));
        write(
            "w.yaml",
            &format!("agents: {{a: {{model: \"script:model.jsonl\", {agent}}}}}\nstart: a\n"),
        );
        for command in
            [&["chat", "Go.", "--agent", "a.yaml"][..], &["workflow", "run", "w.yaml", "Go."]]
        {
            let notes = folder.path().join("notes");
            std::fs::create_dir(&notes).unwrap();
            let flags = ["--config", "c.toml", "--files", "notes", "--no-record"];
            let (exit, _, errors) = run(folder.path(), &[command, &flags].concat());
            assert_eq!(exit, Some(0), "{offer}, {agent}: {errors}");
            let written = std::fs::read_to_string(notes.join("program.md")).unwrap_or_default();
            assert_eq!(written, has_words.to_string(), "{offer}, {agent}: {errors}");
            assert_eq!(notes.join("direct.md").exists(), is_direct, "{offer}, {agent}: {errors}");
            std::fs::remove_dir_all(&notes).unwrap();
        }
    }
    write("c.toml", "");
    let flags = ["chat", "Go.", "--agent", "a.yaml", "--config", "c.toml", "--no-record"];
    let (exit, _, errors) = run(folder.path(), &flags);
    assert_eq!(exit, Some(2), "{errors}");
    assert!(errors.contains("a.yaml:1:") && errors.contains("no `run_code`"), "{errors}");
}

/// Rules of the configuration apply to the calls of programs of MCP clients, as they do to theirs.
#[test]
fn rules_apply_to_programs_of_clients() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("c.toml");
    let rule = "[[agent.approvals]]\neffect = \"deny\"\ntool = \"word_count\"\n\
                arguments = { text = { equals = \"secret\" } }\n";
    std::fs::write(&config, rule).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--code"];
    let mut pipe = Pipe::of(&mut command(&["text"], &flags));
    for (text, is_denied) in [("secret", true), ("a b", false)] {
        let code = format!("return (await tools.word_count({{text: {text:?}}})).words");
        let answer = pipe.call("run_code", json!({ "code": code }));
        let shown = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(shown.contains("a rule of the user denies"), is_denied, "{answer}");
        assert_eq!(shown.contains(r#""result":2"#), !is_denied, "{answer}");
    }
}
