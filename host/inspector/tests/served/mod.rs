//! A log with calls, an inspector of it, and a client that sends requests byte by byte.

pub(crate) mod plugin;
pub(crate) mod replays;
pub(crate) mod review;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_inspector::{Inspector, InspectorOptions, Workbench};
use cofferdam_record::{LogEvent, PayloadMode, RecordOptions, Recorder};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::prompt::{OpenPrompt, OperatorPrompt, PendingPrompts, PromptKind, PromptText};
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{Annotations, CallContext, Functions, Toolset};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// An inspector that serves, and its log.
pub(crate) struct Served {
    directory: tempfile::TempDir,
    pub(crate) inspector: Inspector,
    pub(crate) address: SocketAddr,
    stop: CancellationToken,
}

/// Response of the inspector.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Served {
    /// Serves a log that does not exist yet.
    pub(crate) async fn new() -> Self {
        Self::with_options(|_| {}).await
    }

    /// Serves such a log, and tools that pages can call.
    pub(crate) async fn with(workbench: Option<Arc<dyn Workbench>>) -> Self {
        Self::with_options(|options| options.workbench = workbench).await
    }

    /// Serves such a log, and prompts of calls.
    pub(crate) async fn with_prompts(prompts: &PendingPrompts) -> Self {
        Self::with_options(|options| options.prompts = Some(prompts.clone())).await
    }

    /// Serves such a log with other options.
    pub(crate) async fn with_options(change: impl FnOnce(&mut InspectorOptions)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut options = InspectorOptions::new(directory.path().join("log"));
        options.grant_advice =
            Arc::new(|plugin, capability| Some(format!("cofferdam grant {plugin} '{capability}'")));
        options.call_command =
            Arc::new(|tool, arguments| Some(format!("cofferdam call {tool} '{arguments}'")));
        change(&mut options);
        let any = "127.0.0.1:0".parse().unwrap();
        let (inspector, listener) = Inspector::listen(options, any).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (serving, stop) = (inspector.clone(), CancellationToken::new());
        let stopped = stop.clone();
        tokio::spawn(async move { serving.serve(listener, stopped).await });
        Self { directory, inspector, address, stop }
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    pub(crate) fn recorder(&self) -> Arc<Recorder> {
        let options =
            RecordOptions { payloads: PayloadMode::Local, ..RecordOptions::new(self.log()) };
        Arc::new(Recorder::open(options).unwrap())
    }

    /// Writes lines to the log, as a host would.
    pub(crate) fn write_lines(&self, lines: &[serde_json::Value]) {
        self.recorder().close();
        let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(self.log().join("20261120T080000.000000Z-1-aaaaaaaa.jsonl"), lines).unwrap();
    }

    /// Logs in, and returns the cookie.
    pub(crate) async fn cookie(&self) -> String {
        let address = self.inspector.login_address().unwrap();
        let (_, key) = address.split_once("#k=").unwrap();
        let reply = self.log_in(key).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let (_, cookie) = reply.head.split_once("set-cookie: ").unwrap();
        cookie.split(';').next().unwrap().to_owned()
    }

    pub(crate) async fn log_in(&self, key: &str) -> Reply {
        let origin = format!("http://{}", self.address);
        let headers = [
            ("origin", origin.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
            ("x-cofferdam", "login"),
        ];
        self.send("POST", "/session", &headers, &json!({ "key": key }).to_string()).await
    }

    /// Requests a page as a browser that logged in.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        let cookie = self.cookie().await;
        let headers = [("cookie", cookie.as_str()), ("sec-fetch-site", "same-origin")];
        self.send("GET", path, &headers, "").await
    }

    /// Sends JSON as a script of a page does.
    pub(crate) async fn post(
        &self,
        path: &str,
        cookie: &str,
        token: &str,
        body: &serde_json::Value,
    ) -> Reply {
        let origin = format!("http://{}", self.address);
        let headers = [
            ("cookie", cookie),
            ("origin", &origin),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
            ("x-cofferdam", token),
        ];
        self.send("POST", path, &headers, &body.to_string()).await
    }

    /// Sends a request with the right `Host`, unless `headers` has one.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            request.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).await.unwrap();
        let reply = String::from_utf8(reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Reply { status, head: head.to_owned(), body: body.to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// Calls a few tools, with each kind of outcome, and records an approval.
pub(crate) async fn record_calls(recorder: &Arc<Recorder>) {
    record_many(recorder, 1).await;
}

/// Returns tools that succeed and fail, whose calls are recorded.
pub(crate) fn toolset(recorder: Option<&Arc<Recorder>>) -> Toolset {
    let schema = r#"{"type":"object","additionalProperties":true,"properties":{
        "city":{"type":"string","description":"A city."},"days":{"type":["integer","null"],"default":3},
        "units":{"enum":["metric","imperial"]},
        "places":{"type":"array","items":{"type":"object","required":["name"],"properties":{
            "name":{"type":"string"},"is_home":{"type":"boolean"}}}},
        "when":{"oneOf":[{"type":"string","title":"date"},{"type":"integer","title":"days ago"}]},
        "more":{"type":"object","additionalProperties":{"type":"number"}}}}"#;
    let tool = |name| Declaration::new(name, "A tool.", schema);
    let functions = Functions::new("samples")
        .with(tool("echo"), async |arguments, _| Ok(arguments.into_value()))
        .unwrap()
        .with(tool("fail"), async |_, _| Err(FunctionEnd::failure("It does not work.")))
        .unwrap();
    let mut toolset = Toolset::new();
    if let Some(recorder) = recorder {
        toolset.set_sink(Arc::clone(recorder) as Arc<dyn CallSink>);
    }
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

/// Does so several times, and waits until all is on disk.
pub(crate) async fn record_many(recorder: &Arc<Recorder>, times: usize) {
    let toolset = toolset(Some(recorder));
    let calls = [("echo", "call-1"), ("fail", "call-2"), ("nothing", "call-3")];
    for (tool, id) in calls.into_iter().cycle().take(calls.len() * times) {
        let context = CallContext { session: Some("morning".to_owned()), ..CallContext::new(id) };
        let _ = toolset.call(tool, Some(br#"{"city":"Ulm"}"#), &context).await;
    }
    recorder.event(LogEvent::Approval {
        tool: "echo".to_owned(),
        call: "call-1".to_owned(),
        by: "user".to_owned(),
        decision: "once".to_owned(),
        waited: std::time::Duration::from_secs(2),
    });
    recorder.event(LogEvent::Plugin {
        plugin: "samples".to_owned(),
        digest: "sha256:12ab".to_owned(),
        replaces: None,
    });
    recorder.flush();
}

/// Opens a prompt about a call of a tool that deletes files.
pub(crate) fn open_prompt(
    prompts: &PendingPrompts,
    kind: PromptKind,
    arguments: &str,
) -> OpenPrompt {
    let prompt = OperatorPrompt {
        kind,
        tool: "delete".to_owned(),
        source: "files".to_owned(),
        caller: "wire 1 as local".to_owned(),
        session: Some("local".to_owned()),
        arguments: PromptText::new(arguments),
        message: PromptText::new("A rule asks for approval of this call."),
        annotations: Annotations { destructive: Some(true), ..Annotations::default() },
    };
    prompts.open(prompt).unwrap()
}
