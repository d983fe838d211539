use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use proptest::prelude::*;

use super::*;

const MODULE: &[u8] = b"\0asm\x01\0\0\0";
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

fn compressed(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn section(id: u8, content: &[u8]) -> Vec<u8> {
    let (mut length, mut section) = (content.len(), vec![id]);
    while length > 0x7f {
        section.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    section.push(u8::try_from(length).unwrap());
    [&section, content].concat()
}

fn custom(content: &[u8]) -> Vec<u8> {
    section(0, &[&[7], SECTION.as_bytes(), content].concat())
}

fn dependencies(packages: &Value) -> Vec<u8> {
    custom(&compressed(json!({"packages": packages, "format": 1}).to_string().as_bytes()))
}

fn component(sections: &[Vec<u8>]) -> Vec<u8> {
    [COMPONENT, &sections.concat()].concat()
}

/// Returns a component with a section in a module that is nested `depth` deep.
fn nested(depth: usize, packages: &Value) -> Vec<u8> {
    let mut binary = [MODULE, &dependencies(packages)].concat();
    for level in 0..depth {
        binary = component(&[section(if level == 0 { 1 } else { 4 }, &binary)]);
    }
    binary
}

fn document(component: &[u8]) -> Option<Value> {
    let statement = sbom(component, "csv", "1.0").unwrap()?;
    assert_eq!(statement.predicate_type, CYCLONEDX);
    Some(statement.predicate)
}

fn refusal(component: &[u8]) -> String {
    sbom(component, "csv", "1.0").unwrap_err().to_string()
}

fn packages() -> Value {
    json!([
        {"name": "csv-tool", "version": "0.1.0", "source": "local", "dependencies": [2, 1],
            "root": true},
        {"name": "serde", "version": "1.0.0", "source": "crates.io", "kind": "runtime"},
        {"name": "cc", "version": "1.2.0+fast", "source": "crates.io", "kind": "build"},
        {"name": "inner", "version": "2.0.0", "source": "a b"},
    ])
}

#[test]
fn a_document_lists_the_packages_with_their_dependencies() {
    let component = component(&[dependencies(&packages())]);
    let expected = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": "plugin", "name": "csv", "version": "1.0",
            "hashes": [{"alg": "SHA-256", "content": Digest::of(&component).hex()}],
        }},
        "components": [
            {"type": "library", "bom-ref": "a%20b:inner@2.0.0", "name": "inner",
                "version": "2.0.0"},
            {"type": "library", "bom-ref": "local:csv-tool@0.1.0", "name": "csv-tool",
                "version": "0.1.0"},
            {"type": "library", "bom-ref": "pkg:cargo/cc@1.2.0%2Bfast", "name": "cc",
                "version": "1.2.0+fast", "purl": "pkg:cargo/cc@1.2.0%2Bfast",
                "properties": [{"name": "cdx:rustc:dependency_kind", "value": "build"}]},
            {"type": "library", "bom-ref": "pkg:cargo/serde@1.0.0", "name": "serde",
                "version": "1.0.0", "purl": "pkg:cargo/serde@1.0.0"},
        ],
        "dependencies": [
            {"ref": "plugin", "dependsOn": ["local:csv-tool@0.1.0"]},
            {"ref": "a%20b:inner@2.0.0", "dependsOn": []},
            {"ref": "local:csv-tool@0.1.0",
                "dependsOn": ["pkg:cargo/cc@1.2.0%2Bfast", "pkg:cargo/serde@1.0.0"]},
            {"ref": "pkg:cargo/cc@1.2.0%2Bfast", "dependsOn": []},
            {"ref": "pkg:cargo/serde@1.0.0", "dependsOn": []},
        ],
    });
    assert_eq!(document(&component), Some(expected));
}

#[test]
fn sections_of_nested_binaries_are_merged() {
    let other = json!([
        {"name": "cc", "version": "1.2.0+fast", "source": "crates.io", "dependencies": [1]},
        {"name": "serde", "version": "1.0.0", "source": "crates.io", "root": true},
    ]);
    let inner = nested(2, &packages());
    let both = document(&component(&[section(4, &inner), dependencies(&other)])).unwrap();
    let components = both["components"].as_array().unwrap();
    assert_eq!(components.len(), 4, "{both}");
    assert_eq!(components[2].get("properties"), None, "needed at run time as well");
    let dependencies = &both["dependencies"];
    assert_eq!(
        dependencies[0]["dependsOn"],
        json!(["local:csv-tool@0.1.0", "pkg:cargo/serde@1.0.0"])
    );
    assert_eq!(dependencies[3]["dependsOn"], json!(["pkg:cargo/serde@1.0.0"]));
    assert!(document(&nested(16, &packages())).is_some());
    assert_eq!(document(&nested(18, &packages())), None);
    for none in [&b""[..], b"\0asm", MODULE, COMPONENT, b"other bytes", &component(&[vec![0, 9]])] {
        assert_eq!(document(none), None);
    }
    // In a core module, section 1 has types.
    let module = [MODULE, &section(1, &nested(0, &packages()))].concat();
    assert_eq!(document(&module), None);
}

#[test]
fn data_that_is_invalid_or_too_large_is_refused() {
    let message = refusal(&component(&[custom(b"not compressed")]));
    assert!(message.contains("is not compressed with zlib"), "{message}");
    let message = refusal(&component(&[custom(&compressed(b"{}"))]));
    assert!(message.contains("has not the format of `cargo auditable`"), "{message}");
    let package = |name: &str, dependencies: &[usize]| {
        let (version, source) = ("1.0.0", "crates.io");
        json!({
            "name": name, "version": version, "source": source, "dependencies": dependencies,
        })
    };
    let message = refusal(&component(&[dependencies(&json!([package("a", &[1])]))]));
    assert!(message.contains("there is no package 1"), "{message}");
    let message = refusal(&component(&[dependencies(&json!([package(&"a".repeat(129), &[])]))]));
    assert!(message.contains("has 129 bytes"), "{message}");
    // A megabyte of nothing is small when compressed.
    let bomb = custom(&compressed(&vec![b' '; 9 << 20]));
    assert!(bomb.len() < 1 << 16);
    let message = refusal(&component(&[bomb]));
    assert!(message.contains("more than 8388608 bytes"), "{message}");
    let halves = custom(&compressed(&[&vec![b' '; 5 << 20][..], b"{\"packages\":[]}"].concat()));
    let message = refusal(&component(&[halves.clone(), halves]));
    assert!(message.contains("more than 8388608 bytes"), "{message}");
    let empty = dependencies(&json!([]));
    let message = refusal(&component(&vec![empty; 17]));
    assert!(message.contains("more than 16 lists"), "{message}");
    let many: Vec<_> = (0..10_001).map(|_| package("a", &[])).collect();
    let message = refusal(&component(&[dependencies(&json!(many))]));
    assert!(message.contains("more than 10000 packages"), "{message}");
    let many = package("a", &[0; 100_001]);
    let message = refusal(&component(&[dependencies(&json!([many]))]));
    assert!(message.contains("more than 100000 dependencies"), "{message}");
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in any::<Vec<u8>>(), packages in "[a-z0-9:,\"{}\\[\\]]{0,64}"
    ) {
        let _ = sbom(&bytes, "csv", "1.0");
        let _ = sbom(&component(std::slice::from_ref(&bytes)), "csv", "1.0");
        let _ = sbom(&component(&[custom(&bytes)]), "csv", "1.0");
        let data = format!("{{\"packages\":{packages}}}");
        let _ = sbom(&component(&[custom(&compressed(data.as_bytes()))]), "csv", "1.0");
    }
}
