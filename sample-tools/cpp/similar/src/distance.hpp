// Edit distance of two texts.

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

// The Damerau-Levenshtein distance to one text: the number of characters to insert, delete, replace
// or swap with their neighbor, where other changes may come between the two of a swap.
class distance_to {
  public:
    explicit distance_to(std::u32string text);
    std::size_t length() const { return text_.size(); }
    // Takes time in proportion to the product of both lengths. `of` has no visible side effects.
    std::size_t of(const std::u32string &other);

  private:
    std::u32string text_;
    // A number for each character of the text, so that rows are found without a table of all of
    // Unicode.
    std::unordered_map<char32_t, std::size_t> numbers_;
    std::vector<std::size_t> number_at_;
    std::vector<std::size_t> last_row_;
    std::vector<std::size_t> cells_;
};
