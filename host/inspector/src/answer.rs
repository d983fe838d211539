//! Responses, all with the headers that confine a page.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use maud::Markup;

use crate::assets::Asset;

/// Body of a response.
pub(crate) type PageBody = BoxBody<Bytes, Infallible>;

/// Scripts and styles come from this server only, never from the text of a page, and nothing shows
/// a page in a frame.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// Headers of every response.
const HEADERS: [(HeaderName, &str); 8] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    ),
];

/// Returns a page.
pub(crate) fn page(status: StatusCode, markup: Markup) -> Response<PageBody> {
    text(status, "text/html; charset=utf-8", markup.into_string())
}

/// Returns a message.
pub(crate) fn message(status: StatusCode, message: &str) -> Response<PageBody> {
    text(status, "text/plain; charset=utf-8", format!("{message}\n"))
}

/// Returns text that is not cached.
pub(crate) fn text(
    status: StatusCode,
    media_type: &'static str,
    text: String,
) -> Response<PageBody> {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = status;
    set(&mut response, header::CONTENT_TYPE, media_type);
    set(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// Returns an asset, which a browser may keep.
pub(crate) fn asset(asset: &'static Asset) -> Response<PageBody> {
    let body = Full::new(Bytes::from_static(asset.content.as_bytes())).boxed();
    let mut response = Response::new(body);
    set(&mut response, header::CONTENT_TYPE, asset.media_type);
    set(&mut response, header::CACHE_CONTROL, "public, max-age=31536000, immutable");
    response
}

/// Returns bytes of an untrusted party, which a browser saves and does not show.
pub(crate) fn download(bytes: Vec<u8>, name: &'static str) -> Response<PageBody> {
    let mut response = Response::new(Full::new(Bytes::from(bytes)).boxed());
    set(&mut response, header::CONTENT_TYPE, "application/octet-stream");
    set(&mut response, header::CONTENT_DISPOSITION, name);
    set(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// Adds the headers of every response.
pub(crate) fn confine(response: &mut Response<PageBody>) {
    for (name, value) in HEADERS {
        set(response, name, value);
    }
}

/// Sets a header.
pub(crate) fn set(response: &mut Response<PageBody>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}
