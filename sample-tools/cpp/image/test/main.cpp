// Tests damaged images natively, with the compiler's checks: `make test`. The cases of cases.jsonl
// test valid ones.

#include "../src/formats.hpp"
#include "cofferdam_test.h"

#include <filesystem>
#include <fstream>
#include <iterator>

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
    COFFERDAM_EXPECT_FAILURE("image_info", "{}", "one of `file` and `base64` is needed");
    COFFERDAM_EXPECT_FAILURE("image_info", "{\"base64\": \"?\"}", "`base64` is not base64");
    COFFERDAM_EXPECT_FAILURE("image_info", "{\"base64\": \"\"}", "`base64` is not an image of a known format");
    return cofferdam_test_end();
}
