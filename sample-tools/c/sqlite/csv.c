#include "csv.h"

#include <stdlib.h>
#include <string.h>

void csv_begin(csv_reader *reader, FILE *file, char delimiter) {
    memset(reader, 0, sizeof *reader);
    reader->file = file;
    reader->delimiter = delimiter;
    reader->next_line = 1;
    static const unsigned char MARK[] = {0xEF, 0xBB, 0xBF};
    unsigned char start[sizeof MARK];
    size_t length = fread(start, 1, sizeof start, file);
    reader->is_utf16 = length >= 2 && (!memcmp(start, "\xFF\xFE", 2) || !memcmp(start, "\xFE\xFF", 2));
    if (length != sizeof start || memcmp(start, MARK, sizeof start)) rewind(file);
}

static bool append(csv_reader *reader, char byte) {
    if (reader->length == reader->capacity) {
        size_t capacity = reader->capacity ? 2 * reader->capacity : 1 << 12;
        char *bytes = capacity > 2 * (size_t)CSV_ROW_BYTES_MAX ? NULL : realloc(reader->bytes, capacity);
        if (!bytes) return false;
        reader->bytes = bytes;
        reader->capacity = capacity;
    }
    reader->bytes[reader->length++] = byte;
    return reader->length <= CSV_ROW_BYTES_MAX;
}

static bool begin_cell(csv_reader *reader) {
    if (reader->count == CSV_COLUMNS_MAX) return false;
    reader->starts[reader->count] = reader->length;
    reader->quoted[reader->count] = false;
    reader->count++;
    return true;
}

// Reads a row up to its line break, with a NUL after each cell.
static csv_status read_row(csv_reader *reader) {
    bool is_open = false;
    reader->count = reader->length = 0;
    reader->line = reader->next_line;
    if (reader->is_utf16) return CSV_UTF16;
    int byte = getc(reader->file);
    if (byte == EOF) return ferror(reader->file) ? CSV_UNREADABLE : CSV_END;
    begin_cell(reader);
    for (;; byte = getc(reader->file)) {
        size_t cell = reader->count - 1;
        if (byte == EOF) {
            if (ferror(reader->file)) return CSV_UNREADABLE;
            if (is_open) return CSV_OPEN_QUOTE;
            break;
        }
        if (byte == '\n') reader->next_line++;
        // A zero would end a cell.
        if (!byte) return CSV_ZERO;
        if (is_open && byte == '"') {
            int after = getc(reader->file);
            is_open = after == '"';
            if (!is_open && after != EOF) ungetc(after, reader->file);
            if (is_open && !append(reader, '"')) return CSV_TOO_LONG;
        } else if (is_open) {
            if (!append(reader, (char)byte)) return CSV_TOO_LONG;
        } else if (byte == '"' && reader->length == reader->starts[cell] && !reader->quoted[cell]) {
            is_open = reader->quoted[cell] = true;
        } else if (byte == reader->delimiter) {
            if (!append(reader, '\0')) return CSV_TOO_LONG;
            if (!begin_cell(reader)) return CSV_TOO_WIDE;
        } else if (byte == '\n') {
            break;
        } else if (byte == '\r') {
            int after = getc(reader->file);
            if (after != EOF) ungetc(after, reader->file);
            if (after != '\n' && !append(reader, '\r')) return CSV_TOO_LONG;
        } else if (!append(reader, (char)byte)) {
            return CSV_TOO_LONG;
        }
    }
    return append(reader, '\0') ? CSV_ROW : CSV_TOO_LONG;
}

// Returns whether text is UTF-8, which has no overlong forms, no surrogates, and nothing above U+10FFFF.
static bool is_utf8(const char *text, size_t length) {
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    while (at < end) {
        unsigned char first = *at++;
        if (first < 0x80) continue;
        int more = first < 0xC2 ? 0 : first < 0xE0 ? 1 : first < 0xF0 ? 2 : first < 0xF5 ? 3 : 0;
        if (!more || end - at < more) return false;
        unsigned char least = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        unsigned char most = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
        if (*at < least || *at > most) return false;
        for (at++; more > 1; more--, at++)
            if ((*at & 0xC0) != 0x80) return false;
    }
    return true;
}

csv_status csv_next(csv_reader *reader) {
    csv_status status;
    do {
        status = read_row(reader);
        if (status != CSV_ROW) return status;
        if (!is_utf8(reader->bytes, reader->length)) return CSV_NOT_UTF8;
        for (size_t cell = 0; cell < reader->count; cell++) {
            size_t end = cell + 1 < reader->count ? reader->starts[cell + 1] : reader->length;
            size_t length = end - 1 - reader->starts[cell];
            bool is_null = !length && !reader->quoted[cell];
            reader->cells[cell] = (csv_cell){is_null ? NULL : reader->bytes + reader->starts[cell], length};
        }
    } while (reader->count == 1 && !reader->cells[0].data);
    return status;
}

const char *csv_message(csv_status status) {
    switch (status) {
    case CSV_TOO_LONG: return "the row has more than 4194304 bytes";
    case CSV_TOO_WIDE: return "the row has more than 500 cells";
    case CSV_OPEN_QUOTE: return "a quote is not closed";
    case CSV_UNREADABLE: return "the file cannot be read";
    case CSV_UTF16: return "the file is UTF-16 text, expected UTF-8";
    case CSV_ZERO: return "there is a zero byte, expected UTF-8 text";
    case CSV_NOT_UTF8: return "there are bytes that are not UTF-8";
    default: return "no error";
    }
}

const char *csv_suggestion(csv_status status) {
    switch (status) {
    case CSV_UTF16: return "have the file converted, for example by `iconv -f UTF-16 -t UTF-8`";
    case CSV_ZERO: return "have the file converted, for example by `iconv -f UTF-16LE -t UTF-8`, if it is UTF-16 text";
    case CSV_NOT_UTF8: return "have the file converted, for example by `iconv -f WINDOWS-1252 -t UTF-8`";
    default: return NULL;
    }
}
