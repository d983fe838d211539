//! Stand-in for `wasi:http` outside a component: no request is sent.

use super::{Body, Deadline, Error, Head, Hop, Url};

pub(super) fn now() -> u64 {
    0
}

pub(super) enum Exchange {}

impl Exchange {
    pub(super) fn start(
        hop: &Hop,
        _headers: &[(String, String)],
        _body: &mut Body,
        _deadline: Deadline,
    ) -> Result<Self, Error> {
        Err(Error::Connection(format!(
            "no connection to {}: requests are sent in the sandbox only",
            hop.url.authority
        )))
    }

    pub(super) fn head(self, _url: &Url, _deadline: Deadline) -> Result<(Head, BodyStream), Error> {
        match self {}
    }
}

pub(super) enum BodyStream {}

impl BodyStream {
    pub(super) fn read(
        &mut self,
        _buffer: &mut [u8],
        _url: &Url,
        _deadline: Deadline,
    ) -> Result<usize, Error> {
        match *self {}
    }
}
