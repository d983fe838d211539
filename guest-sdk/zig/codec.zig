//! Types of Zig as JSON: their schemas, and values from and to JSON.

const std = @import("std");
const c = @import("c.zig");
const memory = @import("memory.zig");

/// Any JSON value, as its text.
pub const Json = struct {
    text: []const u8,

    /// Encodes a value. Null if it is nested too deeply.
    pub fn of(value: anytype) ?Json {
        var writer: c.Writer = .{};
        write(&writer, null, value);
        return .{ .text = c.cofferdam_written(&writer).optional() orelse return null };
    }

    /// Decodes the value as one of the types that a parameter can have.
    pub fn as(json: Json, comptime T: type) error{InvalidJson}!T {
        const value = c.cofferdam_parse(.of(json.text), null) orelse return error.InvalidJson;
        return read(T, value) catch error.InvalidJson;
    }
};

/// Object with any names, each with a value of the same type.
pub fn Map(comptime T: type) type {
    return struct {
        entries: []const Entry = &.{},

        pub const Entry = struct { name: []const u8, value: T };
        /// Type of the values.
        pub const Item = T;

        /// Returns the value of a name.
        pub fn get(map: @This(), name: []const u8) ?T {
            for (map.entries) |entry| {
                if (std.mem.eql(u8, entry.name, name)) return entry.value;
            }
            return null;
        }
    };
}

fn isMap(comptime T: type) bool {
    return @typeInfo(T) == .@"struct" and @hasDecl(T, "Item") and @hasDecl(T, "Entry") and T == Map(T.Item);
}

fn isText(comptime T: type) bool {
    return T == []const u8 or T == []u8;
}

/// Returns the description of a field, from `pub const descriptions` of its struct.
fn descriptionOf(comptime T: type, comptime name: []const u8) ?[]const u8 {
    if (!@hasDecl(T, "descriptions") or !@hasField(@TypeOf(T.descriptions), name)) return null;
    return @field(T.descriptions, name);
}

/// Checks the struct of a tool's arguments when the plugin is compiled.
pub fn checkArguments(comptime tool: []const u8, comptime T: type) void {
    const where = "tool `" ++ tool ++ "`: ";
    if (@typeInfo(T) != .@"struct") @compileError(where ++ "its arguments have to be a struct, not " ++ @typeName(T));
    const fields = @typeInfo(T).@"struct".field_names;
    for (fields) |name| {
        if (descriptionOf(T, name) == null) @compileError(
            where ++ "`pub const descriptions` of " ++ @typeName(T) ++ " has to describe `" ++ name ++ "`",
        );
    }
    if (fields.len == 0) return;
    for (@typeInfo(@TypeOf(T.descriptions)).@"struct".field_names) |name| {
        if (!@hasField(T, name)) @compileError(where ++ "`descriptions` describes `" ++ name ++ "`, which is not a field");
    }
}

/// Returns the schema of a type as a JSON string.
pub fn schemaOf(comptime T: type, comptime use: Use) c.String {
    var json: c.Writer = .{};
    c.cofferdam_begin_object(&json, null);
    addSchema(&json, T, false, use);
    return c.cofferdam_written(&json);
}

/// A result has all of its fields. Of arguments, those with a default can be missing.
pub const Use = enum { arguments, result };

/// Adds the members of a type's schema to the open object.
fn addSchema(json: *c.Writer, comptime T: type, comptime is_nullable: bool, comptime use: Use) void {
    if (T == Json) return;
    if (comptime isText(T)) return addType(json, "string", is_nullable);
    if (comptime isMap(T)) {
        addType(json, "object", is_nullable);
        return addNested(json, "additionalProperties", T.Item, use);
    }
    switch (@typeInfo(T)) {
        .optional => |optional| addSchema(json, optional.child, true, use),
        .bool => addType(json, "boolean", is_nullable),
        .float => |float| {
            addType(json, "number", is_nullable);
            if (float.bits < 64) c.cofferdam_add_string(json, "format", .of("float"));
        },
        .int => |int| {
            if (int.bits > 64 or (int.bits == 64 and int.signedness == .unsigned)) @compileError(
                @typeName(T) ++ " has values that are not integers in JSON; use i64",
            );
            addType(json, "integer", is_nullable);
            if (int.bits == 64) return c.cofferdam_add_string(json, "format", .of("int64"));
            c.cofferdam_add_integer(json, "minimum", std.math.minInt(T));
            c.cofferdam_add_integer(json, "maximum", std.math.maxInt(T));
        },
        .@"enum" => |of| {
            addType(json, "string", is_nullable);
            c.cofferdam_begin_array(json, "enum");
            inline for (of.field_names) |name| c.cofferdam_add_string(json, null, .of(name));
            if (is_nullable) c.cofferdam_add_null(json, null);
            c.cofferdam_end(json);
        },
        .pointer => |pointer| {
            if (pointer.size != .slice) @compileError(@typeName(T) ++ " has no form in JSON");
            addType(json, "array", is_nullable);
            addNested(json, "items", pointer.child, use);
        },
        .array => |array| {
            addType(json, "array", is_nullable);
            addNested(json, "items", array.child, use);
            c.cofferdam_add_integer(json, "minItems", array.len);
            c.cofferdam_add_integer(json, "maxItems", array.len);
        },
        .@"struct" => {
            addType(json, "object", is_nullable);
            addFields(json, T, use);
        },
        else => @compileError(@typeName(T) ++ " has no form in JSON"),
    }
}

fn addType(json: *c.Writer, comptime name: [:0]const u8, comptime is_nullable: bool) void {
    if (!is_nullable) return c.cofferdam_add_string(json, "type", .of(name));
    c.cofferdam_begin_array(json, "type");
    c.cofferdam_add_string(json, null, .of(name));
    c.cofferdam_add_string(json, null, .of("null"));
    c.cofferdam_end(json);
}

fn addNested(json: *c.Writer, comptime name: [:0]const u8, comptime T: type, comptime use: Use) void {
    c.cofferdam_begin_object(json, name);
    addSchema(json, T, false, use);
    c.cofferdam_end(json);
}

fn addFields(json: *c.Writer, comptime T: type, comptime use: Use) void {
    const of = @typeInfo(T).@"struct";
    c.cofferdam_begin_object(json, "properties");
    inline for (of.field_names, of.field_types, of.field_attrs) |name, Field, attrs| {
        c.cofferdam_begin_object(json, name);
        addSchema(json, Field, false, use);
        if (comptime descriptionOf(T, name)) |text| c.cofferdam_add_string(json, "description", .of(text));
        if (use == .arguments) if (attrs.defaultValue(Field)) |value| {
            if (@typeInfo(Field) != .optional or value != null) write(json, "default", value);
        };
        c.cofferdam_end(json);
    }
    c.cofferdam_end(json);
    c.cofferdam_begin_array(json, "required");
    inline for (of.field_names, of.field_types, of.field_attrs) |name, Field, attrs| {
        const can_miss = @typeInfo(Field) == .optional or attrs.default_value_ptr != null;
        if (use == .result or !can_miss) c.cofferdam_add_string(json, null, .of(name));
    }
    c.cofferdam_end(json);
}

/// Writes a value as a member, or as an item without a name.
pub fn write(json: *c.Writer, name: ?[*:0]const u8, value: anytype) void {
    const T = @TypeOf(value);
    if (T == Json) return c.cofferdam_add_json(json, name, .of(value.text));
    if (comptime isText(T)) return c.cofferdam_add_string(json, name, .of(value));
    if (comptime isMap(T)) {
        c.cofferdam_begin_object(json, name);
        for (value.entries) |entry| {
            c.cofferdam_add_name(json, .of(entry.name));
            write(json, null, entry.value);
        }
        return c.cofferdam_end(json);
    }
    switch (@typeInfo(T)) {
        .optional => if (value) |there| write(json, name, there) else c.cofferdam_add_null(json, name),
        .bool => c.cofferdam_add_boolean(json, name, value),
        .float, .comptime_float => c.cofferdam_add_number(json, name, value),
        .int, .comptime_int => if (std.math.cast(i64, value)) |integer| {
            c.cofferdam_add_integer(json, name, integer);
        } else {
            c.cofferdam_add_json(json, name, .of(memory.print("{d}", .{value})));
        },
        .@"enum" => c.cofferdam_add_string(json, name, .of(@tagName(value))),
        .pointer => |pointer| switch (pointer.size) {
            // A string literal is a pointer to an array.
            .one => switch (@typeInfo(pointer.child)) {
                .array => |array| write(json, name, @as([]const array.child, value)),
                else => write(json, name, value.*),
            },
            .slice => {
                c.cofferdam_begin_array(json, name);
                for (value) |item| write(json, null, item);
                c.cofferdam_end(json);
            },
            else => @compileError(@typeName(T) ++ " has no form in JSON"),
        },
        .array => write(json, name, @as([]const @typeInfo(T).array.child, &value)),
        .@"struct" => |of| {
            c.cofferdam_begin_object(json, name);
            inline for (of.field_names) |field| write(json, field, @field(value, field));
            c.cofferdam_end(json);
        },
        else => @compileError(@typeName(T) ++ " has no form in JSON"),
    }
}

pub const ReadError = error{ Missing, Mismatch };

/// Reads a value. The host has checked it already, so errors are not expected.
pub fn read(comptime T: type, value: ?*const c.Value) ReadError!T {
    if (T == Json) return .{ .text = textOf(value) };
    if (comptime isText(T)) {
        const text = c.cofferdam_text_of(value).optional() orelse return error.Mismatch;
        return if (T == []u8) memory.copy(text) else text;
    }
    if (comptime isMap(T)) return readMap(T, value);
    switch (@typeInfo(T)) {
        .optional => |optional| return if (c.cofferdam_is_null(value)) null else try read(optional.child, value),
        .bool => {
            var boolean: bool = undefined;
            return if (c.cofferdam_read_boolean(value, &boolean)) boolean else error.Mismatch;
        },
        .float => {
            var number: f64 = undefined;
            return if (c.cofferdam_read_number(value, &number)) @floatCast(number) else error.Mismatch;
        },
        .int => {
            var integer: i64 = undefined;
            if (!c.cofferdam_read_integer(value, &integer)) return error.Mismatch;
            return std.math.cast(T, integer) orelse error.Mismatch;
        },
        .@"enum" => return std.meta.stringToEnum(T, c.cofferdam_text_of(value).slice()) orelse error.Mismatch,
        .pointer => |pointer| {
            if (c.cofferdam_type_of(value) != .array) return error.Mismatch;
            const items = memory.allocate(pointer.child, c.cofferdam_count(value));
            try readItems(pointer.child, items, value);
            return items;
        },
        .array => |array| {
            if (c.cofferdam_type_of(value) != .array or c.cofferdam_count(value) != array.len) return error.Mismatch;
            var items: T = undefined;
            try readItems(array.child, &items, value);
            return items;
        },
        .@"struct" => return readFields(T, value, null),
        else => @compileError(@typeName(T) ++ " has no form in JSON"),
    }
}

fn textOf(value: ?*const c.Value) []const u8 {
    var json: c.Writer = .{};
    c.cofferdam_add_value(&json, null, value);
    return c.cofferdam_written(&json).slice();
}

fn readItems(comptime T: type, items: []T, value: ?*const c.Value) ReadError!void {
    var next = c.cofferdam_first(value);
    for (items) |*item| {
        const at = next orelse return error.Mismatch;
        item.* = try read(T, at);
        next = c.cofferdam_next(at);
    }
}

fn readMap(comptime T: type, value: ?*const c.Value) ReadError!T {
    if (c.cofferdam_type_of(value) != .object) return error.Mismatch;
    const entries = memory.allocate(T.Entry, c.cofferdam_count(value));
    var next = c.cofferdam_first(value);
    for (entries) |*entry| {
        const at = next orelse return error.Mismatch;
        entry.* = .{ .name = c.cofferdam_name_of(at).slice(), .value = try read(T.Item, at) };
        next = c.cofferdam_next(at);
    }
    return .{ .entries = entries };
}

/// Reads a struct. Sets `wrong` to the name of the field with an error.
pub fn readFields(comptime T: type, value: ?*const c.Value, wrong: ?*[]const u8) ReadError!T {
    if (c.cofferdam_type_of(value) != .object) return error.Mismatch;
    var result: T = undefined;
    const of = @typeInfo(T).@"struct";
    inline for (of.field_names, of.field_types, of.field_attrs) |name, Field, attrs| {
        const member = c.cofferdam_member(value, name);
        if (wrong) |at| at.* = name;
        if (c.cofferdam_is_null(member)) {
            if (attrs.defaultValue(Field)) |default| {
                @field(result, name) = default;
            } else if (@typeInfo(Field) == .optional) {
                @field(result, name) = null;
            } else if (Field == Json and member != null) {
                @field(result, name) = .{ .text = "null" };
            } else {
                return error.Missing;
            }
        } else {
            @field(result, name) = try read(Field, member);
        }
    }
    return result;
}
