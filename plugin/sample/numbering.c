/* Numbers of vertices in a batch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/numbering.h"

/* Places for each vertex that may be looked up. */
enum { SPARSITY = 2 };
/* An array of up to SMALL_ARRAY numbers may be much larger than a table: it is read in half the time. */
enum { SMALL_ARRAY = 4 << 20, SPARSITY_OF_ARRAY = 32 };

static int64_t slots_for(const struct gr_numbering *numbering, int64_t most, int *hashed)
{
    int64_t slots = 1024;

    while (slots < SPARSITY * most) slots *= 2;
    *hashed = 2 * slots < numbering->n && (numbering->n > SMALL_ARRAY || SPARSITY_OF_ARRAY * slots < numbering->n);
    return *hashed ? slots : numbering->n;
}

/* Arrays without numbers. */
static int32_t make_slots(const graft_context *context, struct gr_numbering *made, int hashed, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, made->number, made->slots, error));
    for (int64_t i = 0; i < made->slots; i++) atomic_init(&made->number[i], GR_NO_NUMBER);
    if (!hashed) goto done;
    GR_TRY_DONE(GR_NEW(context, made->key, made->slots, error));
    for (int64_t i = 0; i < made->slots; i++) atomic_init(&made->key[i], -1);
done:
    if (rc < 0) gr_sample_numbering_fini(context, made);
    return rc;
}

int32_t gr_sample_numbering_reserve(const graft_context *context, struct gr_numbering *numbering, int64_t most,
                                    graft_error *error)
{
    struct gr_numbering made = { .n = numbering->n };
    int                 hashed;
    int32_t             rc;

    made.slots = slots_for(&made, most, &hashed);
    if (numbering->slots >= made.slots) return GRAFT_OK;
    rc = make_slots(context, &made, hashed, error);
    if (rc < 0) return rc;
    for (int64_t i = 0; i < numbering->slots; i++) { /* an array over all vertices is never replaced */
        const int32_t v = atomic_load_explicit(&numbering->key[i], memory_order_relaxed);

        if (v == -1) continue;
        atomic_store_explicit(&made.number[gr_sample_numbering_slot(&made, v)],
                              atomic_load_explicit(&numbering->number[i], memory_order_relaxed), memory_order_relaxed);
    }
    gr_sample_numbering_fini(context, numbering);
    *numbering = made;
    return GRAFT_OK;
}

void gr_sample_numbering_clear(struct gr_numbering *numbering, const int64_t *vertex, int64_t count)
{
    if (numbering->key == NULL) {
        for (int64_t i = 0; i < count; i++)
            atomic_store_explicit(&numbering->number[vertex[i]], GR_NO_NUMBER, memory_order_relaxed);
        return;
    }
    for (int64_t i = 0; i < numbering->slots; i++) {
        atomic_store_explicit(&numbering->number[i], GR_NO_NUMBER, memory_order_relaxed);
        atomic_store_explicit(&numbering->key[i], -1, memory_order_relaxed);
    }
}

void gr_sample_numbering_fini(const graft_context *context, struct gr_numbering *numbering)
{
    gr_free(context, (void *)numbering->key);
    gr_free(context, (void *)numbering->number);
    numbering->key = numbering->number = NULL;
    numbering->slots = 0;
}

int64_t gr_sample_numbering_bytes(const struct gr_numbering *numbering)
{
    return gr_memory_bytes((const void *)numbering->key) + gr_memory_bytes((const void *)numbering->number);
}
