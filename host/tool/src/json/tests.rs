use serde_json::{Value, json};

use super::*;

fn parse(text: &str) -> Option<Value> {
    read(text.as_bytes(), 128).ok().and_then(|json| json.to_value())
}

#[test]
fn everything_of_rfc_8259_and_nothing_else() {
    let good = r#" {"a" : [1, -0.5e+3, true, false, null, "x\n\u00e9\ud83d\ude00\/"] , "b":{}} "#;
    assert_eq!(parse(good), serde_json::from_str(good).ok());
    for bad in [
        "",
        " ",
        "{",
        "}",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "[1 2]",
        "01",
        "-",
        "+1",
        ".5",
        "5.",
        "1e",
        "0x1",
        "tru",
        "nulll",
        "\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "\"\t\"",
        "\"\\ud800\"",
        "\"\\ud800\\u0041\"",
        "\"\\udc00\"",
        "1 1",
        "// c\n1",
        "NaN",
        "Infinity",
        "\u{feff}1",
        "\u{a0}1",
        "[",
        "{\"a\"",
        "{\"a\":",
        "{1:2}",
    ] {
        assert_eq!(read(bad.as_bytes(), 128).ok(), None, "{bad:?}");
    }
    assert_eq!(read(b"\"\xff\"", 128).unwrap_err().offset, 1);
}

#[test]
fn values_keep_the_text_they_were_read_from() {
    let json = read(br#" { "a" : [ 1 , 1e400 ] } "#, 128).unwrap();
    assert_eq!(json.raw(), r#"{ "a" : [ 1 , 1e400 ] }"#);
    let list = json.as_object().unwrap().get("a").unwrap();
    assert_eq!(list.raw(), "[ 1 , 1e400 ]");
    assert_eq!(list.as_array().unwrap()[1].raw(), "1e400");
    assert_eq!(json.to_value(), None, "no float holds 1e400");
}

#[test]
fn of_repeated_keys_the_last_counts_and_is_remembered() {
    let json = read(br#"{"a":1,"b":2,"a":3}"#, 128).unwrap();
    assert_eq!(json.to_value(), Some(json!({"b": 2, "a": 3})));
    assert_eq!(json.as_object().unwrap().repeated(), Some("a"));
    let many: Vec<String> = (0..40).map(|n| format!("\"k{}\":{n}", n % 30)).collect();
    let text = format!("{{{}}}", many.join(","));
    let json = read(text.as_bytes(), 128).unwrap();
    assert_eq!(json.to_value(), serde_json::from_str(&text).ok());
    assert_eq!(json.as_object().unwrap().repeated(), Some("k0"));
}

#[test]
fn what_is_wrong_with_a_string_is_found_where_it_is() {
    let offset = |text: &str| read(text.as_bytes(), 128).err().map(|malformed| malformed.offset);
    assert_eq!(offset("[\"abc"), Some(5));
    assert_eq!(offset("[\"a\tb\"]"), Some(3));
    assert_eq!(offset("[\"a\tb"), Some(3));
    assert_eq!(offset("\"a\\nb\u{1}c\""), Some(5));
    assert_eq!(offset("\"\u{7f}é\""), None);
}

#[test]
fn each_control_character_is_found_wherever_it_is() {
    for length in 1..20 {
        for at in 0..length {
            for byte in 0..0x80 {
                // 0x20 and 0xA0 are the bytes next to the limit, without and with the high bit.
                let mut text = " \u{20}\u{a0}~".chars().cycle().take(length).collect::<Vec<_>>();
                text[at] = char::from(byte);
                let quoted = format!("\"{}\"", text.iter().collect::<String>());
                let expected = serde_json::from_str::<Value>(&quoted).ok();
                assert_eq!(parse(&quoted), expected, "{quoted:?}");
            }
        }
    }
}

#[test]
fn levels_are_counted_in_any_text_and_bound_the_reader() {
    assert_eq!(levels(br#"{"a":[{"b":"[[[\"[["}]}"#), 3);
    assert_eq!(levels(b"]]][[["), 3);
    assert_eq!(levels(br#"["\\",["[\"[",[]]]"#), 3);
    for broken in [r#"["["#, r#"["[\"#, r#"["[\"["#] {
        assert_eq!(levels(broken.as_bytes()), 1, "{broken}");
    }
    assert_eq!(levels(b"5"), 0);
    let deep = "[".repeat(129) + &"]".repeat(129);
    assert!(read(deep.as_bytes(), 128).is_err());
    assert!(read(deep.as_bytes(), 129).is_ok());
    assert!(read("[".repeat(1_000_000).as_bytes(), 128).is_err());
    assert_eq!(value_levels(&json!({"a": [{"b": 1}]})), 3);
    assert_eq!(value_levels(&json!(1)), 0);
}

#[test]
fn numbers_are_exact_where_64_bits_allow() {
    let text = |text| number(text).map(|number| number.to_string());
    assert_eq!(text("18446744073709551615").as_deref(), Some("18446744073709551615"));
    assert_eq!(text("-9223372036854775808").as_deref(), Some("-9223372036854775808"));
    assert_eq!(text("007").as_deref(), Some("7"));
    assert_eq!(text("-0").as_deref(), Some("-0.0"));
    assert!(number("18446744073709551616").unwrap().is_f64());
    assert_eq!((number("1e400"), number("-1e400"), number("x")), (None, None, None));
    assert_eq!(integer("+0005"), Some(5));
    assert_eq!(integer("-0"), Some(0));
    assert_eq!(integer(&"9".repeat(1000)), None);
}

#[test]
fn comparison_does_not_go_through_floats() {
    let order = |left: &str, right: &str| compare(&number(left).unwrap(), &number(right).unwrap());
    assert!(order("9007199254740993", "9007199254740992.0").is_gt());
    assert!(order("18446744073709551615", "18446744073709551616").is_lt());
    assert!(order("1", "1.0").is_eq() && order("-0", "0").is_eq());
    assert!(
        order("-1", "-1.5").is_gt() && order("1", "1.5").is_lt() && order("2", "1e300").is_lt()
    );
    assert!(order("-1e300", "-5").is_lt() && order("0.1", "0.2").is_lt());
}

#[test]
fn multiples_are_those_of_the_decimal_digits() {
    let multiple =
        |value: &str, of: &str| is_multiple(&number(value).unwrap(), &number(of).unwrap());
    assert!(
        multiple("10", "5") && !multiple("11", "5") && multiple("0", "7") && multiple("-10", "5")
    );
    assert!(multiple("0.3", "0.1") && multiple("4.02", "0.01") && !multiple("0.35", "0.1"));
    assert!(multiple("1e300", "2") && multiple("1e300", "1e-300") && !multiple("1e-300", "1e300"));
    assert!(multiple("18446744073709551615", "5") && !multiple("18446744073709551615", "2"));
    assert!(!multiple("1", "0"));
}

#[test]
fn equality_is_by_value() {
    assert!(equal(&json!({"a": 1, "b": [1.0]}), &json!({"b": [1], "a": 1.0})));
    assert!(
        !equal(&json!(true), &json!(1))
            && !equal(&json!("1"), &json!(1))
            && !equal(&json!([1]), &json!([1, 1]))
    );
    assert!(!equal(&json!({"a": null}), &json!({"b": null})));
    let mut numbers: Vec<Value> = (0..1000).map(Value::from).collect();
    assert!(!has_duplicates(&numbers));
    numbers.push(json!(999.0));
    assert!(has_duplicates(&numbers));
    let objects: Vec<Value> = (0..100).map(|n| json!({"a": n % 99, "b": 1})).collect();
    assert!(has_duplicates(&objects));
}
