//! Request and response bodies.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::task::JoinHandle;
use tokio::time::{Instant, Sleep};

use crate::client::Explain;
use crate::{BoxError, NetworkError, NetworkStage};

/// Task that drives a connection. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct Link(JoinHandle<()>);

impl Link {
    pub(crate) fn new(task: JoinHandle<()>) -> Self {
        Self(task)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Body of a response. The connection closes when the body ends or is dropped.
#[derive(Debug)]
pub struct ResponseBody {
    incoming: Incoming,
    between_bytes: Duration,
    patience: Pin<Box<Sleep>>,
    explain: Explain,
    _link: Link,
}

impl ResponseBody {
    pub(crate) fn new(
        incoming: Incoming,
        between_bytes: Duration,
        explain: Explain,
        link: Link,
    ) -> Self {
        let patience = Box::pin(tokio::time::sleep(between_bytes));
        Self { incoming, between_bytes, patience, explain, _link: link }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = NetworkError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, NetworkError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = Pin::new(&mut this.incoming).poll_frame(context) {
            let next = Instant::now() + this.between_bytes;
            this.patience.as_mut().reset(next);
            return Poll::Ready(
                frame.map(|frame| frame.map_err(|error| this.explain.error(error))),
            );
        }
        ready!(this.patience.as_mut().poll(context));
        Poll::Ready(Some(Err(NetworkError::Timeout(NetworkStage::NextByte))))
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// Body of a request. Removes trailers that would override headers that the host has set.
pub(crate) struct RequestBody<B> {
    body: Pin<Box<B>>,
    bound: Vec<HeaderName>,
}

impl<B> RequestBody<B> {
    pub(crate) fn new(body: B, bound: Vec<HeaderName>) -> Self {
        Self { body: Box::pin(body), bound }
    }
}

impl<B: Body<Data = Bytes>> Body for RequestBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let mut frame = match ready!(this.body.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(error)) => return Poll::Ready(Some(Err(error.into()))),
            None => return Poll::Ready(None),
        };
        if let Some(trailers) = frame.trailers_mut() {
            for name in &this.bound {
                trailers.remove(name);
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
