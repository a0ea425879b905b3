/* A memory budget: the memory of an object by use, and the refusal of allocations beyond a limit.
 *
 * Memory is allocated with gr_budget_new(), or allocated elsewhere and charged by its owner with gr_budget_charge().
 * Temporary copies are borrowed, so that the smallest sufficient limit is the peak.
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

/** The limit of a budget while the needs of its uses are not all known. So one refusal can name a sufficient limit, but
 *  the refused object may have used more than its own limit. */
struct gr_deferral {
    int64_t limit; /* bytes: the available memory of the system, or the own limit if this is more */
    double  most;  /* bytes, the peak of its checks */
};

struct gr_budget {
    const graft_context *context;
    struct gr_deferral  *deferral;         /* NULL: the own limit holds */
    int64_t              limit;            /* bytes */
    int64_t              borrowed;         /* bytes of temporary copies */
    int64_t              charged[GR_USES]; /* bytes that their owners allocated elsewhere */
    double               planned[GR_USES]; /* bytes that each use will need at least */
    struct gr_pool       pool[GR_USES];
};

/** \param[in] limit  Bytes; 0: the available memory of the system. */
void gr_budget_init(struct gr_budget *budget, const graft_context *context, int64_t limit);
/** Check the deferred limit instead of the own limit; until budget->deferral is NULL. */
void gr_budget_defer(struct gr_budget *budget, struct gr_deferral *deferral);
/** Free the memory from gr_budget_new(). */
void gr_budget_fini(struct gr_budget *budget);

/** As GR_NEW, from the budget. ERR_NOMEM, with all uses in the message, if the limit would be exceeded. */
#define GR_BUDGET_NEW(budget, use, ptr, count, error)                                                                  \
    (((ptr) = gr_budget_new((budget), (use), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK                \
                                                                                             : GRAFT_ERR_NOMEM)
void *gr_budget_new(struct gr_budget *budget, enum gr_use use, int64_t count, uint64_t element_bytes, const char *name,
                    graft_error *error);

/** Record memory that its owner allocated elsewhere; a negative number records freed memory. */
void gr_budget_charge(struct gr_budget *budget, enum gr_use use, int64_t bytes);

/** Whether this many more bytes fit the own limit; if not, check() returns ERR_NOMEM with all uses in the message. */
int     gr_budget_fits(const struct gr_budget *budget, double wanted);
int32_t gr_budget_check(const struct gr_budget *budget, double wanted, const char *name, graft_error *error);

/** Reserve bytes for a temporary copy: it belongs to no use, but counts against the limit. Refused as in check(). If an
 *  object cannot be created, its borrowed bytes need not be returned. */
int32_t gr_budget_borrow(struct gr_budget *budget, int64_t bytes, const char *name, graft_error *error);
void    gr_budget_return(struct gr_budget *budget, int64_t bytes);

/** Announce the least total bytes of a use, including its present bytes. Messages of refusals name them. */
void    gr_budget_plan(struct gr_budget *budget, enum gr_use use, double bytes);
/** Bytes that all uses will need at least; ERR_NOMEM, with all uses and then `advice`, if they exceed the limit. */
double  gr_budget_planned(const struct gr_budget *budget);
int32_t gr_budget_check_plan(const struct gr_budget *budget, const char *advice, graft_error *error);

int64_t     gr_budget_bytes(const struct gr_budget *budget, enum gr_use use);
int64_t     gr_budget_total(const struct gr_budget *budget);
const char *gr_budget_use_name(enum gr_use use);
const char *gr_budget_use_help(enum gr_use use);
/** "features 1.0, graph 2.0, ...", in MB. With `planned` a larger announced size counts, and uses below 0.05 MB are
 *  left out. */
void        gr_budget_text(const struct gr_budget *budget, int planned, char *text, uint64_t capacity);
