//! Arrays: each element by `prefixItems` and `items` (`ARG-19`), and null elements (`ARG-8`).

use serde_json::Value;

use super::decoder::Decoder;
use super::draft::Draft;
use super::path::Path;
use super::problem::{self, Found};
use crate::schema::{ArrayPlan, SchemaId};

impl<'a> Decoder<'a> {
    /// Decodes the elements of an array. Elements that no schema speaks of stay as they are.
    pub(super) fn array(
        &mut self,
        plan: Option<&'a ArrayPlan>,
        draft: &mut Draft<'a>,
        at: &Path<'_>,
    ) {
        let Some(plan) = plan else { return };
        for (index, item) in opened(draft).iter_mut().enumerate() {
            let Some(node) = plan.prefix.get(index).copied().or(plan.items) else { break };
            if self.is_hopeless() {
                break;
            }
            if item.is_supplied() {
                self.apply(node, item, &at.index(index));
            } else {
                self.null_element(node, item, &at.index(index));
            }
        }
    }

    /// A null is the default or null if there is one or the other (`ARG-8`). If it is not accepted,
    /// a schema that states no kind has no word for what it wants instead; then the problem is what
    /// the schema says about any other value.
    fn null_element(&mut self, id: SchemaId, item: &mut Draft<'a>, at: &Path<'_>) {
        if let Some(given) = self.unsupplied(id, at) {
            *item = given;
            return;
        }
        let expected = self.plan.expected(id);
        if expected.is_empty() {
            self.apply(id, item, at);
        } else {
            self.report(|| problem::kind(at, &expected, Found::Null));
            *item = Draft::Invalid;
        }
    }
}

/// Opens an array, element by element.
fn opened<'d, 'a>(draft: &'d mut Draft<'a>) -> &'d mut [Draft<'a>] {
    let items = match std::mem::replace(draft, Draft::Invalid) {
        Draft::List(items) => items,
        Draft::Text(json) => json.as_array().unwrap_or_default().iter().map(Draft::Text).collect(),
        Draft::Value(Value::Array(items)) => items.into_iter().map(Draft::Value).collect(),
        _ => vec![],
    };
    *draft = Draft::List(items);
    match draft {
        Draft::List(items) => items,
        _ => &mut [],
    }
}
