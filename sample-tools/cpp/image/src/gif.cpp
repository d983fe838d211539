#include "formats.hpp"

namespace {

std::uint64_t table_bytes(std::uint32_t flags) { return flags & 0x80 ? 3u << ((flags & 7) + 1) : 0; }

// Returns the offset after a chain of blocks that each begin with their length, or nothing if the
// chain is cut off or the file has too many pieces.
std::optional<std::uint64_t> behind_blocks(const reader &file, std::uint64_t at) {
    while (file.next_piece()) {
        auto length = file.little(at, 1);
        if (!length) return std::nullopt;
        at += 1 + *length;
        if (*length == 0) return at;
    }
    return std::nullopt;
}

} // namespace

std::optional<image> read_gif(const reader &file) {
    auto width = file.little(6, 2), height = file.little(8, 2), flags = file.little(10, 1);
    if (!flags) return std::nullopt;
    image gif{"GIF", "image/gif", *width, *height, 8, 1};
    gif.frames = 0;
    std::optional<std::uint64_t> at = 13 + table_bytes(*flags);
    // A file that is cut off still shows the frames before the cut.
    while (at && file.next_piece()) {
        auto kind = file.little(*at, 1);
        if (kind == 0x21u) {
            at = behind_blocks(file, *at + 2);
        } else if (kind == 0x2Cu) {
            auto local = file.little(*at + 9, 1);
            if (!local) break;
            gif.frames++;
            at = behind_blocks(file, *at + 11 + table_bytes(*local));
        } else {
            break;
        }
    }
    if (file.has_too_many_pieces()) return std::nullopt;
    return gif;
}
