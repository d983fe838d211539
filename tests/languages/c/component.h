// `files` of ../files.wit in the canonical ABI, by hand: a generator would be one more tool to install.

#ifndef COMPONENT_H
#define COMPONENT_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    char *bytes;
    size_t length;
} text;

typedef struct {
    text *items;
    size_t length;
} texts;

// `result<list<string>, string>`: both cases are an address and a length.
typedef struct {
    uint8_t is_error;
    void *at;
    size_t length;
} result;

__attribute__((export_name("files"))) result *files(texts *items, size_t length);

// Where the host puts arguments. A call is the only one of its instance, so that nothing is ever freed.
__attribute__((export_name("cabi_realloc"))) void *cabi_realloc(void *old, size_t old_bytes, size_t align, size_t bytes);

#endif
