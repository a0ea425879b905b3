/* Checks passes of graft.halo/1, graft.aggregate/1 and graft.network/1 in which one rank of four passes wrong arguments
 * or makes a call less. All ranks must return the same status, which names the same rank, in the same call, and the
 * next pass must be bitwise identical to one without the mistake. Ranks are threads, or processes of mpiexec.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"

#include "graft_aggregate.h"
#include "graft_halo.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "harness/verdicts.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 4, WRONG = 1, VERTICES = 40, WIDTH = 3, ROWS = 200, OUT = ROWS * WIDTH };

/* A refused call takes milliseconds, whereas the deadline is halo.timeout. */
#define AT_ONCE 3.0
#define TIMEOUT "20"
#define SOON 1.0

struct kind;

static struct sample_dataset set;
static const struct kind    *now; /* the kind of pass that is tried */
static struct test_mesh      mesh;

/* The objects and arrays of a rank. */
struct scene {
    struct host               *host;
    const graft_group_api     *groups;
    graft_group               *group;
    struct host_slice          slice;
    graft_graph               *graph;
    struct network_rank        n;
    const graft_halo_api      *halos;
    const graft_aggregate_api *aggregate;
    graft_halo                *halo;
    graft_plan                *plan;
    float                      own[VERTICES * WIDTH];
    double                     result[OUT];
};

/* One kind of pass: begin() and end() with the data of time `t`. Mistakes are numbered from 1 on; 0 is none. */
struct kind {
    const char *name, *settings;
    int32_t (*init)(struct scene *s);
    int32_t (*begin)(struct scene *s, int t, int wrong);
    int32_t (*end)(struct scene *s, int t, int wrong);
    void (*fini)(struct scene *s);
    int32_t status[9];  /* expected status for each mistake */
    int     how, waits; /* how the mesh is cut; whether omissions are tried that end with a deadline */
};

/* -- graft.halo/1 ------------------------------------------------------------------------------------------------- */

static int32_t init_slice_graph(struct scene *s)
{
    host_slice_init(&s->slice, &set.dataset, SLICES_EVEN, s->host->rank, s->host->n_ranks);
    return s->host->graphs->create(s->host->api->context, &s->host->transport, &s->slice.slice, &s->graph,
                                   &s->host->error);
}

static int64_t owned_rows(const struct scene *s)
{
    graft_graph_info info = GRAFT_INIT(graft_graph_info);

    s->host->graphs->info(s->graph, s->host->rank, &info, NULL);
    return info.n_owned;
}

static int32_t init_halo(struct scene *s)
{
    const int32_t rc = init_slice_graph(s);

    return rc < 0 ? rc : s->halos->create(s->graph, &s->halo, &s->host->error);
}

static void fill_own(struct scene *s, int t)
{
    for (int i = 0; i < VERTICES * WIDTH; i++) s->own[i] = sinf((float)(i + 100 * s->host->rank + 1000 * t));
}

static int32_t begin_halo(struct scene *s, int t, int wrong)
{
    static float    nothing[VERTICES * WIDTH];
    graft_halo_info info = GRAFT_INIT(graft_halo_info);
    graft_halo_args args = GRAFT_INIT(graft_halo_args);
    graft_dense     owned, rows;

    s->halos->info(s->halo, &info, NULL);
    fill_own(s, t);
    owned = (graft_dense){ sizeof owned, GRAFT_F32, info.n_owned, WIDTH, WIDTH, s->own };
    rows = (graft_dense){ sizeof rows, GRAFT_F32, info.n_halo, WIDTH, WIDTH, s->result };
    args.owned = &owned;
    args.halo = &rows;
    args.flags = wrong == 5 ? 8 : 0;
    if (wrong == 2) owned.n_rows++;
    if (wrong == 3) owned.dtype = rows.dtype = GRAFT_BF16;
    if (wrong == 4) owned.n_cols--;
    if (wrong == 6) args.halo = NULL;
    if (wrong == 7) owned.data = rows.data = nothing;
    if (wrong == 8) s->own[1] = NAN; /* with halo.nonfinite=refuse */
    return s->halos->begin(s->halo, wrong == 1 ? NULL : &args, &s->host->error);
}

static int32_t end_halo(struct scene *s, int t, int wrong)
{
    (void)t;
    (void)wrong;
    return s->halos->end(s->halo, &s->host->error);
}

static void fini_halo(struct scene *s)
{
    s->halos->destroy(s->halo);
    s->host->graphs->destroy(s->graph);
    host_slice_fini(&s->slice);
}

/* -- graft.aggregate/1 -------------------------------------------------------------------------------------------- */

static int32_t init_plan(struct scene *s)
{
    const int32_t rc = init_slice_graph(s);

    return rc < 0 ? rc : s->aggregate->create(s->graph, NULL, &s->plan, &s->host->error);
}

static int32_t begin_plan(struct scene *s, int t, int wrong)
{
    const int64_t        n = owned_rows(s);
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    graft_dense          x = { sizeof x, GRAFT_F32, n, WIDTH, WIDTH, s->own };
    graft_dense          out = { sizeof out, GRAFT_F32, n, WIDTH, WIDTH, s->result };

    fill_own(s, t);
    args.semiring = wrong == 2 ? 17 : GRAFT_PLUS_TIMES;
    args.epoch = t;
    args.x = wrong == 5 ? NULL : &x;
    args.out = &out;
    if (wrong == 3) x.n_rows--;
    if (wrong == 4) x.dtype = GRAFT_F64;
    if (wrong == 6) args.flags = GRAFT_AGGREGATE_TRANSPOSE; /* the plan has no transposed passes */
    if (wrong == 7) out.data = s->own;
    if (wrong == 8)
        for (int i = 0; i < VERTICES * WIDTH; i++) s->own[i] = NAN;
    return s->aggregate->begin(s->plan, wrong == 1 ? NULL : &args, &s->host->error);
}

static int32_t end_plan(struct scene *s, int t, int wrong)
{
    (void)t;
    (void)wrong;
    return s->aggregate->end(s->plan, &s->host->error);
}

static void fini_plan(struct scene *s)
{
    s->aggregate->destroy(s->plan);
    s->host->graphs->destroy(s->graph);
    host_slice_fini(&s->slice);
}

/* -- graft.network/1 ---------------------------------------------------------------------------------------------- */

static struct network_case scenes[2]; /* networks on a mesh with ghosts and one with shared nodes */

/* Set weights so large that large inputs overflow in a layer. */
static int32_t set_large_weights(const struct scene *s)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    float            large[64];
    int32_t          k = 0;

    while (s->n.networks->state_item(s->n.network, k, &item, &s->host->error) == GRAFT_OK &&
           strcmp(item.name, "node_encoder.2.weight") != 0)
        k++;
    for (int i = 0; i < 64; i++) large[i] = i % 2 ? 2000 : -3000;
    item.data = large;
    return s->n.networks->state_set(s->n.network, &item, &s->host->error);
}

static int32_t init_network(struct scene *s)
{
    const int32_t rc = network_rank_init(s->host, &scenes[now->how & CUT_SHARED], &s->n);

    return rc == GRAFT_OK && strstr(now->settings, "refuse") != NULL ? set_large_weights(s) : rc;
}

/* The first row whose values the library reads. */
static int64_t first_row(const struct scene *s)
{
    int64_t row = 0;

    while (!network_has_row(&s->n, s->host->rank, row)) row++;
    return row;
}

static int32_t begin_network(struct scene *s, int t, int wrong)
{
    graft_field input = network_state(&s->n, NETWORK_IN, t);
    int32_t     rc;

    if (wrong == 2) input.n_columns--;
    if (wrong == 3) input.n_rows++;
    if (wrong == 4) input.dtype = GRAFT_I32;
    if (wrong == 6) network_field_put(&input, first_row(s), 1, NAN);
    for (int64_t row = 0; row < input.n_rows && wrong == 7; row++) /* finite inputs with which a layer overflows */
        for (int64_t j = 0; j < NETWORK_IN; j++) network_field_put(&input, row, j, j % 2 ? -3e38 : 3e38);
    rc = s->n.networks->begin(s->n.network, wrong == 1 ? NULL : &input, &s->host->error);
    free(input.data);
    return rc;
}

static int32_t end_network(struct scene *s, int t, int wrong)
{
    graft_field output = network_field(&s->n, NETWORK_OUT);
    int32_t     rc;

    (void)t;
    if (wrong == 5) output.n_rows--;
    rc = s->n.networks->end(s->n.network, &output, &s->host->error);
    memset(s->result, 0, sizeof s->result);
    for (int64_t row = 0; rc == GRAFT_OK && row < s->n.part.args.n_rows; row++)
        for (int64_t j = 0; j < NETWORK_OUT && network_is_written(&s->n, row); j++)
            s->result[row * NETWORK_OUT + j] = network_field_at(&output, row, j);
    free(output.data);
    return rc;
}

static void fini_network(struct scene *s)
{
    network_rank_fini(&s->n);
}

/* -- refused calls ------------------------------------------------------------------------------------------------ */

static int32_t make_pass(struct scene *s, const struct kind *kind, int t, int wrong)
{
    const int32_t rc = kind->begin(s, t, wrong);

    return rc < 0 ? rc : kind->end(s, t, wrong);
}

static int32_t init_scene(struct scene *s, struct host *host, const struct kind *kind)
{
    memset(s, 0, sizeof *s);
    s->host = host;
    s->groups = graft_interface(host->api, GRAFT_GROUP_ID, sizeof *s->groups);
    s->halos = graft_interface(host->api, GRAFT_HALO_ID, sizeof *s->halos);
    s->aggregate = graft_interface(host->api, GRAFT_AGGREGATE_ID, sizeof *s->aggregate);
    if (s->groups->create(host->api->context, &host->transport, &s->group, &host->error) < 0) return GRAFT_ERR_PEER;
    return kind->init(s);
}

static void fini_scene(struct scene *s, const struct kind *kind)
{
    kind->fini(s);
    s->groups->destroy(s->group);
}

enum { TIMES = 4 };

/* Compute the right results of each time. */
static int32_t clean_results(struct host *host, const struct kind *kind, double (*right)[OUT])
{
    struct scene s;
    int32_t      rc = init_scene(&s, host, kind);

    for (int t = 0; t < TIMES && rc == GRAFT_OK; t++) {
        rc = make_pass(&s, kind, t, 0);
        memcpy(right[t], s.result, sizeof s.result);
    }
    fini_scene(&s, kind);
    return rc;
}

/* Make a pass that one rank refuses. Its begin() does not return the status unless rows are stored. No begin() may
 * wait, because all ranks meet twice between begin() and end(). Another begin() must be refused and change nothing. */
static int32_t make_refused_pass(struct scene *s, const struct kind *kind, int wrong)
{
    const int64_t bytes[RANKS] = { 1, 1, 1, 1 };
    const int32_t rc = kind->begin(s, 1, wrong);
    graft_error   error = GRAFT_INIT(graft_error);
    char          all[RANKS];

    if (!hosts_meet(s->host) || s->groups->gather(s->group, -1, bytes, "a", all, &error) < 0) return GRAFT_ERR_PEER;
    if (rc < 0) return strstr(kind->settings, "staleness") != NULL ? rc : GRAFT_ERR_CANCELLED;
    if (kind->begin(s, 1, 0) != GRAFT_ERR_STATE) return GRAFT_ERR_CANCELLED;
    return kind->end(s, 1, wrong);
}

/* Make pass 0, a pass that rank WRONG refuses (or all ranks, each for another reason), and pass 1. */
static int32_t refuse_one(struct host *host, const struct kind *kind, int wrong, int by_all, double (*right)[OUT])
{
    struct scene   s;
    struct verdict v;
    char           fault[512];
    const int      mine = by_all ? (wrong - 1 + host->rank) % 3 + 1 : host->rank == WRONG ? wrong : 0;
    int32_t        rc = init_scene(&s, host, kind);
    double         begin;

    if (rc == GRAFT_OK) rc = make_pass(&s, kind, 0, 0);
    if (rc < 0) goto done;
    NETWORK_CHECK(memcmp(s.result, right[0], sizeof s.result) == 0);
    begin = verdict_clock();
    rc = make_refused_pass(&s, kind, mine);
    v = verdict_of(rc, &host->error, begin);
    rc = GRAFT_OK;
    if (!verdicts_agree(s.groups, s.group, host->n_ranks, &v, kind->status[wrong - 1], by_all ? 0 : WRONG, AT_ONCE,
                        fault)) {
        rc = network_blame(host, "wrong %d: %.400s", wrong, fault);
        goto done;
    }
    memset(s.result, 0, sizeof s.result);
    rc = make_pass(&s, kind, 1, 0);
    if (rc == GRAFT_OK && memcmp(s.result, right[1], sizeof s.result) != 0)
        rc = network_blame(host, "wrong %d: the next pass has other bits", wrong);
done:
    fini_scene(&s, kind);
    return rc;
}

static int32_t refuse_body(struct host *host)
{
    static double      right[HOSTS_MOST][TIMES][OUT];
    const struct kind *kind = now;
    int32_t            rc = clean_results(host, kind, right[host->rank]);

    for (int wrong = 1; wrong <= 8 && rc == GRAFT_OK; wrong++) {
        if (kind->status[wrong - 1] == 0) continue;
        rc = refuse_one(host, kind, wrong, 0, right[host->rank]);
        if (rc == GRAFT_OK && wrong <= 1) rc = refuse_one(host, kind, wrong, 1, right[host->rank]);
    }
    return rc;
}

static void run_kind(const struct kind *kind, const char *what, int32_t (*body)(struct host *host), const char *timeout)
{
    static struct hosts hosts;
    char                text[256];
    const char         *list[HOST_SETTINGS] = { "threads=1" };
    int                 count = 1;

    now = kind;
    snprintf(text, sizeof text, "%s halo.timeout=%s", kind->settings, timeout);
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) list[count++] = at;
    hosts_run(&hosts, RANKS, list, body, NULL);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s (%s): %s", kind->name, kind->settings, what);
}

#define ARGUMENT GRAFT_ERR_ARG
#define CALLS(of) init_##of, begin_##of, end_##of, fini_##of

static const struct kind kinds[] = {
    { "halo",
      "halo.codec=f32",
      CALLS(halo),
      { ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT },
      0,
      1 },
    { "halo",
      "halo.codec=q8 halo.nonfinite=refuse",
      CALLS(halo),
      { ARGUMENT, ARGUMENT, ARGUMENT, 0, 0, 0, 0, GRAFT_ERR_NONFINITE },
      0,
      0 },
    { "aggregate",
      "halo.codec=f32",
      CALLS(plan),
      { ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, GRAFT_ERR_STATE, ARGUMENT },
      0,
      1 },
    { "aggregate",
      "halo.codec=q8 halo.nonfinite=refuse",
      CALLS(plan),
      { ARGUMENT, ARGUMENT, 0, 0, 0, 0, 0, GRAFT_ERR_NONFINITE },
      0,
      0 },
    { "aggregate", "halo.staleness=1", CALLS(plan), { ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT }, 0, 0 },
    { "network with ghosts",
      "hidden=8 layers=3",
      CALLS(network),
      { ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT },
      0,
      1 },
    { "network with ghosts",
      "hidden=8 layers=2 norm=none halo.codec=q8 halo.nonfinite=refuse",
      CALLS(network),
      { ARGUMENT, 0, 0, 0, ARGUMENT, GRAFT_ERR_NONFINITE, GRAFT_ERR_NONFINITE },
      0,
      0 },
    { "network with shared nodes",
      "hidden=8 layers=1",
      CALLS(network),
      { ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT, ARGUMENT },
      CUT_SHARED,
      0 },
};

/* -- calls that a rank leaves out --------------------------------------------------------------------------------- */

/* What rank WRONG omits at time 1: begin() and end(), end() alone, or begin() alone. From then on it makes the calls of
 * later times. */
enum omitted { OMITS_LAST, OMITS_END, OMITS_BEGIN, OMITTED };

static const char *const omitted_name[OMITTED] = { "the last pass", "an end", "a begin" };
static enum omitted      omitted;

/* A result must be that of its own call, independent of the status of other calls. */
static int32_t pass_in_time(struct scene *s, const struct kind *kind, int t, int has_begin, int has_end,
                            double (*right)[OUT])
{
    int32_t begun = GRAFT_ERR_STATE, ended = GRAFT_ERR_STATE;

    if (has_begin) begun = kind->begin(s, t, 0);
    if (has_end && (begun == GRAFT_OK || !has_begin)) ended = kind->end(s, t, 0);
    if (ended == GRAFT_OK && memcmp(s->result, right[t], sizeof s->result) != 0)
        return network_blame(s->host, "the result of time %d is that of another", t);
    return begun == GRAFT_ERR_PEER ? begun : ended;
}

/* Whether a message has the numbers of calls 2 and 3, or for a plan the epochs of both passes. */
static int has_numbers(const char *message)
{
    static const char *const parts[][2] = {
        { "is in call 2 of a", "in call 3:" }, { "is in call 3 of a", "in call 2:" }, { "has call 2, expected 3", "" },
        { "has call 3, expected 2", "" },      { "has epoch 1, expected 2", "" },     { "has epoch 2, expected 1", "" },
    };
    int found = 0;

    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        found |= strstr(message, parts[k][0]) != NULL && strstr(message, parts[k][1]) != NULL;
    return found;
}

/* The other ranks must get ERR_PEER: at once if the calls of a rank are ahead of theirs, otherwise after the
 * deadline. */
static int32_t judge_omission(struct host *host, int32_t rc, double seconds)
{
    const char  *message = host->error.message;
    const double limit = omitted == OMITS_BEGIN ? SOON : SOON + 3 * SOON / 2 + AT_ONCE;

    if (host->rank == WRONG && omitted != OMITS_BEGIN) return GRAFT_OK;
    if (rc != GRAFT_ERR_PEER) return network_blame(host, "status %d, expected ERR_PEER (%.300s)", rc, message);
    if (seconds > limit) return network_blame(host, "after %.3g s, expected %.3g: %.300s", seconds, limit, message);
    if (omitted == OMITS_BEGIN && !has_numbers(message))
        return network_blame(host, "the numbers of both calls are missing: %.300s", message);
    return GRAFT_OK;
}

/* Make passes until one fails on all other ranks, and compare their errors. */
static int32_t omit_body(struct host *host)
{
    static double      right[HOSTS_MOST][TIMES][OUT];
    const struct kind *kind = now;
    const int          is_wrong = host->rank == WRONG;
    struct scene       s;
    int32_t            rc = clean_results(host, kind, right[host->rank]);
    double             begin;

    if (rc < 0) return rc;
    rc = init_scene(&s, host, kind);
    begin = verdict_clock();
    for (int t = 0; t < TIMES && rc != GRAFT_ERR_PEER && rc != GRAFT_ERR_FORMAT; t++) {
        const int is_here = is_wrong && t == 1;

        if (is_here && omitted == OMITS_LAST) break;
        rc = pass_in_time(&s, kind, t, !(is_here && omitted == OMITS_BEGIN), !(is_here && omitted == OMITS_END),
                          right[host->rank]);
    }
    if (rc != GRAFT_ERR_FORMAT) rc = judge_omission(host, rc, verdict_clock() - begin);
    fini_scene(&s, kind);
    return rc;
}

/* -- a begin more ------------------------------------------------------------------------------------------------- */

/* Rank WRONG makes its call 3 while the other ranks make their call 2. After that every call must fail, even a call
 * with wrong arguments. */
static int32_t judge_next(struct scene *s, const struct kind *kind)
{
    struct host *host = s->host;
    const double begin = verdict_clock();

    NETWORK_CHECK(make_pass(s, kind, 1, 0) == GRAFT_ERR_PEER && verdict_clock() - begin < AT_ONCE);
    if (!has_numbers(host->error.message))
        return network_blame(host, "the numbers of both calls are missing: %.300s", host->error.message);
    for (int i = 0; i < 2; i++) NETWORK_CHECK(kind->begin(s, 1, 1) == GRAFT_ERR_PEER);
    return GRAFT_OK;
}

/* Rank WRONG begins twice, and all ranks end once. */
static int32_t begin_again_body(struct host *host)
{
    static double      right[HOSTS_MOST][TIMES][OUT];
    const struct kind *kind = now;
    struct scene       s;
    int32_t            rc = clean_results(host, kind, right[host->rank]);

    if (rc < 0) return rc;
    rc = init_scene(&s, host, kind);
    if (rc == GRAFT_OK) rc = kind->begin(&s, 0, 0);
    if (rc == GRAFT_OK && host->rank == WRONG && kind->begin(&s, 0, 0) != GRAFT_ERR_STATE)
        rc = network_blame(host, "the second begin is accepted");
    if (rc == GRAFT_OK) rc = kind->end(&s, 0, 0);
    if (rc == GRAFT_OK && memcmp(s.result, right[host->rank][0], sizeof s.result) != 0)
        rc = network_blame(host, "the pass that had begun has other bits");
    /* Before the next pass can stop all ranks. */
    if (!hosts_meet(host)) rc = network_blame(host, "a rank has not ended");
    if (rc == GRAFT_OK) rc = judge_next(&s, kind);
    fini_scene(&s, kind);
    return rc;
}

/* Try all kinds in a process that mpiexec has started. */
static int32_t launched_body(struct host *host)
{
    int32_t rc = GRAFT_OK;

    for (size_t k = 0; k < sizeof kinds / sizeof *kinds && rc == GRAFT_OK; k++) {
        host_set_all(host->api, "halo.codec=f32 halo.nonfinite=send halo.staleness=0 norm=layer");
        host_set_all(host->api, kinds[k].settings);
        now = &kinds[k];
        rc = refuse_body(host);
    }
    return rc;
}

static int refuse_in_processes(void)
{
    static struct hosts hosts;

    hosts_run_launched(&hosts, (const char *const[]){ "threads=1", "halo.timeout=" TIMEOUT, NULL }, launched_body,
                       NULL);
    if (hosts_fault(&hosts) != NULL) diag("%s: %s", now->name, hosts_fault(&hosts));
    if (hosts.at[0].rank > 0) return hosts_fault(&hosts) != NULL;
    ok(hosts_fault(&hosts) == NULL,
       "ranks that are processes: a pass that one rank refuses is refused on all, and the next "
       "pass is right");
    return done();
}

static void refuse_in_threads(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        run_kind(&kinds[k], "a pass that one rank refuses is refused on all, and the next one is right", refuse_body,
                 TIMEOUT);
        run_kind(&kinds[k], "one rank begins twice: this pass is right, and the next is ERR_PEER", begin_again_body,
                 TIMEOUT);
        for (omitted = 0; omitted < OMITTED; omitted++) {
            char what[128];

            if (omitted != OMITS_BEGIN && !kinds[k].waits) continue; /* these end with a deadline */
            snprintf(what, sizeof what, "one rank leaves out %s, and no rank has a result of another time",
                     omitted_name[omitted]);
            run_kind(&kinds[k], what, omit_body, "1");
        }
    }
}

int main(void)
{
    struct sample sample = { 5 };

    alarm(100);
    sample_dataset_init(&set, &sample, VERTICES, 5, 3, 0, 0);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 4, 0, 1000);
    for (int k = 0; k < 2; k++) {
        scenes[k].predicts = GRAFT_PREDICTS_VALUE;
        scenes[k].dtype = GRAFT_F32;
        mesh_cut_init(&scenes[k].cut, &mesh, &sample, RANKS, k == 0 ? CUT_RANDOM : CUT_SHARED);
    }
    if (hosts_are_launched()) return refuse_in_processes();
    refuse_in_threads();
    for (int k = 0; k < 2; k++) mesh_cut_fini(&scenes[k].cut);
    test_mesh_fini(&mesh);
    sample_dataset_fini(&set);
    return done();
}
