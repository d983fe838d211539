// Memory and strings. Memory is allocated in blocks that are freed together when the call has
// ended. A call is short and has its own memory limit, and this way nothing can be freed twice or
// used after it was freed.

#include "cofferdam_abi.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Small enough to be cheap, large enough that a usual call needs only one.
enum { BLOCK_BYTES = 16384, ALIGNMENT = 16 };

typedef struct block {
    struct block *before;
    size_t used;
    size_t bytes;
    _Alignas(ALIGNMENT) char data[];
} block;

static block *newest;

void cofferdam_abort(const char *mistake) {
    fprintf(stderr, "cofferdam: %s\n", mistake);
    abort();
}

static block *new_block(size_t bytes) {
    block *made = bytes < SIZE_MAX - sizeof(block) ? calloc(1, sizeof(block) + bytes) : NULL;
    if (!made) cofferdam_abort("out of memory");
    made->bytes = bytes;
    made->before = newest;
    return newest = made;
}

void *cofferdam_allocate(size_t bytes) {
    if (bytes > SIZE_MAX - ALIGNMENT) cofferdam_abort("out of memory");
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    block *from = newest;
    if (!from || from->bytes - from->used < bytes) from = new_block(bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES);
    void *given = from->data + from->used;
    from->used += bytes;
    return given;
}

void cofferdam_release(void) {
    while (newest) {
        block *before = newest->before;
        free(newest);
        newest = before;
    }
}

cofferdam_string cofferdam_string_of(const char *text) { return (cofferdam_string){text, text ? strlen(text) : 0}; }

cofferdam_string cofferdam_string_copy(const char *data, size_t length) {
    char *copy = cofferdam_allocate(length + 1);
    if (length) memcpy(copy, data, length);
    return (cofferdam_string){copy, length};
}

cofferdam_string cofferdam_format_list(const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    if (length < 0) cofferdam_abort("a format that printf refuses");
    char *text = cofferdam_allocate((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return (cofferdam_string){text, (size_t)length};
}

cofferdam_string cofferdam_format(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cofferdam_string text = cofferdam_format_list(format, arguments);
    va_end(arguments);
    return text;
}

bool cofferdam_equals(cofferdam_string text, const char *other) {
    return text.data && other && strlen(other) == text.length && !memcmp(text.data, other, text.length);
}

// Returns the length of the UTF-8 sequence at the start of `bytes`, or 0 if it is invalid.
static size_t sequence_length(const unsigned char *bytes, size_t length) {
    unsigned char first = bytes[0];
    if (first < 0x80) return 1;
    size_t wanted = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first < 0xC2 || first > 0xF4 || length < wanted) return 0;
    // Rejects overlong sequences, surrogates, and values over U+10FFFF.
    unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
    unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    if (bytes[1] < least || bytes[1] > most) return 0;
    for (size_t at = 2; at < wanted; at++)
        if ((bytes[at] & 0xC0) != 0x80) return 0;
    return wanted;
}

static size_t sequence_at(cofferdam_string text, size_t at) {
    return sequence_length((const unsigned char *)text.data + at, text.length - at);
}

uint32_t cofferdam_next_character(cofferdam_string text, size_t *at) {
    const unsigned char *bytes = (const unsigned char *)text.data + *at;
    size_t length = sequence_at(text, *at);
    *at += length ? length : 1;
    if (!length) return 0xFFFD;
    if (length == 1) return bytes[0];
    uint32_t character = bytes[0] & (0x7Fu >> length);
    for (size_t next = 1; next < length; next++) character = character << 6 | (bytes[next] & 0x3F);
    return character;
}

cofferdam_string cofferdam_utf8(cofferdam_string text) {
    size_t at = 0, length;
    while (at < text.length && (length = sequence_at(text, at))) at += length;
    if (at == text.length) return text;
    // U+FFFD has three bytes and replaces one.
    char *copy = cofferdam_allocate(at + 3 * (text.length - at) + 1), *to = copy + at;
    memcpy(copy, text.data, at);
    for (; at < text.length; at += length ? length : 1) {
        length = sequence_at(text, at);
        memcpy(to, length ? text.data + at : "\xEF\xBF\xBD", length ? length : 3);
        to += length ? length : 3;
    }
    return (cofferdam_string){copy, (size_t)(to - copy)};
}
