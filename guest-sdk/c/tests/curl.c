// Tests of examples/curl.

#include "../examples/curl/curl.h"

#include "../cofferdam_http.h"
#include "../cofferdam_test.h"

#include <string.h>

COFFERDAM_TOOL(none, "None.") { return cofferdam_nothing(); }
COFFERDAM_PLUGIN(none)

static size_t add(char *data, size_t size, size_t count, void *context) {
    strncat(context, data, size * count);
    return size * count;
}

static size_t refuse(char *data, size_t size, size_t count, void *context) {
    return (void)data, (void)size, (void)count, (void)context, 0;
}

int main(void) {
    cofferdam_test_grant_response("http://a/form", 302, "location: /done", "");
    cofferdam_test_grant_response("http://a/done", 200, "Content-Type: text/plain", "hello");
    char body[64] = "", error[CURL_ERROR_SIZE];
    long status = 0;
    char *url = NULL, *type = NULL;
    CURL *curl = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(curl_slist_append(NULL, "X-One: 1"), "X-Two;");
    curl_easy_setopt(curl, CURLOPT_URL, "http://a/form");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "a=b");
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, add);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, body);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, error);
    COFFERDAM_CHECK(curl_easy_perform(curl) == CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    COFFERDAM_CHECK(status == 302);
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_test_sent(),
                                     "POST http://a/form\nX-One: 1\nX-Two: \ncontent-type: application/x-www-form-urlencoded\n"
                                     "content-length: 3\n\na=b"));
    curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
    COFFERDAM_CHECK(curl_easy_perform(curl) == CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_EFFECTIVE_URL, &url);
    curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
    COFFERDAM_CHECK(!strcmp(body, "hello") && !strcmp(url, "http://a/done") && !strcmp(type, "text/plain"));
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, refuse);
    COFFERDAM_CHECK(curl_easy_perform(curl) == CURLE_WRITE_ERROR);
    curl_easy_setopt(curl, CURLOPT_URL, "http://b/");
    COFFERDAM_CHECK(curl_easy_perform(curl) == CURLE_REMOTE_ACCESS_DENIED);
    COFFERDAM_CHECK(strstr(error, "--allow-http http://b/"));
    curl_slist_free_all(headers);
    curl_easy_cleanup(curl);
    return cofferdam_test_end();
}
