//! Rules that allow, ask about or deny calls by their arguments (`LOOP-51` to `LOOP-54`).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::output::parse_json;
use cofferdam_tool::{DecodeOptions, ToolDefinition, ToolName, Toolset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::batch::same_value;
use super::path::{Comparison, allows, concerns, objection};
use crate::FunctionCall;

/// Maximum number of rules.
const RULES_MAX: usize = 1000;

/// Rule about calls of tools, for configuration files and programs.
///
/// ```
/// use cofferdam_agent::ApprovalRule;
///
/// let rule: ApprovalRule = serde_json::from_str(
///     r#"{"effect": "allow", "tool": "write", "arguments": {"path": {"path": "docs/**"}, "text": "any"}}"#,
/// )?;
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ApprovalRule {
    /// Effect on the calls that the rule matches.
    pub effect: ApprovalEffect,
    /// Name of the tool, or `*` for every tool.
    pub tool: String,
    /// Origin of the tool, such as `plugin:notes` or `server:mail`; with `@` and the digest, only
    /// this version of it. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
    /// Only tools whose author declares them read-only (true) or does not (false). A false
    /// declaration bypasses this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Patterns of arguments by name. A rule without patterns is about every call. An allowing rule
    /// with patterns matches only calls whose other arguments are absent or null.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub arguments: BTreeMap<String, ArgumentPattern>,
}

/// Effect of an [`ApprovalRule`]. Of all rules that match, the strictest counts (`LOOP-51`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalEffect {
    /// The call runs without approval.
    Allow,
    /// The user is asked, whatever was approved before.
    Ask,
    /// The call does not run, and the user is not asked.
    Deny,
}

/// Pattern of one argument.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ArgumentPattern {
    /// Any value.
    Any,
    /// This JSON value, compared as a value.
    Equals(Value),
    /// One of these JSON values.
    OneOf(Vec<Value>),
    /// A path that the glob matches: `*` and `?` stay within a segment, `**` is any number of
    /// segments (`LOOP-53`). Only for arguments that the tool reads as paths.
    Path(String),
    /// A number within these bounds, both inclusive.
    Range {
        /// Smallest number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        min: Option<f64>,
        /// Largest number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max: Option<f64>,
    },
}

/// Error for a rule that cannot work. It names the tool of the rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidApprovalRule {
    /// There are too many rules.
    #[error("there are {0} approval rules; at most 1000 are possible")]
    TooMany(usize),
    /// The pattern of an argument can match nothing.
    #[error("approval rule for `{tool}`: the pattern of `{argument}` can match nothing: {reason}")]
    Pattern {
        /// Tool of the rule.
        tool: String,
        /// Name of the argument.
        argument: String,
        /// Reason.
        reason: &'static str,
    },
    /// The tool has no argument of this name.
    #[error("approval rule for `{tool}`: the tool has no argument `{argument}`")]
    UnknownArgument {
        /// Tool of the rule.
        tool: String,
        /// Name of the argument.
        argument: String,
    },
}

impl ApprovalRule {
    /// Creates a rule about every call of a tool.
    pub fn new(effect: ApprovalEffect, tool: impl Into<String>) -> Self {
        let (tool, arguments) = (tool.into(), BTreeMap::new());
        Self { effect, tool, origin: None, read_only: None, arguments }
    }

    /// Adds the pattern of an argument.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, pattern: ArgumentPattern) -> Self {
        self.arguments.insert(name.into(), pattern);
        self
    }

    /// Checks that a rule for this tool names only arguments that the tool has.
    pub(crate) fn check_tool(&self, tool: &ToolDefinition) -> Result<(), InvalidApprovalRule> {
        match self.arguments.keys().find(|name| !has_argument(tool, name)) {
            Some(argument) => Err(InvalidApprovalRule::UnknownArgument {
                tool: self.tool.clone(),
                argument: argument.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Returns a warning if the rule matches none of the tools and is probably a mistake.
    pub(super) fn objection(&self, toolset: &Toolset) -> Option<String> {
        let tools = || toolset.definitions().map(|tool| &**tool);
        let is_named = |tool: &&ToolDefinition| self.tool == "*" || self.tool == tool.name.as_str();
        if !tools().any(|tool| is_named(&tool)) {
            return misspelled(&self.tool, "a rule about", toolset);
        }
        let has_origin = |tool: &&ToolDefinition| {
            let origin = toolset.origin(tool.name.as_str());
            self.origin.as_ref().is_none_or(|wanted| is_origin(origin.as_ref(), wanted))
        };
        let matching: Vec<_> = tools().filter(is_named).filter(has_origin).collect();
        let has_arguments = |tool: &&ToolDefinition| {
            self.arguments.keys().all(|argument| has_argument(tool, argument))
        };
        let missing = match &self.origin {
            Some(origin) if matching.is_empty() => format!("the origin `{origin}`"),
            _ if matching.iter().any(has_arguments) => return None,
            _ => {
                let names: Vec<_> = self.arguments.keys().map(|name| format!("`{name}`")).collect();
                names.join(" and ")
            }
        };
        Some(format!(
            "a rule about approvals of `{}` has no effect: no such tool has {missing}",
            self.tool
        ))
    }

    fn matches(&self, call: &CheckedCall<'_>) -> bool {
        let has_origin = |wanted: &String| is_origin(call.origin, wanted);
        let is_read_only = call.tool.annotations.read_only == Some(true);
        (self.tool == "*" || self.tool == call.call.name)
            && self.origin.as_ref().is_none_or(has_origin)
            && self.read_only.is_none_or(|wanted| wanted == is_read_only)
            && match self.effect {
                ApprovalEffect::Allow => allows_arguments(&self.arguments, call.given.as_ref()),
                ApprovalEffect::Ask | ApprovalEffect::Deny => {
                    self.arguments.iter().all(|(name, pattern)| call.is_concerned(name, pattern))
                }
            }
    }
}

/// Returns a warning about a tool that does not exist, if one has a similar name.
pub(super) fn misspelled(name: &str, subject: &str, toolset: &Toolset) -> Option<String> {
    let names = toolset.definitions().map(|tool| tool.name.as_str());
    let nearest = ToolName::nearest(name, names)?;
    Some(format!(
        "{subject} approvals concerns the tool `{name}`, which does not exist; did you mean \
         `{nearest}`?"
    ))
}

/// Returns whether an origin is the `wanted` one, which may leave out its digest.
fn is_origin(origin: Option<&ToolOrigin>, wanted: &str) -> bool {
    let origin = origin.map(ToString::to_string).unwrap_or_default();
    origin == wanted || origin.rsplit_once('@').is_some_and(|(name, _)| name == wanted)
}

/// Returns whether a tool declares an argument.
fn has_argument(tool: &ToolDefinition, name: &str) -> bool {
    let properties = tool.input.published().get("properties").and_then(Value::as_object);
    properties.is_some_and(|properties| properties.contains_key(name))
}

/// Returns whether an allowing rule with these patterns matches these arguments.
pub(super) fn allows_arguments(
    patterns: &BTreeMap<String, ArgumentPattern>,
    arguments: Option<&Map<String, Value>>,
) -> bool {
    if patterns.is_empty() {
        return true;
    }
    let Some(arguments) = arguments else { return false };
    let has_others =
        arguments.iter().any(|(name, value)| !value.is_null() && !patterns.contains_key(name));
    !has_others
        && patterns.iter().all(|(name, pattern)| {
            pattern.compare(arguments.get(name), allows) == Comparison::Matches
        })
}

/// Parses the arguments of a call; `None` if they are not an object.
pub(super) fn parsed_arguments(call: &FunctionCall) -> Option<Map<String, Value>> {
    if call.arguments.is_empty() {
        return Some(Map::new());
    }
    match parse_json(&call.arguments) {
        Ok(Value::Object(arguments)) => Some(arguments),
        _ => None,
    }
}

impl ArgumentPattern {
    fn compare(
        &self,
        value: Option<&Value>,
        path: impl Fn(&str, &str) -> Comparison,
    ) -> Comparison {
        let is = |matches| if matches { Comparison::Matches } else { Comparison::Differs };
        let value = value.unwrap_or(&Value::Null);
        match (self, value) {
            (Self::Any, _) => Comparison::Matches,
            (Self::Equals(wanted), value) => compare_values(std::slice::from_ref(wanted), value),
            (Self::OneOf(wanted), value) => compare_values(wanted, value),
            (Self::Path(pattern), Value::String(value)) => path(pattern, value),
            (Self::Range { min, max }, Value::Number(number)) => match number.as_f64() {
                Some(number) => {
                    is(min.is_none_or(|min| number >= min) && max.is_none_or(|max| number <= max))
                }
                None => Comparison::Unclear,
            },
            (Self::Path(_) | Self::Range { .. }, _) => Comparison::Unclear,
        }
    }

    /// Returns the values that the pattern names.
    fn values(&self) -> &[Value] {
        match self {
            Self::Equals(value) => std::slice::from_ref(value),
            Self::OneOf(values) => values,
            Self::Any | Self::Path(_) | Self::Range { .. } => &[],
        }
    }

    fn objection(&self) -> Option<&'static str> {
        match self {
            Self::Path(pattern) => objection(pattern),
            Self::OneOf(values) if values.is_empty() => Some("it lists no value"),
            Self::Range { min: Some(min), max: Some(max) } if min > max => {
                Some("the minimum is above the maximum")
            }
            _ => None,
        }
    }
}

/// Compares a value with several. A value of another type may be converted to one of them before
/// the tool receives it.
fn compare_values(wanted: &[Value], value: &Value) -> Comparison {
    if wanted.iter().any(|wanted| same_value(wanted, value)) {
        return Comparison::Matches;
    }
    let same_type =
        |wanted: &Value| std::mem::discriminant(wanted) == std::mem::discriminant(value);
    if wanted.iter().all(same_type) { Comparison::Differs } else { Comparison::Unclear }
}

/// A call whose arguments are parsed.
struct CheckedCall<'c> {
    call: &'c FunctionCall,
    tool: &'c ToolDefinition,
    origin: Option<&'c ToolOrigin>,
    /// Arguments as the model wrote them; `None` if they are not an object.
    given: Option<Map<String, Value>>,
    /// Arguments as the tool receives them; `None` if they cannot be decoded.
    decoded: OnceCell<Option<Map<String, Value>>>,
}

impl CheckedCall<'_> {
    /// Returns whether a denying or asking rule with this pattern is about the call. In doubt it
    /// is. The decoder converts some strings, such as the case of a UUID, so the argument is
    /// compared as it was written and as the tool receives it, and so are the values of the rule.
    fn is_concerned(&self, name: &str, pattern: &ArgumentPattern) -> bool {
        let given = self.given.as_ref().and_then(|given| given.get(name));
        if self.given.is_some() && given.is_none() && !has_argument(self.tool, name) {
            return false;
        }
        if pattern.compare(given, concerns) != Comparison::Differs {
            return true;
        }
        let decoded = self.decoded.get_or_init(|| self.decode(self.given.clone()?));
        let Some(decoded) = decoded.as_ref().and_then(|decoded| decoded.get(name)) else {
            return false;
        };
        pattern.compare(Some(decoded), concerns) != Comparison::Differs
            || pattern.values().iter().any(|wanted| {
                self.decode_as(name, wanted).is_some_and(|wanted| same_value(&wanted, decoded))
            })
    }

    /// Returns the value of an argument that the tool would receive for `value`.
    fn decode_as(&self, name: &str, value: &Value) -> Option<Value> {
        let mut arguments = self.given.clone()?;
        arguments.insert(name.to_owned(), value.clone());
        self.decode(arguments)?.remove(name)
    }

    fn decode(&self, arguments: Map<String, Value>) -> Option<Map<String, Value>> {
        let (tool, arguments) = (self.tool.name.as_str(), Value::Object(arguments));
        let decoded = self.tool.input.decode_value(tool, &arguments, &DecodeOptions::default());
        Some(decoded.ok()?.into_map())
    }
}

/// Returns the strictest effect of the rules that match a call.
pub(super) fn effect(
    rules: &[ApprovalRule],
    call: &FunctionCall,
    tool: &ToolDefinition,
    origin: Option<&ToolOrigin>,
) -> Option<ApprovalEffect> {
    if rules.is_empty() {
        return None;
    }
    let (given, decoded) = (parsed_arguments(call), OnceCell::new());
    let call = CheckedCall { call, tool, origin, given, decoded };
    rules.iter().filter(|rule| rule.matches(&call)).map(|rule| rule.effect).max()
}

/// Checks rules that do not depend on the tools.
pub(super) fn check(rules: &[ApprovalRule]) -> Result<(), InvalidApprovalRule> {
    if rules.len() > RULES_MAX {
        return Err(InvalidApprovalRule::TooMany(rules.len()));
    }
    for rule in rules {
        for (argument, pattern) in &rule.arguments {
            if let Some(reason) = pattern.objection() {
                let (tool, argument) = (rule.tool.clone(), argument.clone());
                return Err(InvalidApprovalRule::Pattern { tool, argument, reason });
            }
        }
    }
    Ok(())
}
