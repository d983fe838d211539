//! The tools of {{name}}.

const std = @import("std");
const cofferdam = @import("cofferdam");

const Greeting = struct {
    name: []const u8,
    times: u16 = 1,

    pub const descriptions = .{
        .name = "Name of the person to greet.",
        .times = "Number of greetings; at most 10.",
    };
};

fn greet(greeting: Greeting) ![]const u8 {
    if (greeting.times > 10) return cofferdam.fail(.{
        .message = cofferdam.print("{d} times is too often", .{greeting.times}),
        .suggestion = "pass 10 or less",
    });
    var greetings: std.Io.Writer.Allocating = .init(cofferdam.allocator);
    for (0..greeting.times) |time| {
        try greetings.writer.print("{s}Hello, {s}!", .{ if (time > 0) " " else "", greeting.name });
    }
    return greetings.written();
}

comptime {
    cofferdam.plugin(&.{
        cofferdam.tool("greet", "Greets a person by name, once or several times.", greet, .{
            .read_only = true,
            .idempotent = true,
        }),
    });
}

test "greet" {
    try cofferdam.testing.expect("greet", .{ .name = "Ada" }, "\"Hello, Ada!\"");
    try cofferdam.testing.expectFailure("greet", .{ .name = "Ada", .times = 1000 }, "1000 times is too often");
}
