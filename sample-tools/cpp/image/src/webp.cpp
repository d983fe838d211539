#include "formats.hpp"

namespace {

// Reads the size from the header of a lossy or lossless image.
bool read_picture(const reader &chunk, std::string_view kind, image &webp) {
    if (kind == "VP8 ") {
        auto width = chunk.little(6, 2), height = chunk.little(8, 2);
        if (!height || !chunk.has(3, "\x9D\x01\x2A")) return false;
        webp.width = *width & 0x3FFF;
        webp.height = *height & 0x3FFF;
        webp.channels = 3;
        return true;
    }
    auto packed = chunk.little(1, 4);
    if (!packed || !chunk.has(0, "\x2F")) return false;
    webp.width = (*packed & 0x3FFF) + 1;
    webp.height = (*packed >> 14 & 0x3FFF) + 1;
    webp.channels = *packed >> 28 & 1 ? 4 : 3;
    return true;
}

} // namespace

std::optional<image> read_webp(const reader &file) {
    image webp{"WebP", "image/webp", 0, 0, 8};
    bool has_canvas = false;
    std::int64_t frames = 0;
    std::uint64_t at = 12;
    while (file.next_piece()) {
        auto length = file.little(at + 4, 4);
        if (!length) break;
        std::string kind = file.text(at, 4);
        reader chunk = file.part(at + 8, *length);
        if (kind == "VP8X") {
            auto flags = chunk.little(0, 1), width = chunk.little(4, 3), height = chunk.little(7, 3);
            if (!height) return std::nullopt;
            webp.width = *width + std::int64_t(1);
            webp.height = *height + std::int64_t(1);
            webp.channels = *flags & 0x10 ? 4 : 3;
            has_canvas = true;
        } else if ((kind == "VP8 " || kind == "VP8L") && !has_canvas) {
            if (!read_picture(chunk, kind, webp)) return std::nullopt;
            return webp;
        } else if (kind == "ANMF") {
            frames++;
        } else if (kind == "EXIF") {
            webp.orientation = orientation_of(chunk.has(0, {"Exif\0\0", 6}) ? chunk.part(6) : chunk);
        }
        at += 8 + std::uint64_t(*length) + (*length & 1);
    }
    if (!has_canvas || file.has_too_many_pieces()) return std::nullopt;
    if (frames) webp.frames = frames;
    return webp;
}
