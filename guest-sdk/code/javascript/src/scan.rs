//! One walk over the syntax tree: collects the changes that make JavaScript of TypeScript, and what
//! the checks need to know.

mod erase;
mod tail;

use std::collections::BTreeSet;

use oxc_ast::ast::{
    Argument, ArrowFunctionExpression, AwaitExpression, BindingIdentifier, CallExpression, Class,
    ClassElement, ComputedMemberExpression, ExportAllDeclaration, ExportDefaultDeclaration,
    ExportNamedDeclaration, Expression, ExpressionStatement, FormalParameter, Function,
    IdentifierReference, ImportDeclaration, ImportExpression, ObjectExpression, ObjectPropertyKind,
    Program, Statement, StaticMemberExpression, StringLiteral, TSAsExpression, TSEnumDeclaration,
    TSExportAssignment, TSImportEqualsDeclaration, TSNamespaceDeclaration, TSNonNullExpression,
    TSSatisfiesExpression, TSThisParameter, TSTypeAnnotation, TSTypeAssertion,
    TSTypeParameterDeclaration, TSTypeParameterInstantiation, TemplateElement, VariableDeclarator,
};
use oxc_ast_visit::{Visit, walk};
use oxc_span::{GetSpan, Span};
use oxc_syntax::scope::ScopeFlags;

use crate::source::Edits;

/// Name of the object that holds the tools.
pub(crate) const TOOLS: &str = "tools";

/// What a program contains.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) edits: Edits,
    /// Names that the program declares, in any scope.
    pub(crate) declared: BTreeSet<String>,
    /// References to tools, `tools.word_count`.
    pub(crate) tools: Vec<ToolReference>,
    /// Calls of tools with their arguments.
    pub(crate) calls: Vec<ToolCall>,
    /// Whether `tools` is used in another way than `tools.name`.
    pub(crate) is_dynamic: bool,
    /// Names that are read and not known to be declared, with their offsets.
    pub(crate) free: Vec<(String, u32)>,
    /// Offsets of calls whose promises are dropped, with the callee's text.
    pub(crate) dropped: Vec<(String, u32)>,
    /// Offsets of members of promises, `tools.a({}).b`, with the callee's text and the member.
    pub(crate) members: Vec<(String, String, u32)>,
    /// Offsets of string literals in arguments that hold a mark of a shortened value.
    pub(crate) shortened: Vec<u32>,
    /// Offsets of imports and exports.
    pub(crate) modules: Vec<(Module, u32)>,
    /// Offsets of syntax of TypeScript that cannot be removed.
    pub(crate) unsupported: Vec<(&'static str, u32)>,
}

/// Syntax of modules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Module {
    Import(String),
    Export,
}

/// A reference to a tool.
pub(crate) struct ToolReference {
    pub(crate) id: String,
    pub(crate) at: u32,
}

/// A call of a tool.
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) at: u32,
    pub(crate) arguments: Arguments,
}

/// What is known about the arguments of a call.
pub(crate) enum Arguments {
    /// An object literal with these keys, each with its offset.
    Keys(Vec<(String, u32)>),
    /// Something that is certainly not an object.
    NoObject,
    /// Nothing is known.
    Unknown,
}

/// Walks over a program.
pub(crate) fn scan<'a>(program: &Program<'a>, source: &'a str) -> Facts {
    let mut scanner =
        Scanner { source, facts: Facts::default(), returned: Vec::new(), arguments: 0 };
    tail::returns(program, &mut scanner.facts.edits, &mut scanner.returned);
    scanner.visit_program(program);
    scanner.facts
}

struct Scanner<'s> {
    source: &'s str,
    facts: Facts,
    /// Offsets of expression statements whose value is the program's result.
    returned: Vec<u32>,
    /// Number of calls of tools whose arguments are being walked over.
    arguments: usize,
}

impl<'a> Visit<'a> for Scanner<'_> {
    fn visit_binding_identifier(&mut self, it: &BindingIdentifier<'a>) {
        self.facts.declared.insert(it.name.to_string());
    }

    fn visit_identifier_reference(&mut self, it: &IdentifierReference<'a>) {
        if it.name == TOOLS {
            self.facts.is_dynamic = true;
        } else {
            self.facts.free.push((it.name.to_string(), it.span.start));
        }
    }

    fn visit_static_member_expression(&mut self, it: &StaticMemberExpression<'a>) {
        self.note_member(&it.object, &it.property.name, it.property.span.start);
        if is_tools(&it.object) {
            self.note_tool(&it.property.name, it.span.start);
        } else {
            self.visit_expression(&it.object);
        }
    }

    fn visit_computed_member_expression(&mut self, it: &ComputedMemberExpression<'a>) {
        if is_tools(&it.object)
            && let Expression::StringLiteral(name) = &it.expression
        {
            self.note_tool(&name.value, it.span.start);
        } else {
            walk::walk_computed_member_expression(self, it);
        }
    }

    fn visit_call_expression(&mut self, it: &CallExpression<'a>) {
        let Some(id) = tool_of(&it.callee) else {
            return walk::walk_call_expression(self, it);
        };
        let arguments = arguments_of(&it.arguments);
        self.facts.calls.push(ToolCall { id: id.to_owned(), at: it.span.start, arguments });
        self.arguments += 1;
        walk::walk_call_expression(self, it);
        self.arguments -= 1;
    }

    fn visit_expression_statement(&mut self, it: &ExpressionStatement<'a>) {
        if !self.returned.contains(&it.span.start)
            && let Some(callee) = self.dropped(&it.expression)
        {
            self.facts.dropped.push((callee, it.span.start));
        }
        walk::walk_expression_statement(self, it);
    }

    fn visit_string_literal(&mut self, it: &StringLiteral<'a>) {
        if self.arguments > 0 && is_shortened(&it.value) {
            self.facts.shortened.push(it.span.start);
        }
    }

    fn visit_template_element(&mut self, it: &TemplateElement<'a>) {
        if self.arguments > 0 && is_shortened(&it.value.raw) {
            self.facts.shortened.push(it.span.start);
        }
    }

    fn visit_import_declaration(&mut self, it: &ImportDeclaration<'a>) {
        let module = Module::Import(it.source.value.to_string());
        self.facts.modules.push((module, it.span.start));
        walk::walk_import_declaration(self, it);
    }

    fn visit_import_expression(&mut self, it: &ImportExpression<'a>) {
        let module = match &it.source {
            Expression::StringLiteral(name) => name.value.to_string(),
            _ => String::new(),
        };
        self.facts.modules.push((Module::Import(module), it.span.start));
    }

    fn visit_ts_import_equals_declaration(&mut self, it: &TSImportEqualsDeclaration<'a>) {
        self.facts.modules.push((Module::Import(String::new()), it.span.start));
    }

    fn visit_export_named_declaration(&mut self, it: &ExportNamedDeclaration<'a>) {
        self.facts.modules.push((Module::Export, it.span.start));
        walk::walk_export_named_declaration(self, it);
    }

    fn visit_export_default_declaration(&mut self, it: &ExportDefaultDeclaration<'a>) {
        self.facts.modules.push((Module::Export, it.span.start));
        walk::walk_export_default_declaration(self, it);
    }

    fn visit_export_all_declaration(&mut self, it: &ExportAllDeclaration<'a>) {
        self.facts.modules.push((Module::Export, it.span.start));
    }

    fn visit_ts_export_assignment(&mut self, it: &TSExportAssignment<'a>) {
        self.facts.modules.push((Module::Export, it.span.start));
    }

    // From here on: TypeScript.

    fn visit_statement(&mut self, it: &Statement<'a>) {
        if erase::is_only_types(it) {
            let span = it.span();
            self.facts.edits.blank_statement(self.source, span.start, span.end);
        } else {
            walk::walk_statement(self, it);
        }
    }

    fn visit_ts_type_annotation(&mut self, it: &TSTypeAnnotation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_declaration(&mut self, it: &TSTypeParameterDeclaration<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_type_parameter_instantiation(&mut self, it: &TSTypeParameterInstantiation<'a>) {
        self.blank(it.span);
    }

    fn visit_ts_as_expression(&mut self, it: &TSAsExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_suffix(&it.expression, it.span);
    }

    fn visit_ts_satisfies_expression(&mut self, it: &TSSatisfiesExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank_suffix(&it.expression, it.span);
    }

    fn visit_ts_non_null_expression(&mut self, it: &TSNonNullExpression<'a>) {
        self.visit_expression(&it.expression);
        self.blank(Span::new(it.expression.span().end, it.span.end));
    }

    fn visit_ts_type_assertion(&mut self, it: &TSTypeAssertion<'a>) {
        self.blank(Span::new(it.span.start, it.expression.span().start));
        self.visit_expression(&it.expression);
    }

    fn visit_ts_this_parameter(&mut self, it: &TSThisParameter<'a>) {
        self.blank_through(it.span, b',');
    }

    fn visit_formal_parameter(&mut self, it: &FormalParameter<'a>) {
        if it.optional {
            self.blank_byte(b'?', it.pattern.span().end);
        }
        self.blank_words(it.span.start, it.pattern.span().start);
        walk::walk_formal_parameter(self, it);
    }

    fn visit_arrow_function_expression(&mut self, it: &ArrowFunctionExpression<'a>) {
        if let Some(annotation) = &it.return_type {
            // No line may end between the parameters and the arrow.
            let (start, end) = (annotation.span.start, annotation.span.end);
            self.facts.edits.blank_flat(self.source, start, end);
        }
        walk::walk_arrow_function_expression(self, it);
    }

    fn visit_variable_declarator(&mut self, it: &VariableDeclarator<'a>) {
        if it.definite {
            self.blank_byte(b'!', it.id.span().end);
        }
        walk::walk_variable_declarator(self, it);
    }

    fn visit_class(&mut self, it: &Class<'a>) {
        self.class(it);
        walk::walk_class(self, it);
    }

    fn visit_class_element(&mut self, it: &ClassElement<'a>) {
        if self.class_element(it) {
            walk::walk_class_element(self, it);
        }
    }

    fn visit_function(&mut self, it: &Function<'a>, flags: ScopeFlags) {
        walk::walk_function(self, it, flags);
    }

    fn visit_ts_enum_declaration(&mut self, it: &TSEnumDeclaration<'a>) {
        self.facts.declared.insert(it.id.name.to_string());
        let text = erase::enumeration(it, self.source);
        self.facts.edits.replace(it.span.start, it.span.end, text);
    }

    fn visit_ts_namespace_declaration(&mut self, it: &TSNamespaceDeclaration<'a>) {
        self.facts.unsupported.push(("namespace", it.span.start));
    }

    fn visit_await_expression(&mut self, it: &AwaitExpression<'a>) {
        walk::walk_await_expression(self, it);
    }
}

impl Scanner<'_> {
    fn note_tool(&mut self, id: &str, at: u32) {
        self.facts.tools.push(ToolReference { id: id.to_owned(), at });
    }

    /// Notes a member of a call's promise, which the program probably wanted of its result.
    fn note_member(&mut self, object: &Expression<'_>, member: &str, at: u32) {
        if let Expression::CallExpression(call) = object.without_parentheses()
            && let Some(id) = tool_of(&call.callee)
            && !matches!(member, "then" | "catch" | "finally")
        {
            self.facts.members.push((format!("tools.{id}"), member.to_owned(), at));
        }
    }

    /// Returns the callee if the value of an expression is the promise of a call.
    fn dropped(&self, expression: &Expression<'_>) -> Option<String> {
        let Expression::CallExpression(call) = expression.get_inner_expression() else {
            return None;
        };
        if let Some(id) = tool_of(&call.callee) {
            return Some(format!("tools.{id}"));
        }
        match call.callee.get_inner_expression() {
            Expression::Identifier(name) if matches!(name.name.as_str(), "store" | "load") => {
                Some(name.name.to_string())
            }
            Expression::StaticMemberExpression(member)
                if matches!(member.property.name.as_str(), "then" | "catch" | "finally") =>
            {
                self.dropped(&member.object)
            }
            _ => None,
        }
    }
}

fn is_tools(expression: &Expression<'_>) -> bool {
    matches!(expression.get_inner_expression(), Expression::Identifier(name) if name.name == TOOLS)
}

/// Returns the identifier of the tool that an expression names.
fn tool_of<'e>(expression: &'e Expression<'_>) -> Option<&'e str> {
    match expression.get_inner_expression() {
        Expression::StaticMemberExpression(member) if is_tools(&member.object) => {
            Some(member.property.name.as_str())
        }
        Expression::ComputedMemberExpression(member) if is_tools(&member.object) => {
            match &member.expression {
                Expression::StringLiteral(name) => Some(name.value.as_str()),
                _ => None,
            }
        }
        _ => None,
    }
}

fn arguments_of(arguments: &[Argument<'_>]) -> Arguments {
    let Some(first) = arguments.first() else { return Arguments::Keys(Vec::new()) };
    let Some(first) = first.as_expression() else { return Arguments::Unknown };
    match first.get_inner_expression() {
        Expression::ObjectExpression(object) => keys(object),
        Expression::StringLiteral(_)
        | Expression::TemplateLiteral(_)
        | Expression::NumericLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::BigIntLiteral(_)
        | Expression::ArrayExpression(_) => Arguments::NoObject,
        _ => Arguments::Unknown,
    }
}

fn keys(object: &ObjectExpression<'_>) -> Arguments {
    let mut keys = Vec::new();
    for property in &object.properties {
        let ObjectPropertyKind::ObjectProperty(property) = property else {
            return Arguments::Unknown;
        };
        match property.key.static_name() {
            Some(name) => keys.push((name.into_owned(), property.span.start)),
            None => return Arguments::Unknown,
        }
    }
    Arguments::Keys(keys)
}

/// Returns whether a text holds a mark that something was left out.
fn is_shortened(text: &str) -> bool {
    if ["[truncated", "(truncated", "<truncated", "… truncated", "...truncated"]
        .iter()
        .any(|mark| text.contains(mark))
    {
        return true;
    }
    const UNITS: [&str; 8] = ["item", "character", "line", "byte", "row", "entr", "key", "element"];
    text.match_indices(" more ").any(|(at, more)| {
        let before = text.get(..at).unwrap_or_default();
        let after = text.get(at + more.len()..).unwrap_or_default();
        let number = before.trim_end_matches(|c: char| c.is_ascii_digit() || c == ',');
        let opening = number.trim_end_matches([' ', '(', '[', '<']);
        number.len() < before.len()
            && (opening.ends_with('…') || opening.ends_with("..."))
            && UNITS.iter().any(|unit| after.starts_with(unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_shortened_values_are_known() {
        for text in [
            "abc… [truncated 120 characters]",
            "[1, 2, [... 12 more items]]",
            "abc…(1,200 more characters)",
            "a ... 3 more lines",
        ] {
            assert!(is_shortened(text), "{text}");
        }
        for text in ["two more items", "see 3 more lines", "more", "… and so on", "12 more items"]
        {
            assert!(!is_shortened(text), "{text}");
        }
    }
}
