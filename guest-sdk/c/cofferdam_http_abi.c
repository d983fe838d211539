// `wasi:http/outgoing-handler` in the canonical ABI, for cofferdam_http.c. Resources are numbers,
// and are dropped before those that they come from.

#ifdef __wasm__

#include "cofferdam_abi.h"

#include <stdlib.h>
#include <string.h>

#define IMPORT(interface, name) __attribute__((import_module("wasi:" interface "@0.2.12"), import_name(name)))
#define HTTP(name) IMPORT("http/types", name)
#define STREAMS(name) IMPORT("io/streams", name)

// The host does not accept more of a body at once.
enum { PART_BYTES_MAX = 65536 };

typedef uint32_t resource;

typedef struct abi_field {
    abi_text name, value;
} abi_field;

// `error-code`, with the payloads that are used.
typedef struct abi_error_code {
    uint8_t tag;
    union {
        struct {
            uint8_t is_there;
            uint32_t value;
        } bytes_32;
        struct {
            uint8_t is_there;
            uint64_t value;
        } bytes_64;
        uint64_t largest[3];
    };
} abi_error_code;

// `result<T, error-code>`.
typedef struct abi_handled {
    uint8_t is_error;
    union {
        resource is;
        abi_error_code error;
    };
} abi_handled;

// `option<result<result<incoming-response, error-code>>>`.
typedef struct abi_future {
    uint8_t is_there;
    struct {
        uint8_t is_error;
        abi_handled result;
    } taken;
} abi_future;

// `result<T>`.
typedef struct abi_resource {
    uint8_t is_error;
    resource is;
} abi_resource;

// `result<T, stream-error>` for a list, nothing or, in `abi_permit`, a number.
typedef struct abi_stream {
    uint8_t is_error;
    union {
        abi_list list;
        struct {
            uint8_t tag;
            resource cause;
        } error;
    };
} abi_stream;

typedef struct abi_permit {
    uint8_t is_error;
    union {
        uint64_t bytes;
        struct {
            uint8_t tag;
            resource cause;
        } error;
    };
} abi_permit;

// `option<error-code>`.
typedef struct abi_cause {
    uint8_t is_there;
    abi_error_code error;
} abi_cause;

_Static_assert(sizeof(abi_error_code) == 32 && sizeof(abi_handled) == 40 && sizeof(abi_future) == 56 &&
                   sizeof(abi_stream) == 12 && sizeof(abi_permit) == 16,
               "the layout of the canonical ABI");

IMPORT("clocks/monotonic-clock", "now") uint64_t clock_now(void);
IMPORT("clocks/monotonic-clock", "subscribe-instant") resource clock_subscribe(uint64_t instant);
IMPORT("io/poll", "poll") void poll_all(const resource *pollables, size_t length, abi_list *ready);
IMPORT("io/poll", "[method]pollable.block") void pollable_block(resource pollable);
IMPORT("io/poll", "[resource-drop]pollable") void pollable_drop(resource pollable);
IMPORT("io/error", "[resource-drop]error") void io_error_drop(resource error);
STREAMS("[method]input-stream.read") void input_read(resource stream, uint64_t length, abi_stream *result);
STREAMS("[method]input-stream.subscribe") resource input_subscribe(resource stream);
STREAMS("[resource-drop]input-stream") void input_drop(resource stream);
STREAMS("[method]output-stream.check-write") void output_check(resource stream, abi_permit *result);
STREAMS("[method]output-stream.write") void output_write(resource stream, const void *data, size_t length, abi_stream *result);
STREAMS("[method]output-stream.subscribe") resource output_subscribe(resource stream);
STREAMS("[resource-drop]output-stream") void output_drop(resource stream);
HTTP("[static]fields.from-list") void fields_from_list(const abi_field *fields, size_t length, abi_resource *result);
HTTP("[method]fields.entries") void fields_entries(resource fields, abi_list *result);
HTTP("[resource-drop]fields") void fields_drop(resource fields);
HTTP("[constructor]outgoing-request") resource request_new(resource headers);
HTTP("[method]outgoing-request.set-method") bool request_refuses_method(resource request, uint32_t tag, const char *other, size_t length);
HTTP("[method]outgoing-request.set-scheme")
bool request_refuses_scheme(resource request, bool is_there, uint32_t tag, const char *other, size_t length);
HTTP("[method]outgoing-request.set-authority")
bool request_refuses_authority(resource request, bool is_there, const char *authority, size_t length);
HTTP("[method]outgoing-request.set-path-with-query")
bool request_refuses_path(resource request, bool is_there, const char *path, size_t length);
HTTP("[method]outgoing-request.body") void request_body(resource request, abi_resource *result);
HTTP("[resource-drop]outgoing-request") void request_drop(resource request);
HTTP("[method]outgoing-body.write") void outgoing_body_write(resource body, abi_resource *result);
HTTP("[static]outgoing-body.finish")
void outgoing_body_finish(resource body, bool has_trailers, resource trailers, abi_handled *result);
HTTP("[resource-drop]outgoing-body") void outgoing_body_drop(resource body);
IMPORT("http/outgoing-handler", "handle") void handle(resource request, bool has_options, resource options, abi_handled *result);
HTTP("[method]future-incoming-response.subscribe") resource future_subscribe(resource future);
HTTP("[method]future-incoming-response.get") void future_get(resource future, abi_future *result);
HTTP("[resource-drop]future-incoming-response") void future_drop(resource future);
HTTP("[method]incoming-response.status") uint32_t response_status(resource response);
HTTP("[method]incoming-response.headers") resource response_headers(resource response);
HTTP("[method]incoming-response.consume") void response_consume(resource response, abi_resource *result);
HTTP("[resource-drop]incoming-response") void response_drop(resource response);
HTTP("[method]incoming-body.stream") void incoming_body_stream(resource body, abi_resource *result);
HTTP("[resource-drop]incoming-body") void incoming_body_drop(resource body);
HTTP("http-error-code") void http_error_code(resource error, abi_cause *result);

// Resources are 0 until they exist, and when they are dropped.
struct cofferdam_connection {
    cofferdam_hop hop;
    resource future, response, body, stream;
};

static const cofferdam_error OK = {.code = COFFERDAM_OK};

// Errors.

// The cases of `error-code` that have a meaning of their own here.
enum {
    DNS_TIMEOUT = 0,
    DNS_ERROR,
    DESTINATION_NOT_FOUND,
    DESTINATION_UNAVAILABLE,
    DESTINATION_IP_PROHIBITED,
    DESTINATION_IP_UNROUTABLE,
    CONNECTION_REFUSED,
    CONNECTION_TERMINATED,
    CONNECTION_TIMEOUT,
    CONNECTION_READ_TIMEOUT,
    CONNECTION_WRITE_TIMEOUT,
    CONNECTION_LIMIT_REACHED,
    TLS_PROTOCOL_ERROR,
    TLS_CERTIFICATE_ERROR,
    TLS_ALERT_RECEIVED,
    HTTP_REQUEST_DENIED,
    HTTP_REQUEST_BODY_SIZE = 17,
    HTTP_REQUEST_METHOD_INVALID,
    HTTP_REQUEST_URI_INVALID,
    HTTP_REQUEST_URI_TOO_LONG,
    HTTP_REQUEST_HEADER_SECTION_SIZE,
    HTTP_REQUEST_HEADER_SIZE,
    HTTP_RESPONSE_INCOMPLETE = 25,
    HTTP_RESPONSE_HEADER_SECTION_SIZE,
    HTTP_RESPONSE_HEADER_SIZE,
    HTTP_RESPONSE_BODY_SIZE,
    HTTP_RESPONSE_TIMEOUT = 33,
    HTTP_PROTOCOL_ERROR = 35,
    CONFIGURATION_ERROR = 37,
    INTERNAL_ERROR,
};

static cofferdam_error made(cofferdam_error_code code, const char *format, const cofferdam_hop *hop) {
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wformat-nonliteral"
    return (cofferdam_error){.code = code, .text = cofferdam_format(format, hop->authority.data)};
#pragma clang diagnostic pop
}

static cofferdam_error limit(const char *format, const cofferdam_hop *hop, bool is_there, uint64_t bytes) {
    cofferdam_error error = made(COFFERDAM_HTTP_LIMIT, format, hop);
    if (is_there) error.text = cofferdam_format("%s of %llu bytes", error.text.data, (unsigned long long)bytes);
    return error;
}

static cofferdam_error error_from(const cofferdam_hop *hop, const abi_error_code *code) {
    switch (code->tag) {
    case HTTP_REQUEST_DENIED: return cofferdam_http_denied(hop);
    case DESTINATION_IP_PROHIBITED:
        return made(COFFERDAM_HTTP_DENIED,
                    "%s: no grant for its address, which is not public; the operator can allow it with `addresses` beside the rule",
                    hop);
    case DNS_ERROR:
    case DESTINATION_NOT_FOUND: return made(COFFERDAM_HTTP_UNKNOWN_HOST, "the host %s is unknown", hop);
    case DNS_TIMEOUT: return made(COFFERDAM_HTTP_TIMEOUT, "the lookup of the host %s timed out", hop);
    case DESTINATION_IP_UNROUTABLE: return made(COFFERDAM_HTTP_UNREACHABLE, "there is no route to the host %s", hop);
    case DESTINATION_UNAVAILABLE: return made(COFFERDAM_HTTP_UNREACHABLE, "the connection to %s failed", hop);
    case CONNECTION_REFUSED: return made(COFFERDAM_HTTP_REFUSED, "the connection to %s was refused", hop);
    case CONNECTION_TERMINATED:
    case HTTP_RESPONSE_INCOMPLETE:
        return made(COFFERDAM_HTTP_CLOSED, "the connection to %s was closed before the response was complete", hop);
    case CONNECTION_TIMEOUT:
    case CONNECTION_READ_TIMEOUT:
    case CONNECTION_WRITE_TIMEOUT:
    case HTTP_RESPONSE_TIMEOUT: return made(COFFERDAM_HTTP_TIMEOUT, "the connection to %s timed out", hop);
    case TLS_CERTIFICATE_ERROR: return made(COFFERDAM_HTTP_TLS, "the certificate of %s was rejected", hop);
    case TLS_PROTOCOL_ERROR: return made(COFFERDAM_HTTP_TLS, "the TLS connection to %s failed", hop);
    case TLS_ALERT_RECEIVED: return made(COFFERDAM_HTTP_TLS, "%s refused the TLS connection", hop);
    case HTTP_REQUEST_METHOD_INVALID: return made(COFFERDAM_HTTP_INVALID, "the method of the request to %s is invalid", hop);
    case HTTP_REQUEST_URI_INVALID:
    case HTTP_REQUEST_URI_TOO_LONG: return made(COFFERDAM_HTTP_INVALID, "the URL of the request to %s is invalid", hop);
    case HTTP_REQUEST_HEADER_SECTION_SIZE:
    case HTTP_REQUEST_HEADER_SIZE:
        return made(COFFERDAM_HTTP_INVALID, "a header of the request to %s is invalid, or too large", hop);
    case CONNECTION_LIMIT_REACHED:
        return made(COFFERDAM_HTTP_LIMIT, "%s: the host has reached its limit of open connections", hop);
    case HTTP_REQUEST_BODY_SIZE:
        return limit("%s: the call has reached its limit of sent data", hop, code->bytes_64.is_there, code->bytes_64.value);
    case HTTP_RESPONSE_BODY_SIZE:
        return limit("%s: the call has reached its limit of received data", hop, code->bytes_64.is_there, code->bytes_64.value);
    case HTTP_RESPONSE_HEADER_SECTION_SIZE:
    case HTTP_RESPONSE_HEADER_SIZE:
        return limit("%s: the headers of the response exceed the limit of 100 headers, or that", hop,
                     code->tag == HTTP_RESPONSE_HEADER_SECTION_SIZE && code->bytes_32.is_there, code->bytes_32.value);
    case CONFIGURATION_ERROR:
        return made(COFFERDAM_HTTP_FAILED, "%s: a header that the operator configured has no value", hop);
    case HTTP_PROTOCOL_ERROR:
        return made(COFFERDAM_HTTP_FAILED, "the connection to %s failed: its server broke HTTP", hop);
    default: return made(COFFERDAM_HTTP_FAILED, "the connection to %s failed", hop);
    }
}

// Returns the error of a stream, and OK if it ended normally. Drops the cause.
static cofferdam_error stream_error(const cofferdam_hop *hop, uint8_t tag, resource cause) {
    enum { FAILED };
    if (tag != FAILED) return OK;
    abi_cause given;
    http_error_code(cause, &given);
    io_error_drop(cause);
    if (!given.is_there) given.error.tag = INTERNAL_ERROR;
    return error_from(hop, &given.error);
}

// Time.

uint64_t cofferdam_deadline(uint32_t timeout_ms) { return timeout_ms ? clock_now() + timeout_ms * UINT64_C(1000000) : 0; }

// Waits for a pollable, and drops it.
static cofferdam_error wait_for(const cofferdam_hop *hop, resource pollable) {
    bool is_ready = true;
    if (hop->deadline) {
        resource all[] = {pollable, clock_subscribe(hop->deadline)};
        uint32_t ready[2];
        abi_list list;
        cofferdam_lend(ready, sizeof ready);
        poll_all(all, 2, &list);
        cofferdam_lend(NULL, 0);
        // Indices are in order.
        is_ready = list.length && ((const uint32_t *)list.items)[0] == 0;
        pollable_drop(all[1]);
    } else {
        pollable_block(pollable);
    }
    pollable_drop(pollable);
    return is_ready ? OK : made(COFFERDAM_HTTP_TIMEOUT, "the request to %s timed out", hop);
}

// Requests.

static bool refuses_method(resource request, cofferdam_string method) {
    static const char *const NAMES[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    enum { OTHER = sizeof NAMES / sizeof *NAMES };
    for (uint32_t at = 0; at < OTHER; at++)
        if (cofferdam_equals(method, NAMES[at])) return request_refuses_method(request, at, "", 0);
    method = cofferdam_utf8(method);
    return request_refuses_method(request, OTHER, method.data, method.length);
}

static cofferdam_error new_request(const cofferdam_hop *hop, resource *request) {
    abi_field *fields = cofferdam_allocate(hop->header_count * sizeof *fields);
    for (size_t at = 0; at < hop->header_count; at++) {
        cofferdam_string name = cofferdam_utf8(hop->headers[at].name), value = hop->headers[at].value;
        fields[at] = (abi_field){{name.data, name.length}, {value.data, value.length}};
    }
    abi_resource headers;
    fields_from_list(fields, hop->header_count, &headers);
    if (headers.is_error) return error_from(hop, &(abi_error_code){.tag = HTTP_REQUEST_HEADER_SIZE});
    resource made = *request = request_new(headers.is);
    cofferdam_string authority = cofferdam_utf8(hop->authority), path = cofferdam_utf8(hop->path);
    abi_error_code refused = {.tag = HTTP_REQUEST_URI_INVALID};
    if (refuses_method(made, hop->method)) refused.tag = HTTP_REQUEST_METHOD_INVALID;
    else if (!request_refuses_scheme(made, true, hop->is_https, "", 0) &&
             !request_refuses_authority(made, true, authority.data, authority.length) &&
             !request_refuses_path(made, true, path.data, path.length))
        return OK;
    request_drop(made);
    return error_from(hop, &refused);
}

// Writes a part of a body. Sets `*is_open` to false once the server reads no more; the response has
// the reason.
static cofferdam_error write_part(const cofferdam_hop *hop, resource stream, const char *data, size_t length, bool *is_open) {
    while (length && *is_open) {
        abi_permit permit;
        output_check(stream, &permit);
        if (permit.is_error) {
            *is_open = false;
            stream_error(hop, permit.error.tag, permit.error.cause);
        } else if (!permit.bytes) {
            cofferdam_error late = wait_for(hop, output_subscribe(stream));
            if (late.code) return late;
        } else {
            size_t now = length < permit.bytes ? length : (size_t)permit.bytes;
            abi_stream written;
            output_write(stream, data, now, &written);
            if (written.is_error) {
                *is_open = false;
                stream_error(hop, written.error.tag, written.error.cause);
            }
            data += now, length -= now;
        }
    }
    return OK;
}

static cofferdam_error write_source(const cofferdam_hop *hop, resource stream) {
    char *part = malloc(PART_BYTES_MAX);
    if (!part) cofferdam_abort("out of memory");
    cofferdam_error failed = OK;
    for (bool is_open = true; is_open && !failed.code;) {
        size_t length = hop->request->source(hop->request->context, part, PART_BYTES_MAX);
        if (!length) break;
        if (length > PART_BYTES_MAX) failed = made(COFFERDAM_HTTP_STOPPED, "the body of the request to %s broke off", hop);
        else failed = write_part(hop, stream, part, length, &is_open);
    }
    free(part);
    return failed;
}

static cofferdam_error write_body(const cofferdam_hop *hop, resource body) {
    const cofferdam_http_request *request = hop->request;
    abi_resource stream;
    outgoing_body_write(body, &stream);
    bool is_open = true;
    cofferdam_error failed = request->source ? write_source(hop, stream.is)
                                             : write_part(hop, stream.is, request->body, request->body_length, &is_open);
    output_drop(stream.is);
    abi_handled finished;
    if (failed.code) outgoing_body_drop(body);
    else outgoing_body_finish(body, false, 0, &finished);
    return failed;
}

cofferdam_error cofferdam_connect(const cofferdam_hop *hop, cofferdam_connection **connection) {
    resource request;
    cofferdam_error failed = new_request(hop, &request);
    if (failed.code) return failed;
    abi_resource body;
    if (hop->has_body) request_body(request, &body);
    abi_handled handled;
    handle(request, false, 0, &handled);
    if (handled.is_error) {
        if (hop->has_body) outgoing_body_drop(body.is);
        return error_from(hop, &handled.error);
    }
    cofferdam_connection *made = cofferdam_allocate(sizeof *made);
    *made = (cofferdam_connection){.hop = *hop, .future = handled.is};
    *connection = made;
    if (hop->has_body) failed = write_body(hop, body.is);
    if (failed.code) cofferdam_connection_close(made);
    return failed;
}

// Responses.

static void set_headers(resource of, cofferdam_http_response *response) {
    abi_list list;
    resource fields = response_headers(of);
    fields_entries(fields, &list);
    fields_drop(fields);
    const abi_field *given = list.items;
    cofferdam_http_header *headers = cofferdam_allocate(list.length * sizeof *headers);
    for (size_t at = 0; at < list.length; at++) {
        const abi_text *name = &given[at].name, *value = &given[at].value;
        headers[at] = (cofferdam_http_header){{name->length ? name->data : "", name->length},
                                              {value->length ? value->data : "", value->length}};
    }
    response->headers = headers;
    response->header_count = list.length;
}

cofferdam_error cofferdam_connection_head(cofferdam_connection *connection, cofferdam_http_response *response) {
    const cofferdam_hop *hop = &connection->hop;
    abi_future given;
    for (;;) {
        future_get(connection->future, &given);
        if (given.is_there) break;
        cofferdam_error late = wait_for(hop, future_subscribe(connection->future));
        if (late.code) return late;
    }
    if (given.taken.is_error) return made(COFFERDAM_HTTP_FAILED, "the connection to %s failed", hop);
    if (given.taken.result.is_error) return error_from(hop, &given.taken.result.error);
    connection->response = given.taken.result.is;
    response->status = (uint16_t)response_status(connection->response);
    set_headers(connection->response, response);
    abi_resource body, stream;
    response_consume(connection->response, &body);
    connection->body = body.is;
    incoming_body_stream(body.is, &stream);
    connection->stream = stream.is;
    return OK;
}

cofferdam_error cofferdam_connection_read(cofferdam_connection *connection, void *buffer, size_t capacity, size_t *length) {
    for (;;) {
        abi_stream given;
        cofferdam_lend(buffer, capacity);
        input_read(connection->stream, capacity < PART_BYTES_MAX ? capacity : PART_BYTES_MAX, &given);
        cofferdam_lend(NULL, 0);
        if (given.is_error) return stream_error(&connection->hop, given.error.tag, given.error.cause);
        *length = given.list.length;
        if (*length) return OK;
        cofferdam_error late = wait_for(&connection->hop, input_subscribe(connection->stream));
        if (late.code) return late;
    }
}

void cofferdam_connection_close(cofferdam_connection *connection) {
    if (connection->stream) input_drop(connection->stream);
    if (connection->body) incoming_body_drop(connection->body);
    if (connection->response) response_drop(connection->response);
    if (connection->future) future_drop(connection->future);
    *connection = (cofferdam_connection){0};
}

#endif
