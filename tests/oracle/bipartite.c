/* Builds bipartite graphs for tests of vertex covers, see oracle/bipartite.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bipartite.h"

#include <stdlib.h>

void bipartite_add(struct bipartite *graph, int64_t target, int64_t source)
{
    if (graph->count == graph->room) {
        graph->room = 2 * graph->room + 64;
        graph->edge = realloc(graph->edge, (size_t)graph->room * sizeof *graph->edge);
        if (graph->edge == NULL) abort();
    }
    graph->edge[graph->count][0] = (int32_t)target;
    graph->edge[graph->count++][1] = (int32_t)source;
    if (target >= graph->n_targets) graph->n_targets = target + 1;
    if (source >= graph->n_sources) graph->n_sources = source + 1;
}

void bipartite_finish(struct bipartite *graph)
{
    graph->row_ptr = oracle_new(graph->n_targets + 2, sizeof *graph->row_ptr);
    graph->source = oracle_new(graph->count, sizeof *graph->source);
    for (int64_t i = 0; i < graph->count; i++) graph->row_ptr[graph->edge[i][0] + 2]++;
    for (int64_t t = 0; t < graph->n_targets; t++) graph->row_ptr[t + 2] += graph->row_ptr[t + 1];
    for (int64_t i = 0; i < graph->count; i++)
        graph->source[graph->row_ptr[graph->edge[i][0] + 1]++] = graph->edge[i][1];
    graph->view = (struct oracle_bipartite){ graph->n_targets, graph->n_sources, graph->row_ptr, graph->source };
}

void bipartite_fini(struct bipartite *graph)
{
    free(graph->edge);
    free(graph->row_ptr);
    free(graph->source);
    *graph = (struct bipartite){ 0 };
}

/* The numbers 0 to n-1 in random order. The caller frees the array. */
static int32_t *random_order(struct sample *sample, int64_t n)
{
    int32_t *order = oracle_new(n, sizeof *order);

    for (int64_t i = 0; i < n; i++) {
        const int64_t j = sample_below(sample, i + 1);

        order[i] = order[j];
        order[j] = (int32_t)i;
    }
    return order;
}

void bipartite_shuffle(struct bipartite *shuffled, const struct bipartite *graph, struct sample *sample,
                       int32_t **new_target, int32_t **new_source)
{
    int32_t *order = random_order(sample, graph->count);

    *new_target = random_order(sample, graph->n_targets);
    *new_source = random_order(sample, graph->n_sources);
    *shuffled = (struct bipartite){ .n_targets = graph->n_targets, .n_sources = graph->n_sources };
    for (int64_t i = 0; i < graph->count; i++) {
        const int32_t *edge = graph->edge[order[i]];

        bipartite_add(shuffled, (*new_target)[edge[0]], (*new_source)[edge[1]]);
    }
    bipartite_finish(shuffled);
    free(order);
}

void bipartite_path(struct bipartite *graph, int64_t n, int closed)
{
    *graph = (struct bipartite){ 0 };
    for (int64_t i = 0; i + 1 < n; i++) bipartite_add(graph, (i + 1) / 2, i / 2);
    if (closed) bipartite_add(graph, 0, n / 2 - 1);
    bipartite_finish(graph);
}

void bipartite_board(struct bipartite *graph, int64_t side)
{
    *graph = (struct bipartite){ 0 };
    for (int64_t at = 0; at < side * side; at++) {
        const int64_t x = at / side, y = at % side, black = (x + y) % 2 == 0;

        if (y + 1 < side) bipartite_add(graph, (black ? at : at + 1) / 2, (black ? at + 1 : at) / 2);
        if (x + 1 < side) bipartite_add(graph, (black ? at : at + side) / 2, (black ? at + side : at) / 2);
    }
    bipartite_finish(graph);
}

void bipartite_torn_board(struct bipartite *graph, struct sample *sample, int64_t side)
{
    struct bipartite board, torn = { 0 };
    int32_t         *new_target, *new_source;

    bipartite_board(&board, side);
    torn = (struct bipartite){ .n_targets = board.n_targets, .n_sources = board.n_sources };
    for (int64_t i = 0; i < board.count; i++)
        if (sample_below(sample, 6) > 0) bipartite_add(&torn, board.edge[i][0], board.edge[i][1]);
    bipartite_finish(&torn);
    bipartite_shuffle(graph, &torn, sample, &new_target, &new_source);
    free(new_target);
    free(new_source);
    bipartite_fini(&board);
    bipartite_fini(&torn);
}

void bipartite_random(struct bipartite *graph, struct sample *sample, int64_t n_targets, int64_t n_sources,
                      int64_t edges, int skew)
{
    *graph = (struct bipartite){ .n_targets = n_targets, .n_sources = n_sources };
    for (int64_t i = 0; i < edges && n_targets > 1 && n_sources > 1; i++) {
        int64_t t = sample_below(sample, n_targets - 1), s = sample_below(sample, n_sources - 1);

        for (int k = 0; k < skew; k++) {
            t = sample_below(sample, t + 1);
            s = sample_below(sample, s + 1);
        }
        bipartite_add(graph, t, s);
        if (sample_below(sample, 8) == 0) bipartite_add(graph, t, s);
    }
    bipartite_finish(graph);
}
