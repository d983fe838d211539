// The tool `closest`: finds which of many names is intended.

#pragma once

#include "cofferdam.hpp"

struct misspelled {
    std::string name;
    std::vector<std::string> names;
    std::uint8_t matches_max = 3;
    double score_min = 0.5;
    bool ignore_case = true;

    static auto fields() {
        using cofferdam::defaulted, cofferdam::field;
        return cofferdam::fields(
            field("name", &misspelled::name, "What was written, at most 200 characters."),
            field("names", &misspelled::names, "The names that there are, at most 10000 of 200 characters."),
            defaulted("matches_max", &misspelled::matches_max, "Maximum number of matches, 1 to 50."),
            defaulted("score_min", &misspelled::score_min, "Only names of at least this score, from 0 to 1."),
            defaulted("ignore_case", &misspelled::ignore_case, "Whether A and a are the same, for A to Z."));
    }
};

struct match {
    std::string name;
    std::int64_t index;
    std::int64_t distance;
    double score;

    static auto fields() {
        using cofferdam::field;
        return cofferdam::fields(
            field("name", &match::name, "One of the names."), field("index", &match::index, "Its index in `names`, from 0."),
            field("distance", &match::distance, "How many characters are inserted, deleted, replaced or swapped."),
            field("score", &match::score, "1 if nothing is different, 0 if all is."));
    }
};

struct closest_matches {
    std::vector<match> matches;
    bool unique = false;

    static auto fields() {
        using cofferdam::field;
        return cofferdam::fields(
            field("matches", &closest_matches::matches, "The best one first; empty if no name is close."),
            field("unique", &closest_matches::unique, "Whether the first is closer than all others."));
    }
};

cofferdam::result<closest_matches> closest(const misspelled &given);
