// How far two texts are apart.

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

// The Damerau-Levenshtein distance to one text: how many characters have to be inserted, deleted, replaced or swapped with their
// neighbour, where other changes may come between the two of a swap.
class distance_to {
  public:
    explicit distance_to(std::u32string text);
    std::size_t length() const { return text_.size(); }
    // Costs time in proportion to the product of both lengths. `of` changes nothing that is seen from outside.
    std::size_t of(const std::u32string &other);

  private:
    std::u32string text_;
    // Each character of the text and a number for it, so that rows are found without a table of all of Unicode.
    std::unordered_map<char32_t, std::size_t> numbers_;
    std::vector<std::size_t> number_at_;
    std::vector<std::size_t> last_row_;
    std::vector<std::size_t> cells_;
};
