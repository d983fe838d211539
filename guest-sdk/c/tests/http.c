// Tests of requests over HTTP, without connections.

#include "../cofferdam_http.h"
#include "../cofferdam_test.h"

#include <stdio.h>
#include <string.h>

static size_t three_parts(void *context, void *buffer, size_t capacity) {
    int *left = context;
    if (!*left) return 0;
    --*left;
    return capacity < 2 ? 0 : (memcpy(buffer, "xy", 2), 2);
}

static size_t stopping(void *context, void *buffer, size_t capacity) {
    (void)context, (void)buffer, (void)capacity;
    return COFFERDAM_HTTP_STOP;
}

COFFERDAM_TOOL(get, "Gets a URL.", COFFERDAM_STRING(url, "The URL."), COFFERDAM_STRING_OR(method, "The method.", "GET"),
               COFFERDAM_STRING_OPTIONAL(body, "The body."), COFFERDAM_INTEGER_OR(redirects, "The most redirects.", 5),
               COFFERDAM_INTEGER_OR(most, "The most bytes.", 100), COFFERDAM_GROUP("web")) {
    const cofferdam_http_header headers[] = {
        {cofferdam_string_of("Authorization"), cofferdam_string_of("secret")},
        {cofferdam_string_of("Host"), cofferdam_string_of("elsewhere")},
        {cofferdam_string_of("Content-Type"), cofferdam_string_of("text/plain")},
    };
    cofferdam_http_request request = {.method = arguments->method, .url = arguments->url, .headers = headers, .header_count = 3,
                                      .body = arguments->body.data, .body_length = arguments->body.length,
                                      .redirects_max = (uint32_t)arguments->redirects, .timeout_ms = 1000};
    cofferdam_http_response response;
    cofferdam_bytes body;
    cofferdam_error error = cofferdam_http_send(&request, &response);
    if (!error.code) error = cofferdam_http_read_all(&response, (size_t)arguments->most, &body);
    if (error.code) return cofferdam_fail_for(error);
    return cofferdam_text(cofferdam_format("%d %s %s", response.status, response.url.data, (const char *)body.data));
}

COFFERDAM_TOOL_WITH_SCHEMA(any, "Takes anything.", "{\"type\": \"object\"}", COFFERDAM_GROUP("web")) {
    return cofferdam_nothing();
}

COFFERDAM_PLUGIN(get, any)

static void check_sent(const char *expected) {
    cofferdam_string sent = cofferdam_test_sent();
    COFFERDAM_CHECK(cofferdam_equals(sent, expected));
    if (!cofferdam_equals(sent, expected)) fprintf(stderr, "sent:\n%s\n", sent.data);
}

static void test_redirects(void) {
    cofferdam_test_grant_response("http://a/found", 302, "Location: b/../c?q#f", "");
    cofferdam_test_grant_response("http://a/c?q", 200, "Content-Type: text/plain\nContent-Length: 3", "end");
    COFFERDAM_EXPECT("get", "{\"url\":\"http://a/found\",\"method\":\"POST\",\"body\":\"hi\"}", "\"200 http://a/c?q#f end\"");
    check_sent("GET http://a/c?q\nAuthorization: secret\n");
    cofferdam_test_grant_response("http://a/d/e/kept", 307, "location: ../../x", "");
    cofferdam_test_grant_response("http://a/x", 308, "location: https://b:8080", "");
    cofferdam_test_grant_response("https://b:8080/", 404, NULL, "gone");
    COFFERDAM_EXPECT("get", "{\"url\":\"http://a/d/e/kept\",\"method\":\"POST\",\"body\":\"hi\"}", "\"404 https://b:8080 gone\"");
    check_sent("POST https://b:8080/\nContent-Type: text/plain\ncontent-length: 2\n\nhi");
    cofferdam_test_grant_response("http://a/loop", 303, "location: ?", "");
    cofferdam_test_grant_response("http://a/loop?", 303, "location: //a/loop", "");
    COFFERDAM_EXPECT_FAILURE("get", "{\"url\":\"http://a/loop\"}", "stopped after 5 redirects");
    COFFERDAM_EXPECT("get", "{\"url\":\"http://a/loop\",\"redirects\":0}", "\"303 http://a/loop \"");
    cofferdam_test_grant_response("http://a/away", 302, "location: https://other/y", "");
    COFFERDAM_EXPECT_FAILURE(
        "get", "{\"url\":\"http://a/away\"}",
        "other: no grant for this request; the operator can allow it with --allow-http https://other/");
    cofferdam_test_grant_response("http://a/mail", 302, "location: mailto:x", "");
    COFFERDAM_EXPECT_FAILURE("get", "{\"url\":\"http://a/mail\"}",
                             "a redirects to `mailto:x`, which is not a valid URL of http or https");
}

static void test_urls(void) {
    const char *const WRONG[] = {"", "http", "http://", "http:///x", "ftp://a/", "http://a b/", "http://u@a/", "http://a/\\n"};
    for (size_t at = 0; at < sizeof WRONG / sizeof *WRONG; at++) {
        cofferdam_string arguments = cofferdam_format("{\"url\":\"%s\"}", WRONG[at]);
        COFFERDAM_CHECK(cofferdam_test_call("get", arguments.data).failure);
    }
}

static void test_bodies(void) {
    cofferdam_test_grant_response("http://a/long", 200, NULL, "0123456789");
    COFFERDAM_EXPECT("get", "{\"url\":\"http://a/long\",\"most\":10}", "\"200 http://a/long 0123456789\"");
    COFFERDAM_EXPECT_FAILURE("get", "{\"url\":\"http://a/long\",\"most\":9}", "the body is longer than 9 bytes");
    // What a server announces does not decide how much is allocated.
    static char large[300000];
    memset(large, 'x', sizeof large - 1);
    for (const char *const *length = (const char *const[]){"0", "18446744073709551614", "18446744073709551615", "99999999999999999999",
                                                           "200000", "many", NULL}; *length; length++) {
        cofferdam_test_grant_response("http://a/lies", 200, cofferdam_format("Content-Length: %s", *length).data, large);
        cofferdam_http_response response;
        cofferdam_bytes body;
        COFFERDAM_CHECK(!cofferdam_http_send(&(cofferdam_http_request){.url = cofferdam_string_of("http://a/lies")}, &response).code);
        COFFERDAM_CHECK(!cofferdam_http_read_all(&response, SIZE_MAX, &body).code);
        COFFERDAM_CHECK(body.length == sizeof large - 1 && !memcmp(body.data, large, sizeof large));
    }
    int left = 3;
    cofferdam_http_request request = {.method = cofferdam_string_of("PUT"), .url = cofferdam_string_of("HTTP://a/long"),
                                      .source = three_parts, .context = &left};
    cofferdam_http_response response;
    COFFERDAM_CHECK(!cofferdam_http_send(&request, &response).code);
    check_sent("PUT http://a/long\n\nxyxyxy");
    char part[4];
    size_t length, total = 0;
    do COFFERDAM_CHECK(!cofferdam_http_read(&response, part, sizeof part, &length).code);
    while (total += length, length);
    COFFERDAM_CHECK(total == 10);
    cofferdam_http_close(&response);
    request.source = stopping;
    COFFERDAM_CHECK(cofferdam_http_send(&request, &response).code == COFFERDAM_HTTP_STOPPED);
}

int main(void) {
    test_redirects();
    test_urls();
    test_bodies();
    COFFERDAM_CHECK(strstr(cofferdam_test_input_schema("get").data, ",\"x-group\":\"web\"}"));
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_test_input_schema("any"), "{\"type\":\"object\",\"x-group\":\"web\"}"));
    return cofferdam_test_end();
}
