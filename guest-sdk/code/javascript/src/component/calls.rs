//! The host of a component: calls by `cofferdam:plugin/tool-calls`.

// Not `cofferdam_sdk::tool_calls`, which takes arguments as values: here they are JSON already.
use cofferdam_sdk::__private::bindings::cofferdam::plugin::tool_calls::{self, ErrorKind};

use crate::host::{CallError, EndedCall, Host};

/// The host.
#[derive(Debug)]
pub(super) struct Component;

impl Host for Component {
    fn start(&self, name: &str, arguments: &str) -> u32 {
        tool_calls::start(name, arguments)
    }

    fn wait_any(&self) -> Vec<EndedCall> {
        tool_calls::wait_any().into_iter().map(ended).collect()
    }
}

fn ended(ended: tool_calls::EndedCall) -> EndedCall {
    let outcome = match ended.outcome {
        Ok(items) => Ok(items.into_iter().map(Into::into).collect()),
        Err(error) => Err(CallError {
            code: code(error.kind),
            message: error.message,
            suggestion: error.suggestion,
            value: error.value,
        }),
    };
    EndedCall { call: ended.call, outcome }
}

fn code(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::UnknownTool => "unknown-tool",
        ErrorKind::InvalidArguments => "invalid-arguments",
        ErrorKind::Failed => "failed",
        ErrorKind::Ended => "ended",
        ErrorKind::Denied => "denied",
        ErrorKind::TooDeep => "too-deep",
        ErrorKind::Limit => "limit",
    }
}
