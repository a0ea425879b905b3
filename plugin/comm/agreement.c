/* Makes all ranks stop together after a failure.
 *
 * A rank that stops sends a notice with its reason to all others. A rank that receives a notice stops as well, and
 * answers with its own. The lowest rank that failed or timed out, the leader, waits until all others have sent notices,
 * or its grace period is over. Then it chooses the sentence that all will return, and sends it as a second notice.
 * Every rank accepts the first such sentence, so a rank that was suspended meanwhile returns the same sentence later.
 * If no sentence arrives within a second grace period, each rank chooses one by the same rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/agreement.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/crc.h"
#include "base/memory.h"
#include "comm/endpoint.h"

#include <stdio.h>
#include <string.h>

static const uint32_t NOTICE_MAGIC = 0x56417247u; /* the letters "GrAV" */

/* A message that says why its rank stops, or on which sentence ranks agree. Every transport delivers messages of this
 * size even if the receiver does nothing. */
struct notice {
    uint32_t magic;
    uint32_t crc;  /* CRC32C of the fields below */
    int32_t  kind; /* enum gr_stop */
    int32_t  code;
    int32_t  native_code;
    int32_t  blamed; /* the rank that the sender waited for, or -1; in an agreement the rank at fault */
    int32_t  reserved[2];
    char     sentence[448];
};

_Static_assert(sizeof(struct notice) == 480, "a notice has no padding: all of it is in the CRC");

struct peer {
    graft_request *receive;
    graft_request *send[2]; /* sends of the reason and of the agreement */
    int32_t        has_stopped;
    struct notice  arriving;
    struct notice  reason; /* the notice of the peer if it has stopped */
};

struct gr_agreement {
    int32_t       is_agreed;
    struct notice reason;   /* why this rank stopped */
    struct notice proposal; /* what this rank proposes if it is the leader */
    struct notice agreed;
    struct peer   peer[];
};

static uint32_t notice_crc(const struct notice *notice)
{
    return gr_crc(0, &notice->kind, sizeof *notice - offsetof(struct notice, kind));
}

static void write_notice(struct notice *notice, int32_t kind, int32_t blamed, const graft_error *error)
{
    memset(notice, 0, sizeof *notice);
    notice->magic = NOTICE_MAGIC;
    notice->kind = kind;
    notice->code = error->code;
    notice->native_code = error->native_code;
    notice->blamed = blamed;
    snprintf(notice->sentence, sizeof notice->sentence, "%s", error->message);
    notice->crc = notice_crc(notice);
}

/* The number of seconds for which a rank waits for notices of others. */
static double grace_period(double timeout)
{
    return timeout < 20 ? timeout / 2 : 10;
}

static void open_receive(struct gr_comm *comm, int32_t rank)
{
    const graft_transport *t = &comm->transport;
    struct peer           *peer = &comm->agreement->peer[rank];
    graft_error            ignored = { .size = sizeof ignored };

    if (t->receive(t->self, rank, GR_TAG_CONTROL, &peer->arriving, sizeof peer->arriving, &peer->receive, &ignored) < 0)
        peer->receive = NULL;
}

static void accept_notice(struct gr_comm *comm, int32_t rank)
{
    struct peer   *peer = &comm->agreement->peer[rank];
    struct notice *notice = &peer->arriving;

    /* If a notice is damaged, only the reason is unknown: its sender has stopped. */
    if (notice->magic != NOTICE_MAGIC || notice->crc != notice_crc(notice)) {
        *notice = (struct notice){ .kind = GR_STOP_NOTIFIED, .blamed = -1 };
    }
    notice->sentence[sizeof notice->sentence - 1] = '\0';
    if (notice->kind == GR_STOP_AGREED) {
        if (!comm->agreement->is_agreed) comm->agreement->agreed = *notice;
        comm->agreement->is_agreed = 1;
        return;
    }
    peer->reason = *notice;
    peer->has_stopped = 1;
    open_receive(comm, rank);
}

static void cancel(struct gr_comm *comm, graft_request **request)
{
    if (*request != NULL) gr_comm_endpoint_cancel(comm, *request);
    *request = NULL;
}

static void receive_notices(struct gr_comm *comm)
{
    const graft_transport *t = &comm->transport;

    for (int32_t i = 0; i < comm->n_ranks; i++) {
        struct peer *peer = &comm->agreement->peer[i];
        graft_error  ignored = { .size = sizeof ignored };
        int32_t      done = 0;

        if (peer->receive == NULL) continue;
        if (t->test(t->self, peer->receive, &done, &ignored) < 0) {
            cancel(comm, &peer->receive);
        } else if (done) {
            peer->receive = NULL;
            accept_notice(comm, i);
        }
    }
}

int32_t gr_comm_agreement_create(struct gr_comm *comm, graft_error *error)
{
    const graft_transport *t = &comm->transport;
    const uint64_t         bytes = sizeof *comm->agreement + (uint64_t)comm->n_ranks * sizeof comm->agreement->peer[0];
    int32_t                rc = GRAFT_OK;

    comm->agreement = gr_new(comm->context, 1, bytes, "notices of ranks", error);
    if (comm->agreement == NULL) return GRAFT_ERR_NOMEM;
    for (int32_t i = 0; i < comm->n_ranks && rc == GRAFT_OK; i++) {
        struct peer *peer = &comm->agreement->peer[i];

        if (i == comm->rank) continue;
        rc = t->receive(t->self, i, GR_TAG_CONTROL, &peer->arriving, sizeof peer->arriving, &peer->receive, error);
        if (rc < 0) peer->receive = NULL;
    }
    return rc;
}

void gr_comm_agreement_destroy(struct gr_comm *comm)
{
    if (comm->agreement == NULL) return;
    for (int32_t i = 0; i < comm->n_ranks; i++) {
        struct peer *peer = &comm->agreement->peer[i];

        cancel(comm, &peer->receive);
        cancel(comm, &peer->send[0]);
        cancel(comm, &peer->send[1]);
    }
    gr_free(comm->context, comm->agreement);
    comm->agreement = NULL;
}

static int any_stopped(const struct gr_comm *comm)
{
    for (int32_t i = 0; i < comm->n_ranks; i++)
        if (comm->agreement->peer[i].has_stopped) return 1;
    return comm->agreement->is_agreed;
}

int gr_comm_agreement_has_notice(struct gr_comm *comm)
{
    receive_notices(comm);
    return any_stopped(comm);
}

static int all_stopped(const struct gr_comm *comm)
{
    for (int32_t i = 0; i < comm->n_ranks; i++)
        if (i != comm->rank && !comm->agreement->peer[i].has_stopped) return 0;
    return 1;
}

static void notify_all(struct gr_comm *comm, int which, const struct notice *notice)
{
    const graft_transport *t = &comm->transport;
    graft_error            ignored = { .size = sizeof ignored };

    for (int32_t i = 0; i < comm->n_ranks; i++) {
        graft_request **send = &comm->agreement->peer[i].send[which];

        if (i == comm->rank) continue;
        if (t->send(t->self, i, GR_TAG_CONTROL, notice, sizeof *notice, send, &ignored) < 0) *send = NULL;
    }
}

/* Find the reason of a rank that stopped; NULL: it is unknown. */
static const struct notice *reason_of(const struct gr_comm *comm, int32_t rank)
{
    if (rank == comm->rank) return &comm->agreement->reason;
    return comm->agreement->peer[rank].has_stopped ? &comm->agreement->peer[rank].reason : NULL;
}

/* Find the lowest rank that stopped for this reason; -1: there is none. */
static int32_t lowest_rank(const struct gr_comm *comm, enum gr_stop why)
{
    for (int32_t i = 0; i < comm->n_ranks; i++) {
        const struct notice *notice = reason_of(comm, i);

        if (notice != NULL && notice->kind == (int32_t)why) return i;
    }
    return -1;
}

/* Find the rank that chooses the sentence; -1: no rank has failed or timed out, as far as this rank knows. */
static int32_t leader_of(const struct gr_comm *comm)
{
    const int32_t failed = lowest_rank(comm, GR_STOP_FAILED), late = lowest_rank(comm, GR_STOP_TIMEOUT);

    if (failed < 0 || late < 0) return failed < 0 ? late : failed;
    return failed < late ? failed : late;
}

/* Find the lowest rank that has sent no notice; -1: there is none. */
static int32_t silent_rank(const struct gr_comm *comm)
{
    for (int32_t i = 0; i < comm->n_ranks; i++)
        if (reason_of(comm, i) == NULL) return i;
    return -1;
}

/* Find the rank at fault for the time-out of rank `reporter`. Follow the chain of ranks, each of which waited for the
 * next, from `reporter` to the first rank that sent no notice or waited for none. If it waited for none, it was only
 * late, perhaps because of a rank that sent no notice, and then that rank is at fault. If the chain is a circle, the
 * rank at fault is that which `reporter` waited for. *witness is the rank that waited for the rank at fault, or -1. */
static int32_t rank_at_fault(const struct gr_comm *comm, int32_t reporter, int32_t *witness)
{
    const int32_t silent = silent_rank(comm);
    int32_t       at = reporter;

    GR_ASSERT(reason_of(comm, reporter) != NULL);
    *witness = reporter;
    for (int32_t steps = 0; steps < comm->n_ranks; steps++) {
        const struct notice *notice = reason_of(comm, at);

        if (notice == NULL) return at;
        if (notice->blamed < 0 || notice->blamed >= comm->n_ranks) {
            if (silent >= 0) *witness = -1;
            return silent >= 0 ? silent : at;
        }
        *witness = at;
        at = notice->blamed;
    }
    *witness = reporter;
    return reason_of(comm, reporter)->blamed;
}

/* Choose the sentence that all ranks will return. */
static void write_proposal(const struct gr_comm *comm, struct notice *notice)
{
    const int32_t failed = lowest_rank(comm, GR_STOP_FAILED), late = lowest_rank(comm, GR_STOP_TIMEOUT);
    graft_error   error = { .size = sizeof error };
    int32_t       fault, witness;

    if (failed >= 0) {
        const struct notice *reason = reason_of(comm, failed);

        fault = failed;
        gr_fail_native(&error, reason->code, reason->native_code, "rank %d: %.420s", failed, reason->sentence);
    } else if (late >= 0) {
        fault = rank_at_fault(comm, late, &witness);
        if (witness < 0)
            gr_fail(&error, GRAFT_ERR_PEER, "rank %d did not answer: it sends no notice, and rank %d waited %.3g s",
                    fault, late, comm->timeout);
        else
            gr_fail(&error, GRAFT_ERR_PEER, "rank %d did not answer: rank %d waited %.3g s for a message from it",
                    fault, witness, comm->timeout);
    } else {
        fault = 0;
        while (fault < comm->n_ranks - 1 && reason_of(comm, fault) != NULL) fault++;
        gr_fail(&error, GRAFT_ERR_PEER, "a rank failed, perhaps rank %d, and sent no reason", fault);
    }
    write_notice(notice, GR_STOP_AGREED, fault, &error);
}

static void reach_agreement(struct gr_comm *comm)
{
    struct gr_agreement *agreement = comm->agreement;
    const double         grace = grace_period(comm->timeout), begin = gr_seconds();
    struct gr_rest       rest = { 0 };

    for (;; gr_comm_rest(&rest)) {
        const double waited = gr_seconds() - begin;

        receive_notices(comm);
        if (agreement->is_agreed) return;
        if (!all_stopped(comm) && waited <= grace) continue;
        if (leader_of(comm) == comm->rank || waited > 2 * grace) break;
    }
    write_proposal(comm, &agreement->proposal);
    agreement->agreed = agreement->proposal;
    agreement->is_agreed = 1;
    notify_all(comm, 1, &agreement->proposal);
}

/* Wait until this rank's notices have been sent, or the grace period is over. */
static void flush_notices(struct gr_comm *comm)
{
    const graft_transport *t = &comm->transport;
    const double           end = gr_seconds() + grace_period(comm->timeout);
    struct gr_rest         rest = { 0 };
    int32_t                left = 1;

    for (; left > 0 && gr_seconds() < end; gr_comm_rest(&rest)) {
        left = 0;
        for (int32_t i = 0; i < 2 * comm->n_ranks; i++) {
            graft_request **send = &comm->agreement->peer[i / 2].send[i % 2];
            graft_error     ignored = { .size = sizeof ignored };
            int32_t         done = 0;

            if (*send == NULL) continue;
            if (t->test(t->self, *send, &done, &ignored) < 0) cancel(comm, send);
            else if (done) *send = NULL;
            else left++;
        }
    }
}

int32_t gr_comm_agreement_stop(struct gr_comm *comm, enum gr_stop why, int32_t awaited, graft_error *error)
{
    struct gr_agreement *agreement = comm->agreement;

    GR_ASSERT(agreement != NULL && !comm->dead);
    if (gr_comm_agreement_has_notice(comm)) why = GR_STOP_NOTIFIED;
    if (why == GR_STOP_NOTIFIED) gr_fail(error, GRAFT_ERR_PEER, "another rank failed");
    write_notice(&agreement->reason, (int32_t)why, awaited, error);
    notify_all(comm, 0, &agreement->reason);
    gr_comm_endpoint_cancel_all(comm); /* only after the notices were sent, because cancelling takes time */
    reach_agreement(comm);
    flush_notices(comm);
    comm->dead = GRAFT_ERR_PEER;
    comm->cause.size = sizeof comm->cause;
    gr_fail_native(&comm->cause, GRAFT_ERR_PEER, agreement->agreed.native_code, "%s", agreement->agreed.sentence);
    comm->cause.rank = agreement->agreed.blamed;
    if (comm->transport.abandon != NULL) comm->transport.abandon(comm->transport.self);
    gr_comm_agreement_destroy(comm);
    *error = comm->cause;
    return GRAFT_ERR_PEER;
}

int32_t gr_comm_agreement_announce(const graft_transport *t, double timeout, graft_error *error)
{
    const double  end = gr_seconds() + grace_period(timeout);
    struct notice notice[2];
    graft_error   prefixed = *error;

    snprintf(prefixed.message, sizeof prefixed.message, "rank %d: %.420s", t->rank, error->message);
    write_notice(&notice[0], GR_STOP_FAILED, -1, error);
    write_notice(&notice[1], GR_STOP_AGREED, t->rank, &prefixed);
    for (int32_t i = 0; i < 2 * t->n_ranks; i++) {
        graft_error    ignored = { .size = sizeof ignored };
        graft_request *request = NULL;
        struct gr_rest rest = { 0 };
        int32_t        done = 0, rc;

        if (i / 2 == t->rank) continue;
        rc = t->send(t->self, i / 2, GR_TAG_CONTROL, &notice[i % 2], sizeof notice[0], &request, &ignored);
        if (rc < 0) continue;
        for (; rc == GRAFT_OK && !done && gr_seconds() < end; gr_comm_rest(&rest))
            rc = t->test(t->self, request, &done, &ignored);
        /* If a notice is still unsent, the transport may read this stack memory later; then the receiver finds a wrong
         * CRC. */
        if (!done) t->cancel(t->self, request);
    }
    /* The answers of the others are not received. Another comm of this transport would take them for notices to it. */
    if (t->abandon != NULL) t->abandon(t->self);
    prefixed.code = GRAFT_ERR_PEER;
    prefixed.rank = t->rank;
    *error = prefixed;
    return GRAFT_ERR_PEER;
}
