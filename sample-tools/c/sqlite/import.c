// The tool `import_csv`.

#include "csv.h"
#include "database.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    // Maximum number of errors that a result lists.
    SHOWN_ERRORS_MAX = 10,
    // Number of rows between checks of the time.
    ROWS_PER_CHECK = 1000,
    NAME_BYTES_MAX = 200,
};

typedef enum kind { NOTHING, INTEGER, REAL, TEXT } kind;

static const char *const TYPES[] = {"TEXT", "INTEGER", "REAL", "TEXT"};

typedef struct column {
    cofferdam_string name;
    kind kind;
} column;

typedef struct import {
    sqlite3 *database;
    const char *csv, *table;
    char delimiter;
    bool has_header, is_created;
    int64_t errors_max, rows, skipped;
    size_t count;
    column columns[CSV_COLUMNS_MAX];
    cofferdam_writer errors;
} import;

// Returns the type of a cell. Numbers with a leading zero, such as postal codes, are text.
static kind kind_of(csv_cell cell) {
    if (!cell.data) return NOTHING;
    const char *text = cell.data, *digits = text + (*text == '-');
    if (strlen(text) != cell.length || !isdigit((unsigned char)*digits)) return TEXT;
    if (digits[0] == '0' && isdigit((unsigned char)digits[1])) return TEXT;
    if (strspn(text, "-+.eE0123456789") != cell.length) return TEXT;
    char *end;
    errno = 0;
    strtoll(text, &end, 10);
    if (!*end && !errno) return INTEGER;
    strtod(text, &end);
    return *end ? TEXT : REAL;
}

static kind widest(kind one, kind other) { return one > other ? one : other; }

static cofferdam_result stopped(import *import, csv_reader *reader, const char *message) {
    return cofferdam_fail("line %lld of `%s`: %s", (long long)reader->line, import->csv, message);
}

static cofferdam_result unreadable(import *import, csv_reader *reader, csv_status status) {
    cofferdam_result result = stopped(import, reader, csv_message(status));
    const char *suggestion = csv_suggestion(status);
    return suggestion ? cofferdam_suggest(result, "%s", suggestion) : result;
}

static cofferdam_result open_csv(import *import, csv_reader *reader) {
    FILE *file = fopen(import->csv, "rb");
    if (!file)
        return cofferdam_suggest(cofferdam_fail("`%s` cannot be opened: %s", import->csv, strerror(errno)),
                                 "pass the path of a CSV file in a mount, such as `/data/people.csv`");
    csv_begin(reader, file, import->delimiter);
    return cofferdam_nothing();
}

static void close_csv(csv_reader *reader) {
    fclose(reader->file);
    free(reader->bytes);
}

static bool is_taken(const import *import, size_t count, cofferdam_string name) {
    for (size_t at = 0; at < count; at++)
        if (!sqlite3_stricmp(import->columns[at].name.data, name.data)) return true;
    return false;
}

// Names the columns by a row of the file, or by their numbers.
static void name_columns(import *import, const csv_reader *reader) {
    import->count = reader->count;
    for (size_t at = 0; at < import->count; at++) {
        csv_cell cell = reader->cells[at];
        bool is_named = import->has_header && cell.data && cell.length && cell.length <= NAME_BYTES_MAX;
        cofferdam_string base = is_named ? cofferdam_utf8(cofferdam_string_copy(cell.data, strlen(cell.data)))
                                         : cofferdam_format("column_%zu", at + 1);
        cofferdam_string name = base;
        for (int number = 2; is_taken(import, at, name); number++) name = cofferdam_format("%s_%d", base.data, number);
        import->columns[at] = (column){name, NOTHING};
    }
}

// Reads the whole file once to find the columns and their types.
static cofferdam_result infer(import *import) {
    static csv_reader reader;
    cofferdam_result opened = open_csv(import, &reader);
    if (opened.failure) return opened;
    csv_status status = csv_next(&reader);
    if (status == CSV_END) return cofferdam_fail("`%s` is empty", import->csv);
    if (status == CSV_ROW) name_columns(import, &reader);
    if (status == CSV_ROW && import->has_header) status = csv_next(&reader);
    for (; status == CSV_ROW; status = csv_next(&reader))
        for (size_t at = 0; at < reader.count && at < import->count; at++)
            import->columns[at].kind = widest(import->columns[at].kind, kind_of(reader.cells[at]));
    if (status != CSV_END) return unreadable(import, &reader, status);
    close_csv(&reader);
    return cofferdam_nothing();
}

static bool table_exists(import *import) {
    return !sqlite3_table_column_metadata(import->database, "main", import->table, NULL, NULL, NULL, NULL, NULL, NULL);
}

static int create_table(import *import) {
    sqlite3_str *sql = sqlite3_str_new(import->database);
    sqlite3_str_appendf(sql, "CREATE TABLE \"%w\" (", import->table);
    for (size_t at = 0; at < import->count; at++)
        sqlite3_str_appendf(sql, "%s\"%w\" %s", at ? ", " : "", import->columns[at].name.data, TYPES[import->columns[at].kind]);
    sqlite3_str_appendchar(sql, 1, ')');
    char *text = sqlite3_str_finish(sql);
    int code = text ? sqlite3_exec(import->database, text, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

// Compiles the statement that inserts a row. With a header, the columns are named.
static int compile_insert(import *import, sqlite3_stmt **statement) {
    sqlite3_str *sql = sqlite3_str_new(import->database);
    sqlite3_str_appendf(sql, "INSERT INTO \"%w\"", import->table);
    for (size_t at = 0; import->has_header && at < import->count; at++)
        sqlite3_str_appendf(sql, "%s\"%w\"", at ? ", " : " (", import->columns[at].name.data);
    if (import->has_header) sqlite3_str_appendchar(sql, 1, ')');
    for (size_t at = 0; at < import->count; at++) sqlite3_str_appendf(sql, "%s?", at ? ", " : " VALUES (");
    sqlite3_str_appendchar(sql, 1, ')');
    char *text = sqlite3_str_finish(sql);
    int code = text ? sqlite3_prepare_v2(import->database, text, -1, statement, NULL) : SQLITE_NOMEM;
    sqlite3_free(text);
    return code;
}

static void add_error(import *import, int64_t line, const char *message) {
    if (import->skipped > SHOWN_ERRORS_MAX) return;
    cofferdam_begin_object(&import->errors, NULL);
    cofferdam_add_integer(&import->errors, "line", line);
    cofferdam_add_text(&import->errors, "message", message);
    cofferdam_end(&import->errors);
}

// Inserts a row and returns the message of an error, or NULL.
static const char *insert(import *import, sqlite3_stmt *statement, const csv_reader *reader) {
    if (reader->count != import->count)
        return cofferdam_format("it has %zu cells, expected %zu", reader->count, import->count).data;
    for (size_t at = 0; at < reader->count; at++) {
        csv_cell cell = reader->cells[at];
        // The column's type converts text to numbers.
        int code = cell.data ? sqlite3_bind_text64(statement, (int)at + 1, cell.data, cell.length, SQLITE_STATIC, SQLITE_UTF8)
                             : sqlite3_bind_null(statement, (int)at + 1);
        if (code) return sqlite3_errstr(code);
    }
    int code = sqlite3_step(statement);
    const char *message = code == SQLITE_DONE ? NULL : cofferdam_format("%s", sqlite3_errmsg(import->database)).data;
    sqlite3_reset(statement);
    return message;
}

static cofferdam_result insert_all(import *import, sqlite3_stmt *statement) {
    static csv_reader reader;
    cofferdam_result opened = open_csv(import, &reader);
    if (opened.failure) return opened;
    csv_status status = csv_next(&reader);
    if (import->has_header) status = csv_next(&reader);
    for (; status == CSV_ROW; status = csv_next(&reader)) {
        const char *error = insert(import, statement, &reader);
        if (!error && ++import->rows % ROWS_PER_CHECK) continue;
        if (is_time_over())
            return cofferdam_suggest(cofferdam_fail("the time is over after %lld rows", (long long)import->rows),
                                     "import a part of the file, or ask for a longer timeout");
        if (!error) continue;
        int code = sqlite3_errcode(import->database);
        bool is_fatal = code == SQLITE_FULL || code == SQLITE_NOMEM || code == SQLITE_INTERRUPT || (code & 0xFF) == SQLITE_IOERR;
        if (is_fatal) return failure_of(import->database, CHANGING);
        if (++import->skipped > import->errors_max)
            return cofferdam_suggest(stopped(import, &reader, error), "correct the row, or pass `errors_max` to leave such rows out");
        add_error(import, reader.line, error);
    }
    if (status != CSV_END) return unreadable(import, &reader, status);
    close_csv(&reader);
    return cofferdam_nothing();
}

static char delimiter_of(cofferdam_string name) {
    if (cofferdam_equals(name, "semicolon")) return ';';
    if (cofferdam_equals(name, "tab")) return '\t';
    return cofferdam_equals(name, "pipe") ? '|' : ',';
}

COFFERDAM_TOOL(import_csv, "Imports a CSV file of a mount into a table of an SQLite database. A table that is not there is created, "
                           "with types that fit all cells; otherwise the names in the first row have to be columns of it. Empty cells "
                           "become NULL. Either all rows are imported, except for at most `errors_max`, or none.",
               COFFERDAM_TITLE("Import CSV into SQLite"), COFFERDAM_IS_READ_ONLY(false), COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, "The database file in a mount, such as `/data/app.db`. It is created if it is not there."),
               COFFERDAM_STRING(csv, "The CSV file in a mount, such as `/data/people.csv`."),
               COFFERDAM_STRING(table, "The name of the table."),
               COFFERDAM_BOOLEAN_OR(header, "Whether the first row has the names of the columns.", true),
               COFFERDAM_CHOICE_OR(delimiter, "What is between cells.", "comma", "comma", "semicolon", "tab", "pipe"),
               COFFERDAM_INTEGER_IN_OR(errors_max, "Maximum number of rows that may be left out because of an error.", 0, 1000000, 0)) {
    static import import;
    memset(&import, 0, sizeof import);
    import.csv = arguments->csv.data;
    import.table = arguments->table.data;
    import.has_header = arguments->header;
    import.errors_max = arguments->errors_max;
    import.delimiter = delimiter_of(arguments->delimiter);
    if (!arguments->table.length || strlen(import.table) != arguments->table.length || arguments->table.length > NAME_BYTES_MAX)
        return cofferdam_fail("`%s` is no name of a table", import.table);
    cofferdam_result inferred = infer(&import);
    if (inferred.failure) return inferred;
    opened opened = open_database(arguments->file, CREATING);
    if (!opened.database) return opened.failure;
    import.database = opened.database;
    import.is_created = !table_exists(&import);
    if (sqlite3_exec(opened.database, "BEGIN", NULL, NULL, NULL)) return failure_of(opened.database, CREATING);
    sqlite3_stmt *statement = NULL;
    if (import.is_created && create_table(&import)) return failure_of(opened.database, CREATING);
    if (compile_insert(&import, &statement)) return failure_of(opened.database, CREATING);
    cofferdam_begin_array(&import.errors, NULL);
    cofferdam_result inserted = insert_all(&import, statement);
    if (inserted.failure) return inserted;
    sqlite3_finalize(statement);
    if (sqlite3_exec(opened.database, "COMMIT", NULL, NULL, NULL)) return failure_of(opened.database, CREATING);
    if (sqlite3_close(opened.database)) return cofferdam_fail("the database cannot be closed");
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_boolean(&json, "created", import.is_created);
    cofferdam_begin_array(&json, "columns");
    for (size_t at = 0; at < import.count; at++) {
        cofferdam_begin_object(&json, NULL);
        cofferdam_add_string(&json, "name", import.columns[at].name);
        cofferdam_add_text(&json, "type", TYPES[import.columns[at].kind]);
        cofferdam_end(&json);
    }
    cofferdam_end(&json);
    cofferdam_add_integer(&json, "rows", import.rows);
    cofferdam_add_integer(&json, "skipped", import.skipped);
    cofferdam_end(&import.errors);
    if (import.skipped) cofferdam_add_json(&json, "errors", cofferdam_written(&import.errors));
    return cofferdam_json(&json);
}
