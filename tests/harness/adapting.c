/* Runs the passes, the assignments of bit widths and the comparisons that harness/adapting.h declares.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/adapting.h"

#include "comm/compare_options.h"
#include "halo/halo.h"
#include "halo/options.h"
#include "oracle/oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 64 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

void adapting_fini(struct adapting_job *job)
{
    for (int p = 0; p < RANKS_MOST; p++)
        for (int l = 0; l < LANES; l++) {
            for (int side = 0; side < 2; side++) {
                free(job->seen[p][l].bits[side]);
                free(job->seen[p][l].weight[side]);
                free(job->seen[p][l].rows[side]);
                free(job->seen[p][l].traced[side]);
                free(job->seen[p][l].summed[side]);
                free(job->seen[p][l].decided[side]);
            }
            free(job->seen[p][l].probed);
            free(job->seen[p][l].vertex);
        }
    memset(job->seen, 0, sizeof job->seen);
}

/* -- sent rows ---------------------------------------------------------------------------------------------------- */

static int32_t (*inner_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);
static _Atomic int64_t sent_bytes;

static int32_t counted_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                            graft_request **request, graft_error *error)
{
    if (tag >= GR_TAG_FIRST && (tag - GR_TAG_FIRST) % GR_CHANNEL_TAGS == 0 && bytes != FRAME)
        atomic_fetch_add(&sent_bytes, (int64_t)bytes);
    return inner_send(self, to, tag, data, bytes, request, error);
}

/* -- one rank ----------------------------------------------------------------------------------------------------- */

/* What one rank keeps during the job: input and output rows of the vertices that it owns, in the order of its graph. */
struct owned {
    struct adapting_job *job;
    graft_graph         *graph;
    graft_plan          *plan;
    struct gr_halo_rows  rows;
    int64_t              n;
    float               *x, *flat, *scale, *out, *exact;
};

static int32_t owned_init(struct rank *r, struct owned *o)
{
    struct spread       *s = &o->job->spread;
    graft_graph_info     info = GRAFT_INIT(graft_graph_info);
    graft_redistribution rows = { sizeof rows, GRAFT_TO_OWNERS, 0, NULL, 0, NULL, 0 };
    int64_t              first, end;
    int32_t              rc;

    TRY(spread_graph(r, s, &o->graph));
    TRY(gr_interface_graph.info(o->graph, r->rank, &info, &r->error));
    spread_slice(s->slicing, o->job->n, r->n_ranks, r->rank, &first, &end);
    o->n = info.n_owned;
    o->x = calloc((size_t)((o->n + o->graph->part.halo.count) * WIDTH) + 1, sizeof *o->x);
    o->flat = calloc((size_t)(o->n * WIDTH) + 1, sizeof *o->flat);
    for (int64_t i = 0; i < o->n * WIDTH; i++) o->flat[i] = 1;
    for (int64_t i = 0; i < o->n; i++) s->found[gr_interface_graph.owned(o->graph)[i]] = r->rank;
    o->out = calloc((size_t)(o->n * WIDTH) + 1, sizeof *o->out);
    o->exact = calloc((size_t)(o->n * WIDTH) + 1, sizeof *o->exact);
    o->scale = calloc((size_t)o->n + 1, sizeof *o->scale);
    rows.row_bytes = rows.from_stride = rows.to_stride = WIDTH * sizeof *o->x;
    rows.from = s->x + first * rows.row_bytes;
    rows.to = o->x;
    TRY(gr_interface_graph.redistribute(o->graph, &rows, &r->error));
    rows.row_bytes = rows.from_stride = rows.to_stride = sizeof *o->scale;
    rows.from = s->scale + first * rows.row_bytes;
    rows.to = o->scale;
    TRY(gr_interface_graph.redistribute(o->graph, &rows, &r->error));
done:
    return rc;
}

static int32_t make(struct rank *r, struct owned *o)
{
    const int64_t   width[LAYERS] = { WIDTH, WIDTH };
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    int32_t         rc;

    if (o->job->halo) {
        TRY(gr_comm_compare_options(r->context, o->graph->comm, gr_options_bit(r->context, &gr_halo_option_table),
                                    &r->error));
        TRY(gr_halo_rows_init(r->context, o->graph->comm, &o->graph->part.halo, width, LAYERS, &o->rows, &r->error));
        gr_halo_rows_weigh(&o->rows, &o->graph->part);
        return GRAFT_OK;
    }
    args.flags = GRAFT_PLAN_TRANSPOSED;
    args.width = WIDTH;
    args.layers = LAYERS;
    rc = gr_interface_aggregate.create(o->graph, &args, &o->plan, &r->error);
done:
    return rc;
}

static void owned_fini(struct owned *o)
{
    if (o->job->halo && o->graph != NULL) gr_halo_rows_fini(o->graph->comm, &o->rows);
    gr_interface_aggregate.destroy(o->plan);
    gr_interface_graph.destroy(o->graph);
    free(o->x);
    free(o->flat);
    free(o->out);
    free(o->exact);
    free(o->scale);
}

static struct gr_halo_layer *lane_of(struct owned *o, int lane)
{
    return gr_halo_layers_find(o->job->halo ? &o->rows.layers : &o->plan->layers, lane / 2, lane % 2);
}

static int32_t pass_halo(struct rank *r, struct owned *o, int lane, int64_t epoch)
{
    struct gr_halo_pass  pass = { .direction = lane % 2 ? GR_BACKWARD : GR_FORWARD, .layer = lane / 2, .epoch = epoch };
    const struct gr_team team = { .threads = 2 };
    int32_t              rc;

    gr_halo_rows_place(&o->rows, &pass, o->x, o->n, WIDTH);
    TRY(gr_halo_rows_begin(&o->rows, &pass, team, &r->error));
    TRY(gr_halo_rows_end(&o->rows, team, &r->error));
done:
    return rc;
}

static int32_t pass_plan(struct rank *r, struct owned *o, int lane, int64_t epoch, uint32_t flags, float *to)
{
    float *const         from = epoch < o->job->flat_epochs ? o->flat : o->x;
    const graft_dense    x = { sizeof x, GRAFT_F32, o->n, WIDTH, WIDTH, from };
    const graft_dense    out = { sizeof out, GRAFT_F32, o->n, WIDTH, WIDTH, to };
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    args.semiring = GRAFT_PLUS_TIMES;
    args.flags = flags | (lane % 2 ? GRAFT_AGGREGATE_TRANSPOSE : 0);
    args.layer = lane / 2;
    args.epoch = epoch;
    args.threads = o->job->spread.pass_threads;
    args.x = &x;
    args.out = &out;
    args.row_scale = o->scale;
    TRY(gr_interface_aggregate.begin(o->plan, &args, &r->error));
    TRY(gr_interface_aggregate.end(o->plan, &r->error));
done:
    return rc;
}

static void *copy(const void *from, size_t bytes)
{
    return memcpy(malloc(bytes + 1), from != NULL ? from : "", from != NULL ? bytes : 0);
}

static const float *sent_rows(const struct owned *o, int lane)
{
    return o->plan->rows[lane % 2 ? GR_RECEIVE : GR_SEND].buffer;
}

/* Add the range and the squared norm of each row that a pass of this lane has just sent to the test's own sums. They
 * must equal the sums that the library traces. */
static void sum_rows(struct rank *r, struct owned *o, int lane)
{
    struct seen                *s = &o->job->seen[r->rank][lane];
    const struct gr_halo_layer *l = lane_of(o, lane);
    const float                *rows = sent_rows(o, lane);

    for (int i = 0; i < 2; i++)
        if (s->summed[i] == NULL) s->summed[i] = calloc((size_t)l->rows[0] + 1, sizeof **s->summed);
    for (int64_t row = 0; row < l->rows[0]; row++) {
        const float *x = rows + row * WIDTH;
        double       low = (double)x[0], high = (double)x[0];

        for (int j = 0; j < WIDTH; j++) {
            low = fmin(low, (double)x[j]);
            high = fmax(high, (double)x[j]);
            s->summed[1][row] += (double)x[j] * (double)x[j];
        }
        s->summed[0][row] += WIDTH * (high - low) * (high - low);
    }
}

/* Keep a copy of the sums from which the library has just assigned widths, and start new sums at 0. */
static void keep_sums(struct rank *r, struct owned *o)
{
    for (int lane = 0; lane < LANES; lane++) {
        struct seen *s = &o->job->seen[r->rank][lane];

        for (int i = 0; i < 2; i++) {
            free(s->decided[i]);
            s->decided[i] = s->summed[i];
            s->summed[i] = NULL;
        }
    }
}

/* Give the rows values that change from epoch to epoch, so that traces differ. Every third row is eight times as
 * large. */
static void change_rows(struct owned *o, int64_t epoch)
{
    for (int64_t i = 0; i < o->n * WIDTH; i++) {
        if ((i / WIDTH + epoch) % 3 == 0) o->x[i] *= 8;
        if (epoch > 0 && (i / WIDTH + epoch - 1) % 3 == 0) o->x[i] /= 8;
    }
}

/* Record what the last pass of a lane sent and received on this rank. */
static void note(struct rank *r, struct owned *o, int lane)
{
    struct seen                *s = &o->job->seen[r->rank][lane];
    const struct gr_halo_layer *l = lane_of(o, lane);

    if (l == NULL) return;
    for (int side = 0; side < 2; side++) {
        const size_t rows = (size_t)l->rows[side];

        memcpy(s->start[side], l->start[side], (size_t)(r->n_ranks + 1) * sizeof s->start[side][0]);
        s->bits[side] = copy(l->bits.widths.bits[side], rows);
        s->weight[side] = copy(l->bits.weight[side], rows * sizeof(float));
        if (!o->job->halo)
            s->rows[side] =
                copy(o->plan->rows[(lane + side) % 2 ? GR_RECEIVE : GR_SEND].buffer, rows * WIDTH * sizeof(float));
    }
    if (o->job->traces) {
        s->traced[0] = copy(l->bits.widths.spread, (size_t)l->rows[0] * sizeof(double));
        s->traced[1] = copy(l->bits.widths.squares, (size_t)l->rows[0] * sizeof(double));
        for (int64_t row = 0; row < l->rows[0]; row++) {
            s->traced[0][row] += l->bits.spread[row];
            s->traced[1][row] += l->bits.squares[row];
        }
    }
    if (o->job->halo && lane == 0) {
        s->vertex = calloc((size_t)l->rows[0] + 1, sizeof *s->vertex);
        for (int64_t i = 0; i < l->rows[0]; i++)
            s->vertex[i] = gr_interface_graph.owned(o->graph)[o->rows.links.place[i]];
    }
    memcpy(s->flow, l->bits.flow, (size_t)r->n_ranks * sizeof *l->bits.flow);
    s->expected_error = l->bits.expected_error;
    s->info = GRAFT_INIT(graft_plan_info);
    if (!o->job->halo) gr_interface_aggregate.info(o->plan, r->rank, &s->info, NULL);
}

static int32_t epoch_of(struct rank *r, struct owned *o, int64_t epoch, int notes)
{
    int32_t rc = GRAFT_OK;

    if (o->job->traces) change_rows(o, epoch);
    for (int lane = 0; lane < LANES; lane++) {
        TRY(o->job->halo ? pass_halo(r, o, lane, epoch)
                         : pass_plan(r, o, lane, epoch, 0, lane == 0 ? o->out : o->exact));
        if (o->job->traces) sum_rows(r, o, lane);
        if (notes) note(r, o, lane);
    }
done:
    return rc;
}

/* Measure the weight of each received row, which is the sum of the coefficients with which the product uses it. One
 * pass with a unit vector for each row shows the coefficients. */
static int32_t probe(struct rank *r, struct owned *o, int lane)
{
    graft_matrix *const  a = o->plan->matrices[lane % 2].received;
    const int64_t        rows = lane_of(o, lane)->rows[1];
    float               *unit = oracle_new(rows * rows, sizeof *unit), *out = oracle_new(o->n * rows, sizeof *out);
    const graft_dense    b = { sizeof b, GRAFT_F32, rows, rows, rows, unit };
    const graft_dense    c = { sizeof c, GRAFT_F32, o->n, rows, rows, out };
    const graft_mxm_args args = {
        .size = sizeof args, .semiring = GRAFT_PLUS_TIMES, .a = a, .b = &b, .c = &c, .row_scale = o->scale
    };
    double *probed = calloc((size_t)rows + 1, sizeof *probed);
    int32_t rc = GRAFT_OK;

    for (int64_t i = 0; i < rows; i++) unit[i * rows + i] = 1;
    if (rows > 0) rc = gr_mxm_run(r->context, &args, &r->error);
    for (int64_t i = 0; i < o->n * rows; i++) probed[i % rows] += (double)out[i] * (double)out[i];
    o->job->seen[r->rank][lane].probed = probed;
    free(unit);
    free(out);
    return rc;
}

static int32_t decide(struct rank *r, struct owned *o)
{
    struct gr_comm *comm = o->graph->comm;
    int32_t         rc = GRAFT_OK;

    if (o->job->network.gamma > 0) {
        TRY(gr_adaptive_network_measure(comm, &r->error));
        for (int32_t i = 0; i < r->n_ranks * r->n_ranks && r->rank == 0; i++) {
            comm->network[i] = o->job->network;
            comm->network[i].theta *= 1 + i / r->n_ranks + 2 * (i % r->n_ranks);
        }
    }
    rc = o->job->halo ? gr_adaptive_set_widths(&o->rows.layers, NULL, LANES, 0, &r->error)
                      : gr_interface_aggregate.assign_bits(o->plan, &r->error);
done:
    return rc;
}

/* Make one allocation of one rank fail while widths are assigned. All ranks must return the error, and a second
 * assignment must succeed. */
static int32_t starve(struct rank *r, struct owned *o)
{
    int32_t rc;

    TRY(gr_comm_barrier(o->graph->comm, &r->error));
    if (r->rank == r->all->fail_rank) atomic_store(&r->all->fail_at, o->job->starves - 1);
    rc = decide(r, o);
    if (r->rank == r->all->fail_rank) o->job->has_failed = atomic_exchange(&r->all->fail_at, -1) < 0;
    if (rc != GRAFT_ERR_NOMEM) return rc;
    if (strstr(r->error.message, "no memory") == NULL) rank_blame(r, "%s", r->error.message);
    TRY(epoch_of(r, o, 1, 0));
    rc = decide(r, o);
done:
    return rc;
}

/* Compute the squared distance of the last forward pass of layer 0 from a pass without quantization, and the squared
 * length of the exact result. */
static int32_t compare(struct rank *r, struct owned *o)
{
    double  sums[2] = { 0 };
    int32_t rc = GRAFT_OK;

    if (o->job->halo) return GRAFT_OK;
    TRY(pass_plan(r, o, 0, 9, GRAFT_AGGREGATE_EXACT, o->exact));
    for (int64_t i = 0; i < o->n * WIDTH; i++) {
        sums[0] += pow((double)o->out[i] - (double)o->exact[i], 2);
        sums[1] += pow((double)o->exact[i], 2);
    }
    TRY(gr_comm_sum_f64(o->graph->comm, sums, 2, &r->error));
    if (r->rank == 0) o->job->off = sqrt(sums[0] / sums[1]);
    for (int lane = 0; lane < LANES && o->job->probes; lane++) TRY(probe(r, o, lane));
done:
    return rc;
}

static int32_t adapting_body(struct rank *r)
{
    struct owned         o = { .job = r->all->arg };
    struct adapting_job *job = o.job;
    int64_t              epoch = 0;
    int32_t              rc;

    r->transport.send = counted_send;
    TRY(spread_setup(r, &job->spread));
    if (job->odd[0] != NULL && r->rank == r->n_ranks - 1)
        TRY(gr_option_set(r->context, job->odd[0], job->odd[1], &r->error));
    TRY(owned_init(r, &o));
    TRY(make(r, &o));
    for (int i = 0; i < job->adapts; i++) {
        for (int k = 0; k == 0 || k < job->passes; k++) TRY(epoch_of(r, &o, epoch++, 0));
        TRY(job->starves ? starve(r, &o) : decide(r, &o));
        keep_sums(r, &o);
    }
    TRY(epoch_of(r, &o, epoch++, 0));
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    if (r->rank == 0) job->grown = -atomic_load(&r->all->allocations);
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    TRY(epoch_of(r, &o, epoch++, 0));
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    if (r->rank == 0) job->grown += atomic_load(&r->all->allocations);
    if (r->rank == 0) atomic_store(&sent_bytes, 0);
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    TRY(epoch_of(r, &o, epoch++, 1));
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    if (r->rank == 0) job->sent = atomic_load(&sent_bytes);
    TRY(gr_comm_barrier(o.graph->comm, &r->error));
    rc = compare(r, &o);
done:
    owned_fini(&o);
    return rc;
}

/* Run the job. The return value is NULL, or an error in words, which is the message of the ranks if all have the
 * same. */
const char *adapting_run(struct adapting_job *job, int32_t n_ranks, int32_t *rc)
{
    static struct ranks ranks;
    static char         kept[700];
    const char         *left;

    ranks_init(&ranks, n_ranks, 20, adapting_body, job);
    ranks.fail_rank = job->starved_rank;
    inner_send = ranks.at[0].transport.send;
    ranks_run(&ranks);
    kept[0] = '\0';
    *rc = ranks.at[0].rc;
    for (int32_t i = 0; i < n_ranks; i++) {
        const struct rank *r = &ranks.at[i];

        if (r->rc < 0) snprintf(kept, sizeof kept, "%s", r->error.message);
        if (r->rc != *rc || (*rc < 0 && strcmp(r->error.message, ranks.at[0].error.message) != 0)) {
            snprintf(kept, sizeof kept, "rank %d says %d, %.200s; rank 0 %d, %.200s", i, r->rc, r->error.message, *rc,
                     ranks.at[0].error.message);
            *rc = GRAFT_STATUS_END;
            break;
        }
    }
    left = ranks_fini(&ranks);
    if (left != NULL) snprintf(kept, sizeof kept, "%s", left);
    return kept[0] != '\0' ? kept : NULL;
}

/* -- checks after every run --------------------------------------------------------------------------------------- */

static int64_t row_bytes(int bits)
{
    return (WIDTH * bits + 7) / 8 + 4;
}

/* Check one lane: sender and receiver of a row agree on its width and weight, and all ranks report the bytes that
 * follow from the widths. */
static const char *check_sides(const struct adapting_job *job, int32_t n_ranks, int lane, int64_t *bytes)
{
    for (int32_t p = 0; p < n_ranks; p++) {
        const struct seen      *a = &job->seen[p][lane];
        struct gr_row_bits_flow flow = { 0 };

        for (int32_t q = 0; q < n_ranks; q++) {
            const struct seen *b = &job->seen[q][lane];
            const int64_t      out = a->start[0][q], in = b->start[1][p], rows = a->start[0][q + 1] - out;

            if (rows != b->start[1][p + 1] - in) return "other rows come than go";
            if (memcmp(a->bits[0] + out, b->bits[1] + in, (size_t)rows) != 0) return "the sides have other bits";
            if (memcmp(a->weight[0] + out, b->weight[1] + in, (size_t)rows * sizeof(float)) != 0)
                return "the sides have other weights";
        }
        for (int side = 0; side < 2; side++) {
            for (int64_t row = 0; row < a->start[side][n_ranks]; row++) {
                const int bits = a->bits[side][row];

                if (bits != 2 && bits != 4 && bits != 8) return "a row has other bits than 2, 4 or 8";
                *(side == 0 ? &flow.bytes_out : &flow.bytes_in) += row_bytes(bits);
                if (side == 0) flow.rows_out[bits / 4]++;
            }
        }
        *bytes += flow.bytes_out;
        for (int32_t q = 0; q < n_ranks; q++)
            if (memcmp(&job->seen[q][lane].flow[p], &flow, sizeof flow) != 0) return "a rank says other bytes";
    }
    return NULL;
}

/* Check all lanes. The return value is NULL or an error in words; *bytes is the number of bytes of an epoch. */
const char *adapting_check(const struct adapting_job *job, int32_t n_ranks, int64_t *bytes)
{
    const char *words = NULL;

    *bytes = 0;
    for (int lane = 0; lane < LANES && words == NULL; lane++) words = check_sides(job, n_ranks, lane, bytes);
    if (words == NULL && *bytes != job->sent) words = "the transport had other bytes";
    if (words == NULL && job->grown != 0) words = "an epoch allocates";
    return words;
}

/* The largest relative quantization error over the lanes in their last pass, weighted by the coefficients of the
 * rows. */
double adapting_lost(const struct adapting_job *job, int32_t n_ranks)
{
    double worst = 0;

    for (int lane = 0; lane < LANES; lane++) {
        double lost = 0, said = 0;

        for (int32_t p = 0; p < n_ranks; p++)
            for (int32_t q = 0; q < n_ranks; q++) {
                const struct seen *a = &job->seen[p][lane], *b = &job->seen[q][lane];
                const int64_t      out = a->start[0][q], in = b->start[1][p];

                for (int64_t i = 0; i < (a->start[0][q + 1] - out) * WIDTH; i++) {
                    const double weight = (double)a->weight[0][out + i / WIDTH];
                    const double sent = (double)a->rows[0][out * WIDTH + i];

                    lost += weight * pow(sent - (double)b->rows[1][in * WIDTH + i], 2);
                    said += weight * sent * sent;
                }
            }
        if (said > 0) worst = fmax(worst, lost / said);
    }
    return worst;
}

double adapting_expected(const struct adapting_job *job, int32_t n_ranks)
{
    double worst = 0;

    for (int lane = 0; lane < LANES; lane++)
        for (int32_t p = 0; p < n_ranks; p++) {
            if (job->seen[p][lane].expected_error != job->seen[0][lane].expected_error) return (double)NAN;
            worst = fmax(worst, job->seen[p][lane].expected_error);
        }
    return worst;
}

/* The number of rows with this width, over all lanes and ranks. */
int64_t adapting_count(const struct adapting_job *job, int32_t n_ranks, int bits)
{
    int64_t count = 0;

    for (int32_t p = 0; p < n_ranks; p++)
        for (int lane = 0; lane < LANES; lane++)
            for (int64_t row = 0; row < job->seen[p][lane].start[0][n_ranks]; row++)
                count += job->seen[p][lane].bits[0][row] == bits;
    return count;
}
