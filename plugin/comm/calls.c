/* Sends framed messages to some ranks, receives them from some, and passes values along trees.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/calls.h"

#include "base/assert.h"
#include "base/memory.h"

static const char *const call_name[GR_CALL_KINDS] = { "an agreement or a barrier",
                                                      "an allgather",
                                                      "an alltoall",
                                                      "an alltoallv",
                                                      "a broadcast",
                                                      "a minimum",
                                                      "a maximum",
                                                      "a sum",
                                                      "a comparison",
                                                      "a gather" };

int32_t gr_comm_calls_create(struct gr_comm *comm, graft_error *error)
{
    const int64_t    n = comm->n_ranks;
    struct gr_calls *c;

    GR_TRY(GR_NEW(comm->context, comm->calls, 1, error));
    c = comm->calls;
    GR_TRY(GR_NEW(comm->context, c->frame_in, n, error));
    GR_TRY(GR_NEW(comm->context, c->frame_out, n, error));
    GR_TRY(GR_NEW(comm->context, c->in, n, error));
    GR_TRY(GR_NEW(comm->context, c->out, n, error));
    GR_TRY(GR_NEW(comm->context, c->requests, 4 * n, error));
    return gr_comm_reserve(comm, GR_SCRATCH_LEAST, error);
}

void gr_comm_calls_destroy(struct gr_comm *comm)
{
    struct gr_calls *c = comm->calls;

    if (c == NULL) return;
    gr_free(comm->context, c->scratch);
    gr_free(comm->context, c->frame_in);
    gr_free(comm->context, c->frame_out);
    gr_free(comm->context, c->in);
    gr_free(comm->context, c->out);
    gr_free(comm->context, c->requests);
    gr_free(comm->context, c);
    comm->calls = NULL;
}

int32_t gr_comm_reserve(struct gr_comm *comm, uint64_t bytes, graft_error *error)
{
    struct gr_calls *c = comm->calls;
    const uint64_t   with_rounding = bytes + sizeof(double) * (uint64_t)comm->n_ranks;
    void            *larger;

    if (comm->n_ranks == 1 || c->scratch_bytes >= with_rounding) return GRAFT_OK;
    larger = gr_new(comm->context, (int64_t)with_rounding, 1, "sums over ranks", error);
    if (larger == NULL) return GRAFT_ERR_NOMEM;
    gr_free(comm->context, c->scratch);
    c->scratch = larger;
    c->scratch_bytes = with_rounding;
    return GRAFT_OK;
}

static struct gr_frame call_frame(const struct gr_comm *comm, enum gr_call_kind kind, int32_t from, uint64_t bytes)
{
    return (struct gr_frame){ .channel = GR_TAG_COLLECTIVE,
                              .from = from,
                              .layer = (int32_t)kind,
                              .bits = 8,
                              .epoch = comm->calls->number,
                              .rows = 1,
                              .width = (int64_t)bytes,
                              .bytes = bytes };
}

/* Check a frame as gr_comm_frame_check() does, but with an error message of its own if ranks make different calls. */
static int32_t check_call(const struct gr_comm *comm, const struct gr_frame *found, const struct gr_frame *expected,
                          graft_error *error)
{
    if (found->magic == GR_FRAME_MAGIC && found->channel == GR_TAG_COLLECTIVE && found->layer >= 0 &&
        found->layer < GR_CALL_KINDS && (found->layer != expected->layer || found->epoch != expected->epoch)) {
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "rank %d makes call %lld, %s, and rank %d makes call %lld, %s; all ranks must make the "
                       "same calls",
                       expected->from, (long long)found->epoch, call_name[found->layer], comm->rank,
                       (long long)expected->epoch, call_name[expected->layer]);
    }
    return gr_comm_frame_check(found, expected, error);
}

static int32_t post_messages(struct gr_comm *comm, enum gr_call_kind kind, int32_t n_out, int32_t n_in,
                             graft_error *error)
{
    struct gr_calls   *c = comm->calls;
    struct gr_request *request = c->requests, *header = request;

    request += n_in;
    for (int32_t i = 0; i < n_in; i++) {
        const struct gr_message *p = &c->in[i];

        GR_TRY(
            gr_comm_receive(comm, p->peer, GR_TAG_COLLECTIVE, &c->frame_in[i], sizeof c->frame_in[i], header++, error));
        GR_TRY(gr_comm_receive(comm, p->peer, GR_TAG_COLLECTIVE, p->data, p->bytes, request++, error));
    }
    for (int32_t i = 0; i < n_out; i++) {
        const struct gr_message *p = &c->out[i];

        c->frame_out[i] = call_frame(comm, kind, comm->rank, p->bytes);
        gr_comm_frame_seal(&c->frame_out[i], p->data);
        GR_TRY(
            gr_comm_send(comm, p->peer, GR_TAG_COLLECTIVE, &c->frame_out[i], sizeof c->frame_out[i], request++, error));
        GR_TRY(gr_comm_send(comm, p->peer, GR_TAG_COLLECTIVE, p->data, p->bytes, request++, error));
    }
    return GRAFT_OK;
}

int32_t gr_comm_calls_exchange(struct gr_comm *comm, enum gr_call_kind kind, int32_t n_out, int32_t n_in,
                               graft_error *error)
{
    struct gr_calls *c = comm->calls;

    GR_ASSERT(n_in < comm->n_ranks && n_out < comm->n_ranks);
    GR_TRY(post_messages(comm, kind, n_out, n_in, error));
    GR_TRY(gr_comm_wait(comm, c->requests, n_in, error));
    for (int32_t i = 0; i < n_in; i++) {
        const struct gr_frame expected = call_frame(comm, kind, c->in[i].peer, c->in[i].bytes);

        if (check_call(comm, &c->frame_in[i], &expected, error) < 0) return gr_comm_fail(comm, error);
    }
    GR_TRY(gr_comm_wait(comm, c->requests, 2 * (int64_t)n_in + 2 * (int64_t)n_out, error));
    for (int32_t i = 0; i < n_in; i++)
        if (gr_comm_frame_check_payload(&c->frame_in[i], c->in[i].data, error) < 0) return gr_comm_fail(comm, error);
    return GRAFT_OK;
}

int32_t gr_comm_calls_begin(struct gr_comm *comm, graft_error *error)
{
    if (comm->dead) *error = comm->cause;
    comm->calls->number++;
    return comm->dead;
}

void gr_comm_calls_add(struct gr_message *parts, int32_t *count, int32_t peer, const void *data, uint64_t bytes)
{
    if (bytes > 0) parts[(*count)++] = (struct gr_message){ peer, bytes, (void *)(uintptr_t)data };
}

int32_t gr_comm_calls_reduce(struct gr_comm *comm, enum gr_call_kind kind, void *value, void *incoming, uint64_t bytes,
                             void (*combine)(void *value, const void *incoming, uint64_t bytes), graft_error *error)
{
    struct gr_calls *c = comm->calls;

    for (int64_t step = 1; step < comm->n_ranks; step *= 2) {
        int32_t n_in = 0, n_out = 0, rc;

        if (comm->rank & step) gr_comm_calls_add(c->out, &n_out, (int32_t)(comm->rank - step), value, bytes);
        else if (comm->rank + step < comm->n_ranks)
            gr_comm_calls_add(c->in, &n_in, (int32_t)(comm->rank + step), incoming, bytes);
        rc = gr_comm_calls_exchange(comm, kind, n_out, n_in, error);
        if (rc < 0) return rc;
        if (n_in > 0) combine(value, incoming, bytes);
        if (n_out > 0) break;
    }
    return GRAFT_OK;
}

int32_t gr_comm_calls_spread(struct gr_comm *comm, enum gr_call_kind kind, int32_t root, void *value, uint64_t bytes,
                             graft_error *error)
{
    struct gr_calls *c = comm->calls;
    const int64_t    n = comm->n_ranks, mine = (comm->rank - root + n) % n; /* this rank, counted from `root` */
    int64_t          step = 1;
    int32_t          n_in = 0, n_out = 0;

    GR_ASSERT(root >= 0 && root < comm->n_ranks);
    while (step < n && !(mine & step)) step *= 2;
    if (mine > 0) {
        gr_comm_calls_add(c->in, &n_in, (int32_t)((mine - step + root) % n), value, bytes);
        GR_TRY(gr_comm_calls_exchange(comm, kind, 0, n_in, error));
    }
    for (step /= 2; step > 0; step /= 2)
        if (mine + step < n) gr_comm_calls_add(c->out, &n_out, (int32_t)((mine + step + root) % n), value, bytes);
    return gr_comm_calls_exchange(comm, kind, n_out, 0, error);
}

int32_t gr_comm_calls_scratch(struct gr_comm *comm, uint64_t bytes, graft_error *error)
{
    return gr_comm_reserve(comm, bytes, error) < 0 ? gr_comm_fail(comm, error) : GRAFT_OK;
}
