#include "formats.hpp"

namespace {

// Returns whether a marker begins a frame header. Three markers in the range do not.
bool is_frame(std::uint32_t marker) {
    return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

} // namespace

std::optional<image> read_jpeg(const reader &file) {
    image jpeg{"JPEG", "image/jpeg"};
    std::uint64_t at = 2;
    while (file.next_piece()) {
        auto mark = file.big(at, 1), marker = file.big(at + 1, 1);
        if (!marker || *mark != 0xFF) return std::nullopt;
        if (*marker == 0xFF) {
            at++; // a fill byte
            continue;
        }
        auto length = file.big(at + 2, 2);
        if (!length || *length < 2 || *marker == 0xDA) return std::nullopt;
        if (*marker == 0xE1 && file.has(at + 4, {"Exif\0\0", 6})) jpeg.orientation = orientation_of(file.part(at + 10, *length - 2));
        if (is_frame(*marker)) {
            auto bits = file.big(at + 4, 1), height = file.big(at + 5, 2), width = file.big(at + 7, 2), channels = file.big(at + 9, 1);
            if (!channels) return std::nullopt;
            jpeg.width = *width;
            jpeg.height = *height;
            jpeg.bits = *bits;
            jpeg.channels = *channels;
            return jpeg;
        }
        at += 2 + *length;
    }
    return std::nullopt;
}
