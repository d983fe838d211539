// Tests of JSON, strings and memory. Run by `make` in this directory.

#include "../cofferdam_test.h"

#include <stdlib.h>
#include <string.h>

static bool reads(const char *json) { return cofferdam_parse(cofferdam_string_of(json), NULL); }

// Parses JSON and writes it again.
static const char *again(const char *json) {
    const cofferdam_value *value = cofferdam_parse(cofferdam_string_of(json), NULL);
    if (!value) return "(not JSON)";
    cofferdam_writer writer = {0};
    cofferdam_add_value(&writer, NULL, value);
    cofferdam_string text = cofferdam_written(&writer);
    return text.data ? text.data : "(too deep)";
}

#define SAME(json, expected) COFFERDAM_CHECK(!strcmp(again(json), expected))

static void values_come_back(void) {
    SAME(" [ 1 , {\"a\" : [ ] , \"b\" : {} } , null , true,false ] ", "[1,{\"a\":[],\"b\":{}},null,true,false]");
    SAME("18446744073709551615", "18446744073709551615");
    SAME("-0.10e+2", "-0.10e+2");
    SAME("\"\\ud83e\\udd80 \\u00f1 \\/ \\u0000\"", "\"\xF0\x9F\xA6\x80 \xC3\xB1 / \\u0000\"");
    SAME("{\"a\":{\"b\":[[1],[2,[3]]]},\"c\":4}", "{\"a\":{\"b\":[[1],[2,[3]]]},\"c\":4}");
}

static void what_is_not_json_is_refused(void) {
    static const char *const WRONG[] = {
        "", " ", "[", "]", "[1,]", "[,1]", "{", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "-", "+1", "1e",
        "nul", "tru", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\n\"", "1 2", "[1 2]",
        "{\"a\":1 \"b\":2}", "[}", "{]", "NaN", "Infinity", "'a'", "\"\\", "[\"\\\"", "\xFF",
    };
    for (size_t at = 0; at < sizeof WRONG / sizeof *WRONG; at++) {
        cofferdam_test_check(__FILE__, __LINE__, !reads(WRONG[at]), WRONG[at]);
    }
    cofferdam_string problem;
    COFFERDAM_CHECK(!cofferdam_parse(cofferdam_string_of("[1,x]"), &problem));
    COFFERDAM_CHECK(cofferdam_equals(problem, "a value is missing at byte 3"));
}

static void depth_has_a_limit(void) {
    char text[600];
    for (int depth = 127; depth <= 129; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = 0;
        COFFERDAM_CHECK(reads(text) == (depth <= 128));
        if (depth == 128) SAME(text, text);
    }
    cofferdam_writer json = {0};
    for (int depth = 0; depth < 129; depth++) cofferdam_begin_array(&json, NULL);
    cofferdam_result result = cofferdam_json(&json);
    COFFERDAM_CHECK(result.failure && cofferdam_equals(result.failure->message, "the result is nested too deeply"));
}

static bool is_integer(const char *json, int64_t expected) {
    int64_t integer = 0;
    return cofferdam_read_integer(cofferdam_parse(cofferdam_string_of(json), NULL), &integer) && integer == expected;
}

static void integers_have_64_bits(void) {
    COFFERDAM_CHECK(is_integer("9223372036854775807", INT64_MAX));
    COFFERDAM_CHECK(is_integer("-9223372036854775808", INT64_MIN));
    COFFERDAM_CHECK(is_integer("1e3", 1000) && is_integer("2.0", 2));
    int64_t integer;
    COFFERDAM_CHECK(!cofferdam_read_integer(cofferdam_parse(cofferdam_string_of("9223372036854775808"), NULL), &integer));
    COFFERDAM_CHECK(!cofferdam_read_integer(cofferdam_parse(cofferdam_string_of("1.5"), NULL), &integer));
    COFFERDAM_CHECK(!cofferdam_read_integer(cofferdam_parse(cofferdam_string_of("1e300"), NULL), &integer));
    COFFERDAM_CHECK(!cofferdam_read_integer(NULL, &integer));
}

static const char *written(double number) {
    cofferdam_writer json = {0};
    cofferdam_add_number(&json, NULL, number);
    return cofferdam_written(&json).data;
}

static void numbers_are_written_as_short_as_they_can_be(void) {
    COFFERDAM_CHECK(!strcmp(written(0.1), "0.1") && !strcmp(written(2), "2") && !strcmp(written(0.0 / 0.0), "null"));
    COFFERDAM_CHECK(strtod(written(1.7976931348623157e308), NULL) == 1.7976931348623157e308);
    COFFERDAM_CHECK(strtod(written(0.1 + 0.2), NULL) == 0.1 + 0.2);
}

static void names_keep_all_of_their_characters(void) {
    const char *expected = "{\"a\\u0000b\":1,\"a\\u0000c\":[2],\"\":null,\"d\":{}}";
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_name(&json, (cofferdam_string){"a\0b", 3});
    cofferdam_add_integer(&json, NULL, 1);
    cofferdam_add_name(&json, (cofferdam_string){"a\0c", 3});
    cofferdam_begin_array(&json, NULL);
    cofferdam_add_integer(&json, NULL, 2);
    cofferdam_end(&json);
    cofferdam_add_name(&json, (cofferdam_string){"", 0});
    cofferdam_add_null(&json, NULL);
    cofferdam_begin_object(&json, "d");
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_written(&json), expected));
    SAME(expected, expected);
}

static void texts_become_utf8(void) {
    cofferdam_string broken = cofferdam_string_copy("a\xFF\xC3\xA9\xED\xA0\x80\xC0", 8);
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_utf8(broken), "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"));
    cofferdam_string text = cofferdam_string_of("\xC3\xB1\xF0\x9F\xA6\x80");
    size_t at = 0;
    COFFERDAM_CHECK(cofferdam_next_character(text, &at) == 0xF1 && at == 2);
    COFFERDAM_CHECK(cofferdam_next_character(text, &at) == 0x1F980 && at == 6);
}

static void members_are_found(void) {
    const cofferdam_value *value = cofferdam_parse(cofferdam_string_of("{\"a\":1,\"b\":{\"c\":\"x\"},\"a\":2}"), NULL);
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_digits_of(cofferdam_member(value, "a")), "2"));
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_text_of(cofferdam_member(cofferdam_member(value, "b"), "c")), "x"));
    COFFERDAM_CHECK(!cofferdam_member(cofferdam_member(value, "nosuch"), "c") && cofferdam_is_null(NULL));
    COFFERDAM_CHECK(cofferdam_count(value) == 3 && !cofferdam_text_of(value).data);
}

// Cuts and changes a string in every way. Run with -fsanitize=address to detect accesses out of
// bounds.
static void nothing_breaks_the_reader(void) {
    static const char TEXT[] = "{\"a\":[1,-2.5e3,\"\\u00e9\\ud83e\\udd80\\n\",{\"b\":null}],\"c\":true}";
    for (size_t length = 0; length < sizeof TEXT; length++) {
        char *copy = malloc(length + 1);
        for (size_t at = 0; at < length; at++)
            for (int change = 0; change < 256; change += 5) {
                memcpy(copy, TEXT, length);
                copy[at] = (char)change;
                cofferdam_parse((cofferdam_string){copy, length}, NULL);
            }
        free(copy);
    }
    COFFERDAM_CHECK(true);
}

COFFERDAM_TOOL(unused, "A program needs a plugin.") { return cofferdam_nothing(); }
COFFERDAM_PLUGIN(unused)

int main(void) {
    values_come_back();
    what_is_not_json_is_refused();
    depth_has_a_limit();
    integers_have_64_bits();
    numbers_are_written_as_short_as_they_can_be();
    names_keep_all_of_their_characters();
    texts_become_utf8();
    members_are_found();
    nothing_breaks_the_reader();
    return cofferdam_test_end();
}
