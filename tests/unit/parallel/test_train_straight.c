/* Checks training with stale rows against a sequential program without messages, which keeps the rows of the previous
 * epoch and uses them for vertices of other ranks. The losses must agree.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_runs.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LAYERS = 3, WIDE = 8 };

/* The rows of a layer in one direction in the epoch before. */
struct memory {
    int    has, own;
    double x[N][WIDE], used[N][WIDE];
};

struct straight {
    const struct job *job;
    const int64_t    *width;         /* [LAYERS + 1] widths */
    int               gathers_first; /* whether all layers gather before they transform, as in the papers */
    double            norm[N];       /* 1 / sqrt(degree) */
    double            smoothing;
    int               waits; /* whether this epoch is synchronous */
    /* Number of ranks that share columns; 0 if ranks have whole rows. */
    int               n_slices;
    struct memory     memory[LAYERS][2], results[LAYERS][2]; /* results: sums of shared columns */
    double            w[LAYERS][WIDE][WIDE], b[LAYERS][WIDE];
    double            h[LAYERS + 1][N][WIDE], q[LAYERS][N][WIDE], g[N][WIDE];
};

/* With the second widths the library gathers first in all layers, too, because no layer makes rows much narrower. */
static const int64_t usual_width[LAYERS + 1] = { FEATURES, 3, 6, CLASSES }, paper_width[] = { FEATURES, 4, 4, 4 };

/* Send the rows of this epoch: m->used becomes the rows that other ranks have of them. */
static void exchange_straight(const struct straight *s, struct memory *m, int64_t columns, double x[N][WIDE])
{
    const int own = !m->has || s->waits;

    for (int v = 0; v < N; v++)
        for (int j = 0; j < columns; j++) {
            if (own) m->used[v][j] = x[v][j];
            else m->used[v][j] = m->own ? m->x[v][j] : s->smoothing * m->used[v][j] + (1 - s->smoothing) * m->x[v][j];
            m->x[v][j] = x[v][j];
        }
    m->has = 1;
    m->own = own;
}

/* The rank that sums column j. */
static int slice_of(const struct straight *s, int64_t columns, int j)
{
    int k = 0;

    while (j >= columns * (k + 1) / s->n_slices) k++;
    return k;
}

/* out = A x, or A^T x, for A = D^-1/2 (A + I) D^-1/2, where each rank sums a slice of the columns. A rank uses its own
 * rows unquantized and the rows of other ranks as they were received. An owner uses its own slice of a sum unquantized
 * and the other slices as they were received. */
static void gather_slices(struct straight *s, int l, int back, int64_t columns, double x[N][WIDE], double out[N][WIDE])
{
    static double    sum[N][WIDE];
    const graft_csr *a = &s->job->set.graph.csr;
    const int32_t   *owner = s->job->owner;

    memset(sum, 0, sizeof sum);
    exchange_straight(s, &s->memory[l][back], columns, x);
    for (int v = 0; v < N; v++)
        for (int64_t e = a->row_ptr[v]; e <= a->row_ptr[v + 1]; e++) {
            /* The last entry is the self-loop. */
            const int u = e < a->row_ptr[v + 1] ? (int)((const int32_t *)a->col_idx)[e] : v;
            const int to = back ? u : v, from = back ? v : u;

            for (int j = 0; j < columns; j++) {
                const int here = owner[from] == slice_of(s, columns, j);

                sum[to][j] += s->norm[u] * s->norm[v] * (here ? x : s->memory[l][back].used)[from][j];
            }
        }
    exchange_straight(s, &s->results[l][back], columns, sum);
    for (int v = 0; v < N; v++)
        for (int j = 0; j < columns; j++)
            out[v][j] = (owner[v] == slice_of(s, columns, j) ? sum : s->results[l][back].used)[v][j];
}

/* The same where ranks have whole rows: rows of other owners are used as they were received. */
static void train_straight_gather(struct straight *s, int l, int back, int64_t columns, double x[N][WIDE],
                                  double out[N][WIDE])
{
    const graft_csr *a = &s->job->set.graph.csr;
    struct memory   *m = &s->memory[l][back];

    if (s->n_slices > 0) {
        gather_slices(s, l, back, columns, x, out);
        return;
    }
    exchange_straight(s, m, columns, x);
    for (int v = 0; v < N; v++)
        for (int j = 0; j < columns; j++) out[v][j] = s->norm[v] * s->norm[v] * x[v][j];
    for (int v = 0; v < N; v++)
        for (int64_t e = a->row_ptr[v]; e < a->row_ptr[v + 1]; e++) {
            const int u = (int)((const int32_t *)a->col_idx)[e], to = back ? u : v, from = back ? v : u;
            double(*rows)[WIDE] = s->job->owner[u] == s->job->owner[v] ? x : m->used;

            for (int j = 0; j < columns; j++) out[to][j] += s->norm[u] * s->norm[v] * rows[from][j];
        }
}

/* out = x W, or x W^T. */
static void train_straight_multiply(const struct straight *s, int l, int transposed, double x[N][WIDE],
                                    double out[N][WIDE])
{
    const int64_t from = s->width[l + transposed], to = s->width[l + !transposed];

    for (int v = 0; v < N; v++)
        for (int j = 0; j < to; j++) {
            out[v][j] = 0;
            for (int i = 0; i < from; i++) out[v][j] += x[v][i] * (transposed ? s->w[l][j][i] : s->w[l][i][j]);
        }
}

/* Layers that make rows narrower transform first, others gather first. With stale rows the order matters, because what
 * is transformed first is stale in its weights too. Sylvie and PipeGCN gather first. */
static int gathers_first(const struct straight *s, int l)
{
    return s->gathers_first || s->width[l] <= s->width[l + 1];
}

static void forward(struct straight *s)
{
    double p[N][WIDE], (*z)[WIDE];

    for (int l = 0; l < LAYERS; l++) {
        z = s->h[l + 1];
        if (gathers_first(s, l)) {
            train_straight_gather(s, l, 0, s->width[l], s->h[l], s->q[l]);
            train_straight_multiply(s, l, 0, s->q[l], z);
        } else {
            train_straight_multiply(s, l, 0, s->h[l], p);
            train_straight_gather(s, l, 0, s->width[l + 1], p, z);
        }
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l + 1]; j++) {
                z[v][j] += s->b[l][j];
                if (l + 1 < LAYERS && z[v][j] < 0) z[v][j] = 0;
            }
    }
}

/* The mean cross-entropy of the labelled training vertices; s->g receives its gradient. */
static double loss_of(struct straight *s)
{
    const struct sample_dataset *set = &s->job->set;
    double                       loss = 0;
    int                          count = 0;

    for (int v = 0; v < N; v++) count += set->split[v] == GRAFT_SPLIT_TRAIN && set->labels[v] >= 0;
    for (int v = 0; v < N; v++) {
        const double *z = s->h[LAYERS][v];
        double        sum = 0;

        memset(s->g[v], 0, sizeof s->g[v]);
        if (set->split[v] != GRAFT_SPLIT_TRAIN || set->labels[v] < 0) continue;
        for (int j = 0; j < s->width[LAYERS]; j++) sum += exp(z[j]);
        loss += (log(sum) - z[set->labels[v]]) / count;
        for (int j = 0; j < s->width[LAYERS]; j++) s->g[v][j] = (exp(z[j]) / sum - (j == set->labels[v])) / count;
    }
    return loss;
}

/* w -= lr x^T g */
static void descend(struct straight *s, int l, double lr, double x[N][WIDE], double g[N][WIDE])
{
    for (int v = 0; v < N; v++)
        for (int i = 0; i < s->width[l]; i++)
            for (int j = 0; j < s->width[l + 1]; j++) s->w[l][i][j] -= lr * x[v][i] * g[v][j];
}

static void backward(struct straight *s, double lr)
{
    double dx[N][WIDE], sum[N][WIDE], db[WIDE];

    for (int l = LAYERS - 1; l >= 0; l--) {
        memset(db, 0, sizeof db);
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l + 1]; j++) db[j] += s->g[v][j];
        if (gathers_first(s, l)) {
            train_straight_multiply(s, l, 1, s->g, sum);
            train_straight_gather(s, l, 1, s->width[l], sum, dx);
            descend(s, l, lr, s->q[l], s->g);
        } else {
            train_straight_gather(s, l, 1, s->width[l + 1], s->g, sum);
            train_straight_multiply(s, l, 1, sum, dx);
            descend(s, l, lr, s->h[l], sum);
        }
        for (int j = 0; j < s->width[l + 1]; j++) s->b[l][j] -= lr * db[j];
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l] && l > 0; j++) s->g[v][j] = s->h[l][v][j] > 0 ? dx[v][j] : 0;
    }
}

/* Copy the initial weights of the trainer. */
static void take_weights(struct straight *s, const struct kept_state *state)
{
    for (int i = 0; i < state->n; i++) {
        const float *data = state->item[i].data;
        int          l, end = 0;

        if (sscanf(state->name[i], "layers.%d.weight%n", &l, &end) == 1 && state->name[i][end] == '\0' && end > 0)
            for (int k = 0; k < s->width[l] * s->width[l + 1]; k++)
                s->w[l][k / s->width[l + 1]][k % s->width[l + 1]] = (double)data[k];
        end = 0;
        if (sscanf(state->name[i], "layers.%d.bias%n", &l, &end) == 1 && state->name[i][end] == '\0' && end > 0)
            for (int k = 0; k < s->width[l + 1]; k++) s->b[l][k] = (double)data[k];
    }
}

static void straight_init(struct straight *s, const struct job *job, const int64_t *width)
{
    const graft_csr   *a = &job->set.graph.csr;
    const graft_dense *x = &job->set.features;

    memset(s, 0, sizeof *s);
    s->job = job;
    s->width = width;
    for (int v = 0; v < N; v++) {
        s->norm[v] = 1 / sqrt((double)(a->row_ptr[v + 1] - a->row_ptr[v]) + 1);
        for (int j = 0; j < FEATURES; j++) s->h[0][v][j] = (double)((const float *)x->data)[v * x->stride + j];
    }
    take_weights(s, &job->at[0][0].first);
}

/* Which epochs are synchronous: every so many. */
struct manner {
    const char *settings;
    double      smoothing;
    int         every, gathers_first;
};

static void test_straight(int number, int32_t n_ranks, const struct manner *manner)
{
    static const char *const covers[] = { "hybrid", "post", "pre" };
    static struct straight   s;
    struct job              *job = calloc(1, sizeof *job);
    struct sample            sample = { 40 + (uint64_t)number };
    const int64_t           *width = manner->gathers_first ? paper_width : usual_width;
    char                     settings[256];
    double                   worst = 0;
    int                      waited = 0;
    const char              *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, (int32_t)width[LAYERS], 0, 0);
    /* The graph has no self-loops; the trainer adds one per vertex. */
    for (int64_t v = 0; v < N; v++)
        for (int64_t e = job->set.graph.row_ptr[v]; e < job->set.graph.row_ptr[v + 1]; e++) {
            int32_t *column = &((int32_t *)job->set.graph.col_idx)[e];

            if (*column == v) *column = (int32_t)((v + 1) % N);
        }
    snprintf(settings, sizeof settings, "model=gcn reuse_input=no row_masks=%s %s", number % 2 ? "yes" : "no",
             manner->settings);
    train_runs_add(job, (struct run){ .settings = settings, .evaluates = number % 3 == 0 });
    words = train_runs_play(job, n_ranks, number % 2 ? "given" : "hash", covers[number % 3]);
    straight_init(&s, job, width);
    s.gathers_first = manner->gathers_first;
    s.smoothing = manner->smoothing;
    s.n_slices = strcmp(train_runs_shared, "parallel=feature") == 0 && n_ranks > 1 ? n_ranks : 0;
    for (int e = 0; e < EPOCHS && words == NULL; e++) {
        double loss;

        s.waits = manner->every > 0 && e % manner->every == 0;
        forward(&s);
        loss = loss_of(&s);
        backward(&s, 0.2);
        worst = fmax(worst, fabs(job->at[0][0].loss[e] - loss) / loss);
        waited += s.waits || e == 0;
        if (job->at[0][n_ranks - 1].waited[e] != (s.waits || e == 0)) words = "another epoch waited";
    }
    if (words == NULL && job->at[0][0].traffic.epochs_synchronous != waited) words = "other epochs waited in all";
    ok_or(words == NULL && worst < 2e-5 && s.memory[1][1].has, words,
          "gcn on %d ranks, %s, %s, %s: losses are %.1g off those of straight-line epochs", n_ranks, train_runs_shared,
          covers[number % 3], manner->settings, worst);
    train_runs_free(job);
}

/* If rows shrink by a tenth in each epoch, their drift is a ninth. Weights change almost only by their decay here,
 * because the gradients are small compared with the features. */
static void test_train_straight_drift(const char *model)
{
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { 77 };
    char          settings[256];
    const char   *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int64_t i = 0; i < N * job->set.features.stride; i++) ((float *)job->set.features.data)[i] *= 1000;
    snprintf(settings, sizeof settings,
             "model=%s layers=1 hidden=3 reuse_input=no lr=1e-9 weight_decay=1e8 halo.staleness=1:0:0", model);
    train_runs_add(job, (struct run){ .settings = settings });
    words = train_runs_play(job, 3, "hash", "hybrid");
    for (int e = 0; e < EPOCHS && words == NULL; e++) {
        const struct outcome *o = &job->at[0][e % 3];

        if (e < 2 ? o->drift[e] != 0 : fabs(o->drift[e] - 1.0 / 9) > 1e-3) words = "rows have drifted otherwise";
        if (o->waited[e] != (e == 0)) words = "another epoch waited";
        if (words != NULL) diag("epoch %d: %g, %d", e, o->drift[e], o->waited[e]);
    }
    ok(words == NULL, "%s: stale rows drift by a ninth%s%s", model, words != NULL ? ": " : "",
       words != NULL ? words : "");
    train_runs_free(job);
}

int main(void)
{
    static const int32_t       ranks[] = { 3, 1, 4, 2, 7 };
    static const struct manner manners[] = {
        { "halo.staleness=1:0:0", 0, 0, 0 },          { "halo.staleness=1:0:0.5", 0.5, 0, 0 },
        { "halo.staleness=1:3:0", 0, 3, 0 },          { "halo.staleness=1:1:0", 0, 1, 0 },
        { "hidden=4 halo.staleness=1:0:0", 0, 0, 1 }, { "hidden=4 halo.staleness=1:3:0", 0, 3, 1 }
    };
    int number = 0;

    alarm(300); /* it is slow under a sanitizer */
    for (int r = 0; r < 5; r++)
        for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) test_straight(number++, ranks[r], &manners[i]);
    train_runs_shared = "parallel=feature";
    for (int r = 0; r < 5; r++)
        for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) test_straight(number++, ranks[r], &manners[i]);
    train_runs_shared = "parallel=partition";
    test_train_straight_drift("gcn");
    return done();
}
