//! Programs in Go start while they are built: what belongs to a call is still that of the call.

use std::fs;

use serde_json::Value;

use super::cofferdam;
use super::new::Project;

/// A tool that returns what may differ between calls, and one for the state of an earlier call.
const PROGRAM: &str = r#"package main

import (
	"fmt"
	"hash/maphash"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"time"

	"cofferdam"
)

var (
	start     = time.Now()
	fixed     = rand.Uint64()
	goroutine = make(chan string)
	calls     int
)

type observed struct {
	Random  []string `json:"random"`
	Fixed   string   `json:"fixed"`
	Calls   int      `json:"calls"`
	Start   int      `json:"start"`
	Year    int      `json:"year"`
	Slept   bool     `json:"slept"`
	File    string   `json:"file"`
	Channel string   `json:"channel"`
	Granted string   `json:"granted"`
	Set     string   `json:"set"`
}

func observe(*cofferdam.Call, cofferdam.None) (*observed, error) {
	calls++
	order := ""
	for number := range map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true, 6: true, 7: true, 8: true} {
		order += fmt.Sprint(number)
	}
	before := time.Now()
	time.Sleep(3 * time.Millisecond)
	content, err := os.ReadFile("/notes/a.txt")
	if err != nil {
		return nil, err
	}
	// More than the memory of a call, so that it has to be collected.
	for range 100 {
		if len(make([]byte, 1<<20)) == 0 {
			panic("no memory")
		}
	}
	return &observed{
		Random: []string{
			fmt.Sprint(rand.Uint64()), fmt.Sprint(randv2.Uint64()),
			fmt.Sprint(maphash.String(maphash.MakeSeed(), "")), order,
		},
		Fixed: fmt.Sprint(fixed), Calls: calls, Start: start.UTC().Year(), Year: before.Year(),
		Slept: time.Since(before) >= 2*time.Millisecond, File: string(content), Channel: <-goroutine,
		Granted: os.Getenv("GRANTED"), Set: os.Getenv("SET"),
	}, nil
}

func init() {
	if err := os.Setenv("SET", "by init"); err != nil {
		panic(err)
	}
	go func() { goroutine <- "from init" }()
	cofferdam.Register(cofferdam.Tool("observe", "Returns what differs between calls.", observe))
}

func main() {}
"#;

const PERMISSIONS: &str =
    "[permissions]\nenv = [\"GRANTED\", \"SET\"]\nfiles.notes = \"read-only\"\n";

#[test]
fn a_call_has_its_own_clock_files_and_random_numbers() {
    let Some(project) = Project::new("go") else { return };
    let directory = project.directory();
    fs::write(directory.join("main.go"), PROGRAM).unwrap();
    fs::write(directory.join("plugin.toml"), PERMISSIONS).unwrap();
    fs::remove_file(directory.join("cases.jsonl")).unwrap();
    fs::create_dir(directory.join("notes")).unwrap();
    fs::write(directory.join("notes/a.txt"), "hello").unwrap();
    let built = cofferdam(&directory, &["build"]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    let observe = || {
        let arguments =
            ["call", "observe", "--plugin", "dist/first-try.wasm", "--mount", "notes=notes"];
        let variables = ["--allow-env", "GRANTED=by the host", "--allow-env", "SET=by the host"];
        let called = cofferdam(&directory, &[&arguments[..], &variables].concat());
        assert_eq!(called.code, 0, "{}", called.stderr);
        serde_json::from_str::<Value>(&called.stdout).unwrap()
    };
    let [first, second, third] = [observe(), observe(), observe()];
    for call in [&first, &second, &third] {
        assert_eq!(
            (&call["calls"], &call["start"]),
            (&Value::from(1), &Value::from(1970)),
            "{call}"
        );
        assert!(call["year"].as_u64() > Some(2020), "{call}");
        assert_eq!(call["slept"], true, "{call}");
        assert_eq!((&call["file"], &call["channel"]), (&"hello".into(), &"from init".into()));
        assert_eq!((&call["granted"], &call["set"]), (&"by the host".into(), &"by init".into()));
        assert_eq!(call["fixed"], first["fixed"]);
    }
    for i in 0..4 {
        let numbers = [&first, &second, &third].map(|call| &call["random"][i]);
        // One in 40 thousand pairs of orders is equal by chance.
        assert!(numbers[0] != numbers[1] || numbers[1] != numbers[2], "{i}: {numbers:?}");
    }

    // Without a snapshot, nothing of this is fixed.
    let settings = format!("{PERMISSIONS}\n[build]\nsnapshot = false\n");
    fs::write(directory.join("plugin.toml"), settings).unwrap();
    let built = cofferdam(&directory, &["build"]);
    assert_eq!(built.code, 0, "{}", built.stderr);
    let [first, second] = [observe(), observe()];
    assert!(first["start"].as_u64() > Some(2020), "{first}");
    assert_ne!(first["fixed"], second["fixed"]);
}

#[test]
fn a_program_that_does_not_start_is_refused_with_its_message() {
    let Some(project) = Project::new("go") else { return };
    let directory = project.directory();
    let program = fs::read_to_string(directory.join("main.go")).unwrap();
    let program = program.replace("func init() {", "func init() {\n\tpanic(\"no settings\")");
    fs::write(directory.join("main.go"), program).unwrap();
    let built = cofferdam(&directory, &["build"]);
    assert_ne!(built.code, 0, "{}", built.stdout);
    for part in [
        "error: the program does not start: it panics. ",
        "or set `[build] snapshot = false` in plugin.toml",
        "panic: no settings",
        "main.init.0()",
    ] {
        assert!(built.stderr.contains(part), "{part}: {}", built.stderr);
    }
}
