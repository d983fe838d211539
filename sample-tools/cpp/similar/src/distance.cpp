#include "distance.hpp"

#include <algorithm>

distance_to::distance_to(std::u32string text) : text_{std::move(text)} {
    for (char32_t one : text_) number_at_.push_back(numbers_.try_emplace(one, numbers_.size()).first->second);
}

// Lowrance and Wagner, "An Extension of the String-to-String Correction Problem" (1975). Rows are
// characters of the other text, columns those of this one. A row and a column before the first
// contain a value that no path uses.
std::size_t distance_to::of(const std::u32string &other) {
    std::size_t columns = text_.size() + 2, rows = other.size() + 2, never = text_.size() + other.size();
    cells_.assign(rows * columns, never);
    last_row_.assign(numbers_.size(), 0);
    auto cell = [&](std::size_t row, std::size_t column) -> std::size_t & { return cells_[row * columns + column]; };
    for (std::size_t row = 0; row <= other.size(); row++) cell(row + 1, 1) = row;
    for (std::size_t column = 0; column <= text_.size(); column++) cell(1, column + 1) = column;
    for (std::size_t row = 1; row <= other.size(); row++) {
        std::size_t last_column = 0;
        for (std::size_t column = 1; column <= text_.size(); column++) {
            std::size_t swap_row = last_row_[number_at_[column - 1]], swap_column = last_column;
            bool is_same = other[row - 1] == text_[column - 1];
            if (is_same) last_column = column;
            std::size_t swapped = cell(swap_row, swap_column) + (row - swap_row - 1) + 1 + (column - swap_column - 1);
            cell(row + 1, column + 1) = std::min(
                {cell(row, column) + !is_same, cell(row + 1, column) + 1, cell(row, column + 1) + 1, swapped});
        }
        auto number = numbers_.find(other[row - 1]);
        if (number != numbers_.end()) last_row_[number->second] = row;
    }
    return cell(rows - 1, columns - 1);
}
