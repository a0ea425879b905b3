/* The cache of historical embeddings of one layer (Md Vasimuddin et al. 2022, "DistGNN-MB", section 3.2): rows that
 * other ranks computed in earlier batches, kept until they are too old, or until they are the oldest and the cache is
 * full.
 *
 * The vertices of the halo have numbers without gaps, so a table over them has the place of each row, and a search is
 * one look-up. Threads share searches and copies; one thread assigns the places of new rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "codec/codec.h"

enum { GR_NOT_CACHED = -1 };

/** Counts since the cache was made. */
struct gr_cache_counts {
    int64_t searched, found; /* rows that batches needed, and rows that were found */
    int64_t expired;         /* rows that were not found because they are too old */
    int64_t ages, oldest;    /* the sum of the ages of found rows, in batches, and the largest */
    int64_t stored, evicted; /* rows received, and rows replaced by them */
};

struct gr_cache {
    int64_t         n, capacity, used; /* vertices of the halo; rows; rows in use */
    struct gr_codec codec;
    int64_t         row_bytes;
    int32_t        *row_of; /* [n] or GR_NOT_CACHED */
    int32_t        *vertex; /* [capacity] of each row; -1 if the row is free */
    int64_t        *since;  /* the batch that stored it */
    int32_t        *older;  /* rows in the order in which they were stored; these two arrays follow `vertex`: */
    int32_t        *newer;
    uint8_t        *bytes;    /* [capacity x row_bytes] */
    int32_t        *assigned; /* [most] rows of the vertices of one gr_sample_cache_store() */
    int64_t         most;
    int32_t         first, last;     /* the oldest row and the newest, or -1 */
    int             has_no_messages; /* this rank computed the rows */

    struct gr_cache_counts counts;
};

/** The lifetime of rows. */
struct gr_cache_life {
    int64_t now, life;     /* the batch, and the largest age */
    int     takes_expired; /* older rows are found too */
};

/** A cache for rows of `width` floats of `n` vertices, of `bits` bits each, in the bytes of `rows` rows of floats; up
 *  to `most` rows are stored at once. Its memory belongs to the budget. \return OK; ERR_NOMEM. */
int32_t gr_sample_cache_init(struct gr_cache *cache, struct gr_budget *budget, int64_t n, int64_t rows, int64_t width,
                             int32_t bits, int64_t most, graft_error *error);
/** Forget all rows. */
void    gr_sample_cache_forget(struct gr_cache *cache);

/** Use the contents of `bytes`, `since` and `vertex` with `older` and `newer`, which the caller has replaced. Numbers
 *  of batches above `now` become `now`, and rows without a code are not used; `row` is space for one row. */
void    gr_sample_cache_adopt(struct gr_cache *cache, int64_t now, float *row);
/** Assign row v to vertex v. The capacity is n. */
void    gr_sample_cache_place_all(struct gr_cache *cache);
/** The sizes of `bytes`, and of `vertex` with `older` and `newer`, in words of 8 bytes. */
int64_t gr_sample_cache_words(const struct gr_cache *cache);
int64_t gr_sample_cache_place_words(const struct gr_cache *cache);
/** The index of the first invalid record among `count` records, or `count`; `row` is space for one row. A record of a
 *  row without a code is valid in a cache with messages. */
int64_t gr_sample_cache_first_broken(const struct gr_cache *cache, const uint8_t *records, int64_t count, float *row);
/** Whether places[3 x capacity] is valid as `vertex`, `older` and `newer`. */
int     gr_sample_cache_can_place(struct gr_cache *cache, const int32_t *places);

/** Whether the cache has the row of a vertex; not counted as a search. */
int     gr_sample_cache_has(const struct gr_cache *cache, int64_t vertex, const struct gr_cache_life *life);
/** rows[i] = the place of the row of vertex[i], or GR_NOT_CACHED. Returns the number of rows found. */
int64_t gr_sample_cache_find(struct gr_cache *cache, const int32_t *vertex, int64_t count,
                             const struct gr_cache_life *life, int threads, int32_t *rows);
/** to[count x width] = the rows, or zeros for GR_NOT_CACHED. */
void    gr_sample_cache_load(const struct gr_cache *cache, const int32_t *rows, int64_t count, int threads, float *to);
/** Store from[count x width], the rows of `vertex`, which has no vertex twice. A later row of the vertex stays. Rows
 *  that no code can encode, and received rows whose first element is NaN, are not stored. Returns the number of these
 *  rows. */
int64_t gr_sample_cache_store(struct gr_cache *cache, const int32_t *vertex, int64_t count, const float *from,
                              int64_t now, int threads);
