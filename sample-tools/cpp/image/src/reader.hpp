// Reads bytes of a file or of memory by offset. Reading past the end returns nothing, because
// formats are full of offsets that a hostile file can choose.

#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

enum class order { big, little };

class reader {
  public:
    // Returns nothing if the file cannot be opened; `errno` contains the reason.
    static std::optional<reader> of_file(const std::string &path);
    static reader of_bytes(std::string bytes);

    // Returns a reader for at most `length` bytes from an offset.
    reader part(std::uint64_t offset, std::uint64_t length = UINT64_MAX) const;

    std::uint64_t size() const { return size_; }

    // Reads an unsigned integer of 1 to 4 bytes.
    std::optional<std::uint32_t> number(std::uint64_t offset, int bytes, order order) const;
    std::optional<std::uint32_t> big(std::uint64_t offset, int bytes) const { return number(offset, bytes, order::big); }
    std::optional<std::uint32_t> little(std::uint64_t offset, int bytes) const { return number(offset, bytes, order::little); }

    // Counts a piece of the file, such as a chunk. Returns false after too many, for files that
    // consist only of pieces. All parts of a file have one count.
    bool next_piece() const { return ++*pieces_ <= PIECES_MAX; }
    bool has_too_many_pieces() const { return *pieces_ > PIECES_MAX; }

    // Reads at most 16 bytes; fewer at the end.
    std::string text(std::uint64_t offset, std::size_t length) const;
    bool has(std::uint64_t offset, std::string_view bytes) const { return text(offset, bytes.size()) == bytes; }

    static constexpr std::uint64_t PIECES_MAX = 1'000'000;

  private:
    struct buffered;

    std::shared_ptr<buffered> file_;
    std::shared_ptr<const std::string> bytes_;
    std::uint64_t start_ = 0;
    std::uint64_t size_ = 0;
    std::shared_ptr<std::uint64_t> pieces_ = std::make_shared<std::uint64_t>(0);
};
