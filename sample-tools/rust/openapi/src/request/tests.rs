use cofferdam_sdk::testing;
use serde_json::json;

use super::*;
use crate::OPERATIONS;
use crate::operation::{Body, Call};

#[track_caller]
fn built(name: &str, arguments: Json) -> Result<Request, String> {
    let operation = OPERATIONS.iter().find(|operation| operation.name == name).unwrap();
    let mut arguments = Arguments::parse(operation.name, &arguments.to_string()).unwrap();
    Request::build(crate::SERVER, operation, &mut arguments).map_err(|failure| failure.to_string())
}

const fn parameter(name: &'static str, location: Location, style: Style) -> Parameter {
    Parameter { argument: name, name, location, style, is_required: false }
}

#[test]
fn requests_of_the_document_are_built() {
    let request = built(
        "list_notes",
        json!({"tag": ["a b", "ü"], "created_from": "2026-01-01", "limit": 5, "X-Request-Id": "r-1"}),
    )
    .unwrap();
    assert_eq!(request.to_string(), "GET https://notes.example.com/v1/notes");
    assert_eq!(request.path, "/v1/notes?tag=a%20b&tag=%C3%BC&created%5Bfrom%5D=2026-01-01&limit=5");
    assert_eq!(request.headers[1], ("x-request-id".to_owned(), "r-1".to_owned()));
    assert_eq!(request.body, None);
    assert!(request.url().starts_with("https://notes.example.com/v1/notes?tag="));
    let request = built("create_note", json!({"text": "x", "tags": ["a"]})).unwrap();
    assert_eq!((request.method, request.path.as_str()), (Method::Post, "/v1/notes"));
    assert_eq!(request.body.as_deref(), Some(&br#"{"text":"x","tags":["a"]}"#[..]));
    assert_eq!(request.headers[1], ("content-type".to_owned(), "application/json".to_owned()));
    assert_eq!(
        built("delete_note", json!({"id": "a..b?c #ü"})).unwrap().path,
        "/v1/notes/a..b%3Fc%20%23%C3%BC"
    );
    for id in ["a/b", "%2e%2e", "\\..", "a%2Fb", "..;x", ".;", "\0"] {
        let failure = built("delete_note", json!({"id": id})).unwrap_err();
        assert!(failure.contains("which a server can read as another path"), "{failure}");
    }
    assert_eq!(built("get_note", json!({})).unwrap_err(), "the argument `id` is missing");
    assert!(built("get_note", json!({"id": ".."})).is_err());
    assert!(built("list_notes", json!({"X-Request-Id": "a\nb"})).is_err());
}

#[test]
fn parameters_have_styles() {
    const PARAMETERS: &[Parameter] = &[
        parameter("commas", Location::Query, Style::Commas),
        parameter("repeated", Location::Query, Style::Repeated),
        parameter("spaces", Location::Query, Style::Spaces),
        parameter("pipes", Location::Query, Style::Pipes),
        parameter("deep", Location::Query, Style::Deep),
        parameter("json", Location::Query, Style::Json),
        parameter("list", Location::Path, Style::Commas),
    ];
    let operation = Operation {
        name: "styles",
        title: None,
        description: "",
        input_schema: "{}",
        method: Method::Get,
        path: "/{list}",
        parameters: PARAMETERS,
        body: None,
    };
    let path = |arguments: Json| {
        let mut arguments = Arguments::parse("styles", &arguments.to_string()).unwrap();
        Request::build("http://a.example:8080", &operation, &mut arguments).unwrap().path
    };
    let list = json!([1, "b"]);
    assert_eq!(
        path(
            json!({"commas": list, "repeated": list, "spaces": list, "pipes": list, "list": list})
        ),
        "/1%2Cb?commas=1%2Cb&repeated=1&repeated=b&spaces=1%20b&pipes=1%7Cb"
    );
    let object = json!({"k": 1, "l": true});
    assert_eq!(
        path(
            json!({"commas": object, "repeated": object, "deep": object, "json": object, "list": "x"})
        ),
        "/x?commas=k%2C1%2Cl%2Ctrue&k=1&l=true&deep%5Bk%5D=1&deep%5Bl%5D=true\
         &json=%7B%22k%22%3A1%2C%22l%22%3Atrue%7D"
    );
}

#[test]
fn bodies_have_encodings() {
    let body = |encoding, arguments: Json, members: &'static [(&'static str, &'static str)]| {
        let operation = Operation {
            name: "bodies",
            title: None,
            description: "",
            input_schema: "{}",
            method: Method::Put,
            path: "/",
            parameters: &[],
            body: Some(Body { encoding, media_type: "x/y", members }),
        };
        let mut arguments = Arguments::parse("bodies", &arguments.to_string()).unwrap();
        let request = Request::build("https://a.example", &operation, &mut arguments).unwrap();
        request.body.map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let both: &[(&str, &str)] = &[("a", "a"), ("b_body", "b")];
    let arguments = json!({"a": [1, 2], "b_body": "x y"});
    assert_eq!(body(Encoding::Form, arguments.clone(), both).as_deref(), Some("a=1&a=2&b=x%20y"));
    assert_eq!(body(Encoding::Json, arguments, both).as_deref(), Some(r#"{"a":[1,2],"b":"x y"}"#));
    assert_eq!(body(Encoding::Text, json!({"body": "hello"}), &[]).as_deref(), Some("hello"));
    assert_eq!(body(Encoding::Json, json!({"body": [null]}), &[]).as_deref(), Some("[null]"));
    assert_eq!(body(Encoding::Json, json!({}), &[]), None);
}

#[test]
fn tools_are_defined_by_the_document() {
    let definition = testing::definition::<Call<0>>();
    assert_eq!((definition.name, definition.title), ("list_notes", Some("List notes")));
    assert_eq!(definition.annotations.read_only, Some(true));
    assert_eq!(definition.input_schema["properties"]["limit"]["maximum"], 100);
    let definition = testing::definition::<Call<1>>();
    assert_eq!(definition.annotations.read_only, Some(false));
    assert_eq!(definition.input_schema["required"], json!(["text"]));
    assert_eq!(
        definition.input_schema["properties"]["tags"]["items"],
        json!({"type": "string", "pattern": "^[a-z]+$"})
    );
    assert!(testing::call::<Call<2>>(json!({"id": "7"})).is_err());
}
