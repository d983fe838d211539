//! `zig build test` runs the tests of the SDK natively.

const std = @import("std");
const cofferdam = @import("cofferdam");

pub fn build(b: *std.Build) void {
    cofferdam.addTests(b, b.path("main.zig"));
}
