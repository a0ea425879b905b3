/* The table of strategies, and the choice of one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/strategies.h"

#include "comm/collective.h"
#include "dgraph/graph.h"
#include "model/kind.h"

static int is_alone(const struct gr_strategy_wish *wish)
{
    return wish->over == NULL;
}

/* Return the number of ranks that share columns of sums; 1 if the model does not gather. */
static int32_t sharing_ranks(const struct gr_strategy_wish *wish)
{
    return gr_run_config(wish->run)->kind->gathers ? wish->over->columns : 1;
}

static int shares_rows(const struct gr_strategy_wish *wish)
{
    return sharing_ranks(wish) == 1;
}

static int shares_columns(const struct gr_strategy_wish *wish)
{
    return sharing_ranks(wish) == wish->over->comm->n_ranks;
}

static int shares_both(const struct gr_strategy_wish *wish)
{
    return sharing_ranks(wish) > 1;
}

/* A program may put its own rows before these; see tests/unit/parallel/test_toy_strategy.c. */
#ifndef GR_MORE_STRATEGIES
#define GR_MORE_STRATEGIES
#endif

static const struct gr_strategy_row strategies[] = { GR_MORE_STRATEGIES{ &gr_serial_ops, is_alone },
                                                     { &gr_partition_ops, shares_rows },
                                                     { &gr_feature_ops, shares_columns },
                                                     { &gr_grid_ops, shares_both } };

int32_t gr_parallel_choose(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    const struct gr_strategy_row *row = strategies;
    struct gr_strategy           *made = NULL;
    int32_t                       rc;

    while (!row->suits(wish)) row++;
    rc = row->ops->make.create(wish, &made, error);
    if (wish->over != NULL) rc = gr_comm_agree(wish->over->comm, rc, error);
    if (rc == GRAFT_OK) *strategy = made;
    else gr_strategy_destroy(made);
    return rc;
}
