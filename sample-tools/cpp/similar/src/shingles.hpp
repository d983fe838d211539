// Finds texts that are nearly the same, without comparing each with each.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// Similarity of a text and an earlier one.
struct likeness {
    std::size_t text;
    std::size_t earlier;
    double similarity;
};

// Returns for each text the most similar one before it, of those with a Jaccard similarity of at
// least `least` of their shingles: all runs of `size` characters. Returns nothing if that takes too
// many steps, which happens if many texts share much but are not similar enough.
std::optional<std::vector<likeness>> find_likenesses(const std::vector<std::u32string> &texts, std::size_t size, double least);
