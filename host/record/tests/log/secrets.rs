use std::path::Path;
use std::sync::Arc;

use cofferdam_record::{PayloadMode, Recorder};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;

use super::{Place, call, toolset};

fn contents(path: &Path, to: &mut Vec<(String, Vec<u8>)>) {
    for entry in std::fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, to);
        } else {
            let bytes = std::fs::read(&path).unwrap();
            let name = path.display().to_string();
            if name.ends_with(".gz") {
                let mut plain = Vec::new();
                let mut decoder = flate2::read::MultiGzDecoder::new(&*bytes);
                std::io::Read::read_to_end(&mut decoder, &mut plain).unwrap();
                to.push((name, plain));
            } else {
                to.push((name, bytes));
            }
        }
    }
}

#[tokio::test]
async fn canaries_are_in_no_file() {
    let secret = SecretText::new("granted-CANARY-value");
    for payloads in [PayloadMode::None, PayloadMode::Digests, PayloadMode::Local] {
        let place = Place::new();
        let mut options = place.options(payloads);
        options.secrets = Redactor::new([("key", &secret)]).unwrap();
        let recorder = Arc::new(Recorder::open(options).unwrap());
        let tools = toolset(&recorder);
        for arguments in [
            r#"{"password":"CANARY"}"#,
            r#"{"a":{"headers":[{"Authorization":"Bearer CANARY"}]}}"#,
            r#"{"a":"sk-CANARYabcdefghij0123456789"}"#,
            r#"{"a":"see granted-CANARY-value here"}"#,
            r#"{"a":"x=1&token=CANARY"}"#,
            r#"{"a":"AKIACANARYEXAMPLE123","b":"-----BEGIN PRIVATE KEY-----\nCANARY\n"}"#,
            r#"["ghp_CANARYabcdefghij0123456789"]"#,
        ] {
            call(&tools, "echo", arguments, "granted-CANARY-value").await;
            call(&tools, "sk-CANARYabcdefghij0123456789", "{}", "s").await;
            call(&tools, "not a tool sk-CANARYabcdefghij0123456789", "{}", "s").await;
        }
        recorder.close();
        let mut files = Vec::new();
        contents(&place.path(), &mut files);
        assert!(files.len() > 3);
        for (name, bytes) in &files {
            let has_canary = memchr::memmem::find(bytes, b"CANARY").is_some();
            assert!(!has_canary, "{payloads:?} {name}: {}", String::from_utf8_lossy(bytes));
        }
        let has_blobs = files.iter().any(|(name, _)| name.contains("/blobs/"));
        assert_eq!(has_blobs, payloads == PayloadMode::Local);
    }
}

#[tokio::test]
async fn lines_without_payloads_have_no_free_text() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    call(&tools, "echo", r#"{"free":"TEXT"}"#, "s").await;
    call(&tools, "fail", "", "s").await;
    call(&tools, "break", "", "s").await;
    call(&tools, "echo", r#"["TEXT"]"#, "s").await;
    recorder.close();
    let mut files = Vec::new();
    contents(&place.path(), &mut files);
    for (name, bytes) in &files {
        for text in [&b"TEXT"[..], b"does not work", b"invalid digit"] {
            assert!(memchr::memmem::find(bytes, text).is_none(), "{name}");
        }
    }
}
