// The tool `similar_lines`: finds lines or paragraphs that say nearly the same.

#pragma once

#include "cofferdam.hpp"

enum class unit { lines, paragraphs };
constexpr auto names_of(unit) { return std::array{std::pair{unit::lines, "lines"}, std::pair{unit::paragraphs, "paragraphs"}}; }

struct compared {
    std::optional<std::string> text;
    std::optional<std::string> file;
    ::unit unit = unit::lines;
    double similarity_min = 0.7;
    std::uint8_t shingle_size = 3;
    std::uint16_t characters_min = 12;
    bool ignore_case = true;
    std::uint16_t results_max = 100;

    static auto fields() {
        using cofferdam::defaulted, cofferdam::field;
        return cofferdam::fields(
            field("text", &compared::text, "The text, less than 1 MiB."),
            field("file", &compared::file, "A text file in a mount instead, such as `/data/notes.md`."),
            defaulted("unit", &compared::unit, "What is compared; an empty line ends a paragraph."),
            defaulted("similarity_min", &compared::similarity_min, "How similar they are at least, from 0.3 to 1."),
            defaulted("shingle_size", &compared::shingle_size, "How many characters the compared pieces have, 2 to 20."),
            defaulted("characters_min", &compared::characters_min, "Shorter lines or paragraphs are left out."),
            defaulted("ignore_case", &compared::ignore_case, "Whether A and a are the same, for A to Z."),
            defaulted("results_max", &compared::results_max, "Maximum number of results, 1 to 1000."));
    }
};

struct similar_place {
    std::int64_t line, last_line, like_line, like_last_line;
    double similarity;
    std::string text, like_text;

    static auto fields() {
        using cofferdam::field;
        return cofferdam::fields(
            field("line", &similar_place::line, "The line, or the first one of the paragraph, from 1."),
            field("last_line", &similar_place::last_line, "The last line of the paragraph."),
            field("like_line", &similar_place::like_line, "What it is most similar to, of what stands before it."),
            field("like_last_line", &similar_place::like_last_line, "The last line of that."),
            field("similarity", &similar_place::similarity, "The share of common pieces, 1 if all are."),
            field("text", &similar_place::text, "Its beginning."),
            field("like_text", &similar_place::like_text, "The beginning of the other."));
    }
};

struct similar_places {
    std::vector<similar_place> similar;
    std::int64_t found = 0;
    std::int64_t compared = 0;

    static auto fields() {
        using cofferdam::field;
        return cofferdam::fields(
            field("similar", &similar_places::similar, "The most similar first."),
            field("found", &similar_places::found, "How many there are, told or not."),
            field("compared", &similar_places::compared, "How many lines or paragraphs were long enough to be compared."));
    }
};

cofferdam::result<similar_places> similar_lines(const compared &given);
