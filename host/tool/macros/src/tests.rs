//! Errors of wrong uses, and what the parser reads from correct ones.

use quote::ToTokens as _;
use syn::ItemFn;

use crate::function::{FunctionParameter, ToolFunction, read};

/// Reads `#[tool(options)]` on a function, which is returned without the macro's attributes.
fn parse(options: &str, function: &str) -> (syn::Result<ToolFunction>, ItemFn) {
    let mut function = syn::parse_str(function).unwrap();
    (read(options.parse().unwrap(), &mut function), function)
}

/// Returns the messages of all errors in order.
fn errors(options: &str, function: &str) -> Vec<String> {
    let error = parse(options, function).0.err().expect("the use is wrong");
    error.into_iter().map(|error| error.to_string()).collect()
}

#[test]
fn a_function_is_read_with_its_context() {
    let (tool, function) = parse(
        r#"name = "text.find", title = "Find", group = "text", read_only, destructive = false, output_schema"#,
        "/// Finds.
         ///
         ///   Indented.
         pub async fn find(
             /// The pattern.
             pattern: String,
             context: &cofferdam::tool::CallContext,
             #[tool(default = 3)] #[cfg(unix)] r#type: u32,
         ) -> Vec<u32> { Vec::new() }",
    );
    let tool = tool.unwrap();
    assert_eq!((tool.name.as_str(), tool.is_async), ("text.find", true));
    assert_eq!(tool.description, "Finds.\n\n  Indented.");
    assert_eq!(tool.options.title.unwrap().value(), "Find");
    assert_eq!(tool.options.group.unwrap().value(), "text");
    assert!(tool.options.output_schema);
    let hints: Vec<_> =
        tool.options.hints.iter().map(|(hint, value)| (hint.to_string(), *value)).collect();
    assert_eq!(hints, [("read_only".to_owned(), true), ("destructive".to_owned(), false)]);
    let [
        FunctionParameter::Argument(pattern),
        FunctionParameter::Context,
        FunctionParameter::Argument(kind),
    ] = tool.parameters.as_slice()
    else {
        panic!("the second parameter is the context");
    };
    assert_eq!(pattern.description.as_deref(), Some("The pattern."));
    assert!(pattern.default.is_none() && kind.default.is_some());
    assert_eq!(kind.name, "type");
    let text = function.sig.to_token_stream().to_string();
    assert!(!text.contains("tool (") && !text.contains("doc"), "{text}");
    assert!(text.contains("cfg (unix)"), "{text}");
}

#[test]
fn a_tool_has_a_description() {
    let message = "the tool `count` has no description: say in a doc comment (`/// …`) what it does \
                   and when to use it, because a model knows nothing else about it";
    assert_eq!(errors("", "fn count() {}"), [message]);
    let long = format!("/// {}\nfn count() {{}}", "a".repeat(4097));
    assert_eq!(errors("", &long), ["the description has 4097 bytes; at most 4096 are allowed"]);
    let computed = "#[doc = concat!(\"a\", \"b\")] fn count() {}";
    assert_eq!(errors("", computed), ["write the description as a doc comment"]);
}

#[test]
fn options_are_known_and_given_once() {
    let error = |options: &str| errors(options, "/// Counts.\nfn count() {}").join("\n");
    assert_eq!(
        error("readonly"),
        "unknown option `readonly`; expected one of `name`, `title`, `group`, `output_schema`, \
         `read_only`, `destructive`, `idempotent`, `open_world`, `long_running`"
    );
    assert_eq!(error("title = 1"), "expected string literal");
    assert_eq!(error("read_only = \"yes\""), "expected boolean literal");
    assert_eq!(error("read_only, read_only"), "this option is given twice");
    assert_eq!(
        error("name = \"word count\""),
        "`word count` cannot be the name of a tool: expected 1 to 128 characters from \
         `A-Z a-z 0-9 _ . -`"
    );
    assert_eq!(
        error("group = \"a b\""),
        "invalid group name: expected 1 to 64 characters from `A-Z a-z 0-9 _ . -`"
    );
}

#[test]
fn a_signature_has_one_schema() {
    let error = |function: &str| errors("", &format!("/// Counts.\n{function}"));
    let generic = "a tool cannot be generic: it has a single input schema";
    assert_eq!(error("fn count<T>(value: T) {}"), [generic]);
    assert_eq!(error("fn count(value: impl Display) {}"), [generic]);
    assert_eq!(
        error("unsafe fn count() {}"),
        ["a tool cannot be `unsafe`: a model calls it with any arguments"]
    );
    assert_eq!(error("fn count(&self) {}"), ["a tool is a plain function: it has no `self`"]);
}

#[test]
fn parameters_are_named_and_owned() {
    let error = |parameter: &str| {
        errors("", &format!("/// Counts.\nfn count({parameter}) {{}}")).join("\n")
    };
    assert_eq!(
        error("(a, b): (u32, u32)"),
        "a tool's parameter must be a plain name, which is the name that the model uses"
    );
    let owned = "a tool's parameters own their values, which are decoded from JSON: write";
    assert_eq!(error("text: &str"), format!("{owned} `String`"));
    assert_eq!(error("list: Option<Vec<&'static [u8]>>"), format!("{owned} a `Vec`"));
    assert_eq!(
        error("#[tool(default = None)] value: Option<String>"),
        "a parameter with a default is never `None`: leave out the default or the `Option`"
    );
    assert_eq!(
        error("#[tool(min = 1)] value: u32"),
        "unknown option; a parameter can have `default` or `default = …`"
    );
    assert_eq!(
        error("#[tool(default)] #[tool(default)] value: u32"),
        "this parameter already has a `#[tool]`: write one"
    );
    assert_eq!(error("#[tool(default, default)] value: u32"), "this option is given twice");
}

#[test]
fn the_context_is_one_shared_reference() {
    let error = |parameters: &str| errors("", &format!("/// Counts.\nfn count({parameters}) {{}}"));
    let form = "a tool takes the context as `&CallContext`";
    assert_eq!(error("context: CallContext"), [form]);
    assert_eq!(error("context: &mut tool::CallContext"), [form]);
    assert_eq!(
        error("a: &CallContext, b: &CallContext"),
        ["a tool has one `&CallContext` at most"]
    );
    assert_eq!(
        error("#[tool(default)] context: &CallContext"),
        ["the context does not come from the model, so it has no options"]
    );
}

#[test]
fn all_errors_of_a_function_are_reported() {
    let all = errors("readonly", "unsafe fn count(text: &str, (a, b): (u32, u32)) {}");
    assert_eq!(all.len(), 5, "{all:?}");
}

#[test]
fn generated_code_names_only_the_library_that_exports_the_attribute() {
    let function = "/// Counts.
        fn count(#[tool(default)] a: u32, context: &CallContext) -> u32 { a }";
    let options = "output_schema, group = \"g\", title = \"t\", read_only".parse().unwrap();
    let library = quote::quote!(::cofferdam::tool);
    let made = crate::make_tool(&library, options, function.parse().unwrap()).to_string();
    assert!(!made.contains("cofferdam_tool"), "{made}");
    let named = made.matches(":: cofferdam :: tool :: ").count();
    assert_eq!(made.matches("cofferdam").count(), named, "{made}");
    assert!(named > 8, "{made}");
}

#[test]
fn the_attribute_goes_on_a_function() {
    let item = "struct Counter { count: u32 }".parse().unwrap();
    let made = crate::make_tool(&quote::quote!(::cofferdam_tool), "".parse().unwrap(), item);
    let made = made.to_string();
    assert!(made.contains("`#[tool]` goes on a function"), "{made}");
    assert!(made.contains("struct Counter"), "{made}");
}
