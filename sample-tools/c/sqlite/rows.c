#include "rows.h"

enum {
    BLOB_BYTES_MAX = 4 << 10,
    RESULT_BYTES_MAX = 256 << 10,
};

static int bind_one(sqlite3_stmt *statement, int at, const cofferdam_value *value) {
    int64_t integer;
    double number;
    bool boolean;
    if (cofferdam_read_integer(value, &integer)) return sqlite3_bind_int64(statement, at, integer);
    if (cofferdam_read_number(value, &number)) return sqlite3_bind_double(statement, at, number);
    if (cofferdam_read_boolean(value, &boolean)) return sqlite3_bind_int(statement, at, boolean);
    cofferdam_string text = cofferdam_text_of(value);
    if (!text.data) return sqlite3_bind_null(statement, at);
    return sqlite3_bind_text64(statement, at, text.data, text.length, SQLITE_STATIC, SQLITE_UTF8);
}

cofferdam_result bind(sqlite3_stmt *statement, const cofferdam_value *parameters) {
    int wanted = sqlite3_bind_parameter_count(statement), at = 0;
    if ((size_t)wanted != cofferdam_count(parameters))
        return cofferdam_suggest(
            cofferdam_fail("the statement has %d parameters, %zu were given", wanted, cofferdam_count(parameters)),
            "pass one item of `parameters` for each `?`");
    for (const cofferdam_value *value = cofferdam_first(parameters); value; value = cofferdam_next(value))
        if (bind_one(statement, ++at, value)) return cofferdam_fail("parameter %d is too long", at);
    return cofferdam_nothing();
}

static cofferdam_string base64(const unsigned char *bytes, size_t length) {
    static const char LETTERS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = cofferdam_allocate((length + 2) / 3 * 4 + 1), *to = text;
    for (size_t at = 0; at < length; at += 3) {
        size_t left = length - at;
        uint32_t three = (uint32_t)bytes[at] << 16 | (left > 1 ? (uint32_t)bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0);
        *to++ = LETTERS[three >> 18];
        *to++ = LETTERS[three >> 12 & 63];
        *to++ = left > 1 ? LETTERS[three >> 6 & 63] : '=';
        *to++ = left > 2 ? LETTERS[three & 63] : '=';
    }
    return (cofferdam_string){text, (size_t)(to - text)};
}

// Adds {"text", "bytes"} if the text was cut.
static void add_text(cofferdam_writer *json, cofferdam_string text, size_t bytes_max) {
    if (text.length <= bytes_max) return cofferdam_add_string(json, NULL, text);
    size_t end = bytes_max;
    // Does not cut inside a character.
    while (end && (text.data[end] & 0xC0) == 0x80) end--;
    cofferdam_begin_object(json, NULL);
    cofferdam_add_string(json, "text", cofferdam_string_copy(text.data, end));
    cofferdam_add_integer(json, "bytes", (int64_t)text.length);
    cofferdam_end(json);
}

// Adds {"base64", "bytes"}, without the content if it is long.
static void add_blob(cofferdam_writer *json, const void *bytes, size_t length, size_t bytes_max) {
    cofferdam_begin_object(json, NULL);
    if (length <= BLOB_BYTES_MAX && length <= bytes_max) cofferdam_add_string(json, "base64", base64(bytes, length));
    cofferdam_add_integer(json, "bytes", (int64_t)length);
    cofferdam_end(json);
}

static void add_cell(cofferdam_writer *json, sqlite3_stmt *statement, int column, size_t bytes_max) {
    switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER: return cofferdam_add_integer(json, NULL, sqlite3_column_int64(statement, column));
    case SQLITE_FLOAT: return cofferdam_add_number(json, NULL, sqlite3_column_double(statement, column));
    case SQLITE_TEXT: {
        const char *text = (const char *)sqlite3_column_text(statement, column);
        size_t length = text ? (size_t)sqlite3_column_bytes(statement, column) : 0;
        return add_text(json, (cofferdam_string){text ? text : "", length}, bytes_max);
    }
    case SQLITE_BLOB: {
        const void *bytes = sqlite3_column_blob(statement, column);
        return add_blob(json, bytes, (size_t)sqlite3_column_bytes(statement, column), bytes_max);
    }
    default: return cofferdam_add_null(json, NULL);
    }
}

static const char COLUMNS[] = "SELECT name, type, \"notnull\", pk, dflt_value FROM pragma_table_xinfo(?) WHERE hidden != 1";

int add_table_columns(cofferdam_writer *json, sqlite3 *database, const char *table) {
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(database, COLUMNS, -1, &statement, NULL);
    if (code) return code;
    sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
    cofferdam_begin_array(json, "columns");
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        cofferdam_begin_object(json, NULL);
        cofferdam_add_text(json, "name", (const char *)sqlite3_column_text(statement, 0));
        cofferdam_add_text(json, "type", (const char *)sqlite3_column_text(statement, 1));
        if (sqlite3_column_int(statement, 2)) cofferdam_add_boolean(json, "not_null", true);
        if (sqlite3_column_int(statement, 3)) cofferdam_add_boolean(json, "primary_key", true);
        const char *otherwise = (const char *)sqlite3_column_text(statement, 4);
        if (otherwise) cofferdam_add_text(json, "default", otherwise);
        cofferdam_end(json);
    }
    cofferdam_end(json);
    sqlite3_finalize(statement);
    return code;
}

static void add_columns(cofferdam_writer *json, sqlite3_stmt *statement) {
    cofferdam_begin_array(json, "columns");
    for (int column = 0; column < sqlite3_column_count(statement); column++)
        cofferdam_add_text(json, NULL, sqlite3_column_name(statement, column));
    cofferdam_end(json);
}

int add_rows(cofferdam_writer *json, sqlite3_stmt *statement, row_limits limits) {
    int code;
    int64_t rows = 0;
    bool has_room = true;
    add_columns(json, statement);
    cofferdam_begin_array(json, "rows");
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        has_room = rows < limits.rows_max && json->length < RESULT_BYTES_MAX;
        if (!has_room) break;
        cofferdam_begin_array(json, NULL);
        for (int column = 0; column < sqlite3_column_count(statement); column++) add_cell(json, statement, column, limits.bytes_max);
        cofferdam_end(json);
        rows++;
    }
    cofferdam_end(json);
    cofferdam_add_boolean(json, "truncated", !has_room);
    return code;
}
