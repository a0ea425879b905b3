/* Measures all kernels of the masked product, a plain copy and GrB_mxm in one run. See README.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "lane.h"
#include "report.h"

#include <argp.h>
#include <inttypes.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { REPEAT_MAX = 1000, SLOW_REPEAT = 3 };

/* Products that take longer than this, and all products of kernel reference, are measured only SLOW_REPEAT times. */
static const double slow_seconds = 8;

struct options {
    const char *graph, *order, *json, *export, *kernels, *forms;
    int64_t     width, stride; /* a stride of 0 means that it equals the width */
    int         threads, repeat;
};

static const struct argp_option argp_options[] = {
    { "graph", 'g', "GRAPH", 0, "rmat:SCALE:EDGES, uniform:N:EDGES, or a data set (rmat:18:2000000)", 0 },
    { "order", 'o', "METHOD", 0, "order of the vertices: degree, rcm or community (as they come)", 0 },
    { "width", 'w', "N", 0, "columns of B and C (128)", 0 },
    { "stride", 's', "N", 0, "floats from one row of B to the next (as width)", 0 },
    { "threads", 't', "N", 0, "threads (all processors)", 0 },
    { "repeat", 'r', "N", 0, "measurements of each line, after one to warm up (5)", 0 },
    { "kernel", 'k', "LIST", 0, "only these kernels, parted by commas", 0 },
    { "form", 'f', "LIST", 0, "only these forms, parted by commas", 0 },
    { "json", 'j', "FILE", 0, "also write the medians to a file", 0 },
    { "export", 'e', "DIR", 0, "write the graph into a folder and stop", 0 },
    { 0 },
};

static int64_t read_number(const char *text, int64_t most, struct argp_state *state, const char *name)
{
    char         *end;
    const int64_t number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || number < 1 || number > most)
        argp_error(state, "--%s is '%s', expected a number from 1 to %" PRId64, name, text, most);
    return number;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'g': options->graph = text; return 0;
    case 'o': options->order = text; return 0;
    case 's': options->stride = read_number(text, 1 << 20, state, "stride"); return 0;
    case 'w': options->width = read_number(text, 1 << 20, state, "width"); return 0;
    case 't': options->threads = (int)read_number(text, 4096, state, "threads"); return 0;
    case 'r': options->repeat = (int)read_number(text, REPEAT_MAX, state, "repeat"); return 0;
    case 'k': options->kernels = text; return 0;
    case 'f': options->forms = text; return 0;
    case 'j': options->json = text; return 0;
    case 'e': options->export = text; return 0;
    case ARGP_KEY_END:
        if (options->stride == 0) options->stride = options->width;
        if (options->stride < options->width)
            argp_error(state, "--stride is %" PRId64 ", less than the width, %" PRId64, options->stride,
                       options->width);
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = argp_options,
    .parser = parse,
    .doc = "Measures every kernel of Graft at C<M> (+)= A (+.x) B, beside a plain copy and GrB_mxm."
           "\vEvery result is first compared with that of the kernel reference; a wrong one is not measured, "
           "and the exit status is 1.",
};

/** Returns whether a comma-separated list contains `word`. A list that is NULL contains every word. */
static int listed(const char *list, const char *word)
{
    const size_t length = strlen(word);

    if (list == NULL) return 1;
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        if (strcspn(at, ",") == length && strncmp(at, word, length) == 0) return 1;
    }
    return 0;
}

static const graft_api *load_library(void)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) bench_die("%s", error.message);
    return api;
}

/** Add a lane for each form of each kernel of the library. */
static void add_kernels(struct bench_lanes *lanes, struct bench_graft *graft)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; graft->api->module_info(graft->api->context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0) continue;
        if (entry.state < 0) printf("kernel %s is not usable: %s\n", entry.name, entry.detail);
        for (int form = 0; entry.state >= 0 && form < BENCH_FORMS; form++) {
            bench_lanes_add(lanes, &(struct bench_lane){ .kernel = entry.name,
                                                         .label = bench_form_name[form],
                                                         .form = (enum bench_form)form,
                                                         .self = graft,
                                                         .run = bench_graft_run });
        }
    }
}

/** Remove all lanes except the requested ones and the copy. */
static void select_lanes(struct bench_lanes *lanes, const struct options *options)
{
    int kept = 0;

    for (int i = 0; i < lanes->count; i++) {
        struct bench_lane *lane = &lanes->at[i];
        const int          product = lane->form < BENCH_FORMS;

        if (product && !listed(options->kernels, lane->kernel)) continue;
        if (product && !listed(options->forms, bench_form_name[lane->form])) continue;
        lane->wanted = options->repeat;
        lane->seconds = bench_new((size_t)lane->wanted, sizeof *lane->seconds, 1);
        lanes->at[kept++] = *lane;
    }
    lanes->count = kept;
    if (kept == 1) bench_die("there is nothing to measure: no kernel or no form has the name that was given");
}

/** Run a lane once. Its output has the same initial values in all checked runs. */
static void check_lane(struct bench_lane *lane, struct bench_output *output, const struct bench_inputs *inputs)
{
    double seconds;

    bench_output_reset(output, inputs);
    seconds = lane->run(lane, output, 1);
    if (seconds < 0) lane->state = BENCH_ABSENT;
    if (lane->wanted > SLOW_REPEAT && (seconds > slow_seconds || strcmp(lane->kernel, "reference") == 0))
        lane->wanted = SLOW_REPEAT;
}

/** Compute the expected result of a form with kernel reference. The kernel may not support bfloat16. In that case it
 *  multiplies the same values as floats, whose sums are exact. */
static void expect_time(struct bench_output *expected, enum bench_form form, struct bench_graft *graft)
{
    struct bench_lane lane = { .kernel = "reference", .form = form, .self = graft };

    if (form == BENCH_BF16) lane.form = BENCH_PLAIN;
    bench_output_reset(expected, graft->inputs);
    if (bench_graft_run(&lane, expected, 1) < 0)
        bench_die("reference cannot do %s: %s", bench_form_name[form], lane.note);
}

/** Compare the result of every lane with that of kernel reference. Returns the number of wrong lanes. */
static int check_lanes(struct bench_lanes *lanes, struct bench_graft *graft, struct bench_output *output)
{
    struct bench_output expected;
    int                 wrong = 0;

    bench_output_init(&expected, graft->inputs);
    for (int form = 0; form < BENCH_FORMS; form++) {
        int known = 0;

        for (int i = 0; i < lanes->count; i++) {
            struct bench_lane *lane = &lanes->at[i];

            if (lane->form != (enum bench_form)form) continue;
            if (!known++) expect_time(&expected, lane->form, graft);
            check_lane(lane, output, graft->inputs);
            if (lane->state != BENCH_READY) continue;
            if (!bench_output_compare(graft->inputs, lane->form, output, &expected, lane->note, sizeof lane->note)) {
                lane->state = BENCH_WRONG;
                wrong++;
            }
        }
    }
    bench_output_fini(&expected);
    return wrong;
}

/** Measure all lanes in rounds. Each round runs every lane once, so that a temporary slowdown of the machine affects
 *  all lanes equally. */
static void measure_lanes(struct bench_lanes *lanes, struct bench_output *output, int repeat)
{
    for (int round = 0; round < repeat; round++) {
        if (isatty(STDERR_FILENO)) fprintf(stderr, "\rround %d of %d ", round + 1, repeat);
        for (int i = 0; i < lanes->count; i++) {
            struct bench_lane *lane = &lanes->at[i];
            double             seconds;

            if (lane->state != BENCH_READY || round >= lane->wanted) continue;
            seconds = lane->run(lane, output, 0);
            if (seconds < 0) lane->state = BENCH_ABSENT;
            else lane->seconds[lane->runs++] = seconds;
        }
    }
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r                \r");
    for (int i = 0; i < lanes->count; i++) {
        struct bench_lane *lane = &lanes->at[i];

        if (lane->state != BENCH_READY) lane->runs = 0;
        if (lane->runs > 0) lane->median = bench_median(lane->seconds, lane->runs);
    }
}

static void print_heading(const struct options *options, const struct bench_graph *graph, double seconds)
{
    printf("%s: %" PRId64 " vertices, %" PRId64 " entries, longest row %" PRId64 "; made in %.1f s\n", options->graph,
           graph->n, graph->nnz, graph->largest, seconds);
    printf("width %" PRId64 ", stride of B %" PRId64 ", threads %d, vertices in the order %s\n", options->width,
           options->stride, options->threads, options->order != NULL ? options->order : "they come in");
}

static void print_memory(const struct bench_graft *graft)
{
    const struct bench_pages pages = bench_pages();
    const int64_t            kept = graft->mxm->matrix_bytes(graft->matrix) + graft->mxm->matrix_bytes(graft->weighted);

    printf("\nkernels prepared %.1f MB for the graph with and without weights\n", (double)kept * 1e-6);
    if (pages.all > 0) {
        printf("huge pages were asked for; %.0f %% of the memory lies in them\n",
               100 * (double)pages.huge / (double)pages.all);
    }
}

/** Check and measure all lanes on one graph. Returns the number of wrong lanes. */
static int bench_mxm_measure(const struct options *options, const struct bench_graph *graph, const graft_api *api)
{
    struct bench_inputs inputs;
    struct bench_output output;
    struct bench_lanes  lanes = { NULL, 0 };
    struct bench_graft  graft;
    struct bench_copy  *copy = bench_copy_create(options->threads, &lanes);
    int                 wrong;

    bench_inputs_init(&inputs, graph, options->width, options->stride, options->threads);
    bench_output_init(&output, &inputs);
    bench_graft_init(&graft, api, &inputs);
#if BENCH_HAVE_GRAPHBLAS
    struct bench_grb *grb = bench_grb_create(&inputs, &lanes);
#endif
    add_kernels(&lanes, &graft);
    select_lanes(&lanes, options);
    wrong = check_lanes(&lanes, &graft, &output);
    measure_lanes(&lanes, &output, options->repeat);
    print_memory(&graft);
    bench_report_print(&lanes, &inputs);
    if (options->json != NULL) bench_report_json(&lanes, &inputs, options->json);
    bench_graft_fini(&graft);
    api->close(api->context); /* must precede GrB_finalize(), because a kernel may use GraphBLAS */
#if BENCH_HAVE_GRAPHBLAS
    bench_grb_destroy(grb);
#endif
    bench_copy_destroy(copy);
    bench_lanes_fini(&lanes);
    bench_output_fini(&output);
    bench_inputs_fini(&inputs);
    return wrong;
}

int main(int argc, char **argv)
{
    struct options options = { .graph = "rmat:18:2000000", .width = 128, .threads = omp_get_num_procs(), .repeat = 5 };
    struct bench_graph graph;
    const graft_api   *api;
    double             seconds;
    int                wrong = 0;

    argp_parse(&argp, argc, argv, 0, NULL, &options);
    api = load_library();
    seconds = -bench_seconds();
    bench_graph_init(&graph, options.graph, api, options.threads);
    if (options.order != NULL) bench_graph_order(&graph, options.order, api, options.threads);
    seconds += bench_seconds();
    print_heading(&options, &graph, seconds);
    if (options.export != NULL) {
        bench_graph_export(&graph, options.export);
        api->close(api->context);
    } else {
        wrong = bench_mxm_measure(&options, &graph, api);
    }
    bench_graph_fini(&graph);
    return wrong > 0;
}
