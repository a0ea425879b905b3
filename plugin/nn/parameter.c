/* Parameters by name: their memory and their initial values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/parameter.h"

#include "base/assert.h"
#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const prefixes[GR_COPIES] = { "", "best.", "optimizer.m.", "optimizer.v.", "gradient." };

const char *gr_nn_name(const struct gr_parameter *parameter, enum gr_copy copy)
{
    return copy == GR_COPY_VALUE ? parameter->names[0] + strlen(prefixes[1]) : parameter->names[copy - 1];
}

struct gr_parameter *gr_nn_add(struct gr_parameters *all, const char *name, const struct gr_parameter *shape)
{
    struct gr_parameter *p = &all->list[all->count++];

    *p = *shape;
    for (int i = 1; i < GR_COPIES; i++) snprintf(p->names[i - 1], sizeof p->names[0], "%s%s", prefixes[i], name);
    if (p->statistic != GR_TRAINED) return p;
    all->n_trained++;
    all->n_weights += gr_parameter_elements(p);
    GR_ASSERT(all->n_trained == all->count);
    return p;
}

static int32_t new_array(const struct gr_parameters *all, struct gr_budget *budget, enum gr_use use, int64_t count,
                         void **array, graft_error *error)
{
    *array = gr_budget_new(budget, use, count, (uint64_t)gr_nn_bytes(all->dtype), "parameters", error);
    return *array != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
}

/* Divide `array` among the parameters, in the order of the list, as their arrays for one copy. */
static void place_copy(struct gr_parameters *all, enum gr_copy copy, void *array)
{
    char *at = array;

    if (copy == GR_COPY_GRADIENT) all->gradients = array;
    for (int32_t i = 0; i < all->count; i++) {
        all->list[i].copy[copy] = at;
        at += gr_parameter_elements(&all->list[i]) * gr_nn_bytes(all->dtype);
    }
}

static int64_t all_elements(const struct gr_parameters *all)
{
    int64_t count = 0;

    for (int32_t i = 0; i < all->count; i++) count += gr_parameter_elements(&all->list[i]);
    return count;
}

int32_t gr_nn_reserve(struct gr_parameters *all, struct gr_budget *budget, enum gr_use use, enum gr_copy copy,
                      graft_error *error)
{
    void *array;

    if (gr_nn_array(all, copy) != NULL) return GRAFT_OK;
    GR_TRY(new_array(all, budget, use, all_elements(all), &array, error));
    place_copy(all, copy, array);
    return GRAFT_OK;
}

/* The number of copies that a parameter has, of `copies` requested: running statistics have no moments. */
static int32_t copies_of(const struct gr_parameter *p, int32_t copies)
{
    return p->statistic != GR_TRAINED && copies > GR_COPY_M ? GR_COPY_M : copies;
}

int32_t gr_nn_allocate(struct gr_parameters *all, struct gr_budget *budget, int32_t copies, graft_error *error)
{
    GR_ASSERT(copies == 1 || copies == GR_STATE_COPIES);
    for (int32_t i = 0; i < all->count; i++) {
        struct gr_parameter *p = &all->list[i];

        for (int32_t k = 0; k < copies_of(p, copies); k++)
            GR_TRY(new_array(all, budget, k == GR_COPY_VALUE ? GR_USE_WEIGHTS : GR_USE_OPTIMISER,
                             gr_parameter_elements(p), &p->copy[k], error));
    }
    return GRAFT_OK;
}

/* The optimiser stores best and previous values, and current and previous moments. */
void gr_nn_plan(const struct gr_parameters *all, struct gr_budget *budget)
{
    const double bytes = (double)gr_nn_bytes(all->dtype), count = (double)all_elements(all);

    gr_budget_plan(budget, GR_USE_WEIGHTS, 2 * bytes * count);
    gr_budget_plan(budget, GR_USE_OPTIMISER, bytes * (2 * count + 4 * (double)all->n_weights));
}

int32_t gr_nn_init(struct gr_parameters *all, struct gr_budget *budget, uint64_t seed, graft_error *error)
{
    GR_TRY(gr_nn_reserve(all, budget, GR_USE_WEIGHTS, GR_COPY_GRADIENT, error));
    GR_TRY(gr_nn_allocate(all, budget, GR_STATE_COPIES, error));
    for (int32_t i = 0; i < all->count; i++)
        for (int k = 0; k < (i < all->n_trained ? GR_STEP_ARRAYS : 1); k++)
            GR_TRY(new_array(all, budget, GR_USE_OPTIMISER, gr_parameter_elements(&all->list[i]),
                             &all->list[i].previous[k], error));
    gr_nn_set_first(all, seed);
    return GRAFT_OK;
}

/* Compute the bound b of uniform initial values in [-b, b]. The rule of fan-in is that of PyTorch's Linear for weights
 * and biases, 1/sqrt(inputs), which is He et al. 2015, section 2.2, for a slope of sqrt(5). tests/bench/learning.py
 * measures the first epochs. */
static double first_bound(const struct gr_parameter *p)
{
    if (p->first == GR_FIRST_FAN_IN) return 1 / sqrt((double)p->inputs);
    return sqrt(6.0 / (double)(p->rows + p->cols)); /* Glorot and Bengio 2010, eq. 16 */
}

static void set_uniform(graft_dtype dtype, struct gr_parameter *p, uint64_t key)
{
    const double bound = first_bound(p);
    uint32_t     bits[4];

    for (int64_t row = 0; row < p->rows; row++) {
        for (int64_t j = 0; j < p->cols; j++) {
            if (j % 4 == 0) gr_random_block(key, (uint64_t)row, (uint64_t)j / 4, bits);
            gr_nn_put(dtype, p->copy[GR_COPY_VALUE], row * p->cols + j,
                      bound * (2 * ((double)bits[j % 4] + 0.5) / 4294967296.0 - 1));
        }
    }
}

void gr_nn_set_first(struct gr_parameters *all, uint64_t seed)
{
    for (int32_t i = 0; i < all->count; i++) {
        struct gr_parameter *p = &all->list[i];

        if (p->first == GR_FIRST_GLOROT || p->first == GR_FIRST_FAN_IN)
            set_uniform(all->dtype, p, gr_random_key(seed, GR_RANDOM_INIT, 0, (uint64_t)i));
        for (int64_t k = 0; p->first == GR_FIRST_ONE && k < gr_parameter_elements(p); k++)
            gr_nn_put(all->dtype, p->copy[GR_COPY_VALUE], k, 1);
    }
}
