/* Networks on parts of a whole mesh, one for each rank, and smooth data on its nodes that depend only on the node.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NETWORKS_H
#define NETWORKS_H

#include "draft/graft_network.h"
#include "harness/hosts.h"
#include "harness/mesh_parts.h"

enum { NETWORK_IN = 3, NETWORK_OUT = 2, NETWORK_CONSTANT = 1 };

struct network_rank;

/** The data that all ranks share. */
struct network_case {
    struct mesh_cut cut;
    graft_predicts  predicts;
    int             has_boundary; /* nodes at the lower end of the first direction are not free, and weights differ */
    graft_dtype     dtype;        /* of the arrays of the host */
    int             by_columns;   /* arrays are component-major */

    int32_t (*test)(struct host *host, struct network_rank *n); /* see network_test() */
    void *arg;
};

/** The data of one rank. */
struct network_rank {
    const struct network_case *what;
    struct mesh_part           part;
    const graft_meshes        *meshes;
    const graft_networks      *networks;
    graft_mesh                *mesh;
    graft_network             *network;
    graft_network_args         args;
    graft_field                constant;
    uint8_t                   *is_free;
    double                    *loss_weight;
};

/** Column j of node v of the whole mesh at a time. */
double network_value(const struct test_mesh *mesh, int64_t v, int64_t j, double time);
int    network_is_free(const struct network_case *what, int64_t v);

/** An array of the host for `columns` columns, with the rows of the part. Freed with free(field.data). */
graft_field network_field(const struct network_rank *n, int64_t columns);
/** The same with the values at a time; rows of ghosts are NaN, and are not read. */
graft_field network_state(const struct network_rank *n, int64_t columns, double time);
double      network_field_at(const graft_field *field, int64_t row, int64_t column);
void        network_field_put(const graft_field *field, int64_t row, int64_t column, double value);
/** Whether the rank provides the values of a row. */
int         network_has_row(const struct network_rank *n, int32_t rank, int64_t row);

/** Make the mesh and the network of a rank. Returns the status; network_rank_fini() in any case. Collective. */
int32_t network_rank_init(struct host *host, const struct network_case *what, struct network_rank *n);
void    network_rank_fini(struct network_rank *n);

/** Cut a mesh for the ranks, and run a body on each with settings separated by blanks. Returns an error in words, or
 *  NULL. */
const char *network_run(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how,
                        const char *settings, int32_t (*body)(struct host *host));
/** The same with what->test() on a network of each rank, as a check of the test. */
void network_test(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how, const char *name,
                  const char *settings, int32_t (*test)(struct host *host, struct network_rank *n));

/** Train with the pair of two times. */
int32_t network_train(struct host *host, struct network_rank *n, double from, double to, graft_network_step *step);

/** An item of the state as doubles; returns their number, 0: no such item. */
int64_t  network_pull(const struct network_rank *n, const char *name, double *to);
/** All items whose names begin with this prefix, one after the other; "": all weights. */
int64_t  network_pull_all(const struct network_rank *n, const char *prefix, double *to);
/** A checksum of all items except gradients. */
uint64_t network_digest(const struct network_rank *n);

/** A fault of this rank, in words. Returns ERR_FORMAT. */
int32_t network_blame(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** End the body of a rank with a fault that names the line, unless the condition holds. */
#define NETWORK_CHECK(condition)                                                                                       \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        return network_blame(host, "line %d: not so: %s (%.200s)", __LINE__, #condition, host->error.message);         \
    } while (0)

#endif
