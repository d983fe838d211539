//! Calls tools as the host does, but natively: for `zig build test`.
//!
//!     test "a greeting" {
//!         try cofferdam.testing.expect("greet", .{ .name = "Ada" }, "\"A happy 2027, Ada!\"");
//!         try cofferdam.testing.expectFailure("greet", .{ .name = "" }, "the name is empty");
//!     }
//!
//! Defaults are filled in as in the host. Other steps of it do not happen: converting "2" to 2,
//! checking against the schema. By default nothing is granted. A granted store is empty and in
//! memory; its search supports plain text and no globs.

const std = @import("std");
const c = @import("c.zig");
const codec = @import("codec.zig");
const memory = @import("memory.zig");

/// Calls a tool and checks the value that a model would see, as JSON. The arguments are a struct,
/// or `Json`.
pub fn expect(tool: [:0]const u8, arguments: anytype, json: []const u8) !void {
    try std.testing.expectEqualStrings(json, try call(tool, arguments));
}

/// Calls a tool and checks that it reports a failure with this message.
pub fn expectFailure(tool: [:0]const u8, arguments: anytype, message: []const u8) !void {
    const failure = (try run(tool, arguments)).failure orelse return error.NoFailure;
    try std.testing.expectEqualStrings(message, failure.message.slice());
}

/// Calls a tool and returns the value that a model would see, as JSON. A failure is
/// `{"error":{"message":…,"suggestion":…}}`, or its own value.
pub fn call(tool: [:0]const u8, arguments: anytype) ![]const u8 {
    return c.cofferdam_test_value(try run(tool, arguments)).slice();
}

fn run(tool: [:0]const u8, arguments: anytype) !c.Result {
    const json = codec.Json.of(arguments) orelse return error.InvalidJson;
    return c.cofferdam_test_call(tool, memory.sentinel(json.text));
}

/// Returns the published schema of a tool's arguments, as JSON.
pub fn inputSchema(tool: [:0]const u8) []const u8 {
    return c.cofferdam_test_input_schema(tool).slice();
}

/// Returns the published schema of a tool's result, as JSON.
pub fn outputSchema(tool: [:0]const u8) ?[]const u8 {
    return c.cofferdam_test_output_schema(tool).optional();
}

pub const grantStore = c.cofferdam_test_grant_store;
pub const grantSecret = c.cofferdam_test_grant_secret;
/// Grants a tool that returns a JSON value.
pub const grantTool = c.cofferdam_test_grant_tool;
/// Grants requests to a URL, and sets the response: lines of `name: value`, and the body.
pub const grantResponse = c.cofferdam_test_grant_response;

/// Returns the last request: `POST http://example.com/a`, its headers as lines, and its body.
pub fn sent() []const u8 {
    return c.cofferdam_test_sent().slice();
}

/// Returns what was logged to the client.
pub fn logged() []const u8 {
    return c.cofferdam_test_logged().slice();
}
