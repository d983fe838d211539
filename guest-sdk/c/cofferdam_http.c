// Requests over HTTP: URLs, headers and redirects. cofferdam_http_abi.c has the connections.

#include "cofferdam_abi.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct cofferdam_http_exchange {
    cofferdam_http_request request;
    cofferdam_hop hop;
    cofferdam_string url;
    uint32_t redirects;
    cofferdam_connection *connection;
};

static const cofferdam_error OK = {.code = COFFERDAM_OK};

static cofferdam_error error(cofferdam_error_code code, cofferdam_string text) {
    return (cofferdam_error){.code = code, .text = text};
}

static bool is_same(cofferdam_string one, cofferdam_string other) {
    return one.length == other.length && (!one.length || !memcmp(one.data, other.data, one.length));
}

static bool is_named(cofferdam_string name, const char *other) {
    return name.length == strlen(other) && !strncasecmp(name.data, other, name.length);
}

static bool is_one_of(cofferdam_string name, const char *const *names) {
    while (*names && !is_named(name, *names)) names++;
    return *names;
}

cofferdam_error cofferdam_http_denied(const cofferdam_hop *hop) {
    return error(COFFERDAM_HTTP_DENIED,
                 cofferdam_format("%s: no grant for this request; the operator can allow it with --allow-http %s://%s/",
                                  hop->authority.data, hop->is_https ? "https" : "http", hop->authority.data));
}

// URLs.

// Returns the number of bytes before the first of `ends`.
static size_t until(const char *text, const char *ends) { return strcspn(text, ends); }

// Splits a URL into the fields of a hop. Returns false if it is invalid.
static bool split(cofferdam_string url, cofferdam_hop *hop) {
    for (size_t at = 0; at < url.length; at++)
        if ((unsigned char)url.data[at] <= ' ' || url.data[at] == 0x7F) return false;
    size_t scheme = url.data ? until(url.data, ":") : 0;
    cofferdam_string name = {url.data, scheme};
    hop->is_https = scheme && is_named(name, "https");
    if (!scheme || (!hop->is_https && !is_named(name, "http")) || strncmp(url.data + scheme, "://", 3)) return false;
    const char *authority = url.data + scheme + 3;
    size_t length = until(authority, "/?#");
    if (!length || memchr(authority, '@', length)) return false;
    hop->authority = cofferdam_string_copy(authority, length);
    const char *path = authority + length;
    size_t path_length = until(path, "#");
    hop->path = cofferdam_format("%s%.*s", *path == '/' ? "" : "/", (int)path_length, path);
    return true;
}

// Removes the segments `.` and `..` of a path, in place.
static void remove_dots(char *path) {
    char *to = path;
    for (const char *from = path; *from;) {
        size_t segment = 1 + until(from + 1, "/");
        bool is_last = !from[segment];
        if (segment == 2 && from[1] == '.') {
            if (is_last) *to++ = '/';
        } else if (segment == 3 && from[1] == '.' && from[2] == '.') {
            while (to > path && *--to != '/') {}
            if (is_last) *to++ = '/';
        } else {
            memmove(to, from, segment);
            to += segment;
        }
        from += segment;
    }
    *to = 0;
}

// Returns the URL that a `Location` names, relative to that of a hop.
static cofferdam_string resolve(const cofferdam_hop *base, const char *location) {
    const char *scheme = base->is_https ? "https" : "http", *authority = base->authority.data;
    size_t before = until(location, ":/?#");
    if (before && location[before] == ':') return cofferdam_string_of(location);
    if (!strncmp(location, "//", 2)) return cofferdam_format("%s:%s", scheme, location);
    cofferdam_string old = cofferdam_string_copy(base->path.data, until(base->path.data, "?"));
    if (!*location || *location == '#') return cofferdam_format("%s://%s%s", scheme, authority, base->path.data);
    if (*location == '?') return cofferdam_format("%s://%s%s%s", scheme, authority, old.data, location);
    size_t path_length = until(location, "?#");
    int kept = *location == '/' ? 0 : (int)(strrchr(old.data, '/') - old.data + 1);
    cofferdam_string path = cofferdam_format("%.*s%.*s", kept, old.data, (int)path_length, location);
    remove_dots((char *)path.data);
    return cofferdam_format("%s://%s%s%s", scheme, authority, path.data, location + path_length);
}

// Hops.

// Headers that belong to the connection, which is the host's, or follow from the body.
static const char *const RESERVED[] = {
    "connection", "content-length", "host", "http2-settings", "keep-alive", "proxy-authenticate", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", NULL};
static const char *const SECRET[] = {"authorization", "cookie", NULL};
static const char *const ABOUT_BODY[] = {"content-type", "content-encoding", "content-language", NULL};

static bool sends_length(const cofferdam_hop *hop) {
    static const char *const WITH_BODY[] = {"POST", "PUT", "PATCH", NULL};
    const cofferdam_http_request *request = hop->request;
    if (!hop->has_body) return is_one_of(hop->method, WITH_BODY);
    return !request->source || request->has_length;
}

static void set_headers(cofferdam_hop *hop, bool keeps_secrets) {
    const cofferdam_http_request *request = hop->request;
    cofferdam_http_header *headers = cofferdam_allocate((request->header_count + 1) * sizeof *headers);
    bool had_body = request->source || request->body_length;
    size_t many = 0;
    for (size_t at = 0; at < request->header_count; at++) {
        cofferdam_string name = request->headers[at].name;
        if (is_one_of(name, RESERVED) || (!keeps_secrets && is_one_of(name, SECRET))) continue;
        if (had_body && !hop->has_body && is_one_of(name, ABOUT_BODY)) continue;
        headers[many++] = request->headers[at];
    }
    if (sends_length(hop))
        headers[many++] = (cofferdam_http_header){
            cofferdam_string_of("content-length"), cofferdam_format("%zu", hop->has_body ? request->body_length : 0)};
    hop->headers = headers;
    hop->header_count = many;
}

cofferdam_error cofferdam_http_start(const cofferdam_http_request *request, cofferdam_http_exchange **exchange) {
    cofferdam_http_exchange *made = cofferdam_allocate(sizeof *made);
    made->request = *request;
    made->url = cofferdam_string_copy(request->url.data, request->url.length);
    cofferdam_hop *hop = &made->hop;
    hop->request = &made->request;
    hop->method = request->method.data ? request->method : cofferdam_string_of("GET");
    hop->has_body = request->source || request->body_length;
    hop->deadline = cofferdam_deadline(request->timeout_ms);
    if (!split(made->url, hop))
        return error(COFFERDAM_HTTP_INVALID, cofferdam_format("`%s` is not a valid URL of http or https", made->url.data));
    set_headers(hop, true);
    *exchange = made;
    return cofferdam_connect(hop, &made->connection);
}

// Returns whether a response is a redirect that can be followed.
static bool is_redirect(const cofferdam_http_exchange *exchange, const cofferdam_http_response *response) {
    if (!exchange->request.redirects_max || !cofferdam_http_header_of(response, "location").length) return false;
    switch (response->status) {
    case 301:
    case 302:
    case 303: return true;
    case 307:
    case 308: return !exchange->hop.has_body || !exchange->request.source;
    default: return false;
    }
}

// Changes the method as browsers do.
static void change_method(cofferdam_hop *hop, uint16_t status) {
    bool becomes_get = status == 303 ? !cofferdam_equals(hop->method, "HEAD")
                                     : (status == 301 || status == 302) && cofferdam_equals(hop->method, "POST");
    if (!becomes_get) return;
    hop->method = cofferdam_string_of("GET");
    hop->has_body = false;
}

static cofferdam_error follow(cofferdam_http_exchange *exchange, const cofferdam_http_response *response) {
    cofferdam_hop *hop = &exchange->hop, last = *hop;
    if (exchange->redirects++ == exchange->request.redirects_max)
        return error(COFFERDAM_HTTP_TOO_MANY_REDIRECTS,
                     cofferdam_format("stopped after %u redirects", (unsigned)exchange->request.redirects_max));
    exchange->url = resolve(&last, cofferdam_http_header_of(response, "location").data);
    if (!split(exchange->url, hop))
        return error(COFFERDAM_HTTP_INVALID,
                     cofferdam_format("%s redirects to `%s`, which is not a valid URL of http or https", last.authority.data,
                                      exchange->url.data));
    change_method(hop, response->status);
    set_headers(hop, last.is_https == hop->is_https && is_same(last.authority, hop->authority));
    return cofferdam_connect(hop, &exchange->connection);
}

cofferdam_error cofferdam_http_wait(cofferdam_http_exchange *exchange, cofferdam_http_response *response) {
    for (;;) {
        *response = (cofferdam_http_response){.url = exchange->url, .exchange = exchange};
        cofferdam_error failed = cofferdam_connection_head(exchange->connection, response);
        if (!failed.code && !is_redirect(exchange, response)) return OK;
        cofferdam_http_close(response);
        if (!failed.code) failed = follow(exchange, response);
        if (failed.code) return failed;
    }
}

cofferdam_error cofferdam_http_send(const cofferdam_http_request *request, cofferdam_http_response *response) {
    cofferdam_http_exchange *exchange;
    cofferdam_error failed = cofferdam_http_start(request, &exchange);
    return failed.code ? failed : cofferdam_http_wait(exchange, response);
}

// Responses.

cofferdam_string cofferdam_http_header_of(const cofferdam_http_response *response, const char *name) {
    for (size_t at = 0; at < response->header_count; at++)
        if (is_named(response->headers[at].name, name)) return response->headers[at].value;
    return (cofferdam_string){NULL, 0};
}

cofferdam_error cofferdam_http_read(cofferdam_http_response *response, void *buffer, size_t capacity, size_t *length) {
    *length = 0;
    cofferdam_connection *connection = response->exchange ? response->exchange->connection : NULL;
    if (!connection || !capacity) return OK;
    cofferdam_error failed = cofferdam_connection_read(connection, buffer, capacity, length);
    if (failed.code || !*length) cofferdam_http_close(response);
    return failed;
}

// Returns the capacity for a body of which `length` bytes have arrived: one byte more than it may have,
// which shows its end. A server may announce any length, which counts only up to a multiple of what it
// has sent.
static size_t body_capacity(size_t length, size_t announced, size_t bytes_max) {
    enum { FIRST_BYTES = 65536, TRUST = 16 };
    size_t most = length < FIRST_BYTES ? FIRST_BYTES : length < SIZE_MAX / TRUST ? TRUST * length : SIZE_MAX;
    size_t wanted = length < FIRST_BYTES ? FIRST_BYTES : length < SIZE_MAX / 2 ? 2 * length : SIZE_MAX;
    if (announced >= length && announced <= most) wanted = announced;
    return (wanted < bytes_max ? wanted : bytes_max) + 1;
}

cofferdam_error cofferdam_http_read_all(cofferdam_http_response *response, size_t bytes_max, cofferdam_bytes *body) {
    // There is room for two bytes more: one that shows the end, and a NUL.
    if (bytes_max > SIZE_MAX - 2) bytes_max = SIZE_MAX - 2;
    cofferdam_string header = cofferdam_http_header_of(response, "content-length");
    size_t announced = header.data ? strtoul(header.data, NULL, 10) : SIZE_MAX, length = 0, read = 0;
    size_t capacity = body_capacity(0, announced, bytes_max);
    char *data = cofferdam_allocate(capacity + 1);
    do {
        if (length == capacity) {
            if (length > bytes_max) {
                cofferdam_http_close(response);
                return error(COFFERDAM_HTTP_LIMIT, cofferdam_format("the body is longer than %zu bytes", bytes_max));
            }
            capacity = body_capacity(length, announced, bytes_max);
            char *larger = cofferdam_allocate(capacity + 1);
            memcpy(larger, data, length);
            data = larger;
        }
        cofferdam_error failed = cofferdam_http_read(response, data + length, capacity - length, &read);
        if (failed.code) return failed;
        length += read;
    } while (read);
    data[length] = 0;
    *body = (cofferdam_bytes){(const uint8_t *)data, length};
    return OK;
}

void cofferdam_http_close(cofferdam_http_response *response) {
    if (!response->exchange || !response->exchange->connection) return;
    cofferdam_connection_close(response->exchange->connection);
    response->exchange->connection = NULL;
}
