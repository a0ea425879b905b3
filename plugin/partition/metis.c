/* Method metis: exchanges messages with the program graft-metis.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/metis.h"

#include "base/assert.h"
#include "base/environment.h"
#include "base/memory.h"
#include "draft/graft_partitioner.h"
#include "partition/child.h"
#include "partition/options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "graft-metis";

/* Whether the folder has the program; `path` receives the path of the program. */
static int program_exists(char *path, int64_t room, const char *folder, int length)
{
    return snprintf(path, (size_t)room, "%.*s/%s", length, folder, name) < room && access(path, X_OK) == 0;
}

int32_t gr_partition_metis_find(const graft_context *context, char *path, int64_t room, graft_error *error)
{
    const char *chosen = gr_partition_options(context)->program, *folders = gr_environment(context, "PATH");
    char        own[PATH_MAX];

    if (strcmp(chosen, "auto") != 0) {
        if (snprintf(path, (size_t)room, "%s", chosen) < room && access(path, X_OK) == 0) return GRAFT_OK;
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no program '%.300s' (option partition.program)", chosen);
    }
    if (gr_environment_library_folder(own, sizeof own)) {
        const int length = (int)strlen(own);

        if (program_exists(path, room, own, length)) return GRAFT_OK;
        if (snprintf(own + length, sizeof own - (size_t)length, "/%s", GR_PROGRAMS) < (int)sizeof own - length &&
            program_exists(path, room, own, (int)strlen(own)))
            return GRAFT_OK;
    }
    while (folders != NULL && *folders != '\0') {
        const int length = (int)strcspn(folders, ":");

        if (length > 0 && program_exists(path, room, folders, length)) return GRAFT_OK;
        folders += length + (folders[length] == ':');
    }
    return gr_fail(error, GRAFT_ERR_NOT_FOUND,
                   "there is no program %s in the folder of the library, in %s from there, or in the folders of PATH; "
                   "option partition.program can give its path",
                   name, GR_PROGRAMS);
}

/* The sections of the input, in order. */
enum section { HEAD, ROWS, COLUMNS, WEIGHTS, SECTIONS };

struct words {
    const struct gr_slice  *slice;
    graft_partitioner_input head;
    enum section            section;
    int64_t                 at; /* position in the section */
};

static int64_t section_length(const struct words *words)
{
    if (words->section != HEAD && words->head.reserved & GRAFT_PARTITIONER_ASK) return 0;
    switch (words->section) {
    case HEAD: return (int64_t)sizeof words->head / 8;
    case ROWS: return words->head.n_vertices + 1;
    case COLUMNS: return words->head.n_edges;
    default: return words->head.n_vertices * GR_SHARES;
    }
}

static int64_t word_of(const struct words *words)
{
    int64_t weight[GR_SHARES], word;

    switch (words->section) {
    case HEAD: memcpy(&word, (const char *)&words->head + words->at * 8, sizeof word); return word;
    case ROWS: return words->slice->rows->row_ptr[words->at];
    case COLUMNS: return gr_csr_column(words->slice->rows, words->at);
    default:
        gr_partition_slice_weigh(words->slice, words->at / GR_SHARES, weight);
        return weight[words->at % GR_SHARES];
    }
}

static int64_t next_input(void *arg, char *to, int64_t room)
{
    struct words *words = arg;
    int64_t       bytes = 0;

    while (words->section < SECTIONS && bytes + 8 <= room) {
        if (words->at < section_length(words)) {
            const int64_t word = word_of(words);

            memcpy(to + bytes, &word, sizeof word);
            bytes += 8;
            words->at++;
        } else {
            words->section++;
            words->at = 0;
        }
    }
    return bytes;
}

/* The output of the program. */
struct answer {
    graft_partitioner_output head;
    int32_t                  owner[];
};

static int32_t check_answer_head(const struct answer *answer, int64_t n, graft_error *error)
{
    if (answer->head.magic != GRAFT_PARTITIONER_OUTPUT || answer->head.n_vertices != n)
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "the partition begins with %016llx for %lld vertices, expected %016llx of " GRAFT_PARTITIONER_ID
                       " for %lld (option partition.program)",
                       (unsigned long long)answer->head.magic, (long long)answer->head.n_vertices,
                       (unsigned long long)GRAFT_PARTITIONER_OUTPUT, (long long)n);
    return GRAFT_OK;
}

static int32_t check_owners_of(const struct answer *answer, int64_t n, int32_t parts, graft_error *error)
{
    for (int64_t v = 0; v < n; v++) {
        if (answer->owner[v] >= 0 && answer->owner[v] < parts) continue;
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "vertex %lld is in part %d, but parts go from 0 to %d (option partition.program)", (long long)v,
                       answer->owner[v], parts - 1);
    }
    return GRAFT_OK;
}

/* Run the program. *exit_code is its exit code, or 0 if it did not end by itself. */
static int32_t run_metis(const graft_context *context, struct words *words, void *answer, int64_t bytes,
                         const struct gr_meanwhile *meanwhile, int *exit_code, graft_error *error)
{
    struct gr_child child;
    char            path[4096];
    int32_t         rc;

    *exit_code = 0;
    GR_TRY(gr_partition_metis_find(context, path, sizeof path, error));
    GR_TRY(gr_partition_child_start(&child, path, gr_environment_of_child(context),
                                    gr_partition_options(context)->method.number[1], error));
    rc = gr_partition_child_talk(&child, next_input, words, answer, bytes, meanwhile, error);
    *exit_code = child.exit_code;
    gr_partition_child_end(&child);
    return rc;
}

static int32_t check_vertices(int64_t n_vertices, int64_t n_edges, graft_error *error)
{
    if (n_vertices < INT32_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                   "the graph has %lld vertices and %lld entries; method metis takes at most 2147483646 vertices",
                   (long long)n_vertices, (long long)n_edges);
}

double gr_partition_metis_bytes(int64_t n_vertices, int64_t n_edges)
{
    const int is_wide = n_edges > INT32_MAX;

    return (double)n_vertices * (is_wide ? 45 + 56 : 45 + 40) + (double)n_edges * (is_wide ? 4 + 32 : 4 + 16);
}

int32_t gr_partition_metis_check_size(const graft_context *context, int64_t n_vertices, int64_t n_edges,
                                      const struct gr_meanwhile *meanwhile, graft_error *error)
{
    struct words  words = { .head = { .magic = GRAFT_PARTITIONER_INPUT,
                                      .reserved = GRAFT_PARTITIONER_ASK,
                                      .n_parts = 2,
                                      .n_vertices = n_vertices,
                                      .n_edges = n_edges } };
    struct answer answer;
    graft_error   refusal = GRAFT_INIT(graft_error);
    int           exit_code;
    int32_t       rc = check_vertices(n_vertices, n_edges, error);

    if (rc < 0 || !gr_partition_metis_is_asked(n_vertices, n_edges)) return rc;
    rc = run_metis(context, &words, &answer, sizeof answer, meanwhile, &exit_code, &refusal);
    if (rc == GRAFT_OK) rc = check_answer_head(&answer, n_vertices, &refusal);
    if (rc == GRAFT_ERR_MODULE && exit_code != 0)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "the graph has %lld vertices and %lld entries: %.300s",
                       (long long)n_vertices, (long long)n_edges, refusal.message);
    if (rc < 0) *error = refusal;
    return rc;
}

/* The program receives the whole graph with the weights of gr_partition_slice_weigh(), and gr_partition_repair()
 * repairs its output. It is a child of the host's process, which receives SIGCHLD at its end. No process remains.
 * \return OK; ERR_NOT_FOUND (no program); ERR_UNSUPPORTED (2^31-1 vertices or more); ERR_MODULE (the program failed,
 *         also for too many entries; it wrote invalid output, or did not end in the seconds of option partition; the
 *         message quotes its standard error); ERR_IO (no process or socket); ERR_NOMEM; the error of input->meanwhile.
 * Memory: 8 bytes per vertex and the repair here. The program needs 40 per vertex and 16 per entry, with 64-bit indices
 * 56 and 32, and the memory of METIS. */
int32_t gr_partition_metis(const struct gr_partition_input *input, int32_t *owner, graft_error *error)
{
    const graft_context   *context = input->context;
    const struct gr_slice *slice = input->slice;
    const int32_t          parts = input->parts;
    const int64_t          n = slice->rows->n_rows, bytes = (int64_t)sizeof(struct answer) + n * 4;
    struct words           words = { .slice = slice,
                                     .head = { .magic = GRAFT_PARTITIONER_INPUT,
                                               .n_weights = GR_SHARES,
                                               .n_parts = parts,
                                               .n_vertices = n,
                                               .n_edges = gr_csr_entries(slice->rows) } };
    struct answer         *answer = NULL;
    int64_t                moved;
    int                    exit_code;
    int32_t                rc;

    GR_ASSERT(slice->first == 0 && n == slice->rows->n_cols);
    GR_TRY_DONE(check_vertices(n, gr_csr_entries(slice->rows), error));
    answer = gr_new(context, bytes, 1, "answer of metis", error);
    if (answer == NULL) return GRAFT_ERR_NOMEM;
    GR_TRY_DONE(run_metis(context, &words, answer, bytes, input->meanwhile, &exit_code, error));
    GR_TRY_DONE(check_answer_head(answer, n, error));
    GR_TRY_DONE(check_owners_of(answer, n, parts, error));
    GR_TRY_DONE(gr_partition_repair(context, slice, parts, answer->owner, &moved, error));
    if (moved > 0)
        gr_log(context, GRAFT_LOG_INFO, "partition by METIS: %lld vertices moved for balance", (long long)moved);
    memcpy(owner, answer->owner, (size_t)n * sizeof *owner);
done:
    gr_free(context, answer);
    return rc;
}
