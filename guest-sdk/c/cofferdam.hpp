// Write tools for Cofferdam in C++: functions in, one WebAssembly component out. For -std=c++23 and
// later.
//
//     #include "cofferdam.hpp"
//
//     struct greeting {
//         std::string name;
//         std::int64_t year = 2027;
//
//         static auto fields() {
//             return cofferdam::fields(
//                 cofferdam::field("name", &greeting::name, "Name of the person to greet."),
//                 cofferdam::defaulted("year", &greeting::year, "The year that begins."));
//         }
//     };
//
//     cofferdam::result<std::string> greet(const greeting &greeting) {
//         if (greeting.name.empty()) return cofferdam::fail("the name is empty").suggest("pass a name");
//         return "A happy " + std::to_string(greeting.year) + ", " + greeting.name + "!";
//     }
//
//     COFFERDAM_PLUGIN(cofferdam::tool<greet>("greet", "Greets a person.").read_only())
//
// A parameter is a field of one of these types: std::string, bool, integers, float and double,
// std::optional, std::vector and std::map<std::string, …> of them, enums with `names_of`, structs
// with `fields`, and cofferdam::json for any value. They determine the schema by which the host
// checks and converts the model's arguments before the tool runs.
//
// A function returns void (null), a std::string, any type that can be a parameter (a JSON value), a
// cofferdam::content or a vector of them, or a cofferdam::result of one of these, which can also be
// a failure. The C++ library of the tested toolchains has no exceptions: `abort`, a failed `assert`
// and `.at(…)` with a missing index or key end the call, and then the model sees only
// `Trap.Unreachable`.

#ifndef COFFERDAM_HPP
#define COFFERDAM_HPP

#include "cofferdam.h"
#include "cofferdam_codec.hpp"

#include <expected>

namespace cofferdam {

// Failure of a tool. The message lets a model correct itself: what was expected and what was found,
// in lower case, without a full stop.
struct failure {
    std::string message;
    // Advice for the model's next attempt: "pass …", "call …".
    std::optional<std::string> suggestion = {};
    // True if a retry may help, for the host; empty if unknown.
    std::optional<bool> is_transient = {};
    // An error value that the model sees instead of message and suggestion.
    std::optional<json> value = {};
};

// Value or failure of a tool.
template <class Type> using result = std::expected<Type, failure>;

// Builder for a failure. Return it from a function whose type is a `result`.
class [[nodiscard]] fail {
  public:
    explicit fail(std::string message) : failure_{std::move(message)} {}
    // Creates a failure with an error value that the model sees instead of a message.
    template <class Type> static fail with(const Type &value) {
        fail made("");
        made.failure_.value = to_json(value);
        return made;
    }
    fail &&suggest(std::string suggestion) && {
        failure_.suggestion = std::move(suggestion);
        return std::move(*this);
    }
    fail &&transient(bool is = true) && {
        failure_.is_transient = is;
        return std::move(*this);
    }
    template <class Type> operator std::expected<Type, failure>() && { return std::unexpected(std::move(failure_)); }

  private:
    failure failure_;
};

using bytes = std::vector<std::uint8_t>;

// One item of a result.
struct content {
    cofferdam_content_type type = COFFERDAM_CONTENT_TEXT;
    std::string text = {};
    cofferdam::bytes data = {};
    std::string uri = {};
    std::string name = {};
    std::optional<std::string> media_type = {};

    static content of_text(std::string text) { return {.type = COFFERDAM_CONTENT_TEXT, .text = std::move(text)}; }
    static content of_json(json value) { return {.type = COFFERDAM_CONTENT_JSON, .text = std::move(value.text)}; }
    static content blob(std::string media_type, cofferdam::bytes data) {
        return {.type = COFFERDAM_CONTENT_BLOB, .data = std::move(data), .media_type = std::move(media_type)};
    }
    // Creates a resource with its content.
    static content resource(std::string uri, std::optional<std::string> media_type, std::string text) {
        return {.type = COFFERDAM_CONTENT_RESOURCE_TEXT,
                .text = std::move(text),
                .uri = std::move(uri),
                .media_type = std::move(media_type)};
    }
    static content resource(std::string uri, std::optional<std::string> media_type, cofferdam::bytes data) {
        return {.type = COFFERDAM_CONTENT_RESOURCE_BLOB,
                .data = std::move(data),
                .uri = std::move(uri),
                .media_type = std::move(media_type)};
    }
    // Creates the address of a resource that can be read separately.
    static content link(std::string uri, std::string name, std::optional<std::string> media_type = {}) {
        return {.type = COFFERDAM_CONTENT_LINK,
                .uri = std::move(uri),
                .name = std::move(name),
                .media_type = std::move(media_type)};
    }
};

namespace detail {

inline cofferdam_string copied(const std::optional<std::string> &text) {
    return text ? copied(std::string_view(*text)) : cofferdam_string{nullptr, 0};
}

inline cofferdam_content lowered(const content &content) {
    cofferdam_string data = copied(std::string_view(reinterpret_cast<const char *>(content.data.data()), content.data.size()));
    return {
        .type = content.type,
        .text = copied(std::string_view(content.text)),
        .data = {reinterpret_cast<const std::uint8_t *>(data.data), data.length},
        .uri = copied(std::string_view(content.uri)),
        .name = copied(std::string_view(content.name)),
        .media_type = copied(content.media_type),
    };
}

inline content lifted(const cofferdam_content &given) {
    content made{given.type, owned(given.text), {}, owned(given.uri), owned(given.name), {}};
    if (given.data.length) made.data.assign(given.data.data, given.data.data + given.data.length);
    if (given.media_type.data) made.media_type = owned(given.media_type);
    return made;
}

inline cofferdam_result lowered(const failure &failure) {
    auto *made = static_cast<cofferdam_failure *>(cofferdam_allocate(sizeof(cofferdam_failure)));
    made->message = copied(std::string_view(failure.message));
    made->suggestion = copied(failure.suggestion);
    if (failure.value) made->value = copied(std::string_view(failure.value->text));
    if (failure.is_transient) made->transience = *failure.is_transient ? COFFERDAM_TRANSIENT : COFFERDAM_PERMANENT;
    return {nullptr, 0, made};
}

template <class Type> inline constexpr bool is_result = false;
template <class Type> inline constexpr bool is_result<result<Type>> = true;

template <class Type> cofferdam_result returned(const Type &value) {
    if constexpr (is_result<Type>) {
        if (!value) return lowered(value.error());
        if constexpr (std::is_void_v<typename Type::value_type>) return cofferdam_nothing();
        else return returned(*value);
    } else if constexpr (std::same_as<Type, content>) {
        cofferdam_content one = lowered(value);
        return cofferdam_several(1, &one);
    } else if constexpr (std::same_as<Type, std::vector<content>>) {
        std::vector<cofferdam_content> all;
        for (const content &item : value) all.push_back(lowered(item));
        return cofferdam_several(all.size(), all.data());
    } else if constexpr (std::convertible_to<Type, std::string_view>) {
        return cofferdam_text(copied(std::string_view(value)));
    } else {
        cofferdam_writer json = {};
        codec<Type>::write(json, nullptr, value);
        return cofferdam_json(&json);
    }
}

// Parameter and result types of a tool's function.
template <class Function> struct signature;
template <class Result, class Arguments> struct signature<Result (*)(const Arguments &)> {
    using result = Result;
    using arguments = Arguments;
};
template <class Result> struct signature<Result (*)()> {
    using result = Result;
    struct arguments {
        static auto fields() { return cofferdam::fields(); }
    };
};

// Type whose schema a tool with an output schema publishes.
template <class Type> struct output {
    using type = Type;
};
template <class Type> struct output<result<Type>> {
    using type = Type;
};

template <class Type> cofferdam_string schema_of() {
    cofferdam_writer json = {};
    cofferdam_begin_object(&json, nullptr);
    add_schema<Type>(json);
    return cofferdam_written(&json);
}

template <auto function> cofferdam_result start(const void *given) {
    using parts = signature<decltype(function)>;
    typename parts::arguments arguments{};
    const char *wrong = "";
    if (!codec<typename parts::arguments>::read(static_cast<const cofferdam_value *>(given), arguments, &wrong))
        return cofferdam_fail("Argument '%s' is missing or does not fit its schema.", wrong);
    auto run = [&] {
        if constexpr (std::invocable<decltype(function)>) return function();
        else return function(arguments);
    };
    if constexpr (std::is_void_v<typename parts::result>) {
        run();
        return cofferdam_nothing();
    } else {
        return returned(run());
    }
}

// Tool with its hints, made by `cofferdam::tool`.
template <auto function> class tool : public cofferdam_tool {
  public:
    constexpr tool(const char *name, const char *description) : cofferdam_tool{} {
        this->name = name;
        this->description = description;
        this->make_input_schema = schema_of<typename signature<decltype(function)>::arguments>;
        this->start = detail::start<function>;
    }
    // Sets a display name for users.
    constexpr tool title(const char *title) const { return with([&](auto &hints) { hints.title = title; }); }
    // Puts the tool in a group of this name: 1 to 64 characters from `A-Z a-z 0-9 _ . -`.
    constexpr tool group(const char *group) const { return with([&](auto &hints) { hints.group = group; }); }
    // Hint: the tool changes nothing.
    constexpr tool read_only(bool is = true) const { return with([&](auto &hints) { hints.read_only = says(is); }); }
    // Hint: the tool may delete, overwrite or send something.
    constexpr tool destructive(bool is = true) const { return with([&](auto &hints) { hints.destructive = says(is); }); }
    // Hint: a second call has no further effect.
    constexpr tool idempotent(bool is = true) const { return with([&](auto &hints) { hints.idempotent = says(is); }); }
    // Hint: the tool accesses systems outside the host.
    constexpr tool open_world(bool is = true) const { return with([&](auto &hints) { hints.open_world = says(is); }); }
    // Hint: the tool may take minutes.
    constexpr tool long_running(bool is = true) const { return with([&](auto &hints) { hints.long_running = says(is); }); }
    // Publishes the schema of the function's result. The host checks each result against it.
    constexpr tool output_schema() const {
        using type = typename output<typename signature<decltype(function)>::result>::type;
        return with([](auto &hints) { hints.make_output_schema = schema_of<type>; });
    }

  private:
    static constexpr cofferdam_says says(bool is) { return is ? COFFERDAM_SAYS_YES_ : COFFERDAM_SAYS_NO_; }
    template <class Change> constexpr tool with(Change change) const {
        tool changed = *this;
        change(changed.hints);
        return changed;
    }
};

template <class... Tool> const cofferdam_tool *const *listed(const Tool &...tool) {
    static const std::array<cofferdam_tool, sizeof...(Tool)> tools{tool...};
    static const auto addresses = [] {
        std::array<const cofferdam_tool *, sizeof...(Tool) + 1> made{};
        for (std::size_t at = 0; at < tools.size(); at++) made[at] = &tools[at];
        return made;
    }();
    return addresses.data();
}

} // namespace detail

// Makes a tool of a function that takes a reference to a const struct, or nothing. The description
// is all that a model knows about the tool. Hints follow as method calls; a missing hint means
// unknown.
template <auto function> constexpr detail::tool<function> tool(const char *name, const char *description) {
    return {name, description};
}

} // namespace cofferdam

// Lists the tools of the plugin, at most 128. Use it once per plugin.
#define COFFERDAM_PLUGIN(...) \
    extern "C" const cofferdam_tool *const *cofferdam_tools(void) { return cofferdam::detail::listed(__VA_ARGS__); }

#include "cofferdam_host.hpp"

#endif
