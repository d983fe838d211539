// Write tools for Cofferdam in C++: functions in, one WebAssembly component out. For -std=c++23 and later.
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
// A parameter is a field of one of these types: std::string, bool, integers, float and double, std::optional, std::vector and
// std::map<std::string, …> of them, enums with `names_of`, structs with `fields`, and cofferdam::json for anything. The host
// checks and converts what a model sent by the schema that follows from them, before the tool runs.
//
// A function returns nothing (null), a text, any type that can be a parameter (a JSON value), a cofferdam::content or a vector
// of them, or a cofferdam::result of one of these, which may be a failure instead. There are no exceptions in the C++
// library of the tested toolchains: `abort`, a failed `assert` and a container that is told to `.at(…)` what it does not hold end
// the call, and all that the model learns then is `Trap.Unreachable`.

#ifndef COFFERDAM_HPP
#define COFFERDAM_HPP

#include "cofferdam.h"
#include "cofferdam_codec.hpp"

#include <expected>

namespace cofferdam {

// Why a tool could not do what was asked, in words that let a model correct itself: lower case, no full stop, what was
// expected and what was found.
struct failure {
    std::string message;
    // What the model could do instead: "pass …", "call …".
    std::optional<std::string> suggestion = {};
    // Whether trying again may help, for the host; nothing if that is not known.
    std::optional<bool> is_transient = {};
    // An error value that the model sees instead of message and suggestion.
    std::optional<json> value = {};
};

// What a tool gives, or why it does not.
template <class Type> using result = std::expected<Type, failure>;

// A failure that is being made: return it from a function that gives a `result`.
class [[nodiscard]] fail {
  public:
    explicit fail(std::string message) : failure_{std::move(message)} {}
    // With a value of your own, which the model sees instead of a message.
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

// Bytes.
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
    // Something that has an address, together with what it holds.
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
    // The address of something that can be read on its own.
    static content link(std::string uri, std::string name, std::optional<std::string> media_type = {}) {
        return {.type = COFFERDAM_CONTENT_LINK,
                .uri = std::move(uri),
                .name = std::move(name),
                .media_type = std::move(media_type)};
    }
};

namespace detail {

inline cofferdam_string kept(const std::optional<std::string> &text) {
    return text ? kept(std::string_view(*text)) : cofferdam_string{nullptr, 0};
}

inline cofferdam_content lowered(const content &content) {
    cofferdam_string data = kept(std::string_view(reinterpret_cast<const char *>(content.data.data()), content.data.size()));
    return {
        .type = content.type,
        .text = kept(std::string_view(content.text)),
        .data = {reinterpret_cast<const std::uint8_t *>(data.data), data.length},
        .uri = kept(std::string_view(content.uri)),
        .name = kept(std::string_view(content.name)),
        .media_type = kept(content.media_type),
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
    made->message = kept(std::string_view(failure.message));
    made->suggestion = kept(failure.suggestion);
    if (failure.value) made->value = kept(std::string_view(failure.value->text));
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
        return cofferdam_text(kept(std::string_view(value)));
    } else {
        cofferdam_writer json = {};
        codec<Type>::write(json, nullptr, value);
        return cofferdam_json(&json);
    }
}

// What a tool's function takes and gives.
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

// The type whose schema a tool with an output schema publishes.
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

// A tool and its hints. Made by `cofferdam::tool`.
template <auto function> class tool : public cofferdam_tool {
  public:
    constexpr tool(const char *name, const char *description) : cofferdam_tool{} {
        this->name = name;
        this->description = description;
        this->make_input_schema = schema_of<typename signature<decltype(function)>::arguments>;
        this->start = detail::start<function>;
    }
    // A short name for people.
    constexpr tool title(const char *title) const { return with([&](auto &hints) { hints.title = title; }); }
    // Changes nothing.
    constexpr tool read_only(bool is = true) const { return with([&](auto &hints) { hints.read_only = says(is); }); }
    // May delete, overwrite, send.
    constexpr tool destructive(bool is = true) const { return with([&](auto &hints) { hints.destructive = says(is); }); }
    // A second call changes nothing more.
    constexpr tool idempotent(bool is = true) const { return with([&](auto &hints) { hints.idempotent = says(is); }); }
    // Reaches things outside of the host.
    constexpr tool open_world(bool is = true) const { return with([&](auto &hints) { hints.open_world = says(is); }); }
    // May take minutes.
    constexpr tool long_running(bool is = true) const { return with([&](auto &hints) { hints.long_running = says(is); }); }
    // Publishes the schema of what the function returns. The host checks each result against it.
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

// A tool that runs a function of one struct, by reference to const, or of nothing. The description is all that a model knows of
// it. Hints follow with dots; not to give one means that it is not known.
template <auto function> constexpr detail::tool<function> tool(const char *name, const char *description) {
    return {name, description};
}

} // namespace cofferdam

// Stands once in a plugin and names its tools, at most 128.
#define COFFERDAM_PLUGIN(...) \
    extern "C" const cofferdam_tool *const *cofferdam_tools(void) { return cofferdam::detail::listed(__VA_ARGS__); }

#include "cofferdam_host.hpp"

#endif
