#include "similar.hpp"
#include "shingles.hpp"
#include "text.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sys/stat.h>

using cofferdam::fail;
using cofferdam::result;

namespace {

constexpr std::size_t TEXT_BYTES_MAX = 1 << 20;
constexpr std::size_t UNITS_MAX = 50'000;
constexpr std::size_t RESULTS_MAX = 1000;
constexpr std::size_t TOLD_BYTES_MAX = 120;

result<std::string> read_text(const std::string &path) {
    if (path.empty() || path[0] != '/' || path.find('\0') != std::string::npos)
        return fail("`" + path + "` is not a path in a mount").suggest("pass a path such as `/data/notes.md`");
    struct stat stat_of;
    if (stat(path.c_str(), &stat_of))
        return fail("`" + path + "` cannot be read: " + std::strerror(errno)).suggest("pass the path of a file in a mount, or `text`");
    if (S_ISDIR(stat_of.st_mode)) return fail("`" + path + "` is a directory").suggest("pass one of the files in it");
    if (stat_of.st_size > off_t(TEXT_BYTES_MAX))
        return fail("`" + path + "` has " + std::to_string(stat_of.st_size) + " bytes")
            .suggest("pass at most 1048576 bytes, such as a part of it as `text`");
    std::unique_ptr<std::FILE, int (*)(std::FILE *)> file{std::fopen(path.c_str(), "rb"), std::fclose};
    if (!file) return fail("`" + path + "` cannot be read: " + std::strerror(errno));
    std::string text(std::size_t(stat_of.st_size), '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file.get()));
    if (std::ferror(file.get())) return fail("`" + path + "` cannot be read to its end");
    if (text.find('\0') != std::string::npos) return fail("`" + path + "` is not text: it holds U+0000").suggest("pass a text file");
    return text;
}

struct span {
    std::string_view text;
    std::int64_t line, last_line;
};

bool is_blank(char byte) { return byte == ' ' || (byte >= '\t' && byte <= '\r'); }

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    return text;
}

// Returns the lines or paragraphs that are not empty.
std::vector<span> spans_of(std::string_view text, unit unit) {
    std::vector<span> spans;
    bool goes_on = false;
    std::int64_t number = 0;
    for (std::size_t from = 0, to; from < text.size(); from = to + 1) {
        to = std::min(text.find('\n', from), text.size());
        std::string_view line = trimmed(text.substr(from, to - from));
        number++;
        if (line.empty()) {
            goes_on = false;
        } else if (goes_on) {
            // Both are parts of the same text: a paragraph extends from its beginning to the end of
            // its last line.
            span &last = spans.back();
            last = {{last.text.data(), std::size_t(line.data() + line.size() - last.text.data())}, last.line, number};
        } else {
            spans.push_back({line, number, number});
            goes_on = unit == unit::paragraphs;
        }
    }
    return spans;
}

// Replaces blanks and line ends between words by one blank.
std::u32string normal(std::string_view text, bool ignore_case) {
    std::u32string made;
    for (char32_t one : characters_of(text, ignore_case)) {
        bool is_space = one < 0x80 && is_blank(char(one));
        if (is_space && !made.empty() && made.back() == U' ') continue;
        made.push_back(is_space ? U' ' : one);
    }
    return made;
}

std::optional<cofferdam::failure> problem_of(const compared &given) {
    auto failed = [](fail &&made) { return result<int>(std::move(made)).error(); };
    if (given.text.has_value() == given.file.has_value())
        return failed(fail("one of `text` and `file` is needed").suggest("pass `file` for a file in a mount, else `text`"));
    if (given.text && given.text->size() > TEXT_BYTES_MAX)
        return failed(fail("`text` has " + std::to_string(given.text->size()) + " bytes").suggest("pass at most 1048576 bytes"));
    if (!(given.similarity_min >= 0.3 && given.similarity_min <= 1))
        return failed(fail("`similarity_min` is not from 0.3 to 1").suggest("pass 0.7, or 0.9 for what is almost the same"));
    if (given.shingle_size < 2 || given.shingle_size > 20)
        return failed(fail("`shingle_size` is " + std::to_string(given.shingle_size)).suggest("pass 3, or up to 20 for long paragraphs"));
    if (given.results_max < 1 || given.results_max > RESULTS_MAX)
        return failed(fail("`results_max` is " + std::to_string(given.results_max)).suggest("pass 1 to 1000"));
    return std::nullopt;
}

} // namespace

result<similar_places> similar_lines(const compared &given) {
    if (auto problem = problem_of(given)) return std::unexpected(*problem);
    auto text = given.file ? read_text(*given.file) : result<std::string>(*given.text);
    if (!text) return std::unexpected(text.error());
    std::vector<span> spans;
    std::vector<std::u32string> texts;
    for (const span &span : spans_of(*text, given.unit)) {
        std::u32string characters = normal(span.text, given.ignore_case);
        if (characters.size() < given.characters_min) continue;
        if (texts.size() == UNITS_MAX)
            return fail("there are more than 50000 to compare").suggest("pass a part of the text, or a larger `characters_min`");
        texts.push_back(std::move(characters));
        spans.push_back(span);
    }
    auto likenesses = find_likenesses(texts, given.shingle_size, given.similarity_min);
    if (!likenesses)
        return fail("too many of the " + std::to_string(texts.size()) + " have something in common to compare them in one call")
            .suggest("pass a larger `similarity_min` or `shingle_size`, or a part of the text");
    std::ranges::sort(*likenesses, [](const likeness &one, const likeness &other) {
        return one.similarity != other.similarity ? one.similarity > other.similarity : one.text < other.text;
    });
    similar_places found{{}, std::int64_t(likenesses->size()), std::int64_t(texts.size())};
    for (const likeness &one : *likenesses) {
        if (found.similar.size() == given.results_max) break;
        const span &here = spans[one.text], &there = spans[one.earlier];
        found.similar.push_back({here.line, here.last_line, there.line, there.last_line, rounded(one.similarity),
                                 beginning_of(here.text, TOLD_BYTES_MAX), beginning_of(there.text, TOLD_BYTES_MAX)});
    }
    return found;
}
