//! Builds the interpreters of code mode into `target/code/<language>.wasm`.
//!
//! The interpreter of Python gets two changes in its memory after `cofferdam build`, because
//! Python has no function for them; see [`tune`].

mod javascript;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::memory_image::MemoryImage;
use crate::run::root;

/// Bytes before the list of objects that `guest-sdk/python/cofferdam/_image.py` writes.
const OBJECTS: &[u8] = b"Cofferdam objects!";
/// Reference count of an immortal object of CPython 3.14 on a 32-bit platform.
const IMMORTAL: u32 = 5 << 28;
/// Larger numbers are not counts: in an object that was freed and is cached for reuse, the count is
/// replaced by the address of another one. Objects lie above the C stack, which ends here.
const COUNT_MAX: u32 = STACK[0];
/// Minimum share of the objects that become immortal, in percent. Fewer mean that the layout of
/// objects has changed.
const IMMORTAL_PERCENT_MIN: usize = 70;
/// The limits of the C stack in the state of a thread: its top, and the addresses at which
/// recursion raises an exception and at which it ends the interpreter.
const STACK: [u32; 3] = [0x10_0000, 0x4000, 0x2000];
/// Bytes of the C stack that recursion may use. CPython only sees its stack in linear memory, which
/// has 1 MiB, but the stack of the engine has 1 MiB as well, and a function of CPython needs up to
/// ten times as much of that.
const STACK_BYTES: u32 = 96 << 10;

/// Builds the interpreter of JavaScript. That of Python is a project, which `projects` builds. The
/// host must be built.
pub(crate) fn build() -> anyhow::Result<()> {
    javascript::build()
}

/// Checks format and code of the interpreter in Rust.
pub(crate) fn lint() -> anyhow::Result<()> {
    javascript::lint()
}

/// Runs the native tests of the interpreter in Rust.
pub(crate) fn test() -> anyhow::Result<()> {
    javascript::test()
}

/// Returns the path of an interpreter.
pub(crate) fn component(language: &str) -> anyhow::Result<PathBuf> {
    let folder = root().join("target/code");
    fs::create_dir_all(&folder).context("cannot create target/code")?;
    Ok(folder.join(format!("{language}.wasm")))
}

/// Changes the memory with which the component of the interpreter of Python begins:
///
/// - Recursion in C raises `RecursionError` before the stack of the engine ends, which would be a
///   trap.
/// - Objects are immortal, so that a call does not write reference counts into most pages.
pub(crate) fn tune(component: &Path) -> anyhow::Result<()> {
    let bytes =
        fs::read(component).with_context(|| format!("cannot read {}", component.display()))?;
    let mut image = MemoryImage::parse(bytes)?;
    limit_stack(&mut image)?;
    make_immortal(&mut image)?;
    fs::write(component, image.into_bytes())
        .with_context(|| format!("cannot write {}", component.display()))
}

fn limit_stack(image: &mut MemoryImage) -> anyhow::Result<()> {
    let pattern: Vec<u8> = STACK.iter().flat_map(|word| word.to_le_bytes()).collect();
    let [top, soft, hard] = STACK;
    let at = image.find_only(&pattern).context("the limits of the stack")?;
    let limit = top - STACK_BYTES;
    ensure!(image.set_word(at + 4, limit), "no data at the limits of the stack");
    ensure!(image.set_word(at + 8, limit - (soft - hard)), "no data at the limits of the stack");
    Ok(())
}

fn make_immortal(image: &mut MemoryImage) -> anyhow::Result<()> {
    let list = image.find_only(OBJECTS).context("the list of objects")?;
    let numbers = list + u32::try_from(OBJECTS.len())?;
    let word = |index: u32| image.word(numbers + index * 4).context("the list of objects is short");
    let (types, others) = (word(0)?, word(1)?);
    let objects: Vec<u32> =
        (2..2 + types + others).map(word).collect::<anyhow::Result<Vec<_>>>()?;
    let mut of_types: Vec<u32> = objects.iter().copied().take(usize::try_from(types)?).collect();
    of_types.sort_unstable();
    let mut changed = 0;
    let mut counted = 0;
    for &object in &objects {
        let Some(count) = image.word(object).filter(|count| *count < IMMORTAL) else { continue };
        counted += 1;
        // The object may have been freed since, and its memory used for something else.
        let is_object =
            image.word(object + 4).is_some_and(|of| of_types.binary_search(&of).is_ok());
        if is_object && (1..COUNT_MAX).contains(&count) && image.set_word(object, IMMORTAL) {
            changed += 1;
        }
    }
    ensure!(
        changed * 100 >= counted * IMMORTAL_PERCENT_MIN,
        "only {changed} of {counted} objects look like objects of CPython 3.14"
    );
    Ok(())
}
