//! Calls the tools on the files in `tests/data`, whole and damaged.

use std::fs;

use cofferdam_sdk::{json, testing};

use crate::document::Pdf;
use crate::info::pdf_info;
use crate::search::pdf_search;
use crate::text::pdf_text;
use crate::{outline, page};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

fn text_of(name: &str, number: usize) -> String {
    let arguments = json!({"file": format!("{DATA}/{name}"), "pages": number.to_string()});
    let text = testing::call::<pdf_text>(arguments).unwrap();
    text["pages"][0]["text"].as_str().unwrap().to_owned()
}

#[test]
fn text_is_in_lines() {
    let expected = "Heading of page 2\n\n\
        The quick brown fox jumps over the lazy dog. The quick brown fox jumps over the lazy dog. \
        The quick brown fox\n\
        jumps over the lazy dog. The quick brown fox jumps over the lazy dog.\n\n\
        Name  Units\n\nBolt  24\n\nNut  40\n";
    assert_eq!(text_of("report.pdf", 2), expected);
    assert_eq!(text_of("packed.pdf", 2), expected);
    assert_eq!(text_of("cut.pdf", 2), expected);
    assert_eq!(text_of("unicode.pdf", 1), "Grüße, naïve café – “quoted”\n");
    assert_eq!(text_of("owner.pdf", 1), "anyone may read this\n");
}

#[test]
fn columns_stay_apart() {
    assert_eq!(
        text_of("columns.pdf", 1),
        "column at 50, line 0\ncolumn at 50, line 1\ncolumn at 50, line 2\n\n\
         column at 320, line 0\ncolumn at 320, line 1\ncolumn at 320, line 2\n\n\
         a note in the margin\ntext in a form\n"
    );
}

#[test]
fn limits_cut_text() {
    let file = format!("{DATA}/report.pdf");
    let text = testing::call::<pdf_text>(json!({"file": file, "max_bytes": 250})).unwrap();
    assert_eq!((&text["page_count"], &text["truncated"]), (&json!(3), &json!(true)));
    assert_eq!(text["pages"].as_array().unwrap().len(), 2);
    let found = testing::call::<pdf_search>(json!({"file": file, "text": "FOX  over", "count": 2}));
    assert_eq!(found.unwrap()["matches"], json!([]));
    let found = testing::call::<pdf_search>(json!({"file": file, "text": "LAZY  dog", "count": 2}));
    let found = found.unwrap();
    assert_eq!((&found["truncated"], &found["pages"]), (&json!(true), &json!(2)));
}

#[test]
fn properties_are_read() {
    let info = testing::call::<pdf_info>(json!({"file": format!("{DATA}/report.pdf")})).unwrap();
    assert_eq!((&info["title"], &info["pages"]), (&json!("Report"), &json!(3)));
    assert_eq!(info["created"], "2026-01-02T03:04:05Z");
    assert_eq!(info["outline"][2], json!({"title": "Part 3", "level": 1, "page": 3}));
    let info = testing::call::<pdf_info>(json!({"file": format!("{DATA}/cut.pdf")})).unwrap();
    assert_eq!(info["repaired"], true);
}

#[test]
fn unreadable_files_are_explained() {
    let message = |bytes: &[u8]| match Pdf::parse("/a.pdf", bytes) {
        Ok(_) => String::new(),
        Err(failure) => failure.message().to_owned(),
    };
    let locked = fs::read(format!("{DATA}/locked.pdf")).unwrap();
    assert_eq!(message(&locked), "`/a.pdf` is encrypted and needs a password");
    assert_eq!(message(b"hello"), "`/a.pdf` is not a PDF file");
    assert!(message(b"%PDF-1.4\nhello").starts_with("`/a.pdf` is damaged: "));
}

/// Makes a file with one page, whose `/Contents` are object 4.
fn one_page(contents: &[u8]) -> Vec<u8> {
    let start = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n\
        2 0 obj\n<< /Type /Pages /Kids [3 0 R] /Count 1 >>\nendobj\n\
        3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << \
        /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>\nendobj\n\
        4 0 obj\n";
    let end = b"\nendobj\ntrailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n0\n%%EOF\n";
    [start, contents, end].concat()
}

fn stream(keys: &str, content: &[u8]) -> Vec<u8> {
    let start = format!("<< {keys} /Length {} >>\nstream\n", content.len());
    [start.as_bytes(), content, b"\nendstream"].concat()
}

fn page_of(contents: &[u8]) -> page::PageText {
    let pdf = Pdf::parse("/a.pdf", &one_page(contents)).unwrap();
    page::read(&pdf, pdf.page(1).unwrap())
}

#[test]
fn large_pages_are_cut() {
    let text = |count| [&b"BT /F1 1 Tf "[..], &b"(A) Tj ".repeat(count), b"ET"].concat();
    let read = page_of(&stream("", &text(1000)));
    assert_eq!((read.text.len(), read.is_partial), (1001, false));
    let read = page_of(&stream("", &text(600_000)));
    assert_eq!((read.text.len(), read.is_partial), (500_000 - 2 + 1, true));
}

#[test]
fn text_that_cannot_be_read_is_noted() {
    let hello = b"BT /F1 12 Tf 72 700 Td (Hello) Tj ET";
    let read = page_of(&stream("", hello));
    assert_eq!((read.text.as_str(), read.is_partial), ("Hello\n", false));
    let read = page_of(&stream("/Filter /Crypt", hello));
    assert_eq!((read.text.as_str(), read.is_partial), ("Hello\n", true));
    let unreadable = [
        stream("/Filter /FlateDecode", b"garbage"),
        stream("", b"\xff\xfe garbage"),
        b"[ 99 0 R ]".to_vec(),
        b"<< /Type /Font >>".to_vec(),
        [b"<< >>\nstream\n", &hello[..], b"\nendstream"].concat(),
    ];
    for contents in unreadable {
        let read = page_of(&contents);
        assert_eq!((read.text.as_str(), read.is_partial), ("", true), "{contents:?}");
    }
    for contents in [stream("", b" "), b"[]".to_vec(), b"null".to_vec()] {
        let read = page_of(&contents);
        assert_eq!((read.text.as_str(), read.is_partial), ("", false), "{contents:?}");
    }
}

/// Any bytes are read without a panic.
#[test]
fn damage_is_no_panic() {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % limit.max(1) as u64).unwrap()
    };
    let files = ["report", "packed", "unicode", "columns", "owner", "locked"];
    let files = files.map(|name| fs::read(format!("{DATA}/{name}.pdf")).unwrap());
    let mut opened = 0;
    for round in 0..rounds() {
        let mut bytes = files[round % files.len()].clone();
        match next(4) {
            0 => bytes.truncate(next(bytes.len())),
            1 => {
                let (from, to) = (next(bytes.len()), next(bytes.len()));
                let length = next(64).min(bytes.len() - from.max(to));
                bytes.copy_within(from..from + length, to);
            }
            _ => {
                for _ in 0..=next(8) {
                    let at = next(bytes.len());
                    bytes[at] = next(256) as u8;
                }
            }
        }
        let Ok(pdf) = Pdf::parse("/a.pdf", &bytes) else { continue };
        opened += 1;
        outline::read(&pdf);
        for id in pdf.pages.iter().take(20) {
            page::read(&pdf, *id);
        }
    }
    assert!(opened > rounds() / 4, "{opened}");
}

/// Number of damaged files: few in an ordinary run.
fn rounds() -> usize {
    std::env::var("FUZZ_ROUNDS").ok().and_then(|it| it.parse().ok()).unwrap_or(300)
}
