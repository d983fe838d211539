use serde_json::json;

use super::*;

fn label(integrity: Integrity, confidentiality: Confidentiality, principals: &[&str]) -> Label {
    let principals = principals.iter().map(|name| (*name).to_owned()).collect();
    Label { integrity, confidentiality, principals, ..Label::default() }
}

fn to(max: Confidentiality, authorized: &[&str]) -> Destination {
    Destination { max, authorized: authorized.iter().map(|name| (*name).to_owned()).collect() }
}

#[test]
fn combining_never_forgets_anything() {
    use Confidentiality::{Private, Public, UserIdentity};
    use Integrity::{Trusted, Untrusted};
    assert_eq!(Label::combine([]), label(Trusted, Public, &[]));
    let one = label(Trusted, UserIdentity, &["a"]);
    let other = label(Untrusted, Private, &["b"]);
    assert_eq!(Label::combine([&one, &other]), label(Untrusted, UserIdentity, &["a", "b"]));
    assert_eq!(Label::combine([&other, &one]), Label::combine([&one, &other, &one]));
}

#[test]
fn data_of_principals_goes_where_all_of_them_are_known() {
    use Confidentiality::{Private, Public, UserIdentity};
    let of = |names: &[&str]| label(Integrity::Trusted, UserIdentity, names);
    assert!(of(&["a"]).may_flow(&to(UserIdentity, &["a", "b"])));
    assert!(!of(&["a", "c"]).may_flow(&to(UserIdentity, &["a", "b"])));
    assert!(!of(&[]).may_flow(&to(UserIdentity, &["a"])));
    assert!(!of(&["a"]).may_flow(&to(Private, &["a"])));
    // The principals of data below `UserIdentity` do not matter.
    assert!(label(Integrity::Trusted, Private, &["z"]).may_flow(&to(Private, &[])));
    assert!(!label(Integrity::Trusted, Private, &[]).may_flow(&to(Public, &[])));
}

#[test]
fn a_label_in_meta_counts_if_both_words_are_valid() {
    let read = |meta: serde_json::Value| Label::from_meta(meta.as_object().unwrap());
    let valid =
        json!({"ifc": {"integrity": "trusted", "confidentiality": "private", "principals": ["a"]}});
    assert_eq!(read(valid), Some(label(Integrity::Trusted, Confidentiality::Private, &["a"])));
    for wrong in [
        json!({}),
        json!({"ifc": null}),
        json!({"ifc": []}),
        json!({"ifc": {"integrity": "trusted"}}),
        json!({"ifc": {"confidentiality": "public"}}),
        json!({"ifc": {"integrity": "TRUSTED", "confidentiality": "public"}}),
        json!({"ifc": {"integrity": "trusted", "confidentiality": "secret"}}),
        json!({"ifc": {"integrity": true, "confidentiality": "public"}}),
        json!({"ifc": {"integrity": {"trusted": null}, "confidentiality": "public"}}),
    ] {
        assert_eq!(read(wrong.clone()), None, "{wrong}");
    }
}

#[test]
fn what_a_stranger_says_only_makes_stricter() {
    let resolve = |program: Value, said: Value| {
        let read = |stated| serde_json::from_value::<StatedLabels>(stated).unwrap();
        ToolLabels::resolve(&read(program), &read(said), StatedBy::ThirdParty)
    };
    let loose = json!({"source_integrity": "trusted", "confidentiality": "public", "accepts_untrusted": true,
        "max_allowed_confidentiality": "user_identity", "authorized_principals": ["a"]});
    let found = resolve(json!({}), loose.clone());
    assert_eq!((found.result, found.accepts_untrusted), (Label::untrusted(), false));
    let strict = json!({"source_integrity": "untrusted", "confidentiality": "private",
        "accepts_untrusted": false, "max_allowed_confidentiality": "public", "authorized_principals": []});
    let found = resolve(loose, strict);
    assert_eq!(found.result, label(Integrity::Untrusted, Confidentiality::Private, &[]));
    assert!(!found.accepts_untrusted);
    assert_eq!(found.destination, Some(to(Confidentiality::Public, &[])));
}

#[test]
fn what_the_program_says_counts_as_given() {
    let stated = StatedLabels {
        source_integrity: Some(Integrity::Trusted),
        accepts_untrusted: Some(true),
        ..StatedLabels::default()
    };
    let of_plugin = ToolLabels::resolve(&stated, &StatedLabels::default(), StatedBy::ThirdParty);
    assert_eq!((of_plugin.result, of_plugin.accepts_untrusted), (Label::default(), true));
    let own =
        ToolLabels::resolve(&StatedLabels::default(), &StatedLabels::default(), StatedBy::Program);
    assert_eq!(own, ToolLabels::default());
}

#[test]
fn principals_of_a_stranger_open_no_way() {
    let without_principals = label(Integrity::Trusted, Confidentiality::UserIdentity, &[]);
    let said = label(Integrity::Trusted, Confidentiality::UserIdentity, &["a"]);
    assert!(without_principals.stricter(&said).principals.is_empty());
    assert_eq!(Label::default().stricter(&said), said);
}

#[test]
fn unknown_data_goes_nowhere_also_beside_data_of_known_owners() {
    let of_a = label(Integrity::Trusted, Confidentiality::UserIdentity, &["a"]);
    let both = Label::combine([&Label::unknown(), &of_a]);
    for authorized in [&["a"][..], &["a", "?"]] {
        let destination = to(Confidentiality::UserIdentity, authorized);
        assert!(of_a.may_flow(&destination));
        assert!(!both.may_flow(&destination) && !Label::unknown().may_flow(&destination));
    }
}
