// Responses of native tests: see cofferdam_test.h. Not part of components. They live as long as the
// process.

#ifndef __wasm__

#include "cofferdam_abi.h"
#include "cofferdam_test.h"

#include <stdlib.h>
#include <string.h>

typedef struct granted {
    struct granted *next;
    char *url;
    uint16_t status;
    char *headers; // lines of `name: value`
    char *body;
} granted;

struct cofferdam_connection {
    const granted *response;
    size_t read;
};

static const cofferdam_error OK = {.code = COFFERDAM_OK};
static granted *responses;
static char *sent;

static char *lasting(const char *text) {
    char *copy = strdup(text ? text : "");
    if (!copy) cofferdam_abort("out of memory");
    return copy;
}

void cofferdam_test_grant_response(const char *url, uint16_t status, const char *headers, const char *body) {
    granted *made = calloc(1, sizeof *made);
    if (!made) cofferdam_abort("out of memory");
    *made = (granted){responses, lasting(url), status, lasting(headers), lasting(body)};
    responses = made;
}

cofferdam_string cofferdam_test_sent(void) { return cofferdam_string_copy(sent ? sent : "", sent ? strlen(sent) : 0); }

uint64_t cofferdam_deadline(uint32_t timeout_ms) { return timeout_ms; }

// Returns the body, of which a source may write 64 KiB.
static cofferdam_string body_of(const cofferdam_hop *hop) {
    enum { SOURCE_BYTES_MAX = 65536 };
    const cofferdam_http_request *request = hop->request;
    if (!request->source) return cofferdam_string_copy(request->body, request->body_length);
    char *data = cofferdam_allocate(SOURCE_BYTES_MAX + 1);
    size_t length = 0, more = 1;
    while (more && length < SOURCE_BYTES_MAX) {
        more = request->source(request->context, data + length, SOURCE_BYTES_MAX - length);
        if (more == COFFERDAM_HTTP_STOP) return (cofferdam_string){NULL, 0};
        length += more;
    }
    return (cofferdam_string){data, length};
}

static bool record(const cofferdam_hop *hop, const char *url) {
    cofferdam_string text = cofferdam_format("%s %s\n", hop->method.data, url);
    for (size_t at = 0; at < hop->header_count; at++)
        text = cofferdam_format("%s%s: %s\n", text.data, hop->headers[at].name.data, hop->headers[at].value.data);
    if (hop->has_body) {
        cofferdam_string body = body_of(hop);
        if (!body.data) return false;
        text = cofferdam_format("%s\n%s", text.data, body.data);
    }
    free(sent);
    sent = lasting(text.data);
    return true;
}

cofferdam_error cofferdam_connect(const cofferdam_hop *hop, cofferdam_connection **made) {
    cofferdam_string url =
        cofferdam_format("%s://%s%s", hop->is_https ? "https" : "http", hop->authority.data, hop->path.data);
    const granted *found = responses;
    while (found && strcmp(found->url, url.data)) found = found->next;
    if (!found) return cofferdam_http_denied(hop);
    if (!record(hop, url.data))
        return (cofferdam_error){.code = COFFERDAM_HTTP_STOPPED, .text = cofferdam_string_of("the body broke off")};
    *made = cofferdam_allocate(sizeof **made);
    (*made)->response = found;
    return OK;
}

cofferdam_error cofferdam_connection_head(cofferdam_connection *connection, cofferdam_http_response *response) {
    const granted *from = connection->response;
    cofferdam_http_header *headers = cofferdam_allocate((strlen(from->headers) + 1) * sizeof *headers);
    size_t many = 0;
    for (const char *line = from->headers; *line;) {
        size_t length = strcspn(line, "\n"), name = strcspn(line, ":");
        if (name < length) {
            const char *value = line + name + 1;
            value += strspn(value, " ");
            headers[many++] = (cofferdam_http_header){cofferdam_string_copy(line, name),
                                                      cofferdam_string_copy(value, (size_t)(line + length - value))};
        }
        line += length + (line[length] == '\n');
    }
    response->status = from->status;
    response->headers = headers;
    response->header_count = many;
    return OK;
}

cofferdam_error cofferdam_connection_read(cofferdam_connection *connection, void *buffer, size_t capacity, size_t *length) {
    const char *rest = connection->response->body + connection->read;
    *length = strlen(rest);
    if (*length > capacity) *length = capacity;
    memcpy(buffer, rest, *length);
    connection->read += *length;
    return OK;
}

void cofferdam_connection_close(cofferdam_connection *connection) { (void)connection; }

#endif
