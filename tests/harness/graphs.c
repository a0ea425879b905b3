/* Makes graphs to partition, and counts the costs of a partition with plain loops; see harness/graphs.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A list of matrix entries (row, column) in any order. */
struct entries {
    int64_t  n, count, room;
    int64_t *row, *column;
};

static void add(struct entries *entries, int64_t row, int64_t column)
{
    if (entries->count == entries->room) {
        entries->room = 2 * entries->room + 64;
        entries->row = realloc(entries->row, (size_t)entries->room * sizeof *entries->row);
        entries->column = realloc(entries->column, (size_t)entries->room * sizeof *entries->column);
        if (entries->row == NULL || entries->column == NULL) abort();
    }
    entries->row[entries->count] = row;
    entries->column[entries->count++] = column;
}

static void add_both(struct entries *entries, int64_t a, int64_t b)
{
    add(entries, a, b);
    add(entries, b, a);
}

/* Draw a number below n; small numbers are far more likely than large ones. */
static int64_t skewed(struct sample *sample, int64_t n)
{
    return sample_below(sample, 1 + sample_below(sample, 1 + sample_below(sample, n)));
}

static void draw_cliques(struct entries *entries, struct sample *sample)
{
    enum { CLIQUES = 30, MEMBERS = 12 };
    int64_t name[CLIQUES * MEMBERS];

    entries->n = CLIQUES * MEMBERS;
    for (int64_t i = 0; i < entries->n; i++) {
        const int64_t j = sample_below(sample, i + 1);
        name[i] = name[j];
        name[j] = i;
    }
    for (int64_t i = 0; i < entries->n; i++) {
        for (int64_t j = i + 1; j < (i / MEMBERS + 1) * MEMBERS; j++) add_both(entries, name[i], name[j]);
        if (i > 0 && i % MEMBERS == 0) add_both(entries, name[i], name[i - 1]);
    }
}

static const char *draw(struct entries *entries, struct sample *sample, int which)
{
    const int64_t n = entries->n = (int64_t[]){ 400, 300, 200, 500, 300, 0, 400, 40, 3, 1, 0 }[which];

    switch (which) {
    case 0:
        for (int64_t i = 0; i < n; i++) add_both(entries, i, (i + 1) % n);
        return "a ring";
    case 1:
        for (int64_t i = 1; i < n; i++) add_both(entries, 0, i);
        return "a star";
    case 2: return "vertices without entries";
    case 3:
        for (int64_t i = 0; i < 3000; i++) add_both(entries, skewed(sample, n), sample_below(sample, n));
        return "a power law";
    case 4:
        for (int64_t i = 0; i < 3000; i++) add(entries, skewed(sample, n), skewed(sample, n));
        return "a directed power law with loops";
    case 5: draw_cliques(entries, sample); return "a chain of cliques";
    case 6:
        for (int64_t i = 0; i < n; i++) {
            if (i % 20 > 0) add_both(entries, i, i - 1);
            if (i >= 20) add_both(entries, i, i - 20);
        }
        return "a grid";
    case 7:
        for (int64_t i = 0; i < n * n; i++)
            if (i / n != i % n) add(entries, i / n, i % n);
        return "a complete graph";
    case 8: add_both(entries, 0, 2); return "three vertices";
    case 9: add(entries, 0, 0); return "one vertex with a loop";
    default: return "no vertices";
    }
}

static void finish(struct graph *graph, const struct entries *entries, graft_dtype type)
{
    const int64_t n = entries->n;
    int64_t      *next = oracle_new(n + 1, sizeof *next);

    graph->row_ptr = oracle_new(n + 1, sizeof *graph->row_ptr);
    graph->col_idx = oracle_new(entries->count, 8);
    for (int64_t e = 0; e < entries->count; e++) graph->row_ptr[entries->row[e] + 1]++;
    for (int64_t row = 0; row < n; row++) graph->row_ptr[row + 1] += graph->row_ptr[row];
    memcpy(next, graph->row_ptr, (size_t)n * sizeof *next);
    for (int64_t e = 0; e < entries->count; e++)
        sample_put(graph->col_idx, type, next[entries->row[e]]++, (double)entries->column[e]);
    free(next);
    graph->rows = (graft_csr){ .size = sizeof(graft_csr),
                               .index_type = type,
                               .n_rows = n,
                               .n_cols = n,
                               .row_ptr = graph->row_ptr,
                               .col_idx = graph->col_idx };
}

void graph_init(struct graph *graph, int which)
{
    struct sample  sample = { 100 + (uint64_t)which };
    struct entries entries = { 0 };

    *graph = (struct graph){ .name = draw(&entries, &sample, which) };
    finish(graph, &entries, which % 2 == 0 ? GRAFT_I64 : GRAFT_I32);
    graph->train_mask = oracle_new(entries.n, 1);
    for (int64_t v = 0; v < entries.n; v++) graph->train_mask[v] = sample_below(&sample, 4) == 0;
    graph->slice = (struct gr_slice){ &graph->rows, 0, which % 3 == 2 ? NULL : graph->train_mask };
    free(entries.row);
    free(entries.column);
}

int graph_read(struct graph *graph, graft_context *context, const char *name)
{
    const char           *base = getenv("GRAFT_TEST_DATA");
    const graft_data_api *data = context->api->get_interface(context, GRAFT_DATA_ID);
    struct entries        entries = { 0 };
    graft_data           *set;
    char                  path[4096];

    snprintf(path, sizeof path, "%s/%s", base != NULL ? base : "", name);
    if (base == NULL || data->open(context, path, &set, NULL) != GRAFT_OK) return 0;
    const graft_dataset *view = data->view(set);
    entries.n = view->n_vertices;
    for (int64_t row = 0; row < entries.n; row++)
        for (int64_t e = view->graph->row_ptr[row]; e < view->graph->row_ptr[row + 1]; e++)
            add(&entries, row, ((const int32_t *)view->graph->col_idx)[e]);
    *graph = (struct graph){ .name = name };
    finish(graph, &entries, GRAFT_I32);
    graph->train_mask = oracle_new(entries.n, 1);
    for (int64_t v = 0; view->split != NULL && v < entries.n; v++) graph->train_mask[v] = view->split[v] == 1;
    graph->slice = (struct gr_slice){ &graph->rows, 0, graph->train_mask };
    data->close(set);
    free(entries.row);
    free(entries.column);
    return 1;
}

void graph_fini(struct graph *graph)
{
    free(graph->row_ptr);
    free(graph->col_idx);
    free(graph->train_mask);
}

static int64_t column_of(const struct graph *graph, int64_t e)
{
    return graph->rows.index_type == GRAFT_I32 ? ((int32_t *)graph->col_idx)[e] : ((int64_t *)graph->col_idx)[e];
}

void graph_cut(struct graph_slice *cut, const struct graph *graph, int64_t first, int64_t count)
{
    const int64_t begin = graph->row_ptr[first];

    cut->rows = graph->rows;
    cut->rows.n_rows = count;
    cut->rows.row_ptr = cut->row_ptr = oracle_new(count + 1, sizeof *cut->row_ptr);
    for (int64_t i = 0; i <= count; i++) cut->row_ptr[i] = graph->row_ptr[first + i] - begin;
    cut->rows.col_idx = (char *)graph->col_idx + begin * (graph->rows.index_type == GRAFT_I32 ? 4 : 8);
    cut->slice = (struct gr_slice){ &cut->rows, first, NULL };
    if (graph->slice.train_mask != NULL) cut->slice.train_mask = graph->train_mask + first;
}

void graph_cut_fini(struct graph_slice *cut)
{
    free(cut->row_ptr);
}

static int64_t weight_of(const struct graph *graph, int64_t v, int share)
{
    if (share == GR_SHARE_VERTICES) return 1;
    if (share == GR_SHARE_ENTRIES) return graph->row_ptr[v + 1] - graph->row_ptr[v];
    return graph->slice.train_mask != NULL && graph->slice.train_mask[v];
}

static int64_t total_of(const struct graph *graph, int share, const int32_t *owner, int32_t part)
{
    int64_t total = 0;

    for (int64_t v = 0; v < graph->rows.n_rows; v++)
        if (owner == NULL || owner[v] == part) total += weight_of(graph, v, share);
    return total;
}

/* Check the number of rows that two parts would exchange. A vertex counts once if any entry of the other part needs
 * it. */
static const char *pair_fault(const struct graph *graph, const struct gr_partition_measure *measure,
                              const int32_t *owner, int32_t receiver, int32_t sender)
{
    const int64_t n = graph->rows.n_rows, pair = (int64_t)receiver * measure->parts + sender;
    uint8_t      *source = oracle_new(n, 1), *target = oracle_new(n, 1);
    int64_t       post = 0, pre = 0;

    for (int64_t v = 0; v < n; v++) {
        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++) {
            if (owner[v] == receiver && owner[column_of(graph, e)] == sender && receiver != sender)
                source[column_of(graph, e)] = target[v] = 1;
        }
    }
    for (int64_t v = 0; v < n; v++) {
        post += source[v];
        pre += target[v];
    }
    free(source);
    free(target);
    return post == measure->post_rows[pair] && pre == measure->pre_rows[pair] ? NULL : "rows of a pair";
}

static void add_rows(int64_t rows[GR_ROWS_KINDS], const struct gr_partition_measure *measure, int64_t pair)
{
    const int64_t post = measure->post_rows[pair], pre = measure->pre_rows[pair];

    rows[GR_ROWS_POST] += post;
    rows[GR_ROWS_PRE] += pre;
    rows[GR_ROWS_LEAST] += post < pre ? post : pre;
}

const char *graph_measure_fault(const struct graph *graph, const struct gr_partition_measure *measure,
                                const int32_t *owner)
{
    int64_t rows[GR_ROWS_KINDS] = { 0 };

    if (measure->cut != graph_cut_entries(graph, owner)) return "entries cut";
    for (int32_t part = 0; part < measure->parts; part++) {
        const struct gr_part_measure *of = &measure->part[part];
        int64_t                       received[GR_ROWS_KINDS] = { 0 }, sent[GR_ROWS_KINDS] = { 0 };

        for (int32_t other = 0; other < measure->parts; other++) {
            const int64_t in = (int64_t)part * measure->parts + other, out = (int64_t)other * measure->parts + part;

            if (pair_fault(graph, measure, owner, part, other) != NULL) return "rows of a pair";
            add_rows(received, measure, in);
            add_rows(sent, measure, out);
        }
        if (memcmp(of->received, received, sizeof received) != 0 || memcmp(of->sent, sent, sizeof sent) != 0)
            return "rows of a part";
        for (int kind = 0; kind < GR_ROWS_KINDS; kind++) rows[kind] += received[kind];
        for (int share = 0; share < GR_SHARES; share++) {
            if (of->has[share] != total_of(graph, share, owner, part)) return "what a part has";
            if ((double)of->has[share] * measure->parts >
                measure->imbalance[share] * (double)total_of(graph, share, NULL, 0) * (1 + 1e-12))
                return "imbalance";
        }
    }
    return memcmp(measure->rows, rows, sizeof rows) == 0 ? NULL : "rows in all";
}

int64_t graph_allowed(const struct graph *graph, int share, int32_t parts)
{
    const int64_t total = total_of(graph, share, NULL, 0);
    const int64_t limit = (int64_t)(GR_PARTITION_LIMIT * (double)total / parts);

    return limit * parts >= total ? limit : (total + parts - 1) / parts;
}

int64_t graph_overload(const struct graph *graph, const int32_t *owner, int32_t parts)
{
    int64_t most = 0;

    for (int share = 0; share < GR_SHARES; share++) {
        for (int32_t part = 0; part < parts; part++) {
            const int64_t over = total_of(graph, share, owner, part) - graph_allowed(graph, share, parts);
            most = over > most ? over : most;
        }
    }
    return most;
}

int32_t graph_empty_parts(const struct graph *graph, const int32_t *owner, int32_t parts)
{
    int32_t empty = 0;

    for (int64_t v = 0; v < graph->rows.n_rows; v++)
        if (owner[v] < 0 || owner[v] >= parts) return -1;
    for (int32_t part = 0; part < parts; part++) empty += total_of(graph, GR_SHARE_VERTICES, owner, part) == 0;
    return empty;
}

int64_t graph_cut_entries(const struct graph *graph, const int32_t *owner)
{
    int64_t cut = 0;

    for (int64_t v = 0; v < graph->rows.n_rows; v++)
        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++)
            cut += owner[v] != owner[column_of(graph, e)];
    return cut;
}
