// Tests without a host: `make test`. The tools work on files of a temporary directory.

#include "../csv.h"
#include "cofferdam_test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char directory[] = "/tmp/sqlite-test-XXXXXX";

static const char *path(const char *name) {
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", directory, name);
    return path;
}

static void save(const char *name, const char *bytes, size_t length) {
    FILE *file = fopen(path(name), "wb");
    COFFERDAM_CHECK(file && fwrite(bytes, 1, length, file) == length);
    if (file) fclose(file);
}

// Returns the rows of CSV as text: cells between `|`, nulls as `-`, rows between `/`, then the
// error, if there is one.
static const char *rows(const char *csv, size_t length, char delimiter) {
    static csv_reader reader;
    static char text[4096];
    size_t end = 0;
    csv_status status;
    save("rows.csv", csv, length);
    FILE *file = fopen(path("rows.csv"), "rb");
    csv_begin(&reader, file, delimiter);
    while ((status = csv_next(&reader)) == CSV_ROW) {
        for (size_t at = 0; at < reader.count; at++) {
            csv_cell cell = reader.cells[at];
            end += (size_t)snprintf(text + end, sizeof text - end, "%s|", cell.data ? cell.data : "-");
            if (end > sizeof text - 100) end = 0;
        }
        end += (size_t)snprintf(text + end, sizeof text - end, "/");
    }
    if (status != CSV_END) snprintf(text + end, sizeof text - end, "%s", csv_message(status));
    if (status == CSV_END) text[end] = 0;
    fclose(file);
    free(reader.bytes);
    return text;
}

#define ROWS(csv, delimiter, expected) COFFERDAM_CHECK(!strcmp(rows(csv, strlen(csv), delimiter), expected))

static void test_rows(void) {
    ROWS("a,b\n1,2\n", ',', "a|b|/1|2|/");
    ROWS("a,b\r\n\r\n1,\"2\"", ',', "a|b|/1|2|/");
    ROWS("\xEF\xBB\xBF" "a;b\n;\"\"\n", ';', "a|b|/-||/");
    ROWS("\"a\"\"b\",\"c\nd\"\n", ',', "a\"b|c\nd|/");
    ROWS("a\"b,\"c\"d\n", ',', "a\"b|cd|/");
    ROWS("a\rb\n", ',', "a\rb|/");
    ROWS("", ',', "");
    ROWS("a\n\"b", ',', "a|/a quote is not closed");
    ROWS("\xFF\xFE" "a", ',', "the file is UTF-16 text, expected UTF-8");
    ROWS("\xFE\xFF", ',', "the file is UTF-16 text, expected UTF-8");
    COFFERDAM_CHECK(!strcmp(rows("a\0", 2, ','), "there is a zero byte, expected UTF-8 text"));
    ROWS("\xC3\xA9,\xEF\xBF\xBD\n\xF0\x9F\x98\x80,\xE0\xA0\x80\n", ',', "\xC3\xA9|\xEF\xBF\xBD|/\xF0\x9F\x98\x80|\xE0\xA0\x80|/");
    static const char *const INVALID[] = {"\xE9", "\xC3", "\xC3,\xA9", "\x80", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xE2\x82"};
    for (size_t at = 0; at < sizeof INVALID / sizeof *INVALID; at++)
        ROWS(INVALID[at], ',', "there are bytes that are not UTF-8");
    char *wide = malloc(CSV_COLUMNS_MAX + 1), *tall = malloc(CSV_ROW_BYTES_MAX + 10);
    memset(wide, ',', CSV_COLUMNS_MAX);
    COFFERDAM_CHECK(!strcmp(rows(wide, CSV_COLUMNS_MAX, ','), "the row has more than 500 cells"));
    memset(tall, 'x', CSV_ROW_BYTES_MAX + 10);
    COFFERDAM_CHECK(!strcmp(rows(tall, CSV_ROW_BYTES_MAX + 10, ','), "the row has more than 4194304 bytes"));
    free(wide);
    free(tall);
}

// Changed files end with rows or an error.
static void test_any_bytes(void) {
    static const char CSV[] = "id,name\n1,\"Ada, \"\"the first\"\"\"\n2,\n\n3,\"x\r\ny\"\n";
    unsigned state = 7;
    for (int round = 0; round < 3000; round++) {
        char changed[sizeof CSV];
        memcpy(changed, CSV, sizeof CSV);
        for (int change = 0; change <= round % 5; change++) {
            state = state * 1664525 + 1013904223;
            changed[(state >> 8) % (sizeof CSV - 1)] = ",\"\n\r\0x;"[(state >> 24) % 7];
        }
        rows(changed, sizeof CSV - 1 - state % 10, ',');
    }
}

static const char *call(const char *tool, const char *format, const char *first, const char *second) {
    char arguments[512];
    snprintf(arguments, sizeof arguments, format, first, second);
    return cofferdam_test_value(cofferdam_test_call(tool, arguments)).data;
}

static void test_import(void) {
    static const char CSV[] = "id,ratio,code,empty\n1,0.5,007,\n-2,1e3,12,\n";
    save("a.csv", CSV, sizeof CSV - 1);
    const char *value = call("import_csv", "{\"file\": \"%s\", \"csv\": \"%s\", \"table\": \"a \\\"b\\\"\"}", path("a.db"), path("a.csv"));
    COFFERDAM_CHECK(strstr(value, "{\"name\":\"id\",\"type\":\"INTEGER\"},{\"name\":\"ratio\",\"type\":\"REAL\"},"
                                  "{\"name\":\"code\",\"type\":\"TEXT\"},{\"name\":\"empty\",\"type\":\"TEXT\"}"));
    value = call("query", "{\"file\": \"%s\", \"sql\": \"SELECT * FROM %s\"}", path("a.db"), "\\\"a \\\"\\\"b\\\"\\\"\\\"");
    COFFERDAM_CHECK(strstr(value, "[[1,0.5,\"007\",null],[-2,1000,\"12\",null]]"));
    value = call("overview", "{\"file\": \"%s\", \"sample_rows\": 0%s}", path("a.db"), "");
    COFFERDAM_CHECK(strstr(value, "\"rows\":2}],\"truncated\":false"));
}

static void test_advice(void) {
    static const char EXECUTE[] = "\"call `execute`";
    const char *value = call("query", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("a.db"), "DELETE FROM t");
    COFFERDAM_CHECK(strstr(value, "no such table"));
    value = call("query", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("a.db"), "PRAGMA user_version = 3");
    COFFERDAM_CHECK(strstr(value, EXECUTE));
    static const char *const REFUSED[] = {"ATTACH '/data/b.db' AS b", "DETACH b", "PRAGMA journal_mode = WAL", "PRAGMA cache_size"};
    for (size_t at = 0; at < sizeof REFUSED / sizeof *REFUSED; at++) {
        value = call("query", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("a.db"), REFUSED[at]);
        COFFERDAM_CHECK(strstr(value, "\"leave it out") && !strstr(value, EXECUTE));
    }
    value = call("execute", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("a.db"), REFUSED[0]);
    COFFERDAM_CHECK(strstr(value, "a call works on one database"));
    value = call("execute", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("a.db"), REFUSED[2]);
    COFFERDAM_CHECK(strstr(value, "this pragma is not allowed here"));
}

// Views without end do not hide other views and tables.
static void test_endless_views(void) {
    static const char SQL[] = "CREATE TABLE t(a); INSERT INTO t VALUES (1); CREATE VIEW b AS SELECT a FROM t; CREATE VIEW z AS SELECT a FROM t;";
    static const char VIEW[] = "CREATE VIEW %s AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";
    call("execute", "{\"file\": \"%s\", \"sql\": \"%s\", \"create\": true}", path("views.db"), SQL);
    const char *value = call("overview", "{\"file\": \"%s\"%s}", path("views.db"), "");
    COFFERDAM_CHECK(!strstr(value, "problem"));
    for (int number = 10; number < 30; number++) {
        char name[8], sql[256];
        snprintf(name, sizeof name, "v%d", number);
        snprintf(sql, sizeof sql, VIEW, name);
        call("execute", "{\"file\": \"%s\", \"sql\": \"%s\"}", path("views.db"), sql);
    }
    value = call("overview", "{\"file\": \"%s\"%s}", path("views.db"), "");
    COFFERDAM_CHECK(strstr(value, "{\"name\":\"t\",\"columns\":[{\"name\":\"a\",\"type\":\"\"}],\"rows\":1"));
    COFFERDAM_CHECK(strstr(value, "{\"name\":\"b\",\"type\":\"view\",\"columns\":[{\"name\":\"a\",\"type\":\"BLOB\"}],\"rows\":1"));
    int problems = 0;
    for (const char *at = value; (at = strstr(at, "reading its rows takes too long")); at++) problems++;
    COFFERDAM_CHECK(problems == 20);
    // A view that is short needs no more work than there is behind them.
    COFFERDAM_CHECK(strstr(value, "{\"name\":\"z\",\"type\":\"view\",\"columns\":[{\"name\":\"a\",\"type\":\"BLOB\"}],\"rows\":1"));
}

// Changed databases end with a result or a failure.
static void test_any_database(void) {
    static char bytes[1 << 16], changed[1 << 16];
    FILE *file = fopen("fixtures/app.db", "rb");
    size_t length = file ? fread(bytes, 1, sizeof bytes, file) : 0;
    if (file) fclose(file);
    COFFERDAM_CHECK(length > 1000);
    unsigned state = 7;
    for (int round = 0; round < 500 && length; round++) {
        memcpy(changed, bytes, length);
        for (int change = 0; change <= round % 8; change++) {
            state = state * 1664525 + 1013904223;
            changed[(state >> 4) % length] = (char)(state >> 24);
        }
        save("changed.db", changed, length);
        call("overview", "{\"file\": \"%s\"%s}", path("changed.db"), "");
    }
}

int main(void) {
    COFFERDAM_CHECK(mkdtemp(directory) != NULL);
    test_rows();
    test_any_bytes();
    test_import();
    test_advice();
    test_endless_views();
    test_any_database();
    static const char *const FILES[] = {"rows.csv", "a.csv", "a.db", "views.db", "changed.db"};
    for (size_t at = 0; at < sizeof FILES / sizeof *FILES; at++) remove(path(FILES[at]));
    rmdir(directory);
    return cofferdam_test_end();
}
