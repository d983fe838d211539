// JSON, small and bounded: a parser, a writer, and the strings and the memory that both use.
//
// Everything that these functions return lives until the end of the call, so nothing is freed by
// hand. Depth is limited to COFFERDAM_DEPTH_MAX, and nothing recurses. Numbers keep all the digits
// of their source.

#ifndef COFFERDAM_JSON_H
#define COFFERDAM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Maximum nesting depth of JSON, as everywhere in Cofferdam.
#define COFFERDAM_DEPTH_MAX 128

// Memory.

// Returns zeroed memory that lives until the end of the call. Never NULL: if there is no more
// memory, the call ends with `Trap.Unreachable`. Check sizes that a model can choose before you
// call this.
void *cofferdam_allocate(size_t bytes);

// Strings.

// String in UTF-8. It may contain U+0000, so use `length`. It is followed by a NUL that is not part
// of it, so that you can pass `data` to functions of the C library. `data` is NULL for an absent
// string.
typedef struct cofferdam_string {
    const char *data;
    size_t length;
} cofferdam_string;

// Wraps a C string without copying it. NULL becomes an absent string.
cofferdam_string cofferdam_string_of(const char *text);

// Copies bytes to a string, followed by a NUL.
cofferdam_string cofferdam_string_copy(const char *data, size_t length);

// Formats like printf, into memory that lives until the end of the call.
__attribute__((format(printf, 1, 2))) cofferdam_string cofferdam_format(const char *format, ...);

// Returns whether both are equal. An absent string equals nothing.
bool cofferdam_equals(cofferdam_string text, const char *other);

// Returns the string itself if it is UTF-8, else a copy in which U+FFFD replaces invalid bytes.
// Results go through this function.
cofferdam_string cofferdam_utf8(cofferdam_string text);

// Returns the Unicode scalar value at `*at` and moves `*at` behind it. Returns U+FFFD for invalid
// bytes. Requires `*at < text.length`.
uint32_t cofferdam_next_character(cofferdam_string text, size_t *at);

// Parser.

typedef enum cofferdam_type {
    COFFERDAM_NULL,
    COFFERDAM_BOOLEAN,
    COFFERDAM_NUMBER,
    COFFERDAM_STRING,
    COFFERDAM_ARRAY,
    COFFERDAM_OBJECT,
} cofferdam_type;

// Immutable JSON value. Every function treats NULL as null, so that a path through objects needs
// only one check at its end:
// `cofferdam_text_of(cofferdam_member(cofferdam_member(order, "customer"), "name"))`.
typedef struct cofferdam_value cofferdam_value;

// Parses JSON. Returns NULL if it is invalid or nested too deeply, and then sets `*problem`, unless
// that is NULL, to a message with the position.
const cofferdam_value *cofferdam_parse(cofferdam_string json, cofferdam_string *problem);

cofferdam_type cofferdam_type_of(const cofferdam_value *value);

// Returns whether the value is null or missing, which Cofferdam treats alike.
bool cofferdam_is_null(const cofferdam_value *value);

// Returns the member of an object, or NULL if it is missing or `object` is not an object. Of
// members with the same name the last one counts.
const cofferdam_value *cofferdam_member(const cofferdam_value *object, const char *name);

// Returns the first item of an array or the first member of an object, or NULL. With
// `cofferdam_next`:
//
//     for (const cofferdam_value *item = cofferdam_first(items); item; item = cofferdam_next(item))
const cofferdam_value *cofferdam_first(const cofferdam_value *container);

// Returns the next item or member, or NULL after the last one.
const cofferdam_value *cofferdam_next(const cofferdam_value *item);

// Returns the number of items or members.
size_t cofferdam_count(const cofferdam_value *container);

// Returns the name of a member from `cofferdam_first` or `cofferdam_next`. Absent for an item of an
// array.
cofferdam_string cofferdam_name_of(const cofferdam_value *member);

// Returns the string, absent for values of other types.
cofferdam_string cofferdam_text_of(const cofferdam_value *value);

// Returns a number as in its source, such as `1e3`, absent for values of other types.
cofferdam_string cofferdam_digits_of(const cofferdam_value *value);

// Returns whether the value is a signed 64-bit integer, and then sets `*integer`. `2.0` and `1e3`
// are integers here; the host refuses them for a parameter with the type `integer`.
bool cofferdam_read_integer(const cofferdam_value *value, int64_t *integer);

// Returns whether the value is a number, and then sets `*number`. An integer over 2^53 is rounded.
bool cofferdam_read_number(const cofferdam_value *value, double *number);

// Returns whether the value is a boolean, and then sets `*boolean`.
bool cofferdam_read_boolean(const cofferdam_value *value, bool *boolean);

// Writer.

// Writes JSON piece by piece. Start with `cofferdam_writer json = {0};`. Every function takes the
// name of the member that it adds, or NULL in an array and at the outermost level.
//
//     cofferdam_writer json = {0};
//     cofferdam_begin_object(&json, NULL);
//     cofferdam_add_integer(&json, "two", 2);
//     return cofferdam_json(&json);
//
// Objects and arrays that are still open are closed at the end. Depth beyond COFFERDAM_DEPTH_MAX
// makes the result a failure. A superfluous or missing name is a mistake of the program and ends
// the call.
typedef struct cofferdam_writer {
    char *data;
    size_t length;
    size_t capacity;
    size_t depth;
    bool is_too_deep;
    bool needs_comma;
    bool is_object[COFFERDAM_DEPTH_MAX];
    // From `cofferdam_add_name`.
    cofferdam_string name;
} cofferdam_writer;

// Adds the name of the next member, which may contain U+0000, such as one from `cofferdam_name_of`.
// The function that adds the member then takes NULL as its name.
void cofferdam_add_name(cofferdam_writer *json, cofferdam_string name);

void cofferdam_begin_object(cofferdam_writer *json, const char *name);
void cofferdam_begin_array(cofferdam_writer *json, const char *name);

// Ends the innermost object or array.
void cofferdam_end(cofferdam_writer *json);

// Adds a string. An absent one becomes null.
void cofferdam_add_string(cofferdam_writer *json, const char *name, cofferdam_string text);
void cofferdam_add_text(cofferdam_writer *json, const char *name, const char *text);
void cofferdam_add_integer(cofferdam_writer *json, const char *name, int64_t integer);

// Adds a number with the fewest digits, from 15 to 17, that parse to the same number. JSON has no
// infinity and no NaN: they become null.
void cofferdam_add_number(cofferdam_writer *json, const char *name, double number);
void cofferdam_add_boolean(cofferdam_writer *json, const char *name, bool boolean);
void cofferdam_add_null(cofferdam_writer *json, const char *name);

// Copies a parsed value, numbers with all their digits.
void cofferdam_add_value(cofferdam_writer *json, const char *name, const cofferdam_value *value);

// Does the same with a name that may contain U+0000, such as one from `cofferdam_name_of`.
void cofferdam_add_member(cofferdam_writer *json, cofferdam_string name, const cofferdam_value *value);

// Adds a JSON string unchanged. It must be valid JSON.
void cofferdam_add_json(cofferdam_writer *json, const char *name, cofferdam_string text);

// Closes open objects and arrays and returns the JSON, absent if it is nested too deeply.
cofferdam_string cofferdam_written(cofferdam_writer *json);

#ifdef __cplusplus
}
#endif

#endif
