//! Tests of values as JSON, and of errors.

const std = @import("std");
const cofferdam = @import("cofferdam");

const Json = cofferdam.Json;
const testing = cofferdam.testing;

const Sizes = struct { most: u64, least: i64, list: []const u64 };

fn sizes() Sizes {
    return .{
        .most = std.math.maxInt(u64),
        .least = std.math.minInt(i64),
        .list = &.{ 0, 1 << 63 },
    };
}

const Names = struct {
    names: cofferdam.Map(i64),

    pub const descriptions = .{ .names = "Integers by name." };
};

fn names(given: Names) cofferdam.Map(i64) {
    return given.names;
}

fn readMissing() !void {
    _ = try cofferdam.files.read("notes", "missing.txt", 0, 1);
}

fn ownError() error{NotFound}!void {
    return error.NotFound;
}

comptime {
    cofferdam.plugin(&.{
        cofferdam.tool("sizes", "Returns large integers.", sizes, .{}),
        cofferdam.tool("names", "Returns what it was given.", names, .{}),
        cofferdam.tool("read_missing", "Reads a file that is not there.", readMissing, .{}),
        cofferdam.tool("own_error", "Returns an error of its own.", ownError, .{}),
    });
}

test "integers beyond i64 keep their digits" {
    try testing.expect("sizes", .{},
        \\{"most":18446744073709551615,"least":-9223372036854775808,"list":[0,9223372036854775808]}
    );
    try std.testing.expectEqualStrings("18446744073709551615", Json.of(18446744073709551615).?.text);
}

test "names with U+0000 are written whole" {
    const expected =
        \\{"a\u0000b":1,"a\u0000c":2,"":3}
    ;
    try testing.expect("names", Json{ .text = "{\"names\":" ++ expected ++ "}" }, expected);
}

test "an error of the tool does not show the text of an earlier call" {
    testing.grantStore("notes");
    try testing.expectFailure("read_missing", .{}, "there is nothing at that path");
    try testing.expectFailure("own_error", .{}, "error.NotFound: the tool returned it");
}
