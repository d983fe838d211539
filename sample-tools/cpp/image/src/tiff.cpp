#include "formats.hpp"

namespace {

// Maximum number of directories of a file and of entries of a directory, more than any program
// writes.
constexpr int PAGES_MAX = 1000;
constexpr std::uint32_t ENTRIES_MAX = 512;

enum tag : std::uint32_t { WIDTH = 256, HEIGHT = 257, BITS = 258, ORIENTATION = 274, CHANNELS = 277 };

std::optional<order> order_of(const reader &file) {
    if (file.has(0, {"II*\0", 4})) return order::little;
    if (file.has(0, {"MM\0*", 4})) return order::big;
    return std::nullopt;
}

// Returns the value of an entry that has one number, or the first of several.
std::optional<std::uint32_t> value(const reader &file, std::uint64_t entry, order order) {
    auto type = file.number(entry + 2, 2, order), count = file.number(entry + 4, 4, order);
    if (!count || *count == 0) return std::nullopt;
    if (type == 4u && count == 1u) return file.number(entry + 8, 4, order);
    if (type != 3u) return std::nullopt;
    if (*count <= 2) return file.number(entry + 8, 2, order);
    auto offset = file.number(entry + 8, 4, order);
    return offset ? file.number(*offset, 2, order) : std::nullopt;
}

// Calls `use` with tag and value of each entry.
template <class Use> void each_entry(const reader &file, std::uint32_t directory, order order, Use use) {
    auto count = file.number(directory, 2, order);
    if (!count || *count > ENTRIES_MAX) return;
    std::uint64_t entry = std::uint64_t(directory) + 2;
    for (std::uint32_t left = *count; left; left--, entry += 12) {
        auto tag = file.number(entry, 2, order);
        auto held = value(file, entry, order);
        if (tag && held) use(*tag, *held);
    }
}

// Returns the offset of the directory after this one, or 0.
std::uint32_t next_of(const reader &file, std::uint32_t directory, order order) {
    auto count = file.number(directory, 2, order);
    if (!count || *count > ENTRIES_MAX) return 0;
    return file.number(std::uint64_t(directory) + 2 + 12 * *count, 4, order).value_or(0);
}

} // namespace

std::int64_t orientation_of(const reader &exif) {
    auto order = order_of(exif);
    auto directory = order ? exif.number(4, 4, *order) : std::nullopt;
    std::int64_t orientation = 1;
    if (directory)
        each_entry(exif, *directory, *order, [&](std::uint32_t tag, std::uint32_t value) {
            if (tag == ORIENTATION && value >= 1 && value <= 8) orientation = value;
        });
    return orientation;
}

std::optional<image> read_tiff(const reader &file) {
    auto order = order_of(file);
    auto directory = order ? file.number(4, 4, *order) : std::nullopt;
    if (!directory) return std::nullopt;
    image tiff{"TIFF", "image/tiff"};
    each_entry(file, *directory, *order, [&](std::uint32_t tag, std::uint32_t value) {
        if (tag == WIDTH) tiff.width = value;
        if (tag == HEIGHT) tiff.height = value;
        if (tag == BITS) tiff.bits = value;
        if (tag == CHANNELS) tiff.channels = value;
        if (tag == ORIENTATION && value >= 1 && value <= 8) tiff.orientation = value;
    });
    std::uint32_t next = next_of(file, *directory, *order);
    // Directories can point back to each other.
    for (; next && tiff.frames < PAGES_MAX; tiff.frames++) next = next_of(file, next, *order);
    if (!tiff.width || !tiff.height) return std::nullopt;
    return tiff;
}
