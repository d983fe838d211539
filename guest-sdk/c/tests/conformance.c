// Native tests of the tools that both conformance plugins have. The cases of ../../conformance go
// through the host.

#include "../cofferdam_test.h"

int main(void) {
    COFFERDAM_EXPECT("echo",
                     "{\"text\":\"hi\",\"flag\":true,\"integer\":-3,\"number\":2.5,\"list\":[\"a\"],\"map\":{\"x\":1}}",
                     "{\"text\":\"hi\",\"flag\":true,\"integer\":-3,\"number\":2.5,\"list\":[\"a\"],\"map\":{\"x\":1}}");
    COFFERDAM_EXPECT("defaults", "{\"count\":null}",
                     "{\"count\":3,\"word\":\"abc\",\"tags\":[\"x\",\"y\"],\"ratio\":0.5,\"flag\":true}");
    COFFERDAM_EXPECT("nullables", "{}", "{\"name\":null,\"count\":null}");
    COFFERDAM_EXPECT("nullables", "{\"name\":\"\",\"count\":0}", "{\"name\":\"\",\"count\":0}");
    COFFERDAM_EXPECT("nested",
                     "{\"order\":{\"id\":9,\"customer\":{\"name\":\"Ada\"},\"items\":[{\"sku\":\"a\",\"quantity\":2},"
                     "{\"sku\":\"b\"}],\"status\":\"paid\"}}",
                     "{\"id\":9,\"quantity\":3,\"first\":\"a\",\"customer\":\"Ada\",\"email\":null,\"status\":\"paid\"}");
    COFFERDAM_EXPECT("unicode", "{\"text\":\"a\\u00f1\\u0000\"}",
                     "{\"text\":\"a\\u00f1\\u0000\",\"characters\":3,\"bytes\":4,\"reversed\":\"\\u0000\\u00f1a\"}");
    COFFERDAM_EXPECT("nothing", "{}", "null");
    COFFERDAM_EXPECT("blob", "{\"size\":3}", "{\"media_type\":\"application/octet-stream\",\"bytes\":3}");
    COFFERDAM_EXPECT("several", "{}",
                     "[\"one\",{\"two\":2},{\"media_type\":\"image/png\",\"bytes\":4},"
                     "{\"uri\":\"memo:three\",\"media_type\":\"text/plain\",\"text\":\"three\"},"
                     "{\"uri\":\"https://example.com/four.csv\",\"name\":\"four.csv\",\"media_type\":\"text/csv\"}]");
    COFFERDAM_EXPECT("fail", "{\"kind\":\"suggestion\"}",
                     "{\"error\":{\"message\":\"it went wrong\",\"suggestion\":\"try again tomorrow\"}}");
    COFFERDAM_EXPECT("fail", "{\"kind\":\"value\"}", "{\"error\":{\"code\":7,\"detail\":[\"a\",null]}}");
    COFFERDAM_CHECK(cofferdam_test_call("unicode", "{}").failure);
    COFFERDAM_CHECK(cofferdam_test_call("blob", "{\"size\":\"many\"}").failure);

    COFFERDAM_EXPECT_FAILURE("missing", "{\"store\":\"data\"}", "no store of that name was granted");
    cofferdam_test_grant_store("data");
    COFFERDAM_EXPECT("missing", "{\"store\":\"data\"}", "\"not found\"");
    COFFERDAM_EXPECT("store", "{\"store\":\"data\",\"path\":\"new/note.txt\",\"text\":\"hay\\nneedle\"}",
                     "{\"text\":\"hay\\nneedle\",\"size\":10,\"files\":[\"new\",\"new/note.txt\"],\"lines\":[2]}");
    COFFERDAM_EXPECT_FAILURE("store", "{\"store\":\"data\",\"path\":\"new/note.txt\",\"text\":\"\"}", "the path is taken");
    COFFERDAM_EXPECT_FAILURE("secret", "{\"name\":\"token\"}", "access denied");
    cofferdam_test_grant_secret("token", "s3cr3t-\xC3\xB1");
    COFFERDAM_EXPECT("secret", "{\"name\":\"token\"}", "8");
    COFFERDAM_EXPECT_FAILURE("relay", "{\"tool\":\"x\",\"arguments\":{}}", "there is no tool `x`");
    cofferdam_test_grant_tool("x", "[1]");
    COFFERDAM_EXPECT("relay", "{\"tool\":\"x\",\"arguments\":{}}", "[1]");
    COFFERDAM_EXPECT_FAILURE("http", "{\"url\":\"http://a/\"}",
                             "a: no grant for this request; the operator can allow it with --allow-http http://a/");
    cofferdam_test_grant_response("http://a/", 200, "content-type: text/plain", "hello");
    COFFERDAM_EXPECT("http", "{\"url\":\"http://a/\",\"count\":2,\"parallel\":3,\"send_bytes\":100,\"method\":\"PUT\"}",
                     "{\"status\":200,\"url\":\"http://a/\",\"type\":\"text/plain\",\"bytes\":5,\"text\":\"hello\",\"ok\":6}");
    COFFERDAM_EXPECT("log", "{\"message\":\"mind the gap\"}", "null");
    COFFERDAM_CHECK(cofferdam_equals(cofferdam_test_logged(), "mind the gap\n"));
    COFFERDAM_CHECK(cofferdam_test_output_schema("annotated").data);
    return cofferdam_test_end();
}
