use cofferdam_tool::declaration::Declaration;
use serde_json::{Value, json};

use super::declaration;
use crate::Language;
use crate::types::Type;

fn declared(language: Language, schema: Value, output: Option<Value>) -> String {
    let mut tool = Declaration::new("find", "Finds things.", schema.to_string());
    tool.output_schema = output.map(|output| output.to_string());
    declaration(language, "find", &tool.compile().unwrap(), None)
}

fn both(schema: Value, output: Option<Value>) -> (String, String) {
    (
        declared(Language::JavaScript, schema.clone(), output.clone()),
        declared(Language::Python, schema, output),
    )
}

#[test]
fn arguments_and_results_are_typed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "kinds": {"type": "array", "items": {"enum": ["a", "b"]}},
            "limit": {"type": ["integer", "null"]},
        },
        "required": ["query"],
    });
    let output = json!({
        "type": "object",
        "properties": {"hits": {"type": "array", "items": {
            "type": "object",
            "properties": {"name": {"type": "string"}, "score": {"type": "number"}},
            "required": ["name"],
        }}},
        "required": ["hits"],
    });
    let (typescript, python) = both(schema, Some(output));
    assert_eq!(
        typescript,
        "/** Finds things. */\n\
         find(args: { query: string; kinds?: (\"a\" | \"b\")[]; limit?: number | null }): \
         Promise<{ hits: { name: string; score?: number }[] }>\n"
    );
    assert_eq!(
        python,
        "class FindResult(TypedDict):\n    \
             hits: list[FindResultHitsItem]\n\
         class FindResultHitsItem(TypedDict):\n    \
             name: str\n    \
             score: NotRequired[float]\n\
         async def find(*, query: str, kinds: list[Literal[\"a\", \"b\"]] = ..., \
         limit: int | None = ...) -> FindResult:\n    \
             \"\"\"Finds things.\"\"\"\n"
    );
}

#[test]
fn parts_that_no_type_expresses_are_comments() {
    let schema = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "default": 3,
                  "description": "Number of\n things */ here."},
            "d": {"type": "string", "format": "date", "pattern": "^2"},
        },
        "dependentRequired": {"n": ["d"]},
    });
    let (typescript, python) = both(schema, None);
    assert_eq!(
        typescript,
        "/** Finds things. */\n\
         find(args?: {\n  \
           n?: number // Number of things */ here.; 1 to 9; default 3\n  \
           d?: string // format date; pattern ^2\n\
         }): Promise<unknown> // not expressed here: dependentRequired\n"
    );
    assert_eq!(
        python,
        "async def find(\n    \
             *,\n    \
             n: int = ...,  # Number of things */ here.; 1 to 9; default 3\n    \
             d: str = ...,  # format date; pattern ^2\n\
         ) -> Any:\n    \
             \"\"\"Finds things. not expressed here: dependentRequired.\"\"\"\n"
    );
}

/// Rows of complaints about converters: nothing is lost without a word.
#[test]
fn unions_references_and_tuples_stay() {
    let union_at_the_top = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "required": ["kind"],
        "oneOf": [
            {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ],
    });
    let cases = [
        (union_at_the_top, "{ kind: string } & ({ id: number } | { name: string })"),
        (
            json!({"type": "object", "properties": {"at": {
                "type": "array", "prefixItems": [{"type": "number"}, {"type": "string"}],
                "items": false,
            }}}),
            "{ at?: [number, string] }",
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string", "nullable": true}}}),
            "{ a?: string | null }",
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "integer"}}),
            "{ [key: string]: number }",
        ),
        (json!({"type": "object", "properties": {"a-b": {"const": 3}}}), "{ \"a-b\"?: 3 }"),
    ];
    for (schema, expected) in cases {
        let converted = crate::types::convert(&schema, "Find");
        assert_eq!(super::typescript::type_text(&converted.root), expected, "{schema}");
    }
}

#[test]
fn a_type_can_contain_itself() {
    let schema = json!({
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        }},
    });
    let output = json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
        {"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/a"}},
    ]}}});
    let (typescript, python) = both(schema, Some(output));
    assert!(typescript.contains("type FindNode = { children?: FindNode[] }\n"), "{typescript}");
    assert!(typescript.contains("type FindResultA = null | FindResultA[]\n"), "{typescript}");
    assert!(typescript.contains("Promise<FindResultA>"), "{typescript}");
    assert!(
        python.contains("class FindNode(TypedDict):\n    children: NotRequired[list[FindNode]]"),
        "{python}"
    );
    assert!(python.contains("type FindResultA = None | list[FindResultA]\n"), "{python}");
}

#[test]
fn names_that_are_no_keyword_arguments_go_into_a_dictionary() {
    let schema = json!({
        "type": "object",
        "properties": {"class": {"type": "string"}, "x": {"type": "integer"}},
        "required": ["class"],
    });
    let python = declared(Language::Python, schema, None);
    assert_eq!(
        python,
        "FindArgs = TypedDict(\"FindArgs\", {\"class\": str, \"x\": NotRequired[int]})\n\
         async def find(args: FindArgs, /) -> Any:\n    \"\"\"Finds things.\"\"\"\n"
    );
}

#[test]
fn observed_results_are_marked() {
    let tool = Declaration::new("find", "Finds.", r#"{"type":"object"}"#).compile().unwrap();
    let ty: Type = Type::observed([&json!({"a": 1})]);
    let typescript = declaration(Language::JavaScript, "find", &tool, Some(&ty));
    assert!(typescript.contains("Promise<{ a: number } /* observed */>"), "{typescript}");
    let python = declaration(Language::Python, "find", &tool, Some(&ty));
    assert!(
        python.contains("-> FindResult:\n    \"\"\"Finds. (Result type: observed.)"),
        "{python}"
    );
}

#[test]
fn wide_and_deep_schemas_end() {
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "object", "properties": {"a": deep.clone(), "b": {"anyOf": [
            {"type": "null"}, {"type": "integer"},
        ]}}});
    }
    let converted = crate::types::convert(&deep, "Find");
    assert!(super::typescript::type_text(&converted.root).contains("unknown"));
    for odd in
        [json!(true), json!([]), json!({"$ref": "https://example.com/x"}), json!({"$ref": "#/a/b"})]
    {
        assert_eq!(crate::types::convert(&odd, "Find").root, Type::Unknown);
    }
}
