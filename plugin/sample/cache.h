/* The cache of historical embeddings of one layer (Md Vasimuddin et al. 2022, "DistGNN-MB", section 3.2): rows that
 * other ranks computed in earlier batches, kept until they are too old, or until they are the oldest and the cache is
 * full.
 *
 * The vertices of the halo are numbered without gaps, so an array indexed by vertex has the row of each, and a search
 * is one look-up. Threads share searches and copies; one thread assigns rows to new vertices.
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
    int64_t         n, capacity, used; /* numbers of vertices of the halo, of rows, and of rows in use */
    struct gr_codec codec;
    int64_t         row_bytes;
    int32_t        *row_of; /* [n] row of each vertex, or GR_NOT_CACHED */
    int32_t        *vertex; /* [capacity] vertex of each row; -1 if the row is free */
    int64_t        *since;  /* [capacity] batch that stored each row */
    int32_t        *older; /* [capacity] row stored just before each row, or -1; in the same memory block as `vertex` */
    int32_t        *newer;
    uint8_t        *bytes;    /* [capacity x row_bytes] encoded rows */
    int32_t        *assigned; /* [most] row of each vertex in a gr_sample_cache_store() */
    int64_t         most;
    int32_t         first, last;     /* the oldest row and the newest, or -1 */
    int             has_no_messages; /* this rank computes the rows itself */

    struct gr_cache_counts counts;
};

/** The lifetime of rows. */
struct gr_cache_life {
    int64_t now, life;     /* the current batch, and the largest age of a row in batches */
    int     takes_expired; /* whether older rows are found too */
};

/** Make a cache for rows of `width` floats of `n` vertices, with `bits` bits for each element, in as many bytes as
 *  `rows` rows of floats take; up to `most` rows are stored at once. The budget counts its memory. \return OK;
 *  ERR_NOMEM. */
int32_t gr_sample_cache_init(struct gr_cache *cache, struct gr_budget *budget, int64_t n, int64_t rows, int64_t width,
                             int32_t bits, int64_t most, graft_error *error);
/** Forget all rows. */
void    gr_sample_cache_forget(struct gr_cache *cache);

/** Use the contents of `bytes`, `since`, `vertex`, `older` and `newer`, which the caller has replaced. Batches after
 *  `now` in `since` become `now`, and rows that are not encoded are not used; `row` is space for one row. */
void    gr_sample_cache_adopt(struct gr_cache *cache, int64_t now, float *row);
/** Assign row v to vertex v, for all vertices. The capacity must be n. */
void    gr_sample_cache_place_all(struct gr_cache *cache);
/** The sizes of `bytes`, and of `vertex` with `older` and `newer`, in words of 8 bytes. */
int64_t gr_sample_cache_words(const struct gr_cache *cache);
int64_t gr_sample_cache_place_words(const struct gr_cache *cache);
/** Find the first invalid record among `count` records. Returns its index, or `count`; `row` is space for one row. The
 *  record of a row that is not encoded is valid in a cache of received rows. */
int64_t gr_sample_cache_first_broken(const struct gr_cache *cache, const uint8_t *records, int64_t count, float *row);
/** Whether places[3 x capacity] is valid as `vertex`, `older` and `newer`. */
int     gr_sample_cache_can_place(struct gr_cache *cache, const int32_t *places);

/** Whether the cache has the row of a vertex; not counted as a search. */
int     gr_sample_cache_has(const struct gr_cache *cache, int64_t vertex, const struct gr_cache_life *life);
/** Set rows[i] to the row of vertex[i], or GR_NOT_CACHED. Returns the number of rows found. */
int64_t gr_sample_cache_find(struct gr_cache *cache, const int32_t *vertex, int64_t count,
                             const struct gr_cache_life *life, int threads, int32_t *rows);
/** Decode the rows into to[count x width]; GR_NOT_CACHED gives zeros. */
void    gr_sample_cache_load(const struct gr_cache *cache, const int32_t *rows, int64_t count, int threads, float *to);
/** Store from[count x width], the rows of `vertex`, which has no vertex twice. A row stored by a batch after `now` is
 *  kept. Rows that cannot be encoded, and received rows whose first element is NaN, are not stored. Returns the number
 *  of rows that are not stored for these reasons. */
int64_t gr_sample_cache_store(struct gr_cache *cache, const int32_t *vertex, int64_t count, const float *from,
                              int64_t now, int threads);
