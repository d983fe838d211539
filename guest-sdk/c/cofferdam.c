// Results, and decoding of a call's arguments into the struct of a tool.

#include "cofferdam_abi.h"

#include <stdarg.h>
#include <string.h>

// Results.

static cofferdam_result one(cofferdam_content content) { return cofferdam_several(1, &content); }

cofferdam_result cofferdam_nothing(void) { return (cofferdam_result){NULL, 0, NULL}; }

cofferdam_result cofferdam_text(cofferdam_string text) { return one(cofferdam_text_content(text)); }

cofferdam_result cofferdam_json(cofferdam_writer *json) {
    cofferdam_string text = cofferdam_written(json);
    return text.data ? one(cofferdam_json_content(text)) : cofferdam_fail("the result is nested too deeply");
}

cofferdam_result cofferdam_blob(const char *media_type, const void *data, size_t length) {
    return one(cofferdam_blob_content(media_type, data, length));
}

cofferdam_result cofferdam_several(size_t count, const cofferdam_content *contents) {
    if (count > SIZE_MAX / sizeof *contents) cofferdam_abort("too many contents");
    cofferdam_content *copy = cofferdam_allocate(count * sizeof *copy);
    if (count) memcpy(copy, contents, count * sizeof *copy);
    return (cofferdam_result){copy, count, NULL};
}

cofferdam_content cofferdam_text_content(cofferdam_string text) {
    return (cofferdam_content){.type = COFFERDAM_CONTENT_TEXT, .text = text};
}

cofferdam_content cofferdam_json_content(cofferdam_string json) {
    return (cofferdam_content){.type = COFFERDAM_CONTENT_JSON, .text = json};
}

static cofferdam_bytes bytes(const void *data, size_t length) { return (cofferdam_bytes){data, length}; }

cofferdam_content cofferdam_blob_content(const char *media_type, const void *data, size_t length) {
    return (cofferdam_content){
        .type = COFFERDAM_CONTENT_BLOB, .data = bytes(data, length), .media_type = cofferdam_string_of(media_type)};
}

cofferdam_content cofferdam_resource_content(cofferdam_string uri, const char *media_type, cofferdam_string text) {
    return (cofferdam_content){
        .type = COFFERDAM_CONTENT_RESOURCE_TEXT, .text = text, .uri = uri, .media_type = cofferdam_string_of(media_type)};
}

cofferdam_content cofferdam_binary_resource_content(
    cofferdam_string uri, const char *media_type, const void *data, size_t length) {
    return (cofferdam_content){.type = COFFERDAM_CONTENT_RESOURCE_BLOB,
                               .data = bytes(data, length),
                               .uri = uri,
                               .media_type = cofferdam_string_of(media_type)};
}

cofferdam_content cofferdam_link_content(cofferdam_string uri, cofferdam_string name, const char *media_type) {
    return (cofferdam_content){
        .type = COFFERDAM_CONTENT_LINK, .uri = uri, .name = name, .media_type = cofferdam_string_of(media_type)};
}

static cofferdam_result failed(cofferdam_failure failure) {
    cofferdam_failure *copy = cofferdam_allocate(sizeof *copy);
    *copy = failure;
    return (cofferdam_result){NULL, 0, copy};
}

cofferdam_result cofferdam_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    cofferdam_string message = cofferdam_format_list(format, arguments);
    va_end(arguments);
    return failed((cofferdam_failure){.message = message});
}

cofferdam_result cofferdam_suggest(cofferdam_result result, const char *format, ...) {
    if (!result.failure) return result;
    cofferdam_failure failure = *result.failure;
    va_list arguments;
    va_start(arguments, format);
    failure.suggestion = cofferdam_format_list(format, arguments);
    va_end(arguments);
    return failed(failure);
}

cofferdam_result cofferdam_transient(cofferdam_result result, bool is_transient) {
    if (!result.failure) return result;
    cofferdam_failure failure = *result.failure;
    failure.transience = is_transient ? COFFERDAM_TRANSIENT : COFFERDAM_PERMANENT;
    return failed(failure);
}

cofferdam_result cofferdam_fail_with(cofferdam_writer *json) {
    cofferdam_string value = cofferdam_written(json);
    if (!value.data) return cofferdam_fail("the error value is nested too deeply");
    return failed((cofferdam_failure){.message = cofferdam_string_of(""), .value = value});
}

static const char *words(cofferdam_error_code code) {
    switch (code) {
    case COFFERDAM_UNKNOWN_STORE: return "no store of that name was granted";
    case COFFERDAM_NOT_FOUND: return "there is nothing at that path";
    case COFFERDAM_ALREADY_EXISTS: return "the path is taken";
    case COFFERDAM_STORE_READ_ONLY: return "the store may only be read";
    case COFFERDAM_UNAVAILABLE: return "the store cannot be reached, or the file was changed meanwhile";
    case COFFERDAM_UNSUPPORTED: return "the client cannot be asked this";
    case COFFERDAM_ACCESS_DENIED: return "access denied";
    case COFFERDAM_UNKNOWN_TOOL: return "no tool of that name was granted";
    case COFFERDAM_TOO_DEEP: return "tools call each other too deeply";
    default: return "it did not work";
    }
}

cofferdam_result cofferdam_fail_for(cofferdam_error error) {
    if (error.failure) return failed(*error.failure);
    if (error.code == COFFERDAM_ENDED) return cofferdam_fail("the tool that was called ended as %s", error.text.data);
    cofferdam_result result = cofferdam_fail("%s", error.text.data ? error.text.data : words(error.code));
    return error.code == COFFERDAM_UNAVAILABLE ? cofferdam_transient(result, true) : result;
}

// Schemas.

static void add_type(cofferdam_writer *json, const char *type, bool or_null) {
    if (!or_null) return cofferdam_add_text(json, "type", type);
    cofferdam_begin_array(json, "type");
    cofferdam_add_text(json, NULL, type);
    cofferdam_add_text(json, NULL, "null");
    cofferdam_end(json);
}

// Adds the members of the parameter's own schema. For an optional parameter, null becomes an
// additional type.
static void add_schema(cofferdam_writer *json, const cofferdam_parameter *parameter) {
    const cofferdam_value *schema = cofferdam_parse(cofferdam_string_of(parameter->schema), NULL);
    if (cofferdam_type_of(schema) != COFFERDAM_OBJECT) cofferdam_abort("the schema of a parameter is not a JSON object");
    for (const cofferdam_value *member = cofferdam_first(schema); member; member = cofferdam_next(member)) {
        cofferdam_string name = cofferdam_name_of(member), type = cofferdam_text_of(member);
        if (cofferdam_equals(name, "description") || cofferdam_equals(name, "default")) continue;
        if (cofferdam_equals(name, "type") && type.data) add_type(json, type.data, parameter->presence == COFFERDAM_OPTIONAL_);
        else cofferdam_add_member(json, name, member);
    }
}

static void add_choices(cofferdam_writer *json, const cofferdam_parameter *parameter) {
    if (!parameter->choices[0]) return;
    cofferdam_begin_array(json, "enum");
    for (size_t at = 0; parameter->choices[at]; at++) cofferdam_add_text(json, NULL, parameter->choices[at]);
    if (parameter->presence == COFFERDAM_OPTIONAL_) cofferdam_add_null(json, NULL);
    cofferdam_end(json);
}

static void add_default(cofferdam_writer *json, const cofferdam_parameter *parameter) {
    if (parameter->presence != COFFERDAM_DEFAULTED_) return;
    switch (parameter->type) {
    case COFFERDAM_AS_STRING_: return cofferdam_add_text(json, "default", parameter->text);
    case COFFERDAM_AS_INTEGER_: return cofferdam_add_integer(json, "default", parameter->integer);
    case COFFERDAM_AS_NUMBER_: return cofferdam_add_number(json, "default", parameter->number);
    case COFFERDAM_AS_BOOLEAN_: return cofferdam_add_boolean(json, "default", parameter->boolean);
    default: return cofferdam_add_json(json, "default", cofferdam_string_of(parameter->text));
    }
}

static void add_parameter(cofferdam_writer *json, const cofferdam_parameter *parameter) {
    static const char *const TYPES[] = {"", "string", "integer", "number", "boolean"};
    cofferdam_begin_object(json, parameter->name);
    if (parameter->type == COFFERDAM_AS_VALUE_) add_schema(json, parameter);
    else add_type(json, TYPES[parameter->type], parameter->presence == COFFERDAM_OPTIONAL_);
    add_choices(json, parameter);
    if (parameter->has_range) {
        cofferdam_add_integer(json, "minimum", parameter->least);
        cofferdam_add_integer(json, "maximum", parameter->most);
    } else if (parameter->type == COFFERDAM_AS_INTEGER_) cofferdam_add_text(json, "format", "int64");
    cofferdam_add_text(json, "description", parameter->description);
    add_default(json, parameter);
    cofferdam_end(json);
}

static cofferdam_string schema_without_group(const cofferdam_tool *tool) {
    if (tool->make_input_schema) return tool->make_input_schema();
    if (tool->input_schema) return cofferdam_string_of(tool->input_schema);
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_text(&json, "type", "object");
    cofferdam_begin_object(&json, "properties");
    for (const cofferdam_parameter *parameter = tool->parameters; parameter->type; parameter++) add_parameter(&json, parameter);
    cofferdam_end(&json);
    cofferdam_begin_array(&json, "required");
    for (const cofferdam_parameter *parameter = tool->parameters; parameter->type; parameter++)
        if (parameter->presence == COFFERDAM_REQUIRED_) cofferdam_add_text(&json, NULL, parameter->name);
    return cofferdam_written(&json);
}

cofferdam_string cofferdam_input_schema(const cofferdam_tool *tool) {
    cofferdam_string schema = schema_without_group(tool);
    if (!tool->hints.group) return schema;
    const cofferdam_value *members = cofferdam_parse(schema, NULL);
    if (cofferdam_type_of(members) != COFFERDAM_OBJECT) cofferdam_abort("the schema of a tool is not a JSON object");
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    for (const cofferdam_value *member = cofferdam_first(members); member; member = cofferdam_next(member))
        cofferdam_add_member(&json, cofferdam_name_of(member), member);
    cofferdam_add_text(&json, "x-group", tool->hints.group);
    return cofferdam_written(&json);
}

cofferdam_string cofferdam_output_schema(const cofferdam_tool *tool) {
    if (tool->hints.make_output_schema) return tool->hints.make_output_schema();
    return cofferdam_string_of(tool->hints.output_schema);
}

// Arguments.

const cofferdam_tool *cofferdam_find(cofferdam_string name) {
    for (const cofferdam_tool *const *tool = cofferdam_tools(); *tool; tool++)
        if (cofferdam_equals(name, (*tool)->name)) return *tool;
    return NULL;
}

// An optional field is NULL or points to a copy of the value.
static void set(void *field, const cofferdam_parameter *parameter, const void *value, size_t bytes) {
    if (parameter->presence != COFFERDAM_OPTIONAL_) {
        memcpy(field, value, bytes);
        return;
    }
    void *copy = cofferdam_allocate(bytes);
    memcpy(copy, value, bytes);
    memcpy(field, &copy, sizeof copy);
}

static bool set_string(cofferdam_string *field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    *field = value ? cofferdam_text_of(value) : cofferdam_string_of(parameter->text);
    bool is_chosen = !parameter->choices[0];
    for (size_t at = 0; parameter->choices[at]; at++) is_chosen |= cofferdam_equals(*field, parameter->choices[at]);
    return field->data && is_chosen;
}

static bool set_integer(void *field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    int64_t integer = parameter->integer;
    if (value && !cofferdam_read_integer(value, &integer)) return false;
    if (parameter->has_range && (integer < parameter->least || integer > parameter->most)) return false;
    set(field, parameter, &integer, sizeof integer);
    return true;
}

static bool set_number(void *field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    double number = parameter->number;
    if (value && !cofferdam_read_number(value, &number)) return false;
    set(field, parameter, &number, sizeof number);
    return true;
}

static bool set_boolean(void *field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    bool boolean = parameter->boolean;
    if (value && !cofferdam_read_boolean(value, &boolean)) return false;
    set(field, parameter, &boolean, sizeof boolean);
    return true;
}

static bool set_value(const cofferdam_value **field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    *field = value ? value : cofferdam_parse(cofferdam_string_of(parameter->text), NULL);
    return *field;
}

// `value` is NULL for the default.
static bool set_field(void *field, const cofferdam_parameter *parameter, const cofferdam_value *value) {
    switch (parameter->type) {
    case COFFERDAM_AS_STRING_: return set_string(field, parameter, value);
    case COFFERDAM_AS_INTEGER_: return set_integer(field, parameter, value);
    case COFFERDAM_AS_NUMBER_: return set_number(field, parameter, value);
    case COFFERDAM_AS_BOOLEAN_: return set_boolean(field, parameter, value);
    default: return set_value(field, parameter, value);
    }
}

static cofferdam_result start_with_struct(const cofferdam_tool *tool, const cofferdam_value *all) {
    char *arguments = cofferdam_allocate(tool->arguments_bytes);
    memcpy(arguments, &all, sizeof all);
    for (const cofferdam_parameter *parameter = tool->parameters; parameter->type; parameter++) {
        const cofferdam_value *value = cofferdam_member(all, parameter->name);
        if (cofferdam_is_null(value)) value = NULL;
        if (!value && parameter->presence == COFFERDAM_OPTIONAL_) continue;
        if (!value && parameter->presence == COFFERDAM_REQUIRED_)
            return cofferdam_fail("Required argument '%s' was not supplied to '%s'.", parameter->name, tool->name);
        if (!set_field(arguments + parameter->offset, parameter, value))
            return cofferdam_fail("Argument '%s' of '%s' does not fit its schema.", parameter->name, tool->name);
    }
    return tool->start(arguments);
}

cofferdam_result cofferdam_start(const cofferdam_tool *tool, cofferdam_string arguments_json) {
    cofferdam_string problem;
    const cofferdam_value *all = cofferdam_parse(arguments_json, &problem);
    if (!all) return cofferdam_fail("the arguments are not JSON: %s", problem.data);
    if (cofferdam_type_of(all) != COFFERDAM_OBJECT) return cofferdam_fail("the arguments are not a JSON object");
    return tool->parameters ? start_with_struct(tool, all) : tool->start(all);
}
