//! Pictures of the tour in `docs/tour.md`.
//!
//! Pictures differ between machines by their fonts and browsers, so they cannot be compared. Each
//! has the digest of the page that it shows: its elements and texts after the scripts ran, the
//! values of its controls, and the style sheet. If that differs, the picture is stale. `BLESS=1`
//! renders the pictures and writes the digests; look at the pictures before you commit them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_inspector::RunProgress;
use cofferdam_record::UtcTime;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::prompt::{PendingPrompts, PromptKind};
use cofferdam_tool::{Functions, Toolset};
use data_encoding::{BASE64, HEXLOWER};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::chromium::Browser;
use crate::forms::Bench;
use crate::png::with_palette;
use crate::served::plugin::plugin;
use crate::served::review::Review;
use crate::served::{Served, open_prompt};
use crate::views::log_in;

/// Names of the pictures with their heights, in the order of the tour.
const PICTURES: [(&str, u32); 6] = [
    ("calls", 600),
    ("call", 880),
    ("approval", 520),
    ("tool", 700),
    ("grants", 780),
    ("run", 860),
];
/// Width of the pictures.
const WIDTH: u32 = 1000;
/// Maximum bytes of a picture.
const PICTURE_BYTES_MAX: usize = 60 * 1024;
const STYLE: &str = include_str!("../../assets/style.css");
const DAY: Duration = Duration::from_hours(24);

/// Replaces what differs from run to run: times, random ids and tokens. `now` is shown as a fixed
/// time, and earlier times as much before it.
const FIX: &str = r"(now) => {
  const shown = Date.UTC(2026, 10, 24, 9, 30, 0);
  for (const time of document.querySelectorAll('time')) {
    const at = new Date(shown + Math.min(0, Date.parse(time.dateTime) - now));
    time.textContent = at.toLocaleString('en-GB', { timeZone: 'UTC' });
    time.removeAttribute('title');
    time.dateTime = '';
  }
  for (const name of ['data-from', 'data-token']) {
    document.querySelectorAll(`[${name}]`).forEach((element) => element.setAttribute(name, ''));
  }
  document.querySelectorAll('#prompt[data-id]').forEach((prompt) => { prompt.dataset.id = ''; });
  document.activeElement.blur();
}";

/// Returns the content of the page.
const CONTENT: &str = r"(() => {
  const content = (node) => {
    if (node.nodeType === Node.TEXT_NODE) {
      return node.data.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, 'TIME').replace(/\s+/g, ' ');
    }
    const isShown = node.nodeType === Node.ELEMENT_NODE
      && !['script', 'link', 'meta'].includes(node.localName);
    if (!isShown) return null;
    const attributes = [...node.attributes].map(({ name, value }) => [name, value]).sort();
    const isControl = ['input', 'select', 'textarea'].includes(node.localName);
    const value = isControl ? [node.value, node.checked ?? null] : null;
    return [node.localName, attributes, value, [...node.childNodes].map(content)];
  };
  return JSON.stringify(content(document.documentElement));
})()";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/inspector")
}

fn digest(bytes: impl AsRef<[u8]>) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes)).split_off(32)
}

/// Returns the digests of the page and of the picture for each name.
fn stored() -> BTreeMap<String, (String, String)> {
    let lines = std::fs::read_to_string(folder().join("digests.txt")).unwrap_or_default();
    let parts = |line: &str| {
        let mut words = line.split(' ').map(str::to_owned);
        Some((words.next()?, (words.next()?, words.next()?)))
    };
    lines.lines().filter_map(parts).collect()
}

/// A browser that takes pictures.
struct Tour<'b> {
    browser: &'b mut Browser,
    served: &'b Served,
    /// Milliseconds since 1970.
    now: i64,
    digests: BTreeMap<String, (String, String)>,
}

impl Tour<'_> {
    /// Opens a page and waits until it is as a user sees it.
    fn open(&mut self, path: &str, is_ready: &str) {
        self.browser.open(&format!("http://{}{path}", self.served.address));
        self.browser.wait_for(is_ready);
    }

    /// Checks the digest of the page, or takes the picture.
    fn take(&mut self, name: &str) {
        let (_, height) = PICTURES.into_iter().find(|(known, _)| *known == name).unwrap();
        self.browser.value(&format!("({FIX})({})", self.now));
        let content = self.browser.value(CONTENT);
        let page = digest(format!("{}{STYLE}", content.as_str().unwrap()));
        let mut picture = String::new();
        if std::env::var_os("BLESS").is_some() {
            let clip = json!({"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1});
            let shot = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
            let shot = self.browser.command("Page.captureScreenshot", shot);
            let png = BASE64.decode(shot["data"].as_str().unwrap().as_bytes()).unwrap();
            let png = with_palette(&png);
            picture = digest(&png);
            std::fs::write(folder().join(format!("{name}.png")), png).unwrap();
        }
        self.digests.insert(name.to_owned(), (page, picture));
    }
}

pub(crate) async fn pictures_show_the_pages(browser: &mut Browser) {
    let prompts = PendingPrompts::new(true);
    let progress = RunProgress::new("review");
    let review = Review { progress: Some(progress.clone()), ..Review::default() };
    let served = Served::with_options(|options| {
        options.workbench = Some(Arc::new(Bench(tools())));
        options.prompts = Some(prompts.clone());
        options.grants = Some(Arc::new(|| Ok(Some(vec![plugin()]))));
        options.workflows = Some(Arc::new(review));
    })
    .await;
    let now = UtcTime::now();
    write_log(&served, now);
    log_in(browser, &served);
    browser.set_width(WIDTH);
    let mut tour =
        Tour { browser, served: &served, now: now.micros() / 1000, digests: BTreeMap::new() };
    tour.open("/", "document.getElementById('live-state').textContent === 'Live.'");
    tour.take("calls");
    tour.open("/call/5c1e90b7-8", "document.querySelector('.verdict')");
    tour.take("call");
    tour.open("/tool?name=forecast", "document.getElementById('editor').value !== ''");
    tour.browser.value("document.querySelector('[data-name=city] [data-role=value]').select()");
    tour.browser.type_text("Ulm");
    tour.browser.wait_for("document.getElementById('editor').value.includes('Ulm')");
    tour.take("tool");
    tour.open("/grants", "document.querySelector('table')");
    tour.take("grants");
    run(&progress);
    let is_live = "document.getElementById('live-state').textContent === 'Live.' && \
                   document.querySelector('.graph .running')";
    tour.open("/workflow?name=review&run=this-process", is_live);
    tour.take("run");
    let arguments = r#"{"file":"plans/2025.md","recursive":false}"#;
    let open = open_prompt(&prompts, PromptKind::Approval, arguments);
    let path = format!("/approval?id={}", open.id());
    let is_armed = "document.title.startsWith('(1)') && \
                    !document.querySelector('[data-answer=approve]').disabled";
    tour.open(&path, is_armed);
    tour.take("approval");
    let digests = tour.digests;
    browser.assert_no_problems("tour");
    browser.set_width(1280);
    browser.leave();
    if std::env::var_os("BLESS").is_some() {
        let line = |(name, (page, picture)): (&String, &(String, String))| {
            format!("{name} {page} {picture}\n")
        };
        let lines: String = digests.iter().map(line).collect();
        std::fs::write(folder().join("digests.txt"), lines).unwrap();
        return;
    }
    let known = stored();
    let is_stale = |name: &&str| {
        let [known, page] = [&known, &digests].map(|digests| digests.get(*name).map(|d| &d.0));
        known != page
    };
    let stale: Vec<_> = PICTURES.iter().map(|(name, _)| *name).filter(is_stale).collect();
    assert!(
        stale.is_empty(),
        "pages have changed since the pictures {stale:?} of docs/tour.md were taken; to take them \
         again, run: BLESS=1 cargo test -p cofferdam-inspector --test browser"
    );
}

#[test]
fn the_tour_has_each_picture_with_a_description() {
    let tour = std::fs::read_to_string(folder().join("../../tour.md")).unwrap();
    let images: Vec<_> = tour.split("![").skip(1).collect();
    let known = stored();
    assert_eq!((images.len(), known.len()), (PICTURES.len(), PICTURES.len()));
    for (name, _) in PICTURES {
        let address = format!("](images/inspector/{name}.png)");
        let image = images.iter().find_map(|image| image.split_once(&address));
        let (description, _) = image.unwrap_or_else(|| panic!("docs/tour.md lacks {name}.png"));
        assert!(description.len() > 20, "{name}.png has no description");
        let png = std::fs::read(folder().join(format!("{name}.png"))).unwrap();
        assert_eq!(digest(&png), known[name].1, "{name}.png is not the one that was taken");
        assert!(png.len() <= PICTURE_BYTES_MAX, "{name}.png has {} bytes", png.len());
    }
}

/// Returns a tool with a form.
fn tools() -> Toolset {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "days": {"type": "integer", "default": 3, "description": "Number of days, from today."},
            "units": {"enum": ["metric", "imperial"]},
            "hours": {"type": "array", "items": {"type": "integer"}},
        },
        "required": ["city"],
        "additionalProperties": false,
    });
    let text = "Returns the weather of the next days for a city.";
    let forecast = Declaration::new("forecast", text, schema.to_string());
    let functions = Functions::new("weather").with(forecast, async |_, _| Ok(Value::Null)).unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

/// Reports a run whose reviewer runs for the second time.
fn run(progress: &RunProgress) {
    let steps = ["writer", "reviewer", "writer", "reviewer"];
    for (number, executor) in (1..).zip(steps) {
        progress.superstep_started(number);
        progress.executor_started(executor);
        if number < 4 {
            progress.executor_completed(executor);
            progress.superstep_completed(Some(format!("0193c0ffee00a1b2c3d4-{number:06}")));
        }
    }
}

/// Writes calls of the last minutes, and one of 40 days ago.
fn write_log(served: &Served, now: UtcTime) {
    let payload = |content: &Value| {
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        let hash = HEXLOWER.encode(&Sha256::digest(&content));
        let folder = served.log().join("blobs").join(hash.get(..2).unwrap());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(&hash), &content).unwrap();
        json!({"hash": hash, "bytes": content.len()})
    };
    served.recorder().close();
    let began = now.before(40 * DAY);
    let calls = [
        (40 * DAY, json!({"tool": "word_count", "plugin": "text", "us": 900})),
        (
            Duration::from_millis(3_480_000),
            json!({"tool": "fetch", "plugin": "web", "us": 182_400, "session": "morning",
                   "hosts": [{"host": "api.example.com", "port": 443, "requests": 2}]}),
        ),
        (
            Duration::from_millis(3_471_200),
            json!({"tool": "word_count", "plugin": "text", "us": 1240, "session": "morning"}),
        ),
        (
            Duration::from_millis(2_130_500),
            json!({"tool": "save", "plugin": "notes", "us": 4310, "session": "morning",
                   "files": [{"mount": "notes", "path": "plans/2026.md", "what": "changed", "bytes": 812},
                             {"mount": "notes", "path": "today.md", "what": "created", "bytes": 64}]}),
        ),
        (
            Duration::from_millis(1_502_700),
            json!({"tool": "send", "plugin": "mail", "outcome": "refused", "us": 0,
                   "error": "InvalidArguments", "session": "morning"}),
        ),
        (
            Duration::from_millis(844_900),
            json!({"tool": "render", "plugin": "charts", "outcome": "error", "us": 5_000_210,
                   "error": "Timeout"}),
        ),
        (
            Duration::from_millis(305_300),
            json!({"tool": "search", "plugin": "notes", "us": 7720, "session": "evening"}),
        ),
        (
            Duration::from_millis(61_800),
            json!({"tool": "fetch", "plugin": "web", "outcome": "failure", "session": "evening",
                   "us": 96_300, "wait_us": 8200, "run_us": 81_900, "cpu_us": 2300,
                   "memory_peak_bytes": 1_441_792, "call": "toolu_01", "client": "example 1.2",
                   "refused": [{"capability": "http:GET https://new.example.com/", "times": 1}],
                   "arguments": payload(&json!({"url": "https://new.example.com/items", "limit": 20})),
                   "result": payload(&json!({"error": "new.example.com cannot be reached"}))}),
        ),
        (
            Duration::from_millis(12_400),
            json!({"tool": "fetch", "plugin": "web", "us": 141_000, "session": "evening",
                   "hosts": [{"host": "api.example.com", "port": 443, "requests": 1}]}),
        ),
    ];
    let mut lines = String::new();
    for (number, (age, call)) in (1..).zip(&calls) {
        // Readers know the kind of a line by its start.
        let id = format!("5c1e90b7-{number}");
        let mut line = json!({"v": 1, "kind": "call", "n": number, "id": id, "outcome": "ok"});
        line["at"] = json!(now.before(*age).to_string());
        let line = line.as_object_mut().unwrap();
        line.extend(call.as_object().unwrap().clone());
        lines.push_str(&format!("{}\n", Value::from(line.clone())));
    }
    let name = began.to_string().replace(['-', ':'], "");
    std::fs::write(served.log().join(format!("{name}-1-5c1e90b7.jsonl")), lines).unwrap();
}
