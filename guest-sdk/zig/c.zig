//! Declarations of the C SDK, which this one is written over: see `cofferdam.h` for their meaning.

const std = @import("std");

pub const String = extern struct {
    data: ?[*]const u8 = null,
    length: usize = 0,

    /// Lends a slice. Its memory has to live as long as the string is used.
    pub fn of(text: []const u8) String {
        return .{ .data = if (text.len == 0) "" else text.ptr, .length = text.len };
    }

    pub fn ofOptional(text: ?[]const u8) String {
        return if (text) |there| of(there) else .{};
    }

    pub fn slice(string: String) []const u8 {
        return string.optional() orelse "";
    }

    pub fn optional(string: String) ?[]const u8 {
        const data = string.data orelse return null;
        return data[0..string.length];
    }
};

pub const Bytes = extern struct {
    data: ?[*]const u8 = null,
    length: usize = 0,

    pub fn of(bytes: []const u8) Bytes {
        // The address of an empty slice need not be one in memory.
        return .{ .data = if (bytes.len == 0) "" else bytes.ptr, .length = bytes.len };
    }

    pub fn slice(bytes: Bytes) []const u8 {
        return (bytes.data orelse return "")[0..bytes.length];
    }
};

pub const ContentType = enum(c_int) { text, json, blob, resource_text, resource_blob, link };

pub const Content = extern struct {
    type: ContentType,
    text: String = .{},
    data: Bytes = .{},
    uri: String = .{},
    name: String = .{},
    media_type: String = .{},
};

pub const Failure = extern struct {
    message: String,
    suggestion: String = .{},
    value: String = .{},
    transience: enum(c_int) { unknown, permanent, transient } = .unknown,
};

pub const Result = extern struct {
    contents: ?[*]const Content = null,
    count: usize = 0,
    failure: ?*const Failure = null,
};

pub const Hint = enum(c_int) {
    nothing,
    no,
    yes,

    pub fn of(is: ?bool) Hint {
        return if (is orelse return .nothing) .yes else .no;
    }
};

pub const Hints = extern struct {
    title: ?[*:0]const u8 = null,
    group: ?[*:0]const u8 = null,
    output_schema: ?[*:0]const u8 = null,
    make_output_schema: ?*const fn () callconv(.c) String = null,
    read_only: Hint = .nothing,
    destructive: Hint = .nothing,
    idempotent: Hint = .nothing,
    open_world: Hint = .nothing,
    long_running: Hint = .nothing,
    is_given: bool = true,
};

pub const Tool = extern struct {
    name: [*:0]const u8,
    description: [*:0]const u8,
    input_schema: ?[*:0]const u8 = null,
    make_input_schema: ?*const fn () callconv(.c) String = null,
    parameters: ?*const anyopaque = null,
    arguments_bytes: usize = 0,
    /// Without parameters, the arguments are a value.
    start: *const fn (arguments: *const Value) callconv(.c) Result,
    hints: Hints,
};

pub const Value = opaque {};
pub const Type = enum(c_int) { null, boolean, number, string, array, object };

pub const Writer = extern struct {
    data: ?[*]u8 = null,
    length: usize = 0,
    capacity: usize = 0,
    depth: usize = 0,
    is_too_deep: bool = false,
    needs_comma: bool = false,
    is_object: [128]bool = @splat(false),
    name: String = .{},
};

pub const ErrorCode = enum(c_int) {
    ok,
    unknown_store,
    not_found,
    already_exists,
    wrong_type,
    invalid_path,
    store_read_only,
    file_denied,
    file_limit,
    invalid_pattern,
    unavailable,
    unsupported,
    ask_denied,
    invalid_question,
    ask_limit,
    no_answer,
    access_denied,
    unknown_tool,
    invalid_arguments,
    failed,
    ended,
    too_deep,
    http_denied,
    http_unknown_host,
    http_unreachable,
    http_refused,
    http_closed,
    http_timeout,
    http_tls,
    http_limit,
    http_invalid,
    http_too_many_redirects,
    http_stopped,
    http_failed,
};

pub const Error = extern struct {
    code: ErrorCode,
    text: String = .{},
    failure: ?*const Failure = null,
};

pub const Store = extern struct { name: String, is_writable: bool };
pub const Entry = extern struct { name: String, is_directory: bool };
pub const Stat = extern struct { is_directory: bool, size: u64 };
pub const Query = extern struct { pattern: String, glob: String, ignores_case: bool, is_recursive: bool };
pub const Line = extern struct { number: u64, text: String };
pub const Match = extern struct { path: String, snippet: String, lines: ?[*]const Line, line_count: usize };
pub const Matches = extern struct { items: ?[*]const Match, count: usize, is_truncated: bool };
pub const Entries = extern struct { items: ?[*]const Entry, count: usize };
pub const Stores = extern struct { items: ?[*]const Store, count: usize };
pub const GrantedTool = extern struct {
    name: String,
    title: String,
    description: String,
    input_schema: String,
    output_schema: String,
};
pub const GrantedTools = extern struct { items: ?[*]const GrantedTool, count: usize };
pub const Question = extern struct { kind: c_int, name: String, message: String, json: String };
pub const Root = extern struct { uri: String, name: String };
pub const Answer = extern struct { kind: c_int, json: String, roots: ?[*]const Root, root_count: usize };

pub const HttpHeader = extern struct { name: String, value: String };
pub const HttpSource = fn (context: ?*anyopaque, buffer: [*]u8, capacity: usize) callconv(.c) usize;
pub const http_stop = std.math.maxInt(usize);
pub const HttpExchange = opaque {};
pub const HttpRequest = extern struct {
    method: String,
    url: String,
    headers: ?[*]const HttpHeader,
    header_count: usize,
    body: ?*const anyopaque = null,
    body_length: usize = 0,
    source: ?*const HttpSource = null,
    context: ?*anyopaque = null,
    has_length: bool = false,
    timeout_ms: u32,
    redirects_max: u32,
};
pub const HttpResponse = extern struct {
    status: u16 = 0,
    url: String = .{},
    headers: ?[*]const HttpHeader = null,
    header_count: usize = 0,
    exchange: ?*HttpExchange = null,
};

pub extern fn cofferdam_allocate(bytes: usize) *anyopaque;
pub extern fn cofferdam_string_copy(data: ?[*]const u8, length: usize) String;

pub extern fn cofferdam_parse(json: String, problem: ?*String) ?*const Value;
pub extern fn cofferdam_type_of(value: ?*const Value) Type;
pub extern fn cofferdam_is_null(value: ?*const Value) bool;
pub extern fn cofferdam_member(object: ?*const Value, name: [*:0]const u8) ?*const Value;
pub extern fn cofferdam_first(container: ?*const Value) ?*const Value;
pub extern fn cofferdam_next(item: *const Value) ?*const Value;
pub extern fn cofferdam_count(container: ?*const Value) usize;
pub extern fn cofferdam_name_of(member: *const Value) String;
pub extern fn cofferdam_text_of(value: ?*const Value) String;
pub extern fn cofferdam_read_integer(value: ?*const Value, integer: *i64) bool;
pub extern fn cofferdam_read_number(value: ?*const Value, number: *f64) bool;
pub extern fn cofferdam_read_boolean(value: ?*const Value, boolean: *bool) bool;

pub extern fn cofferdam_add_name(json: *Writer, name: String) void;
pub extern fn cofferdam_begin_object(json: *Writer, name: ?[*:0]const u8) void;
pub extern fn cofferdam_begin_array(json: *Writer, name: ?[*:0]const u8) void;
pub extern fn cofferdam_end(json: *Writer) void;
pub extern fn cofferdam_add_string(json: *Writer, name: ?[*:0]const u8, text: String) void;
pub extern fn cofferdam_add_integer(json: *Writer, name: ?[*:0]const u8, integer: i64) void;
pub extern fn cofferdam_add_number(json: *Writer, name: ?[*:0]const u8, number: f64) void;
pub extern fn cofferdam_add_boolean(json: *Writer, name: ?[*:0]const u8, boolean: bool) void;
pub extern fn cofferdam_add_null(json: *Writer, name: ?[*:0]const u8) void;
pub extern fn cofferdam_add_value(json: *Writer, name: ?[*:0]const u8, value: ?*const Value) void;
pub extern fn cofferdam_add_json(json: *Writer, name: ?[*:0]const u8, text: String) void;
pub extern fn cofferdam_written(json: *Writer) String;

pub extern fn cofferdam_several(count: usize, contents: ?[*]const Content) Result;
pub extern fn cofferdam_fail_for(err: Error) Result;

pub extern fn cofferdam_call_id() String;
pub extern fn cofferdam_call_session() String;
pub extern fn cofferdam_time_left_ms() u64;
pub extern fn cofferdam_cancelled() bool;
pub extern fn cofferdam_progress(done: f64, total: f64, message: String) void;
pub extern fn cofferdam_log(level: c_int, format: [*:0]const u8, ...) void;
pub extern fn cofferdam_can_ask(kind: c_int) bool;
pub extern fn cofferdam_ask(count: usize, questions: [*]const Question, answers: [*]Answer) Error;

pub extern fn cofferdam_files_stores() Stores;
pub extern fn cofferdam_files_stat(store: String, path: String, stat: *Stat) Error;
pub extern fn cofferdam_files_read(store: String, path: String, offset: u64, length: u64, content: *Bytes) Error;
pub extern fn cofferdam_files_create(store: String, path: String, data: ?*const anyopaque, length: usize) Error;
pub extern fn cofferdam_files_write(store: String, path: String, data: ?*const anyopaque, length: usize) Error;
pub extern fn cofferdam_files_delete(store: String, path: String) Error;
pub extern fn cofferdam_files_create_directory(store: String, path: String) Error;
pub extern fn cofferdam_files_list(store: String, directory: String, glob: String, is_recursive: bool, entries: *Entries) Error;
pub extern fn cofferdam_files_search(store: String, directory: String, query: Query, matches: *Matches) Error;

pub extern fn cofferdam_secret(name: String, value: *String) Error;
pub extern fn cofferdam_toolbox_list() GrantedTools;
pub extern fn cofferdam_toolbox_call(name: String, arguments_json: String, result: *Result) Error;

pub extern fn cofferdam_http_start(request: *const HttpRequest, exchange: *?*HttpExchange) Error;
pub extern fn cofferdam_http_wait(exchange: *HttpExchange, response: *HttpResponse) Error;
pub extern fn cofferdam_http_read(response: *HttpResponse, buffer: [*]u8, capacity: usize, length: *usize) Error;
pub extern fn cofferdam_http_read_all(response: *HttpResponse, bytes_max: usize, body: *Bytes) Error;
pub extern fn cofferdam_http_header_of(response: *const HttpResponse, name: [*:0]const u8) String;
pub extern fn cofferdam_http_close(response: *HttpResponse) void;

// Functions of native tests.
pub extern fn cofferdam_test_call(tool: [*:0]const u8, arguments: [*:0]const u8) Result;
pub extern fn cofferdam_test_value(result: Result) String;
pub extern fn cofferdam_test_input_schema(tool: [*:0]const u8) String;
pub extern fn cofferdam_test_output_schema(tool: [*:0]const u8) String;
pub extern fn cofferdam_test_grant_store(store: [*:0]const u8) void;
pub extern fn cofferdam_test_grant_secret(name: [*:0]const u8, value: [*:0]const u8) void;
pub extern fn cofferdam_test_grant_tool(name: [*:0]const u8, json: [*:0]const u8) void;
pub extern fn cofferdam_test_grant_response(url: [*:0]const u8, status: u16, headers: ?[*:0]const u8, body: [*:0]const u8) void;
pub extern fn cofferdam_test_sent() String;
pub extern fn cofferdam_test_logged() String;
