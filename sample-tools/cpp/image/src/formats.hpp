// Parsers for the headers of images. Each function gets a file of its format and returns nothing if
// the header is cut off or impossible.

#pragma once

#include "cofferdam.hpp"
#include "reader.hpp"

struct image {
    std::string format;
    std::string media_type;
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::optional<std::int64_t> bits = {};
    std::optional<std::int64_t> channels = {};
    std::int64_t orientation = 1;
    std::int64_t frames = 1;

    static auto fields() {
        using cofferdam::field;
        return cofferdam::fields(field("format", &image::format, "Such as `PNG`."),
                                 field("media_type", &image::media_type, "Such as `image/png`."),
                                 field("width", &image::width, "Pixels as they are stored, before `orientation`."),
                                 field("height", &image::height, "Pixels as they are stored, before `orientation`."),
                                 field("bits", &image::bits, "Bits per channel, where the header says so."),
                                 field("channels", &image::channels, "Colours and transparency, where the header says so."),
                                 field("orientation", &image::orientation, "As in EXIF: 1 is upright, 5 to 8 swap width and height."),
                                 field("frames", &image::frames, "Pictures of an animation, or pages."));
    }
};

std::optional<image> read_png(const reader &file);
std::optional<image> read_jpeg(const reader &file);
std::optional<image> read_gif(const reader &file);
std::optional<image> read_webp(const reader &file);
std::optional<image> read_bmp(const reader &file);
std::optional<image> read_tiff(const reader &file);
std::optional<image> read_heif(const reader &file);

// Returns the orientation in EXIF data, which has the form of a TIFF file, or 1 if it is missing.
std::int64_t orientation_of(const reader &exif);
