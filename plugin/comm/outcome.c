/* Agrees on the outcome of a call while its messages travel.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/outcome.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* What a rank knows of a call, as a message. Every transport delivers messages of this size even if the receiver does
 * nothing. */
struct gr_outcome_record {
    uint32_t crc; /* CRC32C of the fields below */
    int32_t  code, native_code;
    int32_t  failed;  /* the lowest rank that failed, whose status is in this record; NO_RANK: none */
    int32_t  offered; /* the lowest rank that offered terms, which are in this record; NO_RANK: none */
    int32_t  reserved;
    int64_t  call;
    char     terms[GR_OUTCOME_TERMS];
    char     message[432];
};

_Static_assert(sizeof(struct gr_outcome_record) == 512, "a record has no padding: all of it is in the CRC");

enum { NO_RANK = INT32_MAX };

static uint32_t record_crc(const struct gr_outcome_record *record)
{
    return gr_crc(0, &record->code, sizeof *record - sizeof record->crc);
}

int32_t gr_comm_outcome_init(struct gr_outcome *o, struct gr_comm *comm, int32_t tag, const char *what,
                             graft_error *error)
{
    *o = (struct gr_outcome){ .comm = comm, .tag = tag, .what = what };
    while ((int64_t)1 << o->rounds < comm->n_ranks) o->rounds++;
    if (o->rounds == 0) return GRAFT_OK;
    GR_TRY(GR_NEW(comm->context, o->known, 1 + 2 * (int64_t)o->rounds, error));
    o->in = o->known + 1;
    o->out = o->in + o->rounds;
    return GR_NEW(comm->context, o->requests, 2 * (int64_t)o->rounds, error);
}

void gr_comm_outcome_fini(struct gr_outcome *o)
{
    if (o->comm == NULL) return;
    gr_free(o->comm->context, o->known);
    gr_free(o->comm->context, o->requests);
    *o = (struct gr_outcome){ .comm = NULL };
}

int64_t gr_comm_outcome_bytes(const struct gr_outcome *o)
{
    return gr_memory_bytes(o->known) + gr_memory_bytes(o->requests);
}

void gr_comm_outcome_count(struct gr_outcome *o)
{
    o->calls++;
    o->was_refused = 0;
}

void gr_comm_outcome_count_end(struct gr_outcome *o)
{
    if (!o->was_refused) o->calls++;
    o->was_refused = 0;
}

/* Send what this rank knows, unless all rounds are done. */
static int32_t send_round(struct gr_outcome *o, graft_error *error)
{
    const int64_t             n = o->comm->n_ranks, step = (int64_t)1 << o->round;
    struct gr_outcome_record *out = &o->out[o->round];

    if (o->round == o->rounds) return GRAFT_OK;
    *out = *o->known;
    out->crc = record_crc(out);
    return gr_comm_send(o->comm, (int32_t)((o->comm->rank + step) % n), o->tag, out, sizeof *out,
                        &o->requests[o->rounds + o->round], error);
}

int32_t gr_comm_outcome_begin(struct gr_outcome *o, int64_t call, int32_t rc, const graft_error *why, const void *terms,
                              uint64_t bytes, graft_error *error)
{
    const int64_t             n = o->rounds > 0 ? o->comm->n_ranks : 1;
    struct gr_outcome_record *known = o->known;

    if (n == 1) return GRAFT_OK;
    GR_ASSERT((o->comm->dead || !o->is_open) && bytes <= sizeof known->terms);
    o->is_open = 0;
    memset(known, 0, sizeof *known);
    known->call = call;
    known->failed = known->offered = NO_RANK;
    if (rc < 0) {
        known->failed = o->comm->rank;
        known->code = rc;
        known->native_code = why->native_code;
        snprintf(known->message, sizeof known->message, "rank %d: %.415s", o->comm->rank, why->message);
    }
    if (terms != NULL) {
        known->offered = o->comm->rank;
        memcpy(known->terms, terms, bytes);
    }
    o->round = 0;
    for (int32_t k = 0; k < o->rounds; k++) {
        const int64_t from = (o->comm->rank + n - ((int64_t)1 << k)) % n;

        GR_TRY_DONE(
            gr_comm_receive(o->comm, (int32_t)from, o->tag, &o->in[k], sizeof o->in[k], &o->requests[k], error));
    }
    rc = send_round(o, error);
    o->is_open = rc == GRAFT_OK;
done:
    return rc;
}

static int32_t check_record(const struct gr_outcome *o, const struct gr_outcome_record *in, int32_t from,
                            graft_error *error)
{
    if (in->crc != record_crc(in))
        return gr_fail(error, GRAFT_ERR_FORMAT, "the status of %s from rank %d was changed in transit (its CRC32C)",
                       o->what, from);
    if (in->call != o->known->call)
        return gr_fail(error, GRAFT_ERR_PEER,
                       "rank %d is in call %lld of %s, and rank %d in call %lld: a rank has skipped a call, or made "
                       "one more",
                       from, (long long)in->call, o->what, o->comm->rank, (long long)o->known->call);
    return GRAFT_OK;
}

/* Merge the received record of this round into what this rank knows, and begin the next round. */
static int32_t take_round(struct gr_outcome *o, graft_error *error)
{
    const int64_t                   n = o->comm->n_ranks;
    const int32_t                   from = (int32_t)((o->comm->rank + n - ((int64_t)1 << o->round)) % n);
    const struct gr_outcome_record *in = &o->in[o->round];
    struct gr_outcome_record       *known = o->known;

    if (check_record(o, in, from, error) < 0) return gr_comm_fail(o->comm, error);
    if (in->failed < known->failed) {
        known->failed = in->failed;
        known->code = in->code;
        known->native_code = in->native_code;
        memcpy(known->message, in->message, sizeof known->message);
    }
    if (in->offered < known->offered) {
        known->offered = in->offered;
        memcpy(known->terms, in->terms, sizeof known->terms);
    }
    o->round++;
    return send_round(o, error);
}

void gr_comm_outcome_poll(struct gr_outcome *o)
{
    graft_error ignored = { .size = sizeof ignored }; /* calls on the comm return it again */
    int64_t     left;

    while (o != NULL && o->is_open && o->round < o->rounds) {
        if (gr_comm_poll(o->comm, &o->requests[o->round], 1, &left, &ignored) < 0 || left > 0) return;
        if (take_round(o, &ignored) < 0) return;
    }
}

int32_t gr_comm_outcome_progress(struct gr_outcome *o, int32_t *arrived, graft_error *error)
{
    int64_t left;

    gr_comm_outcome_poll(o);
    *arrived = *arrived && gr_comm_outcome_is_known(o);
    return gr_comm_poll(o->comm, NULL, 0, &left, error);
}

int gr_comm_outcome_is_known(const struct gr_outcome *o)
{
    return !o->is_open || o->round == o->rounds;
}

/* Wait for requests. They are polled first, because gr_comm_wait() always checks for notices of all ranks. */
static int32_t finish(struct gr_comm *comm, struct gr_request *requests, int64_t count, graft_error *error)
{
    int64_t       left = 0;
    const int32_t rc = gr_comm_poll(comm, requests, count, &left, error);

    return rc == GRAFT_OK && left > 0 ? gr_comm_wait(comm, requests, count, error) : rc;
}

int32_t gr_comm_outcome_end(struct gr_outcome *o, graft_error *error)
{
    struct gr_outcome_record *known = o->known;
    int32_t                   rc = GRAFT_OK;

    if (!o->is_open) return GRAFT_OK;
    while (o->round < o->rounds) {
        GR_TRY_DONE(finish(o->comm, &o->requests[o->round], 1, error));
        GR_TRY_DONE(take_round(o, error));
    }
    GR_TRY_DONE(finish(o->comm, &o->requests[o->rounds], o->rounds, error));
    if (known->failed == NO_RANK) goto done;
    known->message[sizeof known->message - 1] = '\0';
    rc = gr_fail_native(error, known->code, known->native_code, "%s", known->message);
    error->rank = known->failed;
    o->was_refused = 1;
done:
    o->is_open = 0;
    return rc;
}

const void *gr_comm_outcome_terms(const struct gr_outcome *o)
{
    return o->known->offered == NO_RANK ? NULL : o->known->terms;
}
