//! Runs the start of a Go program at build time, and makes a module that begins with the memory
//! that it leaves.
//!
//! Starting Go's runtime and its packages takes several times as long as a call. The program that
//! is run here has no access to anything: clock and random numbers are constants, so that equal
//! sources make equal components, and it has no files, no environment and no network. What belongs
//! to a call, the SDK renews at its start (`guest-sdk/go/internal/abi/start_wasip1.go`).

mod segments;
mod wasi;

use futures_util::FutureExt as _;
use wasmparser::{BinaryReader, ExportSectionReader};
use wasmtime::{Config, Engine, Instance, Linker, Module, OptLevel, RegallocAlgorithm, Store};
use wasmtime_wizer::{InstanceState, SnapshotVal, ValType, Wizer};

use self::wasi::{Refusal, Wasi};
use crate::sections::sections;
use crate::{BuildError, Steps};

/// Export of Go that starts the runtime and runs the `init` functions.
const INITIALIZE: &str = "_initialize";
/// Export of the SDK that ends the start.
const PREPARE: &str = "cofferdam_prepare";
/// Id of the section of exports.
const EXPORT: u8 = 7;

/// Returns whether the SDK of a program supports snapshots. A project has a copy of the SDK, which
/// can be older.
pub(super) fn is_supported(module: &[u8]) -> bool {
    let exports = sections(module).into_iter().flatten().filter(|(id, _)| *id == EXPORT);
    let mut readers = exports
        .filter_map(|(_, section)| ExportSectionReader::new(BinaryReader::new(section, 0)).ok());
    readers.any(|reader| {
        reader.into_iter().any(|export| export.is_ok_and(|export| export.name == PREPARE))
    })
}

/// Runs the start of a program and returns the module that has it behind it.
///
/// # Errors
/// [`BuildError::Project`] if the start fails or needs something that exists only in calls.
pub(super) fn take(module: &[u8], steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    // Wizer keeps a placeholder for each segment, and Go writes as many as a module may have.
    let merged = segments::merge(module);
    let module = merged.as_deref().unwrap_or(module);
    let mut wizer = Wizer::new();
    wizer.init_func(PREPARE);
    let (context, instrumented) = wizer.instrument(module).map_err(broken)?;
    let mut config = Config::new();
    // Most functions never run here, so compiling takes longer than running.
    config.cranelift_opt_level(OptLevel::None);
    config.cranelift_regalloc_algorithm(RegallocAlgorithm::SinglePass);
    config.generate_address_map(false);
    // The program is instantiated once, so a file with its initial memory would not pay.
    config.memory_init_cow(false);
    let engine = Engine::new(&config).map_err(broken)?;
    let compiled = Module::new(&engine, &instrumented).map_err(broken)?;
    let mut linker = Linker::new(&engine);
    wasi::add(&mut linker, &compiled).map_err(broken)?;
    let mut store = Store::new(&engine, Wasi::default());
    let instance = linker.instantiate(&mut store, &compiled).map_err(broken)?;
    for export in [INITIALIZE, PREPARE] {
        let function = instance.get_typed_func::<(), ()>(&mut store, export).map_err(broken)?;
        function.call(&mut store, ()).map_err(|error| failed(&error, store.data()))?;
    }
    if let Some(output) = output(store.data()) {
        steps.note(&format!("the program has written while it started:\n{output}"));
    }
    let snapshot = wizer.snapshot(&context, &mut StartedProgram { store, instance }).now_or_never();
    // Nothing in it waits.
    let snapshot = snapshot.ok_or_else(|| {
        BuildError::Component("the snapshot of its memory was not finished".to_owned())
    })?;
    let snapshot = snapshot.map_err(broken)?;
    Ok(segments::merge(&snapshot).unwrap_or(snapshot))
}

fn broken(error: impl std::fmt::Display) -> BuildError {
    BuildError::Component(format!("{error:#}"))
}

/// Makes an error for an author whose program has not started.
fn failed(error: &wasmtime::Error, wasi: &Wasi) -> BuildError {
    let cause = match error.downcast_ref() {
        Some(Refusal::Import(name)) => format!("it uses `{name}`, which exists only in calls"),
        Some(Refusal::Endless) => "it waits for something that does not come".to_owned(),
        Some(Refusal::Exit(code)) => format!("it exits with code {code}"),
        None => "it panics".to_owned(),
    };
    let output = output(wasi).map(|output| format!("\n{output}")).unwrap_or_default();
    BuildError::Project(format!(
        "the program does not start: {cause}. Package variables and `init` functions run once, when the \
         plugin is built; move this into a tool or a `sync.OnceValue`, or set `[build] snapshot = false` in \
         plugin.toml to run them before each call, which takes longer{output}"
    ))
}

fn output(wasi: &Wasi) -> Option<String> {
    let output = String::from_utf8_lossy(wasi.output()).trim().to_owned();
    (!output.is_empty()).then_some(output)
}

/// The started program.
struct StartedProgram {
    store: Store<Wasi>,
    instance: Instance,
}

#[allow(clippy::expect_used, reason = "the trait cannot return errors, and Wizer adds the exports")]
impl InstanceState for StartedProgram {
    async fn global_get(&mut self, name: &str, kind: ValType) -> SnapshotVal {
        let global = self.instance.get_global(&mut self.store, name).expect("an added export");
        let value = global.get(&mut self.store);
        match kind {
            ValType::I32 => SnapshotVal::I32(value.unwrap_i32()),
            ValType::I64 => SnapshotVal::I64(value.unwrap_i64()),
            ValType::F32 => SnapshotVal::F32(value.unwrap_f32().to_bits()),
            ValType::F64 => SnapshotVal::F64(value.unwrap_f64().to_bits()),
            // Wizer refuses modules with mutable globals for references.
            _ => SnapshotVal::V128(value.unwrap_v128().as_u128()),
        }
    }

    async fn memory_contents(&mut self, name: &str, contents: impl FnOnce(&[u8]) + Send) {
        let memory = self.instance.get_memory(&mut self.store, name).expect("an added export");
        contents(memory.data(&self.store));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StepObserver;

    struct Silent;

    impl StepObserver for Silent {
        fn begin(&self, _: &str) {}
        fn end(&self, _: &str, _: std::time::Duration) {}
        fn note(&self, _: &str) {}
    }

    /// Takes the snapshot of a module whose start has this body.
    fn started(body: &str) -> Result<Vec<u8>, BuildError> {
        let text = format!(
            r#"(module
                (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "path_open" (func $open))
                (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
                (import "cofferdam:plugin/secrets@0.1.0" "get" (func $secret (param i32 i32 i32)))
                (memory (export "memory") 1)
                (global $state (mut i32) (i32.const 7))
                (data (i32.const 8) "\10\00\00\00\07\00\00\00no disk")
                (func (export "_initialize") {body})
                (func (export "cofferdam_prepare") (global.set $state (i32.const 9)))
                (func (export "state") (result i32) (global.get $state)))"#
        );
        take(&wat::parse_str(text).unwrap(), &Steps::new(&Silent, false))
    }

    #[test]
    fn a_module_begins_with_what_its_start_has_left() {
        let snapshot = started("(i32.store (i32.const 40000) (i32.const 258))").unwrap();
        let engine = Engine::default();
        let module = Module::new(&engine, &snapshot).unwrap();
        let exports: Vec<_> = module.exports().map(|export| export.name().to_owned()).collect();
        assert_eq!(exports, ["memory", "state"]);
        let mut linker = Linker::new(&engine);
        wasi::add(&mut linker, &module).unwrap();
        let mut store = Store::new(&engine, Wasi::default());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let state = instance.get_typed_func::<(), i32>(&mut store, "state").unwrap();
        assert_eq!(state.call(&mut store, ()).unwrap(), 9);
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        assert_eq!(memory.data(&store)[40000..40003], [2, 1, 0]);
        assert_eq!(&memory.data(&store)[16..23], b"no disk");
    }

    #[test]
    fn a_start_that_needs_a_call_is_refused_with_the_reason() {
        let write = "(drop (call $write (i32.const 2) (i32.const 8) (i32.const 1) (i32.const 0)))";
        let wait =
            "(drop (call $poll (i32.const 100) (i32.const 200) (i32.const 1) (i32.const 0)))";
        for (body, reason) in [
            ("(call $open)", "it uses `path_open`, which exists only in calls"),
            (
                "(call $secret (i32.const 0) (i32.const 0) (i32.const 0))",
                "it uses `cofferdam:plugin/secrets@0.1.0#get`",
            ),
            ("(call $exit (i32.const 3))", "it exits with code 3"),
            ("unreachable", "it panics"),
            (&format!("{write} unreachable"), "it panics"),
            (&format!("(loop {wait} (br 0))"), "it waits for something that does not come"),
        ] {
            let error = started(body).unwrap_err().to_string();
            assert!(error.starts_with(&format!("the program does not start: {reason}")), "{error}");
            assert_eq!(error.ends_with("\nno disk"), body.contains("$write"), "{error}");
        }
    }

    #[test]
    fn addresses_outside_the_memory_are_errors_of_the_import() {
        for call in [
            "(call $random (i32.const -8) (i32.const 9))",
            "(call $random (i32.const 0) (i32.const -1))",
            "(call $write (i32.const 1) (i32.const -4) (i32.const 1) (i32.const 0))",
            "(call $write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const -1))",
            "(call $poll (i32.const -1) (i32.const 0) (i32.const 1) (i32.const 0))",
            "(call $poll (i32.const 65520) (i32.const 0) (i32.const 1) (i32.const 0))",
            "(call $poll (i32.const 100) (i32.const 65530) (i32.const 1) (i32.const 0))",
        ] {
            started(&format!("(if (i32.ne {call} (i32.const 21)) (then unreachable))")).unwrap();
        }
    }

    #[test]
    fn equal_sources_make_equal_modules() {
        let body = "(drop (call $random (i32.const 100) (i32.const 61)))";
        assert!(started(body).unwrap() == started(body).unwrap());
    }

    #[test]
    fn a_program_with_an_older_sdk_is_not_started() {
        assert!(!is_supported(&wat::parse_str(r#"(module (func (export "x")))"#).unwrap()));
        assert!(is_supported(
            &wat::parse_str(r#"(module (func (export "cofferdam_prepare")))"#).unwrap()
        ));
        assert!(!is_supported(b"no module"));
    }
}
