//! Compares conditions with the forms of the answers that they test.

use cofferdam_workflow::definition::{EdgeDefinition, NameList};

use super::WorkflowFile;
use crate::Result;

impl WorkflowFile {
    /// Returns a warning for each condition that tests a field that the `output` of the agent does
    /// not have.
    ///
    /// # Errors
    /// Returns an error if the form of an agent's answers is invalid or cannot be read.
    pub fn check_conditions(&self) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for edge in &self.definition.edges {
            let EdgeDefinition { from, when, switch, select, .. } = &edge.value;
            let Some(NameList::Word(from)) = from else { continue };
            let Some(agent) = self.agent(from) else { continue };
            let Some(format) = agent.response_format(from)? else { continue };
            let cases = switch.iter().chain(select).flatten();
            let conditions = when.iter().chain(cases.filter_map(|case| case.when.as_ref()));
            let schema = format.schema().published();
            for field in conditions.filter_map(|condition| condition.impossible_field(schema)) {
                let message = format!(
                    "a condition tests the field `{field}`, which no answer of `{from}` has: its \
                     `output` does not declare the field"
                );
                warnings.push(self.file.error(edge.referenced, message).to_string());
            }
        }
        Ok(warnings)
    }
}
