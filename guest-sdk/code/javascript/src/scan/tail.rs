//! The result of a program without `return`: the value of its last expression statement.

use oxc_ast::ast::{Program, Statement};

use crate::source::Edits;

/// Inserts `return` before each expression statement whose value is the result, and notes its
/// offset.
pub(super) fn returns(program: &Program<'_>, edits: &mut Edits, returned: &mut Vec<u32>) {
    match (program.body.last(), program.directives.last()) {
        (Some(last), _) => tail(last, edits, returned),
        // A program of one string.
        (None, Some(directive)) => insert(directive.span.start, edits, returned),
        (None, None) => {}
    }
}

fn tail(statement: &Statement<'_>, edits: &mut Edits, returned: &mut Vec<u32>) {
    match statement {
        Statement::ExpressionStatement(it) => insert(it.span.start, edits, returned),
        Statement::BlockStatement(it) => last(&it.body, edits, returned),
        Statement::IfStatement(it) => {
            tail(&it.consequent, edits, returned);
            if let Some(alternate) = &it.alternate {
                tail(alternate, edits, returned);
            }
        }
        Statement::TryStatement(it) => {
            last(&it.block.body, edits, returned);
            if let Some(handler) = &it.handler {
                last(&handler.body.body, edits, returned);
            }
        }
        _ => {}
    }
}

fn last(body: &[Statement<'_>], edits: &mut Edits, returned: &mut Vec<u32>) {
    if let Some(statement) = body.last() {
        tail(statement, edits, returned);
    }
}

fn insert(at: u32, edits: &mut Edits, returned: &mut Vec<u32>) {
    edits.insert(at, "return ");
    returned.push(at);
}
