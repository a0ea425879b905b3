/* Checks that a context serves one call at a time. A call from a callback or from another thread must be refused with
 * the names of both calls. destroy() and close() must take effect when the running call ends. Threads may use a context
 * one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include "harness/child.h"
#include "harness/tap.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 300 };

static const float right = -1; /* initial value of elements that a product must overwrite */

/* Whether C contains the sums that a plain loop computes. */
static int is_product(const struct misuse *m, const graft_csr *a, const float *c)
{
    for (int64_t i = 0; i < a->n_rows; i++) {
        for (int64_t j = 0; j < MISUSE_WIDTH; j++) {
            float sum = 0;

            for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
                sum += m->b[((const int32_t *)a->col_idx)[e] * MISUSE_WIDTH + j];
            if (c[i * MISUSE_WIDTH + j] != sum) return 0;
        }
    }
    return 1;
}

/* A product, and one call that its callback rows_done makes during it. */
struct within {
    struct misuse *m;
    void (*act)(struct within *w);
    int         acted;
    int32_t     rc;
    graft_error error;
};

static void act_once(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct within *w = arg;

    (void)thread, (void)begin, (void)end;
    if (w->acted++ == 0) w->act(w);
}

static int32_t run_within(struct within *w, struct misuse *m, void (*act)(struct within *w))
{
    graft_mxm_args args = m->args;

    memset(w, 0, sizeof *w);
    w->m = m;
    w->act = act;
    w->error = GRAFT_INIT(graft_error);
    args.rows_done = act_once;
    args.rows_arg = w;
    return m->mxm->run(m->context, &args, &m->error);
}

static void act_call(struct within *w)
{
    graft_epoch epoch = GRAFT_INIT(graft_epoch);

    w->rc = w->m->train->epoch(w->m->handle[TRAINER], &epoch, &w->error);
}

static void *call_in_thread(void *arg)
{
    act_call(arg);
    return NULL;
}

static void run_in_thread(struct within *w, void *(*body)(void *arg))
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, body, w) != 0) w->rc = 1;
    else pthread_join(thread, NULL);
}

static void act_thread(struct within *w)
{
    run_in_thread(w, call_in_thread);
}

static const char *check_within(const void *arg)
{
    void (*const *act)(struct within *w) = arg;
    const char   *words = *act == act_call ? "from a callback of" : "in another thread";
    struct misuse m;
    struct within w;
    const char   *fault = misuse_open(&m);

    if (fault == NULL && run_within(&w, &m, *act) != GRAFT_OK) fault = misuse_fault("%s", m.error.message);
    if (fault != NULL) return fault;
    if (w.rc != GRAFT_ERR_STATE || strcmp(w.error.where, GRAFT_TRAIN_ID " epoch") != 0 ||
        strstr(w.error.message, GRAFT_TRAIN_ID " epoch") == NULL ||
        strstr(w.error.message, GRAFT_MXM_ID " run") == NULL || strstr(w.error.message, words) == NULL)
        return misuse_fault("%d, %s: %s", w.rc, w.error.where, w.error.message);
    fault = misuse_works(&m, TRAINER);
    return fault != NULL ? fault : misuse_close(&m);
}

static void *destroy_in_thread(void *arg)
{
    const struct within *w = arg;

    for (int kind = 0; kind < CONTEXT; kind++) misuse_destroy(w->m, w->m->handle[kind], kind);
    return NULL;
}

static void act_destroy(struct within *w)
{
    destroy_in_thread(w);
}

static void act_destroy_in_thread(struct within *w)
{
    run_in_thread(w, destroy_in_thread);
}

static void act_close(struct within *w)
{
    act_destroy(w);
    w->m->api->close(w->m->context);
}

static void act_prefetch(struct within *w)
{
    int32_t made = 0;

    w->rc = w->m->samples->prefetch(w->m->handle[SAMPLER], &made, &w->error);
    if (w->rc == GRAFT_OK && made == 0) w->rc = 1;
}

static void *prefetch_in_thread(void *arg)
{
    act_prefetch(arg);
    return NULL;
}

static void act_prefetch_in_thread(struct within *w)
{
    run_in_thread(w, prefetch_in_thread);
}

/* Make a call that any thread may make at any time. */
static const char *check_any_thread(const void *arg)
{
    void (*const *act)(struct within *w) = arg;
    struct misuse      m;
    struct within      w;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    const char        *fault = misuse_open(&m);

    if (fault == NULL && run_within(&w, &m, *act) != GRAFT_OK) fault = misuse_fault("%s", m.error.message);
    if (fault == NULL && w.rc != GRAFT_OK) fault = misuse_fault("%d: %s", w.rc, w.error.message);
    if (fault == NULL && m.samples->next(m.handle[SAMPLER], &batch, &m.error) != GRAFT_OK)
        fault = misuse_fault("%s", m.error.message);
    return fault != NULL ? fault : misuse_close(&m);
}

/* Objects that are destroyed during a product, including its own matrix, must exist until the product ends. */
static const char *check_destroy(const void *arg)
{
    void (*const *act)(struct within *w) = arg;
    struct misuse m;
    struct within w;
    const char   *fault = misuse_open(&m);

    if (fault == NULL && run_within(&w, &m, *act) != GRAFT_OK) fault = misuse_fault("%s", m.error.message);
    if (fault != NULL) return fault;
    if (*act != act_close) {
        if (strstr(m.log, "was destroyed afterwards") == NULL) return misuse_fault("the log has: %s", m.log);
        if (misuse_works(&m, MATRIX) == NULL) return "the matrix was not destroyed";
        m.api->close(m.context);
    }
    if (m.strict.fault != NULL) return m.strict.fault;
    return m.strict.live_bytes == 0 ? NULL : misuse_fault("%lld bytes are left", (long long)m.strict.live_bytes);
}

/* One of several threads that use the same context. */
struct hammer {
    struct misuse   *m;
    pthread_mutex_t *turn; /* lock that lets one thread call at a time; NULL if all threads call at once */
    int64_t          calls, done, refused;
    int32_t          wrong; /* number of calls with an unexpected status */
    int              bad;   /* number of products with wrong results */
    graft_error      error;
    float            c[MISUSE_N * MISUSE_WIDTH];
};

static void count_call(struct hammer *h, int32_t rc)
{
    h->calls++;
    h->done += rc == GRAFT_OK;
    h->refused += rc == GRAFT_ERR_STATE && strstr(h->error.message, "another thread") != NULL;
    if (rc != GRAFT_OK && rc != GRAFT_ERR_STATE) h->wrong = rc;
}

static void strike(struct hammer *h, const graft_csr *graph)
{
    struct misuse *m = h->m;
    graft_dense    c = m->dense_c;
    graft_mxm_args args = m->args;
    graft_matrix  *matrix = NULL;
    graft_option   option = GRAFT_INIT(graft_option);
    int32_t        rc;

    args.c = &c;
    c.data = h->c;
    h->c[0] = right;
    rc = m->mxm->run(m->context, &args, &h->error);
    if (rc == GRAFT_OK ? !is_product(m, graph, h->c) : h->c[0] != right) h->bad = 1;
    count_call(h, rc);
    count_call(h, m->api->set(m->context, "lr", "0.25", &h->error));
    count_call(h, m->api->option_info(m->context, 0, &option, &h->error));
    count_call(h, m->mxm->matrix_create(m->context, graph, 0, &matrix, &h->error));
    m->mxm->matrix_destroy(matrix);
}

static void *hammer_body(void *arg)
{
    struct hammer *h = arg;

    while (h->done < ROUNDS) {
        if (h->turn != NULL) pthread_mutex_lock(h->turn);
        strike(h, misuse_graph());
        if (h->turn != NULL) pthread_mutex_unlock(h->turn);
        else sched_yield();
    }
    return NULL;
}

struct level {
    const char *check;
    int         in_turn;
};

static const char *check_hammer(const void *arg)
{
    const struct level    *level = arg;
    static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
    static struct hammer   hammers[THREADS];
    static struct misuse   m;
    pthread_t              threads[THREADS];
    int64_t                refused = 0;
    const char            *fault = misuse_open(&m);

    if (fault != NULL) return fault;
    if (m.api->set(m.context, "check", level->check, &m.error) < 0) return misuse_fault("%s", m.error.message);
    for (int i = 0; i < THREADS; i++) {
        hammers[i].m = &m;
        hammers[i].turn = level->in_turn ? &turn : NULL;
        hammers[i].error = GRAFT_INIT(graft_error);
        if (pthread_create(&threads[i], NULL, hammer_body, &hammers[i]) != 0) return "no thread";
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        refused += hammers[i].refused;
        if (hammers[i].wrong != 0) fault = misuse_fault("a call returned %d", hammers[i].wrong);
        if (hammers[i].bad) fault = "a product is wrong, or a refused one was written";
        if (hammers[i].done + hammers[i].refused != hammers[i].calls)
            fault = misuse_fault("%s", hammers[i].error.message);
    }
    if (fault == NULL && level->in_turn && refused > 0) fault = "threads in turn were refused";
    return fault != NULL ? fault : misuse_close(&m);
}

int main(void)
{
    static void (*const call)(struct within *) = act_call;
    static void (*const thread)(struct within *) = act_thread;
    static void (*const destroy)(struct within *) = act_destroy;
    static void (*const destroy_thread)(struct within *) = act_destroy_in_thread;
    static void (*const closing)(struct within *) = act_close;
    static void (*const prefetch)(struct within *) = act_prefetch;
    static void (*const prefetch_thread)(struct within *) = act_prefetch_in_thread;
    static const struct level no_in_turn = { "no", 1 }, args_in_turn = { "args", 1 }, args = { "args", 0 };
    static const struct level full_in_turn = { "full", 1 }, full = { "full", 0 };

    misuse_init();
    ok_fault("a call from a callback is refused", in_child(check_within, &call));
    ok_fault("a call from another thread is refused", in_child(check_within, &thread));
    ok_fault("prefetch() from a callback is not", in_child(check_any_thread, &prefetch));
    ok_fault("nor from another thread", in_child(check_any_thread, &prefetch_thread));
    ok_fault("destroy() from a callback waits for the end of the call", in_child(check_destroy, &destroy));
    ok_fault("so does one from another thread", in_child(check_destroy, &destroy_thread));
    ok_fault("and close()", in_child(check_destroy, &closing));
    ok_fault("check=no: threads in turn", in_child(check_hammer, &no_in_turn));
    ok_fault("check=args: threads in turn", in_child(check_hammer, &args_in_turn));
    ok_fault("check=args: threads at once", in_child(check_hammer, &args));
    ok_fault("check=full: threads in turn", in_child(check_hammer, &full_in_turn));
    ok_fault("check=full: threads at once", in_child(check_hammer, &full));
    misuse_fini();
    return done();
}
