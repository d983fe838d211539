use serde_json::json;

use super::*;

fn document(paths: Json) -> Json {
    json!({"openapi": "3.0.3", "servers": [{"url": "https://a.example/"}], "paths": paths})
}

#[track_caller]
fn check_problem(document: &Json, expected: &str) {
    let problem = generate(document, None, None).err().unwrap();
    assert!(problem.contains(expected) && !problem.contains('\n'), "{problem}");
}

fn operation(definition: Json) -> Json {
    document(json!({"/a": {"post": definition}}))
}

#[test]
fn json_and_yaml_are_the_same() {
    let yaml = "
openapi: 3.0.3
servers: [{url: 'https://{region}.a.example', variables: {region: {default: eu}}}]
paths:
  /items/{id}:
    get:
      operationId: getItem
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}]
      responses: {200: {description: An item}}
";
    let document = parse("openapi.yaml", yaml).unwrap();
    assert_eq!(
        document["paths"]["/items/{id}"]["get"]["responses"]["200"]["description"],
        "An item"
    );
    let generated = generate(&document, None, None).unwrap();
    assert_eq!(generated.server, "https://eu.a.example");
    assert!(generated.code.contains("name: \"getItem\""), "{}", generated.code);
    assert!(
        generated.code.ends_with("cofferdam_sdk::plugin!(Call<0>; manifest = \"plugin.toml\");\n")
    );
    let generated = generate(&document, Some("http://127.0.0.1:8080/"), None).unwrap();
    assert_eq!(generated.server, "http://127.0.0.1:8080");
    for text in ["", "a: [", "a: *b", "--- 1\n--- 2"] {
        assert!(parse("openapi.yaml", text).is_err(), "{text}");
    }
    assert!(parse("openapi.json", "{\"a\": ").unwrap_err().contains("line 1 column"));
}

#[test]
fn invalid_documents_are_refused_in_a_line() {
    check_problem(&json!({"swagger": "2.0"}), "a document of Swagger 2");
    check_problem(&json!([]), "expected `openapi` to be a version 3");
    check_problem(&json!({"openapi": "3.1.0"}), "there are no `servers`");
    let relative = json!({"openapi": "3.1.0", "servers": [{"url": "/v1"}]});
    check_problem(&relative, "the address of the server is `/v1`");
    check_problem(&document(json!({})), "there are no operations");
    check_problem(&document(json!({"/{id}": {"get": {}}})), "`GET /{id}`: the path has `{id}`");
    check_problem(
        &document(
            json!({"/a": {"get": {"operationId": "x"}}, "/b": {"get": {"operationId": "X"}}}),
        ),
        "are both named `X`",
    );
    check_problem(
        &operation(json!({"parameters": [{"$ref": "#/nowhere"}]})),
        "`#/nowhere` does not exist",
    );
    check_problem(
        &operation(json!({"parameters": [{"$ref": "other.yaml#/a"}]})),
        "is in another file",
    );
    check_problem(&operation(json!({"parameters": [{"name": "a", "in": "body"}]})), "is in `body`");
    check_problem(
        &operation(json!({"parameters": [{"name": "a", "in": "query", "schema": 1}]})),
        "a schema is `1`",
    );
    let many: serde_json::Map<_, _> =
        (0..200).map(|number| (format!("/{number}"), json!({"get": {}}))).collect();
    check_problem(&document(Json::Object(many)), "there are 200 operations");
}

#[test]
fn operations_can_be_selected() {
    let document = document(json!({
        "/a": {"get": {"operationId": "a"}, "post": {}},
        "/b": {"get": {"operationId": "b"}},
    }));
    let generated = generate(&document, None, Some("# mine\na\nPOST /a\n")).unwrap();
    assert_eq!(generated.methods, "GET,POST");
    assert!(generated.code.contains("\"post_a\"") && !generated.code.contains("\"b\""));
    let problem = generate(&document, None, Some("c")).err().unwrap();
    assert_eq!(problem, "operations.txt names `c`, which is not in the document");
}

#[test]
fn schemas_are_inlined_and_converted() {
    let mut document = document(json!({}));
    document["components"] = json!({"schemas": {
        "Node": {"type": "object", "required": ["id", "next"], "properties": {
            "id": {"type": "integer", "readOnly": true},
            "next": {"$ref": "#/components/schemas/Node"},
            "size": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "nullable": true},
            "kind": {"type": "string", "enum": ["a"], "nullable": true, "x-order": 1, "example": "a"}
        }}
    }});
    let inlined = schema::inline(
        &document,
        &json!({"$ref": "#/components/schemas/Node", "description": "A node."}),
    );
    assert_eq!(
        inlined.unwrap(),
        json!({
            "type": "object",
            "required": ["next"],
            "properties": {
                "next": {"description": "Another `Node`."},
                "size": {"type": ["number", "null"], "exclusiveMinimum": 0},
                "kind": {"type": ["string", "null"], "enum": ["a", null]}
            },
            "description": "A node."
        })
    );
    // Ten references to a schema that has ten references, and so on.
    let mut schemas = serde_json::Map::new();
    for level in 0..9 {
        let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
        schemas.insert(format!("L{level}"), json!({"anyOf": vec![next; 10]}));
    }
    schemas.insert("L9".to_owned(), json!({}));
    document["components"]["schemas"] = Json::Object(schemas);
    assert!(schema::inline(&document, &json!({"$ref": "#/components/schemas/L0"})).is_err());
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"items": deep});
    }
    assert!(schema::inline(&document, &deep).is_err());
}

#[test]
fn arguments_are_merged() {
    let body = |schema: Json| json!({"required": true, "content": {"application/json": {"schema": schema}}});
    let object =
        json!({"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    let code = |definition: Json| generate(&operation(definition), None, None).unwrap().code;
    let both = code(json!({
        "parameters": [{"name": "id", "in": "query", "schema": {"type": "integer"}}, {"name": "Authorization", "in": "header"}],
        "requestBody": body(object),
    }));
    assert!(both.contains(r#"members: &[("id_body", "id")]"#), "{both}");
    assert!(!both.contains("Authorization"), "{both}");
    let whole = code(json!({"requestBody": body(json!({"type": "array", "items": {}}))}));
    assert!(
        whole.contains("members: &[]") && whole.contains(r#"\"required\":[\"body\"]"#),
        "{whole}"
    );
    let generated = generate(
        &document(json!({"/a": {
            "get": {},
            "post": {"requestBody": {"content": {"multipart/form-data": {}}}},
        }})),
        None,
        None,
    )
    .unwrap();
    assert_eq!(
        generated.warnings,
        ["no tool for `POST /a`: its body is multipart/form-data, expected JSON, a form or text"]
    );
}
