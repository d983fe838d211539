//! Memory cost of a long turn.

#![cfg(target_os = "linux")]

use std::io::{BufRead, BufReader, Write};
use std::process::Child;

use serde_json::{Value, json};

use super::{Scene, calls, plugin, says};

/// Maximum growth of memory during a thousand calls, in KiB: the host keeps some hundred bytes of
/// text of each. Keeping the instance of each call would cost 100 times as much.
const GROWTH_KIB_MAX: u64 = 12 * 1024;

fn resident_kib(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_thousand_calls_keep_memory_flat() {
    let call = || calls("word_count", json!({"text": "a b"}));
    let mut script: Vec<Value> = (0..200).map(|_| call()).collect();
    script.push(says("warm"));
    script.extend((0..1000).map(|_| call()));
    script.push(says("done"));
    let scene = Scene::new(&script);
    let mut child = scene.start(&["-p", &plugin("text"), "--max-iterations", "2000"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut stderr = child.stderr.take().unwrap();
    // Read the pipe: the child waits when it is full.
    let said =
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()).unwrap());
    let mut turn = |expected: &str| {
        stdin.write_all(b"go\n").unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), expected);
        resident_kib(&child)
    };
    let (warm, done) = (turn("warm"), turn("done"));
    drop(stdin);
    assert!(child.wait().unwrap().success());
    said.join().unwrap();
    assert!(done < warm + GROWTH_KIB_MAX, "{warm} KiB became {done} KiB");
}
