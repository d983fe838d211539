#include "reader.hpp"

#include <algorithm>

namespace {

// Bytes that are read at once of a file that is read from start to end, and of one that is not,
// such as a header.
constexpr std::size_t BUFFER_BYTES = 64 << 10, FIRST_BYTES = 4 << 10;

} // namespace

// A file with a buffer that moving in the file does not drop, unlike that of `std::FILE`.
struct reader::buffered {
    std::shared_ptr<std::FILE> file;
    std::string bytes = {};
    std::uint64_t start = 0;

    // Returns the bytes from an offset, at least `length` unless the file ends.
    std::string_view at(std::uint64_t offset, std::size_t length) {
        if (offset < start || offset + length > start + bytes.size()) fill(offset);
        return std::string_view(bytes).substr(std::min<std::uint64_t>(offset - start, bytes.size()));
    }

  private:
    void fill(std::uint64_t offset) {
        bool is_next = !bytes.empty() && offset >= start && offset - start < bytes.size() + BUFFER_BYTES;
        bytes.resize(is_next ? BUFFER_BYTES : FIRST_BYTES);
        start = offset;
        bool is_there = !std::fseek(file.get(), static_cast<long>(offset), SEEK_SET);
        bytes.resize(is_there ? std::fread(bytes.data(), 1, bytes.size(), file.get()) : 0);
    }
};

std::optional<reader> reader::of_file(const std::string &path) {
    std::FILE *file = std::fopen(path.c_str(), "rb");
    if (!file) return std::nullopt;
    reader made;
    made.file_ = std::make_shared<buffered>(buffered{{file, std::fclose}});
    // The reader has a buffer of its own.
    std::setvbuf(file, nullptr, _IONBF, 0);
    if (std::fseek(file, 0, SEEK_END)) return std::nullopt;
    long size = std::ftell(file);
    if (size < 0) return std::nullopt;
    made.size_ = static_cast<std::uint64_t>(size);
    return made;
}

reader reader::of_bytes(std::string bytes) {
    reader made;
    made.size_ = bytes.size();
    made.bytes_ = std::make_shared<const std::string>(std::move(bytes));
    return made;
}

reader reader::part(std::uint64_t offset, std::uint64_t length) const {
    reader part = *this;
    offset = std::min(offset, size_);
    part.start_ = start_ + offset;
    part.size_ = std::min(length, size_ - offset);
    return part;
}

std::string reader::text(std::uint64_t offset, std::size_t length) const {
    if (offset >= size_) return {};
    length = static_cast<std::size_t>(std::min<std::uint64_t>({length, 16, size_ - offset}));
    if (bytes_) return bytes_->substr(static_cast<std::size_t>(start_ + offset), length);
    return std::string(file_->at(start_ + offset, length).substr(0, length));
}

std::optional<std::uint32_t> reader::number(std::uint64_t offset, int bytes, order order) const {
    std::string text = this->text(offset, static_cast<std::size_t>(bytes));
    if (text.size() != static_cast<std::size_t>(bytes)) return std::nullopt;
    if (order == order::little) std::ranges::reverse(text);
    std::uint32_t number = 0;
    for (char byte : text) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
}
