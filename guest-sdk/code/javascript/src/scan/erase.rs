//! Removes types. What TypeScript adds is overwritten with spaces; enumerations and parameters that
//! declare properties become JavaScript.

use std::fmt::Write as _;

use oxc_ast::ast::{
    Class, ClassElement, Expression, FormalParameter, FunctionType, MethodDefinition,
    MethodDefinitionKind, MethodDefinitionType, PropertyDefinition, PropertyDefinitionType,
    Statement, TSEnumDeclaration,
};
use oxc_span::{GetSpan, Span};

use super::Scanner;

/// Modifiers that exist only in TypeScript.
const MODIFIERS: [&str; 7] =
    ["public", "private", "protected", "readonly", "abstract", "override", "declare"];

/// Returns whether a statement declares only types.
pub(super) fn is_only_types(statement: &Statement<'_>) -> bool {
    match statement {
        Statement::TSTypeAliasDeclaration(_)
        | Statement::TSInterfaceDeclaration(_)
        | Statement::TSExternalModuleDeclaration(_)
        | Statement::TSGlobalDeclaration(_) => true,
        Statement::VariableDeclaration(it) => it.declare,
        Statement::ClassDeclaration(it) => it.declare,
        Statement::TSEnumDeclaration(it) => it.declare,
        Statement::TSNamespaceDeclaration(it) => it.declare,
        Statement::FunctionDeclaration(it) => {
            it.declare || it.r#type == FunctionType::TSDeclareFunction
        }
        Statement::ImportDeclaration(it) => it.import_kind.is_type(),
        _ => false,
    }
}

/// Returns an enumeration as JavaScript.
pub(super) fn enumeration(it: &TSEnumDeclaration<'_>, source: &str) -> String {
    let mut text = format!("let {} = (() => {{ const $ = {{}}; let $value = -1; ", it.id.name);
    for member in &it.body.members {
        let name = member.id.static_name();
        let key = serde_json::Value::from(name.as_str()).to_string();
        let value = match &member.initializer {
            Some(value) => {
                let span = value.span();
                source.get(span.start as usize..span.end as usize).unwrap_or_default()
            }
            None => "$value + 1",
        };
        let _ = write!(text, "$value = $[{key}] = ({value}); ");
        if is_identifier(name.as_str()) {
            let _ = write!(text, "const {name} = $value; ");
        }
        let _ = write!(text, "if (typeof $value === \"number\") $[$value] = {key}; ");
    }
    text.push_str("return $; })();");
    text
}

fn is_identifier(name: &str) -> bool {
    const RESERVED: [&str; 12] = [
        "default", "delete", "new", "class", "in", "if", "for", "null", "true", "false",
        "function", "return",
    ];
    name.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
        && !RESERVED.contains(&name)
}

impl Scanner<'_> {
    pub(super) fn blank(&mut self, span: Span) {
        self.facts.edits.blank(self.source, span.start, span.end);
    }

    /// Overwrites what follows an expression up to the end of `span`. If a parenthesis follows on a
    /// later line, the first byte becomes a semicolon: without the type, that line would continue
    /// this one.
    pub(super) fn blank_suffix(&mut self, expression: &Expression<'_>, span: Span) {
        let start = expression.span().end;
        let rest = self.source.get(span.end as usize..).unwrap_or_default();
        let next = rest.trim_start();
        let skipped = rest.get(..rest.len() - next.len()).unwrap_or_default();
        if skipped.contains('\n') && next.starts_with(['(', '[', '`']) {
            self.facts.edits.blank_statement(self.source, start, span.end);
        } else {
            self.facts.edits.blank(self.source, start, span.end);
        }
    }

    /// Overwrites a span and the next `byte`, if nothing else is between them.
    pub(super) fn blank_through(&mut self, span: Span, byte: u8) {
        let rest = self.source.get(span.end as usize..).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start().len();
        let follows = rest.as_bytes().get(blanks) == Some(&byte);
        let more = if follows { u32::try_from(blanks + 1).unwrap_or_default() } else { 0 };
        self.blank(Span::new(span.start, span.end + more));
    }

    /// Overwrites the next `byte` after an offset.
    pub(super) fn blank_byte(&mut self, byte: u8, from: u32) {
        let rest = self.source.as_bytes().get(from as usize..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|&other| other == byte) {
            let at = from + u32::try_from(at).unwrap_or_default();
            self.blank(Span::new(at, at + 1));
        }
    }

    /// Overwrites the modifiers between two offsets.
    pub(super) fn blank_words(&mut self, start: u32, end: u32) -> bool {
        let text = self.source.get(start as usize..end as usize).unwrap_or_default();
        let mut found = false;
        let mut offset = 0;
        for word in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            if MODIFIERS.contains(&name) {
                let at = start + u32::try_from(offset).unwrap_or_default();
                self.blank(Span::new(at, at + u32::try_from(name.len()).unwrap_or_default()));
                found = true;
            }
            offset += word.len();
        }
        found
    }

    pub(super) fn class(&mut self, it: &Class<'_>) {
        if it.r#abstract {
            let end = it.id.as_ref().map_or(it.body.span.start, |id| id.span.start);
            self.blank_words(it.span.start, end);
        }
        if let (Some(first), Some(last)) = (it.implements.first(), it.implements.last()) {
            let from = [
                it.id.as_ref().map(|id| id.span.end),
                it.type_parameters.as_ref().map(|it| it.span.end),
                it.heritage.as_ref().map(|it| it.expression.span().end),
                it.heritage
                    .as_ref()
                    .and_then(|it| it.type_arguments.as_ref())
                    .map(|it| it.span.end),
            ];
            let from = from.into_iter().flatten().max().unwrap_or(it.span.start);
            let between = self.source.get(from as usize..first.span.start as usize);
            if let Some(at) = between.and_then(|text| text.rfind("implements")) {
                let start = from + u32::try_from(at).unwrap_or_default();
                self.blank(Span::new(start, last.span.end));
            }
        }
    }

    /// Removes what is only TypeScript from a member of a class. Returns false if nothing is left.
    pub(super) fn class_element(&mut self, it: &ClassElement<'_>) -> bool {
        let is_type = match it {
            ClassElement::TSIndexSignature(_) => true,
            ClassElement::MethodDefinition(it) => {
                it.r#type == MethodDefinitionType::TSAbstractMethodDefinition
                    || it.value.body.is_none()
            }
            ClassElement::PropertyDefinition(it) => {
                it.declare || it.r#type == PropertyDefinitionType::TSAbstractPropertyDefinition
            }
            _ => false,
        };
        let span = it.span();
        if is_type {
            self.facts.edits.blank_statement(self.source, span.start, span.end);
            return false;
        }
        match it {
            ClassElement::MethodDefinition(it) => self.method(it),
            ClassElement::PropertyDefinition(it) => self.property(it),
            ClassElement::AccessorProperty(it) => {
                self.blank_words(it.span.start, it.key.span().start);
            }
            _ => {}
        }
        true
    }

    fn method(&mut self, it: &MethodDefinition<'_>) {
        self.blank_words(it.span.start, it.key.span().start);
        if it.optional {
            self.blank_byte(b'?', it.key.span().end);
        }
        if it.kind == MethodDefinitionKind::Constructor {
            self.parameter_properties(it);
        }
    }

    fn property(&mut self, it: &PropertyDefinition<'_>) {
        self.blank_words(it.span.start, it.key.span().start);
        if it.optional {
            self.blank_byte(b'?', it.key.span().end);
        }
        if it.definite {
            self.blank_byte(b'!', it.key.span().end);
        }
    }

    /// Assigns the parameters of a constructor that declare properties: at its start, or after
    /// `super(…)` as its first statement.
    fn parameter_properties(&mut self, it: &MethodDefinition<'_>) {
        let Some(body) = &it.value.body else { return };
        let mut text = String::new();
        for parameter in it.value.params.items.iter().filter(|it| declares_property(it)) {
            if let Some(name) = parameter.pattern.get_identifier_name() {
                let _ = write!(text, " this.{name} = {name};");
            }
        }
        if text.is_empty() {
            return;
        }
        let after_super = match body.statements.first() {
            Some(Statement::ExpressionStatement(first)) => match &first.expression {
                Expression::CallExpression(call) if call.callee.is_super() => Some(first.span.end),
                _ => None,
            },
            _ => None,
        };
        match after_super {
            Some(at) => self.facts.edits.insert(at, &format!(";{text}")),
            None => self.facts.edits.insert(body.span.start + 1, &text),
        }
    }
}

fn declares_property(parameter: &FormalParameter<'_>) -> bool {
    parameter.accessibility.is_some() || parameter.readonly || parameter.r#override
}
