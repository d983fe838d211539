// Conversion of C++ types to JSON Schemas, and of their values from and to JSON. cofferdam.hpp
// documents what an author needs.

#ifndef COFFERDAM_CODEC_HPP
#define COFFERDAM_CODEC_HPP

#include "cofferdam_json.h"

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cofferdam {

// Any JSON value, as a string. As a parameter, its schema allows everything.
struct json {
    std::string text = "null";
};

// Struct member with a name in JSON, made by `field` and `defaulted`.
template <class Struct, class Type> struct field_of {
    const char *name;
    Type Struct::*member;
    const char *description;
    bool has_default;
};

// Describes a member that is required, unless it is a std::optional.
template <class Struct, class Type>
constexpr field_of<Struct, Type> field(const char *name, Type Struct::*member, const char *description) {
    return {name, member, description, false};
}

// Describes a member that may be omitted or null. It keeps the value with which the struct
// initializes it, which is published as its default.
template <class Struct, class Type>
constexpr field_of<Struct, Type> defaulted(const char *name, Type Struct::*member, const char *description) {
    return {name, member, description, true};
}

// Makes the value of a `fields` function.
template <class... Field> constexpr std::tuple<Field...> fields(Field... field) { return {field...}; }

namespace detail {

template <class Type> struct codec;

template <class Type>
concept described = requires { Type::fields(); };

// An enum with `constexpr auto names_of(E) { return std::array{std::pair{E::one, "one"}, …}; }`
// beside it.
template <class Type>
concept chosen = std::is_enum_v<Type> && requires(Type value) { names_of(value); };

inline std::string_view view(cofferdam_string text) { return {text.data ? text.data : "", text.length}; }
inline std::string owned(cofferdam_string text) { return std::string(view(text)); }

// Copies a string to memory that outlives the C++ objects of a call.
inline cofferdam_string copied(std::string_view text) { return cofferdam_string_copy(text.data(), text.size()); }

// Writes the members of a schema into an open object.
template <class Type> void add_schema(cofferdam_writer &json, bool or_null = false) { codec<Type>::schema(json, or_null); }

inline void add_type(cofferdam_writer &json, const char *type, bool or_null) {
    if (!or_null) return cofferdam_add_text(&json, "type", type);
    cofferdam_begin_array(&json, "type");
    cofferdam_add_text(&json, nullptr, type);
    cofferdam_add_text(&json, nullptr, "null");
    cofferdam_end(&json);
}

template <> struct codec<bool> {
    static void schema(cofferdam_writer &json, bool or_null) { add_type(json, "boolean", or_null); }
    static bool read(const cofferdam_value *value, bool &to) { return cofferdam_read_boolean(value, &to); }
    static void write(cofferdam_writer &json, const char *name, bool value) { cofferdam_add_boolean(&json, name, value); }
};

// Integers of at most 64 bits. The schema contains the range of a smaller one.
template <std::integral Type>
    requires(!std::same_as<Type, bool> && !(std::unsigned_integral<Type> && sizeof(Type) == 8))
struct codec<Type> {
    using range = std::numeric_limits<Type>;
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "integer", or_null);
        if constexpr (sizeof(Type) < 8) {
            cofferdam_add_integer(&json, "minimum", range::min());
            cofferdam_add_integer(&json, "maximum", range::max());
        } else cofferdam_add_text(&json, "format", "int64");
    }
    static bool read(const cofferdam_value *value, Type &to) {
        std::int64_t integer = 0;
        if (!cofferdam_read_integer(value, &integer) || !std::in_range<Type>(integer)) return false;
        to = static_cast<Type>(integer);
        return true;
    }
    static void write(cofferdam_writer &json, const char *name, Type value) { cofferdam_add_integer(&json, name, value); }
};

template <std::floating_point Type> struct codec<Type> {
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "number", or_null);
        if constexpr (sizeof(Type) < sizeof(double)) cofferdam_add_text(&json, "format", "float");
    }
    static bool read(const cofferdam_value *value, Type &to) {
        double number = 0;
        // Converting a number beyond the range of the type is undefined behavior.
        if (!cofferdam_read_number(value, &number) || std::abs(number) > std::numeric_limits<Type>::max()) return false;
        to = static_cast<Type>(number);
        return true;
    }
    static void write(cofferdam_writer &json, const char *name, Type value) { cofferdam_add_number(&json, name, value); }
};

template <> struct codec<std::string> {
    static void schema(cofferdam_writer &json, bool or_null) { add_type(json, "string", or_null); }
    static bool read(const cofferdam_value *value, std::string &to) {
        cofferdam_string text = cofferdam_text_of(value);
        if (text.data) to.assign(text.data, text.length);
        return text.data;
    }
    static void write(cofferdam_writer &json, const char *name, const std::string &value) {
        cofferdam_add_string(&json, name, {value.data(), value.size()});
    }
};

template <chosen Type> struct codec<Type> {
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "string", or_null);
        cofferdam_begin_array(&json, "enum");
        for (const auto &[value, name] : names_of(Type{})) cofferdam_add_text(&json, nullptr, name);
        if (or_null) cofferdam_add_null(&json, nullptr);
        cofferdam_end(&json);
    }
    static bool read(const cofferdam_value *value, Type &to) {
        for (const auto &[choice, name] : names_of(Type{})) {
            if (!cofferdam_equals(cofferdam_text_of(value), name)) continue;
            to = choice;
            return true;
        }
        return false;
    }
    static void write(cofferdam_writer &json, const char *name, Type value) {
        for (const auto &[choice, text] : names_of(Type{}))
            if (choice == value) return cofferdam_add_text(&json, name, text);
        cofferdam_add_null(&json, name);
    }
};

template <class Type> struct codec<std::optional<Type>> {
    static void schema(cofferdam_writer &json, bool) { add_schema<Type>(json, true); }
    static bool read(const cofferdam_value *value, std::optional<Type> &to) {
        if (cofferdam_is_null(value)) return true;
        return codec<Type>::read(value, to.emplace());
    }
    static void write(cofferdam_writer &json, const char *name, const std::optional<Type> &value) {
        if (value) codec<Type>::write(json, name, *value);
        else cofferdam_add_null(&json, name);
    }
};

template <class Type> struct codec<std::vector<Type>> {
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "array", or_null);
        cofferdam_begin_object(&json, "items");
        add_schema<Type>(json);
        cofferdam_end(&json);
    }
    static bool read(const cofferdam_value *value, std::vector<Type> &to) {
        if (cofferdam_type_of(value) != COFFERDAM_ARRAY) return false;
        to.clear();
        for (const cofferdam_value *item = cofferdam_first(value); item; item = cofferdam_next(item)) {
            Type read{};
            if (!codec<Type>::read(item, read)) return false;
            to.push_back(std::move(read));
        }
        return true;
    }
    static void write(cofferdam_writer &json, const char *name, const std::vector<Type> &value) {
        cofferdam_begin_array(&json, name);
        for (const auto &item : value) codec<Type>::write(json, nullptr, item);
        cofferdam_end(&json);
    }
};

template <class Type> struct codec<std::map<std::string, Type>> {
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "object", or_null);
        cofferdam_begin_object(&json, "additionalProperties");
        add_schema<Type>(json);
        cofferdam_end(&json);
    }
    static bool read(const cofferdam_value *value, std::map<std::string, Type> &to) {
        if (cofferdam_type_of(value) != COFFERDAM_OBJECT) return false;
        to.clear();
        for (const cofferdam_value *member = cofferdam_first(value); member; member = cofferdam_next(member)) {
            Type read{};
            if (!codec<Type>::read(member, read)) return false;
            to.insert_or_assign(owned(cofferdam_name_of(member)), std::move(read));
        }
        return true;
    }
    static void write(cofferdam_writer &json, const char *name, const std::map<std::string, Type> &value) {
        cofferdam_begin_object(&json, name);
        for (const auto &[key, item] : value) {
            cofferdam_add_name(&json, {key.data(), key.size()});
            codec<Type>::write(json, nullptr, item);
        }
        cofferdam_end(&json);
    }
};

template <> struct codec<json> {
    static void schema(cofferdam_writer &, bool) {}
    static bool read(const cofferdam_value *value, json &to) {
        cofferdam_writer text = {};
        cofferdam_add_value(&text, nullptr, value);
        to.text = owned(cofferdam_written(&text));
        return true;
    }
    static void write(cofferdam_writer &to, const char *name, const json &value) {
        // Invalid JSON becomes null, because the host would reject the result.
        cofferdam_add_value(&to, name, cofferdam_parse({value.text.data(), value.text.size()}, nullptr));
    }
};

template <class Type> inline constexpr bool is_optional = false;
template <class Type> inline constexpr bool is_optional<std::optional<Type>> = true;

// A struct with `static auto fields()`.
template <described Type> struct codec<Type> {
    template <class Visit> static void each(Visit visit) {
        std::apply([&](const auto &...field) { (visit(field), ...); }, Type::fields());
    }
    template <class Member> static void property(cofferdam_writer &json, const field_of<Type, Member> &field) {
        cofferdam_begin_object(&json, field.name);
        add_schema<Member>(json);
        cofferdam_add_text(&json, "description", field.description);
        if (field.has_default) codec<Member>::write(json, "default", Type{}.*field.member);
        cofferdam_end(&json);
    }
    static void schema(cofferdam_writer &json, bool or_null) {
        add_type(json, "object", or_null);
        cofferdam_begin_object(&json, "properties");
        each([&](const auto &field) { property(json, field); });
        cofferdam_end(&json);
        cofferdam_begin_array(&json, "required");
        each([&]<class Member>(const field_of<Type, Member> &field) {
            if (!field.has_default && !is_optional<Member>) cofferdam_add_text(&json, nullptr, field.name);
        });
        cofferdam_end(&json);
    }
    // Sets `*wrong`, unless it is null, to the first member of the outermost level that does not
    // match.
    static bool read(const cofferdam_value *value, Type &to, const char **wrong = nullptr) {
        bool fits = cofferdam_type_of(value) == COFFERDAM_OBJECT;
        each([&]<class Member>(const field_of<Type, Member> &field) {
            const cofferdam_value *member = cofferdam_member(value, field.name);
            if (!fits || (field.has_default && cofferdam_is_null(member))) return;
            fits = codec<Member>::read(member, to.*field.member);
            if (!fits && wrong) *wrong = field.name;
        });
        return fits;
    }
    static void write(cofferdam_writer &json, const char *name, const Type &value) {
        cofferdam_begin_object(&json, name);
        each([&]<class Member>(const field_of<Type, Member> &field) {
            codec<Member>::write(json, field.name, value.*field.member);
        });
        cofferdam_end(&json);
    }
};

} // namespace detail

// Parses a value from JSON. Returns nothing if the string is not JSON or does not match.
template <class Type> std::optional<Type> from_json(std::string_view text) {
    const cofferdam_value *value = cofferdam_parse({text.data(), text.size()}, nullptr);
    Type read{};
    if (!value || !detail::codec<Type>::read(value, read)) return std::nullopt;
    return read;
}

// Serializes a value as JSON. Returns nothing if it is nested too deeply.
template <class Type> std::optional<json> to_json(const Type &value) {
    cofferdam_writer writer = {};
    detail::codec<Type>::write(writer, nullptr, value);
    cofferdam_string text = cofferdam_written(&writer);
    if (!text.data) return std::nullopt;
    return json{detail::owned(text)};
}

} // namespace cofferdam

#endif
