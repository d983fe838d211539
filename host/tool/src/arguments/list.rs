//! Arrays: elements by `prefixItems` and `items` (`ARG-19`), and null elements (`ARG-8`).

use serde_json::Value;

use super::decoder::Decoder;
use super::draft::ValueDraft;
use super::path::Path;
use super::problem::{self, FoundKind};
use crate::schema::{ArrayPlan, SchemaId};

impl<'a> Decoder<'a> {
    /// Decodes the elements of an array. Elements that no schema covers are not changed.
    pub(super) fn array(
        &mut self,
        plan: Option<&'a ArrayPlan>,
        draft: &mut ValueDraft<'a>,
        at: &Path<'_>,
    ) {
        let Some(plan) = plan else { return };
        for (index, item) in opened(draft).iter_mut().enumerate() {
            let Some(node) = plan.prefix.get(index).copied().or(plan.items) else { break };
            if self.should_stop() {
                break;
            }
            if item.is_supplied() {
                self.apply(node, item, &at.index(index));
            } else {
                self.null_element(node, item, &at.index(index));
            }
        }
    }

    /// Replaces a null by the default, or keeps it if null is accepted (`ARG-8`). If neither
    /// applies and the schema names no kind to expect, the schema is applied to the null like to
    /// any other value and reports the problem.
    fn null_element(&mut self, id: SchemaId, item: &mut ValueDraft<'a>, at: &Path<'_>) {
        if let Some(given) = self.unsupplied(id, at) {
            *item = given;
            return;
        }
        let expected = self.plan.expected(id);
        if expected.is_empty() {
            self.apply(id, item, at);
        } else {
            self.report(|| problem::kind(at, &expected, FoundKind::Null));
            *item = ValueDraft::Invalid;
        }
    }
}

/// Opens an array, element by element.
fn opened<'d, 'a>(draft: &'d mut ValueDraft<'a>) -> &'d mut [ValueDraft<'a>] {
    let items = match std::mem::replace(draft, ValueDraft::Invalid) {
        ValueDraft::List(items) => items,
        ValueDraft::Text(json) => {
            json.as_array().unwrap_or_default().iter().map(ValueDraft::Text).collect()
        }
        ValueDraft::Value(Value::Array(items)) => {
            items.into_iter().map(ValueDraft::Value).collect()
        }
        _ => vec![],
    };
    *draft = ValueDraft::List(items);
    match draft {
        ValueDraft::List(items) => items,
        _ => &mut [],
    }
}
