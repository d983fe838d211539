// The tools `image_info`, which describes one image by its header, and `list_images`, which
// describes those of a directory.

#include "base64.hpp"
#include "formats.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

using cofferdam::fail;
using cofferdam::field;
using cofferdam::result;

namespace {

struct format {
    std::size_t offset;
    std::string_view magic;
    std::optional<image> (*read)(const reader &);
};

constexpr format FORMATS[] = {
    {0, {"\x89PNG\r\n\x1A\n", 8}, read_png},
    {0, {"\xFF\xD8\xFF", 3}, read_jpeg},
    {0, "GIF8", read_gif},
    {8, "WEBP", read_webp},
    {0, "BM", read_bmp},
    {0, {"II*\0", 4}, read_tiff},
    {0, {"MM\0*", 4}, read_tiff},
    {8, "avif", read_heif},
    {8, "avis", read_heif},
    {8, "heic", read_heif},
    {8, "heix", read_heif},
    {8, "heim", read_heif},
    {8, "mif1", read_heif},
};

result<image> look_at(const reader &file, const std::string &name) {
    for (const format &format : FORMATS) {
        if (!file.has(format.offset, format.magic)) continue;
        auto found = format.read(file);
        if (found) return *found;
        if (file.has_too_many_pieces())
            return fail(name + " has more than " + std::to_string(reader::PIECES_MAX) + " pieces, which is the maximum")
                .suggest("have it saved again by a program for images");
        return fail(name + " starts like an image, and its header is cut off or damaged").suggest("pass the whole file");
    }
    return fail(name + " is not an image of a known format").suggest("pass PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF or HEIC");
}

struct one_image {
    std::optional<std::string> file;
    std::optional<std::string> base64;

    static auto fields() {
        return cofferdam::fields(field("file", &one_image::file, "The path in a mount, such as `/data/cat.png`."),
                                 field("base64", &one_image::base64, "The image itself in base64, instead of a file."));
    }
};

result<image> image_info(const one_image &given) {
    if (given.file.has_value() == given.base64.has_value())
        return fail("one of `file` and `base64` is needed").suggest("pass `file` for an image in a mount, else `base64`");
    if (given.file) {
        auto file = reader::of_file(*given.file);
        if (file) return look_at(*file, "`" + *given.file + "`");
        return fail("`" + *given.file + "` cannot be opened: " + std::strerror(errno)).suggest("call `list_images` to see what is there");
    }
    auto bytes = from_base64(*given.base64);
    if (!bytes) return fail("`base64` is not base64").suggest("pass the bytes of the image in base64, without line breaks");
    return look_at(reader::of_bytes(std::move(*bytes)), "`base64`");
}

struct directory {
    std::string store;
    std::string directory = "";
    bool recursive = false;

    static auto fields() {
        return cofferdam::fields(
            field("store", &directory::store, "The name of the mount, such as `data`."),
            cofferdam::defaulted("directory", &directory::directory, "The directory in it; empty for the root."),
            cofferdam::defaulted("recursive", &directory::recursive, "Whether directories below are looked at too."));
    }
};

struct listed {
    std::string path;
    std::optional<::image> image;
    std::optional<std::string> problem;

    static auto fields() {
        return cofferdam::fields(field("path", &listed::path, "For `image_info`."),
                                 field("image", &listed::image, "What it is, if its header can be read."),
                                 field("problem", &listed::problem, "Why it cannot."));
    }
};

struct listing {
    std::vector<listed> images;
    bool truncated = false;

    static auto fields() {
        return cofferdam::fields(field("images", &listing::images, "By path."),
                                 field("truncated", &listing::truncated, "Whether there are more, left out by number or time."));
    }
};

constexpr std::size_t IMAGES_MAX = 200;

// Less than the time of the CPU that the host grants a call by default. Images with many pieces
// could take all of it.
constexpr std::chrono::seconds LISTING_TIME_MAX{5};

result<listing> list_images(const directory &given) {
    auto entries = cofferdam::files::list(given.store, given.directory, given.recursive,
                                          "**.{png,apng,jpg,jpeg,gif,webp,bmp,tif,tiff,avif,heic,heif}");
    if (!entries) return std::unexpected(entries.error());
    std::string folder = "/" + given.store + (given.directory.empty() ? "" : "/" + given.directory);
    listing listing;
    auto end = std::chrono::steady_clock::now() + LISTING_TIME_MAX;
    for (const auto &entry : *entries) {
        if (entry.is_directory) continue;
        listing.truncated = listing.images.size() == IMAGES_MAX || std::chrono::steady_clock::now() > end;
        if (listing.truncated) break;
        listed &one = listing.images.emplace_back(listed{folder + "/" + entry.name, {}, {}});
        auto info = image_info({.file = one.path, .base64 = {}});
        if (info) one.image = *info;
        else one.problem = info.error().message;
        cofferdam::call::progress(double(listing.images.size()), double(entries->size()));
    }
    return listing;
}

} // namespace

COFFERDAM_PLUGIN(
    cofferdam::tool<image_info>("image_info", "Says what an image is from its header: format, size in pixels, bits, orientation, and "
                                              "how many frames or pages. PNG, JPEG, GIF, WebP, BMP, TIFF, AVIF, HEIC.")
        .title("What an image is")
        .read_only()
        .open_world(false)
        .output_schema(),
    cofferdam::tool<list_images>("list_images", "Lists the images of a directory with what `image_info` says, at most 200.")
        .title("Images of a directory")
        .read_only()
        .open_world(false))
