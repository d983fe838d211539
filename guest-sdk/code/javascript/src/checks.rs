//! Checks before a program runs. Each problem says what to write instead.

use std::collections::BTreeSet;

use crate::catalog::{Catalog, Tool, nearest};
use crate::scan::{Arguments, Facts, Module, ToolCall};

/// Maximum number of problems that are reported together.
const PROBLEMS_MAX: usize = 10;

/// Members of `tools` that are not tools.
pub(crate) const SEARCH: &str = "$search";
/// See [`SEARCH`].
pub(crate) const DESCRIBE: &str = "$describe";

/// Names of other environments, with what to do instead.
const ELSEWHERE: [(&str, Instead); 11] = [
    ("require", Instead::Tools),
    ("fetch", Instead::Tools),
    ("XMLHttpRequest", Instead::Tools),
    ("WebSocket", Instead::Tools),
    ("process", Instead::Tools),
    ("Deno", Instead::Tools),
    ("Bun", Instead::Tools),
    ("Buffer", Instead::Text("use Uint8Array")),
    ("functions", Instead::Text("the tools are members of `tools`")),
    ("tool", Instead::Text("the tools are members of `tools`")),
    ("sandbox_tools", Instead::Text("the tools are members of `tools`")),
];

#[derive(Clone, Copy)]
enum Instead {
    Tools,
    Text(&'static str),
}

/// A problem and the offset that it is at.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) at: u32,
}

/// Checks a program. Parses the catalog only if the program needs it.
pub(crate) fn check<'c>(facts: &Facts, catalog: &dyn Fn() -> &'c Catalog) -> Vec<Problem> {
    let mut problems = Problems { facts, catalog, found: Vec::new() };
    problems.modules();
    problems.elsewhere();
    if !facts.declared.contains(crate::scan::TOOLS) {
        problems.tools();
        problems.calls();
        problems.bare_calls();
    }
    problems.dropped();
    problems.shortened();
    problems.unsupported();
    let mut found = problems.found;
    found.sort_by_key(|problem| problem.at);
    found.truncate(PROBLEMS_MAX);
    found
}

struct Problems<'f, 'c> {
    facts: &'f Facts,
    catalog: &'f dyn Fn() -> &'c Catalog,
    found: Vec<Problem>,
}

impl Problems<'_, '_> {
    fn add(&mut self, at: u32, message: String) {
        self.found.push(Problem { message, at });
    }

    fn granted(&self) -> String {
        match (self.catalog)().ids() {
            ids if ids.is_empty() => "no tools are granted".to_owned(),
            ids => format!("use `tools`; the tools that are granted are: {ids}"),
        }
    }

    fn modules(&mut self) {
        for (module, at) in &self.facts.modules {
            let message = match module {
                Module::Export => "a program has no exports; use `return`".to_owned(),
                Module::Import(name) if is_tools_module(name) => {
                    format!("`tools` is already defined; do not import `{name}`")
                }
                Module::Import(name) if name.is_empty() => {
                    format!("nothing can be imported; {}", self.granted())
                }
                Module::Import(name) => {
                    format!("`{name}` cannot be imported; {}", self.granted())
                }
            };
            self.add(*at, message);
        }
    }

    fn elsewhere(&mut self) {
        let mut seen = BTreeSet::new();
        for (name, at) in &self.facts.free {
            let Some((_, instead)) = ELSEWHERE.iter().find(|(other, _)| other == name) else {
                continue;
            };
            if self.facts.declared.contains(name) || !seen.insert(name) {
                continue;
            }
            let instead = match instead {
                Instead::Text(text) => (*text).to_owned(),
                Instead::Tools => self.granted(),
            };
            self.add(*at, format!("`{name}` does not exist here; {instead}"));
        }
    }

    fn tools(&mut self) {
        let mut seen = BTreeSet::new();
        for reference in &self.facts.tools {
            let id = reference.id.as_str();
            if matches!(id, SEARCH | DESCRIBE) {
                continue;
            }
            let catalog = (self.catalog)();
            if catalog.tool(id).is_some() || !seen.insert(id) {
                continue;
            }
            let ids = catalog.tools.iter().map(|tool| tool.id.as_str());
            let message = match nearest(id, ids) {
                Some(nearest) => format!("unknown tool `{id}`; did you mean `{nearest}`?"),
                None => match catalog.ids() {
                    ids if ids.is_empty() => format!("unknown tool `{id}`; no tools are granted"),
                    ids => format!("unknown tool `{id}`; the tools are: {ids}"),
                },
            };
            self.add(reference.at, message);
        }
    }

    fn calls(&mut self) {
        for call in &self.facts.calls {
            if let Some(tool) = (self.catalog)().tool(&call.id) {
                self.arguments(call, tool);
            }
        }
        for (callee, member, at) in &self.facts.members {
            self.add(
                *at,
                format!(
                    "`{callee}(…)` is a promise and has no `{member}`; write \
                     `(await {callee}(…)).{member}`"
                ),
            );
        }
    }

    fn arguments(&mut self, call: &ToolCall, tool: &Tool) {
        let id = &tool.id;
        let keys = match &call.arguments {
            Arguments::Unknown => return,
            Arguments::NoObject => {
                let names = tool.properties.join(", ");
                let message =
                    format!("`tools.{id}` takes one object with named arguments: {{{names}}}");
                return self.add(call.at, message);
            }
            Arguments::Keys(keys) => keys,
        };
        let is_given = |name: &String| keys.iter().any(|(key, _)| key == name);
        let missing: Vec<_> = tool
            .required
            .iter()
            .filter(|name| !is_given(name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            self.add(call.at, format!("`tools.{id}` needs {}", missing.join(" and ")));
        }
        if tool.closed {
            for (key, at) in keys.iter().filter(|(key, _)| !tool.properties.contains(key)) {
                let known = tool.properties.iter().map(String::as_str);
                let advice = match nearest(key, known) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None if tool.properties.is_empty() => "it takes none".to_owned(),
                    None => format!("its arguments are: {}", tool.properties.join(", ")),
                };
                self.add(*at, format!("`tools.{id}` has no argument `{key}`; {advice}"));
            }
        }
    }

    /// Reports `word_count(…)` instead of `tools.word_count(…)`.
    fn bare_calls(&mut self) {
        let mut seen = BTreeSet::new();
        for (name, at) in &self.facts.free {
            if self.facts.declared.contains(name) || is_global(name) || !seen.insert(name) {
                continue;
            }
            if (self.catalog)().tool(name).is_some() {
                self.add(*at, format!("`{name}` is not defined; write `tools.{name}`"));
            }
        }
    }

    fn dropped(&mut self) {
        for (callee, at) in &self.facts.dropped {
            if !self.facts.declared.contains(callee) {
                self.add(*at, format!("un-awaited call; write `await {callee}(…)`"));
            }
        }
    }

    fn shortened(&mut self) {
        for at in &self.facts.shortened {
            self.add(
                *at,
                "this string is a shortened copy of a value; load the whole value in the program, \
                 for example `await load(\"result_1\")`"
                    .to_owned(),
            );
        }
    }

    fn unsupported(&mut self) {
        for (syntax, at) in &self.facts.unsupported {
            self.add(*at, format!("`{syntax}` is not supported; use an object"));
        }
    }
}

fn is_tools_module(name: &str) -> bool {
    let name = name.trim_start_matches(['.', '/', '@']);
    ["tools", "functions", "sandbox_tools", "sandbox-tools", "sandbox"].contains(&name)
}

/// Returns whether a name is one that every program has. Only saves reading the catalog.
fn is_global(name: &str) -> bool {
    const GLOBALS: [&str; 32] = [
        "Array",
        "BigInt",
        "Boolean",
        "Date",
        "Error",
        "Infinity",
        "JSON",
        "Map",
        "Math",
        "NaN",
        "Number",
        "Object",
        "Promise",
        "Proxy",
        "RangeError",
        "Reflect",
        "RegExp",
        "Set",
        "String",
        "Symbol",
        "ToolError",
        "TypeError",
        "Uint8Array",
        "console",
        "globalThis",
        "isNaN",
        "load",
        "parseFloat",
        "parseInt",
        "setTimeout",
        "store",
        "undefined",
    ];
    GLOBALS.contains(&name)
}
