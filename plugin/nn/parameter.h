/* The parameters of a network by name, with their gradients, best values and moments, in float or double.
 *
 * parameter.c  names, memory, initial values     state.c      items of a state
 * optimizer.h  steps, clipping, the learning rate
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "graft_train.h"

/** The arrays of a parameter, all of its shape. The first GR_STATE_COPIES are in the state of a training. */
enum gr_copy {
    GR_COPY_VALUE,
    GR_COPY_BEST,
    GR_COPY_M,
    GR_COPY_V,
    GR_STATE_COPIES,
    GR_COPY_GRADIENT = GR_STATE_COPIES,
    GR_COPIES
};

/** The arrays that a step changes: value, m and v. */
enum { GR_STEP_ARRAYS = 3 };

/** Initial values: 0, 1, or uniform random numbers within a bound by Glorot's rule or by the number of inputs of the
 *  layer (the fan-in). */
enum gr_first_value { GR_FIRST_ZERO, GR_FIRST_ONE, GR_FIRST_GLOROT, GR_FIRST_FAN_IN };

/** Whether a parameter is trained, or is a running statistic of BatchNorm. */
enum gr_statistic { GR_TRAINED, GR_RUNNING_MEAN, GR_RUNNING_VARIANCE };

/** Whether the weight decay applies to a parameter: no; yes; and also if it is of the first layer alone. */
enum gr_decay { GR_NOT_DECAYED, GR_DECAYED, GR_DECAYED_FIRST };

/** A parameter: [rows x cols], rows 1 for vectors. For a running statistic, `gradient` is the statistic of the step,
 *  and the optimiser moves the value a tenth of the way to it; there are no moments. */
struct gr_parameter {
    char                names[GR_COPIES - 1][64]; /* names in the state of all copies but the value; see gr_nn_name() */
    int32_t             n_dims;
    enum gr_decay       decayed;
    enum gr_statistic   statistic;
    enum gr_first_value first;
    int64_t             rows, cols;
    int64_t             inputs; /* number of inputs of its layer, for GR_FIRST_FAN_IN */
    union {
        void *copy[GR_COPIES]; /* arrays of either type, by enum gr_copy */
        struct {
            float *value, *best, *m, *v, *gradient; /* the same arrays if the type is float */
        };
    };
    void *previous[GR_STEP_ARRAYS]; /* value, m and v before the last step; NULL: a step overwrites the arrays */
};

/** The name of a copy in the state. The name of the value is the end of the other names, such as "best." + name, and is
 *  not stored itself. */
const char *gr_nn_name(const struct gr_parameter *parameter, enum gr_copy copy);

struct gr_parameters {
    graft_dtype          dtype;
    struct gr_parameter *list; /* trained parameters, then running statistics */
    int32_t              count, n_trained;
    int64_t              n_weights; /* number of elements of all trained parameters */
    void                *gradients; /* gradients of all parameters, one after the other */
};

static inline int64_t gr_parameter_elements(const struct gr_parameter *p)
{
    return p->rows * p->cols;
}

/** The array of a copy that gr_nn_reserve() has set; NULL before. */
static inline void *gr_nn_array(const struct gr_parameters *all, enum gr_copy copy)
{
    return all->list[0].copy[copy];
}

/** The bytes of an element of type F32 or F64. */
static inline int64_t gr_nn_bytes(graft_dtype dtype)
{
    return dtype == GRAFT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
}

/** Read or write element i of an array, F32 or F64. */
static inline double gr_nn_at(graft_dtype dtype, const void *array, int64_t i)
{
    return dtype == GRAFT_F64 ? ((const double *)array)[i] : (double)((const float *)array)[i];
}
static inline void gr_nn_put(graft_dtype dtype, void *array, int64_t i, double value)
{
    if (dtype == GRAFT_F64) ((double *)array)[i] = value;
    else ((float *)array)[i] = (float)value;
}

/** Append a parameter to a list that has space for it. */
struct gr_parameter *gr_nn_add(struct gr_parameters *all, const char *name, const struct gr_parameter *shape);

/** Allocate arrays of zeros for each parameter: with `copies` 1 the values, with GR_STATE_COPIES all that are in the
 *  state of a training. */
int32_t gr_nn_allocate(struct gr_parameters *all, struct gr_budget *budget, int32_t copies, graft_error *error);

/** Allocate one array of zeros for this copy of all parameters, unless they already have it. */
int32_t gr_nn_reserve(struct gr_parameters *all, struct gr_budget *budget, enum gr_use use, enum gr_copy copy,
                      graft_error *error);

/** Announce the bytes of gr_nn_init() to the budget. */
void gr_nn_plan(const struct gr_parameters *all, struct gr_budget *budget);

/** Allocate all arrays for a training whose last step can be undone, and set the initial values. */
int32_t gr_nn_init(struct gr_parameters *all, struct gr_budget *budget, uint64_t seed, graft_error *error);

/** Set the initial values, which depend on the seed and on the index in the list. All values must be 0 before. */
void gr_nn_set_first(struct gr_parameters *all, uint64_t seed);

/* -- items of a state, which a host or a file gives --------------------------------------------------------------- */

/** Describe a copy of parameter i as an item of the state, without copying its values. */
void gr_nn_item(const struct gr_parameters *all, int32_t i, enum gr_copy copy, graft_state_item *item);

int64_t gr_nn_item_bytes(const graft_state_item *item);

/** Check that an item has the type and the shape of `ours`. \return OK; ERR_FORMAT. */
int32_t gr_nn_check_form(const graft_state_item *item, const graft_state_item *ours, graft_error *error);

/** Check all values of an item: they must be finite; finite and not negative; or 0 to 2^62, so that counting can
 *  continue from them. \return OK; ERR_FORMAT. */
enum gr_nn_values { GR_NN_FINITE, GR_NN_NOT_NEGATIVE, GR_NN_COUNTER };
int32_t gr_nn_check_values(const graft_state_item *item, enum gr_nn_values legal, graft_error *error);
