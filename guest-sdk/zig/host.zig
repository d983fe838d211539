//! Functions of the host: the call, the caller, files, secrets and other tools. A component imports
//! only what it uses.

const builtin = @import("builtin");
const std = @import("std");
const c = @import("c.zig");
const codec = @import("codec.zig");
const memory = @import("memory.zig");

/// Errors of the host. A tool that returns one shows its text to the model. Errors of Zig are equal
/// if their names are: after a caught `NotFound` of the host, a `NotFound` of the tool shows the text
/// of that. Give errors of a tool other names, or use `cofferdam.fail`.
pub const Error = error{
    // Files.
    UnknownStore,
    NotFound,
    AlreadyExists,
    WrongType,
    InvalidPath,
    StoreReadOnly,
    FileDenied,
    FileLimit,
    InvalidPattern,
    Unavailable,
    // Questions.
    Unsupported,
    AskDenied,
    InvalidQuestion,
    AskLimit,
    NoAnswer,
    // Secrets.
    AccessDenied,
    // Other tools.
    UnknownTool,
    InvalidArguments,
    /// The tool reported a failure.
    ToolFailed,
    /// The tool ended with an error.
    ToolEnded,
    TooDeep,
};

/// The last error of the host, for its text.
var last: struct { err: ?anyerror = null, given: c.Error = .{ .code = .ok } } = .{};

/// Returns the details of an error if it is the last one of the host.
pub fn lastError(err: anyerror) ?c.Error {
    const known = last.err orelse return null;
    return if (known == err) last.given else null;
}

/// Returns the text of the last error of the host: what a model sees if a tool returns the error.
pub fn lastErrorText() []const u8 {
    if (last.err == null) return "";
    const failure = c.cofferdam_fail_for(last.given).failure orelse return "";
    return failure.message.slice();
}

/// Stores an error of the host for its text.
pub fn record(comptime E: type, err: E, given: c.Error) E {
    last = .{ .err = err, .given = given };
    return err;
}

/// Drops the last error of the host. A new call does not show the text of an earlier one.
pub fn forget() void {
    last = .{};
}

const errors = struct {
    extern "cofferdam:plugin/errors@0.1.0" fn unexpected(
        type_name: [*]const u8,
        type_name_length: usize,
        message: [*]const u8,
        message_length: usize,
        result: *c.String,
    ) void;
};

/// Reports an error that is not for the model, and returns what the model sees of it.
pub fn unexpected(err: anyerror) []const u8 {
    const type_name = memory.print("error.{s}", .{@errorName(err)});
    const message = "the tool returned it";
    if (comptime !builtin.cpu.arch.isWasm()) return memory.print("{s}: {s}", .{ type_name, message });
    var result: c.String = .{};
    errors.unexpected(type_name.ptr, type_name.len, message.ptr, message.len, &result);
    return result.slice();
}

fn check(given: c.Error) Error!void {
    const err: Error = switch (given.code) {
        .ok => return,
        .unknown_store => error.UnknownStore,
        .not_found => error.NotFound,
        .already_exists => error.AlreadyExists,
        .wrong_type => error.WrongType,
        .invalid_path => error.InvalidPath,
        .store_read_only => error.StoreReadOnly,
        .file_denied => error.FileDenied,
        .file_limit => error.FileLimit,
        .invalid_pattern => error.InvalidPattern,
        .unsupported => error.Unsupported,
        .ask_denied => error.AskDenied,
        .invalid_question => error.InvalidQuestion,
        .ask_limit => error.AskLimit,
        .no_answer => error.NoAnswer,
        .access_denied => error.AccessDenied,
        .unknown_tool => error.UnknownTool,
        .invalid_arguments => error.InvalidArguments,
        .failed => error.ToolFailed,
        .ended => error.ToolEnded,
        .too_deep => error.TooDeep,
        else => error.Unavailable,
    };
    return record(Error, err, given);
}

fn list(comptime T: type, items: anytype, count: usize, comptime convert: anytype) []T {
    const made = memory.allocate(T, count);
    const from = items orelse return made[0..0];
    for (made, from[0..count]) |*to, item| to.* = convert(item);
    return made;
}

/// The current call.
pub const call = struct {
    /// Returns the id of the call, unique within its session. Empty outside a call.
    pub fn id() []const u8 {
        return c.cofferdam_call_id().slice();
    }

    /// Returns the session of the call, if there is one.
    pub fn session() ?[]const u8 {
        return c.cofferdam_call_session().optional();
    }

    /// Returns the milliseconds until the host stops the call with a timeout.
    pub fn timeLeftMs() u64 {
        return c.cofferdam_time_left_ms();
    }

    /// Returns whether the caller has canceled the call. The host soon stops a canceled call by
    /// itself; a tool that checks can stop sooner.
    pub fn cancelled() bool {
        return c.cofferdam_cancelled();
    }

    /// Reports progress in a unit that the tool chooses. `done` should not decrease. The host may
    /// drop reports that come too fast.
    pub fn progress(done: f64, total: ?f64, message: ?[]const u8) void {
        c.cofferdam_progress(done, total orelse 0, .ofOptional(message));
    }
};

/// The caller: an MCP client with its user and its model, or a user at a terminal.
pub const client = struct {
    pub const Level = enum(c_int) { debug, info, notice, warning, err, critical, alert, emergency };

    /// Sends a log line to the client, which may show it to the user. Needs no grant.
    pub fn log(level: Level, comptime format: []const u8, arguments: anytype) void {
        const line = memory.sentinel(memory.print(format, arguments));
        c.cofferdam_log(@backingInt(level), "%s", line.ptr);
    }

    pub const Kind = enum(c_int) {
        /// Asks for data from the user.
        form,
        /// Asks for a message of the client's model.
        sample,
        /// Asks for the locations in which the client works.
        roots,
    };

    /// Returns whether questions of this kind are granted and the client can answer them. Many
    /// clients cannot answer questions.
    pub fn canAsk(kind: Kind) bool {
        return c.cofferdam_can_ask(@backingInt(kind));
    }

    pub const Question = struct {
        kind: Kind,
        /// 1 to 64 characters from `A-Z a-z 0-9 _ -`, unique within the call.
        name: ?[]const u8 = null,
        /// The reason for a form. Never ask for a password or a key.
        message: []const u8 = "",
        /// The schema of a form, or the parameters of MCP's `sampling/createMessage`.
        parameters: codec.Json = .{ .text = "{}" },
    };

    pub const Root = struct { uri: []const u8, name: ?[]const u8 };

    /// Answer to a question. It is untrusted input that the host has not checked.
    pub const Answer = union(enum) {
        /// The filled-in form.
        accepted: codec.Json,
        declined,
        closed,
        /// The result of `sampling/createMessage`.
        message: codec.Json,
        roots: []const Root,
    };

    /// Asks several questions at once and waits; a call may ask 64 in total. The host may run the
    /// call again from its beginning: cause side effects only after the last question.
    pub fn ask(questions: []const Question) Error![]const Answer {
        const asked = memory.allocate(c.Question, questions.len);
        for (questions, asked) |question, *to| to.* = .{
            .kind = @backingInt(question.kind),
            .name = .ofOptional(question.name),
            .message = .of(question.message),
            .json = .of(question.parameters.text),
        };
        const given = memory.allocate(c.Answer, questions.len);
        try check(c.cofferdam_ask(asked.len, asked.ptr, given.ptr));
        return list(Answer, @as(?[*]c.Answer, given.ptr), given.len, answer);
    }

    fn answer(given: c.Answer) Answer {
        const json: codec.Json = .{ .text = given.json.slice() };
        return switch (given.kind) {
            0 => .{ .accepted = json },
            1 => .declined,
            2 => .closed,
            3 => .{ .message = json },
            else => .{ .roots = list(Root, given.roots, given.root_count, root) },
        };
    }

    fn root(given: c.Root) Root {
        return .{ .uri = given.uri.slice(), .name = given.name.optional() };
    }
};

/// The granted file stores. Paths are relative to their store, with `/` between segments. The
/// changes of a call become visible together when the tool has succeeded.
pub const files = struct {
    pub const Store = struct { name: []const u8, is_writable: bool };
    pub const Entry = struct {
        /// In a recursive listing the path relative to the listed directory.
        name: []const u8,
        is_directory: bool,
    };
    pub const Stat = struct { is_directory: bool, size: u64 };
    pub const Line = struct {
        /// From 1.
        number: u64,
        text: []const u8,
    };
    pub const Match = struct { path: []const u8, snippet: []const u8, lines: []const Line };
    pub const Matches = struct {
        /// Sorted bytewise by path.
        items: []const Match,
        is_truncated: bool,
    };
    pub const Query = struct {
        /// Syntax of the Rust crate `regex`, at most 256 characters, matched per line.
        pattern: []const u8,
        /// Of paths: `*`, `?`, `**`, `[ab]`, `{a,b}`, case ignored.
        glob: ?[]const u8 = null,
        ignores_case: bool = false,
        is_recursive: bool = true,
    };
    pub const Listing = struct { glob: ?[]const u8 = null, is_recursive: bool = false };

    /// Returns the directory of a store for `std.Io.Dir`. The working directory of the standard
    /// library is that of the first store, and it knows no absolute paths.
    pub fn directory(store: []const u8) Error!std.Io.Dir {
        const preopens = std.process.Preopens.init(memory.allocator) catch return unknown();
        const found = preopens.get(memory.print("/{s}", .{store})) orelse return unknown();
        return switch (found) {
            .dir => |dir| dir,
            .file => unknown(),
        };
    }

    fn unknown() Error {
        return record(Error, error.UnknownStore, .{ .code = .unknown_store });
    }

    pub fn stores() []const Store {
        const given = c.cofferdam_files_stores();
        return list(Store, given.items, given.count, struct {
            fn of(store: c.Store) Store {
                return .{ .name = store.name.slice(), .is_writable = store.is_writable };
            }
        }.of);
    }

    pub fn stat(store: []const u8, path: []const u8) Error!Stat {
        var given: c.Stat = undefined;
        try check(c.cofferdam_files_stat(.of(store), .of(path), &given));
        return .{ .is_directory = given.is_directory, .size = given.size };
    }

    /// Reads at most `length` bytes from `offset`; fewer only at the end of the file. The host
    /// returns as much as is asked for.
    pub fn read(store: []const u8, path: []const u8, offset: u64, length: u64) Error![]const u8 {
        var content: c.Bytes = .{};
        try check(c.cofferdam_files_read(.of(store), .of(path), offset, length, &content));
        return content.slice();
    }

    /// Writes a new file and creates missing parent directories.
    pub fn create(store: []const u8, path: []const u8, content: []const u8) Error!void {
        return check(c.cofferdam_files_create(.of(store), .of(path), c.Bytes.of(content).data, content.len));
    }

    /// Writes a whole file, whether it exists or not, and creates missing parent directories.
    pub fn write(store: []const u8, path: []const u8, content: []const u8) Error!void {
        return check(c.cofferdam_files_write(.of(store), .of(path), c.Bytes.of(content).data, content.len));
    }

    /// Deletes a file.
    pub fn delete(store: []const u8, path: []const u8) Error!void {
        return check(c.cofferdam_files_delete(.of(store), .of(path)));
    }

    /// Creates a directory and its missing parents.
    pub fn createDirectory(store: []const u8, path: []const u8) Error!void {
        return check(c.cofferdam_files_create_directory(.of(store), .of(path)));
    }

    /// Lists a directory: directories first, then files, each sorted bytewise by name. An empty
    /// path is the root, and a missing directory has no entries.
    pub fn entries(store: []const u8, path: []const u8, listing: Listing) Error![]const Entry {
        var given: c.Entries = undefined;
        try check(c.cofferdam_files_list(.of(store), .of(path), .ofOptional(listing.glob), listing.is_recursive, &given));
        return list(Entry, given.items, given.count, struct {
            fn of(entry: c.Entry) Entry {
                return .{ .name = entry.name.slice(), .is_directory = entry.is_directory };
            }
        }.of);
    }

    /// Searches the files below a directory; the host runs the search. Files that are not UTF-8 are
    /// skipped.
    pub fn search(store: []const u8, path: []const u8, query: Query) Error!Matches {
        var given: c.Matches = undefined;
        try check(c.cofferdam_files_search(.of(store), .of(path), .{
            .pattern = .of(query.pattern),
            .glob = .ofOptional(query.glob),
            .ignores_case = query.ignores_case,
            .is_recursive = query.is_recursive,
        }, &given));
        return .{ .items = list(Match, given.items, given.count, match), .is_truncated = given.is_truncated };
    }

    fn match(given: c.Match) Match {
        return .{
            .path = given.path.slice(),
            .snippet = given.snippet.slice(),
            .lines = list(Line, given.lines, given.line_count, struct {
                fn of(line: c.Line) Line {
                    return .{ .number = line.number, .text = line.text.slice() };
                }
            }.of),
        };
    }
};

/// Secrets that are granted by name. A tool that only sends a secret in a request does not need
/// them.
pub const secrets = struct {
    pub fn get(name: []const u8) Error![]const u8 {
        var value: c.String = .{};
        try check(c.cofferdam_secret(.of(name), &value));
        return value.slice();
    }
};

/// Other granted tools. Their file changes belong to this call.
pub const toolbox = struct {
    pub const Tool = struct { name: []const u8, description: []const u8, input_schema: codec.Json };

    pub fn tools() []const Tool {
        const given = c.cofferdam_toolbox_list();
        return list(Tool, given.items, given.count, struct {
            fn of(tool: c.GrantedTool) Tool {
                return .{
                    .name = tool.name.slice(),
                    .description = tool.description.slice(),
                    .input_schema = .{ .text = tool.input_schema.slice() },
                };
            }
        }.of);
    }

    /// Calls a tool with a JSON object and waits. Returns the value that a model would see: null, a
    /// string, a JSON value, or an array of several. Binary contents are left out.
    pub fn run(name: []const u8, arguments: codec.Json) Error!codec.Json {
        var result: c.Result = .{};
        try check(c.cofferdam_toolbox_call(.of(name), .of(arguments.text), &result));
        const contents = (result.contents orelse return .{ .text = "null" })[0..result.count];
        var json: c.Writer = .{};
        if (contents.len != 1) c.cofferdam_begin_array(&json, null);
        for (contents) |content| switch (content.type) {
            .json => c.cofferdam_add_json(&json, null, content.text),
            .text, .resource_text => c.cofferdam_add_string(&json, null, content.text),
            .link => c.cofferdam_add_string(&json, null, content.uri),
            .blob, .resource_blob => c.cofferdam_add_null(&json, null),
        };
        if (contents.len == 0) return .{ .text = "null" };
        return .{ .text = c.cofferdam_written(&json).slice() };
    }
};
