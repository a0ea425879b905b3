/* Computes ranks in blocks of pairs, so that memory does not depend on the number of pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ranking.h"

enum { BLOCK = 4096, ATTEMPTS = 100, OTHERS = 2 };

/* A block of pairs. Row i is for one pair, whose first vertex is first[i]. Its entries are the second vertex and the
 * other vertices. */
struct block {
    int64_t  rows;
    int32_t *first;
    int64_t *row_ptr;
    int32_t *col_idx;
    float   *x; /* [rows x width] scaled embeddings of the first vertices */
    float   *score;
};

/* Draw a vertex without an edge to u. If u has nearly all edges, it may be any vertex. */
static int32_t draw_other(const struct host *host, const struct split *split, int32_t u, int64_t pair, int32_t number)
{
    int32_t v = u;

    for (uint64_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        v = draw_vertex(host->seed + OTHERS, (uint64_t)pair, (uint64_t)number * ATTEMPTS + attempt, split->n);
        if (v != u && !has_pair(split->whole, u, v)) break;
    }
    return v;
}

static int32_t score_block(struct host *host, struct decoder *decoder, struct block *b, int32_t width_of_row,
                           const float *z)
{
    const int64_t     width = decoder->width;
    const graft_dense scaled = graft_dense_in(GRAFT_F32, decoder->n, width, decoder->scaled);
    const graft_dense x = graft_dense_in(GRAFT_F32, b->rows, width, b->x);
    const graft_dense y = graft_dense_in(GRAFT_F32, decoder->n, width, z);
    const graft_dense score = graft_dense_in(GRAFT_F32, b->rows * width_of_row, 1, b->score);
    graft_context    *context = host->api->context;
    graft_csr         csr = GRAFT_INIT(graft_csr);
    graft_index       index = GRAFT_INIT(graft_index);
    graft_matrix     *pairs = NULL;
    int32_t           rc;

    csr.index_type = index.index_type = GRAFT_I32;
    csr.n_rows = index.count = b->rows;
    csr.n_cols = decoder->n;
    csr.row_ptr = b->row_ptr;
    csr.col_idx = b->col_idx;
    index.data = b->first;
    rc = host->edge->gather_rows(context, &scaled, &index, &x, 0, &host->error);
    if (rc >= 0) rc = host->mxm->matrix_create(context, &csr, 1, &pairs, &host->error);
    if (rc >= 0) rc = host->edge->sddmm(context, pairs, &x, &y, &score, 0, &host->error);
    host->mxm->matrix_destroy(pairs);
    return rc;
}

static void add_ranks(const struct block *b, int32_t width_of_row, struct ranking *sum)
{
    for (int64_t i = 0; i < b->rows; i++) {
        const float *score = &b->score[i * width_of_row];
        double       rank = 1;

        for (int32_t j = 1; j < width_of_row; j++) rank += score[j] > score[0] ? 1 : score[j] == score[0] ? 0.5 : 0;
        sum->mrr += 1 / rank;
        sum->hits_1 += rank <= 1;
        sum->hits_3 += rank <= 3;
        sum->hits_10 += rank <= 10;
    }
}

static int32_t rank_blocks(struct host *host, struct decoder *decoder, const struct split *split, enum part part,
                           int32_t others, const float *z, struct block *b, struct ranking *sum)
{
    const struct pairs *pairs = &split->part[part];
    int32_t             rc = GRAFT_OK;

    for (int32_t u = 0; u < split->n && rc >= 0; u++) {
        for (int64_t e = pairs->begin[u]; e < pairs->begin[u + 1] && rc >= 0; e++) {
            int32_t *row = &b->col_idx[b->rows * (1 + others)];

            b->first[b->rows++] = u;
            *row++ = pairs->target[e];
            for (int32_t j = 0; j < others; j++) *row++ = draw_other(host, split, u, e, j);
            if (b->rows < BLOCK && e + 1 < pairs->begin[split->n]) continue;
            rc = score_block(host, decoder, b, 1 + others, z);
            if (rc >= 0) add_ranks(b, 1 + others, sum);
            b->rows = 0;
        }
    }
    return rc;
}

int32_t rank_pairs(struct host *host, struct decoder *decoder, const struct split *split, enum part part,
                   int32_t others, const float *z, struct ranking *ranking)
{
    const double   count = (double)count_pairs(split, part);
    struct ranking sum = { 0 };
    struct block   b = {
          .first = host_alloc(host, BLOCK, sizeof *b.first),
          .row_ptr = host_alloc(host, BLOCK + 1, sizeof *b.row_ptr),
          .col_idx = host_alloc(host, (int64_t)BLOCK * (1 + others), sizeof *b.col_idx),
          .x = host_alloc(host, BLOCK * decoder->width, sizeof *b.x),
          .score = host_alloc(host, (int64_t)BLOCK * (1 + others), sizeof *b.score),
    };
    int32_t rc = host->error.code;

    if (rc >= 0) {
        for (int64_t i = 0; i <= BLOCK; i++) b.row_ptr[i] = i * (1 + others);
        decoder_scale(decoder, z);
        rc = rank_blocks(host, decoder, split, part, others, z, &b, &sum);
    }
    if (rc >= 0)
        *ranking = (struct ranking){ sum.mrr / count, sum.hits_1 / count, sum.hits_3 / count, sum.hits_10 / count };
    free(b.first);
    free(b.row_ptr);
    free(b.col_idx);
    free(b.x);
    free(b.score);
    return rc;
}
