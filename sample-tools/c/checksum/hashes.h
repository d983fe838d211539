// SHA-256, SHA-1, MD5 and CRC-32, computed incrementally.

#ifndef HASHES_H
#define HASHES_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256 = 1, SHA1 = 2, MD5 = 4, CRC32 = 8, ALL_HASHES = 15 };

// Maximum length of a hexadecimal checksum with its NUL.
enum { HEX_BYTES_MAX = 65 };

typedef struct block_hash {
    uint32_t state[8];
    uint8_t block[64];
    uint64_t length;
} block_hash;

// State of the checksums in `wanted`.
typedef struct hashes {
    unsigned wanted;
    block_hash sha256, sha1, md5;
    uint32_t crc32;
} hashes;

// Checksums in lower-case hexadecimal; empty if they were not wanted.
typedef struct checksums {
    char sha256[HEX_BYTES_MAX], sha1[HEX_BYTES_MAX], md5[HEX_BYTES_MAX], crc32[HEX_BYTES_MAX];
} checksums;

void hashes_start(hashes *hashes, unsigned wanted);
void hashes_add(hashes *hashes, const uint8_t *data, size_t length);
void hashes_finish(hashes *hashes, checksums *made);

// Returns the checksum of one kind.
const char *checksum_of(const checksums *made, unsigned kind);

// Returns the kind of a checksum by its number of hexadecimal digits, or 0.
unsigned kind_of_length(size_t digits);

#endif
