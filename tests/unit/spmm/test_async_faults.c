/* Checks passes with stale rows when something fails: the transport has faults while messages are in flight, a rank
 * sends wrong frames or rows with correct CRCs, or numbers cannot be encoded. All ranks must return the same error.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/fault_runs.h"
#include "harness/spread.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include "base/crc.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 24, WIDTH = 5, RANKS = 3, EPOCHS = 4, LAYERS = 2 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* The graph of all tests. Rows are the same in all epochs, so that stale rows equal fresh ones; their sums forward and
 * backward are known. */
static struct sample_csr graph, transposed;
static float             x[N * WIDTH], want[2][N * WIDTH];

/* How passes are made. */
struct way {
    const char *const *settings;
    int                is_exact;  /* whether results must be bitwise right */
    int                leaves;    /* whether messages are in flight when the plan is destroyed */
    int                no_number; /* whether a row of rank 1 has a NaN */
};

/* What a lying rank sends. Ranks are threads, and each transport is called by its own thread only. */
enum lie { TRUE, OTHER_BITS, NO_SCALE };

static _Thread_local enum lie            lie;
static _Thread_local struct gr_messages *lying; /* messages of the lying rank */
static int32_t (*inner_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);

/* Spoil the message whose frame is about to be sent, and correct its CRC. */
static void spoil(struct gr_frame *frame, int32_t to)
{
    char *rows = lying->framed.side[GR_SEND].payload[to].data;

    if (lie == OTHER_BITS) frame->bits = 4;
    if (lie == NO_SCALE) memcpy(rows + 2, (const unsigned char[]){ 0x80, 0x7F }, 2); /* infinity as a bfloat16 */
    gr_comm_frame_seal_crc(frame, gr_crc(0, rows, frame->bytes));
}

static int32_t false_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                          graft_request **request, graft_error *error)
{
    struct gr_frame *frame = (struct gr_frame *)(uintptr_t)data;

    if (lying != NULL && bytes == sizeof *frame && frame->magic == GR_FRAME_MAGIC && frame->rows > 0) spoil(frame, to);
    return inner_send(self, to, tag, data, bytes, request, error);
}

static int32_t async_faults_pass(struct rank *r, const struct way *way, const graft_graph *made, graft_plan *plan,
                                 graft_aggregate_args args)
{
    const int64_t        *vertex = gr_interface_graph.owned(made), n = made->n_owned;
    const int             back = (args.flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    float                 in[N * WIDTH], out[N * WIDTH];
    const graft_dense     dense_x = { sizeof dense_x, GRAFT_F32, n, WIDTH, WIDTH, in };
    const graft_dense     dense_out = { sizeof dense_out, GRAFT_F32, n, WIDTH, WIDTH, out };
    struct gr_halo_layer *lane = gr_halo_layers_find(&plan->layers, args.layer, back);
    int32_t               rc;

    for (int64_t i = 0; i < n; i++) memcpy(in + i * WIDTH, x + vertex[i] * WIDTH, WIDTH * sizeof *in);
    for (int64_t i = 0; i < n * WIDTH && way->no_number && r->rank == 1; i += WIDTH) in[i] = NAN;
    if (lie != TRUE) lying = lane != NULL ? &lane->history.messages : &plan->messages;
    args.x = &dense_x;
    args.out = &dense_out;
    TRY(gr_interface_aggregate.begin(plan, &args, &r->error));
    TRY(gr_interface_aggregate.end(plan, &r->error));
    for (int64_t i = 0; i < n * WIDTH && way->is_exact; i++)
        if (out[i] != want[back][vertex[i / WIDTH] * WIDTH + i % WIDTH])
            rank_blame(r, "row %lld is wrong", (long long)i);
    /* Vertex 1 gathers from all vertices. */
    for (int64_t i = 0; i < n && way->no_number && r->rank == 0 && !back; i++)
        if (vertex[i] == 1 && !isnan(out[i * WIDTH])) rank_blame(r, "a NaN was lost on the way from rank 1");
done:
    lying = NULL;
    return rc;
}

/* Make epochs of forward and backward passes. */
static int32_t epochs(struct rank *r, const struct way *way, graft_graph **made, graft_plan **plan)
{
    const struct spread spread = { .graph = &graph.csr,
                                   .dtype = GRAFT_F32,
                                   .partition = "given",
                                   .cover = "hybrid",
                                   .threads = "1",
                                   .settings = way->settings };
    graft_plan_args     wish = GRAFT_INIT(graft_plan_args);
    int32_t             rc;

    wish.flags = GRAFT_PLAN_TRANSPOSED;
    wish.layers = LAYERS;
    TRY(spread_setup(r, &spread));
    TRY(spread_graph(r, &spread, made));
    TRY(gr_interface_aggregate.create(*made, &wish, plan, &r->error));
    for (int i = 0; i < EPOCHS * LAYERS; i++) {
        graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);

        args.semiring = GRAFT_PLUS_TIMES;
        args.epoch = 17 + i / LAYERS;
        args.layer = i % LAYERS;
        args.flags = i % LAYERS ? GRAFT_AGGREGATE_TRANSPOSE : 0;
        if (i / LAYERS == EPOCHS - 1 && !way->leaves) args.flags |= GRAFT_AGGREGATE_SYNCHRONOUS;
        TRY(async_faults_pass(r, way, *made, *plan, args));
    }
    gr_interface_aggregate.destroy(*plan);
    *plan = NULL;
    TRY(gr_comm_agree((*made)->comm, GRAFT_OK, &r->error));
done:
    return rc;
}

/* --- transports with faults --- */

static const char *const asynchronous[] = { "halo.staleness", "1:0:0.5", NULL };
static const char *const in_few_bits[] = { "halo.staleness", "1", "halo.codec", "q2", NULL };

static int32_t epochs_body(struct rank *r, const struct way *way)
{
    graft_graph *made = NULL;
    graft_plan  *plan = NULL;
    int32_t      rc = epochs(r, way, &made, &plan);

    if (run_goes_on(r, rc)) rc = gr_comm_barrier(made->comm, &r->error);
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

/* Every received message is used, so every fault must be found. */
static int32_t whole_body(struct rank *r)
{
    return epochs_body(r, &(struct way){ asynchronous, 1, 0, 0 });
}

/* Messages in flight at the end are received, but not used. */
static int32_t leaving_body(struct rank *r)
{
    return epochs_body(r, &(struct way){ in_few_bits, 0, 1, 0 });
}

/* --- false messages --- */

struct falsehood {
    const char *name;
    enum lie    lie;
    struct way  way;
    const char *words[2]; /* words that all ranks must return */
};

static int32_t false_body(struct rank *r)
{
    const struct falsehood *falsehood = r->all->arg;
    graft_graph            *made = NULL;
    graft_plan             *plan = NULL;
    int32_t                 rc;

    lie = r->rank == 1 ? falsehood->lie : TRUE;
    if (lie != TRUE) r->transport.send = false_send;
    rc = epochs(r, &falsehood->way, &made, &plan);
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

static void test_falsehoods(void)
{
    static const char *const two[] = { "halo.codec", "q2", NULL };
    static const char *const eight[] = { "halo.staleness", "1", "halo.codec", "q8", NULL };
    static const char *const whole[] = { "halo.staleness", "1", NULL };
    static const char *const refuses[] = {
        "halo.staleness", "1", "halo.codec", "q8", "halo.nonfinite", "refuse", NULL
    };
    const struct falsehood falsehoods[] = {
        { "a frame of other bits", OTHER_BITS, { two, 0, 0, 0 }, { "from rank 1 has bits 4", "expected 2" } },
        { "an infinite scale", NO_SCALE, { two, 0, 0, 0 }, { "message from rank 1", "a scale that no row has" } },
        { "a late frame", OTHER_BITS, { in_few_bits, 0, 0, 0 }, { "rank 1 has bits 4", "expected 2" } },
        { "a late infinite scale", NO_SCALE, { eight, 0, 0, 0 }, { "from rank 1", "a scale that no row has" } },
        { "no number, refused", TRUE, { refuses, 0, 0, 1 }, { "rank 1: a row for rank", "not finite" } },
        { "no number, quantized", TRUE, { eight, 0, 0, 1 }, { NULL, NULL } },
        { "no number, as it is", TRUE, { whole, 0, 0, 1 }, { NULL, NULL } },
    };
    static struct ranks ranks;

    for (size_t i = 0; i < sizeof falsehoods / sizeof *falsehoods; i++) {
        const struct falsehood *f = &falsehoods[i];
        const char             *message = ranks.at[0].error.message, *fault;
        const int32_t           status = f->words[0] != NULL ? GRAFT_ERR_PEER : GRAFT_OK;
        int                     good = 1;

        ranks_init(&ranks, RANKS, 20, false_body, (void *)(uintptr_t)f);
        inner_send = ranks.at[1].transport.send;
        ranks_run(&ranks);
        for (int32_t r = 0; r < RANKS; r++)
            good = good && ranks.at[r].rc == status && strcmp(ranks.at[r].error.message, message) == 0;
        for (int k = 0; k < 2 && f->words[k] != NULL; k++) good = good && strstr(message, f->words[k]) != NULL;
        fault = ranks_fini(&ranks);
        ok(good && fault == NULL, "%s: all ranks report the same error: %s %s", f->name, message,
           fault != NULL ? fault : "");
    }
}

int main(void)
{
    alarm(300); /* it is slow under a sanitizer */
    spread_make_sums(13, N, WIDTH, &graph, &transposed, x, want[0]);
    run_faults("asynchronous passes", whole_body, RANKS, 1, (const int[]){ 3, 7 }, FAULTS);
    run_faults("rows on their way at the end", leaving_body, RANKS, 1, (const int[]){ 3, 7 }, FAULT_FLIP);
    test_falsehoods();
    sample_csr_fini(&graph);
    sample_csr_fini(&transposed);
    return done();
}
