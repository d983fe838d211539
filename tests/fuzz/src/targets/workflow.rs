//! Any string as the file of a workflow: it is refused in one line, or each of its conditions
//! compiles or is refused.

use cofferdam_workflow::definition::{SwitchCase, WorkflowDefinition};

/// Parses the string and compiles the conditions of its edges.
pub(crate) fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let definition = match WorkflowDefinition::parse(text) {
        Ok(definition) => definition,
        Err(error) => {
            return assert_eq!(
                error.message.lines().count(),
                1,
                "a message is one line: {error:?}"
            );
        }
    };
    for edge in &definition.edges {
        let cases = [&edge.value.switch, &edge.value.select].into_iter().flatten().flatten();
        for when in cases.filter_map(|case: &SwitchCase| case.when.as_ref()).chain(&edge.value.when)
        {
            let _ = when.condition();
        }
    }
}
