//! `cofferdam:plugin/errors`: errors that the author of a tool did not mean for the model.
//!
//! The text of an unhandled exception may contain whatever the plugin has read, such as a line of a
//! file or the address of a server. It goes into the record of the call. The model learns only the
//! type of the error, unless the operator shows errors.

use super::CallState;
use crate::guest::cofferdam::plugin::errors;

/// Maximum length of a type's name that is shown to the model, in characters.
const TYPE_CHARS_MAX: usize = 100;
/// Name of a type that has none.
const UNNAMED: &str = "Error";

impl errors::Host for CallState {
    fn unexpected(&mut self, type_name: String, message: String) -> String {
        let name = shown_type(&type_name);
        let whole = format!("{name}: {message}");
        self.log_error(&whole);
        if self.plugin.shows_errors {
            return whole;
        }
        format!("{name}: unexpected error in the tool; its text is in the record of the call")
    }
}

/// Returns the name of a type in the characters that names of types have in programming languages.
fn shown_type(name: &str) -> String {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || "_.:*<>&[]".contains(*c);
    let name: String = name.chars().filter(is_part).take(TYPE_CHARS_MAX).collect();
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::shown_type;

    #[test]
    fn names_of_types_are_short_and_plain() {
        assert_eq!(shown_type("ValueError"), "ValueError");
        assert_eq!(shown_type("*fs.PathError"), "*fs.PathError");
        assert_eq!(shown_type("a secret\n"), "asecret");
        assert_eq!(shown_type(" \n"), "Error");
        assert_eq!(shown_type(&"x".repeat(1000)).len(), 100);
    }
}
