//! Write tools for Cofferdam in Zig: functions in, one WebAssembly component out.
//!
//!     const cofferdam = @import("cofferdam");
//!
//!     const Greeting = struct {
//!         name: []const u8,
//!         year: u16 = 2027,
//!
//!         pub const descriptions = .{
//!             .name = "Name of the person to greet.",
//!             .year = "The year that begins.",
//!         };
//!     };
//!
//!     fn greet(greeting: Greeting) cofferdam.Failed![]const u8 {
//!         if (greeting.name.len == 0) return cofferdam.fail(.{
//!             .message = "the name is empty",
//!             .suggestion = "pass a name",
//!         });
//!         return cofferdam.print("A happy {d}, {s}!", .{ greeting.year, greeting.name });
//!     }
//!
//!     comptime {
//!         cofferdam.plugin(&.{
//!             cofferdam.tool("greet", "Greets a person.", greet, .{ .read_only = true }),
//!         });
//!     }
//!
//! The function of a tool takes a struct, or nothing. The fields of the struct are the parameters;
//! `descriptions` says what they are, which is all that a model knows of them. Their types
//! determine the schema by which the host checks and converts the model's arguments before the tool
//! runs:
//!
//! | field | the model |
//! |---|---|
//! | `name: T` | must send it |
//! | `name: T = default` | may omit it or send null: the default |
//! | `name: ?T` | may omit it or send null: null |
//!
//! T is a bool, an integer of at most 64 bits, a float, `[]const u8` (a string), an enum (one of
//! its names), a slice, an array, a struct, a `Map`, or `Json` for any value.
//!
//! A function returns void (null), `[]const u8` (text), `Content` or a slice of it, or any type
//! that can be a parameter (a JSON value), and it can fail: see `fail`.

const std = @import("std");
const c = @import("c.zig");
const codec = @import("codec.zig");
const host = @import("host.zig");
const memory = @import("memory.zig");

pub const Json = codec.Json;
pub const Map = codec.Map;
pub const Error = host.Error;
pub const call = host.call;
pub const client = host.client;
pub const files = host.files;
pub const secrets = host.secrets;
pub const toolbox = host.toolbox;
pub const http = @import("http.zig");
pub const testing = @import("testing.zig");

pub const allocator = memory.allocator;
pub const print = memory.print;
pub const lastErrorText = host.lastErrorText;

/// Failure of a tool, for the model: what was expected, what was found, in lower case and without a
/// full stop.
pub const Failure = struct {
    message: []const u8 = "",
    /// Advice for the model's next attempt: "pass …", "call …".
    suggestion: ?[]const u8 = null,
    /// True if a retry may help, for the host; null if unknown.
    transient: ?bool = null,
    /// A value that the model sees instead of message and suggestion.
    value: ?Json = null,
};

/// Error of a tool that has said with `fail` what is wrong.
pub const Failed = error{Failed};

var failure: Failure = .{};

/// Stores a failure for the model, and returns the error to return:
/// `return cofferdam.fail(.{ .message = "…" })`. The text of any other error that a tool returns is
/// for the operator, except for the errors of this SDK.
pub fn fail(reason: Failure) Failed {
    failure = reason;
    return error.Failed;
}

/// Does the same with a message that is formatted.
pub fn failWith(comptime format: []const u8, arguments: anytype) Failed {
    return fail(.{ .message = print(format, arguments) });
}

/// One item of a result.
pub const Content = union(enum) {
    text: []const u8,
    json: Json,
    blob: Blob,
    resource: Resource,
    link: Link,

    pub const Blob = struct { media_type: []const u8, data: []const u8 };
    /// A resource with its content.
    pub const Resource = struct {
        uri: []const u8,
        media_type: ?[]const u8 = null,
        body: union(enum) { text: []const u8, data: []const u8 },
    };
    /// The address of a resource that can be read separately.
    pub const Link = struct { uri: []const u8, name: []const u8, media_type: ?[]const u8 = null };

    fn lower(content: Content) c.Content {
        return switch (content) {
            .text => |text| .{ .type = .text, .text = kept(text) },
            .json => |json| .{ .type = .json, .text = kept(json.text) },
            .blob => |blob| .{ .type = .blob, .data = .of(memory.copy(blob.data)), .media_type = kept(blob.media_type) },
            .resource => |resource| switch (resource.body) {
                .text => |text| .{
                    .type = .resource_text,
                    .text = kept(text),
                    .uri = kept(resource.uri),
                    .media_type = keptOptional(resource.media_type),
                },
                .data => |data| .{
                    .type = .resource_blob,
                    .data = .of(memory.copy(data)),
                    .uri = kept(resource.uri),
                    .media_type = keptOptional(resource.media_type),
                },
            },
            .link => |link| .{
                .type = .link,
                .uri = kept(link.uri),
                .name = kept(link.name),
                .media_type = keptOptional(link.media_type),
            },
        };
    }
};

/// Copies a string, which the host reads after the tool has returned.
fn kept(text: []const u8) c.String {
    return c.cofferdam_string_copy(if (text.len == 0) null else text.ptr, text.len);
}

fn keptOptional(text: ?[]const u8) c.String {
    return kept(text orelse return .{});
}

/// Options of a tool. The booleans are hints for approvals: they grant nothing, and null is
/// unknown.
pub const Options = struct {
    /// Display name for users.
    title: ?[:0]const u8 = null,
    /// Group of tools that it belongs to: 1 to 64 characters from `A-Z a-z 0-9 _ . -`.
    group: ?[:0]const u8 = null,
    /// Changes nothing.
    read_only: ?bool = null,
    /// May delete, overwrite or send something.
    destructive: ?bool = null,
    /// A second call has no further effect.
    idempotent: ?bool = null,
    /// Accesses systems outside the host.
    open_world: ?bool = null,
    /// May take minutes.
    long_running: ?bool = null,
    /// Publishes the schema of the result. The host checks each result against it.
    output_schema: bool = false,
};

/// Tool of a plugin, made by `tool`.
pub const Tool = c.Tool;

/// Makes a tool of a function. The name has 1 to 128 characters from `A-Z a-z 0-9 _ . -`. The
/// description is all that a model knows of the tool.
pub fn tool(
    comptime name: [:0]const u8,
    comptime description: [:0]const u8,
    comptime function: anytype,
    comptime options: Options,
) Tool {
    comptime {
        checkName("the name of a tool", name, 128);
        if (description.len == 0) @compileError("tool `" ++ name ++ "` has no description");
        if (options.group) |group| checkName("the group of a tool", group, 64);
    }
    const of = @typeInfo(@TypeOf(function)).@"fn";
    if (of.param_types.len > 1) @compileError("tool `" ++ name ++ "`: its function has more than one parameter");
    const Arguments = if (of.param_types.len == 0) struct {} else of.param_types[0].?;
    codec.checkArguments(name, Arguments);
    const Returned = switch (@typeInfo(of.return_type.?)) {
        .error_union => |with_error| with_error.payload,
        else => of.return_type.?,
    };
    const functions = struct {
        fn inputSchema() callconv(.c) c.String {
            return codec.schemaOf(Arguments, .arguments);
        }

        fn outputSchema() callconv(.c) c.String {
            return codec.schemaOf(Returned, .result);
        }

        fn start(value: *const c.Value) callconv(.c) c.Result {
            host.forget();
            var wrong: []const u8 = "";
            const arguments = codec.readFields(Arguments, value, &wrong) catch |err| return failureOf(switch (err) {
                error.Missing => failWith("Required argument '{s}' was not supplied to '{s}'.", .{ wrong, name }),
                error.Mismatch => failWith("Argument '{s}' of '{s}' does not fit its schema.", .{ wrong, name }),
            });
            const result = if (of.param_types.len == 0) function() else function(arguments);
            return switch (@typeInfo(@TypeOf(result))) {
                .error_union => resultOf(result catch |err| return failureOf(err)),
                else => resultOf(result),
            };
        }
    };
    return .{
        .name = name,
        .description = description,
        .make_input_schema = functions.inputSchema,
        .start = functions.start,
        .hints = .{
            .title = if (options.title) |title| title else null,
            .group = if (options.group) |group| group else null,
            .make_output_schema = if (options.output_schema) functions.outputSchema else null,
            .read_only = .of(options.read_only),
            .destructive = .of(options.destructive),
            .idempotent = .of(options.idempotent),
            .open_world = .of(options.open_world),
            .long_running = .of(options.long_running),
        },
    };
}

fn checkName(comptime what: []const u8, comptime name: []const u8, comptime length_max: usize) void {
    const rule = std.fmt.comptimePrint("{s} has 1 to {d} characters from `A-Z a-z 0-9 _ . -`, not `{s}`", .{ what, length_max, name });
    if (name.len == 0 or name.len > length_max) @compileError(rule);
    for (name) |character| switch (character) {
        'A'...'Z', 'a'...'z', '0'...'9', '_', '.', '-' => {},
        else => @compileError(rule),
    };
}

/// Defines the tools of the plugin: at most 128, with unique names. Use it once, in a comptime
/// block.
pub fn plugin(comptime tools: []const Tool) void {
    if (tools.len > 128) @compileError("a plugin has at most 128 tools");
    const table = struct {
        const all = tools[0..tools.len].*;
        const addresses = addresses: {
            var made: [all.len + 1]?*const Tool = @splat(null);
            for (&all, made[0..all.len]) |*one, *address| address.* = one;
            break :addresses made;
        };

        fn list() callconv(.c) [*]const ?*const Tool {
            return &addresses;
        }
    };
    @export(&table.list, .{ .name = "cofferdam_tools" });
}

fn resultOf(value: anytype) c.Result {
    const T = @TypeOf(value);
    if (T == void) return .{};
    if (T == Content) return several(&.{value});
    if (T == []const Content or T == []Content) return several(value);
    if (T == Json) return several(&.{.{ .json = value }});
    if (T == []const u8 or T == []u8) return several(&.{.{ .text = value }});
    const json = Json.of(value) orelse return failureOf(fail(.{ .message = "the result is nested too deeply" }));
    return several(&.{.{ .json = json }});
}

fn several(contents: []const Content) c.Result {
    const lowered = memory.allocate(c.Content, contents.len);
    for (contents, lowered) |content, *to| to.* = content.lower();
    return .{ .contents = lowered.ptr, .count = lowered.len };
}

fn failureOf(err: anyerror) c.Result {
    if (err != error.Failed) {
        if (host.lastError(err)) |known| return c.cofferdam_fail_for(known);
        failure = .{ .message = host.unexpected(err) };
    }
    const lowered = memory.allocate(c.Failure, 1);
    lowered[0] = .{
        .message = kept(failure.message),
        .suggestion = keptOptional(failure.suggestion),
        .value = if (failure.value) |value| kept(value.text) else .{},
        .transience = if (failure.transient) |is| (if (is) .transient else .permanent) else .unknown,
    };
    return .{ .failure = &lowered[0] };
}
