//! Guests made of a core module in the text format: traps that no compiler emits, and answers with
//! exact bytes.

use std::fmt::Write as _;

use cofferdam_tests::root;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// Address of everything but the list of definitions, which is at address 0.
const TEXTS: u32 = 1024;
/// Size of a definition: four strings, two of them optional, and five hints.
const DEFINITION_BYTES: u32 = 60;
/// Size of a content item: its case, and for the largest one a string, an optional string, a case
/// and a string.
const CONTENT_BYTES: u32 = 36;

/// A plugin with one tool, `t`, that by default takes no arguments.
#[derive(Default)]
pub(crate) struct Module<'a> {
    /// Interfaces that the guest imports, as WIT packages.
    pub(crate) wit: &'a str,
    /// Imports of the world, such as `import wasi:io/poll@0.2.0;`.
    pub(crate) world: &'a str,
    /// Core imports in the text format. They come first in a module.
    pub(crate) imports: &'a str,
    /// Further fields: tables, types, functions.
    pub(crate) fields: &'a str,
    /// Code of the tool before it answers. The global `$answer` holds the address of the answer.
    pub(crate) body: &'a str,
    /// Code at the start of listing the tools.
    pub(crate) list: &'a str,
    /// Code at the start of allocating memory for the host.
    pub(crate) realloc: &'a str,
    /// Declared output schema.
    pub(crate) output_schema: Option<&'a str>,
    /// Tools instead of `t`.
    pub(crate) definitions: Vec<Definition>,
    /// Answer of the tool.
    pub(crate) answer: Answer<'a>,
}

/// Definition of a tool, in bytes that need not be UTF-8.
#[derive(Clone)]
pub(crate) struct Definition {
    pub(crate) name: Vec<u8>,
    pub(crate) title: Option<Vec<u8>>,
    pub(crate) description: Vec<u8>,
    pub(crate) input_schema: Vec<u8>,
}

impl Definition {
    /// Creates a tool without parameters.
    pub(crate) fn new(name: &str) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: b"Does what a test needs.".to_vec(),
            input_schema: br#"{"type":"object"}"#.to_vec(),
        }
    }
}

/// Answer of a guest.
#[derive(Clone)]
pub(crate) enum Answer<'a> {
    /// Items of a success.
    Contents(Vec<Item<'a>>),
    Failure {
        message: &'a str,
        suggestion: Option<&'a str>,
        transient: Option<bool>,
        value: Option<&'a str>,
    },
}

/// Item of a success, in bytes that need not be UTF-8.
#[derive(Clone, Copy)]
pub(crate) enum Item<'a> {
    Text(&'a [u8]),
    Json(&'a str),
}

impl Default for Answer<'_> {
    fn default() -> Self {
        Self::Contents(vec![Item::Text(b"ok")])
    }
}

impl Module<'_> {
    /// Builds the component.
    pub(crate) fn component(&self) -> Vec<u8> {
        let mut module = wat::parse_str(self.text()).expect("the module is well-formed");
        let mut resolve = Resolve::default();
        resolve.push_dir(root().join("wit")).expect("the packages of this repository");
        if !self.wit.is_empty() {
            resolve.push_str("imports.wit", self.wit).expect("the packages of a test");
        }
        let world = format!(
            "package test:module; world module {{ {} export cofferdam:plugin/tools@0.1.0; }}",
            self.world
        );
        let package = resolve.push_str("module.wit", &world).expect("the world of a test");
        let world = resolve.select_world(&[package], None).expect("the package has one world");
        embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .expect("metadata");
        let mut encoder = ComponentEncoder::default()
            .validate(false)
            .module(&module)
            .expect("a module of the world");
        encoder.encode().expect("a component")
    }

    /// Builds a program for the first preview of WASI that runs the tool's code and prints its
    /// answer. Returns nothing if the module has more than code: imports, tools, or an answer that
    /// is not one text.
    pub(crate) fn program(&self) -> Option<Vec<u8>> {
        let Answer::Contents(items) = &self.answer else { return None };
        let [Item::Text(answer)] = items[..] else { return None };
        let others = [self.wit, self.world, self.imports, self.list, self.realloc];
        if others.iter().any(|part| !part.is_empty()) || !self.definitions.is_empty() {
            return None;
        }
        let mut memory = Memory::default();
        let text = memory.string(answer);
        memory.words(0, &text);
        let program = format!(
            r#"(module
              (import "wasi_snapshot_preview1" "fd_write"
                (func $write (param i32 i32 i32 i32) (result i32)))
              (memory (export "memory") {pages})
              (global $answer i32 (i32.const 0))
              {data}
              {fields}
              (func (export "_start")
                {body}
                (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#,
            pages = memory.end / 65_536 + 2,
            data = memory.data,
            fields = self.fields,
            body = self.body,
        );
        // Code that uses the parameters of a tool is no program.
        wat::parse_str(program).ok()
    }

    fn text(&self) -> String {
        let mut memory = Memory::default();
        memory.definitions(&self.definitions, self.output_schema);
        let answer = memory.answer(&self.answer);
        let pages = memory.end / 65_536 + 2;
        format!(
            r#"(module
              {imports}
              (memory (export "memory") {pages})
              (global $free (mut i32) (i32.const {free}))
              (global $answer i32 (i32.const {answer}))
              {data}
              {fields}
              (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
                (local $at i32)
                {realloc}
                (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
                (global.set $free (i32.add (local.get $at) (local.get 3)))
                (local.get $at))
              (func (export "cofferdam:plugin/tools@0.1.0#list-tools") (result i32)
                {list}
                (i32.const 0))
              (func (export "cofferdam:plugin/tools@0.1.0#call-tool")
                (param i32 i32 i32 i32) (result i32)
                {body}
                (global.get $answer)))"#,
            imports = self.imports,
            free = memory.end,
            data = memory.data,
            fields = self.fields,
            body = self.body,
            list = self.list,
            realloc = self.realloc,
        )
    }
}

/// The initial memory, in the layout of the canonical ABI.
struct Memory {
    data: String,
    end: u32,
}

impl Default for Memory {
    fn default() -> Self {
        Self { data: String::new(), end: TEXTS }
    }
}

impl Memory {
    fn put(&mut self, at: u32, bytes: &[u8]) {
        let escaped: String = bytes.iter().map(|byte| format!("\\{byte:02x}")).collect();
        writeln!(self.data, r#"(data (i32.const {at}) "{escaped}")"#).expect("writing to a string");
    }

    fn words(&mut self, at: u32, words: &[u32]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.put(at, &bytes);
    }

    /// Reserves bytes behind everything else, aligned for words.
    fn room(&mut self, bytes: u32) -> u32 {
        let at = self.end;
        self.end = (at + bytes + 7) & !7;
        at
    }

    /// Writes a string and returns its address and length.
    fn string(&mut self, bytes: &[u8]) -> [u32; 2] {
        let length = u32::try_from(bytes.len()).expect("a short text");
        let at = self.room(length);
        self.put(at, bytes);
        [at, length]
    }

    /// Writes an `option<string>`.
    fn optional(&mut self, text: Option<&[u8]>) -> [u32; 3] {
        match text {
            None => [0; 3],
            Some(text) => {
                let [at, length] = self.string(text);
                [1, at, length]
            }
        }
    }

    /// Writes the list of definitions at address 0. All hints are unknown: zeros.
    fn definitions(&mut self, definitions: &[Definition], output_schema: Option<&str>) {
        let only = [Definition::new("t")];
        let definitions = if definitions.is_empty() { &only } else { definitions };
        let count = u32::try_from(definitions.len()).expect("a few definitions");
        let list = self.room(count * DEFINITION_BYTES);
        self.words(0, &[list, count]);
        for (index, definition) in (0..).zip(definitions) {
            let at = list + index * DEFINITION_BYTES;
            let name = self.string(&definition.name);
            let title = self.optional(definition.title.as_deref());
            let description = self.string(&definition.description);
            let input = self.string(&definition.input_schema);
            let output = self.optional(output_schema.map(str::as_bytes));
            self.words(at, &[&name[..], &title, &description, &input, &output].concat());
        }
    }

    /// Writes a `result<list<content>, failure>` and returns its address.
    fn answer(&mut self, answer: &Answer<'_>) -> u32 {
        let at = self.room(48);
        match answer {
            Answer::Contents(items) => {
                let count = u32::try_from(items.len()).expect("few items");
                let list = self.room(count * CONTENT_BYTES);
                self.words(at, &[0, list, count]);
                for (index, item) in (0..).zip(items) {
                    let (case, bytes) = match item {
                        Item::Text(bytes) => (0, *bytes),
                        Item::Json(text) => (1, text.as_bytes()),
                    };
                    let [text, length] = self.string(bytes);
                    self.words(list + index * CONTENT_BYTES, &[case, text, length]);
                }
            }
            Answer::Failure { message, suggestion, transient, value } => {
                let message = self.string(message.as_bytes());
                let suggestion = self.optional(suggestion.map(str::as_bytes));
                let value = self.optional(value.map(str::as_bytes));
                self.words(at, &[1]);
                self.words(at + 4, &message);
                self.words(at + 12, &suggestion);
                self.put(
                    at + 24,
                    &[u8::from(transient.is_some()), u8::from(*transient == Some(true))],
                );
                self.words(at + 28, &value);
            }
        }
        at
    }
}
