// Texts as what is compared: characters instead of bytes.

#pragma once

#include "cofferdam.hpp"

// The characters of a text, A to Z made small if case is ignored. What is no UTF-8 becomes U+FFFD.
std::u32string characters_of(std::string_view text, bool ignore_case);

// The beginning of a text, cut between characters if it is too long.
std::string beginning_of(std::string_view text, std::size_t bytes_max);

// Rounds to three digits: more would say nothing.
double rounded(double number);
