// JSON, small and bounded: a reader, a writer, and the texts and the memory that both work with.
//
// Everything that is made here lives until the end of the tool call, so nothing is ever freed by hand. Depth is limited
// to COFFERDAM_DEPTH_MAX, and nothing recurses. Numbers keep all the digits they were written with.

#ifndef COFFERDAM_JSON_H
#define COFFERDAM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// How deep JSON may be nested, as everywhere in Cofferdam.
#define COFFERDAM_DEPTH_MAX 128

// Memory.

// Zeroed memory that lives until the end of the call. Never NULL: when there is no more, the call ends with
// `Trap.Unreachable`. Check sizes that a model can choose before you come here.
void *cofferdam_allocate(size_t bytes);

// Texts.

// A text in UTF-8. It may hold U+0000, so its length counts; behind it always stands a NUL that is not part of it, so that
// `data` can be given to functions of the C library. `data` is NULL for a text that is absent.
typedef struct cofferdam_string {
    const char *data;
    size_t length;
} cofferdam_string;

// The text of a C string, which is not copied. NULL becomes an absent text.
cofferdam_string cofferdam_string_of(const char *text);

// A copy of some bytes as a text, with a NUL behind it.
cofferdam_string cofferdam_string_copy(const char *data, size_t length);

// Formats as printf does, into memory that lives until the end of the call.
__attribute__((format(printf, 1, 2))) cofferdam_string cofferdam_format(const char *format, ...);

// Whether both are the same. Nothing is equal to an absent text.
bool cofferdam_equals(cofferdam_string text, const char *other);

// The text itself if it is UTF-8, else a copy with U+FFFD in the place of what is not. Results go through this.
cofferdam_string cofferdam_utf8(cofferdam_string text);

// Takes the Unicode scalar value at `*at` out of a text and moves `*at` behind it. U+FFFD for what is not UTF-8. Only to be
// called while `*at < text.length`.
uint32_t cofferdam_next_character(cofferdam_string text, size_t *at);

// Reading.

typedef enum cofferdam_type {
    COFFERDAM_NULL,
    COFFERDAM_BOOLEAN,
    COFFERDAM_NUMBER,
    COFFERDAM_STRING,
    COFFERDAM_ARRAY,
    COFFERDAM_OBJECT,
} cofferdam_type;

// A JSON value, never changed. Every function takes NULL and treats it as null, so that a path through objects needs one
// check at its end: `cofferdam_text_of(cofferdam_member(cofferdam_member(order, "customer"), "name"))`.
typedef struct cofferdam_value cofferdam_value;

// Reads one JSON text. NULL if it is not JSON or nested too deeply; then `*problem`, if there is such a pointer, says what is
// wrong and where.
const cofferdam_value *cofferdam_parse(cofferdam_string json, cofferdam_string *problem);

cofferdam_type cofferdam_type_of(const cofferdam_value *value);

// Whether it is null or not there at all, which Cofferdam treats alike.
bool cofferdam_is_null(const cofferdam_value *value);

// The member of an object; NULL if there is none or this is no object. Of members with one name the last one counts.
const cofferdam_value *cofferdam_member(const cofferdam_value *object, const char *name);

// The first item of an array or the first member of an object; NULL if there is none. With `cofferdam_next`:
//
//     for (const cofferdam_value *item = cofferdam_first(items); item; item = cofferdam_next(item))
const cofferdam_value *cofferdam_first(const cofferdam_value *container);

// What stands behind an item or a member; NULL behind the last one.
const cofferdam_value *cofferdam_next(const cofferdam_value *item);

// How many items or members there are.
size_t cofferdam_count(const cofferdam_value *container);

// The name of a member that `cofferdam_first` or `cofferdam_next` gave; absent for an item of an array.
cofferdam_string cofferdam_name_of(const cofferdam_value *member);

// The text; absent if the value is no text.
cofferdam_string cofferdam_text_of(const cofferdam_value *value);

// A number as it was written, such as `1e3`; absent if the value is no number.
cofferdam_string cofferdam_digits_of(const cofferdam_value *value);

// Whether the value is an integer of 64 bits with a sign; if so, `*integer` is set. `2.0` and `1e3` are integers.
bool cofferdam_read_integer(const cofferdam_value *value, int64_t *integer);

// Whether the value is a number; if so, `*number` is set. An integer over 2^53 is rounded.
bool cofferdam_read_number(const cofferdam_value *value, double *number);

// Whether the value is true or false; if so, `*boolean` is set.
bool cofferdam_read_boolean(const cofferdam_value *value, bool *boolean);

// Writing.

// Writes a JSON text piece by piece. Start with `cofferdam_writer json = {0};`. Every function takes the name of the member it
// adds, or NULL in an array and at the outermost level.
//
//     cofferdam_writer json = {0};
//     cofferdam_begin_object(&json, NULL);
//     cofferdam_add_integer(&json, "two", 2);
//     return cofferdam_json(&json);
//
// What is open at the end is closed by itself. Depth beyond COFFERDAM_DEPTH_MAX makes the result a failure. A name where
// none belongs, or none where one belongs, is a mistake of the program and ends the call.
typedef struct cofferdam_writer {
    char *data;
    size_t length;
    size_t capacity;
    size_t depth;
    bool is_too_deep;
    bool needs_comma;
    bool is_object[COFFERDAM_DEPTH_MAX];
} cofferdam_writer;

void cofferdam_begin_object(cofferdam_writer *json, const char *name);
void cofferdam_begin_array(cofferdam_writer *json, const char *name);

// Ends the innermost object or array.
void cofferdam_end(cofferdam_writer *json);

// An absent text becomes null.
void cofferdam_add_string(cofferdam_writer *json, const char *name, cofferdam_string text);
void cofferdam_add_text(cofferdam_writer *json, const char *name, const char *text);
void cofferdam_add_integer(cofferdam_writer *json, const char *name, int64_t integer);

// The shortest of 15 to 17 digits that reads back as the same number. JSON has no infinity and no NaN: they become null.
void cofferdam_add_number(cofferdam_writer *json, const char *name, double number);
void cofferdam_add_boolean(cofferdam_writer *json, const char *name, bool boolean);
void cofferdam_add_null(cofferdam_writer *json, const char *name);

// Copies a value that was read, numbers with all their digits.
void cofferdam_add_value(cofferdam_writer *json, const char *name, const cofferdam_value *value);

// The same with a name that may hold U+0000, such as one from `cofferdam_name_of`.
void cofferdam_add_member(cofferdam_writer *json, cofferdam_string name, const cofferdam_value *value);

// Adds JSON text as it is. The caller promises that it is JSON.
void cofferdam_add_json(cofferdam_writer *json, const char *name, cofferdam_string text);

// Closes what is open and gives the text; absent if it was nested too deeply.
cofferdam_string cofferdam_written(cofferdam_writer *json);

#ifdef __cplusplus
}
#endif

#endif
