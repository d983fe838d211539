// Tests of the published schemas, and of arguments that do not match.

#include "../cofferdam_test.h"

COFFERDAM_TOOL(all, "Has parameters of all kinds.",
               COFFERDAM_READ_ONLY,
               COFFERDAM_STRING(text, "A text."),
               COFFERDAM_CHOICE_OR(choice, "A choice.", "b", "a", "b"),
               COFFERDAM_CHOICE_OPTIONAL(maybe, "A choice or none.", "a"),
               COFFERDAM_INTEGER_IN_OR(size, "A size.", 1, 9, 4),
               COFFERDAM_NUMBER_OPTIONAL(ratio, "A ratio."),
               COFFERDAM_VALUE_OPTIONAL(list, "A list.", COFFERDAM_SCHEMA({"type": "array", "items": {"enum": [true, "x"]}}))) {
    cofferdam_writer json = {0};
    cofferdam_begin_array(&json, NULL);
    cofferdam_add_string(&json, NULL, arguments->choice);
    cofferdam_add_string(&json, NULL, arguments->maybe);
    cofferdam_add_integer(&json, NULL, arguments->size);
    cofferdam_add_number(&json, NULL, arguments->ratio ? *arguments->ratio : -1);
    cofferdam_add_value(&json, NULL, arguments->list);
    cofferdam_add_value(&json, NULL, cofferdam_member(arguments->all, "text"));
    return cofferdam_json(&json);
}

COFFERDAM_TOOL_WITH_SCHEMA(given, "Has a schema of its own.", COFFERDAM_SCHEMA({"type": "object"}), COFFERDAM_TITLE("Given")) {
    cofferdam_writer json = {0};
    cofferdam_add_value(&json, NULL, arguments);
    return cofferdam_json(&json);
}

COFFERDAM_PLUGIN(all, given)

int main(void) {
    cofferdam_string schema = cofferdam_test_input_schema("all");
    COFFERDAM_CHECK(cofferdam_equals(
        schema,
        "{\"type\":\"object\",\"properties\":{"
        "\"text\":{\"type\":\"string\",\"description\":\"A text.\"},"
        "\"choice\":{\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"description\":\"A choice.\",\"default\":\"b\"},"
        "\"maybe\":{\"type\":[\"string\",\"null\"],\"enum\":[\"a\",null],\"description\":\"A choice or none.\"},"
        "\"size\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":9,\"description\":\"A size.\",\"default\":4},"
        "\"ratio\":{\"type\":[\"number\",\"null\"],\"description\":\"A ratio.\"},"
        "\"list\":{\"type\":[\"array\",\"null\"],\"items\":{\"enum\":[true,\"x\"]},\"description\":\"A list.\"}},"
        "\"required\":[\"text\"]}"));
    COFFERDAM_EXPECT("all", "{\"text\":\"t\"}", "[\"b\",null,4,-1,null,\"t\"]");
    COFFERDAM_EXPECT("all", "{\"text\":\"t\",\"maybe\":\"a\",\"ratio\":0.5,\"list\":[\"x\"]}", "[\"b\",\"a\",4,0.5,[\"x\"],\"t\"]");
    COFFERDAM_EXPECT_FAILURE("all", "{}", "Required argument 'text' was not supplied to 'all'.");
    COFFERDAM_EXPECT_FAILURE("all", "{\"text\":\"t\",\"size\":10}", "Argument 'size' of 'all' does not fit its schema.");
    COFFERDAM_EXPECT_FAILURE("all", "{\"text\":\"t\",\"choice\":\"c\"}", "Argument 'choice' of 'all' does not fit its schema.");
    COFFERDAM_EXPECT_FAILURE("all", "[]", "the arguments are not a JSON object");
    COFFERDAM_EXPECT("given", "{\"a\":[1.50]}", "{\"a\":[1.5]}");
    return cofferdam_test_end();
}
