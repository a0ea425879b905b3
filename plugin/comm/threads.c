/* A transport whose ranks are threads of one process. Each rank has a mailbox with a lock. The sender or the receiver,
 * whichever comes second, takes the request of the other from the receiver's mailbox, and copies the bytes after it has
 * released the lock. A small message does not wait for its receiver.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/threads.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/memory.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum state { WAITING, TAKEN, DONE, WRONG_LENGTH }; /* TAKEN: the other rank is copying the bytes */

/* A request, or the copy of a small message. A copy belongs to the mailbox of its receiver. */
struct graft_request {
    graft_request  *next;
    int32_t         peer; /* the other rank; in a mailbox, the sender of the message */
    int32_t         tag;
    int32_t         sends; /* 1: a send, 0: a receive */
    int32_t         eager; /* 1: this is a copy: the bytes are in `copy`, and no rank waits for it */
    _Atomic int32_t state;
    uint64_t        bytes;
    uint64_t        found; /* bytes of the received message, for the error if its length is wrong */
    const void     *from;
    void           *to;
    char            copy[]; /* [GR_EAGER_BYTES] in a copy; [0] in a request */
};

struct queue {
    graft_request *first, **end;
};

struct mailbox {
    pthread_mutex_t lock;
    struct queue    messages; /* messages without a receive yet; protected by the lock */
    struct queue    receives; /* receives without a message yet; protected by the lock */
    graft_request  *copies;   /* unused copies; protected by the lock */
    graft_request  *spare;    /* unused requests. Only the thread of this rank uses this and `is_over` */
    int32_t         is_over;  /* 1: abandon() was called */
    int32_t         rank;
    struct hub     *hub;
};

struct hub {
    graft_host      host;
    int32_t         n_ranks;
    _Atomic int32_t open; /* number of endpoints that are not closed */
    struct mailbox  at[];
};

static void queue_init(struct queue *queue)
{
    queue->first = NULL;
    queue->end = &queue->first;
}

static void queue_append(struct queue *queue, graft_request *request)
{
    request->next = NULL;
    *queue->end = request;
    queue->end = &request->next;
}

static void queue_unlink(struct queue *queue, graft_request **link)
{
    graft_request *request = *link;

    GR_ASSERT(request != NULL);
    *link = request->next;
    if (queue->end == &request->next) queue->end = link;
}

/* Unlink and return the first request with this peer and tag; NULL: there is none. The caller must complete it. */
static graft_request *queue_take(struct queue *queue, int32_t peer, int32_t tag)
{
    for (graft_request **link = &queue->first; *link != NULL; link = &(*link)->next) {
        graft_request *request = *link;

        if (request->peer != peer || request->tag != tag) continue;
        queue_unlink(queue, link);
        atomic_store_explicit(&request->state, TAKEN, memory_order_relaxed);
        return request;
    }
    return NULL;
}

static void push(graft_request **list, graft_request *request)
{
    request->next = *list;
    *list = request;
}

/* Take the first request of a list, or allocate one with so many bytes for a message; NULL: there is no memory. */
static graft_request *pop(graft_request **list, const struct hub *hub, uint64_t bytes, graft_error *error)
{
    graft_request *request = *list;

    if (request == NULL) return gr_memory_host_new(&hub->host, 1, sizeof *request + bytes, "a message", error);
    *list = request->next;
    return request;
}

static int32_t new_message(struct mailbox *me, int32_t peer, int32_t tag, graft_request **request, graft_error *error)
{
    if (peer < 0 || peer >= me->hub->n_ranks || peer == me->rank || tag < 0)
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "transport of threads: peer is %d and tag %d on rank %d of %d; expected another rank and a tag of at "
            "least 0",
            peer, tag, me->rank, me->hub->n_ranks);
    if (me->is_over)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "the ranks stopped after a failure; this transport cannot be used again");
    *request = pop(&me->spare, me->hub, 0, error);
    if (*request == NULL) return GRAFT_ERR_NOMEM;
    (*request)->peer = peer;
    (*request)->tag = tag;
    (*request)->eager = 0;
    atomic_store_explicit(&(*request)->state, WAITING, memory_order_relaxed);
    return GRAFT_OK;
}

/* Complete a receive. The request is not accessed afterwards, because the thread that posted it may reuse it at
 * once. */
static void deliver(graft_request *receive, const void *data, uint64_t bytes)
{
    const int32_t state = bytes == receive->bytes ? DONE : WRONG_LENGTH;

    GR_ASSERT(!receive->sends);
    receive->found = bytes;
    if (state == DONE && bytes > 0) memcpy(receive->to, data, bytes);
    atomic_store_explicit(&receive->state, state, memory_order_release);
}

/* Put a copy of a small message into the mailbox of its receiver, whose lock is held. */
static int32_t leave_copy(struct mailbox *box, const graft_request *send, graft_error *error)
{
    graft_request *message = pop(&box->copies, box->hub, GR_EAGER_BYTES, error);

    if (message == NULL) return GRAFT_ERR_NOMEM;
    message->peer = send->peer;
    message->tag = send->tag;
    message->sends = message->eager = 1;
    message->bytes = send->bytes;
    message->from = message->copy;
    if (send->bytes > 0) memcpy(message->copy, send->from, send->bytes);
    queue_append(&box->messages, message);
    return GRAFT_OK;
}

static int32_t threads_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                            graft_request **request, graft_error *error)
{
    struct mailbox *me = self, *peer;
    graft_request  *mine = NULL, *receive;
    const int32_t   is_small = bytes <= GR_EAGER_BYTES;
    int32_t         rc = new_message(me, to, tag, &mine, error);

    if (rc < 0) return rc;
    mine->sends = 1;
    mine->bytes = bytes;
    mine->from = data;
    mine->peer = me->rank;              /* the receiver looks for the rank that sends */
    mine->to = peer = &me->hub->at[to]; /* cancel() needs it */
    pthread_mutex_lock(&peer->lock);
    receive = queue_take(&peer->receives, me->rank, tag);
    if (receive == NULL && is_small) rc = leave_copy(peer, mine, error);
    else if (receive == NULL) queue_append(&peer->messages, mine);
    if (receive != NULL || is_small) atomic_store_explicit(&mine->state, DONE, memory_order_relaxed);
    pthread_mutex_unlock(&peer->lock);
    if (receive != NULL) deliver(receive, data, bytes);
    if (rc < 0) push(&me->spare, mine);
    else *request = mine;
    return rc;
}

static int32_t threads_receive(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes,
                               graft_request **request, graft_error *error)
{
    struct mailbox *me = self;
    graft_request  *mine = NULL, *message;
    const int32_t   rc = new_message(me, from, tag, &mine, error);

    if (rc < 0) return rc;
    mine->sends = 0;
    mine->bytes = bytes;
    mine->to = data;
    pthread_mutex_lock(&me->lock);
    message = queue_take(&me->messages, from, tag);
    if (message == NULL) {
        queue_append(&me->receives, mine);
    } else if (message->eager) {
        deliver(mine, message->from, message->bytes);
        push(&me->copies, message);
        message = NULL;
    }
    pthread_mutex_unlock(&me->lock);
    if (message != NULL) {
        deliver(mine, message->from, message->bytes);
        /* After this the sender may reuse the request. */
        atomic_store_explicit(&message->state, DONE, memory_order_release);
    }
    *request = mine;
    return GRAFT_OK;
}

static int32_t threads_test(void *self, graft_request *request, int32_t *done, graft_error *error)
{
    const int32_t state = atomic_load_explicit(&request->state, memory_order_acquire);

    *done = state == DONE;
    if (state == WRONG_LENGTH)
        return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d sent %llu bytes, expected %llu", request->peer,
                       (unsigned long long)request->found, (unsigned long long)request->bytes);
    if (*done) push(&((struct mailbox *)self)->spare, request);
    return GRAFT_OK;
}

static int32_t threads_cancel(void *self, graft_request *request)
{
    struct mailbox *me = self, *box = request->sends ? request->to : me;
    struct queue   *queue = request->sends ? &box->messages : &box->receives;

    pthread_mutex_lock(&box->lock);
    for (graft_request **link = &queue->first; *link != NULL; link = &(*link)->next) {
        if (*link != request) continue;
        queue_unlink(queue, link);
        break;
    }
    pthread_mutex_unlock(&box->lock);
    /* After this loop the caller may reuse the memory. */
    while (atomic_load_explicit(&request->state, memory_order_acquire) == TAKEN) sched_yield();
    push(&me->spare, request);
    return 1;
}

static void threads_abandon(void *self)
{
    ((struct mailbox *)self)->is_over = 1;
}

static void free_list(const graft_host *host, graft_request *request)
{
    while (request != NULL) {
        graft_request *next = request->next;

        gr_memory_host_free(host, request);
        request = next;
    }
}

static void threads_close(void *self)
{
    struct hub      *hub = ((struct mailbox *)self)->hub;
    const graft_host host = hub->host;

    if (atomic_fetch_sub(&hub->open, 1) > 1) return;
    for (int32_t i = 0; i < hub->n_ranks; i++) {
        free_list(&host, hub->at[i].messages.first);
        free_list(&host, hub->at[i].receives.first);
        free_list(&host, hub->at[i].copies);
        free_list(&host, hub->at[i].spare);
        pthread_mutex_destroy(&hub->at[i].lock);
    }
    gr_memory_host_free(&host, hub);
}

int32_t gr_comm_threads_create(const graft_host *host, int32_t n_ranks, graft_transport *transports, graft_error *error)
{
    struct hub *hub;

    if (n_ranks < 1 || n_ranks > GR_RANK_THREADS_MAX)
        return gr_fail(error, GRAFT_ERR_ARG, "n_ranks is %d, expected 1 to %d", n_ranks, (int)GR_RANK_THREADS_MAX);
    hub = gr_memory_host_new(host, 1, sizeof *hub + (uint64_t)n_ranks * sizeof hub->at[0], "ranks as threads", error);
    if (hub == NULL) return GRAFT_ERR_NOMEM;
    hub->host = *host;
    hub->n_ranks = n_ranks;
    atomic_init(&hub->open, n_ranks);
    for (int32_t i = 0; i < n_ranks; i++) {
        struct mailbox *at = &hub->at[i];

        pthread_mutex_init(&at->lock, NULL);
        queue_init(&at->messages);
        queue_init(&at->receives);
        at->rank = i;
        at->hub = hub;
        transports[i] = (graft_transport){ .size = sizeof transports[i],
                                           .rank = i,
                                           .n_ranks = n_ranks,
                                           .tag_max = INT32_MAX,
                                           .name = "threads",
                                           .self = at,
                                           .send = threads_send,
                                           .receive = threads_receive,
                                           .test = threads_test,
                                           .cancel = threads_cancel,
                                           .close = threads_close,
                                           .abandon = threads_abandon };
    }
    return GRAFT_OK;
}
