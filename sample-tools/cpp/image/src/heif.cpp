// HEIC and AVIF: nested boxes (ISO 14496-12). The properties of the primary item, identified by
// their numbers in a list, are its size, its bits and its rotation.

#include "formats.hpp"

#include <vector>

namespace {

constexpr int BOXES_MAX = 1000;
constexpr std::uint32_t ITEMS_MAX = 10'000;

struct box {
    std::string kind;
    reader content;
};

std::vector<box> boxes(const reader &in) {
    std::vector<box> found;
    std::uint64_t at = 0;
    while (found.size() < BOXES_MAX) {
        auto length = in.big(at, 4);
        if (!length) break;
        std::uint64_t header = 8, size = *length;
        if (size == 1) {
            auto high = in.big(at + 8, 4), low = in.big(at + 12, 4);
            if (!low) break;
            size = std::uint64_t(*high) << 32 | *low;
            header = 16;
        }
        if (size == 0) size = in.size() - at; // to the end
        if (size < header || size > in.size() - at) break;
        found.push_back({in.text(at + 4, 4), in.part(at + header, size - header)});
        at += size;
    }
    return found;
}

std::optional<reader> child(const reader &in, std::string_view kind) {
    for (const box &box : boxes(in))
        if (box.kind == kind) return box.content;
    return std::nullopt;
}

// Returns the numbers, from 1, of the properties of an item.
std::vector<std::uint32_t> properties_of(const reader &associations, std::uint32_t wanted) {
    std::vector<std::uint32_t> numbers;
    auto version = associations.big(0, 1), flags = associations.big(1, 3), count = associations.big(4, 4);
    if (!count || *count > ITEMS_MAX) return numbers;
    int id_bytes = *version ? 4 : 2, number_bytes = *flags & 1 ? 2 : 1;
    std::uint32_t essential = *flags & 1 ? 0x8000 : 0x80;
    std::uint64_t at = 8;
    for (std::uint32_t item = 0; item < *count; item++) {
        auto id = associations.big(at, id_bytes), many = associations.big(at + id_bytes, 1);
        if (!many) break;
        at += id_bytes + 1;
        for (std::uint32_t left = *many; left; left--, at += number_bytes)
            if (auto number = associations.big(at, number_bytes); number && id == wanted) numbers.push_back(*number & ~essential);
    }
    return numbers;
}

// Returns a fraction of two numbers, rounded down, or nothing if it is invalid.
std::optional<std::int64_t> fraction(const reader &content, std::uint64_t at) {
    auto above = content.big(at, 4), below = content.big(at + 4, 4);
    if (!below || *below == 0) return std::nullopt;
    return *above / *below;
}

void use(const box &property, image &image) {
    const reader &content = property.content;
    if (property.kind == "ispe") {
        image.width = content.big(4, 4).value_or(0);
        image.height = content.big(8, 4).value_or(0);
    } else if (property.kind == "clap") {
        // Encoders work on whole blocks, and this box contains the size of the visible part.
        image.width = fraction(content, 0).value_or(image.width);
        image.height = fraction(content, 8).value_or(image.height);
    } else if (property.kind == "pixi") {
        image.channels = content.big(4, 1).value_or(0);
        image.bits = content.big(5, 1).value_or(0);
    } else if (property.kind == "irot") {
        // Quarter turns counterclockwise. EXIF contains the correction, clockwise.
        constexpr std::int64_t ORIENTATIONS[] = {1, 8, 3, 6};
        image.orientation = ORIENTATIONS[content.big(0, 1).value_or(0) & 3];
    }
}

} // namespace

std::optional<image> read_heif(const reader &file) {
    bool is_avif = file.has(8, "avif") || file.has(8, "avis");
    image heif{is_avif ? "AVIF" : "HEIC", is_avif ? "image/avif" : "image/heic"};
    auto meta = child(file, "meta");
    if (!meta) return std::nullopt;
    reader inner = meta->part(4);
    auto primary = child(inner, "pitm"), all = child(inner, "iprp");
    auto list = all ? child(*all, "ipco") : std::nullopt, associations = all ? child(*all, "ipma") : std::nullopt;
    if (!primary || !list || !associations) return std::nullopt;
    auto id = primary->big(4, primary->big(0, 1).value_or(0) ? 4 : 2);
    if (!id) return std::nullopt;
    std::vector<box> properties = boxes(*list);
    for (std::uint32_t number : properties_of(*associations, *id))
        if (number >= 1 && number <= properties.size()) use(properties[number - 1], heif);
    if (!heif.width || !heif.height) return std::nullopt;
    return heif;
}
