// The tools `closest` for names and `similar_lines` for texts.

#include "closest.hpp"
#include "similar.hpp"

COFFERDAM_PLUGIN(
    cofferdam::tool<closest>("closest", "Finds which of many names is meant by one that may be misspelled, such as of an option, a file or a "
                                        "column. By Damerau-Levenshtein distance, with a score for each.")
        .title("Closest name")
        .read_only()
        .idempotent()
        .open_world(false)
        .output_schema(),
    cofferdam::tool<similar_lines>("similar_lines", "Finds lines or paragraphs of a text that are nearly the same as an earlier one, with line "
                                                    "numbers and how similar they are (Jaccard similarity of pieces of a few characters).")
        .title("Similar lines")
        .read_only()
        .idempotent()
        .open_world(false)
        .output_schema())
