#include "curl.h"

#include "cofferdam_http.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Options are stored as they are given: libcurl copies strings, so they are copied here too. All
// memory lives until the end of the call, so nothing is freed.
struct CURL {
    const char *url, *method, *agent, *fields;
    long is_head, is_post, is_upload, follows, redirects_max, timeout_ms, fields_bytes, file_bytes;
    curl_read_callback read;
    void *read_context;
    curl_write_callback write;
    void *write_context;
    const struct curl_slist *headers;
    char *error;
    long status;
    const char *final_url, *type;
};

static const char *copy(const char *text) { return text ? cofferdam_string_copy(text, strlen(text)).data : NULL; }

static size_t print(char *data, size_t size, size_t count, void *context) {
    return fwrite(data, size, count, context ? context : stdout);
}

CURL *curl_easy_init(void) {
    CURL *made = cofferdam_allocate(sizeof *made);
    *made = (CURL){.write = print, .redirects_max = 30, .fields_bytes = -1, .file_bytes = -1};
    return made;
}

CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...) {
    va_list value;
    va_start(value, option);
    CURLcode code = CURLE_OK;
    switch (option) {
    case CURLOPT_URL: handle->url = copy(va_arg(value, const char *)); break;
    case CURLOPT_CUSTOMREQUEST: handle->method = copy(va_arg(value, const char *)); break;
    case CURLOPT_HTTPGET:
        if (va_arg(value, long)) handle->is_head = handle->is_post = handle->is_upload = 0;
        break;
    case CURLOPT_NOBODY: handle->is_head = va_arg(value, long); break;
    case CURLOPT_POST: handle->is_post = va_arg(value, long); break;
    case CURLOPT_UPLOAD: handle->is_upload = va_arg(value, long); break;
    case CURLOPT_POSTFIELDS: handle->fields = va_arg(value, const char *), handle->is_post = 1; break;
    case CURLOPT_POSTFIELDSIZE: handle->fields_bytes = va_arg(value, long); break;
    case CURLOPT_READFUNCTION: handle->read = va_arg(value, curl_read_callback); break;
    case CURLOPT_READDATA: handle->read_context = va_arg(value, void *); break;
    case CURLOPT_INFILESIZE: handle->file_bytes = va_arg(value, long); break;
    case CURLOPT_HTTPHEADER: handle->headers = va_arg(value, const struct curl_slist *); break;
    case CURLOPT_USERAGENT: handle->agent = copy(va_arg(value, const char *)); break;
    case CURLOPT_WRITEFUNCTION: handle->write = va_arg(value, curl_write_callback); break;
    case CURLOPT_WRITEDATA: handle->write_context = va_arg(value, void *); break;
    case CURLOPT_FOLLOWLOCATION: handle->follows = va_arg(value, long); break;
    case CURLOPT_MAXREDIRS: handle->redirects_max = va_arg(value, long); break;
    case CURLOPT_TIMEOUT: handle->timeout_ms = 1000 * va_arg(value, long); break;
    case CURLOPT_TIMEOUT_MS: handle->timeout_ms = va_arg(value, long); break;
    case CURLOPT_ERRORBUFFER: handle->error = va_arg(value, char *); break;
    default: code = CURLE_UNKNOWN_OPTION;
    }
    va_end(value);
    return code;
}

static size_t source(void *context, void *buffer, size_t capacity) {
    CURL *handle = context;
    size_t length = handle->read(buffer, 1, capacity, handle->read_context);
    return length == CURL_READFUNC_ABORT ? COFFERDAM_HTTP_STOP : length;
}

// Returns the headers of a request. A header without a value is one that libcurl would not send.
static cofferdam_http_header *headers_of(const CURL *handle, size_t *many) {
    size_t most = 2;
    for (const struct curl_slist *at = handle->headers; at; at = at->next) most++;
    cofferdam_http_header *headers = cofferdam_allocate(most * sizeof *headers);
    if (handle->agent)
        headers[(*many)++] = (cofferdam_http_header){cofferdam_string_of("user-agent"), cofferdam_string_of(handle->agent)};
    bool has_type = false;
    for (const struct curl_slist *at = handle->headers; at; at = at->next) {
        size_t name = strcspn(at->data, ":;");
        const char *value = at->data + name + (at->data[name] != 0);
        value += strspn(value, " \t");
        if (!name || (at->data[name] != ';' && !*value)) continue;
        has_type |= name == 12 && !strncmp(at->data, "Content-Type", name);
        headers[(*many)++] = (cofferdam_http_header){cofferdam_string_copy(at->data, name), cofferdam_string_of(value)};
    }
    if (handle->fields && !has_type)
        headers[(*many)++] = (cofferdam_http_header){cofferdam_string_of("content-type"),
                                                     cofferdam_string_of("application/x-www-form-urlencoded")};
    return headers;
}

static CURLcode failed(CURL *handle, cofferdam_error error) {
    if (handle->error) snprintf(handle->error, CURL_ERROR_SIZE, "%s", error.text.data ? error.text.data : "");
    switch (error.code) {
    case COFFERDAM_OK: return CURLE_OK;
    case COFFERDAM_HTTP_DENIED: return CURLE_REMOTE_ACCESS_DENIED;
    case COFFERDAM_HTTP_UNKNOWN_HOST: return CURLE_COULDNT_RESOLVE_HOST;
    case COFFERDAM_HTTP_UNREACHABLE:
    case COFFERDAM_HTTP_REFUSED: return CURLE_COULDNT_CONNECT;
    case COFFERDAM_HTTP_CLOSED: return CURLE_PARTIAL_FILE;
    case COFFERDAM_HTTP_TIMEOUT: return CURLE_OPERATION_TIMEDOUT;
    case COFFERDAM_HTTP_TLS: return CURLE_SSL_CONNECT_ERROR;
    case COFFERDAM_HTTP_INVALID: return CURLE_URL_MALFORMAT;
    case COFFERDAM_HTTP_TOO_MANY_REDIRECTS: return CURLE_TOO_MANY_REDIRECTS;
    case COFFERDAM_HTTP_STOPPED: return CURLE_ABORTED_BY_CALLBACK;
    default: return CURLE_RECV_ERROR;
    }
}

CURLcode curl_easy_perform(CURL *handle) {
    if (!handle->url || (handle->is_upload && !handle->read)) return CURLE_BAD_FUNCTION_ARGUMENT;
    const char *method = handle->is_head ? "HEAD" : handle->is_upload ? "PUT" : handle->is_post ? "POST" : "GET";
    cofferdam_http_request request = {
        .method = cofferdam_string_of(handle->method ? handle->method : method),
        .url = cofferdam_string_of(handle->url),
        .timeout_ms = (uint32_t)handle->timeout_ms,
        .redirects_max = handle->follows ? (uint32_t)handle->redirects_max : 0,
    };
    request.headers = headers_of(handle, &request.header_count);
    if (handle->is_upload || (handle->is_post && !handle->fields && handle->read)) {
        request.source = source;
        request.context = handle;
        request.has_length = handle->file_bytes >= 0;
        request.body_length = request.has_length ? (size_t)handle->file_bytes : 0;
    } else if (handle->fields) {
        request.body = handle->fields;
        request.body_length = handle->fields_bytes >= 0 ? (size_t)handle->fields_bytes : strlen(handle->fields);
    }
    cofferdam_http_response response;
    cofferdam_error error = cofferdam_http_send(&request, &response);
    if (error.code) return failed(handle, error);
    handle->status = response.status;
    handle->final_url = response.url.data;
    handle->type = cofferdam_http_header_of(&response, "content-type").data;
    char part[16384];
    for (;;) {
        size_t length;
        error = cofferdam_http_read(&response, part, sizeof part, &length);
        if (error.code || !length) return failed(handle, error);
        if (handle->write(part, 1, length, handle->write_context) != length) {
            cofferdam_http_close(&response);
            return CURLE_WRITE_ERROR;
        }
    }
}

CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...) {
    va_list value;
    va_start(value, info);
    CURLcode code = CURLE_OK;
    switch (info) {
    case CURLINFO_RESPONSE_CODE: *va_arg(value, long *) = handle->status; break;
    case CURLINFO_EFFECTIVE_URL: *va_arg(value, const char **) = handle->final_url; break;
    case CURLINFO_CONTENT_TYPE: *va_arg(value, const char **) = handle->type; break;
    default: code = CURLE_UNKNOWN_OPTION;
    }
    va_end(value);
    return code;
}

const char *curl_easy_strerror(CURLcode code) {
    static const char *const WORDS[] = {
        "no error", "unsupported protocol", "the URL is invalid", "the host is unknown", "the connection failed",
        "no grant for this request", "the connection was closed before the response was complete",
        "the write callback failed", "out of memory", "the request timed out", "the TLS connection failed",
        "a callback broke the request off", "an option is missing", "too many redirects", "unknown option",
        "the response cannot be received"};
    return (size_t)code < sizeof WORDS / sizeof *WORDS ? WORDS[code] : "unknown error";
}

void curl_easy_cleanup(CURL *handle) { (void)handle; }

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text) {
    struct curl_slist *made = cofferdam_allocate(sizeof *made), *last = list;
    made->data = (char *)copy(text);
    while (last && last->next) last = last->next;
    if (last) last->next = made;
    return list ? list : made;
}

void curl_slist_free_all(struct curl_slist *list) { (void)list; }
