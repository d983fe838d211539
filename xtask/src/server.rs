//! Servers for tests on free ports of this machine.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

/// Maximum time until a server listens, on a busy machine.
const START_MAX: Duration = Duration::from_secs(120);

/// Server that runs until it is dropped.
pub(crate) struct LocalServer(Child);

/// Returns a free port. If another process takes it first, the server exits with an error.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

impl LocalServer {
    /// Starts a program without input and output, and waits until it listens on `port`.
    ///
    /// # Errors
    /// Returns an error if the program cannot be started, exits, or does not listen.
    pub(crate) fn start(mut program: Command, port: u16) -> anyhow::Result<Self> {
        let name = program.get_program().display().to_string();
        program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self(program.spawn().with_context(|| format!("cannot run {name}"))?);
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if let Some(status) = server.0.try_wait()? {
                bail!("{name} ended with {status}");
            }
            if started.elapsed() > START_MAX {
                bail!("{name} does not listen after {START_MAX:?}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(server)
    }

    /// Waits until the server exits.
    pub(crate) fn wait(&mut self) -> anyhow::Result<()> {
        self.0.wait()?;
        Ok(())
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        // Fails if the server has exited.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}
