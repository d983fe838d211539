// Tests without a host: `make test`. `cofferdam test` runs the cases of cases.jsonl in the sandbox.

#include "cofferdam_test.h"

int main() {
    COFFERDAM_EXPECT("greet", "{\"name\": \"Ada\"}", "\"Hello, Ada!\"");
    COFFERDAM_EXPECT_FAILURE("greet", "{\"name\": \"Ada\", \"times\": 1000}", "1000 times is too often");
    return cofferdam_test_end();
}
