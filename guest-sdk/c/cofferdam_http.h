// HTTP for tools. The host has the connections: it verifies certificates, and sends only requests
// that are granted.
//
//     #include "cofferdam_http.h"
//
//     cofferdam_http_request request = {
//         .url = cofferdam_string_of("https://api.example.com/items"), .redirects_max = 10, .timeout_ms = 10000};
//     cofferdam_http_response response;
//     cofferdam_bytes body;
//     cofferdam_error error = cofferdam_http_send(&request, &response);
//     if (!error.code) error = cofferdam_http_read_all(&response, 1 << 20, &body);
//     if (error.code) return cofferdam_fail_for(error);
//
// `plugin.toml` requests the addresses: `http = ["GET https://api.example.com/items"]`. The text of
// COFFERDAM_HTTP_DENIED says how to grant a request. Each redirect is a request of its own and needs
// a grant too. There is no compression, and there are no proxies, trailers or cookies.
//
// Strings and headers live until the end of the call, like all memory of the SDK. A response holds a
// connection until its body is read to the end, it is closed, or the call ends.

#ifndef COFFERDAM_HTTP_H
#define COFFERDAM_HTTP_H

#include "cofferdam.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cofferdam_http_header {
    cofferdam_string name;
    cofferdam_string value;
} cofferdam_http_header;

// Source of a body: writes at most `capacity` bytes to `buffer` and returns their number, 0 at the
// end, or COFFERDAM_HTTP_STOP to break the request off.
typedef size_t cofferdam_http_source(void *context, void *buffer, size_t capacity);
#define COFFERDAM_HTTP_STOP SIZE_MAX

// A request. Zeroed fields are omitted.
typedef struct cofferdam_http_request {
    cofferdam_string method; // absent: GET
    cofferdam_string url;    // `http` or `https`
    const cofferdam_http_header *headers;
    size_t header_count;
    // The body: bytes, or a source that is read in parts while the request is sent.
    const void *body;
    size_t body_length;
    cofferdam_http_source *source;
    void *context;         // for the source
    bool has_length;       // the source has exactly `body_length` bytes; otherwise they are sent in chunks
    uint32_t timeout_ms;   // for the exchange, up to the end of the response's body; 0: that of the call
    uint32_t redirects_max; // redirects to follow; with 0, a redirect is a response like any other
} cofferdam_http_request;

// A request that is under way.
typedef struct cofferdam_http_exchange cofferdam_http_exchange;

typedef struct cofferdam_http_response {
    uint16_t status;
    cofferdam_string url; // the last one, after redirects
    const cofferdam_http_header *headers;
    size_t header_count;
    cofferdam_http_exchange *exchange;
} cofferdam_http_response;

// Sends a request and waits for the head of its response. A status of 400 or more is not an error.
cofferdam_error cofferdam_http_send(const cofferdam_http_request *request, cofferdam_http_response *response);

// Sends a request, with its body, without waiting for the response. Requests that are started one
// after the other run at the same time. What the request points to must stay unchanged until
// `cofferdam_http_wait` returns.
cofferdam_error cofferdam_http_start(const cofferdam_http_request *request, cofferdam_http_exchange **exchange);

// Waits for the head of the response and follows redirects: 301 and 302 turn POST into GET, 303
// turns everything but HEAD into GET, 307 and 308 change nothing. A redirect that asks for the
// bytes of a source again is returned as the response. The headers Authorization and Cookie are not
// sent to another host. After an error, there is nothing to close.
cofferdam_error cofferdam_http_wait(cofferdam_http_exchange *exchange, cofferdam_http_response *response);

// Reads at most `capacity` bytes of the body, waiting for at least one. `*length` is 0 at the end.
cofferdam_error cofferdam_http_read(cofferdam_http_response *response, void *buffer, size_t capacity, size_t *length);

// Reads the rest of the body, which is followed by a NUL. Returns COFFERDAM_HTTP_LIMIT if it is
// longer than `bytes_max`.
cofferdam_error cofferdam_http_read_all(cofferdam_http_response *response, size_t bytes_max, cofferdam_bytes *body);

// Returns the first header of this name, in any case. Absent if there is none.
cofferdam_string cofferdam_http_header_of(const cofferdam_http_response *response, const char *name);

// Closes the connection before the end of the body. Does nothing after the end.
void cofferdam_http_close(cofferdam_http_response *response);

#ifdef __cplusplus
}
#endif

#endif
