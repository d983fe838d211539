// The tools `query`, `schema` and `execute`: SQLite for the files of a mount. `overview` and
// `import_csv` are in files of their own.

#include "database.h"
#include "rows.h"

#include <string.h>

#define FILE_DESCRIPTION "The database file in a mount, such as `/data/app.db`."
#define PARAMETERS \
    COFFERDAM_VALUE_OR(parameters, "Values for each `?` of the statement, in order.", \
                       COFFERDAM_SCHEMA({"type": "array", "maxItems": 500, \
                                         "items": {"type": ["string", "number", "boolean", "null"]}}), \
                       "[]")

static bool is_blank(sqlite3 *database, cofferdam_string sql) {
    sqlite3_stmt *statement = NULL;
    cofferdam_string rest;
    return !compile(database, sql, &statement, &rest) && !statement;
}

COFFERDAM_TOOL(query, "Runs one SQL statement that reads, such as SELECT, on an SQLite database, and gives its rows. Nothing is "
                      "changed. Values go into `parameters`, not into the text. `truncated` says that there are more rows.",
               COFFERDAM_TITLE("Query SQLite"), COFFERDAM_READ_ONLY, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, FILE_DESCRIPTION),
               COFFERDAM_STRING(sql, "One statement in SQLite's SQL."),
               PARAMETERS,
               COFFERDAM_INTEGER_IN_OR(rows_max, "Maximum number of rows.", 1, 1000, 100)) {
    opened opened = open_database(arguments->file, READING);
    if (!opened.database) return opened.failure;
    sqlite3_stmt *statement = NULL;
    cofferdam_string rest;
    if (compile(opened.database, arguments->sql, &statement, &rest)) return failure_of(opened.database, READING);
    if (!statement) return cofferdam_suggest(cofferdam_fail("`sql` holds no statement"), "pass one, such as `SELECT 1`");
    if (!is_blank(opened.database, rest))
        return cofferdam_suggest(cofferdam_fail("`sql` holds more than one statement"), "pass one statement per call");
    if (!sqlite3_stmt_readonly(statement))
        return cofferdam_suggest(cofferdam_fail("this statement does not only read"), "call `execute` to change the database");
    cofferdam_result bound = bind(statement, arguments->parameters);
    if (bound.failure) return bound;
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    int code = add_rows(&json, statement, (row_limits){arguments->rows_max, CELL_BYTES_MAX});
    if (code != SQLITE_DONE && code != SQLITE_ROW) return failure_of(opened.database, READING);
    return cofferdam_json(&json);
}

COFFERDAM_TOOL(execute, "Runs SQL statements that change an SQLite database: INSERT, UPDATE, DELETE, CREATE, ALTER, DROP. All of "
                        "them take effect or, when one fails, none. Gives how many rows were changed, not rows.",
               COFFERDAM_TITLE("Change SQLite"), COFFERDAM_DESTRUCTIVE, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, FILE_DESCRIPTION),
               COFFERDAM_STRING(sql, "Statements in SQLite's SQL, with `;` between them."),
               PARAMETERS,
               COFFERDAM_BOOLEAN_OR(create, "Whether a database that is not there is made.", false)) {
    enum access access = arguments->create ? CREATING : CHANGING;
    opened opened = open_database(arguments->file, access);
    if (!opened.database) return opened.failure;
    int64_t statements = 0, changes = 0, last_insert_rowid = 0;
    for (cofferdam_string rest = arguments->sql; rest.length;) {
        sqlite3_stmt *statement = NULL;
        if (compile(opened.database, rest, &statement, &rest)) return failure_of(opened.database, access);
        if (!statement) break;
        // With several statements, it would be ambiguous to which one the parameters belong.
        bool has_parameters = sqlite3_bind_parameter_count(statement) > 0 || (cofferdam_count(arguments->parameters) && !statements);
        if (has_parameters && (statements || !is_blank(opened.database, rest)))
            return cofferdam_suggest(cofferdam_fail("`parameters` go with a single statement"), "pass one statement per call");
        cofferdam_result bound = has_parameters ? bind(statement, arguments->parameters) : cofferdam_nothing();
        if (bound.failure) return bound;
        int64_t before = sqlite3_total_changes64(opened.database);
        int code;
        while ((code = sqlite3_step(statement)) == SQLITE_ROW) {}
        if (code != SQLITE_DONE) return failure_of(opened.database, access);
        // VACUUM and full-text tables insert rows of their own, which only the total counts.
        if (sqlite3_total_changes64(opened.database) > before) {
            changes += sqlite3_changes64(opened.database);
            last_insert_rowid = sqlite3_last_insert_rowid(opened.database);
        }
        sqlite3_finalize(statement);
        statements++;
    }
    if (!sqlite3_get_autocommit(opened.database))
        return cofferdam_suggest(cofferdam_fail("a transaction was begun and not ended"),
                                 "leave out `BEGIN`: a call is a transaction, or end with `COMMIT`");
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "statements", statements);
    cofferdam_add_integer(&json, "changes", changes);
    cofferdam_add_integer(&json, "last_insert_rowid", last_insert_rowid);
    if (sqlite3_close(opened.database)) return cofferdam_fail("the database cannot be closed");
    return cofferdam_json(&json);
}

static const char OBJECTS[] = "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' "
                              "ORDER BY type = 'table' DESC, type = 'view' DESC, name";

COFFERDAM_TOOL(schema, "Lists tables, views, indexes and triggers of an SQLite database, with the columns of tables and views. Call it "
                       "before `query`.",
               COFFERDAM_TITLE("Schema of an SQLite database"), COFFERDAM_READ_ONLY, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, FILE_DESCRIPTION)) {
    enum { SCHEMA_BYTES_MAX = 256 << 10 };
    opened opened = open_database(arguments->file, READING);
    if (!opened.database) return opened.failure;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(opened.database, OBJECTS, -1, &statement, NULL)) return failure_of(opened.database, READING);
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_begin_array(&json, "objects");
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW && json.length < SCHEMA_BYTES_MAX) {
        const char *type = (const char *)sqlite3_column_text(statement, 0), *name = (const char *)sqlite3_column_text(statement, 1);
        bool has_columns = type && (!strcmp(type, "table") || !strcmp(type, "view"));
        cofferdam_begin_object(&json, NULL);
        cofferdam_add_text(&json, "type", type);
        cofferdam_add_text(&json, "name", name);
        // For a table, the columns say the same as the statement. An index or a view has only the
        // statement.
        if (!has_columns) cofferdam_add_text(&json, "table", (const char *)sqlite3_column_text(statement, 2));
        if (!type || strcmp(type, "table")) cofferdam_add_text(&json, "sql", (const char *)sqlite3_column_text(statement, 3));
        if (has_columns && add_table_columns(&json, opened.database, name) != SQLITE_DONE)
            return failure_of(opened.database, READING);
        cofferdam_end(&json);
    }
    if (code != SQLITE_DONE && code != SQLITE_ROW) return failure_of(opened.database, READING);
    cofferdam_end(&json);
    cofferdam_add_boolean(&json, "truncated", code == SQLITE_ROW);
    return cofferdam_json(&json);
}

COFFERDAM_DECLARE(overview);
COFFERDAM_DECLARE(import_csv);
COFFERDAM_PLUGIN(query, schema, overview, execute, import_csv)
