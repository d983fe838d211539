//! The part of WASI that a Go program needs to start, without access to anything.

use wasmtime::{Caller, Extern, ExternType, Linker, Module, Result};

const PREVIEW_1: &str = "wasi_snapshot_preview1";
/// Errors of WASI.
const BAD_FILE: i32 = 8;
const FAULT: i32 = 21;
/// Maximum bytes that are stored of what the program writes.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Maximum number of buffers of a write.
const BUFFERS_MAX: u32 = 1024;

/// Kind of a subscription of `poll_oneoff` to a clock.
const CLOCK: u8 = 0;
/// Maximum number of times that a program sleeps.
const SLEEPS_MAX: u32 = 100_000;

/// State of a program that starts.
#[derive(Debug, Default)]
pub(super) struct Wasi {
    /// Nanoseconds on both clocks: the number of times that they were read, and the time slept.
    clock: u64,
    random: u64,
    sleeps: u32,
    output: Vec<u8>,
}

impl Wasi {
    /// Returns what the program has written to standard output and standard error.
    pub(super) fn output(&self) -> &[u8] {
        &self.output
    }
}

/// End of a program that does not get what it asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// The program called an import, with this name.
    #[error("the start calls `{0}`")]
    Import(String),
    /// The program waits for something that does not come.
    #[error("the start does not end")]
    Endless,
    /// The program exits, with this code.
    #[error("the start exits with {0}")]
    Exit(i32),
}

type Context<'a> = Caller<'a, Wasi>;

/// Adds all imports of a module: some of preview 1, and others that end the program.
pub(super) fn add(linker: &mut Linker<Wasi>, module: &Module) -> Result<()> {
    linker.allow_shadowing(true);
    refuse(linker, module)?;
    // The program has no arguments and no environment.
    for name in ["args_sizes_get", "environ_sizes_get"] {
        linker.func_wrap(PREVIEW_1, name, |mut context: Context<'_>, count: u32, size: u32| {
            let is_written =
                write(&mut context, count, &[0; 4]) && write(&mut context, size, &[0; 4]);
            status(is_written)
        })?;
    }
    for name in ["args_get", "environ_get"] {
        linker.func_wrap(PREVIEW_1, name, |_: u32, _: u32| 0)?;
    }
    linker.func_wrap(
        PREVIEW_1,
        "clock_time_get",
        |mut context: Context<'_>, _: u32, _: u64, to: u32| {
            context.data_mut().clock += 1;
            let now = context.data().clock.to_le_bytes();
            status(write(&mut context, to, &now))
        },
    )?;
    linker.func_wrap(PREVIEW_1, "random_get", random)?;
    linker.func_wrap(PREVIEW_1, "sched_yield", || 0)?;
    // Standard output and standard error can be written, and there are no other files.
    linker.func_wrap(
        PREVIEW_1,
        "fd_fdstat_get",
        |mut context: Context<'_>, file: u32, to: u32| {
            if file > 2 {
                return BAD_FILE;
            }
            // Type 2 is a character device.
            let mut stat = [0; 24];
            stat[0] = 2;
            status(write(&mut context, to, &stat))
        },
    )?;
    linker.func_wrap(PREVIEW_1, "fd_fdstat_set_flags", |_: u32, _: u32| BAD_FILE)?;
    linker.func_wrap(PREVIEW_1, "fd_prestat_get", |_: u32, _: u32| BAD_FILE)?;
    linker.func_wrap(PREVIEW_1, "fd_write", print)?;
    linker.func_wrap(PREVIEW_1, "poll_oneoff", sleep)?;
    linker.func_wrap(PREVIEW_1, "proc_exit", |code: i32| -> Result<()> {
        Err(Refusal::Exit(code).into())
    })?;
    Ok(())
}

/// Adds imports that end the program.
fn refuse(linker: &mut Linker<Wasi>, module: &Module) -> Result<()> {
    for import in module.imports() {
        let ExternType::Func(kind) = import.ty() else { continue };
        let name = match import.module() {
            PREVIEW_1 => import.name().to_owned(),
            module => format!("{module}#{}", import.name()),
        };
        linker.func_new(import.module(), import.name(), kind, move |_, _, _| {
            Err(Refusal::Import(name.clone()).into())
        })?;
    }
    Ok(())
}

/// Writes bytes that are the same in each build. The SDK replaces what the runtime makes of them at
/// the start of each call.
fn random(mut context: Context<'_>, to: u32, length: u32) -> i32 {
    let Some(Extern::Memory(memory)) = context.get_export("memory") else { return FAULT };
    let (bytes, wasi) = memory.data_and_store_mut(&mut context);
    let from = to as usize;
    let Some(bytes) = bytes.get_mut(from..from.saturating_add(length as usize)) else {
        return FAULT;
    };
    for piece in bytes.chunks_mut(8) {
        // Splitmix64.
        wasi.random = wasi.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = wasi.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let word = (word ^ (word >> 31)).to_le_bytes();
        piece.iter_mut().zip(word).for_each(|(byte, random)| *byte = random);
    }
    0
}

/// Lets time pass at once if the program waits for a clock. There is nothing else to wait for.
fn sleep(
    mut context: Context<'_>,
    subscriptions: u32,
    events: u32,
    count: u32,
    written: u32,
) -> Result<i32> {
    let Some(Extern::Memory(memory)) = context.get_export("memory") else { return Ok(FAULT) };
    let (bytes, wasi) = memory.data_and_store_mut(&mut context);
    let from = subscriptions as usize;
    // The subscription begins with 8 bytes that its event returns; the duration is a `u64`.
    let (Some(name), Some(kind), Some(duration)) =
        (array(bytes, from), array(bytes, from + 8), array(bytes, from + 24))
    else {
        return Ok(FAULT);
    };
    if count != 1 || kind != [CLOCK] {
        return Err(Refusal::Import("poll_oneoff".to_owned()).into());
    }
    wasi.sleeps += 1;
    if wasi.sleeps > SLEEPS_MAX {
        return Err(Refusal::Endless.into());
    }
    wasi.clock = wasi.clock.saturating_add(u64::from_le_bytes(duration));
    let mut event = [[0; 8]; 4];
    event[0] = name;
    let is_written = write(&mut context, events, event.as_flattened())
        && write(&mut context, written, &1_u32.to_le_bytes());
    Ok(status(is_written))
}

/// Stores what the program writes to standard output or standard error.
fn print(mut context: Context<'_>, file: u32, buffers: u32, count: u32, written: u32) -> i32 {
    if !matches!(file, 1 | 2) {
        return BAD_FILE;
    }
    let Some(Extern::Memory(memory)) = context.get_export("memory") else { return FAULT };
    let (bytes, wasi) = memory.data_and_store_mut(&mut context);
    let mut total = 0_u32;
    for at in (buffers as usize..).step_by(8).take(count.min(BUFFERS_MAX) as usize) {
        let (Some(from), Some(length)) = (array(bytes, at), array(bytes, at + 4)) else {
            return FAULT;
        };
        let (from, length) = (u32::from_le_bytes(from) as usize, u32::from_le_bytes(length));
        let Some(text) = bytes.get(from..from.saturating_add(length as usize)) else {
            return FAULT;
        };
        let room = OUTPUT_BYTES_MAX - wasi.output.len();
        wasi.output.extend(text.iter().take(room));
        total = total.saturating_add(length);
    }
    status(write(&mut context, written, &total.to_le_bytes()))
}

/// Returns a part of the memory of the program, or `None` if it is not inside it.
fn array<const N: usize>(memory: &[u8], from: usize) -> Option<[u8; N]> {
    memory.get(from..)?.first_chunk().copied()
}

/// Writes bytes to the memory of the program, and returns whether they are inside it.
fn write(context: &mut Context<'_>, to: u32, bytes: &[u8]) -> bool {
    let Some(Extern::Memory(memory)) = context.get_export("memory") else { return false };
    memory.write(context, to as usize, bytes).is_ok()
}

fn status(is_written: bool) -> i32 {
    if is_written { 0 } else { FAULT }
}
