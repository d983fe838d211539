//! From the cause of an end to a row of the table of error types.
//!
//! Causes are recognised by type. The text of an engine message goes into the record and is never looked at.

use cofferdam_tool::{ErrorType, MemoryRefusal, ToolError};
use wasmtime::component::ResourceTableError;
use wasmtime::{Error, GcHeapOutOfMemory, PoolConcurrencyLimitError, ThrownException, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::limiter::Limiter;
use crate::pulse::CpuSpent;
use crate::state::Denied;

/// What the host was doing when the error came up.
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
    let mut tool_error = ToolError::new(error_type(error, stage, limiter)).with_detail(detail(error));
    tool_error.backtrace = error.downcast_ref::<WasmBacktrace>().map(ToString::to_string);
    tool_error
}

/// The causes in one line, without the call stack, which has a place of its own.
fn detail(error: &Error) -> String {
    // The engine puts the call stack around the cause, outermost.
    let stacks = usize::from(error.is::<WasmBacktrace>());
    error.chain().skip(stacks).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

fn error_type(error: &Error, stage: Stage, limiter: &Limiter) -> ErrorType {
    if error.is::<DeadlinePassed>() {
        ErrorType::Timeout
    } else if error.is::<CpuSpent>() {
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

/// An error without a type of its own. Where it came up decides: with guest frames on the stack, a host function
/// raised it; without, the guest had returned and its result broke the calling convention.
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
        Stage::Run => ErrorType::InvalidResult,
    }
}
