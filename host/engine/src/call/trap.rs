//! From the cause of an end to a row of the table of error types.
//!
//! Causes are recognised by type. The text of an engine message goes into the record and is never
//! looked at.

use std::char::{CharTryFromError, DecodeUtf16Error};
use std::fmt::{self, Display, Write};
use std::num::TryFromIntError;
use std::str::Utf8Error;

use cofferdam_tool::record::MemoryRefusal;
use cofferdam_tool::{ErrorType, ToolError};
use wasmtime::component::ResourceTableError;
use wasmtime::{
    Error, GcHeapOutOfMemory, PoolConcurrencyLimitError, ThrownException, Trap, WasmBacktrace,
};
use wasmtime_wasi::I32Exit;

use crate::host_api::{Denied, Limiter};
use crate::scheduler::cpu_meter::CpuLimitExceeded;

/// Longest call stack that is kept, in bytes: 64 frames with room for long names. Names of
/// functions are the guest's: they may be as long as the format allows, and a mangled one may stand
/// for much more than its own length.
const BACKTRACE_BYTES_MAX: usize = 32 * 1024;
/// Longest message about a cause that is kept, in bytes. It may quote names of the guest as well.
const DETAIL_BYTES_MAX: usize = 4096 - CUT_OFF.len();
/// Mark at the end of a string that was cut.
const CUT_OFF: &str = " …";

/// Stage of the call in which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Creating the instance.
    Instantiate,
    /// Calling an export, or taking over its result.
    Run,
}

/// The wall-clock limit passed while the guest was running. Raised by the epoch callback.
#[derive(Debug, thiserror::Error)]
#[error("the wall-clock limit passed")]
pub(crate) struct DeadlinePassed;

/// Classifies an error of the engine (`RES-7`).
pub(crate) fn tool_error(error: &Error, stage: Stage, limiter: &Limiter) -> ToolError {
    let mut tool_error =
        ToolError::new(error_type(error, stage, limiter)).with_detail(detail(error));
    tool_error.backtrace =
        error.downcast_ref::<WasmBacktrace>().map(|stack| bounded(stack, BACKTRACE_BYTES_MAX));
    tool_error
}

/// The causes in one line, without the call stack, which has a place of its own.
fn detail(error: &Error) -> String {
    // The engine puts the call stack around the cause, outermost.
    let stacks = usize::from(error.is::<WasmBacktrace>());
    let mut detail = Bounded::new(DETAIL_BYTES_MAX);
    for (index, cause) in error.chain().skip(stacks).enumerate() {
        let separator = if index == 0 { "" } else { ": " };
        if write!(detail, "{separator}{cause}").is_err() {
            break;
        }
    }
    detail.finish()
}

/// `value` as text, written no further than `bytes_max`.
fn bounded(value: &impl Display, bytes_max: usize) -> String {
    let mut text = Bounded::new(bytes_max);
    // An error is what ends the writing.
    let _ = write!(text, "{value}");
    text.finish()
}

/// Takes text up to a number of bytes and then refuses more, so that whoever writes stops, too.
struct Bounded {
    text: String,
    bytes_max: usize,
    is_cut_off: bool,
}

impl Bounded {
    fn new(bytes_max: usize) -> Self {
        Self { text: String::new(), bytes_max, is_cut_off: false }
    }

    fn finish(mut self) -> String {
        if self.is_cut_off {
            self.text.push_str(CUT_OFF);
        }
        self.text
    }
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.bytes_max.saturating_sub(self.text.len());
        if more.len() <= room {
            self.text.push_str(more);
            return Ok(());
        }
        let end = more.floor_char_boundary(room);
        self.text.push_str(more.get(..end).unwrap_or_default());
        self.is_cut_off = true;
        Err(fmt::Error)
    }
}

fn error_type(error: &Error, stage: Stage, limiter: &Limiter) -> ErrorType {
    if error.is::<DeadlinePassed>() {
        ErrorType::Timeout
    } else if error.is::<CpuLimitExceeded>() {
        ErrorType::CpuLimit
    } else if error.is::<I32Exit>() {
        ErrorType::GuestExit
    } else if error.is::<Denied>() {
        ErrorType::CapabilityDenied
    } else if let Some(ResourceTableError::Full) = error.downcast_ref() {
        ErrorType::HandleLimit
    } else if error.is::<ThrownException>() {
        ErrorType::TrapUncaughtException
    } else if error.is::<GcHeapOutOfMemory<()>>() {
        // The heap of exceptions is part of the guest's memory.
        ErrorType::MemoryLimit
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        trap_type(*trap, limiter)
    } else {
        untyped(error, stage, limiter)
    }
}

fn trap_type(trap: Trap, limiter: &Limiter) -> ErrorType {
    match trap {
        // A guest whose allocator was refused memory aborts, and an abort is an `unreachable`.
        Trap::UnreachableCodeReached if limiter.refused().is_some() => ErrorType::MemoryLimit,
        Trap::UnreachableCodeReached => ErrorType::TrapUnreachable,
        Trap::MemoryOutOfBounds => ErrorType::TrapMemoryOutOfBounds,
        Trap::TableOutOfBounds => ErrorType::TrapTableOutOfBounds,
        Trap::IndirectCallToNull | Trap::BadSignature => ErrorType::TrapIndirectCallMismatch,
        Trap::IntegerOverflow => ErrorType::TrapIntegerOverflow,
        Trap::IntegerDivisionByZero => ErrorType::TrapIntegerDivideByZero,
        Trap::BadConversionToInteger => ErrorType::TrapBadConversion,
        Trap::StackOverflow => ErrorType::TrapStackOverflow,
        Trap::HeapMisaligned => ErrorType::TrapHeapMisaligned,
        Trap::UncaughtException => ErrorType::TrapUncaughtException,
        Trap::AllocationTooLarge => ErrorType::MemoryLimit,
        Trap::OutOfFuel => ErrorType::CpuLimit,
        Trap::InvalidChar
        | Trap::StringOutOfBounds
        | Trap::ListOutOfBounds
        | Trap::InvalidDiscriminant
        | Trap::UnalignedPointer => ErrorType::InvalidResult,
        // RES-7: a trap that the engine adds later is not named either.
        _ => ErrorType::TrapOther,
    }
}

/// An error without a type of its own. Where it came up decides: with guest frames on the stack, a
/// host function raised it; without, the guest had returned and its result broke the calling
/// convention.
fn untyped(error: &Error, stage: Stage, limiter: &Limiter) -> ErrorType {
    match stage {
        // Not the call's fault: later there may be enough.
        Stage::Instantiate if limiter.refused() == Some(MemoryRefusal::Process) => {
            ErrorType::PluginUnavailable
        }
        Stage::Instantiate if limiter.refused().is_some() => ErrorType::MemoryLimit,
        Stage::Instantiate => ErrorType::PluginUnavailable,
        Stage::Run if error.is::<PoolConcurrencyLimitError>() => ErrorType::PluginUnavailable,
        Stage::Run if error.is::<WasmBacktrace>() => ErrorType::TrapOther,
        Stage::Run if is_broken(error) => ErrorType::InvalidResult,
        // What is left is that more was to be copied than may be, an error whose type is private to
        // the engine.
        Stage::Run => ErrorType::OutputLimit,
    }
}

/// Returns whether a result could not be taken over because of what it is and not because of its
/// length.
fn is_broken(error: &Error) -> bool {
    error.is::<&'static str>()
        || error.is::<String>()
        || error.is::<Utf8Error>()
        || error.is::<DecodeUtf16Error>()
        || error.is::<CharTryFromError>()
        || error.is::<TryFromIntError>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_at_a_character_and_says_so() {
        assert_eq!(bounded(&"abc", 3), "abc");
        assert_eq!(bounded(&"abcd", 3), "abc …");
        assert_eq!(bounded(&"aää", 4), "aä …");
        assert_eq!(bounded(&"abc", 0), " …");
    }
}
