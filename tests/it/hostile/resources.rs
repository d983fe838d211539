//! A thousand attacks leak no memory, descriptors or threads of the host.
//!
//! Runs in a process of its own, which is this test program started once more, so that only the
//! attacks are measured.

use std::process::{Command, Stdio};
use std::sync::Arc;

use cofferdam_engine::{Component, Plugin};
use cofferdam_tests::{Host, config, guest, shared_cache};
use cofferdam_tool::{CallContext, Limits, Toolset};

use super::arena::{Arena, Reports, named};
use super::{Attack, Launch};

/// Variable that is set in the process that attacks itself.
const CHILD: &str = "COFFERDAM_TEST_UNDER_ATTACK";
/// Number of calls before each of two measurements of the level, and number of calls before the
/// comparison. The memory in the arenas of the C library settles over some hundred calls and then
/// varies by a tenth, so the higher of two measurements is the level.
const WARM_UP: usize = 700;
const CALLS: usize = 1_000;
/// Maximum number of rounds if the level is higher at the comparison: a leak grows in each round,
/// and memory that the C library happens to hold does not.
const STORMS_MAX: usize = 3;
/// Wall-clock limit of each call, in milliseconds.
const WALL_MS: u64 = 50;
/// Longer than an engine is idle before it releases memory.
const REST: std::time::Duration = std::time::Duration::from_secs(3);
/// Number of concurrent calls.
const AT_A_TIME: usize = 8;

/// Makes the GNU C library release memory, so that the measurement shows what the host holds and
/// not what a thread's arena once held.
const FRUGAL: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "65536"),
    ("MALLOC_TRIM_THRESHOLD_", "65536"),
];

#[test]
fn a_thousand_attacks_leave_nothing_behind() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::resources::under_attack", "--nocapture"])
        .env(CHILD, "1")
        .envs(FRUGAL)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stdout}\n{stderr}");
    assert!(stdout.contains("1 passed") && stdout.contains("attacks: "), "it has run: {stdout}");
}

/// The attacked process. Without the variable this test does nothing.
#[test]
fn under_attack() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(attack());
}

#[expect(clippy::print_stdout, reason = "measured figures, visible with --nocapture")]
async fn attack() {
    let mut config = config();
    config.cache_directory = Some(shared_cache());
    config.pool.concurrent_calls_max = u32::try_from(AT_A_TIME).unwrap();
    // Whether a second core gets its own copy of code is chance, and the descriptors of that code
    // would look like a leak.
    config.pool.pools_max = 1;
    let mut arena = Arena::with(Host::with(config)).await;
    arena.host.limits = Limits { wall_ms_max: WALL_MS, ..Limits::default() };
    let targets = Arc::new(targets(&arena).await);
    assert!(targets.len() >= 40, "only {} kinds of attacks", targets.len());
    storm(&arena, &targets, WARM_UP).await;
    let first = Level::now().await;
    storm(&arena, &targets, WARM_UP).await;
    let mut before = Level::now().await;
    before.resident_kib = before.resident_kib.max(first.resident_kib);
    let mut after = Level::now().await;
    for _ in 0..STORMS_MAX {
        storm(&arena, &targets, CALLS).await;
        after = Level::now().await;
        if after.resident_kib <= before.resident_kib + before.resident_kib / 10 {
            break;
        }
    }
    println!("attacks: {} kinds, {before:?} before and {after:?} after", targets.len());
    assert!(
        after.resident_kib <= before.resident_kib + before.resident_kib / 10,
        "{before:?} {after:?}"
    );
    assert_eq!(after.descriptors, before.descriptors);
    // The runtime's threads for blocking work come and go.
    assert!(after.threads <= before.threads + 2, "{before:?} {after:?}");
    arena.assert_honest().await;
}

/// A plugin with the tool and the arguments of a call.
type Target = (Toolset, String, String);

/// Returns every attack that is a call, of all families.
async fn targets(arena: &Arena) -> Vec<Target> {
    let mut targets = Vec::new();
    let all = super::FAMILIES.iter().flat_map(|(_, attacks)| *attacks);
    for attack in all {
        let Some((component, tool, arguments)) = call(attack) else { continue };
        // Refused plugins cannot be called. A plugin that spins while it lists its tools is refused
        // after 5 s.
        if attack.name.contains("list_tools") || attack.name == "a_trap_instead_of_a_list" {
            continue;
        }
        let Ok(plugin) = arena.load(&component).await else { continue };
        let tool = tool.unwrap_or_else(|| first_tool(&plugin));
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(plugin)).unwrap();
        targets.push((toolset, tool, arguments));
    }
    targets
}

fn call(attack: &Attack) -> Option<(Component, Option<String>, String)> {
    let file = |name: &str| Component::from_file_ambient(guest(name));
    match attack.launch {
        Launch::Named => Some((file("hostile"), Some("attack".to_owned()), named(attack.name))),
        Launch::Tool(name, tool, arguments) => {
            Some((file(name), Some(tool.to_owned()), arguments.to_owned()))
        }
        Launch::Module(module) => {
            Some((Component::from_bytes(module().component()), None, "{}".to_owned()))
        }
        Launch::Text(text) if matches!(attack.end, super::End::Error(_)) => {
            Some((Component::from_bytes(wat::parse_str(text()).unwrap()), None, "{}".to_owned()))
        }
        Launch::Text(_) | Launch::Bytes(_) | Launch::Steps(_) => None,
    }
}

fn first_tool(plugin: &Plugin) -> String {
    cofferdam_tool::ToolSource::definitions(plugin)[0].name.to_string()
}

/// Calls the targets in turn, several at a time.
async fn storm(arena: &Arena, targets: &Arc<Vec<Target>>, calls: usize) {
    let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let attackers: Vec<_> = (0..AT_A_TIME)
        .map(|_| {
            let (next, targets) = (Arc::clone(&next), Arc::clone(targets));
            let progress: Arc<Reports> = Arc::clone(&arena.progress);
            tokio::spawn(async move {
                loop {
                    let index = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if index >= calls {
                        return;
                    }
                    let (toolset, tool, arguments) = &targets[index % targets.len()];
                    let context = CallContext {
                        progress: Some(Arc::clone(&progress) as _),
                        ..CallContext::new("storm")
                    };
                    // The attack's own test checks the end; this one checks that the call ends.
                    let _ = toolset.call(tool, Some(arguments.as_bytes()), &context).await;
                }
            })
        })
        .collect();
    for attacker in attackers {
        attacker.await.expect("no call panics");
    }
    arena.progress.0.lock().unwrap().clear();
    arena.assert_honest().await;
}

/// Resources of the process.
#[derive(Debug)]
struct Level {
    resident_kib: u64,
    threads: u64,
    descriptors: usize,
}

impl Level {
    /// Measures after the rest in which the engine releases unused memory.
    async fn now() -> Self {
        tokio::time::sleep(REST).await;
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let field = |name: &str| {
            let line =
                status.lines().find(|line| line.starts_with(name)).expect("a line of that name");
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        Self {
            resident_kib: field("VmRSS:"),
            threads: field("Threads:"),
            descriptors: std::fs::read_dir("/proc/self/fd").unwrap().count(),
        }
    }
}
