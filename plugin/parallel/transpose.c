/* Transposes rows to slices of columns, and back.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/transpose.h"

#include "base/bfloat.h"
#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

/* -- memory ------------------------------------------------------------------------------------------------------- */

int32_t gr_parallel_transpose_init(const graft_context *context, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t n_layers, const int64_t rows[2], struct gr_transpose *t, graft_error *error)
{
    *t = (struct gr_transpose){ .context = context, .grid = grid, .n_layers = n_layers, .rows = { rows[0], rows[1] } };
    GR_TRY(gr_halo_messages_init(context, comm, 0, &t->messages, error));
    GR_TRY(GR_POOL_NEW(context, &t->pool, t->of_layer, n_layers, error));
    GR_TRY(GR_POOL_NEW(context, &t->pool, t->kept, 2 * (int64_t)n_layers * GR_SIDES * (comm->n_ranks + 1), error));
    for (int side = 0; side < GR_SIDES; side++) {
        GR_TRY(GR_POOL_NEW(context, &t->pool, t->start[side], comm->n_ranks + 1, error));
        GR_TRY(GR_POOL_NEW(context, &t->pool, t->spare[side], comm->n_ranks, error));
        t->messages.side[side].spare = t->spare[side];
    }
    return GRAFT_OK;
}

void gr_parallel_transpose_fini(struct gr_transpose *t)
{
    if (t->context == NULL) return;
    gr_halo_layers_fini(&t->layers);
    gr_halo_messages_fini(&t->messages);
    for (int i = 0; i < 2; i++) {
        gr_free(t->context, t->record[i]);
        gr_free(t->context, t->slice[i]);
    }
    gr_pool_fini(t->context, &t->pool);
    *t = (struct gr_transpose){ 0 };
}

/* Return the number of elements of the slice of a sum's input or result. */
static int64_t slice_elements(const struct gr_transpose *t, int64_t width, int of_result)
{
    return t->rows[of_result] * gr_parallel_grid_own_width(t->grid, width);
}

/* Return the largest number of records of one side: rows of other ranks in this slice, or rows of this rank in other
 * slices. */
static int64_t most_records(const struct gr_transpose *t, int64_t width)
{
    const int64_t own = gr_parallel_grid_rows_of(t->grid, t->grid->first + t->grid->column, t->grid->n_levels) * width;
    const int64_t others =
        gr_parallel_grid_rows(t->grid, t->grid->n_levels) * gr_parallel_grid_own_width(t->grid, width);

    return (own > others ? own : others) / GR_RECORD + t->grid->columns;
}

int64_t gr_parallel_transpose_need(const struct gr_transpose *t, int64_t width)
{
    const int64_t records = most_records(t, width), rows[GR_SIDES] = { records, records };

    return (GR_SIDES * records * GR_RECORD + slice_elements(t, width, 0) + slice_elements(t, width, 1)) *
               (int64_t)sizeof(float) +
           gr_halo_messages_need(&t->messages, rows, GR_RECORD, GRAFT_F32);
}

int64_t gr_parallel_transpose_bytes(const struct gr_transpose *t)
{
    if (t->context == NULL) return 0;
    return (GR_SIDES * t->records * GR_RECORD + t->elements[0] + t->elements[1]) * (int64_t)sizeof(float) +
           t->pool.bytes + gr_halo_messages_bytes(&t->messages) + gr_halo_layers_bytes(&t->layers);
}

/* Replace an array by a larger one, without copying its contents. */
static int32_t replace_floats(const struct gr_transpose *t, float **array, int64_t count, graft_error *error)
{
    gr_free(t->context, *array);
    *array = NULL;
    return GR_NEW(t->context, *array, count, error);
}

int32_t gr_parallel_transpose_reserve(struct gr_transpose *t, int64_t width, graft_error *error)
{
    const int64_t records = most_records(t, width);
    const int64_t rows[GR_SIDES] = { records, records };

    GR_TRY(gr_halo_messages_reserve(&t->messages, rows, GR_RECORD, GRAFT_F32, error));
    for (int i = 0; i < 2; i++) {
        const int64_t elements = slice_elements(t, width, i);

        if (records > t->records) GR_TRY(replace_floats(t, &t->record[i], records * GR_RECORD, error));
        if (elements <= t->elements[i]) continue;
        GR_TRY(replace_floats(t, &t->slice[i], elements, error));
        t->elements[i] = elements;
    }
    if (records > t->records) t->records = records;
    return GRAFT_OK;
}

/* -- records stored from step to step ----------------------------------------------------------------------------- */

/* Return the number of elements in the message between `rank` and q: rows of q if other_rows, else rows of `rank`. */
static int64_t elements_between(const struct gr_grid *grid, const struct gr_transposed *what, int32_t rank, int32_t q,
                                int other_rows)
{
    if (q == rank || q < grid->first || q >= grid->first + grid->columns) return 0;
    return gr_parallel_transpose_elements(grid, what, other_rows ? q : rank, other_rows ? rank : q);
}

/* Compute the first record of each rank, where messages have rows of the other rank (other_rows) or of this one; and
 * their padding in bytes, unless `spare` is NULL. */
static void lay_out_records(const struct gr_transpose *t, const struct gr_transposed *what, int other_rows,
                            int64_t *start, int64_t *spare)
{
    const int32_t rank = t->grid->first + t->grid->column;

    start[0] = 0;
    for (int32_t q = 0; q < t->messages.comm->n_ranks; q++) {
        const int64_t elements = elements_between(t->grid, what, rank, q, other_rows);

        start[q + 1] = start[q] + gr_chunk_count(elements, GR_RECORD);
        if (spare != NULL) spare[q] = ((start[q + 1] - start[q]) * GR_RECORD - elements) * (int64_t)sizeof(float);
    }
}

int32_t gr_parallel_transpose_layers_init(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                          graft_error *error)
{
    const int32_t   n_ranks = t->messages.comm->n_ranks;
    struct gr_comm *comm = t->messages.comm;
    int32_t         rc = gr_halo_layers_init(t->context, comm, 2 * t->n_layers, layers, error);

    for (int32_t i = 0; i < 2 * t->n_layers; i++) {
        const struct gr_turned_layer *of = &t->of_layer[i % t->n_layers];
        const int                     of_result = i / t->n_layers;
        const struct gr_transposed    what = { .prefix = of->prefix[of_result], .width = of->width };
        int64_t *const                sent = t->kept + (int64_t)i * GR_SIDES * (n_ranks + 1);
        const int64_t *const          start[GR_SIDES] = { sent, sent + n_ranks + 1 };
        int32_t                       here;

        lay_out_records(t, &what, of_result, sent, NULL);
        lay_out_records(t, &what, !of_result, sent + n_ranks + 1, NULL);
        here = gr_halo_layers_add(layers, i, start, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

int32_t gr_parallel_transpose_layers_reserve(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                             graft_error *error)
{
    for (int32_t i = 0; i < 2 * t->n_layers; i++)
        GR_TRY(gr_halo_layers_reserve(layers, i, GR_RECORD, GRAFT_F32, error));
    return GRAFT_OK;
}

int64_t gr_parallel_transpose_layers_need(const struct gr_transpose *t, const struct gr_halo_layers *layers)
{
    int64_t bytes = 0;

    for (int32_t i = 0; i < 2 * t->n_layers; i++) bytes += gr_halo_layers_need(layers, i, GR_RECORD, GRAFT_F32);
    return bytes;
}

/* -- rows of a rank in its group ---------------------------------------------------------------------------------- */

/* Rows of a rank that are also contiguous in its group: row r of the rank is row r + shift of the group. */
struct stretch {
    int64_t begin, end, shift;
};

/* Return the part of rows begin to end - 1 of a rank that is in a level. If it is empty, stretch.begin >=
 * stretch.end. */
static struct stretch stretch_of(const struct gr_grid *grid, int32_t rank, int32_t level, int64_t begin, int64_t end)
{
    const int64_t first = gr_parallel_grid_rows_of(grid, rank, level),
                  last = gr_parallel_grid_rows_of(grid, rank, level + 1);

    return (struct stretch){ .begin = begin > first ? begin : first,
                             .end = end < last ? end : last,
                             .shift = grid->place[(int64_t)rank * grid->n_levels + level] - first };
}

/* Copy rows begin to end - 1 of a rank between a matrix of its own rows and a matrix of the rows of the group. */
static void copy_levels(const struct gr_grid *grid, int32_t rank, int64_t begin, int64_t end, float *own, float *group,
                        int64_t columns, int to_group)
{
    for (int32_t level = 0; level < grid->n_levels; level++) {
        const struct stretch s = stretch_of(grid, rank, level, begin, end);
        float               *a, *b;

        if (s.begin >= s.end || columns == 0) continue;
        a = own + s.begin * columns;
        b = group + (s.begin + s.shift) * columns;
        memcpy(to_group ? b : a, to_group ? a : b, (uint64_t)((s.end - s.begin) * columns) * sizeof *a);
    }
}

/* -- loops over rows ---------------------------------------------------------------------------------------------- */

struct job {
    struct gr_transpose        *t;
    const struct gr_sum        *sum;
    const struct gr_transposed *what;
    int32_t                     rank, peer;      /* this rank, and the receiver of the message */
    int64_t                     columns;         /* columns of the slice of this rank */
    const int64_t              *start[GR_SIDES]; /* [n_ranks + 1] first record of each rank */
    float                      *received;        /* records from all ranks, of this transpose or stale */
};

static struct job transpose_job(struct gr_transpose *t, const struct gr_transposed *what, const struct gr_sum *sum)
{
    return (struct job){ .t = t,
                         .sum = sum,
                         .what = what,
                         .rank = t->grid->first + t->grid->column,
                         .columns = gr_parallel_grid_own_width(t->grid, what->width) };
}

static float *records_of(const struct job *job, enum gr_side side, int32_t rank)
{
    float *records = side == GR_RECEIVE ? job->received : job->t->record[GR_SEND];

    return records + job->start[side][rank] * GR_RECORD;
}

static void copy_part(const struct gr_sum *sum, int64_t row, int64_t first, int64_t n, float *to)
{
    if (n == 0) return;
    if (sum->x_type == GRAFT_F32) {
        memcpy(to, (const float *)sum->x + row * sum->stride + first, (uint64_t)n * sizeof *to);
        return;
    }
    for (int64_t j = 0; j < n; j++) to[j] = gr_bfloat_widen(((const uint16_t *)sum->x)[row * sum->stride + first + j]);
}

/* Copy the slice of rows of x that another rank receives. */
static void split_slice(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const int32_t     k = job->peer - job->t->grid->first;
    const int64_t     first = gr_parallel_grid_slice(job->t->grid, job->what->width, k);
    const int64_t     n = gr_parallel_grid_slice_width(job->t->grid, job->what->width, k);
    float *const      to = records_of(job, GR_SEND, job->peer);

    for (int64_t i = begin; i < end; i++)
        copy_part(job->sum, gr_parallel_linked_row(&job->t->grid->linked, i), first, n, to + i * n);
}

/* Copy the slice of rows of x that stays on this rank. */
static void keep_slice(void *arg, int64_t begin, int64_t end)
{
    const struct job     *job = arg;
    const struct gr_grid *grid = job->t->grid;
    const int64_t         first = gr_parallel_grid_slice(grid, job->what->width, grid->column);

    for (int32_t level = 0; level < grid->n_levels; level++) {
        const struct stretch s = stretch_of(grid, job->rank, level, begin, end);

        for (int64_t i = s.begin; i < s.end; i++)
            copy_part(job->sum, gr_parallel_linked_row(&grid->linked, i), first, job->columns,
                      job->t->slice[0] + (i + s.shift) * job->columns);
    }
}

/* The number of pieces in which each rank's rows are copied. */
enum { PIECES = 16 };

/* Copy a piece of the rows of another rank of the group from its records to the slice, or back. */
static void place_piece(const struct job *job, int32_t rank, int64_t piece, int to_group)
{
    const int64_t rows = gr_parallel_grid_rows_of(job->t->grid, rank, job->what->prefix);

    copy_levels(job->t->grid, rank, rows * piece / PIECES, rows * (piece + 1) / PIECES,
                records_of(job, to_group ? GR_RECEIVE : GR_SEND, rank), job->t->slice[!to_group], job->columns,
                to_group);
}

static void place_received(void *arg, int64_t piece, int64_t end)
{
    const struct job *job = arg;

    for (; piece < end; piece++) {
        const int32_t rank = job->t->grid->first + (int32_t)(piece / PIECES);

        if (rank != job->rank) place_piece(job, rank, piece % PIECES, 1);
    }
}

static void place_sent(void *arg, int64_t piece, int64_t end)
{
    const struct job *job = arg;

    for (; piece < end; piece++) place_piece(job, job->peer, piece, 0);
}

/* The arguments of add_stretches(), which adds rows of the slice to the rows of a rank. */
struct added {
    const struct gr_transpose *t;
    int32_t                    rank;
    int64_t                    columns;
    float                     *out;
};

static void add_stretches(void *arg, int64_t begin, int64_t end)
{
    const struct added   *a = arg;
    const struct gr_grid *grid = a->t->grid;

    for (int32_t level = 0; level < grid->n_levels; level++) {
        const struct stretch s = stretch_of(grid, a->rank, level, begin, end);
        const float         *from = a->t->slice[1] + s.shift * a->columns;

        for (int64_t i = s.begin * a->columns; i < s.end * a->columns; i++) a->out[i] += from[i];
    }
}

void gr_parallel_transpose_add_result(const struct gr_transpose *t, const struct gr_transposed *what, int32_t rank,
                                      float *out, struct gr_team team)
{
    const int64_t rows = gr_parallel_grid_rows_of(t->grid, rank, what->prefix);
    struct added  added = { t, rank, gr_parallel_grid_own_width(t->grid, what->width), out };

    gr_parallel_rows(team, rows * added.columns, rows, GR_ROWS_AT_ONCE, add_stretches, &added);
}

static void put_part(const struct gr_sum *sum, int64_t row, int64_t first, int64_t n, const float *from)
{
    const float scale = sum->scale != NULL ? sum->scale[row] : 1;
    float      *out = sum->out + row * sum->width + first;

    if (sum->add)
        for (int64_t j = 0; j < n; j++) out[j] += scale * from[j];
    else
        for (int64_t j = 0; j < n; j++) out[j] = scale * from[j];
}

/* Assemble rows of the result from their slices. */
static void join_columns(void *arg, int64_t begin, int64_t end)
{
    const struct job     *job = arg;
    const struct gr_grid *grid = job->t->grid;

    for (int32_t k = 0; k < grid->columns; k++) {
        const int64_t first = gr_parallel_grid_slice(grid, job->what->width, k),
                      n = gr_parallel_grid_slice_width(grid, job->what->width, k);
        const float *from = records_of(job, GR_RECEIVE, grid->first + k);

        if (k != grid->column)
            for (int64_t i = begin; i < end; i++)
                put_part(job->sum, gr_parallel_linked_row(&grid->linked, i), first, n, from + i * n);
    }
    for (int32_t level = 0; level < grid->n_levels; level++) {
        const struct stretch s = stretch_of(grid, job->rank, level, begin, end);
        const float *const from = job->what->make != NULL ? job->what->own : job->t->slice[1] + s.shift * job->columns;

        for (int64_t i = s.begin; i < s.end; i++)
            put_part(job->sum, gr_parallel_linked_row(&grid->linked, i),
                     gr_parallel_grid_slice(grid, job->what->width, grid->column), job->columns,
                     from + i * job->columns);
    }
}

/* Find the factor by which the self-loops of a vertex multiply its row of x. \return Whether it has self-loops. */
static int find_loops(const struct gr_transposed *what, int64_t row, float *factor)
{
    const float  *values = what->of_extrema ? NULL : what->local->values;
    const int64_t begin = what->local->row_ptr[row], end = what->local->row_ptr[row + 1];

    *factor = what->of_extrema && begin < end;
    for (int64_t e = begin; e < end && !what->of_extrema; e++) *factor += values != NULL ? values[e] : 1;
    return begin < end;
}

/* Compute the results of the lone rows begin to end - 1, from their self-loops. */
static void join_lone(void *arg, int64_t begin, int64_t end)
{
    enum { AT_ONCE = 64 };
    const struct job     *job = arg;
    const struct gr_grid *grid = job->t->grid;

    for (int64_t i = begin; i < end; i++) {
        const int64_t row = grid->linked.lone[i], width = job->what->width;
        float         factor = 0, some[AT_ONCE] = { 0 };
        const int     loops = row < grid->owned[job->what->given] && find_loops(job->what, row, &factor);

        for (int64_t j = 0; j < width; j += AT_ONCE) {
            const int64_t n = width - j < AT_ONCE ? width - j : AT_ONCE;

            if (loops) copy_part(job->sum, row, j, n, some);
            for (int64_t k = 0; k < n && loops; k++) some[k] *= factor;
            put_part(job->sum, row, j, n, some);
        }
    }
}

static void join_lone_rows(struct job *job, struct gr_team team)
{
    const struct gr_linked_rows *linked = &job->t->grid->linked;
    const int32_t                prefix = job->what->prefix;
    const int64_t lone = job->t->grid->owned[prefix] - gr_parallel_grid_rows_of(job->t->grid, job->rank, prefix);

    if (linked->lone != NULL) gr_parallel_rows(team, lone * job->what->width, lone, GR_ROWS_AT_ONCE, join_lone, job);
}

/* -- exchange ----------------------------------------------------------------------------------------------------- */

/* Pad the last record with its last element, which does not change the range of the record. */
static void fill_last_record(const struct job *job, int64_t count)
{
    float *record = records_of(job, GR_SEND, job->peer);

    for (int64_t i = count; i % GR_RECORD != 0; i++) record[i] = record[count - 1];
}

/* Encode the records for one rank. */
static void encode_records(void *arg, int64_t begin, int64_t end)
{
    const struct job *job = arg;
    const int64_t     first = job->start[GR_SEND][job->peer];

    gr_halo_messages_encode(job->t->exchange.messages, omp_get_thread_num(), first + begin, first + end);
}

/* Begin a transpose. to_rows: rows of other ranks are sent, and rows of this rank are received; else the opposite. */
static int32_t begin_transpose(struct job *job, const struct gr_transposed *what, int to_rows, struct gr_team team,
                               graft_error *error)
{
    struct gr_transpose *t = job->t;
    const int32_t        n_ranks = t->messages.comm->n_ranks;
    struct gr_exchange  *x = &t->exchange;
    const int32_t        kept = what->args.layer + (what->of_result ? t->n_layers : 0);

    *x = (struct gr_exchange){ .args = what->args, .messages = &t->messages };
    x->layer = what->stateless ? NULL : gr_halo_layers_find(&t->layers, kept, what->args.direction);
    lay_out_records(t, what, to_rows, t->start[GR_SEND], t->spare[GR_SEND]);
    lay_out_records(t, what, !to_rows, t->start[GR_RECEIVE], t->spare[GR_RECEIVE]);
    for (int side = 0; side < GR_SIDES; side++) {
        /* Use the starts of a layer with stored rows, because they do not change while its messages are in flight. */
        job->start[side] = x->layer != NULL ? x->layer->start[side] : t->start[side];
        GR_ASSERT(job->start[side][n_ranks] == t->start[side][n_ranks] && t->start[side][n_ranks] <= t->records);
    }
    x->smoothing = t->layers.smoothing;
    x->synchronous = what->synchronous;
    x->args.width = GR_RECORD;
    x->args.dtype = GRAFT_F32;
    x->args.second = to_rows;
    x->sent = (struct gr_rank_rows){ job->start[GR_SEND], t->record[GR_SEND] };
    x->received = (struct gr_rank_rows){ job->start[GR_RECEIVE], t->record[GR_RECEIVE] };
    return gr_halo_exchange_begin(x, team, error);
}

/* Pack, encode and send the message to job->peer. */
static int32_t send_records(struct job *job, int to_rows, struct gr_team team, graft_error *error)
{
    struct gr_messages *m = job->t->exchange.messages;
    const int64_t       count = elements_between(job->t->grid, job->what, job->rank, job->peer, to_rows);
    const int64_t      *start = job->start[GR_SEND] + job->peer, records = start[1] - start[0];
    const int64_t       rows = gr_parallel_grid_rows_of(job->t->grid, job->rank, job->what->prefix);

    if (count == 0) return GRAFT_OK;
    if (job->what->make != NULL)
        GR_TRY(job->what->make(job->what->make_arg, job->peer, records_of(job, GR_SEND, job->peer), error));
    else if (to_rows) gr_parallel_rows(team, count, PIECES, 1, place_sent, job);
    else gr_parallel_rows(team, count, rows, GR_ROWS_AT_ONCE, split_slice, job);
    fill_last_record(job, count);
    if (job->t->exchange.encodes)
        gr_parallel_rows(gr_halo_messages_team(m, team), count, records, GR_ROWS_AT_ONCE, encode_records, job);
    return gr_halo_messages_send_until(m, job->peer, team, error);
}

/* Pack and send the messages to one rank after the other, beginning after this rank: a message is in flight while the
 * next one is packed. */
static int32_t send_all_records(struct job *job, int to_rows, struct gr_team team, graft_error *error)
{
    struct gr_transpose  *t = job->t;
    const struct gr_grid *grid = t->grid;
    struct gr_exchange   *x = &t->exchange;
    const int64_t         rows = gr_parallel_grid_rows_of(grid, job->rank, job->what->prefix);

    for (int32_t k = 1; k < grid->columns && !x->is_repeat; k++) {
        job->peer = grid->first + (grid->column + k) % grid->columns;
        GR_TRY(send_records(job, to_rows, team, error));
        gr_comm_framed_poll(&x->messages->framed);
    }
    if (!to_rows) gr_parallel_rows(team, rows * job->columns, rows, GR_ROWS_AT_ONCE, keep_slice, job);
    if (job->what->make != NULL) GR_TRY(job->what->make(job->what->make_arg, job->rank, job->what->own, error));
    return gr_halo_exchange_send(&t->exchange, team, error);
}

int32_t gr_parallel_transpose_columns_begin(struct gr_transpose *t, const struct gr_transposed *what,
                                            const struct gr_sum *sum, struct gr_team team, graft_error *error)
{
    struct job    job = transpose_job(t, what, sum);
    const int32_t rc = begin_transpose(&job, what, 0, team, error);

    return rc == GRAFT_OK ? send_all_records(&job, 0, team, error) : rc;
}

int32_t gr_parallel_transpose_columns_end(struct gr_transpose *t, const struct gr_transposed *what,
                                          const struct gr_sum *sum, struct gr_team team, graft_error *error)
{
    struct job  job = transpose_job(t, what, sum);
    const void *received;

    GR_TRY(gr_halo_exchange_end(&t->exchange, team, &received, error));
    job.start[GR_RECEIVE] = t->exchange.received.start;
    job.received = (float *)(uintptr_t)received;
    gr_parallel_rows(team, gr_parallel_grid_rows(t->grid, what->prefix) * job.columns, PIECES * t->grid->columns, 1,
                     place_received, &job);
    return GRAFT_OK;
}

int32_t gr_parallel_transpose_to_rows(struct gr_transpose *t, const struct gr_transposed *what,
                                      const struct gr_sum *sum, struct gr_team team, graft_error *error)
{
    struct job    job = transpose_job(t, what, sum);
    const int64_t rows = gr_parallel_grid_rows_of(t->grid, job.rank, what->prefix);
    const void   *received;

    GR_TRY(begin_transpose(&job, what, 1, team, error));
    GR_TRY(send_all_records(&job, 1, team, error));
    GR_TRY(gr_halo_exchange_end(&t->exchange, team, &received, error));
    job.received = (float *)(uintptr_t)received;
    gr_parallel_rows(team, rows * what->width, rows, GR_ROWS_AT_ONCE, join_columns, &job);
    join_lone_rows(&job, team);
    return GRAFT_OK;
}
