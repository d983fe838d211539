//! The tools of ../README.md in Zig.

const std = @import("std");
const cofferdam = @import("cofferdam");
const host = @import("host.zig");

const Json = cofferdam.Json;

const AllTypes = struct {
    text: []const u8,
    flag: bool,
    integer: i64,
    number: f64,
    list: []const []const u8,
    map: cofferdam.Map(i64),

    pub const descriptions = .{
        .text = "A text.",
        .flag = "A truth value.",
        .integer = "An integer.",
        .number = "A number.",
        .list = "Some texts.",
        .map = "Integers by name.",
    };
};

fn echo(given: AllTypes) AllTypes {
    return given;
}

const Defaults = struct {
    count: i64 = 3,
    word: []const u8 = "abc",
    tags: []const []const u8 = &.{ "x", "y" },
    ratio: f64 = 0.5,
    flag: bool = true,

    pub const descriptions = .{
        .count = "A number of things.",
        .word = "A word.",
        .tags = "Some words.",
        .ratio = "A ratio.",
        .flag = "A truth value.",
    };
};

fn defaults(given: Defaults) Defaults {
    return given;
}

const Nullables = struct {
    name: ?[]const u8,
    count: ?i64,

    pub const descriptions = .{ .name = "A name, if there is one.", .count = "A number of things, if it is known." };
};

fn nullables(given: Nullables) Nullables {
    return given;
}

const Nesting = struct {
    order: struct {
        id: i64,
        customer: struct { name: []const u8, email: ?[]const u8 },
        items: []const struct { sku: []const u8, quantity: i64 = 1 },
        status: Status,
    },

    const Status = enum { open, paid };
    pub const descriptions = .{ .order = "The order." };
};

const Summary = struct {
    id: i64,
    quantity: i64,
    first: ?[]const u8,
    customer: []const u8,
    email: ?[]const u8,
    status: Nesting.Status,
};

fn nested(given: Nesting) Summary {
    const order = given.order;
    var quantity: i64 = 0;
    for (order.items) |item| quantity +|= item.quantity;
    return .{
        .id = order.id,
        .quantity = quantity,
        .first = if (order.items.len > 0) order.items[0].sku else null,
        .customer = order.customer.name,
        .email = order.customer.email,
        .status = order.status,
    };
}

const Failing = struct {
    kind: enum { plain, suggestion, transient, permanent, value, empty, exception },

    pub const descriptions = .{ .kind = "The failure." };
};

fn fail(given: Failing) (cofferdam.Failed || error{TheShelfIsEmpty})!void {
    const message = "it went wrong";
    return switch (given.kind) {
        .plain => cofferdam.fail(.{ .message = message }),
        .suggestion => cofferdam.fail(.{ .message = message, .suggestion = "try again tomorrow" }),
        .transient => cofferdam.fail(.{ .message = message, .transient = true }),
        .permanent => cofferdam.fail(.{ .message = message, .transient = false }),
        .value => cofferdam.fail(.{ .value = Json.of(.{ .code = 7, .detail = [_]?[]const u8{ "a", null } }) }),
        .empty => cofferdam.fail(.{}),
        .exception => error.TheShelfIsEmpty,
    };
}

const Crashing = struct {
    secret: []const u8,

    pub const descriptions = .{ .secret = "What is printed." };
};

fn crash(given: Crashing) void {
    std.debug.panic("crashed with {s}", .{given.secret});
}

const Text = struct {
    text: []const u8,

    pub const descriptions = .{ .text = "The text." };
};

const Looked = struct { text: []const u8, characters: u32, bytes: u32, reversed: []const u8 };

fn unicode(given: Text) !Looked {
    const text = given.text;
    const reversed = try cofferdam.allocator.alloc(u8, text.len);
    var characters = (try std.unicode.Utf8View.init(text)).iterator();
    var count: u32 = 0;
    var at = text.len;
    while (characters.nextCodepointSlice()) |character| : (count += 1) {
        at -= character.len;
        @memcpy(reversed[at..][0..character.len], character);
    }
    return .{ .text = text, .characters = count, .bytes = @intCast(text.len), .reversed = reversed };
}

const Numbers = struct {
    integer: i64,
    number: f64,

    pub const descriptions = .{ .integer = "An integer of 64 bits.", .number = "A number." };
};

fn bigNumbers(given: Numbers) Numbers {
    return given;
}

fn nothing() void {}

fn word() []const u8 {
    return "word";
}

const Sized = struct {
    size: i64,

    pub const descriptions = .{ .size = "How many." };
};

fn blob(given: Sized) !cofferdam.Content {
    if (given.size < 0 or given.size > 1 << 20) return cofferdam.fail(.{
        .message = cofferdam.print("there are no {d} bytes", .{given.size}),
        .suggestion = "pass 0 to 1048576",
    });
    const bytes = try cofferdam.allocator.alloc(u8, @intCast(given.size));
    for (bytes, 0..) |*byte, at| byte.* = @truncate(at);
    return .{ .blob = .{ .media_type = "application/octet-stream", .data = bytes } };
}

fn several() []const cofferdam.Content {
    return &.{
        .{ .text = "one" },
        .{ .json = .{ .text = "{\"two\":2}" } },
        .{ .blob = .{ .media_type = "image/png", .data = "\x89PNG" } },
        .{ .resource = .{ .uri = "memo:three", .media_type = "text/plain", .body = .{ .text = "three" } } },
        .{ .link = .{ .uri = "https://example.com/four.csv", .name = "four.csv", .media_type = "text/csv" } },
    };
}

const Answer = struct { answer: i64 };

fn annotated() Answer {
    return .{ .answer = 42 };
}

const tool = cofferdam.tool;

comptime {
    cofferdam.plugin(&.{
        tool("echo", "Returns what it was given.", echo, .{}),
        tool("defaults", "Returns what it was given, or the defaults.", defaults, .{}),
        tool("nullables", "Returns what it was given, or null.", nullables, .{}),
        tool("nested", "Sums up an order.", nested, .{}),
        tool("fail", "Reports a failure.", fail, .{}),
        tool("crash", "Ends as a bug ends.", crash, .{}),
        tool("unicode", "Looks at a text as Unicode.", unicode, .{}),
        tool("big_numbers", "Returns numbers with all their digits.", bigNumbers, .{}),
        tool("nothing", "Returns nothing.", nothing, .{}),
        tool("word", "Returns a text.", word, .{}),
        tool("blob", "Returns bytes.", blob, .{}),
        tool("several", "Returns contents of all kinds.", several, .{}),
        tool("store", "Works on the files of a store.", host.store, .{}),
        tool("missing", "Finds out that a file is not there.", host.missing, .{}),
        tool("local_file", "Reads a text file with the standard library.", host.localFile, .{}),
        tool("progress", "Reports progress.", host.progress, .{}),
        tool("log", "Says something to the client.", host.log, .{}),
        tool("relay", "Calls another tool.", host.relay, .{}),
        tool("secret", "Counts the characters of a secret.", host.secret, .{}),
        tool("http", "Sends requests over HTTP and returns the last response.", host.sendRequests, .{}),
        tool("annotated", "Has all annotations.", annotated, .{
            .title = "An annotated tool",
            .group = "reading",
            .read_only = true,
            .destructive = false,
            .idempotent = true,
            .open_world = false,
            .output_schema = true,
        }),
    });
}
