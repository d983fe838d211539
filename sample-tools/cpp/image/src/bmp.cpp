#include "formats.hpp"

std::optional<image> read_bmp(const reader &file) {
    auto header = file.little(14, 4);
    bool is_old = header == 12u;
    auto width = file.little(18, is_old ? 2 : 4), height = is_old ? file.little(20, 2) : file.little(22, 4);
    auto bits = file.little(is_old ? 24 : 28, 2);
    if (!bits || !header || (*header != 12 && *header < 40)) return std::nullopt;
    // A negative height means that the top row is first.
    std::int64_t rows = is_old ? std::int64_t(*height) : std::int64_t(static_cast<std::int32_t>(*height));
    image bmp{"BMP", "image/bmp", *width, rows < 0 ? -rows : rows};
    bmp.channels = *bits == 32 ? 4 : *bits >= 16 ? 3 : 1;
    bmp.bits = *bits >= 24 ? 8 : *bits == 16 ? 5 : *bits;
    return bmp;
}
