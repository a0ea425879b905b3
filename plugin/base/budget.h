/* A memory budget counts the memory of an object by use, and refuses allocations beyond a limit.
 *
 * Memory is allocated with gr_budget_new(), or allocated elsewhere and charged by its owner with gr_budget_charge().
 * Bytes of temporary copies are borrowed and returned. So the smallest sufficient limit is the peak of the memory.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"

enum gr_use {
    GR_USE_FEATURES,
    GR_USE_GRAPH,
    GR_USE_WEIGHTS,
    GR_USE_OPTIMISER,
    GR_USE_ACTIVATIONS,
    GR_USE_MASKS,
    GR_USE_GRADIENTS,
    GR_USE_MESSAGES,
    GR_USES
};

/** A limit for the time in which an object is created and not all its needs are known. Creation then fails once, at the
 *  end, with a sufficient limit in its message; until then the object may use more than its own limit. */
struct gr_deferral {
    int64_t limit; /* bytes: the available memory of the system, or the budget's own limit if this is more */
    double  most;  /* bytes: the largest total that was checked */
};

struct gr_budget {
    const graft_context *context;
    struct gr_deferral  *deferral;         /* NULL: the budget's own limit applies */
    int64_t              limit;            /* bytes */
    int64_t              borrowed;         /* bytes of temporary copies */
    int64_t              charged[GR_USES]; /* bytes that their owners allocated without the budget */
    double               planned[GR_USES]; /* bytes that each use will need at least */
    struct gr_pool       pool[GR_USES];
};

/** Start a budget.
 *  \param[in] limit  Bytes; 0: the available memory of the system. */
void gr_budget_init(struct gr_budget *budget, const graft_context *context, int64_t limit);
/** From now on compare with deferral->limit, which this sets, instead of budget->limit. The caller ends this by setting
 *  budget->deferral to NULL. */
void gr_budget_defer(struct gr_budget *budget, struct gr_deferral *deferral);
/** Free the memory from gr_budget_new(). */
void gr_budget_fini(struct gr_budget *budget);

/** As GR_NEW, but the budget owns the memory. ERR_NOMEM, with the bytes of all uses in the message, if the limit would
 *  be exceeded. */
#define GR_BUDGET_NEW(budget, use, ptr, count, error)                                                                  \
    (((ptr) = gr_budget_new((budget), (use), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK                \
                                                                                             : GRAFT_ERR_NOMEM)
void *gr_budget_new(struct gr_budget *budget, enum gr_use use, int64_t count, uint64_t element_bytes, const char *name,
                    graft_error *error);

/** Record memory that its owner allocated elsewhere; a negative number records freed memory. */
void gr_budget_charge(struct gr_budget *budget, enum gr_use use, int64_t bytes);

/** Whether so many more bytes fit into budget->limit. check() also considers a deferral, and returns ERR_NOMEM with the
 *  bytes of all uses in the message. */
int     gr_budget_fits(const struct gr_budget *budget, double wanted);
int32_t gr_budget_check(const struct gr_budget *budget, double wanted, const char *name, graft_error *error);

/** Count the bytes of a temporary copy, which belongs to no use, against the limit. \return OK; ERR_NOMEM as from
 *  check(). If an object cannot be created, its borrowed bytes need not be returned. */
int32_t gr_budget_borrow(struct gr_budget *budget, int64_t bytes, const char *name, graft_error *error);
void    gr_budget_return(struct gr_budget *budget, int64_t bytes);

/** Announce how many bytes a use will need at least, including those it has. Messages of refusals state these
 *  numbers. */
void    gr_budget_plan(struct gr_budget *budget, enum gr_use use, double bytes);
/** The bytes that all uses will need at least. check_plan() returns ERR_NOMEM, with the bytes of all uses and then
 *  `advice` in the message, if they exceed the limit. */
double  gr_budget_planned(const struct gr_budget *budget);
int32_t gr_budget_check_plan(const struct gr_budget *budget, const char *advice, graft_error *error);

int64_t     gr_budget_bytes(const struct gr_budget *budget, enum gr_use use);
int64_t     gr_budget_total(const struct gr_budget *budget);
const char *gr_budget_use_name(enum gr_use use);
const char *gr_budget_use_help(enum gr_use use);
/** Write "features 1.0, graph 2.0, ...", in MB. With `planned` the announced size of a use is written if it is larger,
 *  and uses below 0.05 MB are omitted. */
void        gr_budget_text(const struct gr_budget *budget, int planned, char *text, uint64_t capacity);
