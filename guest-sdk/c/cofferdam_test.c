// Implements cofferdam_test.h. Not part of components.

#ifndef __wasm__

#include "cofferdam_test.h"
#include "cofferdam_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int checked, failed;

static const cofferdam_tool *find(const char *name) { return cofferdam_find(cofferdam_string_of(name)); }

cofferdam_result cofferdam_test_call(const char *tool, const char *arguments) {
    const cofferdam_tool *found = find(tool);
    if (!found) return cofferdam_fail("there is no tool `%s`", tool);
    return cofferdam_start(found, cofferdam_string_of(arguments));
}

static void add_bytes(cofferdam_writer *json, const cofferdam_content *content) {
    cofferdam_add_integer(json, "bytes", (int64_t)content->data.length);
}

static void add_content(cofferdam_writer *json, const cofferdam_content *content) {
    if (content->type == COFFERDAM_CONTENT_TEXT) return cofferdam_add_string(json, NULL, content->text);
    if (content->type == COFFERDAM_CONTENT_JSON) {
        cofferdam_string problem;
        const cofferdam_value *value = cofferdam_parse(content->text, &problem);
        if (!value) cofferdam_abort(cofferdam_format("a result is not JSON: %s", problem.data).data);
        return cofferdam_add_value(json, NULL, value);
    }
    cofferdam_begin_object(json, NULL);
    if (content->type != COFFERDAM_CONTENT_BLOB) cofferdam_add_string(json, "uri", content->uri);
    if (content->type == COFFERDAM_CONTENT_LINK) cofferdam_add_string(json, "name", content->name);
    cofferdam_add_string(json, "media_type", content->media_type);
    if (content->type == COFFERDAM_CONTENT_RESOURCE_TEXT) cofferdam_add_string(json, "text", content->text);
    else if (content->type != COFFERDAM_CONTENT_LINK) add_bytes(json, content);
    cofferdam_end(json);
}

static void add_failure(cofferdam_writer *json, const cofferdam_failure *failure) {
    cofferdam_begin_object(json, NULL);
    if (failure->value.data) return cofferdam_add_json(json, "error", failure->value);
    cofferdam_begin_object(json, "error");
    cofferdam_add_string(json, "message", failure->message);
    if (failure->suggestion.data) cofferdam_add_string(json, "suggestion", failure->suggestion);
}

cofferdam_string cofferdam_test_value(cofferdam_result result) {
    cofferdam_writer json = {0};
    if (result.failure) add_failure(&json, result.failure);
    else if (!result.count) cofferdam_add_null(&json, NULL);
    else if (result.count == 1) add_content(&json, result.contents);
    else {
        cofferdam_begin_array(&json, NULL);
        for (size_t at = 0; at < result.count; at++) add_content(&json, &result.contents[at]);
    }
    return cofferdam_written(&json);
}

cofferdam_string cofferdam_test_input_schema(const char *tool) {
    const cofferdam_tool *found = find(tool);
    return found ? cofferdam_input_schema(found) : cofferdam_string_of(NULL);
}

cofferdam_string cofferdam_test_output_schema(const char *tool) {
    const cofferdam_tool *found = find(tool);
    return found ? cofferdam_output_schema(found) : cofferdam_string_of(NULL);
}

void cofferdam_test_check(const char *file, int line, bool holds, const char *what) {
    checked++;
    if (holds) return;
    failed++;
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
}

// Compares values: the order of members does not matter, and 1.0 equals 1. The parser limits the
// depth.
static bool is_same(const cofferdam_value *one, const cofferdam_value *other) {
    bool flag = false, other_flag = false;
    double number, other_number;
    if (cofferdam_type_of(one) != cofferdam_type_of(other) || cofferdam_count(one) != cofferdam_count(other)) return false;
    switch (cofferdam_type_of(one)) {
    case COFFERDAM_NULL: return true;
    case COFFERDAM_BOOLEAN:
        return cofferdam_read_boolean(one, &flag) && cofferdam_read_boolean(other, &other_flag) && flag == other_flag;
    case COFFERDAM_NUMBER:
        if (cofferdam_equals(cofferdam_digits_of(one), cofferdam_digits_of(other).data)) return true;
        return cofferdam_read_number(one, &number) && cofferdam_read_number(other, &other_number) && number == other_number;
    case COFFERDAM_STRING: {
        cofferdam_string text = cofferdam_text_of(one), other_text = cofferdam_text_of(other);
        return text.length == other_text.length && !memcmp(text.data, other_text.data, text.length);
    }
    default: break;
    }
    const cofferdam_value *item = cofferdam_first(one), *against = cofferdam_first(other);
    for (; item; item = cofferdam_next(item), against = cofferdam_next(against)) {
        bool is_array = cofferdam_type_of(one) == COFFERDAM_ARRAY;
        if (!is_same(item, is_array ? against : cofferdam_member(other, cofferdam_name_of(item).data))) return false;
    }
    return true;
}

void cofferdam_test_expect(const char *file, int line, const char *tool, const char *arguments, const char *json) {
    cofferdam_string value = cofferdam_test_value(cofferdam_test_call(tool, arguments));
    const cofferdam_value *expected = cofferdam_parse(cofferdam_string_of(json), NULL);
    if (!expected) cofferdam_abort(cofferdam_format("%s:%d: what is expected is not JSON", file, line).data);
    bool holds = is_same(cofferdam_parse(value, NULL), expected);
    cofferdam_test_check(file, line, holds, cofferdam_format("expected %s\n  but `%s` gave %s", json, tool, value.data).data);
}

void cofferdam_test_expect_failure(const char *file, int line, const char *tool, const char *arguments, const char *message) {
    cofferdam_result result = cofferdam_test_call(tool, arguments);
    bool holds = result.failure && cofferdam_equals(result.failure->message, message);
    cofferdam_string value = cofferdam_test_value(result);
    cofferdam_test_check(
        file, line, holds, cofferdam_format("expected the failure `%s`\n  but `%s` gave %s", message, tool, value.data).data);
}

int cofferdam_test_end(void) {
    fprintf(stderr, "%d checks, %d failed\n", checked, failed);
    cofferdam_release();
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
