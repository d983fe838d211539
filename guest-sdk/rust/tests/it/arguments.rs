use cofferdam_sdk::{json, testing, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Deserialize, Serialize, JsonSchema, Debug)]
struct Point {
    x: f64,
    y: Option<f64>,
}

const TIMES: u32 = 3;

/// Says what it got.
#[tool]
fn echo(
    text: String,
    #[tool(default = TIMES + 1)] times: u32,
    #[tool(default = "en")] language: String,
    #[tool(default = vec![1, 2])] list: Vec<i8>,
    point: Option<Point>,
) -> String {
    format!("{text} {times} {language} {list:?} {point:?}")
}

fn check(arguments: Value, expected: &str) {
    let found = match testing::call::<echo>(arguments.clone()) {
        Ok(value) => value.as_str().unwrap().to_owned(),
        Err(failure) => failure.to_string(),
    };
    assert_eq!(found, expected, "{arguments}");
}

#[test]
fn the_function_can_still_be_called() {
    assert_eq!(echo("a".into(), 1, "de".into(), vec![], None), "a 1 de [] None");
}

#[test]
fn absent_and_null_are_alike() {
    check(json!({"text": "a"}), "a 4 en [1, 2] None");
    check(
        json!({"text": "a", "times": null, "language": null, "list": null, "point": null}),
        "a 4 en [1, 2] None",
    );
    check(json!({}), "Required argument 'text' was not supplied to 'echo'.");
    check(json!({"text": null}), "Required argument 'text' was not supplied to 'echo'.");
}

#[test]
fn given_values_win_over_defaults() {
    check(
        json!({"text": "", "times": 0, "language": "", "list": [], "point": {"x": 1, "y": null}}),
        " 0  [] Some(Point { x: 1.0, y: None })",
    );
    check(json!({"text": "a", "unknown": 1}), "a 4 en [1, 2] None");
}

#[test]
fn wrong_values_are_failures() {
    check(
        json!({"text": "a", "times": -1}),
        "Argument 'times' of 'echo' cannot be used: invalid value: integer `-1`, expected u32.",
    );
    check(
        json!({"text": "a", "point": {"y": 1}}),
        "Argument 'point' of 'echo' cannot be used: missing field `x`.",
    );
    check(json!("text"), "Arguments for 'echo' are not a JSON object.");
}

mod elsewhere {
    macro_rules! shouting {
        ($name:ident, $ty:ty) => {
            /// Shouts, out of a macro.
            #[cofferdam_sdk::tool]
            pub(crate) fn $name(
                arguments: $ty,
                #[tool(default)] schema: bool,
                definition: Option<bool>,
            ) -> String {
                format!("{}! {schema} {definition:?}", arguments.to_uppercase())
            }
        };
    }
    shouting!(shout, String);
}
use elsewhere::shout;

/// Parameters may be named like anything that the macro writes, and like the function.
#[test]
fn names_do_not_clash() {
    let value = testing::call::<shout>(json!({"arguments": "a"})).unwrap();
    assert_eq!(value, shout("a".into(), false, None));

    /// Itself.
    #[tool]
    fn text(text: String) -> String {
        text
    }
    assert_eq!(testing::call::<text>(json!({"text": "b"})).unwrap(), "b");
}

cofferdam_sdk::plugin!(echo, elsewhere::shout);
