// Parts of COFFERDAM_TOOL and COFFERDAM_PLUGIN in cofferdam.h: the tables that they fill, and the
// macros of the parameters. Names that end in `_` are not for direct use.

#ifndef COFFERDAM_TOOL_H
#define COFFERDAM_TOOL_H

// Parameter of a tool.
typedef struct cofferdam_parameter {
    const char *name;
    size_t offset;
    enum cofferdam_parameter_type {
        COFFERDAM_AS_NOTHING_, // after the last one
        COFFERDAM_AS_STRING_,
        COFFERDAM_AS_INTEGER_,
        COFFERDAM_AS_NUMBER_,
        COFFERDAM_AS_BOOLEAN_,
        COFFERDAM_AS_VALUE_,
    } type;
    enum cofferdam_presence { COFFERDAM_REQUIRED_, COFFERDAM_DEFAULTED_, COFFERDAM_OPTIONAL_ } presence;
    const char *description;
    // The default: a string, also JSON for a value.
    const char *text;
    int64_t integer;
    double number;
    bool boolean;
    bool has_range;
    int64_t least;
    int64_t most;
    const char *schema;
    const char *choices[17];
} cofferdam_parameter;

enum cofferdam_says { COFFERDAM_SAYS_NOTHING_, COFFERDAM_SAYS_NO_, COFFERDAM_SAYS_YES_ };

typedef struct cofferdam_hints {
    const char *title;
    const char *group;
    const char *output_schema;
    cofferdam_string (*make_output_schema)(void);
    enum cofferdam_says read_only;
    enum cofferdam_says destructive;
    enum cofferdam_says idempotent;
    enum cofferdam_says open_world;
    enum cofferdam_says long_running;
    bool is_given;
} cofferdam_hints;

// Tool of a plugin. A tool with parameters gets its arguments as the struct that they describe,
// others as a cofferdam_value. Schemas are made when the host asks for them, because a call does
// not need them.
typedef struct cofferdam_tool {
    const char *name;
    const char *description;
    const char *input_schema;
    cofferdam_string (*make_input_schema)(void);
    const cofferdam_parameter *parameters;
    size_t arguments_bytes;
    cofferdam_result (*start)(const void *arguments);
    cofferdam_hints hints;
} cofferdam_tool;

// The tools, followed by NULL. Defined by COFFERDAM_PLUGIN.
const cofferdam_tool *const *cofferdam_tools(void);

#ifndef __cplusplus

// Parameters.

#define COFFERDAM_STRING(name, description) COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, REQUIRED, description)
#define COFFERDAM_STRING_OR(name, description, otherwise) \
    COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, DEFAULTED, description, .text = otherwise)
#define COFFERDAM_STRING_OPTIONAL(name, description) COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, OPTIONAL, description)

#define COFFERDAM_CHOICE(name, description, ...) \
    COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, REQUIRED, description, .choices = {__VA_ARGS__})
#define COFFERDAM_CHOICE_OR(name, description, otherwise, ...) \
    COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, DEFAULTED, description, .text = otherwise, .choices = {__VA_ARGS__})
#define COFFERDAM_CHOICE_OPTIONAL(name, description, ...) \
    COFFERDAM_PARAMETER_(cofferdam_string, name, STRING, OPTIONAL, description, .choices = {__VA_ARGS__})

#define COFFERDAM_INTEGER(name, description) COFFERDAM_PARAMETER_(int64_t, name, INTEGER, REQUIRED, description)
#define COFFERDAM_INTEGER_OR(name, description, otherwise) \
    COFFERDAM_PARAMETER_(int64_t, name, INTEGER, DEFAULTED, description, .integer = otherwise)
#define COFFERDAM_INTEGER_OPTIONAL(name, description) COFFERDAM_PARAMETER_(const int64_t *, name, INTEGER, OPTIONAL, description)
#define COFFERDAM_INTEGER_IN(name, description, from, to) \
    COFFERDAM_PARAMETER_(int64_t, name, INTEGER, REQUIRED, description, .has_range = true, .least = from, .most = to)
#define COFFERDAM_INTEGER_IN_OR(name, description, from, to, otherwise) \
    COFFERDAM_PARAMETER_( \
        int64_t, name, INTEGER, DEFAULTED, description, .integer = otherwise, .has_range = true, .least = from, .most = to)

#define COFFERDAM_NUMBER(name, description) COFFERDAM_PARAMETER_(double, name, NUMBER, REQUIRED, description)
#define COFFERDAM_NUMBER_OR(name, description, otherwise) \
    COFFERDAM_PARAMETER_(double, name, NUMBER, DEFAULTED, description, .number = otherwise)
#define COFFERDAM_NUMBER_OPTIONAL(name, description) COFFERDAM_PARAMETER_(const double *, name, NUMBER, OPTIONAL, description)

#define COFFERDAM_BOOLEAN(name, description) COFFERDAM_PARAMETER_(bool, name, BOOLEAN, REQUIRED, description)
#define COFFERDAM_BOOLEAN_OR(name, description, otherwise) \
    COFFERDAM_PARAMETER_(bool, name, BOOLEAN, DEFAULTED, description, .boolean = otherwise)
#define COFFERDAM_BOOLEAN_OPTIONAL(name, description) COFFERDAM_PARAMETER_(const bool *, name, BOOLEAN, OPTIONAL, description)

#define COFFERDAM_VALUE(name, description, json_schema) \
    COFFERDAM_PARAMETER_(const cofferdam_value *, name, VALUE, REQUIRED, description, .schema = json_schema)
#define COFFERDAM_VALUE_OR(name, description, json_schema, json) \
    COFFERDAM_PARAMETER_(const cofferdam_value *, name, VALUE, DEFAULTED, description, .schema = json_schema, .text = json)
#define COFFERDAM_VALUE_OPTIONAL(name, description, json_schema) \
    COFFERDAM_PARAMETER_(const cofferdam_value *, name, VALUE, OPTIONAL, description, .schema = json_schema)

// Every item is a tuple: PARAMETER, the field's type, its name and its description; or HINT and a
// field of cofferdam_hints.
#define COFFERDAM_PARAMETER_(field, name, kind, is, says, ...) \
    (PARAMETER, field, name, .type = COFFERDAM_AS_##kind##_, .presence = COFFERDAM_##is##_, \
     .description = says __VA_OPT__(, ) __VA_ARGS__)
#define COFFERDAM_SAYS_(is) ((is) ? COFFERDAM_SAYS_YES_ : COFFERDAM_SAYS_NO_)

#define COFFERDAM_FIELD_(tool, item) COFFERDAM_ITEM_(COFFERDAM_FIELD_OF_, tool, COFFERDAM_UNWRAP_ item)
#define COFFERDAM_FIELD_OF_PARAMETER_(tool, field, name, ...) field name;
#define COFFERDAM_FIELD_OF_HINT_(...)

#define COFFERDAM_ENTRY_(tool, item) COFFERDAM_ITEM_(COFFERDAM_ENTRY_OF_, tool, COFFERDAM_UNWRAP_ item)
#define COFFERDAM_ENTRY_OF_PARAMETER_(tool, field, called, ...) \
    {.name = #called, .offset = offsetof(struct cofferdam_arguments_##tool, called), __VA_ARGS__},
#define COFFERDAM_ENTRY_OF_HINT_(...)

#define COFFERDAM_HINT_(tool, item) COFFERDAM_ITEM_(COFFERDAM_HINT_OF_, tool, COFFERDAM_UNWRAP_ item)
#define COFFERDAM_HINT_OF_PARAMETER_(...)
#define COFFERDAM_HINT_OF_HINT_(tool, ...) __VA_ARGS__,

#define COFFERDAM_TOOL_ADDRESS_(_, tool) &cofferdam_tool_##tool,

#define COFFERDAM_UNWRAP_(...) __VA_ARGS__
#define COFFERDAM_ITEM_(...) COFFERDAM_ITEM_NEXT_(__VA_ARGS__)
#define COFFERDAM_ITEM_NEXT_(macro, tool, kind, ...) macro##kind##_(tool, __VA_ARGS__)

// Expands to macro(context, item) for each item. A macro cannot call itself, but its expansion can
// be expanded again.
#define COFFERDAM_EACH_(macro, context, ...) __VA_OPT__(COFFERDAM_MORE_(COFFERDAM_EACH_NEXT_(macro, context, __VA_ARGS__)))
#define COFFERDAM_EACH_NEXT_(macro, context, item, ...) \
    macro(context, item) __VA_OPT__(COFFERDAM_EACH_AGAIN_ COFFERDAM_PARENTHESES_(macro, context, __VA_ARGS__))
#define COFFERDAM_PARENTHESES_ ()
#define COFFERDAM_EACH_AGAIN_() COFFERDAM_EACH_NEXT_
#define COFFERDAM_MORE_(...) COFFERDAM_MORE_3_(COFFERDAM_MORE_3_(COFFERDAM_MORE_3_(COFFERDAM_MORE_3_(__VA_ARGS__))))
#define COFFERDAM_MORE_3_(...) COFFERDAM_MORE_2_(COFFERDAM_MORE_2_(COFFERDAM_MORE_2_(COFFERDAM_MORE_2_(__VA_ARGS__))))
#define COFFERDAM_MORE_2_(...) COFFERDAM_MORE_1_(COFFERDAM_MORE_1_(COFFERDAM_MORE_1_(COFFERDAM_MORE_1_(__VA_ARGS__))))
#define COFFERDAM_MORE_1_(...) __VA_ARGS__

#endif

#endif
