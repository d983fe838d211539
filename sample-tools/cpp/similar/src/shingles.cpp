#include "shingles.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

namespace {

// A few seconds at most, of the ten that a call has by default.
constexpr std::uint64_t STEPS_MAX = 500'000'000;

// The shingles of a text as numbers, each once, in order.
using shingle_set = std::vector<std::uint32_t>;

// With 64 bits, the probability that two shingles of one call have the same number is one in
// millions.
std::uint64_t hash_of(const char32_t *characters, std::size_t count) {
    std::uint64_t hash = count;
    for (std::size_t at = 0; at < count; at++) {
        hash ^= characters[at] + 0x9E3779B97F4A7C15 + (hash << 6) + (hash >> 2);
        hash = (hash ^ hash >> 30) * 0xBF58476D1CE4E5B9;
        hash ^= hash >> 27;
    }
    return hash;
}

struct occurrence {
    std::uint64_t hash;
    std::uint32_t text;
    auto operator<=>(const occurrence &) const = default;
};

std::vector<occurrence> occurrences_of(const std::vector<std::u32string_view> &texts, std::size_t size) {
    std::vector<occurrence> all;
    std::size_t characters_in_all = 0;
    for (std::u32string_view characters : texts) characters_in_all += characters.size();
    // Reserved at once, because growing step by step would need three times the memory.
    all.reserve(characters_in_all);
    for (std::size_t text = 0; text < texts.size(); text++) {
        std::u32string_view characters = texts[text];
        std::size_t count = std::min(size, characters.size());
        for (std::size_t at = 0; at + count <= characters.size(); at++)
            all.push_back({hash_of(characters.data() + at, count), std::uint32_t(text)});
    }
    std::ranges::sort(all);
    auto again = std::ranges::unique(all);
    all.erase(again.begin(), again.end());
    return all;
}

// Numbers shingles from rare to frequent, so that the first shingles of a text are in few other
// texts.
std::vector<shingle_set> sets_of(const std::vector<std::u32string_view> &texts, std::size_t size) {
    std::vector<occurrence> all = occurrences_of(texts, size);
    struct run {
        std::uint32_t count, first;
        auto operator<=>(const run &) const = default;
    };
    std::vector<run> runs;
    std::size_t distinct = 0;
    for (std::size_t at = 0; at < all.size(); at++) distinct += !at || all[at].hash != all[at - 1].hash;
    runs.reserve(distinct);
    for (std::size_t from = 0, to; from < all.size(); from = to) {
        for (to = from + 1; to < all.size() && all[to].hash == all[from].hash;) to++;
        runs.push_back({std::uint32_t(to - from), std::uint32_t(from)});
    }
    std::ranges::sort(runs);
    std::vector<shingle_set> sets(texts.size());
    for (std::size_t number = 0; number < runs.size(); number++)
        for (std::size_t at = 0; at < runs[number].count; at++)
            sets[all[runs[number].first + at].text].push_back(std::uint32_t(number));
    return sets;
}

std::size_t in_both(const shingle_set &one, const shingle_set &other) {
    std::size_t count = 0;
    for (std::size_t at = 0, there = 0; at < one.size() && there < other.size();) {
        if (one[at] == other[there]) count++, at++, there++;
        else if (one[at] < other[there]) at++;
        else there++;
    }
    return count;
}

// Returns the minimum number of shingles that two texts must share to be similar enough, given the
// size of one. Slightly less than the exact number, so that rounding loses no pair. Pairs that are
// not similar enough are dropped later.
std::size_t shared_at_least(std::size_t size, double least) {
    return std::max<std::size_t>(1, std::size_t(std::ceil(double(size) * least - 1e-6)));
}

} // namespace

// Two texts that share at least k of n shingles share one of the first n - k + 1 of each, in any
// common order. Only those have to be looked up (Chaudhuri, Ganti, Kaushik: "A Primitive Operator
// for Similarity Joins in Data Cleaning", 2006).
std::optional<std::vector<likeness>> find_likenesses(const std::vector<std::u32string> &texts, std::size_t size, double least) {
    std::vector<likeness> found;
    // Equal texts are compared once, so a file of one repeated line is cheap.
    std::map<std::u32string_view, std::size_t> first_with;
    std::vector<std::u32string_view> distinct;
    std::vector<std::size_t> place_of;
    for (std::size_t text = 0; text < texts.size(); text++) {
        auto [first, is_new] = first_with.try_emplace(texts[text], text);
        if (!is_new) {
            found.push_back({text, first->second, 1});
            continue;
        }
        distinct.push_back(texts[text]);
        place_of.push_back(text);
    }
    std::vector<shingle_set> sets = sets_of(distinct, size);
    std::size_t numbers = 0;
    for (const shingle_set &set : sets)
        if (!set.empty()) numbers = std::max<std::size_t>(numbers, set.back() + 1);
    // The texts of each shingle: a chain through `links`, the newest first.
    struct link {
        std::uint32_t text, next;
    };
    constexpr std::uint32_t END = UINT32_MAX;
    std::vector<std::uint32_t> heads(numbers, END);
    std::vector<link> links;
    std::vector<std::uint32_t> compared_with(sets.size(), END);
    std::uint64_t steps = 0;
    for (std::uint32_t text = 0; text < sets.size(); text++) {
        const shingle_set &set = sets[text];
        if (set.empty()) continue;
        std::size_t looked_up = set.size() - shared_at_least(set.size(), least) + 1;
        likeness best{place_of[text], 0, 0};
        for (std::size_t at = 0; at < looked_up; at++) {
            for (std::uint32_t link = heads[set[at]]; link != END; link = links[link].next) {
                std::uint32_t earlier = links[link].text;
                if (++steps > STEPS_MAX) return std::nullopt;
                if (compared_with[earlier] == text) continue;
                compared_with[earlier] = text;
                const shingle_set &other = sets[earlier];
                double smaller = double(std::min(set.size(), other.size())), larger = double(std::max(set.size(), other.size()));
                if (smaller < larger * least - 1e-6) continue;
                steps += set.size() + other.size();
                std::size_t both = in_both(set, other);
                double similarity = double(both) / double(set.size() + other.size() - both);
                if (similarity < least - 1e-9) continue;
                // Among equally similar texts, the first one is used.
                bool is_better = similarity > best.similarity || (similarity == best.similarity && place_of[earlier] < best.earlier);
                if (is_better) best = {place_of[text], place_of[earlier], similarity};
            }
            links.push_back({text, heads[set[at]]});
            heads[set[at]] = std::uint32_t(links.size() - 1);
        }
        if (best.similarity > 0) found.push_back(best);
    }
    return found;
}
