#include "formats.hpp"

namespace {

std::int64_t channels_of(std::uint32_t colour_type) {
    switch (colour_type) {
    case 2: return 3;
    case 4: return 2;
    case 6: return 4;
    default: return 1; // gray, or an index into a palette
    }
}

} // namespace

std::optional<image> read_png(const reader &file) {
    auto width = file.big(16, 4), height = file.big(20, 4), bits = file.big(24, 1), colour_type = file.big(25, 1);
    if (!file.has(12, "IHDR") || !colour_type) return std::nullopt;
    image png{"PNG", "image/png", *width, *height, *bits, channels_of(*colour_type)};
    std::uint64_t at = 8;
    while (file.next_piece()) {
        auto length = file.big(at, 4);
        if (!length || file.has(at + 4, "IEND")) break;
        if (file.has(at + 4, "acTL")) png.frames = file.big(at + 8, 4).value_or(1);
        if (file.has(at + 4, "eXIf")) png.orientation = orientation_of(file.part(at + 8, *length));
        at += 12 + std::uint64_t(*length);
    }
    if (file.has_too_many_pieces()) return std::nullopt;
    return png;
}
