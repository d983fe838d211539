// The tool `checksum`: the checksums of one file.

#include "files.h"

#include <ctype.h>
#include <string.h>

static const struct {
    const char *name;
    unsigned kind;
} ALGORITHMS[] = {{"sha256", SHA256}, {"sha1", SHA1}, {"md5", MD5}, {"crc32", CRC32}};

enum { ALGORITHM_COUNT = sizeof ALGORITHMS / sizeof *ALGORITHMS };

// Extracts the digits from a pasted checksum, which may have blanks around it and a prefix such as
// `sha256:`. Returns their kind, or 0.
static unsigned read_expected(cofferdam_string given, char *digits) {
    const char *at = given.data, *end = given.data + given.length;
    const char *colon = memchr(at, ':', given.length);
    if (colon) at = colon + 1;
    while (at < end && isspace((unsigned char)*at)) at++;
    while (end > at && isspace((unsigned char)end[-1])) end--;
    size_t length = (size_t)(end - at);
    if (length >= HEX_BYTES_MAX) return 0;
    for (size_t digit = 0; digit < length; digit++) {
        if (!isxdigit((unsigned char)at[digit])) return 0;
        digits[digit] = (char)tolower((unsigned char)at[digit]);
    }
    digits[length] = 0;
    return kind_of_length(length);
}

COFFERDAM_TOOL(checksum,
               "Computes SHA-256, SHA-1, MD5 and CRC-32 of a file of a mount, up to 256 MiB. With `expected`, `matches` says whether the "
               "file is the one that was meant.",
               COFFERDAM_TITLE("Checksums of a file"), COFFERDAM_READ_ONLY, COFFERDAM_IDEMPOTENT, COFFERDAM_IS_OPEN_WORLD(false),
               COFFERDAM_STRING(file, "The file in a mount, such as `/data/app.zip`."),
               COFFERDAM_VALUE_OR(algorithms, "Which checksums are computed.",
                                  COFFERDAM_SCHEMA({"type": "array", "minItems": 1, "maxItems": 4,
                                                    "items": {"type": "string", "enum": ["sha256", "sha1", "md5", "crc32"]}}),
                                  "[\"sha256\"]"),
               COFFERDAM_STRING_OPTIONAL(expected, "A checksum in hexadecimal that the file should have; its length tells which."),
               COFFERDAM_OUTPUT(COFFERDAM_SCHEMA({
                   "type": "object",
                   "properties": {
                       "bytes": {"type": "integer", "description": "The size of the file."},
                       "sha256": {"type": "string", "description": "In hexadecimal, as the others."},
                       "sha1": {"type": "string", "description": "Broken: no proof against a forger."},
                       "md5": {"type": "string", "description": "Broken: no proof against a forger."},
                       "crc32": {"type": "string", "description": "Finds accidents, and no forger."},
                       "matches": {"type": "boolean", "description": "Whether the file has the `expected` checksum."}
                   },
                   "required": ["bytes"]
               }))) {
    char path[PATH_BYTES_MAX], digits[HEX_BYTES_MAX];
    cofferdam_result wrong = read_path(arguments->file, path);
    if (wrong.failure) return wrong;
    unsigned wanted = 0, expected = 0;
    for (const cofferdam_value *item = cofferdam_first(arguments->algorithms); item; item = cofferdam_next(item))
        for (int at = 0; at < ALGORITHM_COUNT; at++)
            if (cofferdam_equals(cofferdam_text_of(item), ALGORITHMS[at].name)) wanted |= ALGORITHMS[at].kind;
    if (arguments->expected.data && !(expected = read_expected(arguments->expected, digits)))
        return cofferdam_suggest(cofferdam_fail("`expected` is not a checksum that is known here"),
                                 "pass 64 hexadecimal digits of SHA-256, 40 of SHA-1, 32 of MD5 or 8 of CRC-32");
    budget budget = {0};
    checksums made;
    uint64_t bytes;
    read_end end = read_checksums(path, wanted | expected, &budget, &made, &bytes);
    if (end != READ_ALL) return fail_for_file(end, path);
    cofferdam_writer json = {0};
    cofferdam_begin_object(&json, NULL);
    cofferdam_add_integer(&json, "bytes", (int64_t)bytes);
    for (int at = 0; at < ALGORITHM_COUNT; at++)
        if ((wanted | expected) & ALGORITHMS[at].kind)
            cofferdam_add_text(&json, ALGORITHMS[at].name, checksum_of(&made, ALGORITHMS[at].kind));
    if (expected) cofferdam_add_boolean(&json, "matches", !strcmp(checksum_of(&made, expected), digits));
    return cofferdam_json(&json);
}

COFFERDAM_DECLARE(verify_checksums);
COFFERDAM_DECLARE(find_duplicates);

COFFERDAM_PLUGIN(checksum, verify_checksums, find_duplicates)
