use cofferdam_sdk::{json, testing};
use serde_json::Value as Json;

use super::query;
use crate::files::fixture;

/// Runs a query in which `@` stands for the directory of fixtures.
fn run(sql: &str) -> Result<Json, String> {
    let sql = sql.replace('@', &fixture(""));
    testing::call::<query>(json!({"sql": sql})).map_err(|failure| failure.to_string())
}

#[track_caller]
fn check(sql: &str, expected: Json) {
    let result = run(sql).unwrap_or_else(|failure| panic!("{sql}: {failure}"));
    assert_eq!(result["rows"], expected, "{sql}");
}

#[track_caller]
fn check_failure(sql: &str, expected: &str) {
    let failure = run(sql).unwrap_err();
    assert!(failure.contains(expected), "{sql}: {failure}");
}

#[test]
fn rows_are_selected() {
    check("SELECT 1 + 2 AS three, 'a'", json!([[3, "a"]]));
    check(
        "SELECT product, units FROM '@sales.csv' WHERE units > 10",
        json!([["tea", 12], ["tea", 40]]),
    );
    check("SELECT units FROM '@sales.csv' WHERE paid IS NULL", json!([[1]]));
    check("SELECT s.UNITS FROM '@sales.csv' AS s WHERE s.\"region\" = 'east'", json!([[2]]));
    check("SELECT units FROM '@sales.csv' WHERE units = '12'", json!([[12]]));
    check("SELECT count(*) FROM '@sales.csv' WHERE product LIKE 'tea%'", json!([[3]]));
    check("SELECT count(*) FROM '@sales.csv' WHERE product NOT ILIKE 'TEA%'", json!([[3]]));
    check("SELECT count(*) FROM '@sales.csv' WHERE region IN ('north', 'west')", json!([[3]]));
    check("SELECT count(*) FROM '@sales.csv' WHERE units NOT BETWEEN 2 AND 12", json!([[2]]));
    check(
        "SELECT DISTINCT region FROM '@sales.csv' ORDER BY region DESC LIMIT 2",
        json!([["west"], ["south"]]),
    );
    check("SELECT units FROM '@sales.csv' ORDER BY units LIMIT 2 OFFSET 4", json!([[40], [null]]));
    check("SELECT units FROM '@sales.csv' ORDER BY 1 DESC NULLS FIRST LIMIT 1", json!([[null]]));
    check(
        "SELECT CASE WHEN units > 10 THEN 'many' ELSE 'few' END AS size FROM '@sales.csv' LIMIT 2",
        json!([["many"], ["few"]]),
    );
    let all = run("SELECT * FROM '@sales.csv' LIMIT 1").unwrap();
    assert_eq!(all["columns"], json!(["date", "region", "product", "units", "amount", "paid"]));
    assert_eq!(all["rows"], json!([["2026-01-03", "north", "tea", 12, 35.5, true]]));
}

#[test]
fn groups_are_made() {
    check(
        "SELECT region, count(*), sum(units) AS total FROM '@sales.csv' GROUP BY region \
         HAVING total > 3 ORDER BY total DESC",
        json!([["west", 1, 40], ["north", 2, 12], ["south", 2, 4]]),
    );
    check(
        "SELECT date_trunc('month', date) AS month, round(avg(amount), 2) FROM '@sales.csv' GROUP BY 1",
        json!([["2026-01-01", 47.41], ["2026-02-01", 8.38]]),
    );
    check(
        "SELECT upper(region) || '!' FROM '@sales.csv' GROUP BY upper(region) ORDER BY count(*) DESC, 1 LIMIT 1",
        json!([["NORTH!"]]),
    );
    check(
        "SELECT count(*) FILTER (WHERE paid), count(DISTINCT region), max(amount) - min(amount), \
         string_agg(DISTINCT product, '/') FROM '@sales.csv'",
        json!([[3, 4, 111.9, "tea/coffee/tea, \"gold\"/cocoa"]]),
    );
    check("SELECT sum(units), count(*) FROM '@sales.csv' WHERE units > 99", json!([[null, 0]]));
    check(
        "SELECT extract(year FROM date) AS y, count(*) FROM '@sales.csv' GROUP BY y",
        json!([[2026, 6]]),
    );
}

#[test]
fn tables_are_joined() {
    let sum = "SELECT r.manager, sum(s.amount) FROM '@sales.csv' s";
    check(
        &format!("{sum} JOIN '@regions.json' r ON s.region = r.code GROUP BY r.manager ORDER BY 1"),
        json!([["Ada", 49.75], ["Çelik", 30.75], [null, 118.9]]),
    );
    check(
        "SELECT s.region, r.code FROM '@sales.csv' s FULL JOIN '@regions.json' r ON s.region = r.code \
         WHERE s.region IS NULL OR r.code IS NULL",
        json!([["east", null], [null, "island"]]),
    );
    check(
        "SELECT count(*) FROM '@sales.csv' s, '@regions.json' r WHERE s.region = r.code AND r.staff > 3",
        json!([[4]]),
    );
    check(
        "SELECT id, e.amount, s.product FROM '@events.parquet' e LEFT JOIN '@sales.csv' s \
         USING (amount) ORDER BY id LIMIT 2",
        json!([[1, 35.5, "tea"], [2, 21.0, "coffee"]]),
    );
    check("SELECT count(*) FROM '@sales.csv' a CROSS JOIN '@sales.csv' b", json!([[36]]));
    check(
        "SELECT a.product FROM '@sales.csv' a JOIN '@sales.csv' b ON a.amount < b.amount AND b.units = 40 \
         ORDER BY a.amount LIMIT 1",
        json!([["cocoa"]]),
    );
}

#[test]
fn queries_are_nested() {
    check(
        "WITH t AS (SELECT region, sum(amount) AS total FROM '@sales.csv' GROUP BY region) \
         SELECT region FROM t WHERE total > (SELECT avg(total) FROM t) ORDER BY region",
        json!([["west"]]),
    );
    check(
        "SELECT code FROM '@regions.json' WHERE code NOT IN (SELECT region FROM '@sales.csv')",
        json!([["island"]]),
    );
    check(
        "SELECT max(n) FROM (SELECT count(*) AS n FROM '@sales.csv' GROUP BY region)",
        json!([[2]]),
    );
    check(
        "SELECT region FROM '@sales.csv' UNION SELECT code FROM '@regions.json' ORDER BY region LIMIT 2",
        json!([["east"], ["island"]]),
    );
    check("SELECT 1 UNION ALL SELECT 1", json!([[1], [1]]));
    check("SELECT EXISTS (SELECT 1 FROM '@sales.csv' WHERE units > 39)", json!([[true]]));
}

#[test]
fn json_and_parquet_are_read() {
    check(
        "SELECT address ->> 'city', json_extract(address, '$.zip') FROM '@regions.json' LIMIT 1",
        json!([["Ulm", "89073"]]),
    );
    check("SELECT id FROM '@orders.jsonl' WHERE note IS NOT NULL", json!([[2]]));
    check("SELECT count(*) FROM '@events.parquet'", json!([[6]]));
    check(
        "SELECT day, price FROM '@events.parquet' WHERE at >= '2026-02-01' AND NOT paid",
        json!([["2026-02-03", -3.0]]),
    );
}

#[test]
fn failures_say_what_to_do() {
    check_failure(
        "SELECT unit FROM '@sales.csv'",
        "there is no column `unit`; did you mean `units`?",
    );
    check_failure("SELECT \"north\" FROM '@sales.csv'", "text is in single quotes");
    check_failure("SELECT * FROM sales", "there is no table `sales`; name a file in single quotes");
    check_failure("SELECT * FROM '@sale.csv'", "there is no file");
    check_failure(
        "SELECT product, count(*) FROM '@sales.csv'",
        "neither in `GROUP BY` nor in an aggregate",
    );
    check_failure("SELECT * FROM '@sales.csv' WHERE sum(units) > 1", "is not possible here");
    check_failure("SELECT medain(units) FROM '@sales.csv'", "did you mean `median`?");
    check_failure(
        "SELECT nullif(region) FROM '@sales.csv'",
        "`nullif` has 1 arguments, expected 2; call it as `nullif(value, other)`",
    );
    check_failure("SELECT datediff('day', '2026-01-31')", "call it as `datediff(unit, from, to)`");
    check_failure("SELECT sum(region) FROM '@sales.csv'", "expected a number, found `north`");
    check_failure(
        "SELECT 1 FROM '@sales.csv' WHERE region = 1",
        "a column of text is compared with `1`",
    );
    check_failure(
        "SELECT 1 FROM '@sales.csv' WHERE units = 'x'",
        "a column of numbers is compared with `x`",
    );
    check_failure(
        "SELECT row_number() OVER () FROM '@sales.csv'",
        "a window function (`OVER`) is not supported",
    );
    check_failure("DROP TABLE sales", "anything but `SELECT` is not supported");
    check_failure("SELECT 1; SELECT 2", "has 2 statements");
    check_failure("SELEC 1", "cannot be parsed");
    check_failure("SELECT CAST(region AS BIGINT) FROM '@sales.csv'", "`north` is no integer");
    check_failure(
        "SELECT * FROM '@sales.csv' a JOIN '@sales.csv' b USING (amount) WHERE units > 1",
        "is ambiguous",
    );
    check_failure(&format!("SELECT {}1", "1+".repeat(8_000)), "levels deep");
    check_failure(&format!("SELECT {}1{}", "(".repeat(8_000), ")".repeat(8_000)), "");
    check_failure(&"x".repeat(20_000), "has 20000 bytes");
    check_failure("SELECT * FROM '@ragged.csv'", "has 3 cells, expected at most 2");
}

#[test]
fn results_are_bounded() {
    let many = (0..11).map(|table| format!("'@sales.csv' t{table}")).collect::<Vec<_>>().join(", ");
    let sql = format!("SELECT t0.product FROM {many}").replace('@', &fixture(""));
    let result = testing::call::<query>(json!({"sql": sql, "rows_max": 5})).unwrap();
    assert_eq!(result["rows"].as_array().unwrap().len(), 5);
    assert_eq!(result["truncated"], true);
    let sql = format!("SELECT * FROM {many}").replace('@', &fixture(""));
    let sql = format!("SELECT count(*) FROM ({sql} ORDER BY t0.units)");
    let failure = testing::call::<query>(json!({"sql": sql})).unwrap_err();
    assert_eq!(failure.message(), "the query needs too much memory");
    let long = "x".repeat(3_000);
    let result = run(&format!("SELECT '{long}'")).unwrap();
    assert_eq!(result["cut_texts"], 1);
}

#[test]
fn tables_have_short_names() {
    let arguments = json!({
        "sql": "SELECT count(*) FROM sales JOIN r ON sales.region = r.code",
        "tables": {"sales": fixture("sales.csv"), "r": fixture("regions.json")},
    });
    assert_eq!(testing::call::<query>(arguments).unwrap()["rows"], json!([[5]]));
}

#[test]
fn results_that_are_too_wide_are_refused() {
    let path = std::env::temp_dir().join(format!("{}-wide.csv", std::process::id()));
    let file = path.to_str().unwrap();
    let names = |length: usize| {
        let names = (0..20_000).map(|number| format!("{number:0length$}"));
        names.collect::<Vec<_>>().join(",")
    };
    std::fs::write(&path, format!("{}\n", names(16))).unwrap();
    check_failure(
        &format!("SELECT * FROM '{file}'"),
        "the names of the columns need more than 262144 bytes; select fewer columns",
    );
    std::fs::write(&path, format!("{}\n{}\n", names(5), names(16))).unwrap();
    check_failure(
        &format!("SELECT * FROM '{file}'"),
        "the names of the columns and the first row need more than 262144 bytes; select fewer",
    );
    check(&format!("SELECT \"00001\" FROM '{file}'"), json!([["0000000000000001"]]));
    std::fs::remove_file(&path).unwrap();
}
