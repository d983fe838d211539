#include "closest.hpp"
#include "distance.hpp"
#include "text.hpp"

#include <algorithm>

using cofferdam::fail;

namespace {

constexpr std::size_t NAMES_MAX = 10'000;
constexpr std::size_t CHARACTERS_MAX = 200;
// With the longest name, this is about a hundred million steps, which take at most a second.
constexpr std::size_t NAMES_BYTES_MAX = 512 << 10;
constexpr std::size_t MATCHES_MAX = 50;

// Among names at the same distance, one with the same beginning is more likely the intended one,
// because endings are cut more often than beginnings.
struct candidate {
    std::size_t index, distance, longest, beginning;

    double score() const { return longest ? 1 - double(distance) / double(longest) : 1; }
    auto operator<=>(const candidate &other) const {
        // Fractions are compared without division, so that equal scores are equal.
        if (auto by = distance * other.longest <=> other.distance * longest; by != 0) return by;
        if (auto by = other.beginning <=> beginning; by != 0) return by;
        return index <=> other.index;
    }
    bool operator==(const candidate &) const = default;
};

std::optional<cofferdam::failure> problem_of(const misspelled &given) {
    auto failed = [](fail &&made) { return cofferdam::result<int>(std::move(made)).error(); };
    if (given.name.empty()) return failed(fail("`name` is empty").suggest("pass what was written"));
    if (given.names.empty()) return failed(fail("`names` is empty").suggest("pass the names that there are"));
    if (given.names.size() > NAMES_MAX)
        return failed(fail("there are " + std::to_string(given.names.size()) + " names")
                          .suggest("pass at most 10000, such as those with the same first letter"));
    std::size_t bytes = 0;
    for (const std::string &name : given.names) bytes += name.size();
    if (bytes > NAMES_BYTES_MAX)
        return failed(fail("the names have " + std::to_string(bytes) + " bytes together")
                          .suggest("pass names of at most 524288 bytes together"));
    if (given.matches_max < 1 || given.matches_max > MATCHES_MAX)
        return failed(fail("`matches_max` is " + std::to_string(given.matches_max)).suggest("pass 1 to 50"));
    if (!(given.score_min >= 0 && given.score_min <= 1))
        return failed(fail("`score_min` is not from 0 to 1")
                          .suggest("pass 0.5, or 0 for all names"));
    return std::nullopt;
}

} // namespace

cofferdam::result<closest_matches> closest(const misspelled &given) {
    if (auto problem = problem_of(given)) return std::unexpected(*problem);
    std::u32string written = characters_of(given.name, given.ignore_case);
    if (written.size() > CHARACTERS_MAX)
        return fail("`name` has " + std::to_string(written.size()) + " characters")
            .suggest("pass a name of at most 200 characters; `similar_lines` compares texts");
    distance_to distance(written);
    std::vector<candidate> candidates;
    candidates.reserve(given.names.size());
    for (std::size_t index = 0; index < given.names.size(); index++) {
        std::u32string name = characters_of(given.names[index], given.ignore_case);
        if (name.size() > CHARACTERS_MAX)
            return fail("name " + std::to_string(index) + " of `names` has " + std::to_string(name.size()) + " characters")
                .suggest("leave out names of more than 200 characters");
        auto [end, unused] = std::ranges::mismatch(name, written);
        std::size_t beginning = std::size_t(end - name.begin());
        candidate one{index, distance.of(name), std::max(name.size(), written.size()), beginning};
        if (one.score() >= given.score_min) candidates.push_back(one);
    }
    // One more than is returned, for `unique`.
    std::size_t sorted = std::min(candidates.size(), std::size_t(given.matches_max) + 1);
    std::ranges::partial_sort(candidates, candidates.begin() + std::ptrdiff_t(sorted));
    closest_matches found;
    found.unique = sorted == 1 || (sorted > 1 && candidates[0].score() > candidates[1].score());
    for (std::size_t at = 0; at < std::min(sorted, std::size_t(given.matches_max)); at++) {
        const candidate &one = candidates[at];
        found.matches.push_back({given.names[one.index], std::int64_t(one.index), std::int64_t(one.distance), rounded(one.score())});
    }
    return found;
}
