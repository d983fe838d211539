// Tests damaged images natively, with the compiler's checks: `make test`. The cases of cases.jsonl
// test valid ones.

#include "../src/formats.hpp"
#include "cofferdam_test.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <unistd.h>

namespace {

std::optional<image> (*const READERS[])(const reader &) = {read_png, read_jpeg, read_gif, read_webp,
                                                         read_bmp, read_tiff, read_heif};

// Reads damaged bytes, whatever the result, without an endless loop or an access out of bounds.
void read_all(const std::string &bytes) {
    reader file = reader::of_bytes(bytes);
    for (auto read : READERS) read(file);
}

void damage(std::string bytes) {
    for (std::size_t length = 0; length < bytes.size(); length++) read_all(bytes.substr(0, length));
    for (char &byte : bytes) {
        char before = byte;
        for (int change : {0, 1, 0x7F, 0x80, 0xFF}) {
            byte = static_cast<char>(change);
            read_all(bytes);
        }
        byte = before;
    }
}

// Writes a file, reads it as a GIF and deletes it.
std::optional<image> read_as_file(const std::string &bytes, const reader **kept = nullptr) {
    static std::optional<reader> file;
    std::string path = std::filesystem::temp_directory_path() / ("image-test-" + std::to_string(getpid()));
    std::ofstream(path, std::ios::binary) << bytes;
    file = reader::of_file(path);
    std::filesystem::remove(path);
    if (!file) return std::nullopt;
    if (kept) *kept = &*file;
    return read_gif(*file);
}

// Returns a GIF whose frames have blocks of one byte.
std::string gif_of(int frames, int blocks) {
    std::string gif("GIF89a\x05\0\x04\0\0\0\0", 13);
    for (; frames; frames--) {
        gif += std::string(",\0\0\0\0\x05\0\x04\0\0\x02", 11);
        for (int left = blocks; left; left--) gif += "\x01x";
        gif += '\0';
    }
    return gif + ';';
}

} // namespace

int main() {
    int damaged = 0;
    for (const auto &entry : std::filesystem::recursive_directory_iterator("fixtures")) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        damage(std::string(std::istreambuf_iterator<char>(file), {}));
        damaged++;
    }
    COFFERDAM_CHECK(damaged > 10);
    auto read = read_as_file(gif_of(3, 100'000));
    COFFERDAM_CHECK(read && read->width == 5 && read->height == 4 && read->frames == 3);
    // Frames with many blocks count together.
    const reader *file = nullptr;
    COFFERDAM_CHECK(!read_as_file(gif_of(30, 50'000), &file) && file && file->has_too_many_pieces());
    COFFERDAM_EXPECT_FAILURE("image_info", "{}", "one of `file` and `base64` is needed");
    COFFERDAM_EXPECT_FAILURE("image_info", "{\"base64\": \"?\"}", "`base64` is not base64");
    COFFERDAM_EXPECT_FAILURE("image_info", "{\"base64\": \"\"}", "`base64` is not an image of a known format");
    return cofferdam_test_end();
}
