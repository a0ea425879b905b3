/* Packs and unpacks the levels of a quantized row: 8 / bits elements in a byte, from equal parts of the row (codec.h).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/draws.h"
#include "codec/lanes.h"

static const uint32_t SIGN_BIT = UINT32_C(1) << 31;

/** The rounding of an element to a level q, which stands for zero + q step. NEAREST: the nearest level; STOCHASTIC: one
 *  of the two nearest, chosen by the random bits of (key, row); SIGNS: 1 if the element is not negative, else 0. */
enum rounding { NEAREST, STOCHASTIC, SIGNS };

struct scale {
    vector   zero, inverse, last;
    uint64_t key, row;
};

/** The bytes of levels for which one call of gr_draw() draws random bits. */
enum { DRAWN_BYTES = 64 };

/* Rotate the random word that four elements share, so that it begins at another byte for each. So the upper byte of
 * every draw is its own; the lower bytes, on which a level hardly ever depends, are shared. */
static inline words rotate_bytes(words w, int byte)
{
    return byte == 0 ? w : w << 8 * byte | w >> (32 - 8 * byte);
}

/* Compute the levels of one register. 22 bits of a draw are used, which leaves 8 bits above them for the level.
 * Rounding errors may place the greatest element a little above the last level; least() keeps a draw from lifting it
 * further. */
static inline words levels_of(const struct scale *s, enum rounding rounding, vector v, words draw)
{
    const vector place = (v - s->zero) * s->inverse;

    if (rounding == SIGNS) return (words)(v >= 0) & 1;
    if (rounding == NEAREST) return (words) __builtin_convertvector(place + 0.5f, lanes);
    return ((words) __builtin_convertvector(least(place, s->last) * 0x1p22f, lanes) + (draw >> 10)) >> 22;
}

/** Bytes begin .. end-1 of a row, and their random bits: element i of byte begin + k uses word k + i / 4 * next,
 *  rotated to begin at byte first + i % 4. */
struct byte_range {
    int64_t         begin, end, next;
    const uint32_t *draws;
    int             first;
};

static inline void write_range(const struct scale *s, enum rounding rounding, const float *x, int64_t width, int bits,
                               struct byte_range part, uint8_t *out)
{
    const int64_t m = (width * bits + 7) / 8;

    for (int64_t at = part.begin; at < part.end; at += LANES) {
        words byte = { 0 }, draw = { 0 };

        for (int i = 0; i < 8 / bits; i++) {
            const int64_t j = i * m + at;
            const vector  v = load_floats(x + j, width - j, s->zero[0]);

            if (rounding == STOCHASTIC && i % 4 == 0)
                draw = *(const words_at *)(part.draws + i / 4 * part.next + at - part.begin);
            byte |= levels_of(s, rounding, v, rotate_bytes(draw, (part.first + i) % 4)) << i * bits;
        }
        store_lane_bytes(out + at, part.end - at, byte);
    }
}

/** Quantize a row. `bits` is a compile-time constant in every call. Four elements share a random word: the elements of
 *  one byte, or, with fewer elements in a byte, the elements at the same place in each part of the row. A byte of eight
 *  elements uses two words. */
static inline void write_levels(const struct scale *s, enum rounding rounding, const float *x, int64_t width, int bits,
                                uint8_t *out)
{
    const int64_t                 m = (width * bits + 7) / 8;
    const int                     parts = bits == 1 ? 1 : bits / 2, sets = bits == 1 ? 2 : 1;
    const int64_t                 length = (m + parts - 1) / parts;
    _Alignas(WIDE_BYTES) uint32_t draws[2 * DRAWN_BYTES + LANES];

    if (rounding != STOCHASTIC) {
        write_range(s, rounding, x, width, bits, (struct byte_range){ .end = m }, out);
        return;
    }
    for (int64_t at = 0; at < length; at += DRAWN_BYTES) {
        const int64_t count = length - at < DRAWN_BYTES ? length - at : DRAWN_BYTES;

        gr_draw(s->key, s->row, (uint64_t)(sets * at / 4), (int)(sets * count + 3) / 4, draws);
        for (int p = 0; p < parts; p++) {
            const int64_t begin = p * length + at, end = begin + count < m ? begin + count : m;

            write_range(s, rounding, x, width, bits, (struct byte_range){ begin, end, count, draws, p * 8 / bits },
                        out);
        }
    }
}

/** Read the levels of a row. A store may write beyond the elements of its bytes; a later store overwrites these. */
static inline void read_levels(const uint8_t *in, int64_t width, int bits, float zero, float step, float *x)
{
    const int64_t m = (width * bits + 7) / 8, whole = m / LANES * LANES;
    const words   rest = whole < m ? load_bytes(in + whole, m - whole) : (words){ 0 };

    for (int i = 0; i < 8 / bits; i++) {
        for (int64_t at = 0; at < m; at += LANES) {
            const words   byte = at < whole ? load_bytes(in + at, LANES) : rest;
            const words   level = byte >> i * bits & ((1 << bits) - 1);
            const int64_t j = i * m + at;

            store_lane_floats(x + j, width - j, zero + step * __builtin_convertvector((lanes)level, vector));
        }
    }
}
