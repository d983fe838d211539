// Converts texts for comparison: characters instead of bytes.

#pragma once

#include "cofferdam.hpp"

// Returns the characters of a text, with A to Z in lower case if case is ignored. Invalid UTF-8
// becomes U+FFFD.
std::u32string characters_of(std::string_view text, bool ignore_case);

// Returns the beginning of a text, cut between characters if it is too long.
std::string beginning_of(std::string_view text, std::size_t bytes_max);

// Rounds to three digits, because more are not significant.
double rounded(double number);
