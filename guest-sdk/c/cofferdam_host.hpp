// Functions of the host for tools in C++: the call, the caller, files, secrets and other tools. A
// component imports only what it uses.

#ifndef COFFERDAM_HOST_HPP
#define COFFERDAM_HOST_HPP

#include "cofferdam.hpp"

#include <chrono>
#include <limits>

namespace cofferdam {

// Error of a question, a file operation, a secret or another tool, identified by `code`. It
// converts to a failure with a message.
struct error {
    cofferdam_error_code code;
    std::string text;
    std::optional<cofferdam::failure> failure;

    operator cofferdam::failure() const { return *failure; }
};

// Result of a function of the host. `return std::unexpected(error)` passes an error on as a
// failure.
template <class Type> using asked = std::expected<Type, error>;

namespace detail {

inline failure lifted(const cofferdam_failure &given) {
    failure made{owned(given.message)};
    if (given.suggestion.data) made.suggestion = owned(given.suggestion);
    if (given.value.data) made.value = json{owned(given.value)};
    if (given.transience != COFFERDAM_UNKNOWN) made.is_transient = given.transience == COFFERDAM_TRANSIENT;
    return made;
}

inline std::unexpected<error> refused(const cofferdam_error &given) {
    return std::unexpected(error{given.code, owned(given.text), lifted(*cofferdam_fail_for(given).failure)});
}

inline asked<void> done(cofferdam_error error) {
    if (error.code) return refused(error);
    return {};
}

// Borrows a C++ string as a C string, without a copy.
inline cofferdam_string lent(std::string_view text) { return {text.data() ? text.data() : "", text.size()}; }
inline cofferdam_string lent_if(const std::optional<std::string> &text) {
    return text ? lent(std::string_view(*text)) : cofferdam_string{nullptr, 0};
}

} // namespace detail

// The current call.
namespace call {

// Returns the id of the call, unique within its session. Empty outside a call.
inline std::string id() { return detail::owned(cofferdam_call_id()); }

// Returns the session of the call, if there is one.
inline std::optional<std::string> session() {
    cofferdam_string session = cofferdam_call_session();
    if (!session.data) return std::nullopt;
    return detail::owned(session);
}

// Returns the time until the host stops the call with a timeout.
inline std::chrono::milliseconds time_left() {
    using ms = std::chrono::milliseconds;
    std::uint64_t left = cofferdam_time_left_ms();
    return left > std::uint64_t(ms::max().count()) ? ms::max() : ms(left);
}

// Returns whether the caller has canceled the call. The host soon stops a canceled call by itself;
// a tool that checks can stop sooner.
inline bool cancelled() { return cofferdam_cancelled(); }

// Reports progress in a unit that the tool chooses. `done` should not decrease. The host may drop
// reports.
inline void progress(double done, std::optional<double> total = {}, const std::optional<std::string> &message = {}) {
    cofferdam_progress(done, total.value_or(0), detail::lent_if(message));
}

} // namespace call

// The caller. cofferdam.h documents the rules for questions.
namespace client {

// Sends a log line to the client, which may show it to the user. Needs no grant.
inline void log(cofferdam_level level, const std::string &message) { cofferdam_log(level, "%s", message.c_str()); }

// Returns whether questions of this kind are granted and the client can answer them. Many clients
// cannot answer questions.
inline bool can_ask(cofferdam_question_kind kind) { return cofferdam_can_ask(kind); }

struct question {
    cofferdam_question_kind kind;
    std::optional<std::string> name;
    std::string message;
    json parameters;

    // Asks the user to fill in a form. `schema` describes an object of strings, numbers, booleans
    // and enums of strings.
    static question form(std::string message, json schema) {
        return {COFFERDAM_FORM, {}, std::move(message), std::move(schema)};
    }
    // Asks the client's model with the parameters of MCP's `sampling/createMessage`.
    static question sample(json parameters) { return {COFFERDAM_SAMPLE, {}, "", std::move(parameters)}; }
    // Asks for the locations in which the client works.
    static question roots() { return {COFFERDAM_ROOTS, {}, "", {}}; }
};

struct root {
    std::string uri;
    std::optional<std::string> name;
};

// Answer to a question. It is untrusted input that the host has not checked.
// `from_json<T>(answer.value.text)` parses it.
struct answer {
    cofferdam_answer_kind kind;
    json value;
    std::vector<root> roots;
};

// Asks several questions at once; a call may ask 64 in total. The host may run the call again from
// its beginning: cause side effects only after the last question.
inline asked<std::vector<answer>> ask(const std::vector<question> &questions) {
    std::vector<cofferdam_question> lowered;
    for (const question &one : questions)
        lowered.push_back({one.kind, detail::lent_if(one.name), detail::lent(one.message), detail::lent(one.parameters.text)});
    std::vector<cofferdam_answer> given(questions.size());
    cofferdam_error error = cofferdam_ask(lowered.size(), lowered.data(), given.data());
    if (error.code) return detail::refused(error);
    std::vector<answer> answers;
    for (const cofferdam_answer &one : given) {
        answer &made = answers.emplace_back(answer{one.kind, {}, {}});
        if (one.json.data) made.value.text = detail::owned(one.json);
        for (std::size_t at = 0; at < one.root_count; at++) {
            root &root = made.roots.emplace_back(detail::owned(one.roots[at].uri), std::nullopt);
            if (one.roots[at].name.data) root.name = detail::owned(one.roots[at].name);
        }
    }
    return answers;
}

} // namespace client

// The granted file stores. For std::fopen, the store `data` is the directory `/data`. Paths are
// relative to their store, with `/` between segments. The changes of a call become visible together
// when the tool has succeeded.
namespace files {

struct store {
    std::string name;
    bool is_writable;
};

struct entry {
    std::string name; // in a recursive listing the path relative to the listed directory
    bool is_directory;
};

struct line {
    std::uint64_t number; // from 1
    std::string text;
};

struct match {
    std::string path;
    std::string snippet;
    std::vector<line> lines;
};

struct matches {
    std::vector<match> items; // sorted bytewise by path
    bool is_truncated;
};

// Parameters of a search.
struct query {
    std::string pattern; // syntax of the Rust `regex` crate, at most 256 characters, per line
    std::optional<std::string> glob = {};
    bool ignores_case = false;
    bool is_recursive = true;
};

inline std::vector<store> stores() {
    cofferdam_stores given = cofferdam_files_stores();
    std::vector<store> made;
    for (std::size_t at = 0; at < given.count; at++)
        made.push_back({detail::owned(given.items[at].name), given.items[at].is_writable});
    return made;
}

// Returns the metadata of the entry at a path.
inline asked<cofferdam_stat> stat(std::string_view store, std::string_view path) {
    cofferdam_stat stat;
    cofferdam_error error = cofferdam_files_stat(detail::lent(store), detail::lent(path), &stat);
    if (error.code) return detail::refused(error);
    return stat;
}

// Reads at most `length` bytes from `offset`; fewer only at the end of the file.
inline asked<std::string> read(std::string_view store, std::string_view path, std::uint64_t offset, std::uint64_t length) {
    cofferdam_bytes content;
    cofferdam_error error = cofferdam_files_read(detail::lent(store), detail::lent(path), offset, length, &content);
    if (error.code) return detail::refused(error);
    return std::string(reinterpret_cast<const char *>(content.data), content.length);
}

// Writes a new file and creates missing parent directories.
inline asked<void> create(std::string_view store, std::string_view path, std::string_view content) {
    return detail::done(cofferdam_files_create(detail::lent(store), detail::lent(path), content.data(), content.size()));
}

// Writes a whole file, whether it exists or not, and creates missing parent directories.
inline asked<void> write(std::string_view store, std::string_view path, std::string_view content) {
    return detail::done(cofferdam_files_write(detail::lent(store), detail::lent(path), content.data(), content.size()));
}

// Deletes a file.
inline asked<void> remove(std::string_view store, std::string_view path) {
    return detail::done(cofferdam_files_delete(detail::lent(store), detail::lent(path)));
}

// Creates a directory and its missing parents.
inline asked<void> create_directory(std::string_view store, std::string_view path) {
    return detail::done(cofferdam_files_create_directory(detail::lent(store), detail::lent(path)));
}

// Lists a directory: directories first, then files, each sorted bytewise by name. A missing
// directory has no entries.
inline asked<std::vector<entry>> list(std::string_view store, std::string_view directory, bool is_recursive = false,
                                      const std::optional<std::string> &glob = {}) {
    cofferdam_entries given;
    cofferdam_error error =
        cofferdam_files_list(detail::lent(store), detail::lent(directory), detail::lent_if(glob), is_recursive, &given);
    if (error.code) return detail::refused(error);
    std::vector<entry> made;
    for (std::size_t at = 0; at < given.count; at++)
        made.push_back({detail::owned(given.items[at].name), given.items[at].is_directory});
    return made;
}

// Searches the files below a directory; the host runs the search. Files that are not UTF-8 are
// skipped.
inline asked<matches> search(std::string_view store, std::string_view directory, const query &query) {
    cofferdam_query asked{detail::lent(query.pattern), detail::lent_if(query.glob), query.ignores_case, query.is_recursive};
    cofferdam_matches given;
    cofferdam_error error = cofferdam_files_search(detail::lent(store), detail::lent(directory), asked, &given);
    if (error.code) return detail::refused(error);
    matches made{{}, given.is_truncated};
    for (std::size_t at = 0; at < given.count; at++) {
        const cofferdam_match &one = given.items[at];
        match &match = made.items.emplace_back(detail::owned(one.path), detail::owned(one.snippet), std::vector<line>{});
        for (std::size_t line = 0; line < one.line_count; line++)
            match.lines.push_back({one.lines[line].number, detail::owned(one.lines[line].text)});
    }
    return made;
}

} // namespace files

// Secrets that are granted by name. A tool that only sends a secret in a request does not need this
// function.
namespace secrets {

inline asked<std::string> get(std::string_view name) {
    cofferdam_string value;
    cofferdam_error error = cofferdam_secret(detail::lent(name), &value);
    if (error.code) return detail::refused(error);
    return detail::owned(value);
}

} // namespace secrets

// Other granted tools. Their file changes belong to this call.
namespace toolbox {

struct granted {
    std::string name;
    std::string description;
    json input_schema;
};

inline std::vector<granted> list() {
    cofferdam_granted_tools given = cofferdam_toolbox_list();
    std::vector<granted> made;
    for (std::size_t at = 0; at < given.count; at++)
        made.push_back({detail::owned(given.items[at].name), detail::owned(given.items[at].description),
                        json{detail::owned(given.items[at].input_schema)}});
    return made;
}

// Calls a tool with a JSON object and waits.
inline asked<std::vector<content>> call(std::string_view name, const json &arguments) {
    cofferdam_result given;
    cofferdam_error error = cofferdam_toolbox_call(detail::lent(name), detail::lent(arguments.text), &given);
    if (error.code) return detail::refused(error);
    std::vector<content> made;
    for (std::size_t at = 0; at < given.count; at++) made.push_back(detail::lifted(given.contents[at]));
    return made;
}

} // namespace toolbox

} // namespace cofferdam

#endif
