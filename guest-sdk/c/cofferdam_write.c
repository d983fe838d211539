// Writes JSON.

#include "cofferdam_abi.h"
#include "cofferdam_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(cofferdam_writer *json, const char *data, size_t length) {
    if (json->capacity - json->length < length) {
        size_t wanted = json->length + length;
        size_t capacity = json->capacity * 2 > wanted ? json->capacity * 2 : wanted + 64;
        // The old buffer is not freed, because all memory is freed at the end of the call.
        char *grown = cofferdam_allocate(capacity);
        if (json->length) memcpy(grown, json->data, json->length);
        json->data = grown;
        json->capacity = capacity;
    }
    memcpy(json->data + json->length, data, length);
    json->length += length;
}

static void put_text(cofferdam_writer *json, const char *text) { put(json, text, strlen(text)); }

static void put_escaped(cofferdam_writer *json, unsigned char letter) {
    static const char LETTERS[] = "\"\\\b\f\n\r\t", ESCAPES[] = "\"\\bfnrt";
    char escape[8];
    const char *found = letter ? strchr(LETTERS, letter) : NULL;
    if (found) snprintf(escape, sizeof escape, "\\%c", ESCAPES[found - LETTERS]);
    else snprintf(escape, sizeof escape, "\\u%04x", letter);
    put_text(json, escape);
}

static void put_string(cofferdam_writer *json, cofferdam_string text) {
    text = cofferdam_utf8(text);
    put(json, "\"", 1);
    size_t plain = 0;
    for (size_t at = 0; at < text.length; at++) {
        unsigned char letter = (unsigned char)text.data[at];
        if (letter >= 0x20 && letter != '"' && letter != '\\') continue;
        put(json, text.data + plain, at - plain);
        put_escaped(json, letter);
        plain = at + 1;
    }
    put(json, text.data + plain, text.length - plain);
    put(json, "\"", 1);
}

void cofferdam_add_name(cofferdam_writer *json, cofferdam_string name) { json->name = name; }

static void begin_value(cofferdam_writer *json, cofferdam_string name) {
    if (!name.data) name = json->name;
    json->name = (cofferdam_string){NULL, 0};
    if (!json->depth && json->length) cofferdam_abort("a JSON text has one outermost value");
    if (!!name.data != (json->depth && json->is_object[json->depth - 1]))
        cofferdam_abort(name.data ? "a member name is allowed only in a JSON object" : "a member of a JSON object has no name");
    if (json->needs_comma) put(json, ",", 1);
    json->needs_comma = true;
    if (!name.data) return;
    put_string(json, name);
    put(json, ":", 1);
}

static void begin(cofferdam_writer *json, cofferdam_string name, bool is_object) {
    if (json->is_too_deep) return;
    begin_value(json, name);
    json->is_too_deep = json->depth == COFFERDAM_DEPTH_MAX;
    if (json->is_too_deep) return;
    json->is_object[json->depth++] = is_object;
    json->needs_comma = false;
    put(json, is_object ? "{" : "[", 1);
}

static void put_scalar(cofferdam_writer *json, cofferdam_string name, const char *text) {
    if (json->is_too_deep) return;
    begin_value(json, name);
    put_text(json, text);
}

void cofferdam_begin_object(cofferdam_writer *json, const char *name) { begin(json, cofferdam_string_of(name), true); }

void cofferdam_begin_array(cofferdam_writer *json, const char *name) { begin(json, cofferdam_string_of(name), false); }

void cofferdam_end(cofferdam_writer *json) {
    if (json->is_too_deep) return;
    if (!json->depth) cofferdam_abort("no JSON object or array is open");
    put(json, json->is_object[--json->depth] ? "}" : "]", 1);
    json->needs_comma = true;
}

static void add_string(cofferdam_writer *json, cofferdam_string name, cofferdam_string text) {
    if (json->is_too_deep) return;
    begin_value(json, name);
    if (text.data) put_string(json, text);
    else put_text(json, "null");
}

void cofferdam_add_string(cofferdam_writer *json, const char *name, cofferdam_string text) {
    add_string(json, cofferdam_string_of(name), text);
}

void cofferdam_add_text(cofferdam_writer *json, const char *name, const char *text) {
    add_string(json, cofferdam_string_of(name), cofferdam_string_of(text));
}

void cofferdam_add_integer(cofferdam_writer *json, const char *name, int64_t integer) {
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)integer);
    put_scalar(json, cofferdam_string_of(name), digits);
}

void cofferdam_add_number(cofferdam_writer *json, const char *name, double number) {
    char digits[40] = "null";
    for (int precision = 15; isfinite(number) && precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, number);
        if (strtod(digits, NULL) == number) break;
    }
    put_scalar(json, cofferdam_string_of(name), digits);
}

void cofferdam_add_boolean(cofferdam_writer *json, const char *name, bool boolean) {
    put_scalar(json, cofferdam_string_of(name), boolean ? "true" : "false");
}

void cofferdam_add_null(cofferdam_writer *json, const char *name) { put_scalar(json, cofferdam_string_of(name), "null"); }

static void add_one(cofferdam_writer *json, cofferdam_string name, const cofferdam_value *value) {
    bool boolean = false;
    switch (cofferdam_type_of(value)) {
    case COFFERDAM_NULL: return put_scalar(json, name, "null");
    case COFFERDAM_BOOLEAN: cofferdam_read_boolean(value, &boolean); return put_scalar(json, name, boolean ? "true" : "false");
    case COFFERDAM_NUMBER: return put_scalar(json, name, cofferdam_digits_of(value).data);
    case COFFERDAM_STRING: return add_string(json, name, cofferdam_text_of(value));
    case COFFERDAM_ARRAY: return begin(json, name, false);
    case COFFERDAM_OBJECT: return begin(json, name, true);
    }
}

void cofferdam_add_member(cofferdam_writer *json, cofferdam_string name, const cofferdam_value *value) {
    const cofferdam_value *open[COFFERDAM_DEPTH_MAX + 1];
    size_t depth = 0;
    for (;;) {
        add_one(json, name, value);
        if (json->is_too_deep) return;
        bool is_container = cofferdam_type_of(value) >= COFFERDAM_ARRAY;
        if (is_container) open[depth++] = value;
        const cofferdam_value *next = is_container ? cofferdam_first(value) : depth ? cofferdam_next(value) : NULL;
        while (!next && depth) {
            cofferdam_end(json);
            value = open[--depth];
            next = depth ? cofferdam_next(value) : NULL;
        }
        if (!next) return;
        value = next;
        name = cofferdam_name_of(value);
    }
}

void cofferdam_add_value(cofferdam_writer *json, const char *name, const cofferdam_value *value) {
    cofferdam_add_member(json, cofferdam_string_of(name), value);
}

void cofferdam_add_json(cofferdam_writer *json, const char *name, cofferdam_string text) {
    if (json->is_too_deep) return;
    begin_value(json, cofferdam_string_of(name));
    put(json, text.data, text.length);
}

cofferdam_string cofferdam_written(cofferdam_writer *json) {
    if (json->is_too_deep) return (cofferdam_string){NULL, 0};
    while (json->depth) cofferdam_end(json);
    if (!json->length) cofferdam_abort("a JSON text without a value");
    put(json, "", 1);
    return (cofferdam_string){json->data, --json->length};
}
