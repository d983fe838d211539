//! Serves the tools of a host to one program, over two streams of JSON lines. `docs/pipe.md`
//! describes the messages.
//!
//! The program chooses the tools, so it is trusted like an operator. Its model is not: a call that
//! needs approval runs only after the program has approved it, and a program that does not say that
//! it approves calls gets none of them.

mod calls;
mod functions;
mod lines;
mod message;
mod requests;

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::Toolset;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::calls::Calls;
use self::lines::{LineReader, LineSender};
use self::message::{ClientMessage, Hello, HostMessage};
use self::requests::Requests;
use crate::error::ErrorKind;
use crate::{
    Availability, EngineOptions, Error, Host, Observer, Operator, Prompter, Purpose, Result,
    Selection, json as forms,
};

/// Version of the protocol.
pub const PROTOCOL: u64 = 1;

/// Options of a host that serves a pipe.
pub struct PipeOptions {
    /// Plugins, servers and stores. The tools of the program are added.
    pub selection: Selection,
    /// Options of the engine.
    pub engine: EngineOptions,
}

/// Loads the host that `options` describe and serves it to the program that writes `input` and
/// reads `output`, until the input ends or `stop` fires. Calls in progress are canceled then.
///
/// # Errors
/// Returns an error if the host cannot be built or the program breaks the protocol. The program has
/// received it as `failed`, if it can be reached.
pub async fn serve(
    options: PipeOptions,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<()> {
    let (sender, queue) = lines::channel();
    let writer = tokio::spawn(lines::write_all(queue, output));
    let served = async {
        let mut lines = LineReader::new(input);
        let served = stop.run_until_cancelled(converse(options, &mut lines, &sender)).await;
        let served = served.unwrap_or(Ok(()));
        if let Err(error) = &served {
            sender.send(&HostMessage::failed(error)).await;
        }
        drop(sender);
        served
    };
    let served = served.await;
    // Ends when all senders are gone, or the program has closed its end.
    let _ = writer.await;
    served
}

/// Serves one program until its input ends.
async fn converse(
    options: PipeOptions,
    lines: &mut LineReader<impl AsyncRead + Send + Unpin>,
    sender: &LineSender,
) -> Result<()> {
    let Some(line) = lines.next().await? else { return Ok(()) };
    let ClientMessage::Hello(hello) = ClientMessage::parse(&line)? else {
        return Err(Error::invalid("expected `hello` as the first message"));
    };
    if hello.protocol != PROTOCOL {
        let version = hello.protocol;
        return Err(Error::invalid(format!(
            "expected protocol {PROTOCOL}, found {version}; use versions of the client and of the \
             host that belong together"
        )));
    }
    let requests = Arc::new(Requests::new(sender.clone()));
    let host = build(options, &hello, &requests, sender).await?;
    sender.send(&ready(&host)).await;
    let calls = Calls::new(host, &hello, requests, sender.clone());
    let end = calls.cancel_on_drop();
    while let Some(line) = lines.next().await? {
        match ClientMessage::parse(&line)? {
            ClientMessage::Hello(_) => {
                return Err(Error::invalid("expected one `hello`, found a second one"));
            }
            ClientMessage::Call(call) => calls.start(call).await?,
            ClientMessage::Cancel { id } => calls.cancel(id),
            ClientMessage::Reply { id, reply } => calls.requests().settle(id, reply),
            ClientMessage::Unknown => {}
        }
    }
    drop(end);
    calls.ended().await;
    Ok(())
}

/// Builds the host with the functions of the program.
async fn build(
    options: PipeOptions,
    hello: &Hello,
    requests: &Arc<Requests>,
    sender: &LineSender,
) -> Result<Host> {
    let PipeOptions { mut selection, engine } = options;
    if !hello.tools.is_empty() {
        selection.sources.push(Arc::new(functions::source(&hello.tools, requests)?));
    }
    let operator = Arc::new(Program(sender.clone()));
    Host::builder()
        .selection(selection)
        .engine(engine)
        .operator(Operator::new(Arc::clone(&operator) as Arc<dyn Prompter>, operator))
        .purpose(Purpose::Converse)
        .build()
        .await
}

fn ready(host: &Host) -> HostMessage<'static> {
    let unavailable = host.unavailable().iter();
    let plugins = unavailable.map(|plugin| json!({"name": plugin.name, "reason": plugin.reason()}));
    HostMessage::Ready {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION"),
        tools: tools(host.toolset()),
        unavailable: plugins.chain(unreachable(host)).collect(),
    }
}

#[cfg(feature = "mcp")]
fn unreachable(host: &Host) -> impl Iterator<Item = Value> {
    let servers = host.servers().unreachable.iter();
    servers.map(|server| json!({"name": server.name, "reason": server.to_string()}))
}

#[cfg(not(feature = "mcp"))]
fn unreachable(_host: &Host) -> impl Iterator<Item = Value> {
    std::iter::empty()
}

fn tools(toolset: &Toolset) -> Vec<Value> {
    let tool = |definition: &Arc<cofferdam_tool::ToolDefinition>| {
        let name = definition.name.as_str();
        let source = toolset.source(name).map(|source| source.name());
        let more = json!({"source": source, "needs_approval": toolset.needs_approval(name)});
        forms::with(forms::definition(definition), more)
    };
    toolset.definitions().map(tool).collect()
}

/// The program as the operator: it receives notes and answers no questions while the host starts.
struct Program(LineSender);

#[async_trait]
impl Prompter for Program {
    fn availability(&self) -> Availability {
        Availability::Absent
    }

    fn choice(&self, _question: &str) -> String {
        String::new()
    }

    fn text(&self, _question: &str) -> String {
        String::new()
    }

    async fn choice_later(&self, _question: &str) -> String {
        String::new()
    }
}

impl Observer for Program {
    fn note(&self, message: &str) {
        self.0.offer(&HostMessage::Note { message });
    }

    fn progress(&self, work: Option<&crate::Work>) {
        if let Some(work) = work.filter(|work| work.done == 0) {
            self.note(&format!("{} …", work.label));
        }
    }
}

impl ErrorKind {
    /// Returns the exit code of a program that ends with an error of this kind.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::Unavailable => 4,
            Self::Failed => 5,
        }
    }
}
