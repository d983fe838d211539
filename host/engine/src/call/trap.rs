//! Classification of the causes of failed calls by the table of error types.
//!
//! Causes are recognized by type. The message of the engine goes into the record and is never
//! inspected.

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

use crate::host_api::{DeniedCapability, Limiter, OutputExceeded};
use crate::scheduler::cpu_meter::CpuLimitExceeded;

/// Maximum size of a call stack that is stored, in bytes: 64 frames with long names. The guest
/// chooses the names of functions: they may be as long as the format allows, and a mangled name may
/// expand to many times its length.
const BACKTRACE_BYTES_MAX: usize = 32 * 1024;
/// Maximum size of a message about a cause that is stored, in bytes. It may also quote names of the
/// guest.
const DETAIL_BYTES_MAX: usize = 4096 - CUT_OFF.len();
/// Mark at the end of a string that was cut.
const CUT_OFF: &str = " …";

/// Stage of the call in which an error occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStage {
    /// Creation of the instance.
    Instantiate,
    /// Call of an export, or conversion of its result.
    Run,
}

/// Error raised by the epoch callback when the wall-clock limit passes while the guest is running.
#[derive(Debug, thiserror::Error)]
#[error("the wall-clock limit passed")]
pub(crate) struct DeadlinePassed;

/// Classifies an error of the engine (`RES-7`).
pub(crate) fn tool_error(error: &Error, stage: CallStage, limiter: &Limiter) -> ToolError {
    let mut tool_error = ToolError::new(error_type(error, stage, limiter));
    // The type says all that `DeadlinePassed` says. The call has the same result when the timer of
    // the caller ends it a moment before the epoch callback does.
    if !error.is::<DeadlinePassed>() {
        tool_error = tool_error.with_detail(detail(error));
    }
    tool_error.backtrace =
        error.downcast_ref::<WasmBacktrace>().map(|stack| bounded(stack, BACKTRACE_BYTES_MAX));
    tool_error
}

/// Returns the causes in one line, without the call stack, which is stored separately.
fn detail(error: &Error) -> String {
    // The engine wraps the cause in the call stack, as the outermost error.
    let stacks = usize::from(error.is::<WasmBacktrace>());
    let mut detail = BoundedWriter::new(DETAIL_BYTES_MAX);
    for (index, cause) in error.chain().skip(stacks).enumerate() {
        let separator = if index == 0 { "" } else { ": " };
        if write!(detail, "{separator}{cause}").is_err() {
            break;
        }
    }
    detail.finish()
}

/// Formats `value` as a string of at most `bytes_max` bytes.
fn bounded(value: &impl Display, bytes_max: usize) -> String {
    let mut text = BoundedWriter::new(bytes_max);
    // An error means that the limit ended the formatting.
    let _ = write!(text, "{value}");
    text.finish()
}

/// Accepts strings up to a number of bytes and then fails, so that the formatting code stops as
/// well.
struct BoundedWriter {
    text: String,
    bytes_max: usize,
    is_cut_off: bool,
}

impl BoundedWriter {
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

impl Write for BoundedWriter {
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

fn error_type(error: &Error, stage: CallStage, limiter: &Limiter) -> ErrorType {
    if error.is::<OutputExceeded>() {
        ErrorType::OutputLimit
    } else if error.is::<DeadlinePassed>() {
        ErrorType::Timeout
    } else if error.is::<CpuLimitExceeded>() {
        ErrorType::CpuLimit
    } else if error.is::<I32Exit>() {
        ErrorType::GuestExit
    } else if error.is::<DeniedCapability>() {
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
        classify_by_origin(error, stage, limiter)
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
        // A trap that the engine adds later has no specific type either (`RES-7`).
        _ => ErrorType::TrapOther,
    }
}

/// Classifies an error without its own type by its origin: with guest frames on the stack, a host
/// function raised it; without, the guest had returned and its result broke the calling convention.
fn classify_by_origin(error: &Error, stage: CallStage, limiter: &Limiter) -> ErrorType {
    match stage {
        // Not the fault of the call: later there may be enough memory.
        CallStage::Instantiate if limiter.refused() == Some(MemoryRefusal::Process) => {
            ErrorType::PluginUnavailable
        }
        CallStage::Instantiate if limiter.refused().is_some() => ErrorType::MemoryLimit,
        CallStage::Instantiate => ErrorType::PluginUnavailable,
        CallStage::Run if error.is::<PoolConcurrencyLimitError>() => ErrorType::PluginUnavailable,
        CallStage::Run if error.is::<WasmBacktrace>() => ErrorType::TrapOther,
        CallStage::Run if is_broken(error) => ErrorType::InvalidResult,
        // The remaining case is a copy beyond the limit, an error whose type is private to the
        // engine.
        CallStage::Run => ErrorType::OutputLimit,
    }
}

/// Returns whether the conversion of a result failed because of its contents, not because of its
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
