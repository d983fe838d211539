//! Compiled code on disk that was tampered with. The host never runs it: it compiles the component
//! again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use cofferdam_engine::{
    Component, Engine, EngineError, Grants, LoadEvent, LoadObserver, PluginOptions,
};
use cofferdam_tests::config;
use cofferdam_tool::{Limits, PluginName};

use super::{End, Ended, Launch, attacks};
use crate::module::{Answer, Item, Module};

/// Size of an entry's header: a magic number and a MAC.
const HEADER_BYTES: usize = 40;

attacks! {
    /// One flipped bit at the end of the code, in a program's data.
    flip_the_last_bit: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| *bytes.last_mut().unwrap() ^= 0x80);
    }))) => End::AsExpected,
    /// One flipped bit in the middle of the machine code.
    flip_a_bit_in_the_middle: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| { let middle = bytes.len() / 2; bytes[middle] ^= 1; });
    }))) => End::AsExpected,
    /// One flipped bit in the MAC.
    flip_a_bit_of_the_proof: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| bytes[20] ^= 1);
    }))) => End::AsExpected,
    /// The end is missing, as after a crash.
    cut_the_entry_short: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| bytes.truncate(bytes.len() / 2));
    }))) => End::AsExpected,
    /// The file is empty.
    empty_the_entry: Launch::Steps(|_| Box::pin(tampered(|cache, _| edit(&code(cache), Vec::clear))))
        => End::AsExpected,
    /// The file has additional bytes.
    lengthen_the_entry: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| bytes.extend([0x90; 100]));
    }))) => End::AsExpected,
    /// The entry of another component, with a MAC of this installation.
    swap_two_entries: Launch::Steps(|_| Box::pin(tampered(|cache, other| {
        fs::copy(code(other), code(cache)).unwrap();
    }))) => End::AsExpected,
    /// The entry of another component of the same installation, under the name of this one.
    an_entry_under_another_name: Launch::Steps(|_| Box::pin(renamed())) => End::AsExpected,
    /// A description instead of code.
    an_entry_of_another_kind: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        fs::copy(description(cache), code(cache)).unwrap();
    }))) => End::AsExpected,
    /// Compiled code as the engine writes it, without a MAC: loading it would run it.
    plant_compiled_code: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&code(cache), |bytes| drop(bytes.drain(..HEADER_BYTES)));
    }))) => End::AsExpected,
    /// A description with other words about the tools.
    lie_in_the_description: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&description(cache), |bytes| {
            let at = bytes.windows(4).position(|four| four == b"Does").expect("the description is \
                in it");
            bytes[at..at + 4].copy_from_slice(b"Will");
        });
    }))) => End::AsExpected,
    /// A link to a file elsewhere.
    a_link_instead_of_an_entry: Launch::Steps(|_| Box::pin(tampered(|cache, other| {
        fs::remove_file(code(cache)).unwrap();
        std::os::unix::fs::symlink(code(other), cache.join(code_name(cache))).unwrap();
    }))) => End::AsExpected,
    /// A pipe, which blocks a process that opens it.
    a_pipe_instead_of_an_entry: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        fs::remove_file(code(cache)).unwrap();
        super::binaries::make_fifo(&cache.join(code_name(cache)));
    }))) => End::AsExpected,
    /// A directory, which cannot be replaced by a file.
    a_directory_instead_of_an_entry: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        fs::remove_file(code(cache)).unwrap();
        fs::create_dir(cache.join(code_name(cache))).unwrap();
    }))) => End::AsExpected,
    /// An entry that every user may write.
    an_entry_that_is_open_to_others: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        fs::set_permissions(code(cache), fs::Permissions::from_mode(0o666)).unwrap();
    }))) => End::AsExpected,
    /// A new key invalidates all old entries.
    a_key_of_zeros: Launch::Steps(|_| Box::pin(tampered(|cache, _| {
        edit(&cache.join("key"), |bytes| bytes.fill(0));
    }))) => End::AsExpected,
    /// A cache that every user may write is not opened.
    a_cache_that_is_open_to_others: Launch::Steps(|_| Box::pin(async move {
        let folder = tempfile::tempdir().unwrap();
        let cache = folder.path().join("cache");
        loaded(&cache, &ours()).await;
        fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(engine(&cache), Err(EngineError::Cache(_))));
        Ended::AsExpected
    })) => End::AsExpected,
}

#[derive(Default)]
struct Events(Mutex<Vec<LoadEvent>>);

impl LoadObserver for Events {
    fn on_event(&self, event: LoadEvent) {
        self.0.lock().unwrap().push(event);
    }
}

fn ours() -> Vec<u8> {
    Module::default().component()
}

fn theirs() -> Vec<u8> {
    let answer = Answer::Contents(vec![Item::Text(b"stolen")]);
    Module { answer, ..Module::default() }.component()
}

fn engine(cache: &Path) -> Result<Engine, EngineError> {
    let mut config = config();
    config.cache_directory = Some(cache.to_owned());
    config.pool.concurrent_calls_max = 1;
    Engine::new(config)
}

/// Loads a component in an engine of its own, as a new process would, and calls it. Returns the
/// load events and the answer.
async fn loaded(cache: &Path, component: &[u8]) -> (Vec<LoadEvent>, String) {
    let engine = engine(cache).expect("the engine starts");
    let events = Events::default();
    let name = PluginName::new("guest").unwrap();
    let options = PluginOptions::new(name, Grants::default(), Limits::default());
    let component = Component::from_bytes(component);
    let plugin = engine.load(&component, options, &events).await.expect("the component loads");
    let mut toolset = cofferdam_tool::Toolset::new();
    toolset.add(std::sync::Arc::new(plugin)).unwrap();
    let context = cofferdam_tool::CallContext::new("call");
    let said = toolset.call("t", None, &context).await.unwrap().outcome.shown().unwrap().text();
    (events.0.into_inner().unwrap(), said)
}

/// Fills a cache, and another one with another component, tampers with the first, and starts again.
/// Checks that the component answers as before, and that only code compiled here has run.
async fn tampered(tamper: fn(&Path, &Path)) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let (cache, other) = (folder.path().join("cache"), folder.path().join("other"));
    loaded(&cache, &ours()).await;
    assert_eq!(loaded(&cache, &ours()).await.0, [], "nothing is compiled twice");
    loaded(&other, &theirs()).await;
    let genuine = fs::read(code(&cache)).unwrap();
    tamper(&cache, &other);
    let (events, said) = loaded(&cache, &ours()).await;
    assert_eq!(said, "ok");
    // A description is read at load, but code at the call: then no event is sent, but the entry is
    // written again. An entry that cannot be replaced stays and is not read.
    let now = fs::read(cache.join(code_name(&cache)));
    let is_noticed =
        events.contains(&LoadEvent::CacheRejected) || now.map_or(true, |now| now == genuine);
    assert!(is_noticed, "{events:?}");
    assert_eq!(loaded(&cache, &ours()).await.1, "ok");
    Ended::AsExpected
}

async fn renamed() -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    loaded(&cache, &theirs()).await;
    let stolen = fs::read(code(&cache)).unwrap();
    fs::remove_file(code(&cache)).unwrap();
    loaded(&cache, &ours()).await;
    let path = code(&cache);
    let genuine = fs::read(&path).unwrap();
    fs::write(&path, stolen).unwrap();
    assert_eq!(loaded(&cache, &ours()).await.1, "ok");
    assert_eq!(fs::read(&path).unwrap(), genuine, "it is written anew");
    Ended::AsExpected
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

fn code(cache: &Path) -> PathBuf {
    entry(cache, "code")
}

fn description(cache: &Path) -> PathBuf {
    entry(cache, "description")
}

/// Returns the name of the entry with code, which follows from that of the description.
fn code_name(cache: &Path) -> PathBuf {
    PathBuf::from(description(cache).with_extension("code").file_name().unwrap())
}

fn entry(cache: &Path, extension: &str) -> PathBuf {
    let entries = fs::read_dir(cache).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| path.extension().is_some_and(|found| found == extension));
    found.next().unwrap_or_else(|| panic!("the cache has an entry with {extension}"))
}
