//! Tests plugins natively. In the `build.zig` of a project:
//!
//!     const std = @import("std");
//!     const cofferdam = @import("cofferdam");
//!
//!     pub fn build(b: *std.Build) void {
//!         cofferdam.addTests(b, b.path("main.zig"));
//!     }
//!
//! `zig build test` then runs the tests of the file. `cofferdam build` builds the component without
//! it.

const std = @import("std");

pub fn build(_: *std.Build) void {}

/// Adds the step `test`, which runs the tests of a file on this machine.
pub fn addTests(b: *std.Build, root_source_file: std.Build.LazyPath) void {
    const sdk = b.dependency("cofferdam", .{}).builder;
    const cofferdam = sdk.createModule(.{
        .root_source_file = sdk.path("cofferdam.zig"),
        .target = b.graph.host,
        .link_libc = true,
    });
    cofferdam.addCSourceFiles(.{
        .root = sdk.path("../c"),
        .files = &sources,
        .flags = &.{"-std=gnu17"},
    });
    const tests = b.addTest(.{ .root_module = b.createModule(.{
        .root_source_file = root_source_file,
        .target = b.graph.host,
        .imports = &.{.{ .name = "cofferdam", .module = cofferdam }},
    }) });
    b.step("test", "Run the tests natively").dependOn(&b.addRunArtifact(tests).step);
}

/// The C SDK, over which this one is written.
const sources = [_][]const u8{
    "cofferdam.c",
    "cofferdam_http.c",
    "cofferdam_http_native.c",
    "cofferdam_json.c",
    "cofferdam_memory.c",
    "cofferdam_native.c",
    "cofferdam_test.c",
    "cofferdam_write.c",
};
