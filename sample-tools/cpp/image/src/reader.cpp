#include "reader.hpp"

#include <algorithm>

std::optional<reader> reader::of_file(const std::string &path) {
    std::FILE *file = std::fopen(path.c_str(), "rb");
    if (!file) return std::nullopt;
    reader made;
    made.file_ = {file, std::fclose};
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
    std::string text(length, '\0');
    if (std::fseek(file_.get(), static_cast<long>(start_ + offset), SEEK_SET)) return {};
    text.resize(std::fread(text.data(), 1, length, file_.get()));
    return text;
}

std::optional<std::uint32_t> reader::number(std::uint64_t offset, int bytes, order order) const {
    std::string text = this->text(offset, static_cast<std::size_t>(bytes));
    if (text.size() != static_cast<std::size_t>(bytes)) return std::nullopt;
    if (order == order::little) std::ranges::reverse(text);
    std::uint32_t number = 0;
    for (char byte : text) number = number << 8 | static_cast<unsigned char>(byte);
    return number;
}
