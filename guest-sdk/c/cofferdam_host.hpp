// What a tool in C++ can ask of the host: its call, its caller, files, secrets and other tools. A component imports what is used
// and nothing else.

#ifndef COFFERDAM_HOST_HPP
#define COFFERDAM_HOST_HPP

#include "cofferdam.hpp"

#include <chrono>
#include <limits>

namespace cofferdam {

// Why there is no answer, file, secret or result of another tool. `code` tells which it is; as a failure of the tool it has words.
struct error {
    cofferdam_error_code code;
    std::string text;
    std::optional<cofferdam::failure> failure;

    operator cofferdam::failure() const { return *failure; }
};

// What was asked for, or why it is not there. `return std::unexpected(error)` passes the error on as a failure.
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

// A text of C++ as one of C, without a copy.
inline cofferdam_string lent(std::string_view text) { return {text.data() ? text.data() : "", text.size()}; }
inline cofferdam_string lent_if(const std::optional<std::string> &text) {
    return text ? lent(std::string_view(*text)) : cofferdam_string{nullptr, 0};
}

} // namespace detail

// The call that is being served.
namespace call {

// The id of the call, unique within its session; empty if there is none.
inline std::string id() { return detail::owned(cofferdam_call_id()); }

// The session that the call belongs to, if it belongs to one.
inline std::optional<std::string> session() {
    cofferdam_string session = cofferdam_call_session();
    if (!session.data) return std::nullopt;
    return detail::owned(session);
}

// How long the tool may go on before the host ends the call as timed out.
inline std::chrono::milliseconds time_left() {
    using ms = std::chrono::milliseconds;
    std::uint64_t left = cofferdam_time_left_ms();
    return left > std::uint64_t(ms::max().count()) ? ms::max() : ms(left);
}

// Whether the caller has given up. The host stops a cancelled call by itself, soon; a tool that asks can stop sooner.
inline bool cancelled() { return cofferdam_cancelled(); }

// Says how far the call has come, in a unit of the tool's own. `done` should not fall. The host may leave reports out.
inline void progress(double done, std::optional<double> total = {}, const std::optional<std::string> &message = {}) {
    cofferdam_progress(done, total.value_or(0), detail::lent_if(message));
}

} // namespace call

// The one who made the call. See cofferdam.h for what holds of questions.
namespace client {

// Says something to the client, which may show it to a person. Needs no grant.
inline void log(cofferdam_level level, const std::string &message) { cofferdam_log(level, "%s", message.c_str()); }

// Whether questions of this kind are granted and the client can answer them. Many clients can be asked nothing.
inline bool can_ask(cofferdam_question_kind kind) { return cofferdam_can_ask(kind); }

struct question {
    cofferdam_question_kind kind;
    std::optional<std::string> name;
    std::string message;
    json parameters;

    // Asks a person to fill in a form. `schema`: an object of texts, numbers, truth values and choices of texts.
    static question form(std::string message, json schema) {
        return {COFFERDAM_FORM, {}, std::move(message), std::move(schema)};
    }
    // Asks the client's model: the parameters of MCP's `sampling/createMessage`.
    static question sample(json parameters) { return {COFFERDAM_SAMPLE, {}, "", std::move(parameters)}; }
    // Asks where the client works.
    static question roots() { return {COFFERDAM_ROOTS, {}, "", {}}; }
};

struct root {
    std::string uri;
    std::optional<std::string> name;
};

// It comes from outside and nothing has checked it: `from_json<T>(answer.value.text)` reads it.
struct answer {
    cofferdam_answer_kind kind;
    json value;
    std::vector<root> roots;
};

// Asks several questions at once; a call may ask 64 in all. The call may be run again from its beginning: act after the last.
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

// The file stores that were granted; the store `data` is also the directory `/data` for std::fopen. Paths are relative to their
// store, with `/` between segments. The changes of a call become visible together when the tool has succeeded.
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
    std::uint64_t number; // counted from 1
    std::string text;
};

struct match {
    std::string path;
    std::string snippet;
    std::vector<line> lines;
};

struct matches {
    std::vector<match> items; // bytewise by path
    bool is_truncated;
};

// What to search for.
struct query {
    std::string pattern; // in the syntax of the Rust `regex` crate, at most 256 characters, matched per line
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

// What is at a path.
inline asked<cofferdam_stat> stat(std::string_view store, std::string_view path) {
    cofferdam_stat stat;
    cofferdam_error error = cofferdam_files_stat(detail::lent(store), detail::lent(path), &stat);
    if (error.code) return detail::refused(error);
    return stat;
}

// Reads at most `length` bytes from `offset`. Fewer come back only at the end of the file.
inline asked<std::string> read(std::string_view store, std::string_view path, std::uint64_t offset, std::uint64_t length) {
    cofferdam_bytes content;
    cofferdam_error error = cofferdam_files_read(detail::lent(store), detail::lent(path), offset, length, &content);
    if (error.code) return detail::refused(error);
    return std::string(reinterpret_cast<const char *>(content.data), content.length);
}

// Writes a whole new file and creates missing parent directories.
inline asked<void> create(std::string_view store, std::string_view path, std::string_view content) {
    return detail::done(cofferdam_files_create(detail::lent(store), detail::lent(path), content.data(), content.size()));
}

// The same, and replaces the whole content of a file that is there.
inline asked<void> write(std::string_view store, std::string_view path, std::string_view content) {
    return detail::done(cofferdam_files_write(detail::lent(store), detail::lent(path), content.data(), content.size()));
}

// Deletes a file.
inline asked<void> remove(std::string_view store, std::string_view path) {
    return detail::done(cofferdam_files_delete(detail::lent(store), detail::lent(path)));
}

// Creates a directory and missing parents.
inline asked<void> create_directory(std::string_view store, std::string_view path) {
    return detail::done(cofferdam_files_create_directory(detail::lent(store), detail::lent(path)));
}

// The children of a directory: directories first, then files, each bytewise by name. A missing directory has none.
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

// Searches the files below a directory at the host's speed. Files that are not UTF-8 are passed over.
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

// Secrets that were granted by name. A request that only carries a secret does not need this.
namespace secrets {

inline asked<std::string> get(std::string_view name) {
    cofferdam_string value;
    cofferdam_error error = cofferdam_secret(detail::lent(name), &value);
    if (error.code) return detail::refused(error);
    return detail::owned(value);
}

} // namespace secrets

// Other tools that were granted. What such a tool changes in files belongs to this call.
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
