#include "hashes.h"

#include <string.h>

typedef void compress_block(uint32_t *state, const uint8_t *block);

static uint32_t left(uint32_t word, int bits) { return word << bits | word >> (32 - bits); }
static uint32_t right(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

// FIPS 180-4.
static void compress_sha256(uint32_t *state, const uint8_t *block) {
    static const uint32_t K[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
        0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
        0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
        0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
        0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
        0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64];
    for (int at = 0; at < 16; at++) w[at] = big_endian(block + 4 * at);
    for (int at = 16; at < 64; at++) {
        uint32_t near = w[at - 15], far = w[at - 2];
        w[at] = w[at - 16] + (right(near, 7) ^ right(near, 18) ^ near >> 3) + w[at - 7] +
                (right(far, 17) ^ right(far, 19) ^ far >> 10);
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (int at = 0; at < 64; at++) {
        uint32_t first = h + (right(e, 6) ^ right(e, 11) ^ right(e, 25)) + ((e & f) ^ (~e & g)) + K[at] + w[at];
        uint32_t second = (right(a, 2) ^ right(a, 13) ^ right(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + first;
        d = c, c = b, b = a, a = first + second;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

static void compress_sha1(uint32_t *state, const uint8_t *block) {
    uint32_t w[80];
    for (int at = 0; at < 16; at++) w[at] = big_endian(block + 4 * at);
    for (int at = 16; at < 80; at++) w[at] = left(w[at - 3] ^ w[at - 8] ^ w[at - 14] ^ w[at - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int at = 0; at < 80; at++) {
        uint32_t mixed = at < 20 ? ((b & c) | (~b & d)) + 0x5a827999
                       : at < 40 ? (b ^ c ^ d) + 0x6ed9eba1
                       : at < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
                                 : (b ^ c ^ d) + 0xca62c1d6;
        uint32_t next = left(a, 5) + mixed + e + w[at];
        e = d, d = c, c = left(b, 30), b = a, a = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e;
}

// RFC 1321.
static void compress_md5(uint32_t *state, const uint8_t *block) {
    static const uint32_t K[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af,
        0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa,
        0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
        0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97,
        0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
        0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
    static const uint8_t TURNS[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t w[16];
    for (int at = 0; at < 16; at++) w[at] = little_endian(block + 4 * at);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    for (int at = 0; at < 64; at++) {
        int round = at / 16, word;
        uint32_t mixed;
        switch (round) {
        case 0: mixed = (b & c) | (~b & d), word = at; break;
        case 1: mixed = (d & b) | (~d & c), word = 5 * at + 1; break;
        case 2: mixed = b ^ c ^ d, word = 3 * at + 5; break;
        default: mixed = c ^ (b | ~d), word = 7 * at; break;
        }
        uint32_t next = b + left(a + mixed + K[at] + w[word % 16], TURNS[round][at % 4]);
        a = d, d = c, c = b, b = next;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

// Processes eight bytes at a time: `TABLES[n]` contains the checksums of a byte followed by n
// zeros. The 8 KiB of tables are quickly computed.
static uint32_t add_crc32(uint32_t crc, const uint8_t *data, size_t length) {
    static uint32_t tables[8][256];
    if (!tables[0][1]) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t made = byte;
            for (int bit = 0; bit < 8; bit++) made = made >> 1 ^ (made & 1 ? 0xedb88320 : 0);
            tables[0][byte] = made;
        }
        for (int zeros = 1; zeros < 8; zeros++)
            for (int byte = 0; byte < 256; byte++)
                tables[zeros][byte] = tables[zeros - 1][byte] >> 8 ^ tables[0][tables[zeros - 1][byte] & 255];
    }
    for (; length >= 8; length -= 8, data += 8) {
        uint32_t low = crc ^ little_endian(data), high = little_endian(data + 4);
        crc = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
              tables[3][high & 255] ^ tables[2][high >> 8 & 255] ^ tables[1][high >> 16 & 255] ^ tables[0][high >> 24];
    }
    for (; length; length--, data++) crc = crc >> 8 ^ tables[0][(crc ^ *data) & 255];
    return crc;
}

static void add(block_hash *hash, compress_block *compress, const uint8_t *data, size_t length) {
    size_t held = hash->length % 64;
    hash->length += length;
    if (held) {
        size_t taken = length < 64 - held ? length : 64 - held;
        memcpy(hash->block + held, data, taken);
        if (held + taken < 64) return;
        compress(hash->state, hash->block);
        data += taken, length -= taken;
    }
    for (; length >= 64; length -= 64, data += 64) compress(hash->state, data);
    if (length) memcpy(hash->block, data, length);
}

static void write_hex(char *to, const uint32_t *words, int count, int swapped) {
    static const char DIGITS[] = "0123456789abcdef";
    for (int at = 0; at < 8 * count; at++) {
        int digit = swapped ? (at % 8) ^ 1 : 7 - at % 8;
        to[at] = DIGITS[words[at / 8] >> (4 * digit) & 15];
    }
    to[8 * count] = 0;
}

static void finish(block_hash *hash, compress_block *compress, char *hex, int words, int is_little_endian) {
    static const uint8_t END[64] = {0x80};
    uint64_t bits = hash->length * 8;
    size_t held = hash->length % 64;
    uint8_t length[8];
    for (int at = 0; at < 8; at++) length[at] = (uint8_t)(bits >> 8 * (is_little_endian ? at : 7 - at));
    add(hash, compress, END, held < 56 ? 56 - held : 120 - held);
    add(hash, compress, length, 8);
    write_hex(hex, hash->state, words, is_little_endian);
}

void hashes_start(hashes *hashes, unsigned wanted) {
    *hashes = (struct hashes){
        .wanted = wanted,
        .sha256.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
        .sha1.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0},
        .md5.state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476},
        .crc32 = UINT32_MAX,
    };
}

void hashes_add(hashes *hashes, const uint8_t *data, size_t length) {
    if (hashes->wanted & SHA256) add(&hashes->sha256, compress_sha256, data, length);
    if (hashes->wanted & SHA1) add(&hashes->sha1, compress_sha1, data, length);
    if (hashes->wanted & MD5) add(&hashes->md5, compress_md5, data, length);
    if (hashes->wanted & CRC32) hashes->crc32 = add_crc32(hashes->crc32, data, length);
}

void hashes_finish(hashes *hashes, checksums *made) {
    *made = (checksums){0};
    uint32_t crc32 = ~hashes->crc32;
    if (hashes->wanted & SHA256) finish(&hashes->sha256, compress_sha256, made->sha256, 8, 0);
    if (hashes->wanted & SHA1) finish(&hashes->sha1, compress_sha1, made->sha1, 5, 0);
    if (hashes->wanted & MD5) finish(&hashes->md5, compress_md5, made->md5, 4, 1);
    if (hashes->wanted & CRC32) write_hex(made->crc32, &crc32, 1, 0);
}

const char *checksum_of(const checksums *made, unsigned kind) {
    return kind == SHA256 ? made->sha256 : kind == SHA1 ? made->sha1 : kind == MD5 ? made->md5 : made->crc32;
}

unsigned kind_of_length(size_t digits) {
    return digits == 64 ? SHA256 : digits == 40 ? SHA1 : digits == 32 ? MD5 : digits == 8 ? CRC32 : 0;
}
