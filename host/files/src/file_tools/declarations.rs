//! Declarations of the file-access tools.

use cofferdam_tool::Annotations;
use cofferdam_tool::declaration::Declaration;
use serde_json::{Value, json};

use super::FileAccessStore;

/// Instructions for the model, given together with the tools (`FILE-47`).
const INSTRUCTIONS: &str = "\
You have tools that work on a file store: their names start with `file_access_`. Files in it \
persist after this conversation and \
may be shared with other conversations and people. Use them to read the inputs that you are given \
and to leave what you \
produce. Do not delete or overwrite a file unless the user asked for that. Paths are relative to \
the root of the store, \
with `/` between their parts. Look before you write: list or search to find a file, read the part \
that you need, and \
change that part with `file_access_replace` or `file_access_replace_lines` instead of saving the \
whole file again.";

/// Returns the instructions for a model about the tools over `stores`.
pub(super) fn instructions(stores: &[FileAccessStore]) -> String {
    let mut instructions = INSTRUCTIONS.to_owned();
    if stores.len() > 1 {
        let names = stores.iter().map(|store| {
            let access = if store.options.is_read_only { " (read-only)" } else { "" };
            format!("`{}/`{access}", store.name)
        });
        instructions.push_str(" There are several stores; each path starts with the name of one: ");
        instructions.push_str(&names.collect::<Vec<_>>().join(", "));
        instructions.push('.');
    }
    instructions
}

/// The nine tools, in the order in which they are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileTool {
    SaveFile,
    ReadFile,
    DeleteFile,
    ListFiles,
    SearchFiles,
    ReadLines,
    Replace,
    ReplaceLines,
    CreateDirectory,
}

impl FileTool {
    pub(super) const ALL: &[Self] = &[
        Self::SaveFile,
        Self::ReadFile,
        Self::DeleteFile,
        Self::ListFiles,
        Self::SearchFiles,
        Self::ReadLines,
        Self::Replace,
        Self::ReplaceLines,
        Self::CreateDirectory,
    ];

    /// Returns the tool with this name, which may lack the prefix that all names have.
    pub(super) fn named_in_rule(name: &str) -> Option<Self> {
        Self::named(name).or_else(|| Self::named(&format!("file_access_{name}")))
    }

    /// Returns true if the tool reads everything below the given directory.
    pub(super) fn reads_below(self) -> bool {
        matches!(self, Self::ListFiles | Self::SearchFiles)
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|tool| tool.name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::SaveFile => "file_access_save_file",
            Self::ReadFile => "file_access_read_file",
            Self::DeleteFile => "file_access_delete_file",
            Self::ListFiles => "file_access_list_files",
            Self::SearchFiles => "file_access_search_files",
            Self::ReadLines => "file_access_read_lines",
            Self::Replace => "file_access_replace",
            Self::ReplaceLines => "file_access_replace_lines",
            Self::CreateDirectory => "file_access_create_directory",
        }
    }

    /// Returns whether the tool changes something. Such tools are not offered in read-only mode
    /// (`FILE-45`).
    pub(super) fn writes(self) -> bool {
        match self {
            Self::SaveFile
            | Self::DeleteFile
            | Self::Replace
            | Self::ReplaceLines
            | Self::CreateDirectory => true,
            Self::ReadFile | Self::ListFiles | Self::SearchFiles | Self::ReadLines => false,
        }
    }

    pub(super) fn declaration(self) -> Declaration {
        let (title, description, properties, required) = self.words();
        let mut schema =
            json!({ "type": "object", "properties": properties, "required": required });
        // An unknown key that is silently dropped would produce an answer to another question
        // (`ARG-25`). The exception is reading a whole file, which no such key changes.
        if let (Some(schema), false) = (schema.as_object_mut(), self == Self::ReadFile) {
            schema.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
        Declaration {
            name: self.name().to_owned(),
            title: Some(title.to_owned()),
            description: description.to_owned(),
            input_schema: schema.to_string(),
            output_schema: None,
            annotations: self.annotations(),
            group: None,
        }
    }

    fn annotations(self) -> Annotations {
        let destroys =
            matches!(self, Self::SaveFile | Self::DeleteFile | Self::Replace | Self::ReplaceLines);
        Annotations {
            read_only: Some(!self.writes()),
            destructive: Some(destroys),
            idempotent: Some(!matches!(self, Self::Replace | Self::ReplaceLines)),
            open_world: Some(false),
            long_running: Some(false),
        }
    }

    /// Returns the title, the description, the properties and the required properties.
    fn words(self) -> (&'static str, &'static str, Value, &'static [&'static str]) {
        match self {
            Self::SaveFile => (
                "Save a file",
                "Saves text as a file and creates the directories that it needs. An existing file is replaced only with \
                 overwrite set to true. With append set to true the text is added to the end of \
                 the file: write a long file in \
                 several calls.",
                json!({
                    "file_name": file_name(),
                    "content": { "type": "string", "description": "The whole text of the file." },
                    "overwrite": flag(false, "Whether an existing file is replaced."),
                    "append": flag(false, "Whether the text is added to the end of the file."),
                }),
                &["file_name", "content"],
            ),
            Self::ReadFile => (
                "Read a file",
                "Reads the whole text of a file. For a long file use file_access_read_lines, and for one with very long lines \
                 an offset: then the answer is a JSON object with a part of the text and \
                 next_offset, which is null at the end.",
                json!({
                    "file_name": file_name(),
                    "offset": {
                        "type": ["integer", "null"],
                        "description": "Where to start, in bytes from 0. Leave it out to read the \
                         whole file.",
                    },
                }),
                &["file_name"],
            ),
            Self::DeleteFile => (
                "Delete a file",
                "Deletes a file for good. Directories cannot be deleted.",
                json!({ "file_name": file_name() }),
                &["file_name"],
            ),
            Self::ListFiles => (
                "List files",
                "Lists files and directories as a JSON array of {\"name\", \"type\"}: directories first, then files, each by name. \
                 With recursive set to true everything below, with paths relative to the listed \
                 directory.",
                json!({
                    "directory": directory("The directory to list; the root if left out."),
                    "glob_pattern": glob(),
                    "file_pattern": file_pattern(),
                    "recursive": flag(false, "Whether directories below are listed too."),
                }),
                &[],
            ),
            Self::SearchFiles => (
                "Search in files",
                "Searches the lines of text files for a regular expression and gives a JSON array with, for each matching \
                 file, its path, a snippet around the first match and the matching lines with \
                 their numbers.",
                json!({
                    "regex_pattern": {
                        "type": "string",
                        "description": "A regular expression of at most 256 characters, matched within each line; no \
                                        look-around, no back-references.",
                    },
                    "glob_pattern": glob(),
                    "file_pattern": file_pattern(),
                    "directory": directory("The directory to search; the root if left out."),
                    "recursive": flag(true, "Whether directories below are searched too."),
                    "case_sensitive": flag(false, "Whether upper and lower case differ."),
                }),
                &["regex_pattern"],
            ),
            Self::ReadLines => (
                "Read lines",
                "Reads some lines of a file: for each line its number, a tab and the line.",
                json!({
                    "file_name": file_name(),
                    "start_line": { "type": "integer", "description": "The first line, counted \
                     from 1." },
                    "end_line": {
                        "type": ["integer", "null"],
                        "description": "The last line; the end of the file if left out.",
                    },
                }),
                &["file_name", "start_line"],
            ),
            Self::Replace => (
                "Replace text",
                "Replaces a text in a file by another one. The text has to occur exactly once \
                 unless replace_all is true.",
                json!({
                    "file_name": file_name(),
                    "old_string": { "type": "string", "description": "The text as it stands in \
                     the file." },
                    "new_string": { "type": "string", "description": "What takes its place." },
                    "replace_all": flag(false, "Whether every occurrence is replaced."),
                }),
                &["file_name", "old_string", "new_string"],
            ),
            Self::ReplaceLines => (
                "Replace lines",
                "Replaces lines of a file by number, all of them or none. new_line takes the place of the line and its line \
                 end: end it with a line feed to keep a line of its own, leave it empty to delete \
                 the line.",
                json!({
                    "file_name": file_name(),
                    "edits": {
                        "type": "array",
                        "description": "The lines to replace. Numbers are those of the file as it \
                         is now.",
                        "items": {
                            "type": "object",
                            "properties": {
                                "line_number": { "type": "integer", "description": "Counted from 1." },
                                "new_line": { "type": "string", "description": "The new text, \
                                 line end included." },
                                "expected_line": {
                                    "type": ["string", "null"],
                                    "description": "What the line holds now. If it does not, \
                                     nothing is changed.",
                                },
                            },
                            "required": ["line_number", "new_line"],
                            "additionalProperties": false,
                        },
                    },
                }),
                &["file_name", "edits"],
            ),
            Self::CreateDirectory => (
                "Create a directory",
                "Creates a directory and those above it that are missing.",
                json!({ "directory": { "type": "string", "description": "The path of the new \
                    directory." } }),
                &["directory"],
            ),
        }
    }
}

fn file_name() -> Value {
    json!({ "type": "string", "description": "The path of the file, such as reports/2024.md." })
}

fn directory(description: &str) -> Value {
    json!({ "type": ["string", "null"], "description": description })
}

fn glob() -> Value {
    json!({
        "type": ["string", "null"],
        "description": "Only paths that match, such as *.md or src/**/*.{c,h}. Upper and lower \
         case do not differ.",
    })
}

fn file_pattern() -> Value {
    json!({ "type": ["string", "null"], "deprecated": true, "description": "Older name of \
        glob_pattern." })
}

fn flag(default: bool, description: &str) -> Value {
    json!({ "type": "boolean", "default": default, "description": description })
}
