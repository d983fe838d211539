//! Memory files, the todo list and the plan mode of `chat`.

use super::*;

#[test]
fn notes_outlive_the_session_in_which_they_were_written() {
    let note = json!({"file_name": "ada.md", "content": "Likes tea.", "description": "About Ada"});
    let scene = Scene::new(&[calls("file_memory_write", note), says("Noted.")]);
    std::fs::create_dir(scene.path("memories")).unwrap();
    let ran = scene.chat(&["Remember.", "--memory-files", "memories", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let script = [calls("file_memory_read", json!({"file_name": "ada.md"})), says("Tea.")];
    let script = script.map(|line| line.to_string()).join("\n");
    std::fs::write(scene.path("model.jsonl"), script).unwrap();
    let again = scene.chat(&["What does Ada like?", "--memory-files", "memories", "--json"]);
    assert!(again.results()[0].contains("Likes tea."), "{}", again.stdout);

    let config =
        "[stores.memories]\ndirectory = \"memories\"\n[agent]\nmemory-files = \"memories\"\n";
    std::fs::write(scene.path("cofferdam.toml"), config).unwrap();
    let configured = scene.chat(&["And now?", "--config", "cofferdam.toml", "--json"]);
    assert!(configured.results()[0].contains("Likes tea."), "{}", configured.stdout);
    let note = json!({"file_name": "bob.md", "content": "Likes coffee."});
    let script = [calls("file_memory_write", note), says("Noted.")];
    let script = script.map(|line| line.to_string()).join("\n");
    std::fs::write(scene.path("model.jsonl"), script).unwrap();
    let wrote = scene.chat(&["Remember.", "--config", "cofferdam.toml", "--json"]);
    assert!(scene.has("memories/bob.md"), "{}", wrote.stdout);
    let here = config.replace("directory = \"memories\"", "directory = \".\"");
    std::fs::write(scene.path("cofferdam.toml"), here).unwrap();
    let refused = scene.chat(&["And now?", "--config", "cofferdam.toml"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("the memory"), "{}", refused.stderr);
}

#[test]
fn in_plan_mode_only_tools_that_change_nothing_run() {
    let call = |tool: &str, arguments: Value| json!({"tool": tool, "arguments": arguments});
    let calls = [
        call("file_access_read_file", json!({"file_name": "a.md"})),
        call("file_access_save_file", json!({"file_name": "b.md", "content": "x"})),
    ];
    let scene = Scene::new(&[json!({"calls": calls}), says("The plan.")]);
    let ran = scene.chat(&["Go.", "--files", "notes", "--plan", "--yes", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.results()[0].contains("one"), "{}", ran.stdout);
    assert!(!scene.has("notes/b.md"), "{}", ran.stdout);
}

#[test]
fn a_todo_list_is_shown() {
    let todos = json!({"todos": [{"title": "Boil water"}, {"title": "Add tea"}]});
    let done = json!({"items": [{"id": 1, "reason": "It boils."}]});
    let scene =
        Scene::new(&[calls("todos_add", todos), calls("todos_complete", done), says("Half.")]);
    let mut child = scene.start(&["--todos"]);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"Make tea.\n/todos\n/mode\n").unwrap();
    drop(stdin);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("[x] 1 Boil water\n[ ] 2 Add tea\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("there is no plan mode"), "{}", ran.stderr);
}
