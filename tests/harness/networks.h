/* Networks of graft_network.h on the parts of a mesh, one for each rank. The data on the nodes are smooth functions of
 * position and time, so that their values do not depend on how the mesh is divided.
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
    /* Whether a boundary condition fixes the nodes at the lower end of the first direction. Then nodes have different
     * loss weights. */
    int             has_boundary;
    graft_dtype     dtype;      /* element type of the arrays of the host */
    int             by_columns; /* whether the host's arrays are stored component by component */

    int32_t (*test)(struct host *host, struct network_rank *n); /* the test, which network_test() calls on each rank */
    void *arg;
};

/** One rank. */
struct network_rank {
    const struct network_case *what;
    struct mesh_part           part;
    const graft_mesh_api      *meshes;
    const graft_network_api   *networks;
    graft_mesh                *mesh;
    graft_network             *network;
    graft_network_args         args;
    graft_field                constant;
    uint8_t                   *is_free;
    double                    *loss_weight;
};

/** The value of column j at node v of the whole mesh at this time. */
double network_value(const struct test_mesh *mesh, int64_t v, int64_t j, double time);
int    network_is_free(const struct network_case *what, int64_t v);
/** Whether an inference writes this row. It does not write rows of ghosts, nor predicted values of boundary nodes. */
int    network_is_written(const struct network_rank *n, int64_t row);

/** Allocate an array of the host with `columns` columns and the rows of the part. The caller frees field.data. */
graft_field network_field(const struct network_rank *n, int64_t columns);
/** Allocate the same array and fill it with the values at this time. Rows of ghosts are NaN, because the library must
 * not read them. */
graft_field network_state(const struct network_rank *n, int64_t columns, double time);
double      network_field_at(const graft_field *field, int64_t row, int64_t column);
void        network_field_put(const graft_field *field, int64_t row, int64_t column, double value);
/** Whether the host of this rank provides the values of a row. */
int         network_has_row(const struct network_rank *n, int32_t rank, int64_t row);

/** Make the mesh and the network of a rank. The caller calls network_rank_fini() even after a failure. Collective. */
int32_t network_rank_init(struct host *host, const struct network_case *what, struct network_rank *n);
void    network_rank_fini(struct network_rank *n);

/** Divide a mesh among the ranks, and run a body on each of them. Options are separated by blanks. The return value is
 * NULL or an error in words. */
const char *network_run(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how,
                        const char *settings, int32_t (*body)(struct host *host));
/** Do the same with what->test() on the network of each rank, as one check of the test program. */
void network_test(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how, const char *name,
                  const char *settings, int32_t (*test)(struct host *host, struct network_rank *n));

/** Train one step from the values at one time to the values at another time. */
int32_t network_train(struct host *host, struct network_rank *n, double from, double to, graft_network_step *step);

/** Copy a state item and convert it to doubles. The result is the number of elements, or 0 if there is no such item. */
int64_t  network_pull(const struct network_rank *n, const char *name, double *to);
/** Copy all items whose names begin with a prefix, one after the other; "" copies all weights. */
int64_t  network_pull_all(const struct network_rank *n, const char *prefix, double *to);
/** A hash of all state items except gradients. */
uint64_t network_digest(const struct network_rank *n);

/** Record an error of this rank in words. The result is GRAFT_ERR_FORMAT. */
int32_t network_blame(struct host *host, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Unless the condition holds, end the body of the rank with an error that names the line. */
#define NETWORK_CHECK(condition)                                                                                       \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        return network_blame(host, "line %d: not so: %s (%.200s)", __LINE__, #condition, host->error.message);         \
    } while (0)

#endif
