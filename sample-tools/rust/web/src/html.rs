//! Converts HTML to Markdown.

use std::cell::RefCell;
use std::rc::Rc;

use cofferdam_sdk::ToolFailure;
use htmd::HtmlToMarkdown;
use htmd::options::{BrStyle, BulletListMarker, HrStyle, Options};
use markup5ever_rcdom::{Node, NodeData};

use crate::content::Content;
use crate::{address, markup};

/// Maximum depth of open elements. The time of the parser grows with it.
const OPEN_MAX: usize = 1000;

/// Maximum depth of elements that keep their structure. What is deeper is text without markup.
const DEPTH_MAX: usize = 150;

/// Elements without text for readers.
const DROPPED: &[&str] = &[
    "script", "style", "template", "svg", "iframe", "object", "embed", "canvas", "audio", "video",
    "button", "input", "select", "textarea", "link", "meta", "dialog", "title",
];

/// Elements around the main content.
const SURROUNDINGS: &[&str] = &["nav", "header", "footer", "aside", "form"];

/// Elements that have no end tag, or whose end tag may be left out.
const UNCLOSED: &[&str] = &[
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr", "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead", "tbody",
    "tfoot", "colgroup", "param", "body", "html", "head",
];

/// Converts a page whose address is `url`. If that is empty, links are left as they are.
pub(crate) fn convert(html: &str, url: &str, main_only: bool) -> Result<Content, ToolFailure> {
    if open_elements(html) > OPEN_MAX {
        return Err(ToolFailure::new("the elements of the page are nested too deeply")
            .suggestion("fetch it with `raw` to read its source")
            .permanent());
    }
    let options = Options {
        hr_style: HrStyle::Dashes,
        br_style: BrStyle::Backslash,
        bullet_list_marker: BulletListMarker::Dash,
        ul_bullet_spacing: 1,
        ol_number_spacing: 1,
        ..Options::default()
    };
    let converter = HtmlToMarkdown::builder()
        .options(options)
        .scripting_enabled(false)
        .add_handler(vec!["table"], markup::table)
        .add_handler(vec!["pre"], markup::code_block)
        .build();
    let document = converter
        .html_to_tree(html)
        .map_err(|error| ToolFailure::new(format!("the page cannot be parsed: {error}")))?;
    let mut page = Page { base: url.to_owned(), title: None, main: None, articles: Vec::new() };
    page.look(&document);
    page.clean(&document, main_only);
    let article = if page.articles.len() == 1 { page.articles.pop() } else { None };
    // Not moved: a dropped document takes the children of all its nodes with it.
    let root = page.main.or(article).filter(|_| main_only).unwrap_or_else(|| Rc::clone(&document));
    let text = converter.tree_to_markdown(&root);
    Ok(Content { title: page.title, text: text.trim().to_owned() })
}

/// Properties of a page.
struct Page {
    /// Address that links are relative to.
    base: String,
    title: Option<String>,
    main: Option<Rc<Node>>,
    articles: Vec<Rc<Node>>,
}

impl Page {
    /// Finds the title, the base of links and the main content.
    fn look(&mut self, document: &Rc<Node>) {
        let mut open = vec![Rc::clone(document)];
        while let Some(node) = open.pop() {
            match tag(&node) {
                Some("title") if self.title.is_none() => {
                    let title = text(&node).split_whitespace().collect::<Vec<_>>().join(" ");
                    self.title = Some(title).filter(|title| !title.is_empty());
                }
                Some("base") => {
                    let base = attribute(&node, "href");
                    if let Some(base) = base.and_then(|it| address::resolve(&self.base, &it)) {
                        self.base = base;
                    }
                }
                Some("main") if self.main.is_none() => self.main = Some(Rc::clone(&node)),
                Some("article") => self.articles.push(Rc::clone(&node)),
                Some(_) if attribute(&node, "role").as_deref() == Some("main") => {
                    self.main.get_or_insert(Rc::clone(&node));
                }
                _ => {}
            }
            open.extend(node.children.borrow().iter().rev().map(Rc::clone));
        }
    }

    /// Removes what readers do not see, and makes links absolute.
    fn clean(&self, document: &Rc<Node>, main_only: bool) {
        let mut open = vec![(Rc::clone(document), 0, false)];
        while let Some((node, depth, is_in_main)) = open.pop() {
            let is_in_main = is_in_main || matches!(tag(&node), Some("main" | "article"));
            self.clean_attributes(&node);
            let is_dropped = |child: &Rc<Node>| match tag(child) {
                Some("header") if is_in_main => false,
                Some(tag) => {
                    DROPPED.contains(&tag)
                        || (main_only && SURROUNDINGS.contains(&tag))
                        || attribute(child, "hidden").is_some()
                        || attribute(child, "aria-hidden").as_deref() == Some("true")
                }
                None => matches!(child.data, NodeData::ProcessingInstruction { .. }),
            };
            node.children.borrow_mut().retain(|child| !is_dropped(child));
            if depth == DEPTH_MAX {
                let contents = RefCell::new(text(&node).as_str().into());
                node.children.replace(vec![Node::new(NodeData::Text { contents })]);
                continue;
            }
            let children = node.children.borrow();
            open.extend(children.iter().map(|child| (Rc::clone(child), depth + 1, is_in_main)));
        }
    }

    /// Makes links absolute, and escapes the text of images and the titles of links.
    fn clean_attributes(&self, node: &Node) {
        let NodeData::Element { attrs, .. } = &node.data else { return };
        attrs.borrow_mut().retain_mut(|attribute| {
            if matches!(&*attribute.name.local, "alt" | "title") {
                attribute.value = markup::escaped(&attribute.value).as_str().into();
            }
            if !matches!(&*attribute.name.local, "href" | "src") {
                return true;
            }
            // A fragment is a part of this page.
            if attribute.value.starts_with('#') {
                return true;
            }
            match address::resolve(&self.base, &attribute.value) {
                Some(target) => {
                    attribute.value = target.as_str().into();
                    true
                }
                None => self.base.is_empty() && !is_code(&attribute.value),
            }
        });
        // An image in the page itself has no address.
        let mut attrs = attrs.borrow_mut();
        if tag(node) == Some("img") && !attrs.iter().any(|it| &*it.name.local == "src") {
            attrs.clear();
        }
    }
}

fn is_code(url: &str) -> bool {
    let url = url.trim_start().to_ascii_lowercase();
    ["javascript:", "data:", "vbscript:"].iter().any(|scheme| url.starts_with(scheme))
}

pub(crate) fn tag(node: &Node) -> Option<&str> {
    match &node.data {
        NodeData::Element { name, .. } => Some(&name.local),
        _ => None,
    }
}

pub(crate) fn attribute(node: &Node, name: &str) -> Option<String> {
    let NodeData::Element { attrs, .. } = &node.data else { return None };
    let attrs = attrs.borrow();
    let found = attrs.iter().find(|attribute| &*attribute.name.local == name)?;
    Some(found.value.to_string())
}

/// Returns the text of a node and of all below it.
fn text(node: &Rc<Node>) -> String {
    let mut result = String::new();
    let mut open = vec![Rc::clone(node)];
    while let Some(next) = open.pop() {
        if let NodeData::Text { contents } = &next.data {
            result.push_str(&contents.borrow());
        }
        if Rc::ptr_eq(&next, node) || tag(&next).is_none_or(|tag| !DROPPED.contains(&tag)) {
            open.extend(next.children.borrow().iter().rev().map(Rc::clone));
        }
    }
    result
}

/// Returns about how many elements are open at the same time, at most.
fn open_elements(html: &str) -> usize {
    let mut open = 0usize;
    let mut most = 0;
    for part in html.split('<').skip(1) {
        let is_end = part.starts_with('/');
        let name = part.strip_prefix('/').unwrap_or(part);
        let end = name.find(|it: char| !it.is_ascii_alphanumeric()).unwrap_or(name.len());
        let name = name.get(..end).unwrap_or_default().to_ascii_lowercase();
        if name.is_empty() || UNCLOSED.contains(&name.as_str()) {
            continue;
        }
        if is_end {
            open = open.saturating_sub(1);
        } else {
            open += 1;
            most = most.max(open);
        }
    }
    most
}
