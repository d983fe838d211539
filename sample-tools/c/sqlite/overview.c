// The tool `overview`.

#include "database.h"
#include "rows.h"

#include <string.h>

enum {
    OVERVIEW_BYTES_MAX = 192 << 10,
    // Maximum bytes of a text of a sample.
    SAMPLE_BYTES_MAX = 200,
    // Number of rows at which counting ends.
    COUNT_MAX = 1000000,
    // Number of SQLite's virtual machine steps between checks of the work and the time.
    STEPS = 20000,
    // Maximum number of steps for one view, and for all views. A view can be a query without end.
    VIEW_STEPS_MAX = 5000000,
    VIEWS_STEPS_MAX = 40000000,
};

// Number of steps that are left for the view that is described, and for all views.
typedef struct work {
    int64_t view, views;
    bool is_view;
} work;

static bool is_over(const work *work) { return work->is_view && (work->view <= 0 || work->views <= 0); }

static int stop_work(void *given) {
    work *work = given;
    if (work->is_view) {
        work->view -= STEPS;
        work->views -= STEPS;
    }
    return is_over(work) || is_time_over();
}

static const char TABLES[] =
    "SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
    "AND (?1 IS NULL OR name = ?1 COLLATE NOCASE) ORDER BY type, name";
static const char KEYS[] = "SELECT \"table\", json_group_array(\"from\"), json_group_array(\"to\"), max(on_delete) "
                           "FROM (SELECT * FROM pragma_foreign_key_list(?1) ORDER BY id, seq) GROUP BY id";
static const char INDEXES[] = "SELECT l.name, l.\"unique\", (SELECT json_group_array(name) FROM pragma_index_info(l.name)) "
                              "FROM pragma_index_list(?1) AS l WHERE l.origin = 'c' ORDER BY l.name";
static const char PRIMARY[] =
    "SELECT json_group_array(name) FROM (SELECT name FROM pragma_table_xinfo(?1) WHERE pk > 0 ORDER BY pk) HAVING count(*) > 0";

static const char *text_at(sqlite3_stmt *statement, int column) { return (const char *)sqlite3_column_text(statement, column); }

static int prepare(sqlite3 *database, const char *sql, const char *table, sqlite3_stmt **statement) {
    int code = sqlite3_prepare_v2(database, sql, -1, statement, NULL);
    return code ? code : sqlite3_bind_text(*statement, 1, table, -1, SQLITE_STATIC);
}

static void add_json(cofferdam_writer *json, const char *name, sqlite3_stmt *statement, int column) {
    const char *text = text_at(statement, column);
    if (text) cofferdam_add_json(json, name, cofferdam_string_of(text));
}

static int add_primary_key(cofferdam_writer *json, sqlite3 *database, const char *table) {
    sqlite3_stmt *statement = NULL;
    int code = prepare(database, PRIMARY, table, &statement);
    if (code) return code;
    if ((code = sqlite3_step(statement)) == SQLITE_ROW) add_json(json, "primary_key", statement, 0);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_DONE : code;
}

static int add_foreign_keys(cofferdam_writer *json, sqlite3 *database, const char *table) {
    sqlite3_stmt *statement = NULL;
    int code = prepare(database, KEYS, table, &statement);
    if (code) return code;
    bool has_any = false;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!has_any) cofferdam_begin_array(json, "foreign_keys");
        has_any = true;
        cofferdam_begin_object(json, NULL);
        add_json(json, "columns", statement, 1);
        cofferdam_add_text(json, "table", text_at(statement, 0));
        add_json(json, "to", statement, 2);
        const char *on_delete = text_at(statement, 3);
        if (on_delete && strcmp(on_delete, "NO ACTION")) cofferdam_add_text(json, "on_delete", on_delete);
        cofferdam_end(json);
    }
    if (has_any) cofferdam_end(json);
    sqlite3_finalize(statement);
    return code;
}

static int add_indexes(cofferdam_writer *json, sqlite3 *database, const char *table) {
    sqlite3_stmt *statement = NULL;
    int code = prepare(database, INDEXES, table, &statement);
    if (code) return code;
    bool has_any = false;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        if (!has_any) cofferdam_begin_array(json, "indexes");
        has_any = true;
        cofferdam_begin_object(json, NULL);
        cofferdam_add_text(json, "name", text_at(statement, 0));
        if (sqlite3_column_int(statement, 1)) cofferdam_add_boolean(json, "unique", true);
        add_json(json, "columns", statement, 2);
        cofferdam_end(json);
    }
    if (has_any) cofferdam_end(json);
    sqlite3_finalize(statement);
    return code;
}

static sqlite3_stmt *select_of(sqlite3 *database, const char *format, const char *table, int64_t limit) {
    sqlite3_stmt *statement = NULL;
    char *sql = sqlite3_mprintf(format, table, limit);
    if (sql) sqlite3_prepare_v2(database, sql, -1, &statement, NULL);
    sqlite3_free(sql);
    return statement;
}

static int add_count(cofferdam_writer *json, sqlite3 *database, const char *table) {
    sqlite3_stmt *statement = select_of(database, "SELECT count(*) FROM (SELECT 1 FROM \"%w\" LIMIT %lld)", table, COUNT_MAX + 1);
    int code = statement ? sqlite3_step(statement) : sqlite3_errcode(database);
    if (code != SQLITE_ROW) return code;
    int64_t count = sqlite3_column_int64(statement, 0);
    cofferdam_add_integer(json, count > COUNT_MAX ? "rows_at_least" : "rows", count > COUNT_MAX ? COUNT_MAX : count);
    sqlite3_finalize(statement);
    return SQLITE_DONE;
}

static int add_sample(cofferdam_writer *json, sqlite3 *database, const char *table, int64_t rows) {
    // One row more tells whether there are more.
    sqlite3_stmt *statement = select_of(database, "SELECT * FROM \"%w\" LIMIT %lld", table, rows + 1);
    if (!statement) return sqlite3_errcode(database);
    cofferdam_begin_object(json, "sample");
    int code = add_rows(json, statement, (row_limits){rows, SAMPLE_BYTES_MAX});
    cofferdam_end(json);
    sqlite3_finalize(statement);
    return code == SQLITE_ROW ? SQLITE_DONE : code;
}

static int add_table(cofferdam_writer *json, sqlite3 *database, work *work, const char *type, const char *name, int64_t rows) {
    work->is_view = !strcmp(type, "view");
    work->view = VIEW_STEPS_MAX;
    cofferdam_begin_object(json, NULL);
    cofferdam_add_text(json, "name", name);
    if (strcmp(type, "table")) cofferdam_add_text(json, "type", type);
    int code = add_table_columns(json, database, name);
    if (code == SQLITE_DONE) code = add_primary_key(json, database, name);
    if (code == SQLITE_DONE) code = add_foreign_keys(json, database, name);
    if (code == SQLITE_DONE) code = add_indexes(json, database, name);
    if (code == SQLITE_DONE) code = add_count(json, database, name);
    if (code == SQLITE_DONE && rows) code = add_sample(json, database, name, rows);
    // One view that refers to a table that is gone does not hide all others.
    bool is_too_long = code == SQLITE_INTERRUPT && is_over(work);
    if (code == SQLITE_ERROR) cofferdam_add_text(json, "problem", sqlite3_errmsg(database));
    if (is_too_long) cofferdam_add_text(json, "problem", "reading its rows takes too long");
    work->is_view = false;
    cofferdam_end(json);
    return code == SQLITE_ERROR || is_too_long ? SQLITE_DONE : code;
}

COFFERDAM_TOOL(overview, "Describes the tables and views of an SQLite database for someone who does not know it: columns, primary and "
                         "foreign keys, indexes, number of rows, and sample rows with texts of at most 200 bytes. Call it before "
                         "`query`.",
               COFFERDAM_TITLE("Overview of an SQLite database"), COFFERDAM_READ_ONLY, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, "The database file in a mount, such as `/data/app.db`."),
               COFFERDAM_STRING_OPTIONAL(table, "Only the table or view of this name."),
               COFFERDAM_INTEGER_IN_OR(sample_rows, "Number of sample rows of each table.", 0, 20, 3)) {
    opened opened = open_database(arguments->file, READING);
    if (!opened.database) return opened.failure;
    sqlite3_stmt *statement = NULL;
    work work = {.views = VIEWS_STEPS_MAX};
    sqlite3_progress_handler(opened.database, STEPS, stop_work, &work);
    if (prepare(opened.database, TABLES, arguments->table.data, &statement)) return failure_of(opened.database, READING);
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_begin_array(&json, "tables");
    int code;
    int64_t tables = 0;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && json.length < OVERVIEW_BYTES_MAX) {
        tables++;
        if (add_table(&json, opened.database, &work, text_at(statement, 0), text_at(statement, 1), arguments->sample_rows) != SQLITE_DONE)
            return failure_of(opened.database, READING);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) return failure_of(opened.database, READING);
    if (!tables && arguments->table.data)
        return cofferdam_suggest(cofferdam_fail("there is no table `%s`", arguments->table.data), "call `schema` to see the names");
    cofferdam_end(&json);
    cofferdam_add_boolean(&json, "truncated", code == SQLITE_ROW);
    return cofferdam_json(&json);
}
