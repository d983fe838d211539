//! Fields of a form. A script reads and writes their values by `data-kind` and `data-role`.

use maud::{Markup, html};
use serde_json::Value;

use crate::form::{FieldKind, FormField};
use crate::text;

/// Maximum number of options of a choice. Further ones can be entered as JSON.
const OPTIONS_MAX: usize = 500;

/// Returns a field with the fields within it.
pub(super) fn field(field: &FormField) -> Markup {
    let title = field.title.as_deref().unwrap_or(&field.name);
    let default = field.default.as_ref().map(Value::to_string);
    let is_group =
        matches!(field.kind, FieldKind::Object(_) | FieldKind::List(_) | FieldKind::Branches(_));
    let words = html! {
        @if !field.name.is_empty() {
            span.title { (text::line(title)) }
            @if title != field.name { " " span.aside { (text::line(&field.name)) } }
            " " span.aside { (type_name(field)) @if field.is_required { ", required" } }
        }
    };
    let description = html! {
        @if let Some(description) = &field.description { span.aside.description { (text::line(description)) } }
    };
    let switches = html! {
        @if !field.is_required {
            label.switch { input type="checkbox" name="set" data-role="set" checked[default.is_some()]; " set" }
        }
        @if field.is_nullable {
            label.switch { input type="checkbox" name="null" data-role="null"; " null" }
        }
    };
    html! {
        div.field data-kind=(kind_word(&field.kind)) data-name=(field.name)
            data-title=(title) data-default=[default] {
            @if is_group {
                fieldset {
                    @if !field.name.is_empty() { legend { (words) } }
                    (switches) (description)
                    (group(field))
                }
            } @else {
                label { (words) @if field.name.is_empty() { span.hidden { "Value" } } (description) (control(&field.kind)) }
                (switches)
            }
            p.problem data-role="problem" hidden {}
        }
    }
}

fn group(of: &FormField) -> Markup {
    match &of.kind {
        FieldKind::Object(fields) => html! {
            div data-role="fields" { @for one in fields { (field(one)) } }
            @if fields.is_empty() { p.aside { "No arguments." } }
        },
        FieldKind::List(item) => html! {
            div data-role="items" {}
            template data-role="item" {
                div.item {
                    (field(item))
                    button type="button" data-role="remove" { "Remove" }
                }
            }
            button type="button" data-role="add" { "Add" }
        },
        FieldKind::Branches(branches) => html! {
            label {
                "Form "
                select name="branch" data-role="branch" {
                    @for (index, branch) in branches.iter().enumerate() {
                        option value=(index) { (branch_title(index, branch)) }
                    }
                }
            }
            div data-role="branches" { @for branch in branches { (field(branch)) } }
        },
        _ => html! {},
    }
}

fn control(kind: &FieldKind) -> Markup {
    match kind {
        FieldKind::Text { hint } => html! {
            textarea name="value" data-role="value" rows="1" placeholder=[hint.as_deref()] {}
        },
        FieldKind::Number { .. } => {
            html! { input name="value" data-role="value" inputmode="decimal" autocomplete="off"; }
        }
        FieldKind::Boolean => html! {
            select name="value" data-role="value" { option { "true" } option { "false" } }
        },
        FieldKind::Options(options) => html! {
            select name="value" data-role="value" {
                @for option in options.iter().take(OPTIONS_MAX) {
                    option value=(option) { (text::plain_line(&option_text(option))) }
                }
            }
        },
        _ => {
            html! { textarea name="value" data-role="value" rows="2" spellcheck="false" placeholder="JSON" {} }
        }
    }
}

fn option_text(option: &Value) -> String {
    option.as_str().map_or_else(|| option.to_string(), str::to_owned)
}

fn branch_title(index: usize, branch: &FormField) -> String {
    let number = index.saturating_add(1);
    match &branch.title {
        Some(title) => text::plain_line(title),
        None => format!("{number}: {}", type_name(branch)),
    }
}

fn kind_word(kind: &FieldKind) -> &'static str {
    match kind {
        FieldKind::Text { .. } => "text",
        FieldKind::Number { .. } => "number",
        FieldKind::Boolean => "boolean",
        FieldKind::Options(_) => "options",
        FieldKind::Object(_) => "object",
        FieldKind::List(_) => "list",
        FieldKind::Branches(_) => "branches",
        FieldKind::Json => "json",
    }
}

fn type_name(field: &FormField) -> &'static str {
    match &field.kind {
        FieldKind::Text { .. } => "string",
        FieldKind::Number { is_integer: true } => "integer",
        FieldKind::Number { is_integer: false } => "number",
        FieldKind::Boolean => "true or false",
        FieldKind::Options(_) => "one of some values",
        FieldKind::Object(_) => "object",
        FieldKind::List(_) => "list",
        FieldKind::Branches(_) => "one of several forms",
        FieldKind::Json => "JSON",
    }
}
