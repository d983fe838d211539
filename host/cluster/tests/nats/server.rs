//! NATS servers of the tests.

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use cofferdam_cluster::keyed::KeyedResults;
use cofferdam_cluster::nats::{NatsBus, NatsError, NatsOptions, NatsResults};
use cofferdam_cluster::{Bus, CallTiming, ClusterError, Dispatcher, DispatcherOptions, Tenant};
use cofferdam_tool::Toolset;

const SERVER: &str = "COFFERDAM_NATS_SERVER";
const START_MAX: Duration = Duration::from_secs(30);

/// Returns the program of the server; `None` if there is none.
pub(crate) fn program() -> Option<PathBuf> {
    let program = std::env::var_os(SERVER).map(PathBuf::from);
    if program.is_none() {
        println!("skipped: {SERVER} names no server; `cargo xtask nats` installs one");
    }
    program
}

/// Returns a port on which nothing listens. Systems do not choose ports below 32768 for connections
/// and listeners of other processes and tests, and each call returns another one.
pub(crate) fn unused_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        // Not by listening: a process that another test is starting would have the listener, too.
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}

/// Returns whether a NATS server greets a connection.
fn greets(port: u16) -> bool {
    let mut greeting = [0; 4];
    let connected = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.read_exact(&mut greeting)
    });
    connected.is_ok() && greeting == *b"INFO"
}

/// Server that runs until it is dropped.
pub(crate) struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts a server; `None` if there is none.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let program = program()?;
        let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
        Some(Self::on_port(program, arguments, unused_port()))
    }

    /// Starts a server with JetStream, which stores in `folder`.
    pub(crate) fn with_jetstream(folder: &Path) -> Option<Self> {
        Self::start(&["-js", "-sd", folder.to_str().unwrap()])
    }

    fn on_port(program: PathBuf, arguments: Vec<String>, port: u16) -> Self {
        let process = Command::new(&program)
            .args(["-a", "127.0.0.1", "-p", &port.to_string()])
            .args(&arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut server = Self { program, arguments, port, process };
        let started = Instant::now();
        while !greets(port) {
            assert!(server.process.try_wait().unwrap().is_none(), "the server has ended");
            assert!(started.elapsed() < START_MAX, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }

    /// Kills the server and starts another one on the same port after a while.
    pub(crate) async fn restart(mut self, after: Duration) -> Self {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        tokio::time::sleep(after).await;
        let (program, arguments) = (self.program.clone(), self.arguments.clone());
        Self::on_port(program, arguments, self.port)
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn bus(&self) -> Arc<dyn Bus> {
        connect(&self.url()).await
    }

    /// Opens the store of results of the default tenant.
    pub(crate) async fn results(&self) -> Result<Arc<dyn KeyedResults>, NatsError> {
        results_at(&self.url()).await
    }

    /// Returns a gateway with the tools that workers have.
    pub(crate) async fn gateway(&self) -> Gateway {
        let options = DispatcherOptions { timing: timing(), ..DispatcherOptions::default() };
        self.gateway_with(options).await
    }

    pub(crate) async fn gateway_with(&self, options: DispatcherOptions) -> Gateway {
        Gateway::start(self.bus().await, options).await
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A gateway and the tools that it found when it started.
pub(crate) struct Gateway {
    pub(crate) toolset: Toolset,
}

impl Gateway {
    /// Starts a gateway and waits until a worker answers.
    pub(crate) async fn start(bus: Arc<dyn Bus>, options: DispatcherOptions) -> Self {
        let dispatcher = Dispatcher::start(bus, options).await.unwrap();
        let started = Instant::now();
        let sources = loop {
            match dispatcher.discover().await {
                // The server may not know the subscriptions of a worker yet.
                Err(ClusterError::NoWorkers) if started.elapsed() < START_MAX => {}
                sources => break sources.unwrap(),
            }
        };
        let mut toolset = Toolset::new();
        for source in sources {
            toolset.add(source).unwrap();
        }
        Self { toolset }
    }
}

pub(crate) async fn connect(servers: &str) -> Arc<dyn Bus> {
    Arc::new(connect_nats(servers).await)
}

/// Opens the store of results of the default tenant.
pub(crate) async fn results_at(servers: &str) -> Result<Arc<dyn KeyedResults>, NatsError> {
    let bus = connect_nats(servers).await;
    Ok(Arc::new(NatsResults::open(&bus, &Tenant::default()).await?))
}

pub(crate) async fn connect_nats(servers: &str) -> NatsBus {
    let options = NatsOptions { servers: servers.to_owned(), ..NatsOptions::default() };
    NatsBus::connect_ambient(options).await.unwrap()
}

/// Returns waiting times that are long for one machine and short for a test.
pub(crate) fn timing() -> CallTiming {
    CallTiming {
        alive_interval: Duration::from_millis(200),
        unheard_max: Duration::from_secs(2),
        silence_max: Duration::from_millis(600),
        ask_wait: Duration::from_millis(200),
        leave_wait: Duration::from_millis(100),
        ..CallTiming::default()
    }
}
