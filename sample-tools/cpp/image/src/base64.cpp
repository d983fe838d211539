#include "base64.hpp"

#include <cstdint>

std::optional<std::string> from_base64(std::string_view text) {
    if (text.starts_with("data:")) {
        std::size_t comma = text.find(";base64,");
        if (comma == std::string_view::npos) return std::nullopt;
        text.remove_prefix(comma + 8);
    }
    while (text.ends_with('=')) text.remove_suffix(1);
    constexpr std::string_view LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    bytes.reserve(text.size() / 4 * 3 + 3);
    std::uint32_t bits = 0;
    int count = 0;
    for (char letter : text) {
        std::size_t value = LETTERS.find(letter);
        if (value == std::string_view::npos) return std::nullopt;
        bits = bits << 6 | static_cast<std::uint32_t>(value);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
    if (count == 6) return std::nullopt;
    return bytes;
}
