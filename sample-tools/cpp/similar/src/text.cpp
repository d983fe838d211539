#include "text.hpp"

#include <cmath>

std::u32string characters_of(std::string_view text, bool ignore_case) {
    std::u32string characters;
    characters.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        std::uint32_t one = cofferdam_next_character({text.data(), text.size()}, &at);
        if (ignore_case && one >= 'A' && one <= 'Z') one += 'a' - 'A';
        characters.push_back(static_cast<char32_t>(one));
    }
    return characters;
}

std::string beginning_of(std::string_view text, std::size_t bytes_max) {
    if (text.size() <= bytes_max) return std::string(text);
    while (bytes_max && (static_cast<unsigned char>(text[bytes_max]) & 0xC0) == 0x80) bytes_max--;
    return std::string(text.substr(0, bytes_max)) + "…";
}

double rounded(double number) { return std::round(number * 1000) / 1000; }
