/* Agreement on what went wrong.
 *
 * A rank that stops sends its verdict to all others; who hears one stops as well, and answers with his own. When a rank
 * has heard all, or waited its grace, the lowest rank that had a complaint of its own chooses what is to be said, and
 * sends it to all as the conclusion, which each takes over: so also a rank that slept through all of it says the same
 * when it wakes. If that one is silent too, each chooses for itself, by the same rule.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/agreement.h"

#include "base/clock.h"
#include "base/crc.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

static const uint32_t MAGIC = 0x56417247u; /* "GrAV" */

/* A control message. Any transport takes one of this size without the receiver's help. */
struct note {
    uint32_t magic;
    uint32_t crc; /* of the rest */
    int32_t  kind;
    int32_t  code;
    int32_t  native_code;
    int32_t  blamed; /* verdict: the rank waited for, or -1; conclusion: the rank at fault */
    int32_t  reserved[2];
    char     sentence[448];
};

struct peer {
    graft_request *receive;
    graft_request *send[2]; /* of the verdict and the conclusion */
    int32_t        is_heard;
    struct note    arriving;
    struct note    verdict;
};

struct gr_control {
    int32_t     is_agreed;
    struct note mine;
    struct note conclusion;
    struct note agreed;
    struct peer peer[];
};

_Static_assert(sizeof(struct note) == 480, "a note has no padding: all of it is in the CRC");

static uint32_t crc_of(const struct note *note)
{
    return gr_crc(0, &note->kind, sizeof *note - offsetof(struct note, kind));
}

static void write_note(struct note *note, int32_t kind, int32_t blamed, const graft_error *error)
{
    memset(note, 0, sizeof *note);
    note->magic = MAGIC;
    note->kind = kind;
    note->code = error->code;
    note->native_code = error->native_code;
    note->blamed = blamed;
    snprintf(note->sentence, sizeof note->sentence, "%s", error->message);
    note->crc = crc_of(note);
}

static double grace(double timeout)
{
    return timeout < 20 ? timeout / 2 : 10;
}

static void open_receive(struct gr_comm *comm, int32_t rank)
{
    const graft_transport *t = &comm->transport;
    struct peer           *peer = &comm->control->peer[rank];
    graft_error            ignored = { .size = sizeof ignored };

    if (t->receive(t->self, rank, GR_TAG_CONTROL, &peer->arriving, sizeof peer->arriving, &peer->receive, &ignored) < 0)
        peer->receive = NULL;
}

static void take_over(struct gr_comm *comm, int32_t rank)
{
    struct peer *peer = &comm->control->peer[rank];
    struct note *note = &peer->arriving;

    /* One that is damaged still says that something is wrong. */
    if (note->magic != MAGIC || note->crc != crc_of(note)) {
        *note = (struct note){ .kind = GR_HEARD, .blamed = -1 };
    }
    note->sentence[sizeof note->sentence - 1] = '\0';
    if (note->kind == GR_CONCLUSION) {
        if (!comm->control->is_agreed) comm->control->agreed = *note;
        comm->control->is_agreed = 1;
        return;
    }
    peer->verdict = *note;
    peer->is_heard = 1;
    open_receive(comm, rank);
}

/* Take what has come. */
static void listen(struct gr_comm *comm)
{
    const graft_transport *t = &comm->transport;

    for (int32_t i = 0; i < comm->n_ranks; i++) {
        struct peer *peer = &comm->control->peer[i];
        graft_error  ignored = { .size = sizeof ignored };
        int32_t      done = 0;

        if (peer->receive == NULL) continue;
        if (t->test(t->self, peer->receive, &done, &ignored) < 0) {
            if (!t->give_up(t->self, peer->receive)) gr_comm_keep(comm);
            peer->receive = NULL;
        } else if (done) {
            peer->receive = NULL;
            take_over(comm, i);
        }
    }
}

int32_t gr_control_create(struct gr_comm *comm, graft_error *error)
{
    const graft_transport *t = &comm->transport;
    const uint64_t         bytes = sizeof *comm->control + (uint64_t)comm->n_ranks * sizeof comm->control->peer[0];
    int32_t                rc = GRAFT_OK;

    comm->control = gr_new(comm->context, 1, bytes, "control messages", error);
    if (comm->control == NULL) return GRAFT_ERR_NOMEM;
    for (int32_t i = 0; i < comm->n_ranks && rc == GRAFT_OK; i++) {
        struct peer *peer = &comm->control->peer[i];

        if (i == comm->rank) continue;
        rc = t->receive(t->self, i, GR_TAG_CONTROL, &peer->arriving, sizeof peer->arriving, &peer->receive, error);
        if (rc < 0) peer->receive = NULL;
    }
    return rc;
}

static void give_up(struct gr_comm *comm, graft_request **request)
{
    if (*request != NULL && !comm->transport.give_up(comm->transport.self, *request)) gr_comm_keep(comm);
    *request = NULL;
}

void gr_control_destroy(struct gr_comm *comm)
{
    if (comm->control == NULL) return;
    for (int32_t i = 0; i < comm->n_ranks; i++) {
        struct peer *peer = &comm->control->peer[i];

        give_up(comm, &peer->receive);
        give_up(comm, &peer->send[0]);
        give_up(comm, &peer->send[1]);
    }
    gr_free(comm->context, comm->control);
    comm->control = NULL;
}

static int anyone_heard(const struct gr_comm *comm)
{
    for (int32_t i = 0; i < comm->n_ranks; i++)
        if (comm->control->peer[i].is_heard) return 1;
    return comm->control->is_agreed;
}

int gr_control_heard(struct gr_comm *comm)
{
    listen(comm);
    return anyone_heard(comm);
}

static int all_heard(const struct gr_comm *comm)
{
    for (int32_t i = 0; i < comm->n_ranks; i++)
        if (i != comm->rank && !comm->control->peer[i].is_heard) return 0;
    return 1;
}

static void tell_all(struct gr_comm *comm, int which, const struct note *note)
{
    const graft_transport *t = &comm->transport;
    graft_error            ignored = { .size = sizeof ignored };

    for (int32_t i = 0; i < comm->n_ranks; i++) {
        graft_request **send = &comm->control->peer[i].send[which];

        if (i == comm->rank) continue;
        if (t->send(t->self, i, GR_TAG_CONTROL, note, sizeof *note, send, &ignored) < 0) *send = NULL;
    }
}

/* What a rank has said, or NULL. */
static const struct note *verdict_of(const struct gr_comm *comm, int32_t rank)
{
    if (rank == comm->rank) return &comm->control->mine;
    return comm->control->peer[rank].is_heard ? &comm->control->peer[rank].verdict : NULL;
}

/* The lowest rank that has this to complain of, or -1. */
static int32_t lowest(const struct gr_comm *comm, enum gr_complaint complaint)
{
    for (int32_t i = 0; i < comm->n_ranks; i++) {
        const struct note *note = verdict_of(comm, i);

        if (note != NULL && note->kind == (int32_t)complaint) return i;
    }
    return -1;
}

static int32_t leader(const struct gr_comm *comm)
{
    const int32_t failed = lowest(comm, GR_FAILED), late = lowest(comm, GR_TIMEOUT);

    if (failed < 0 || late < 0) return failed < 0 ? late : failed;
    return failed < late ? failed : late;
}

/* Who is to blame for the wait of `reporter`: whom he waits for, or whom that one waits for, and so on to the first who
 * says nothing, or waits for nobody. In a circle, the first. *witness is the one who waits for him. */
static int32_t culprit(const struct gr_comm *comm, int32_t reporter, int32_t *witness)
{
    int32_t at = reporter;

    *witness = reporter;
    for (int32_t steps = 0; steps < comm->n_ranks; steps++) {
        const struct note *note = verdict_of(comm, at);

        if (note == NULL || note->blamed < 0 || note->blamed >= comm->n_ranks) return at;
        *witness = at;
        at = note->blamed;
    }
    *witness = reporter;
    return verdict_of(comm, reporter)->blamed;
}

/* The sentence for all. */
static void choose(const struct gr_comm *comm, struct note *note)
{
    const int32_t failed = lowest(comm, GR_FAILED), late = lowest(comm, GR_TIMEOUT);
    graft_error   error = { .size = sizeof error };
    int32_t       fault, witness;

    if (failed >= 0) {
        const struct note *verdict = verdict_of(comm, failed);

        fault = failed;
        gr_fail_native(&error, verdict->code, verdict->native_code, "rank %d: %.420s", failed, verdict->sentence);
    } else if (late >= 0) {
        fault = culprit(comm, late, &witness);
        gr_fail(&error, GRAFT_ERR_PEER, "rank %d did not answer: rank %d waited %.3g s for a message from it", fault,
                witness, comm->timeout);
    } else {
        fault = 0;
        while (fault < comm->n_ranks - 1 && verdict_of(comm, fault) != NULL) fault++;
        gr_fail(&error, GRAFT_ERR_PEER, "a rank failed, perhaps rank %d, and could not say why", fault);
    }
    write_note(note, GR_CONCLUSION, fault, &error);
}

static void agree(struct gr_comm *comm)
{
    struct gr_control *control = comm->control;
    const double       patience = grace(comm->timeout), begin = gr_seconds();
    struct gr_rest     rest = { 0 };

    for (;; gr_rest(&rest)) {
        const double waited = gr_seconds() - begin;

        listen(comm);
        if (control->is_agreed) return;
        if (!all_heard(comm) && waited <= patience) continue;
        if (leader(comm) == comm->rank || waited > 2 * patience) break;
    }
    choose(comm, &control->conclusion);
    control->agreed = control->conclusion;
    control->is_agreed = 1;
    tell_all(comm, 1, &control->conclusion);
}

/* Let our own messages leave. */
static void flush(struct gr_comm *comm)
{
    const graft_transport *t = &comm->transport;
    const double           end = gr_seconds() + grace(comm->timeout);
    struct gr_rest         rest = { 0 };
    int32_t                left = 1;

    for (; left > 0 && gr_seconds() < end; gr_rest(&rest)) {
        left = 0;
        for (int32_t i = 0; i < 2 * comm->n_ranks; i++) {
            graft_request **send = &comm->control->peer[i / 2].send[i % 2];
            graft_error     ignored = { .size = sizeof ignored };
            int32_t         done = 0;

            if (*send == NULL) continue;
            if (t->test(t->self, *send, &done, &ignored) < 0) give_up(comm, send);
            else if (done) *send = NULL;
            else left++;
        }
    }
}

int32_t gr_control_stop(struct gr_comm *comm, enum gr_complaint complaint, int32_t blamed, graft_error *error)
{
    struct gr_control *control = comm->control;

    if (gr_control_heard(comm)) complaint = GR_HEARD;
    if (complaint == GR_HEARD) gr_fail(error, GRAFT_ERR_PEER, "it heard that another rank failed");
    gr_comm_give_up(comm);
    write_note(&control->mine, (int32_t)complaint, blamed, error);
    tell_all(comm, 0, &control->mine);
    agree(comm);
    flush(comm);
    comm->dead = GRAFT_ERR_PEER;
    comm->cause.size = sizeof comm->cause;
    gr_fail_native(&comm->cause, GRAFT_ERR_PEER, control->agreed.native_code, "%s", control->agreed.sentence);
    comm->cause.rank = control->agreed.blamed;
    if (comm->transport.abandon != NULL) comm->transport.abandon(comm->transport.self);
    gr_control_destroy(comm);
    *error = comm->cause;
    return GRAFT_ERR_PEER;
}

int32_t gr_control_announce(const graft_transport *t, double timeout, graft_error *error)
{
    const double end = gr_seconds() + grace(timeout);
    struct note  note[2];
    graft_error  prefixed = *error;

    snprintf(prefixed.message, sizeof prefixed.message, "rank %d: %.420s", t->rank, error->message);
    write_note(&note[0], GR_FAILED, -1, error);
    write_note(&note[1], GR_CONCLUSION, t->rank, &prefixed);
    for (int32_t i = 0; i < 2 * t->n_ranks; i++) {
        graft_error    ignored = { .size = sizeof ignored };
        graft_request *request = NULL;
        struct gr_rest rest = { 0 };
        int32_t        done = 0, rc;

        if (i / 2 == t->rank) continue;
        rc = t->send(t->self, i / 2, GR_TAG_CONTROL, &note[i % 2], sizeof note[0], &request, &ignored);
        if (rc < 0) continue;
        for (; rc == GRAFT_OK && !done && gr_seconds() < end; gr_rest(&rest))
            rc = t->test(t->self, request, &done, &ignored);
        /* One that has not left by now reads what will be in this place, and fails its CRC. */
        if (!done) t->give_up(t->self, request);
    }
    /* What the others answer stays unread, and would be taken for news by another comm. */
    if (t->abandon != NULL) t->abandon(t->self);
    prefixed.code = GRAFT_ERR_PEER;
    prefixed.rank = t->rank;
    *error = prefixed;
    return GRAFT_ERR_PEER;
}
