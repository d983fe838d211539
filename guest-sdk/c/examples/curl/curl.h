// A part of libcurl's easy interface, over cofferdam_http.h, for code that is written for it. Copy
// curl.h and curl.c into a project. Options and codes have the names of libcurl, not its numbers:
// compile the code that uses them, and do not link objects that were compiled for libcurl.

#ifndef CURL_EXAMPLE_H
#define CURL_EXAMPLE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CURL CURL;

struct curl_slist {
    char *data;
    struct curl_slist *next;
};

typedef enum {
    CURLE_OK,
    CURLE_UNSUPPORTED_PROTOCOL,
    CURLE_URL_MALFORMAT,
    CURLE_COULDNT_RESOLVE_HOST,
    CURLE_COULDNT_CONNECT,
    CURLE_REMOTE_ACCESS_DENIED, // no grant covers the request: see CURLOPT_ERRORBUFFER
    CURLE_PARTIAL_FILE,
    CURLE_WRITE_ERROR,
    CURLE_OUT_OF_MEMORY,
    CURLE_OPERATION_TIMEDOUT,
    CURLE_SSL_CONNECT_ERROR,
    CURLE_ABORTED_BY_CALLBACK,
    CURLE_BAD_FUNCTION_ARGUMENT,
    CURLE_TOO_MANY_REDIRECTS,
    CURLE_UNKNOWN_OPTION,
    CURLE_RECV_ERROR,
} CURLcode;

typedef enum {
    CURLOPT_URL,            // const char *
    CURLOPT_CUSTOMREQUEST,  // const char *: the method
    CURLOPT_HTTPGET,        // long
    CURLOPT_NOBODY,         // long: HEAD
    CURLOPT_POST,           // long
    CURLOPT_UPLOAD,         // long: PUT, with the body of CURLOPT_READFUNCTION
    CURLOPT_POSTFIELDS,     // const char *, not copied
    CURLOPT_POSTFIELDSIZE,  // long; -1 for the length of the string
    CURLOPT_READFUNCTION,   // curl_read_callback
    CURLOPT_READDATA,       // void *
    CURLOPT_INFILESIZE,     // long; -1 if unknown
    CURLOPT_HTTPHEADER,     // struct curl_slist *
    CURLOPT_USERAGENT,      // const char *
    CURLOPT_WRITEFUNCTION,  // curl_write_callback; by default, the body goes to standard output
    CURLOPT_WRITEDATA,      // void *
    CURLOPT_FOLLOWLOCATION, // long
    CURLOPT_MAXREDIRS,      // long
    CURLOPT_TIMEOUT,        // long: seconds
    CURLOPT_TIMEOUT_MS,     // long
    CURLOPT_ERRORBUFFER,    // char[CURL_ERROR_SIZE]
} CURLoption;

typedef enum {
    CURLINFO_RESPONSE_CODE, // long *
    CURLINFO_EFFECTIVE_URL, // char **
    CURLINFO_CONTENT_TYPE,  // char **, NULL if there is none
} CURLINFO;

typedef size_t (*curl_write_callback)(char *data, size_t size, size_t count, void *context);
typedef size_t (*curl_read_callback)(char *buffer, size_t size, size_t count, void *context);

#define CURL_ERROR_SIZE 256
#define CURL_READFUNC_ABORT 0x10000000

CURL *curl_easy_init(void);
CURLcode curl_easy_setopt(CURL *handle, CURLoption option, ...);
CURLcode curl_easy_perform(CURL *handle);
CURLcode curl_easy_getinfo(CURL *handle, CURLINFO info, ...);
const char *curl_easy_strerror(CURLcode code);
void curl_easy_cleanup(CURL *handle);
struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text);
void curl_slist_free_all(struct curl_slist *list);

#ifdef __cplusplus
}
#endif

#endif
