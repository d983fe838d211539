// Tests of C++ types as schemas and as JSON.

#include "cofferdam.hpp"
#include "cofferdam_http.hpp"
#include "cofferdam_test.h"

enum class colour { red, green };
constexpr auto names_of(colour) { return std::array{std::pair{colour::red, "red"}, std::pair{colour::green, "green"}}; }

struct inner {
    std::int8_t small = 0;

    static auto fields() { return cofferdam::fields(cofferdam::field("small", &inner::small, "A small one.")); }
};

struct outer {
    std::vector<inner> list;
    std::optional<colour> maybe;
    colour chosen = colour::green;
    std::map<std::string, cofferdam::json> any = {};

    static auto fields() {
        using cofferdam::defaulted;
        using cofferdam::field;
        return cofferdam::fields(field("list", &outer::list, "A list."), field("maybe", &outer::maybe, "A colour or none."),
                                 defaulted("chosen", &outer::chosen, "A colour."), defaulted("any", &outer::any, "Anything."));
    }
};

outer give_back(const outer &given) { return given; }

cofferdam::result<void> refuse() { return cofferdam::fail("no").suggest("wait").transient(); }

COFFERDAM_PLUGIN(cofferdam::tool<give_back>("give_back", "Gives back."), cofferdam::tool<refuse>("refuse", "Refuses."))

int main() {
    COFFERDAM_CHECK(cofferdam_equals(
        cofferdam_test_input_schema("give_back"),
        R"({"type":"object","properties":{"list":{"type":"array","items":{"type":"object","properties":)"
        R"({"small":{"type":"integer","minimum":-128,"maximum":127,"description":"A small one."}},"required":["small"]},)"
        R"("description":"A list."},"maybe":{"type":["string","null"],"enum":["red","green",null],"description":)"
        R"("A colour or none."},"chosen":{"type":"string","enum":["red","green"],"description":"A colour.","default":"green"},)"
        R"("any":{"type":"object","additionalProperties":{},"description":"Anything.","default":{}}},"required":["list"]})"));
    COFFERDAM_EXPECT("give_back", R"({"list":[{"small":-128}],"any":{"a":[1.50,null]}})",
                     R"({"list":[{"small":-128}],"maybe":null,"chosen":"green","any":{"a":[1.5,null]}})");
    COFFERDAM_EXPECT("give_back", R"({"list":[],"maybe":"red","chosen":"red"})",
                     R"({"list":[],"maybe":"red","chosen":"red","any":{}})");
    COFFERDAM_EXPECT_FAILURE("give_back", R"({"list":[{"small":128}]})", "Argument 'list' is missing or does not fit its schema.");
    COFFERDAM_EXPECT_FAILURE("give_back", R"({"list":[],"maybe":"blue"})",
                             "Argument 'maybe' is missing or does not fit its schema.");
    COFFERDAM_EXPECT_FAILURE("give_back", "{}", "Argument 'list' is missing or does not fit its schema.");
    COFFERDAM_EXPECT_FAILURE("refuse", "{}", "no");
    COFFERDAM_CHECK(cofferdam_test_call("refuse", "{}").failure->transience == COFFERDAM_TRANSIENT);
    COFFERDAM_CHECK(cofferdam::from_json<std::vector<int>>("[1,2]") == std::vector({1, 2}));
    COFFERDAM_CHECK(!cofferdam::from_json<std::vector<int>>("[1,\"2\"]") && !cofferdam::from_json<int>("x"));
    COFFERDAM_CHECK(cofferdam::to_json(std::map<std::string, bool>{{"a", true}})->text == R"({"a":true})");
    const std::map<std::string, int> names = {{std::string("a\0b", 3), 1}, {std::string("a\0c", 3), 2}, {"", 3}};
    COFFERDAM_CHECK(cofferdam::to_json(names)->text == R"({"":3,"a\u0000b":1,"a\u0000c":2})");
    COFFERDAM_CHECK((cofferdam::from_json<std::map<std::string, int>>(cofferdam::to_json(names)->text) == names));
    COFFERDAM_CHECK(!cofferdam::from_json<float>("1e39") && !cofferdam::from_json<float>("-1e39"));
    COFFERDAM_CHECK(cofferdam::from_json<float>("-1e38") == -1e38f && cofferdam::from_json<float>("1e-60") == 0);
    COFFERDAM_CHECK(cofferdam::from_json<double>("1e300") == 1e300 && !cofferdam::from_json<double>("1e400"));
    using cofferdam::detail::timeout_ms;
    using std::chrono::hours;
    COFFERDAM_CHECK(timeout_ms(hours(0)) == 0 && timeout_ms(hours(1)) == 3'600'000 && timeout_ms(hours(-1)) == 1);
    COFFERDAM_CHECK(timeout_ms(hours(1193)) == 4'294'800'000 && timeout_ms(hours(1194)) == UINT32_MAX);
    return cofferdam_test_end();
}
