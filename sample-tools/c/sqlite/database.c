#include "database.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    HEADER_BYTES = 20,
    // Less than the memory of a call, so that SQLite reports a lack of memory before the host ends
    // the call.
    HEAP_BYTES_MAX = 40 << 20,
    VALUE_BYTES_MAX = 4 << 20,
    SQL_BYTES_MAX = 64 << 10,
    // Number of SQLite's virtual machine steps between checks of the time.
    STEPS = 20000,
    // Time that is reserved for the result.
    TIME_LEFT_MS_MIN = 300,
};

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (!sqlite3_stricmp(name, *names)) return true;
    return false;
}

// Returns whether a pragma only reads. Some pragmas change a setting if they have an argument.
static bool is_harmless_pragma(const char *name, const char *argument, enum access access) {
    static const char *const TELLING[] = {
        "table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo", "foreign_key_list",
        "foreign_key_check", "integrity_check", "quick_check", "compile_options", "function_list", "collation_list", NULL};
    // Full-text search uses `data_version`.
    static const char *const KEPT[] = {"data_version", "user_version", "application_id", "foreign_keys", "defer_foreign_keys",
                                       "encoding", "page_count", "page_size", "freelist_count", NULL};
    static const char *const CHANGING_ONES[] = {"user_version", "application_id", "foreign_keys", "defer_foreign_keys",
                                                "legacy_alter_table", NULL};
    if (is_one_of(name, TELLING)) return true;
    if (!argument) return is_one_of(name, KEPT);
    return access != READING && is_one_of(name, CHANGING_ONES);
}

// Returns whether an action of a statement is allowed. No statement can access another file.
static bool is_allowed(enum access access, int action, const char *first, const char *second) {
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_FUNCTION:
    case SQLITE_RECURSIVE: return true;
    case SQLITE_PRAGMA: return is_harmless_pragma(first, second, access);
    // An empty name is a database in memory, which VACUUM uses.
    case SQLITE_ATTACH: return access != READING && first && !*first;
    default: return access != READING;
    }
}

// The last action that was not allowed, for the advice of a failure.
static struct {
    int action;
    // Whether the tool `execute` allows it. It allows to detach only what it attached.
    bool can_be_executed;
} denied;

static int authorize(void *given, int action, const char *first, const char *second, const char *third, const char *fourth) {
    (void)third, (void)fourth;
    enum access access = *(const enum access *)given;
    if (is_allowed(access, action, first, second)) return SQLITE_OK;
    denied.action = action;
    denied.can_be_executed = action != SQLITE_DETACH && is_allowed(CHANGING, action, first, second);
    return SQLITE_DENY;
}

bool is_time_over(void) { return cofferdam_cancelled() || cofferdam_time_left_ms() < TIME_LEFT_MS_MIN; }

static int stop_in_time(void *unused) {
    (void)unused;
    return is_time_over();
}

static bool has_content(cofferdam_string path, const char *ending) {
    struct stat stat_of;
    return !stat(cofferdam_format("%s%s", path.data, ending).data, &stat_of) && stat_of.st_size > 0;
}

static opened refused(cofferdam_result failure) { return (opened){NULL, failure}; }

// Checks a file without SQLite. It may be missing if the tool creates it.
static opened look(cofferdam_string path, enum access access) {
    const char *name = path.data;
    unsigned char header[HEADER_BYTES];
    if (!path.length || strlen(name) != path.length || *name != '/')
        return refused(cofferdam_suggest(cofferdam_fail("`%s` is not a path", name), "pass a path in a mount, such as `/data/app.db`"));
    FILE *file = fopen(name, "rb");
    if (!file && access == CREATING && errno == ENOENT) return (opened){0};
    if (!file)
        return refused(cofferdam_suggest(cofferdam_fail("`%s` cannot be opened: %s", name, strerror(errno)),
                                         "pass the path of a file in a mount, such as `/data/app.db`"));
    size_t length = fread(header, 1, sizeof header, file);
    fclose(file);
    if (!length) return (opened){0};
    if (length < sizeof header || memcmp(header, "SQLite format 3", 16))
        return refused(cofferdam_fail("`%s` is not a SQLite database", name));
    if (has_content(path, "-journal"))
        return refused(cofferdam_suggest(cofferdam_fail("`%s` was not closed in order: there is `%s-journal`", name, name),
                                         "have it opened once by the program that writes it"));
    if (has_content(path, "-wal"))
        return refused(cofferdam_suggest(cofferdam_fail("`%s-wal` holds changes that are not in `%s` yet", name, name),
                                         "have the program that writes it run `PRAGMA wal_checkpoint(TRUNCATE)` and close it"));
    if (header[18] == 2 && access != READING)
        return refused(cofferdam_suggest(cofferdam_fail("`%s` is in WAL mode, in which it can only be read here", name),
                                         "have the program that writes it run `PRAGMA journal_mode = DELETE`"));
    return (opened){0};
}

// Returns the path as a URI, in which `?`, `#` and `%` are escaped.
static const char *uri_of(cofferdam_string path, enum access access) {
    char *escaped = cofferdam_allocate(3 * path.length + 1), *to = escaped;
    for (size_t at = 0; at < path.length; at++)
        to += sprintf(to, strchr("?#%", path.data[at]) ? "%%%02X" : "%c", (unsigned char)path.data[at]);
    static const char *const MODES[] = {"ro&immutable=1", "rw", "rwc"};
    return cofferdam_format("file:%s?vfs=unix-none&mode=%s", escaped, MODES[access]).data;
}

opened open_database(cofferdam_string path, enum access access) {
    static enum access allowed;
    opened opened = look(path, access);
    if (opened.failure.failure) return opened;
    int flags = access == READING ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | (access == CREATING ? SQLITE_OPEN_CREATE : 0);
    sqlite3 *database = NULL;
    sqlite3_hard_heap_limit64(HEAP_BYTES_MAX);
    int code = sqlite3_open_v2(uri_of(path, access), &database, flags | SQLITE_OPEN_URI, NULL);
    if (code) return refused(cofferdam_fail("`%s` cannot be opened: %s", path.data, sqlite3_errstr(code)));
    sqlite3_extended_result_codes(database, 1);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX);
    sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES_MAX);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_progress_handler(database, STEPS, stop_in_time, NULL);
    // The host commits all changes of the call or none, so SQLite needs no journal on disk, only
    // one in memory to undo a statement.
    if (access != READING)
        sqlite3_exec(database, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; PRAGMA foreign_keys = ON", NULL, NULL, NULL);
    allowed = access;
    sqlite3_set_authorizer(database, authorize, &allowed);
    opened.database = database;
    return opened;
}

cofferdam_result failure_of(sqlite3 *database, enum access access) {
    const char *message = sqlite3_errmsg(database);
    switch (sqlite3_errcode(database)) {
    case SQLITE_AUTH:
        if (access == READING && denied.can_be_executed)
            return cofferdam_suggest(cofferdam_fail("this statement does not only read"), "call `execute` to change the database");
        if (denied.action == SQLITE_PRAGMA)
            return cofferdam_suggest(cofferdam_fail("this pragma is not allowed here: %s", message),
                                     "leave it out; call `schema` or `overview` to learn about the database");
        return cofferdam_suggest(cofferdam_fail("this statement reaches beyond the database: %s", message),
                                 "leave it out: a call works on one database, that of `file`");
    case SQLITE_INTERRUPT:
        return cofferdam_suggest(cofferdam_fail("the statement takes too long"),
                                 "narrow it with `WHERE`, use an index, or ask for less at once");
    case SQLITE_NOMEM: return cofferdam_suggest(cofferdam_fail("the statement needs too much memory"), "ask for less at once");
    case SQLITE_TOOBIG:
        return cofferdam_suggest(cofferdam_fail("a value or the SQL text is too long: %s", message),
                                 "pass at most %d bytes of SQL, and values of at most %d bytes", SQL_BYTES_MAX, VALUE_BYTES_MAX);
    case SQLITE_READONLY: return cofferdam_fail("the file or its mount may only be read");
    case SQLITE_FULL:
    case SQLITE_IOERR_WRITE: return cofferdam_fail("the file cannot grow: a limit of its mount is reached");
    case SQLITE_CORRUPT: return cofferdam_fail("the database is damaged: %s", message);
    case SQLITE_NOTADB: return cofferdam_fail("the file is not a SQLite database");
    case SQLITE_ERROR: return cofferdam_suggest(cofferdam_fail("%s", message), "call `schema` to see tables and columns");
    default: return cofferdam_fail("%s", message);
    }
}

int compile(sqlite3 *database, cofferdam_string sql, sqlite3_stmt **statement, cofferdam_string *rest) {
    const char *end = NULL;
    if (sql.length > SQL_BYTES_MAX) sql.length = SQL_BYTES_MAX + 1;
    int code = sqlite3_prepare_v2(database, sql.data, (int)sql.length, statement, &end);
    size_t used = end ? (size_t)(end - sql.data) : 0;
    *rest = (cofferdam_string){sql.data + used, sql.length - used};
    return code;
}
