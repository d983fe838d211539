//! Conversions and redirects, without a network.

use std::cell::RefCell;

use cofferdam_sdk::{ToolFailure, json, testing};

use crate::charset::Body;
use crate::content::{self, Form};
use crate::convert::html_to_markdown;
use crate::fetch::follow;
use crate::html;
use crate::request::Reply;

const PAGE: &str = r##"<!doctype html><html><head><title> A
 page </title><style>p { color: red }</style></head><body>
<nav><a href="/">Home</a></nav>
<header><h1>Site</h1></header>
<main><header><h1>Topic</h1></header>
<p>See <a href="more.html?a=1">more</a>, <a href="#part">below</a> and
<a href="javascript:alert()">this</a>.<script>alert()</script> <span hidden>secret</span></p>
<ul><li>One<li>Two <b>bold</b></ul>
<img src="../a b.png" alt="A picture"><img src="data:image/png;base64,xyz" alt="Inline">
<pre><code class="language-rust">fn main() {}
</code></pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2 | 3</td></tr></table>
</main><footer>Imprint</footer></body></html>"##;

#[test]
fn pages_become_markdown() {
    let page = html::convert(PAGE, "https://example.com/docs/x/index.html", true).unwrap();
    assert_eq!(page.title.as_deref(), Some("A page"));
    for part in [
        "# Topic",
        "[more](https://example.com/docs/x/more.html?a=1)",
        "[below](#part)",
        "- One\n- Two **bold**",
        "![A picture](https://example.com/docs/a%20b.png)",
        "```rust\nfn main() {}\n```",
        "| 1 ",
    ] {
        assert!(page.text.contains(part), "{part}: {}", page.text);
    }
    for part in ["alert", "Home", "Site", "Imprint", "color", "secret", "base64", "A page"] {
        assert!(!page.text.contains(part), "{part}: {}", page.text);
    }
    let whole = html::convert(PAGE, "https://example.com/", false).unwrap().text;
    assert!(whole.contains("[Home](https://example.com/)") && whole.contains("Imprint"));
}

#[test]
fn links_are_relative_to_the_base_of_the_page() {
    let html = r#"<base href="/b/"><a href="c">d</a>"#;
    let text = html::convert(html, "https://example.com/a/", false).unwrap().text;
    assert_eq!(text, "[d](https://example.com/b/c)");
    let arguments = json!({"html": "<a href=c>d</a>", "base_url": null});
    assert_eq!(testing::call::<html_to_markdown>(arguments).unwrap()["text"], "[d](c)");
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(html::convert(html, "https://e.example/", false).unwrap().text, expected, "{html}");
}

#[test]
fn tables_keep_all_rows_and_cells() {
    check(
        "<table><tr><td>1<td>2<tr><td>3<td>4|5</table>",
        "|  |  |\n| - | - |\n| 1 | 2 |\n| 3 | 4\\|5 |",
    );
    check(
        "<table><thead><tr><th>a<th>b<tbody><tr><th>c<td>d<tr><td>e<tr><td colspan=2>f</table>",
        "| a | b |\n| - | - |\n| c | d |\n| e |  |\n| f |  |",
    );
    check(
        "<table><tr><th>a<td>b<tr><td><p>1<p>2<br>3<td></table>",
        "|  |  |\n| - | - |\n| a | b |\n| 1 2 3 |  |",
    );
    check("<table><tr><td><h1>a</h1><p>b</table>", "# a\n\nb");
    check(
        "<table><tr><td>a<td><table><tr><td>1<td>2</table></table>",
        "a\n\n|  |  |\n| - | - |\n| 1 | 2 |",
    );
    check(
        "<table><caption>c</caption><tr><td>1<td>2</table>",
        "c\n\n|  |  |\n| - | - |\n| 1 | 2 |",
    );
    let expected = "a\n\n".repeat(29) + "|  |  |\n| - | - |\n| a |  |";
    check(&"<table><tr><td>a<td>".repeat(30), &expected);
}

#[test]
fn preformatted_text_is_code() {
    check("<pre>a *b*\n\n  # c\n</pre>", "```\na *b*\n\n  # c\n```");
    check("<pre>a\n```\nx<br>y</pre>", "````\na\n```\nx\ny\n````");
    check("<pre class=language-c><code>int <b>a</b>;</code></pre>", "```c\nint a;\n```");
}

#[test]
fn texts_of_images_are_escaped() {
    check(r#"<img alt="a](http://e) b" src=y>"#, r"![a\](http://e) b](https://e.example/y)");
    check(r#"<img alt='`<[\' title='a\"b' src=y>"#, r#"![\`\<\[\\](https://e.example/y "a\\\"b")"#);
}

#[test]
fn a_base_that_is_not_a_url_is_refused() {
    let arguments = json!({"html": "<a href=c>d</a>", "base_url": "nope"});
    let failure = testing::call::<html_to_markdown>(arguments).unwrap_err();
    assert_eq!(failure.message(), "`nope` is not an http or https URL");
}

#[test]
fn deep_pages_are_text_or_a_failure() {
    let deep = |depth: usize| "<div>".repeat(depth) + "<b>end</b>";
    assert_eq!(html::convert(&deep(20), "", false).unwrap().text, "**end**");
    assert_eq!(html::convert(&deep(900), "", false).unwrap().text, "end");
    assert!(html::convert(&deep(5000), "", false).is_err());
    let unclosed = "<p>a<li>b".repeat(3000);
    assert!(html::convert(&unclosed, "", false).is_ok());
}

#[test]
fn any_text_is_converted() {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move |limit: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % limit.max(1) as u64).unwrap()
    };
    let tags = [
        "table",
        "tr",
        "td",
        "select",
        "option",
        "template",
        "p",
        "b",
        "a",
        "svg",
        "ol",
        "li",
        "pre",
        "code",
        "math",
        "frameset",
        "plaintext",
        "br",
    ];
    for _ in 0..1000 {
        let mut html = PAGE.as_bytes().to_vec();
        for _ in 0..=next(6) {
            let at = next(html.len());
            let tag = tags[next(tags.len())];
            match next(4) {
                0 if at < html.len() => html[at] = next(256) as u8,
                1 => html.truncate(at),
                2 => drop(html.splice(at..at, format!("<{tag} href=x>").into_bytes())),
                _ => drop(html.splice(at..at, format!("</{tag}>").into_bytes())),
            }
        }
        let html = String::from_utf8_lossy(&html);
        html::convert(&html, "https://example.com/", next(2) == 0).unwrap();
    }
}

#[test]
fn types_decide_about_forms() {
    let reply = |status, media_type: Option<&str>| Reply {
        status,
        media_type: media_type.map(String::from),
        encoding: None,
        length: Some(9),
        location: None,
        body: Box::new(std::io::empty()),
    };
    let form = |status, media_type, raw| {
        content::form("https://a.example/", &reply(status, media_type), raw)
            .map_err(|failure| failure.message().to_owned())
    };
    assert_eq!(form(200, Some("Text/HTML; charset=utf-8"), false), Ok(Form::Markdown));
    assert_eq!(form(200, Some("text/html"), true), Ok(Form::Text));
    assert_eq!(form(200, Some("application/problem+json"), false), Ok(Form::Json));
    assert_eq!(form(200, Some("text/csv"), false), Ok(Form::Text));
    assert_eq!(form(200, None, false), Ok(Form::Unknown));
    assert_eq!(form(404, Some("image/png"), false), Ok(Form::Nothing));
    assert_eq!(
        form(200, Some("image/png"), false),
        Err("https://a.example/ is image/png of 9 bytes, not text".to_owned())
    );
    let mut compressed = reply(200, Some("text/html"));
    compressed.encoding = Some("br".to_owned());
    assert!(content::form("https://a.example/", &compressed, false).is_err());
}

#[test]
fn bodies_are_converted() {
    let convert = |form, body: &[u8]| {
        let body = Body { bytes: body, media_type: None, is_cut: false };
        content::convert("https://a.example/", form, body, false).map(|content| content.text)
    };
    assert_eq!(convert(Form::Json, b"[1]").unwrap(), "[\n  1\n]");
    assert_eq!(convert(Form::Json, b"[1").unwrap(), "[1");
    assert_eq!(convert(Form::Unknown, b" <!DOCTYPE html><p>a").unwrap(), "a");
    assert_eq!(convert(Form::Unknown, b"<p>a").unwrap(), "<p>a");
    assert!(convert(Form::Unknown, b"\x89PNG\0").is_err());
}

#[test]
fn bodies_and_texts_are_cut() {
    let reply = Reply {
        status: 200,
        media_type: None,
        encoding: None,
        length: None,
        location: None,
        body: Box::new(&b"abc"[..]),
    };
    assert_eq!(reply.read(2).unwrap(), (b"ab".to_vec(), true));
    assert_eq!(content::part("aäb".to_owned(), 0, 2), ("a".to_owned(), Some(1)));
    assert_eq!(content::part("aäb".to_owned(), 1, 9), ("äb".to_owned(), None));
    assert_eq!(content::part("aäb".to_owned(), 9, 9), (String::new(), None));
    assert_eq!(content::part("a😀b".to_owned(), 1, 3), ("😀".to_owned(), Some(5)));
    assert_eq!(content::part("a😀".to_owned(), 0, 0), ("a".to_owned(), Some(1)));
    assert_eq!(content::part("a😀".to_owned(), 1, 0), ("😀".to_owned(), None));
}

#[test]
fn redirects_are_followed_up_to_a_limit() {
    let asked = RefCell::new(Vec::new());
    let get = |limit| {
        asked.borrow_mut().clear();
        follow(
            "http://a.example/0",
            limit,
            |address| {
                asked.borrow_mut().push(format!("{}{}", address.authority, address.path));
                match &*address.path {
                    "/0" => Ok((301, Some("1".to_owned()))),
                    "/1" => Ok((307, Some("https://b.example/2#x".to_owned()))),
                    _ => Ok((200, None)),
                }
            },
            Clone::clone,
        )
    };
    assert_eq!(get(5).unwrap().0, "https://b.example/2#x");
    assert_eq!(*asked.borrow(), ["a.example/0", "a.example/1", "b.example/2"]);
    let (url, (status, location)) = get(1).unwrap();
    assert_eq!((&*url, status), ("http://a.example/1", 307));
    assert_eq!(location.as_deref(), Some("https://b.example/2#x"));
}

#[test]
fn a_refused_redirect_is_named() {
    let send = |address: &crate::address::Address<'_>| match &*address.path {
        "/0" => Ok((302, Some("//b.example/secret".to_owned()))),
        _ => Err(ToolFailure::new("requests to b.example are not permitted").permanent()),
    };
    let refused = follow("http://a.example/0", 5, send, Clone::clone).unwrap_err();
    assert_eq!(
        refused.message(),
        "requests to b.example are not permitted (redirected to http://b.example/secret)"
    );
}
