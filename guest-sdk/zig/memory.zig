//! Memory that lives until the end of the call, when all of it is freed together.

const std = @import("std");
const c = @import("c.zig");

/// Allocator of this memory. Freeing does nothing. It never fails: if there is no more memory, the
/// call ends with `Trap.Unreachable`. Check sizes that a model can choose.
pub const allocator: std.mem.Allocator = .{ .ptr = undefined, .vtable = &.{
    .alloc = alloc,
    .resize = std.mem.Allocator.noResize,
    .remap = std.mem.Allocator.noRemap,
    .free = std.mem.Allocator.noFree,
} };

/// Alignment of the blocks of the C SDK.
const block_alignment: std.mem.Alignment = .@"16";

fn alloc(_: *anyopaque, length: usize, alignment: std.mem.Alignment, _: usize) ?[*]u8 {
    if (alignment.compare(.lte, block_alignment)) return @ptrCast(c.cofferdam_allocate(length));
    const room = std.math.add(usize, length, alignment.toByteUnits()) catch return null;
    const start = @intFromPtr(c.cofferdam_allocate(room));
    return @ptrFromInt(alignment.forward(start));
}

/// Formats into this memory.
pub fn print(comptime format: []const u8, arguments: anytype) []const u8 {
    return allocator.print(format, arguments) catch @panic("out of memory");
}

pub fn allocate(comptime T: type, count: usize) []T {
    return allocator.alloc(T, count) catch @panic("out of memory");
}

pub fn copy(text: []const u8) []u8 {
    const made = allocate(u8, text.len);
    @memcpy(made, text);
    return made;
}

/// Returns a copy that is followed by a NUL.
pub fn sentinel(text: []const u8) [:0]const u8 {
    return allocator.dupeSentinel(u8, text, 0) catch @panic("out of memory");
}
