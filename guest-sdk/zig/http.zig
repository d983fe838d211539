//! Requests over HTTP. The host has the connections: it verifies certificates, and sends only
//! requests that are granted.
//!
//!     var response = try cofferdam.http.send(.{ .url = "https://api.example.com/items" });
//!     defer response.close();
//!     const body = try response.readAll(1 << 20);
//!
//! `plugin.toml` requests the addresses: `http = ["GET https://api.example.com/items"]`. Each
//! redirect is a request of its own and needs a grant too. `std.http.Client` needs sockets, which a
//! component does not have.

const std = @import("std");
const c = @import("c.zig");
const host = @import("host.zig");
const memory = @import("memory.zig");

/// Errors of requests. A tool that returns one shows its text to the model; that of `HttpDenied`
/// says how to grant the request.
pub const Error = error{
    /// No grant covers the request, or its address.
    HttpDenied,
    UnknownHost,
    HostUnreachable,
    ConnectionRefused,
    /// The connection was closed before the response was complete.
    ConnectionClosed,
    /// The timeout of the request, or a time limit of the host, has passed.
    Timeout,
    Tls,
    /// A limit of the host, or of the caller, is reached.
    HttpLimit,
    /// The method, the URL or a header is invalid.
    InvalidRequest,
    TooManyRedirects,
    /// The source of the body failed.
    BodyFailed,
    HttpFailed,
};

pub const Header = struct { name: []const u8, value: []const u8 };

pub const Request = struct {
    method: []const u8 = "GET",
    /// `http` or `https`.
    url: []const u8,
    headers: []const Header = &.{},
    body: []const u8 = "",
    /// Read in parts while the request is sent, instead of `body`.
    source: ?*std.Io.Reader = null,
    /// The length of the source, if it is known; otherwise it is sent in chunks.
    source_length: ?usize = null,
    /// For the exchange, up to the end of the response's body. 0 for that of the call.
    timeout_ms: u32 = 0,
    /// Redirects to follow. With 0, a redirect is a response like any other.
    redirects_max: u32 = 10,
};

/// Sends a request and waits for the head of its response. A status of 400 or more is not an error.
pub fn send(request: Request) Error!Response {
    return (try start(request)).wait();
}

/// Sends a request, with its body, without waiting for the response. Requests that are started one
/// after the other run at the same time. What the request points to must stay unchanged until
/// `wait` returns.
pub fn start(request: Request) Error!Exchange {
    const headers = memory.allocate(c.HttpHeader, request.headers.len);
    for (request.headers, headers) |header, *to| to.* = .{ .name = .of(header.name), .value = .of(header.value) };
    const lowered: c.HttpRequest = .{
        .method = .of(memory.sentinel(request.method)),
        .url = .of(memory.sentinel(request.url)),
        .headers = headers.ptr,
        .header_count = headers.len,
        .body = c.Bytes.of(request.body).data,
        .body_length = if (request.source == null) request.body.len else request.source_length orelse 0,
        .source = if (request.source == null) null else fill,
        .context = request.source,
        .has_length = request.source_length != null,
        .timeout_ms = request.timeout_ms,
        .redirects_max = request.redirects_max,
    };
    var exchange: ?*c.HttpExchange = null;
    try check(c.cofferdam_http_start(&lowered, &exchange));
    return .{ .given = exchange.? };
}

fn fill(context: ?*anyopaque, buffer: [*]u8, capacity: usize) callconv(.c) usize {
    const source: *std.Io.Reader = @ptrCast(@alignCast(context.?));
    return source.readSliceShort(buffer[0..capacity]) catch c.http_stop;
}

/// Request that is under way.
pub const Exchange = struct {
    given: *c.HttpExchange,

    /// Waits for the head of the response, and follows redirects. Call it once.
    pub fn wait(exchange: Exchange) Error!Response {
        var response: Response = .{ .given = .{} };
        try check(c.cofferdam_http_wait(exchange.given, &response.given));
        return response;
    }
};

/// Response whose body has not been read. Its connection is open until the end of the body, or
/// until it is closed.
pub const Response = struct {
    given: c.HttpResponse,

    pub fn status(response: *const Response) u16 {
        return response.given.status;
    }

    /// Returns the last URL, after redirects.
    pub fn url(response: *const Response) []const u8 {
        return response.given.url.slice();
    }

    pub fn headers(response: *const Response) []const Header {
        const given = (response.given.headers orelse return &.{})[0..response.given.header_count];
        const made = memory.allocate(Header, given.len);
        for (given, made) |one, *to| to.* = .{ .name = one.name.slice(), .value = one.value.slice() };
        return made;
    }

    /// Returns the first header of this name, in any case.
    pub fn header(response: *const Response, name: []const u8) ?[]const u8 {
        return c.cofferdam_http_header_of(&response.given, memory.sentinel(name)).optional();
    }

    /// Reads a part of the body, waiting for at least one byte. Returns 0 at the end.
    pub fn read(response: *Response, buffer: []u8) Error!usize {
        var length: usize = 0;
        try check(c.cofferdam_http_read(&response.given, buffer.ptr, buffer.len, &length));
        return length;
    }

    /// Reads the rest of the body. The error is `HttpLimit` if it is longer than `bytes_max`.
    pub fn readAll(response: *Response, bytes_max: usize) Error![]const u8 {
        var body: c.Bytes = .{};
        try check(c.cofferdam_http_read_all(&response.given, bytes_max, &body));
        return body.slice();
    }

    /// Returns the body as a reader of the standard library.
    pub fn reader(response: *Response, buffer: []u8) BodyReader {
        return .{
            .response = response,
            .interface = .{ .vtable = &.{ .stream = BodyReader.stream }, .buffer = buffer, .seek = 0, .end = 0 },
        };
    }

    /// Closes the connection before the end of the body. Does nothing after the end.
    pub fn close(response: *Response) void {
        c.cofferdam_http_close(&response.given);
    }
};

/// Body of a response as a reader. After `error.ReadFailed`, `err` has the reason.
pub const BodyReader = struct {
    response: *Response,
    err: ?Error = null,
    interface: std.Io.Reader,

    fn stream(io_reader: *std.Io.Reader, writer: *std.Io.Writer, limit: std.Io.Limit) std.Io.Reader.StreamError!usize {
        const reader: *BodyReader = @alignCast(@fieldParentPtr("interface", io_reader));
        const to = limit.slice(try writer.writableSliceGreedy(1));
        const length = reader.response.read(to) catch |err| {
            reader.err = err;
            return error.ReadFailed;
        };
        if (length == 0) return error.EndOfStream;
        writer.advance(length);
        return length;
    }
};

fn check(given: c.Error) Error!void {
    const err: Error = switch (given.code) {
        .ok => return,
        .http_denied => error.HttpDenied,
        .http_unknown_host => error.UnknownHost,
        .http_unreachable => error.HostUnreachable,
        .http_refused => error.ConnectionRefused,
        .http_closed => error.ConnectionClosed,
        .http_timeout => error.Timeout,
        .http_tls => error.Tls,
        .http_limit => error.HttpLimit,
        .http_invalid => error.InvalidRequest,
        .http_too_many_redirects => error.TooManyRedirects,
        .http_stopped => error.BodyFailed,
        else => error.HttpFailed,
    };
    return host.record(Error, err, given);
}
