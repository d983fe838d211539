//! The tools that use the host.

const std = @import("std");
const cofferdam = @import("cofferdam");

const io = std.Io.Threaded.global_single_threaded.io();

const Storing = struct {
    store: []const u8,
    path: []const u8,
    text: []const u8,

    pub const descriptions = .{
        .store = "The name of the store.",
        .path = "The file to create.",
        .text = "What to write into it.",
    };
};

const Stored = struct {
    text: []const u8,
    size: i64,
    files: []const []const u8,
    lines: []const i64,
};

pub fn store(given: Storing) !Stored {
    const allocator = cofferdam.allocator;
    const files = cofferdam.files;
    try files.create(given.store, given.path, given.text);
    const stat = try files.stat(given.store, given.path);
    const text = try files.read(given.store, given.path, 0, stat.size);
    const entries = try files.entries(given.store, "", .{ .is_recursive = true });
    const found = try files.search(given.store, "", .{ .pattern = "needle" });

    const paths = try allocator.alloc([]const u8, entries.len);
    for (entries, paths) |entry, *path| path.* = entry.name;
    std.mem.sort([]const u8, paths, {}, isBefore);
    var lines: std.ArrayList(i64) = .empty;
    for (found.items) |match| {
        if (!std.mem.eql(u8, match.path, given.path)) continue;
        for (match.lines) |line| try lines.append(allocator, @intCast(line.number));
    }
    return .{ .text = text, .size = @intCast(stat.size), .files = paths, .lines = lines.items };
}

fn isBefore(_: void, left: []const u8, right: []const u8) bool {
    return std.mem.lessThan(u8, left, right);
}

const Missing = struct {
    store: []const u8,

    pub const descriptions = .{ .store = "The name of the store." };
};

pub fn missing(given: Missing) ![]const u8 {
    _ = cofferdam.files.read(given.store, "nosuch.txt", 0, 4096) catch |err| switch (err) {
        error.NotFound => return "not found",
        else => return err,
    };
    return "found";
}

const Local = struct {
    path: []const u8,

    pub const descriptions = .{ .path = "The path, such as `/data/a.txt`." };
};

pub fn localFile(given: Local) ![]const u8 {
    var parts = std.mem.splitScalar(u8, std.mem.trimStart(u8, given.path, "/"), '/');
    const directory = try cofferdam.files.directory(parts.first());
    return directory.readFileAlloc(io, parts.rest(), cofferdam.allocator, .limited(65536)) catch |err|
        return cofferdam.failWith("`{s}` cannot be read: {s}", .{ given.path, @errorName(err) });
}

const Steps = struct {
    steps: u16,

    pub const descriptions = .{ .steps = "How many steps." };
};

const Progress = struct { has_id: bool, has_time_left: bool, cancelled: bool };

pub fn progress(given: Steps) Progress {
    const call = cofferdam.call;
    for (1..@as(usize, given.steps) + 1) |step|
        call.progress(@floatFromInt(step), given.steps, cofferdam.print("step {d}", .{step}));
    return .{ .has_id = call.id().len > 0, .has_time_left = call.timeLeftMs() > 0, .cancelled = call.cancelled() };
}

const Logging = struct {
    message: []const u8,

    pub const descriptions = .{ .message = "What to say." };
};

pub fn log(given: Logging) void {
    cofferdam.client.log(.warning, "{s}", .{given.message});
    std.debug.print("{s} (printed)\n", .{given.message});
}

const Relaying = struct {
    tool: []const u8,
    arguments: cofferdam.Map(cofferdam.Json),

    pub const descriptions = .{ .tool = "The name of the tool.", .arguments = "Its arguments." };
};

pub fn relay(given: Relaying) !cofferdam.Json {
    const arguments = cofferdam.Json.of(given.arguments) orelse
        return cofferdam.fail(.{ .message = "the arguments are nested too deeply" });
    return cofferdam.toolbox.run(given.tool, arguments) catch |err| switch (err) {
        error.UnknownTool => cofferdam.failWith("there is no tool `{s}`", .{given.tool}),
        else => err,
    };
}

const Secret = struct {
    name: []const u8,

    pub const descriptions = .{ .name = "The name of the secret." };
};

pub fn secret(given: Secret) !u32 {
    const value = try cofferdam.secrets.get(given.name);
    return @intCast(try std.unicode.utf8CountCodepoints(value));
}

const Requesting = struct {
    url: []const u8,
    method: []const u8 = "GET",
    headers: ?cofferdam.Map([]const u8),
    body: ?[]const u8,
    send_bytes: u32 = 0,
    timeout_ms: u32 = 0,
    follow: bool = true,
    count: u16 = 1,
    parallel: u16 = 1,

    pub const descriptions = .{
        .url = "The URL.",
        .method = "The method.",
        .headers = "Headers of the request.",
        .body = "The text to send.",
        .send_bytes = "How many bytes to send instead, in chunks.",
        .timeout_ms = "The timeout in milliseconds; 0 for none.",
        .follow = "True to follow redirects.",
        .count = "How many requests, one after the other.",
        .parallel = "How many requests at once.",
    };
};

const Responded = struct {
    status: u16 = 0,
    url: []const u8 = "",
    type: ?[]const u8 = null,
    bytes: u32 = 0,
    text: []const u8 = "",
    ok: u32 = 0,
};

pub fn sendRequests(given: Requesting) !Responded {
    return last(given) catch |err| switch (err) {
        error.Timeout => cofferdam.fail(.{ .message = "timeout" }),
        else => err,
    };
}

fn last(given: Requesting) !Responded {
    const body_bytes_max = 16 << 20;
    const text_bytes_max = 2000;
    const headers = try headersOf(given);
    const exchanges = try cofferdam.allocator.alloc(cofferdam.http.Exchange, given.parallel);
    const sources = try cofferdam.allocator.alloc(Repeated, given.parallel);
    var result: Responded = .{};
    for (0..given.count) |_| {
        for (exchanges, sources) |*exchange, *source| {
            source.* = .init(given.send_bytes);
            exchange.* = try cofferdam.http.start(.{
                .method = given.method,
                .url = given.url,
                .headers = headers,
                .body = given.body orelse "",
                .source = if (given.send_bytes > 0) &source.reader else null,
                .timeout_ms = given.timeout_ms,
                .redirects_max = if (given.follow) 10 else 0,
            });
        }
        for (exchanges) |exchange| {
            var response = try exchange.wait();
            const body = try response.readAll(body_bytes_max);
            result = .{
                .status = response.status(),
                .url = response.url(),
                .type = response.header("content-type"),
                .bytes = @intCast(body.len),
                .text = if (body.len <= text_bytes_max) body else "",
                .ok = result.ok + @intFromBool(response.status() < 400),
            };
        }
    }
    return result;
}

fn headersOf(given: Requesting) ![]const cofferdam.http.Header {
    const entries = (given.headers orelse return &.{}).entries;
    const headers = try cofferdam.allocator.alloc(cofferdam.http.Header, entries.len);
    for (entries, headers) |entry, *header| header.* = .{ .name = entry.name, .value = entry.value };
    return headers;
}

/// A number of `x`.
const Repeated = struct {
    left: usize,
    reader: std.Io.Reader,

    fn init(count: usize) Repeated {
        return .{
            .left = count,
            .reader = .{ .vtable = &.{ .stream = stream }, .buffer = &.{}, .seek = 0, .end = 0 },
        };
    }

    fn stream(reader: *std.Io.Reader, writer: *std.Io.Writer, limit: std.Io.Limit) std.Io.Reader.StreamError!usize {
        const repeated: *Repeated = @alignCast(@fieldParentPtr("reader", reader));
        if (repeated.left == 0) return error.EndOfStream;
        const to = limit.slice(try writer.writableSliceGreedy(1));
        const length = @min(to.len, repeated.left);
        @memset(to[0..length], 'x');
        writer.advance(length);
        repeated.left -= length;
        return length;
    }
};
