//! Browser login with a redirect to a port of this machine.

use std::net::Ipv4Addr;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use url::Url;

use super::Browser;

/// Maximum time for the user to log in.
const VISIT_WAIT: Duration = Duration::from_mins(5);
/// Maximum size of the head of a browser's request, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// Maximum number of open connections. Further ones wait, each for [`HEAD_WAIT`] at most.
const CONNECTIONS_MAX: usize = 32;
/// Maximum time for a connection to send its request.
const HEAD_WAIT: Duration = Duration::from_secs(5);
const PATH: &str = "/callback";
const PAGE: &str = "You can close this page and go back.\n";

/// Shows the user the address to visit, and listens on a loopback port for the redirect.
pub struct Loopback {
    show: Box<dyn Fn(&str) + Send + Sync>,
    listener: Mutex<Option<TcpListener>>,
}

impl Loopback {
    /// Creates a browser. `show` prints or opens the address that the user has to visit.
    pub fn new(show: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { show: Box::new(show), listener: Mutex::default() }
    }
}

#[async_trait]
impl Browser for Loopback {
    async fn redirect_uri(&self) -> Result<String, String> {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|error| error.to_string())?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        *self.listener.lock().await = Some(listener);
        Ok(format!("http://127.0.0.1:{port}{PATH}"))
    }

    async fn visit(&self, address: &str) -> Result<String, String> {
        let listener =
            self.listener.lock().await.take().ok_or("the listener for the answer is gone")?;
        let origin = listener.local_addr().map_err(|error| error.to_string())?;
        (self.show)(address);
        let state = Url::parse(address).ok().and_then(|address| state(&address));
        let answer = tokio::time::timeout(VISIT_WAIT, answer(&listener, state.as_deref())).await;
        let target = answer
            .map_err(|_| "the login was not completed in time".to_owned())?
            .map_err(|error| error.to_string())?;
        Ok(format!("http://{origin}{target}"))
    }
}

/// Returns the `state` of an address, which the authorization server sends back.
fn state(address: &Url) -> Option<String> {
    let found = address.query_pairs().find(|(name, _)| name == "state")?;
    Some(found.1.into_owned())
}

/// Returns whether a request is the answer to a login: one for the callback path with the login's
/// state. Any page can send other requests to the port.
fn is_callback(target: &str, expected: Option<&str>) -> bool {
    let address = Url::parse("http://127.0.0.1").and_then(|origin| origin.join(target));
    address.is_ok_and(|address| {
        address.path() == PATH
            && expected.is_none_or(|expected| state(&address).as_deref() == Some(expected))
    })
}

/// Waits for the callback and returns its target. Other requests get 404.
async fn answer(listener: &TcpListener, state: Option<&str>) -> std::io::Result<String> {
    // Connections are served side by side: one that sends nothing does not delay the browser.
    let mut connections = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                connections.push(serve(accepted?.0, state));
            }
            Some(found) = connections.next() => {
                if let Some(target) = found {
                    return Ok(target);
                }
            }
        }
    }
}

/// Answers one connection. Returns the target of its request if it is the callback.
async fn serve(mut stream: TcpStream, state: Option<&str>) -> Option<String> {
    let target = tokio::time::timeout(HEAD_WAIT, target(&mut stream)).await.ok().flatten();
    let found = target.filter(|target| is_callback(target, state));
    let (status, page) = if found.is_some() { ("200 OK", PAGE) } else { ("404 Not Found", "") };
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{page}",
        page.len()
    );
    let sent = async {
        let _ = stream.write_all(answer.as_bytes()).await;
        let _ = stream.shutdown().await;
    };
    let _ = tokio::time::timeout(HEAD_WAIT, sent).await;
    found
}

/// Reads the target of a GET request.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let (mut head, mut chunk) = (Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let count = stream.read(&mut chunk).await.ok().filter(|count| *count > 0)?;
        head.extend_from_slice(chunk.get(..count)?);
        if head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_answer_to_the_own_login_is_a_callback() {
        let expected = Some("s 1");
        assert!(is_callback("/callback?code=7&state=s%201", expected));
        for other in ["/callback?code=7", "/callback?state=s", "/?state=s%201", "//callback", "*"] {
            assert!(!is_callback(other, expected), "{other}");
        }
    }

    #[tokio::test]
    async fn silent_connections_do_not_delay_the_browser() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let browser = async {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /callback?code=7 HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.unwrap();
            page
        };
        let both = async { tokio::join!(answer(&listener, None), browser) };
        // Less than the time that one silent connection may take.
        let (target, page) = tokio::time::timeout(HEAD_WAIT / 2, both).await.unwrap();
        assert_eq!(target.unwrap(), "/callback?code=7");
        assert!(page.ends_with(PAGE), "{page}");
    }
}
