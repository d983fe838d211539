// Which of many texts are nearly the same, without comparing each with each.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

// That a text is like an earlier one, and by how much.
struct likeness {
    std::size_t text;
    std::size_t earlier;
    double similarity;
};

// For each text the most similar one before it, of those with a Jaccard similarity of at least `least` of their shingles: all runs of
// `size` characters. Nothing if that takes too many steps, as it does when many texts have much in common and yet too little.
std::optional<std::vector<likeness>> find_likenesses(const std::vector<std::u32string> &texts, std::size_t size, double least);
