// The tools of ../README.md in C++.

#include "cofferdam_http.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

using cofferdam::content;
using cofferdam::defaulted;
using cofferdam::fail;
using cofferdam::field;
using cofferdam::result;

struct all_types {
    std::string text;
    bool flag;
    std::int64_t integer;
    double number;
    std::vector<std::string> list;
    std::map<std::string, std::int64_t> map;

    static auto fields() {
        return cofferdam::fields(field("text", &all_types::text, "A text."),
                                 field("flag", &all_types::flag, "A truth value."),
                                 field("integer", &all_types::integer, "An integer."),
                                 field("number", &all_types::number, "A number."),
                                 field("list", &all_types::list, "Some texts."),
                                 field("map", &all_types::map, "Integers by name."));
    }
};

all_types echo(const all_types &given) { return given; }

struct defaults {
    std::int64_t count = 3;
    std::string word = "abc";
    std::vector<std::string> tags = {"x", "y"};
    double ratio = 0.5;
    bool flag = true;

    static auto fields() {
        return cofferdam::fields(defaulted("count", &defaults::count, "How many."),
                                 defaulted("word", &defaults::word, "A word."),
                                 defaulted("tags", &defaults::tags, "Some tags."),
                                 defaulted("ratio", &defaults::ratio, "A ratio."),
                                 defaulted("flag", &defaults::flag, "A truth value."));
    }
};

defaults with_defaults(const defaults &given) { return given; }

struct nullables {
    std::optional<std::string> name;
    std::optional<std::int64_t> count;

    static auto fields() {
        return cofferdam::fields(field("name", &nullables::name, "A name."), field("count", &nullables::count, "How many."));
    }
};

nullables with_nullables(const nullables &given) { return given; }

enum class status { open, paid };
constexpr auto names_of(status) { return std::array{std::pair{status::open, "open"}, std::pair{status::paid, "paid"}}; }

struct customer {
    std::string name;
    std::optional<std::string> email;

    static auto fields() {
        return cofferdam::fields(field("name", &customer::name, "Who orders."), field("email", &customer::email, "Their address."));
    }
};

struct item {
    std::string sku;
    std::int64_t quantity = 1;

    static auto fields() {
        return cofferdam::fields(field("sku", &item::sku, "What is ordered."),
                                 defaulted("quantity", &item::quantity, "How many of it."));
    }
};

struct order {
    std::int64_t id;
    ::customer customer;
    std::vector<item> items;
    ::status status;

    static auto fields() {
        return cofferdam::fields(field("id", &order::id, "The number of the order."),
                                 field("customer", &order::customer, "Who orders."),
                                 field("items", &order::items, "What is ordered."),
                                 field("status", &order::status, "How far it is."));
    }
};

struct one_order {
    ::order order;

    static auto fields() { return cofferdam::fields(field("order", &one_order::order, "The order.")); }
};

struct summary {
    std::int64_t id;
    std::int64_t quantity;
    std::optional<std::string> first;
    std::string customer;
    std::optional<std::string> email;
    ::status status;

    static auto fields() {
        return cofferdam::fields(field("id", &summary::id, ""), field("quantity", &summary::quantity, ""),
                                 field("first", &summary::first, ""), field("customer", &summary::customer, ""),
                                 field("email", &summary::email, ""), field("status", &summary::status, ""));
    }
};

result<summary> nested(const one_order &given) {
    summary sum{given.order.id, 0, {}, given.order.customer.name, given.order.customer.email, given.order.status};
    for (const item &item : given.order.items)
        if (__builtin_add_overflow(sum.quantity, item.quantity, &sum.quantity)) return fail("the quantities are too large");
    if (!given.order.items.empty()) sum.first = given.order.items.front().sku;
    return sum;
}

enum class kind { plain, suggestion, transient, permanent, value, empty };
constexpr auto names_of(kind) {
    return std::array{std::pair{kind::plain, "plain"},         std::pair{kind::suggestion, "suggestion"},
                      std::pair{kind::transient, "transient"}, std::pair{kind::permanent, "permanent"},
                      std::pair{kind::value, "value"},         std::pair{kind::empty, "empty"}};
}

struct which {
    ::kind kind;

    static auto fields() { return cofferdam::fields(field("kind", &which::kind, "Which one.")); }
};

struct trouble {
    std::int64_t code;
    std::vector<std::optional<std::string>> detail;

    static auto fields() {
        return cofferdam::fields(field("code", &trouble::code, ""), field("detail", &trouble::detail, ""));
    }
};

result<void> report(const which &given) {
    switch (given.kind) {
    case kind::suggestion: return fail("it went wrong").suggest("try again tomorrow");
    case kind::transient: return fail("it went wrong").transient();
    case kind::permanent: return fail("it went wrong").transient(false);
    case kind::value: return fail::with(trouble{7, {"a", std::nullopt}});
    case kind::empty: return fail("");
    default: return fail("it went wrong");
    }
}

struct crash_arguments {
    std::string secret;

    static auto fields() {
        return cofferdam::fields(field("secret", &crash_arguments::secret, "Something to print at the end."));
    }
};

void crash(const crash_arguments &given) {
    std::fprintf(stderr, "the invariant does not hold: %s\n", given.secret.c_str());
    std::abort();
}

struct one_text {
    std::string text;

    static auto fields() { return cofferdam::fields(field("text", &one_text::text, "The text.")); }
};

struct looked_at {
    std::string text;
    std::int64_t characters;
    std::int64_t bytes;
    std::string reversed;

    static auto fields() {
        return cofferdam::fields(field("text", &looked_at::text, ""), field("characters", &looked_at::characters, ""),
                                 field("bytes", &looked_at::bytes, ""), field("reversed", &looked_at::reversed, ""));
    }
};

// Continuation bytes of UTF-8 begin with the bits 10.
bool begins(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

looked_at unicode(const one_text &given) {
    const std::string &text = given.text;
    std::string reversed;
    for (std::size_t end = text.size(); end > 0;) {
        std::size_t start = end - 1;
        while (start > 0 && !begins(text[start])) start--;
        reversed.append(text, start, end - start);
        end = start;
    }
    return {text, std::ranges::count_if(text, begins), std::int64_t(text.size()), reversed};
}

struct numbers {
    std::int64_t integer;
    double number;

    static auto fields() {
        return cofferdam::fields(field("integer", &numbers::integer, "An integer of 64 bits."),
                                 field("number", &numbers::number, "A number."));
    }
};

numbers big_numbers(const numbers &given) { return given; }

void nothing() {}

std::string word() { return "word"; }

struct blob_arguments {
    std::int64_t size;

    static auto fields() { return cofferdam::fields(field("size", &blob_arguments::size, "How many.")); }
};

result<content> blob(const blob_arguments &given) {
    if (given.size < 0 || given.size > 1 << 20)
        return fail("there are no " + std::to_string(given.size) + " bytes").suggest("pass 0 to 1048576");
    cofferdam::bytes bytes(static_cast<std::size_t>(given.size));
    std::uint8_t next = 0;
    for (std::uint8_t &byte : bytes) byte = next++;
    return content::blob("application/octet-stream", std::move(bytes));
}

std::vector<content> several() {
    return {content::of_text("one"), content::of_json({R"({"two":2})"}), content::blob("image/png", {137, 80, 78, 71}),
            content::resource("memo:three", "text/plain", "three"),
            content::link("https://example.com/four.csv", "four.csv", "text/csv")};
}

struct store_arguments {
    std::string store;
    std::string path;
    std::string text;

    static auto fields() {
        return cofferdam::fields(field("store", &store_arguments::store, "The name of the store."),
                                 field("path", &store_arguments::path, "The file to create."),
                                 field("text", &store_arguments::text, "What to write into it."));
    }
};

struct stored {
    std::string text;
    std::int64_t size;
    std::vector<std::string> files;
    std::vector<std::int64_t> lines;

    static auto fields() {
        return cofferdam::fields(field("text", &stored::text, ""), field("size", &stored::size, ""),
                                 field("files", &stored::files, ""), field("lines", &stored::lines, ""));
    }
};

result<stored> store(const store_arguments &given) {
    namespace files = cofferdam::files;
    if (auto done = files::create(given.store, given.path, given.text); !done) return std::unexpected(done.error());
    auto stat = files::stat(given.store, given.path);
    if (!stat) return std::unexpected(stat.error());
    auto text = files::read(given.store, given.path, 0, stat->size);
    if (!text) return std::unexpected(text.error());
    auto entries = files::list(given.store, "", true);
    if (!entries) return std::unexpected(entries.error());
    auto matches = files::search(given.store, "", {.pattern = "needle"});
    if (!matches) return std::unexpected(matches.error());

    stored stored{*text, std::int64_t(stat->size), {}, {}};
    for (const files::entry &entry : *entries) stored.files.push_back(entry.name);
    std::ranges::sort(stored.files);
    for (const files::match &match : matches->items)
        for (const files::line &line : match.lines)
            if (match.path == given.path) stored.lines.push_back(std::int64_t(line.number));
    return stored;
}

struct missing_arguments {
    std::string store;

    static auto fields() { return cofferdam::fields(field("store", &missing_arguments::store, "The name of the store.")); }
};

result<std::string> missing(const missing_arguments &given) {
    auto read = cofferdam::files::read(given.store, "nosuch.txt", 0, 4096);
    if (read) return "found";
    if (read.error().code == COFFERDAM_NOT_FOUND) return "not found";
    return std::unexpected(read.error());
}

struct local_arguments {
    std::string path;

    static auto fields() {
        return cofferdam::fields(field("path", &local_arguments::path, "The path, such as `/data/a.txt`."));
    }
};

result<std::string> local_file(const local_arguments &given) {
    // The C++ library has no file streams on WebAssembly.
    std::FILE *file = std::fopen(given.path.c_str(), "r");
    if (!file) return fail("`" + given.path + "` cannot be opened: " + std::strerror(errno));
    std::string text(65536, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file));
    bool is_read = !std::ferror(file);
    std::fclose(file);
    if (!is_read) return fail("`" + given.path + "` cannot be read");
    return text;
}

struct progress_arguments {
    std::uint16_t steps;

    static auto fields() { return cofferdam::fields(field("steps", &progress_arguments::steps, "How many steps.")); }
};

struct known {
    bool has_id;
    bool has_time_left;
    bool cancelled;

    static auto fields() {
        return cofferdam::fields(field("has_id", &known::has_id, ""), field("has_time_left", &known::has_time_left, ""),
                                 field("cancelled", &known::cancelled, ""));
    }
};

known progress(const progress_arguments &given) {
    for (int step = 1; step <= given.steps; step++) cofferdam::call::progress(step, given.steps, "step " + std::to_string(step));
    return {!cofferdam::call::id().empty(), cofferdam::call::time_left().count() > 0, cofferdam::call::cancelled()};
}

struct log_arguments {
    std::string message;

    static auto fields() { return cofferdam::fields(field("message", &log_arguments::message, "What to say.")); }
};

void say(const log_arguments &given) {
    cofferdam::client::log(COFFERDAM_WARNING, given.message);
    std::fprintf(stderr, "%s (printed)\n", given.message.c_str());
}

struct relay_arguments {
    std::string tool;
    std::map<std::string, cofferdam::json> arguments;

    static auto fields() {
        return cofferdam::fields(field("tool", &relay_arguments::tool, "The name of the tool."),
                                 field("arguments", &relay_arguments::arguments, "Its arguments."));
    }
};

result<std::vector<content>> relay(const relay_arguments &given) {
    auto arguments = cofferdam::to_json(given.arguments);
    if (!arguments) return fail("the arguments are nested too deeply");
    auto called = cofferdam::toolbox::call(given.tool, *arguments);
    if (called) return *called;
    if (called.error().code == COFFERDAM_UNKNOWN_TOOL) return fail("there is no tool `" + given.tool + "`");
    return std::unexpected(called.error());
}

struct secret_arguments {
    std::string name;

    static auto fields() { return cofferdam::fields(field("name", &secret_arguments::name, "The name of the secret.")); }
};

result<std::int64_t> secret(const secret_arguments &given) {
    auto value = cofferdam::secrets::get(given.name);
    if (!value) return std::unexpected(value.error());
    return std::ranges::count_if(*value, begins);
}

struct http_arguments {
    std::string url;
    std::string method = "GET";
    std::optional<std::map<std::string, std::string>> headers;
    std::optional<std::string> body;
    std::uint32_t send_bytes = 0;
    std::uint32_t timeout_ms = 0;
    bool follow = true;
    std::uint16_t count = 1;
    std::uint16_t parallel = 1;

    static auto fields() {
        return cofferdam::fields(field("url", &http_arguments::url, "The URL."),
                                 defaulted("method", &http_arguments::method, "The method."),
                                 field("headers", &http_arguments::headers, "Headers of the request."),
                                 field("body", &http_arguments::body, "The text to send."),
                                 defaulted("send_bytes", &http_arguments::send_bytes, "How many bytes to send instead, in chunks."),
                                 defaulted("timeout_ms", &http_arguments::timeout_ms, "The timeout in milliseconds; 0 for none."),
                                 defaulted("follow", &http_arguments::follow, "True to follow redirects."),
                                 defaulted("count", &http_arguments::count, "How many requests, one after the other."),
                                 defaulted("parallel", &http_arguments::parallel, "How many requests at once."));
    }
};

struct responded {
    std::int64_t status;
    std::string url;
    std::optional<std::string> type;
    std::int64_t bytes;
    std::string text;
    std::int64_t ok;

    static auto fields() {
        return cofferdam::fields(field("status", &responded::status, ""), field("url", &responded::url, ""),
                                 field("type", &responded::type, ""), field("bytes", &responded::bytes, ""),
                                 field("text", &responded::text, ""), field("ok", &responded::ok, ""));
    }
};

cofferdam::http::request request_of(const http_arguments &given) {
    cofferdam::http::request request{.method = given.method, .url = given.url};
    for (const auto &[name, value] : given.headers.value_or(std::map<std::string, std::string>{}))
        request.headers.push_back({name, value});
    request.timeout = std::chrono::milliseconds(given.timeout_ms);
    request.redirects_max = given.follow ? 10 : 0;
    if (!given.send_bytes) {
        request.body = given.body.value_or("");
        return request;
    }
    request.source = [left = std::size_t{given.send_bytes}](std::span<char> part) mutable {
        std::size_t length = std::min(left, part.size());
        std::fill_n(part.data(), length, 'x');
        left -= length;
        return length;
    };
    return request;
}

std::unexpected<cofferdam::failure> failed_request(const cofferdam::error &error) {
    return std::unexpected(error.code == COFFERDAM_HTTP_TIMEOUT ? cofferdam::failure{"timeout"} : *error.failure);
}

result<responded> send_requests(const http_arguments &given) {
    constexpr std::size_t body_bytes_max = 16 << 20, text_bytes_max = 2000;
    responded last{};
    std::int64_t ok = 0;
    for (int round = 0; round < given.count; round++) {
        std::vector<cofferdam::http::exchange> exchanges;
        for (int at = 0; at < given.parallel; at++) {
            auto exchange = cofferdam::http::exchange::start(request_of(given));
            if (!exchange) return failed_request(exchange.error());
            exchanges.push_back(std::move(*exchange));
        }
        for (cofferdam::http::exchange &exchange : exchanges) {
            auto response = exchange.wait();
            if (!response) return failed_request(response.error());
            auto body = response->text(body_bytes_max);
            if (!body) return failed_request(body.error());
            ok += response->status() < 400;
            last = {response->status(), response->url(), response->header_of("content-type"), std::int64_t(body->size()),
                    body->size() <= text_bytes_max ? *body : "", ok};
        }
    }
    return last;
}

struct answer {
    std::int64_t answer;

    static auto fields() { return cofferdam::fields(field("answer", &answer::answer, "What it all comes to.")); }
};

answer annotated() { return {42}; }

using cofferdam::tool;
COFFERDAM_PLUGIN(tool<echo>("echo", "Returns what it was given."),
                 tool<with_defaults>("defaults", "Returns what it was given, or the defaults."),
                 tool<with_nullables>("nullables", "Returns what it was given, or null."),
                 tool<nested>("nested", "Sums up an order."),
                 tool<report>("fail", "Reports a failure."),
                 tool<crash>("crash", "Ends as a bug ends."),
                 tool<unicode>("unicode", "Looks at a text as Unicode."),
                 tool<big_numbers>("big_numbers", "Returns numbers with all their digits."),
                 tool<nothing>("nothing", "Returns nothing."),
                 tool<word>("word", "Returns a text."),
                 tool<blob>("blob", "Returns bytes."),
                 tool<several>("several", "Returns contents of all kinds."),
                 tool<store>("store", "Works on the files of a store."),
                 tool<missing>("missing", "Finds out that a file is not there."),
                 tool<local_file>("local_file", "Reads a text file with the C library."),
                 tool<progress>("progress", "Reports progress."),
                 tool<say>("log", "Says something to the client."),
                 tool<relay>("relay", "Calls another tool."),
                 tool<secret>("secret", "Counts the characters of a secret."),
                 tool<send_requests>("http", "Sends requests over HTTP and returns the last response."),
                 tool<annotated>("annotated", "Has all annotations.")
                     .title("An annotated tool")
                     .group("reading")
                     .read_only()
                     .destructive(false)
                     .idempotent()
                     .open_world(false)
                     .output_schema())
