//! Files of cases.

use std::collections::HashMap;
use std::io::Read;

use super::unique::Unique;
use super::{CasesError, EvalCase, InvalidCase, InvalidLine};
use crate::text::read_limited;

/// Maximum bytes of a file of cases. Cases are written by people, so a larger file is probably not
/// one.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of cases in a file.
pub const CASES_MAX: usize = 10_000;
/// Maximum number of invalid lines that are reported at once.
const INVALID_LINES_MAX: usize = 100;

/// Reads cases: a JSON object per line. Blank lines and lines that start with `//` are ignored.
/// Messages refer to the file by `name`.
///
/// # Errors
/// [`CasesError`] if the file cannot be read or exceeds a limit, or for its invalid lines.
pub fn read_cases(name: &str, reader: impl Read) -> Result<Vec<EvalCase>, CasesError> {
    let name = name.to_owned();
    let text = match read_limited(reader, FILE_BYTES_MAX) {
        Ok(Some(text)) => text,
        Ok(None) => return Err(CasesError::TooLarge { name }),
        Err(source) => return Err(CasesError::Unreadable { name, source }),
    };
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
    if lines.clone().nth(CASES_MAX).is_some() {
        return Err(CasesError::TooMany { name });
    }
    let (mut cases, mut invalid) = (Vec::new(), Vec::new());
    let mut first_lines = HashMap::new();
    for (line, text) in lines {
        let read = parse(text).and_then(|case| match first_lines.insert(case.name.clone(), line) {
            None => Ok(case),
            Some(first) => Err(InvalidCase {
                field: "name".to_owned(),
                expected: "a name that no other case has".to_owned(),
                found: format!("the name {:?} of line {first}", case.name),
            }),
        });
        match read {
            Ok(case) => cases.push(case),
            Err(error) => invalid.push(InvalidLine { file: name.clone(), line, error }),
        }
        if invalid.len() == INVALID_LINES_MAX {
            break;
        }
    }
    match (invalid.is_empty(), cases.is_empty()) {
        (false, _) => Err(CasesError::Lines(invalid)),
        (true, true) => Err(CasesError::Empty { name }),
        (true, false) => Ok(cases),
    }
}

fn parse(line: &str) -> Result<EvalCase, InvalidCase> {
    let Unique(case) = serde_json::from_str(line).map_err(|error| {
        // A case is a line of its own, so only the column is useful.
        let message = error.to_string();
        let position = format!(" at line 1 column {}", error.column());
        let message = message.strip_suffix(&position).unwrap_or(&message);
        InvalidCase {
            field: String::new(),
            expected: "a JSON object".to_owned(),
            found: format!("an error at column {}: {message}", error.column()),
        }
    })?;
    EvalCase::from_value(&case)
}
