/* Slots with states, and the choice of pairs that are stored.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/random.h"
#include "stream/stream.h"

int32_t gr_stream_slots_init(const graft_context *context, struct gr_slots *s, graft_error *error)
{
    GR_TRY(GR_POOL_NEW(context, &s->pool, s->state, s->most, error));
    GR_TRY(GR_POOL_NEW(context, &s->pool, s->uses, s->most, error));
    return GR_POOL_NEW(context, &s->pool, s->unused, s->most, error);
}

int32_t gr_stream_slots_reserve(const graft_context *context, struct gr_slots *s, int32_t count, graft_error *error)
{
    while (s->n_unused < count) {
        GR_ASSERT(s->count < s->most);
        s->state[s->count] = gr_pool_new(context, &s->pool, s->bytes, 1, "states of a stream", error);
        if (s->state[s->count] == NULL) return GRAFT_ERR_NOMEM;
        s->unused[s->n_unused++] = s->count++;
    }
    return GRAFT_OK;
}

int32_t gr_stream_slots_take(struct gr_slots *s)
{
    int32_t slot;

    GR_ASSERT(s->n_unused > 0);
    slot = s->unused[--s->n_unused];
    s->uses[slot] = 1;
    return slot;
}

void gr_stream_slots_use(struct gr_slots *s, int32_t slot)
{
    s->uses[slot]++;
}

void gr_stream_slots_release(struct gr_slots *s, int32_t slot)
{
    GR_ASSERT(s->uses[slot] > 0);
    if (--s->uses[slot] == 0) s->unused[s->n_unused++] = slot;
}

int64_t gr_stream_draw(uint64_t key, uint64_t counter, int64_t bound)
{
    uint32_t bits[4];

    gr_random_block(key, counter, 0, bits);
    /* The upper 64 bits of random bits times bound. Probabilities are uniform up to bound / 2^64. */
    return (int64_t)((unsigned __int128)((uint64_t)bits[1] << 32 | bits[0]) * (uint64_t)bound >> 64);
}

/* A reservoir is algorithm R (Vitter 1985): pair n, from 0 on, replaces one of the stored pairs with probability
 * capacity / (n + 1). */
int32_t gr_stream_kept_place(const struct gr_kept *kept)
{
    int64_t place;

    if (kept->capacity == 0) return -1;
    if (kept->count < kept->capacity) return kept->count;
    if (kept->policy == GR_STREAM_FIFO) return (int32_t)(kept->seen % kept->capacity);
    place = gr_stream_draw(kept->key, (uint64_t)kept->seen, kept->seen + 1);
    return place < kept->capacity ? (int32_t)place : -1;
}

void gr_stream_kept_put(struct gr_kept *kept, struct gr_slots *slots, int32_t place, const struct gr_stream_pair *pair)
{
    GR_ASSERT(place >= 0 && place <= kept->count && place < kept->capacity);
    if (place < kept->count) {
        gr_stream_slots_release(slots, kept->pair[place].input);
        gr_stream_slots_release(slots, kept->pair[place].target);
    } else {
        kept->count++;
    }
    kept->pair[place] = *pair;
}
