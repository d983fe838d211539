//! Sends the HTTP requests of its arguments unchecked, and returns the answers.

use cofferdam_test_programs::*;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody,
    OutgoingRequest, RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::StreamError;

struct Program;

/// Maximum length of a body that is returned; longer ones are only counted.
const SHOWN_MAX: usize = 4096;

impl Guest for Program {
    fn list_tools() -> Vec<ToolDefinition> {
        let text = r#"{"type":"string","default":""}"#;
        let names = [
            "method", "url", "headers", "body", "bytes", "follow", "parallel", "patience",
            "trailer",
        ];
        let properties: Vec<_> = names.iter().map(|name| format!("\"{name}\":{text}")).collect();
        vec![with_schema(
            "http",
            &format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(",")),
        )]
    }

    fn call_tool(_name: String, arguments: String) -> Result<Vec<Content>, Failure> {
        let ask = Ask(arguments);
        let parallel = ask.value("parallel").parse().unwrap_or(1);
        let sent: Vec<_> = (0..parallel).map(|_| send(&ask, &ask.value("url"))).collect();
        let answers: Vec<_> = sent.into_iter().map(|sent| answer(&ask, sent, 0)).collect();
        Ok(vec![Content::Text(answers.join("\n"))])
    }
}

/// The arguments: an object of strings without escapes.
struct Ask(String);

impl Ask {
    fn value(&self, key: &str) -> String {
        let after = self.0.split(&format!("\"{key}\":\"")).nth(1).unwrap_or("");
        after.split('"').next().unwrap_or("").to_owned()
    }

    fn method(&self) -> Method {
        match self.value("method").as_str() {
            "" | "GET" => Method::Get,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "CONNECT" => Method::Connect,
            "TRACE" => Method::Trace,
            other => Method::Other(other.to_owned()),
        }
    }

    /// Parses `name: value|name: value`, where `^` is a line end that tries to start a second
    /// header.
    fn fields(&self) -> Result<Fields, String> {
        let fields = Fields::new();
        for header in self.value("headers").split('|').filter(|header| !header.is_empty()) {
            let (name, value) = header.split_once(": ").unwrap_or((header, ""));
            let value = value.replace('^', "\r\n");
            fields.append(name, value.as_bytes()).map_err(|error| {
                format!(
                    "header {name}: \
                {error:?}"
                )
            })?;
        }
        Ok(fields)
    }
}

type Sent = Result<FutureIncomingResponse, String>;

fn send(ask: &Ask, url: &str) -> Sent {
    let request = OutgoingRequest::new(ask.fields()?);
    request.set_method(&ask.method()).map_err(|()| "method")?;
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (authority, path) = rest.split_at(rest.find(['/', '?', ' ']).unwrap_or(rest.len()));
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    request.set_scheme(Some(&scheme)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(&path.replace('^', "\r\n"))).map_err(|()| "path")?;
    let (text, bytes) = (ask.value("body"), ask.value("bytes").parse().unwrap_or(0));
    let has_body = !text.is_empty() || bytes > 0;
    let body = if has_body { Some(request.body().map_err(|()| "body")?) } else { None };
    let options = RequestOptions::new();
    let patience = ask.value("patience").parse().ok().map(|ms: u64| ms * 1_000_000);
    options.set_first_byte_timeout(patience).map_err(|()| "options")?;
    options.set_between_bytes_timeout(patience).map_err(|()| "options")?;
    let future =
        outgoing_handler::handle(request, Some(options)).map_err(|error| format!("{error:?}"))?;
    if let Some(body) = body {
        write(body, text.as_bytes(), bytes, &ask.value("trailer"));
    }
    Ok(future)
}

/// Writes as much as possible; the answer has the reason if the rest was refused.
fn write(body: OutgoingBody, text: &[u8], bytes: usize, trailer: &str) {
    let Ok(stream) = body.write() else { return };
    let filler = [b'x'; 4096];
    let parts =
        (0..bytes).step_by(filler.len()).map(|start| &filler[..filler.len().min(bytes - start)]);
    for part in text.chunks(4096).chain(parts) {
        if stream.blocking_write_and_flush(part).is_err() {
            break;
        }
    }
    drop(stream);
    let trailers = trailer.split_once(": ").map(|(name, value)| {
        let fields = Fields::new();
        let _ = fields.append(name, value.as_bytes());
        fields
    });
    let _ = OutgoingBody::finish(body, trailers);
}

fn answer(ask: &Ask, sent: Sent, redirects: u32) -> String {
    let response = match received(sent) {
        Ok(response) => response,
        Err(error) => return format!("error: {error}"),
    };
    let headers = response.headers().entries();
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    let location =
        headers.iter().find(|(name, _)| name == "location").map(|(_, value)| text(value));
    if let Some(location) = location
        && ask.value("follow") == "yes"
        && redirects < 5
    {
        return answer(ask, send(ask, &location), redirects + 1);
    }
    let lines: Vec<_> =
        headers.iter().map(|(name, value)| format!("{name}: {}\n", text(value))).collect();
    format!("{}\n{}\n{}", response.status(), lines.concat(), body(&response))
}

fn received(sent: Sent) -> Result<IncomingResponse, String> {
    let future = sent?;
    future.subscribe().block();
    let answer = future.get().ok_or("not ready")?.map_err(|()| "taken")?;
    answer.map_err(|error| format!("{error:?}"))
}

fn body(response: &IncomingResponse) -> String {
    let Ok(body) = response.consume() else { return "taken".to_owned() };
    let (mut shown, mut length) = (Vec::new(), 0);
    let end = {
        let Ok(stream) = body.stream() else { return "taken".to_owned() };
        loop {
            match stream.blocking_read(64 * 1024) {
                Ok(part) => {
                    length += part.len();
                    if length <= SHOWN_MAX {
                        shown.extend_from_slice(&part);
                    }
                }
                Err(StreamError::Closed) => break String::new(),
                Err(StreamError::LastOperationFailed(error)) => {
                    break format!(" then error: {:?}", http_error_code(&error));
                }
            }
        }
    };
    drop(IncomingBody::finish(body));
    let shown = if length <= SHOWN_MAX {
        String::from_utf8_lossy(&shown).into_owned()
    } else {
        format!("{length} bytes")
    };
    format!("{shown}{end}")
}

export!(Program);
