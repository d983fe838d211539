//! Limits on every quantity that a call can make grow, with their defaults.

use std::time::Duration;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// Limits of one call. Each limit is the largest value that is still allowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "limits by name")]
pub struct Limits {
    /// Linear memory and tables of all instances of the call together, in bytes. A table element
    /// counts as 8 bytes.
    pub memory_bytes_max: u64,
    /// Wall-clock time from the start of the call to its result, host functions included, in
    /// milliseconds.
    pub wall_ms_max: u64,
    /// CPU time of the guest and of the host functions that run on its thread, in milliseconds.
    /// Waiting does not count. The limit takes effect while the guest runs, up to one tick (10 ms)
    /// late. Work that a host function delegates to other threads does not count.
    pub cpu_ms_max: u64,
    /// Instructions that the guest may execute, in the engine's unit (most instructions cost 1).
    /// Unlike time, the limit gives the same result on every machine, but it makes code slower. The
    /// default `None` disables counting (`RES-8`).
    pub fuel_max: Option<u64>,
    /// Length of the result in bytes (`RES-18`): of JSON as the guest wrote it, of text as shown
    /// (without the quotes and escapes of JSON), of a blob its bytes and media type.
    pub output_bytes_max: u64,
    /// Host memory in bytes that one host function, or the result, may copy from the guest. Bounds
    /// the one part of a call that no deadline can interrupt: copying strings and lists out of the
    /// guest.
    pub hostcall_bytes_max: u64,
    /// Host resources (streams, pollables, descriptors) that the guest may hold at one time.
    pub handles_max: u32,
    /// Core and component instances that one call may create. A Rust guest needs 3, a Python
    /// interpreter 65.
    pub instances_max: u32,
    /// Size in bytes of the tails of standard output and standard error that the call record keeps,
    /// each (`RES-14`). Earlier output is discarded.
    pub log_bytes_max: u64,
    /// Random bytes that the guest may request at once.
    pub random_bytes_max: u64,
    /// Concurrent HTTP requests of the call. Further requests wait.
    pub http_requests_max: u32,
    /// Bytes that the call may send in HTTP requests, headers and bodies together.
    pub http_sent_bytes_max: u64,
    /// Bytes that the call may receive in HTTP responses, headers and bodies together.
    pub http_received_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // Enough for a tool that parses a document of some MiB, and easy on a laptop.
            memory_bytes_max: 64 * MIB,
            // Long enough for real work, short enough that a user still waits for it.
            wall_ms_max: 30_000,
            // A tool waits more than it computes. One that computes for this long is most likely in
            // an endless loop. Reporting that as `CpuLimit` prevents retries: a timeout may be
            // retried, this may not.
            cpu_ms_max: 10_000,
            fuel_max: None,
            output_bytes_max: MIB,
            // As much as the guest's own memory, so that an honest result that is too large is
            // always reported as that.
            hostcall_bytes_max: 64 * MIB,
            handles_max: 256,
            instances_max: 128,
            log_bytes_max: 8192,
            random_bytes_max: 64 * 1024,
            // A browser opens six connections to one host.
            http_requests_max: 8,
            // Uploads are rarer and usually smaller than downloads. The guest's memory bounds both
            // anyway.
            http_sent_bytes_max: 16 * MIB,
            http_received_bytes_max: 64 * MIB,
        }
    }
}

impl Limits {
    /// Returns the wall-clock limit as a duration.
    #[must_use]
    pub fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms_max)
    }

    /// Returns the key of a limit of 0 with which no call can succeed, or `None` if there is none.
    /// Other limits may be 0: such a call holds no resources, or sends no bytes.
    #[must_use]
    pub fn zero_for_every_call(&self) -> Option<&'static str> {
        let limits = [
            (self.memory_bytes_max, "memory-bytes-max"),
            (self.wall_ms_max, "wall-ms-max"),
            (self.cpu_ms_max, "cpu-ms-max"),
            (self.fuel_max.unwrap_or(u64::MAX), "fuel-max"),
            (self.output_bytes_max, "output-bytes-max"),
            (self.hostcall_bytes_max, "hostcall-bytes-max"),
            (self.instances_max.into(), "instances-max"),
        ];
        limits.into_iter().find(|(limit, _)| *limit == 0).map(|(_, key)| key)
    }

    /// Returns the smaller of each pair of values, for when two parties set limits.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        Self {
            memory_bytes_max: self.memory_bytes_max.min(other.memory_bytes_max),
            wall_ms_max: self.wall_ms_max.min(other.wall_ms_max),
            cpu_ms_max: self.cpu_ms_max.min(other.cpu_ms_max),
            fuel_max: self.fuel_max.into_iter().chain(other.fuel_max).min(),
            output_bytes_max: self.output_bytes_max.min(other.output_bytes_max),
            hostcall_bytes_max: self.hostcall_bytes_max.min(other.hostcall_bytes_max),
            handles_max: self.handles_max.min(other.handles_max),
            instances_max: self.instances_max.min(other.instances_max),
            log_bytes_max: self.log_bytes_max.min(other.log_bytes_max),
            random_bytes_max: self.random_bytes_max.min(other.random_bytes_max),
            http_requests_max: self.http_requests_max.min(other.http_requests_max),
            http_sent_bytes_max: self.http_sent_bytes_max.min(other.http_sent_bytes_max),
            http_received_bytes_max: self
                .http_received_bytes_max
                .min(other.http_received_bytes_max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_pinned() {
        let limits = Limits::default();
        assert_eq!(limits.memory_bytes_max, 67_108_864);
        assert_eq!(
            (limits.wall_ms_max, limits.cpu_ms_max, limits.fuel_max),
            (30_000, 10_000, None)
        );
        assert_eq!(limits.output_bytes_max, 1_048_576);
        assert_eq!(limits.hostcall_bytes_max, 67_108_864);
        assert_eq!((limits.handles_max, limits.instances_max), (256, 128));
        assert_eq!((limits.log_bytes_max, limits.random_bytes_max), (8192, 65_536));
        assert_eq!(limits.http_requests_max, 8);
        assert_eq!(
            (limits.http_sent_bytes_max, limits.http_received_bytes_max),
            (16_777_216, 67_108_864)
        );
    }

    #[test]
    fn narrowing_never_widens() {
        let small = Limits { wall_ms_max: 10, ..Limits::default() };
        let large =
            Limits { memory_bytes_max: u64::MAX, wall_ms_max: u64::MAX, ..Limits::default() };
        assert_eq!(small.narrowed_by(&large), large.narrowed_by(&small));
        assert_eq!(small.narrowed_by(&large).wall_ms_max, 10);
        assert_eq!(small.narrowed_by(&large).memory_bytes_max, 67_108_864);
        let idle = Limits { cpu_ms_max: 5, ..Limits::default() };
        assert_eq!(small.narrowed_by(&idle).cpu_ms_max, 5);
        let counted = Limits { fuel_max: Some(5), ..Limits::default() };
        assert_eq!(small.narrowed_by(&counted).fuel_max, Some(5));
    }
    #[test]
    fn only_limits_that_fail_every_call_must_not_be_zero() {
        assert_eq!(Limits::default().zero_for_every_call(), None);
        let counted = Limits { fuel_max: Some(0), ..Limits::default() };
        assert_eq!(counted.zero_for_every_call(), Some("fuel-max"));
        let idle = Limits { instances_max: 0, ..Limits::default() };
        assert_eq!(idle.zero_for_every_call(), Some("instances-max"));
        let offline = Limits { handles_max: 0, http_requests_max: 0, ..Limits::default() };
        assert_eq!(offline.zero_for_every_call(), None);
    }
}
