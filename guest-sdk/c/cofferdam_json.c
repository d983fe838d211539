// Parses JSON (RFC 8259) into a tree. The open containers are in an array of COFFERDAM_DEPTH_MAX,
// so hostile input cannot cause recursion.

#include "cofferdam_json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cofferdam_value {
    cofferdam_type type;
    bool boolean;
    cofferdam_string name;
    // The content of a string, or the digits of a number.
    cofferdam_string text;
    cofferdam_value *first;
    cofferdam_value *last;
    cofferdam_value *next;
    size_t count;
};

// Parser.

typedef struct reader {
    const char *at;
    const char *end;
    const char *problem;
} reader;

static bool fail(reader *reader, const char *problem) {
    if (!reader->problem) reader->problem = problem;
    return false;
}

static void skip_blanks(reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r'))
        reader->at++;
}

static bool is_next(const reader *reader, char wanted) { return reader->at < reader->end && *reader->at == wanted; }

static bool take(reader *reader, char wanted) {
    bool is_there = is_next(reader, wanted);
    reader->at += is_there;
    return is_there;
}

static bool take_word(reader *reader, const char *word) {
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length)) return false;
    reader->at += length;
    return true;
}

static bool is_digit(const reader *reader) {
    return reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9';
}

static bool take_digits(reader *reader) {
    if (!is_digit(reader)) return fail(reader, "a digit is missing");
    while (is_digit(reader)) reader->at++;
    return true;
}

static bool read_number(reader *reader, cofferdam_value *value) {
    const char *start = reader->at;
    take(reader, '-');
    if (!take(reader, '0') && !take_digits(reader)) return false;
    if (take(reader, '.') && !take_digits(reader)) return false;
    if (take(reader, 'e') || take(reader, 'E')) {
        if (!take(reader, '+')) take(reader, '-');
        if (!take_digits(reader)) return false;
    }
    value->type = COFFERDAM_NUMBER;
    value->text = cofferdam_string_copy(start, (size_t)(reader->at - start));
    return true;
}

static bool read_hex(reader *reader, uint32_t *unit) {
    *unit = 0;
    for (int digit = 0; digit < 4; digit++) {
        if (reader->at == reader->end) return fail(reader, "an escape is cut off");
        char letter = *reader->at++;
        uint32_t nibble;
        if (letter >= '0' && letter <= '9') nibble = (uint32_t)(letter - '0');
        else if (letter >= 'a' && letter <= 'f') nibble = (uint32_t)(letter - 'a' + 10);
        else if (letter >= 'A' && letter <= 'F') nibble = (uint32_t)(letter - 'A' + 10);
        else return fail(reader, "an escape has a letter that is not hexadecimal");
        *unit = *unit << 4 | nibble;
    }
    return true;
}

static size_t put_utf8(char *to, uint32_t character) {
    if (character < 0x80) {
        to[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        to[0] = (char)(0xC0 | character >> 6);
        to[1] = (char)(0x80 | (character & 0x3F));
        return 2;
    }
    if (character < 0x10000) {
        to[0] = (char)(0xE0 | character >> 12);
        to[1] = (char)(0x80 | (character >> 6 & 0x3F));
        to[2] = (char)(0x80 | (character & 0x3F));
        return 3;
    }
    to[0] = (char)(0xF0 | character >> 18);
    to[1] = (char)(0x80 | (character >> 12 & 0x3F));
    to[2] = (char)(0x80 | (character >> 6 & 0x3F));
    to[3] = (char)(0x80 | (character & 0x3F));
    return 4;
}

// Reads the digits after `\u`. An unpaired surrogate has no UTF-8 and is an error.
static bool read_unicode(reader *reader, char **to) {
    uint32_t unit, low;
    if (!read_hex(reader, &unit)) return false;
    if (unit >= 0xD800 && unit < 0xE000) {
        if (unit >= 0xDC00 || !take_word(reader, "\\u")) return fail(reader, "unpaired surrogate");
        if (!read_hex(reader, &low)) return false;
        if (low < 0xDC00 || low > 0xDFFF) return fail(reader, "unpaired surrogate");
        unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    }
    *to += put_utf8(*to, unit);
    return true;
}

static bool read_escape(reader *reader, char **to) {
    static const char LETTERS[] = "\"\\/bfnrt", MEANT[] = "\"\\/\b\f\n\r\t";
    if (reader->at == reader->end) return fail(reader, "an escape is cut off");
    char letter = *reader->at++;
    if (letter == 'u') return read_unicode(reader, to);
    const char *found = letter ? strchr(LETTERS, letter) : NULL;
    if (!found) return fail(reader, "there is no such escape");
    *(*to)++ = MEANT[found - LETTERS];
    return true;
}

// Reads a string after its opening quote. The result is never longer than the source.
static bool read_string(reader *reader, cofferdam_string *text) {
    const char *end = reader->at;
    while (end < reader->end && *end != '"') end += *end == '\\' && end + 1 < reader->end ? 2 : 1;
    if (end == reader->end) return fail(reader, "unterminated string");
    char *start = cofferdam_allocate((size_t)(end - reader->at) + 1), *to = start;
    while (reader->at < end) {
        char letter = *reader->at++;
        if ((unsigned char)letter < 0x20) return fail(reader, "unescaped control character in a string");
        if (letter != '\\') *to++ = letter;
        else if (!read_escape(reader, &to)) return false;
    }
    reader->at = end + 1;
    *text = cofferdam_utf8((cofferdam_string){start, (size_t)(to - start)});
    return true;
}

static bool read_scalar(reader *reader, cofferdam_value *value) {
    if (take(reader, '"')) {
        value->type = COFFERDAM_STRING;
        return read_string(reader, &value->text);
    }
    value->boolean = take_word(reader, "true");
    if (value->boolean || take_word(reader, "false")) {
        value->type = COFFERDAM_BOOLEAN;
        return true;
    }
    if (take_word(reader, "null")) return true;
    if (is_digit(reader) || is_next(reader, '-')) return read_number(reader, value);
    return fail(reader, "a value is missing");
}

static void append(cofferdam_value *container, cofferdam_value *value) {
    if (container->last) container->last->next = value;
    else container->first = value;
    container->last = value;
    container->count++;
}

static bool read_name(reader *reader, cofferdam_string *name) {
    skip_blanks(reader);
    if (!take(reader, '"')) return fail(reader, "the name of a member is missing");
    if (!read_string(reader, name)) return false;
    skip_blanks(reader);
    return take(reader, ':') || fail(reader, "the colon behind the name of a member is missing");
}

// Closes containers and reads the comma after a value. Returns false if the outermost value is
// complete, or on an error.
static bool goes_on(reader *reader, cofferdam_value **open, size_t *depth) {
    while (*depth) {
        skip_blanks(reader);
        if (take(reader, ',')) return true;
        bool is_array = open[*depth - 1]->type == COFFERDAM_ARRAY;
        if (!take(reader, is_array ? ']' : '}')) return fail(reader, is_array ? "a comma or `]` is missing" : "a comma or `}` is missing");
        --*depth;
    }
    return false;
}

// Returns whether the value is a non-empty container, whose first item or member comes next.
static bool opens(reader *reader, cofferdam_value *value, cofferdam_value **open, size_t *depth) {
    bool is_array = take(reader, '[');
    if (!is_array && !take(reader, '{')) return !read_scalar(reader, value);
    value->type = is_array ? COFFERDAM_ARRAY : COFFERDAM_OBJECT;
    if (*depth == COFFERDAM_DEPTH_MAX) return !fail(reader, "it is nested too deeply");
    skip_blanks(reader);
    if (take(reader, is_array ? ']' : '}')) return false;
    open[(*depth)++] = value;
    return true;
}

static cofferdam_value *read_tree(reader *reader) {
    cofferdam_value *open[COFFERDAM_DEPTH_MAX], *outermost = NULL;
    size_t depth = 0;
    while (!reader->problem) {
        cofferdam_value *value = cofferdam_allocate(sizeof *value), *container = depth ? open[depth - 1] : NULL;
        if (container && container->type == COFFERDAM_OBJECT && !read_name(reader, &value->name)) break;
        if (container) append(container, value);
        else outermost = value;
        skip_blanks(reader);
        if (!opens(reader, value, open, &depth) && !goes_on(reader, open, &depth)) break;
    }
    return outermost;
}

const cofferdam_value *cofferdam_parse(cofferdam_string json, cofferdam_string *problem) {
    reader reader = {json.data, json.data + json.length, NULL};
    cofferdam_value *value = read_tree(&reader);
    skip_blanks(&reader);
    if (reader.at < reader.end) fail(&reader, "unexpected data after the value");
    if (!reader.problem) return value;
    if (problem) *problem = cofferdam_format("%s at byte %zu", reader.problem, (size_t)(reader.at - json.data));
    return NULL;
}

cofferdam_type cofferdam_type_of(const cofferdam_value *value) { return value ? value->type : COFFERDAM_NULL; }

bool cofferdam_is_null(const cofferdam_value *value) { return cofferdam_type_of(value) == COFFERDAM_NULL; }

const cofferdam_value *cofferdam_member(const cofferdam_value *object, const char *name) {
    if (cofferdam_type_of(object) != COFFERDAM_OBJECT) return NULL;
    const cofferdam_value *found = NULL;
    for (const cofferdam_value *member = object->first; member; member = member->next)
        if (cofferdam_equals(member->name, name)) found = member;
    return found;
}

const cofferdam_value *cofferdam_first(const cofferdam_value *container) { return container ? container->first : NULL; }

const cofferdam_value *cofferdam_next(const cofferdam_value *item) { return item ? item->next : NULL; }

size_t cofferdam_count(const cofferdam_value *container) { return container ? container->count : 0; }

cofferdam_string cofferdam_name_of(const cofferdam_value *member) {
    return member ? member->name : (cofferdam_string){NULL, 0};
}

static cofferdam_string text_if(const cofferdam_value *value, cofferdam_type type) {
    return cofferdam_type_of(value) == type && value ? value->text : (cofferdam_string){NULL, 0};
}

cofferdam_string cofferdam_text_of(const cofferdam_value *value) { return text_if(value, COFFERDAM_STRING); }

cofferdam_string cofferdam_digits_of(const cofferdam_value *value) { return text_if(value, COFFERDAM_NUMBER); }

bool cofferdam_read_integer(const cofferdam_value *value, int64_t *integer) {
    cofferdam_string digits = cofferdam_digits_of(value);
    if (!digits.data) return false;
    if (strspn(digits.data, "-0123456789") == digits.length) {
        errno = 0;
        long long read = strtoll(digits.data, NULL, 10);
        if (!errno) *integer = read;
        return !errno;
    }
    // Beyond 2^53, the number does not identify one integer.
    double number = strtod(digits.data, NULL);
    if (number != floor(number) || fabs(number) > 9007199254740992.0) return false;
    *integer = (int64_t)number;
    return true;
}

bool cofferdam_read_number(const cofferdam_value *value, double *number) {
    cofferdam_string digits = cofferdam_digits_of(value);
    if (digits.data) *number = strtod(digits.data, NULL);
    return digits.data;
}

bool cofferdam_read_boolean(const cofferdam_value *value, bool *boolean) {
    if (cofferdam_type_of(value) != COFFERDAM_BOOLEAN) return false;
    *boolean = value->boolean;
    return true;
}
