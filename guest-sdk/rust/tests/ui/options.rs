use cofferdam_sdk::tool;

/// Unknown.
#[tool(readonly)]
fn unknown() {}

/// No text.
#[tool(title = 1)]
fn title() {}

/// No flag.
#[tool(read_only = "yes")]
fn flag() {}

/// Twice.
#[tool(read_only, read_only)]
fn twice() {}

/// Bad name.
#[tool(name = "word count")]
fn name() {}

/// Bad name.
#[tool]
fn größe() {}

/// Bad group.
#[tool(group = "a b")]
fn group() {}

fn main() {}
