/* Makes one fault in a transport, see harness/faulty.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/faulty.h"

#include "comm/comm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

const char *const fault_name[FAULTS] = { "nothing", "error",  "late error", "delay",     "truncate", "flip", "longer",
                                         "zeroed",  "random", "doubled",    "reordered", "drop",     "stop", "die" };

struct graft_request {
    graft_request *inner; /* request of the wrapped transport; NULL if the message is lost */
    void          *copy;  /* changed copy of the bytes */
    int32_t        is_send;
    int32_t        is_broken;
    int32_t        is_control;
    int64_t        tests; /* number of tests so far */
};

static int32_t refuse(graft_error *error, const char *sentence)
{
    error->code = GRAFT_ERR_MODULE;
    error->native_code = 77;
    error->rank = 0;
    snprintf(error->message, sizeof error->message, "%s", sentence);
    return GRAFT_ERR_MODULE;
}

static void sleep_for(double seconds)
{
    struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep(&time, NULL);
}

/* Count a send or receive, and tell the caller whether the fault happens in it. Faults that need no request are made
 * here. */
static int32_t begin(struct faulty *f, int is_send, int *now, graft_error *error)
{
    *now = f->calls++ == f->at && (is_send || f->kind < FAULT_TRUNCATE || f->kind > FAULT_REORDERED);
    if (*now) f->is_hit = 1;
    if (*now && (f->kind == FAULT_DELAY || f->kind == FAULT_STOP)) sleep_for(f->seconds);
    if (*now && f->kind == FAULT_DIE) f->is_dead = 1;
    if (f->is_dead) return refuse(error, "this rank is dead");
    return *now && f->kind == FAULT_ERROR ? refuse(error, "the network is down") : GRAFT_OK;
}

enum { MORE = 16, POLLS = 200 };

/* The bytes that are sent instead of the message. Their number is stored in *bytes. */
static void *changed_copy(struct faulty *f, const void *data, uint64_t *bytes)
{
    unsigned char *copy = calloc(*bytes + MORE, 1);
    unsigned       seed = (unsigned)f->at;

    if (*bytes > 0) memcpy(copy, data, *bytes);
    if (f->kind == FAULT_FLIP && *bytes > 0) copy[*bytes * 2 / 3] ^= 4;
    for (uint64_t i = 0; i < *bytes && f->kind == FAULT_ZEROED; i++) copy[i] = 0;
    for (uint64_t i = 0; i < *bytes && f->kind == FAULT_RANDOM; i++) copy[i] = (unsigned char)(rand_r(&seed) >> 7);
    f->is_hit = *bytes > 0 && memcmp(copy, data, *bytes) != 0;
    if (f->kind == FAULT_LONGER) *bytes += MORE;
    if (f->kind == FAULT_TRUNCATE) *bytes /= 2;
    if (f->kind == FAULT_LONGER || f->kind == FAULT_TRUNCATE) f->is_hit = 1;
    return copy;
}

static void send_late(struct faulty *f)
{
    struct faulty_late *late = &f->late;
    graft_error         ignored = { .size = sizeof ignored };

    late->waits = 0;
    if (f->inner.send(f->inner.self, late->to, late->tag, late->data, late->bytes, &late->request, &ignored) < 0)
        late->request = NULL;
}

/* Send the delayed or duplicated message when it is due, and test its request. */
static void poll_late(struct faulty *f)
{
    graft_error ignored = { .size = sizeof ignored };
    int32_t     done = 0;

    if (f->late.waits && f->late.polls++ > POLLS) send_late(f);
    if (f->late.request == NULL) return;
    if (f->inner.test(f->inner.self, f->late.request, &done, &ignored) == GRAFT_OK && done) f->late.request = NULL;
}

static void end_late(struct faulty *f)
{
    if (f->late.request != NULL) f->inner.cancel(f->inner.self, f->late.request);
    free(f->late.data);
    f->late = (struct faulty_late){ 0 };
}

static void release(graft_request *request)
{
    free(request->copy);
    free(request);
}

static int32_t faulty_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                           graft_request **request, graft_error *error)
{
    struct faulty *f = self;
    graft_request *made;
    int            now;
    int32_t        rc = begin(f, 1, &now, error);

    if (rc < 0) return rc;
    made = calloc(1, sizeof *made);
    made->is_send = 1;
    made->is_broken = now && f->kind == FAULT_LATER;
    if (now && f->kind >= FAULT_TRUNCATE && f->kind < FAULT_DOUBLED) data = made->copy = changed_copy(f, data, &bytes);
    if (now && (f->kind == FAULT_DOUBLED || f->kind == FAULT_REORDERED)) {
        f->late = (struct faulty_late){ .bytes = bytes, .to = to, .tag = tag, .waits = 1 };
        f->late.data = changed_copy(f, data, &bytes);
    }
    if (!now || (f->kind != FAULT_DROP && f->kind != FAULT_REORDERED))
        rc = f->inner.send(f->inner.self, to, tag, data, bytes, &made->inner, error);
    if (f->late.waits && f->late.to == to && now == (f->kind == FAULT_DOUBLED)) send_late(f);
    if (rc < 0) release(made);
    else *request = made;
    return rc;
}

static int32_t faulty_receive(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes,
                              graft_request **request, graft_error *error)
{
    struct faulty *f = self;
    graft_request *made;
    int            now;
    int32_t        rc = begin(f, 0, &now, error);

    if (rc < 0) return rc;
    made = calloc(1, sizeof *made);
    made->is_broken = now && f->kind == FAULT_LATER;
    made->is_control = tag == GR_TAG_CONTROL;
    if (!now || f->kind != FAULT_DROP)
        rc = f->inner.receive(f->inner.self, from, tag, data, bytes, &made->inner, error);
    if (rc < 0) free(made);
    else *request = made;
    return rc;
}

static int32_t faulty_test(void *self, graft_request *request, int32_t *done, graft_error *error)
{
    struct faulty *f = self;
    int32_t        rc = GRAFT_OK;

    *done = 0;
    poll_late(f);
    if (f->is_dead) return refuse(error, "this rank is dead");
    if (request->is_broken) return refuse(error, "the network lost a message");
    if (request->is_control) f->listens++;
    else f->tests++;
    if (!request->is_send && !request->is_control && request->tests++ < f->hold) return GRAFT_OK;
    if (request->inner != NULL) rc = f->inner.test(f->inner.self, request->inner, done, error);
    else *done = request->is_send;
    if (rc == GRAFT_OK && *done) release(request);
    return rc;
}

static int32_t faulty_cancel(void *self, graft_request *request)
{
    struct faulty *f = self;
    const int32_t  rc = request->inner != NULL ? f->inner.cancel(f->inner.self, request->inner) : 1;

    release(request);
    return rc && !f->keeps;
}

static void faulty_abandon(void *self)
{
    struct faulty *f = self;

    f->inner.abandon(f->inner.self);
}

static void faulty_close(void *self)
{
    struct faulty *f = self;

    end_late(f);
    f->inner.close(f->inner.self);
}

graft_transport faulty_wrap(struct faulty *faulty)
{
    graft_transport wrapped = faulty->inner;

    wrapped.self = faulty;
    wrapped.send = faulty_send;
    wrapped.receive = faulty_receive;
    wrapped.test = faulty_test;
    wrapped.cancel = faulty_cancel;
    wrapped.close = faulty_close;
    wrapped.abandon = faulty_abandon;
    return wrapped;
}
