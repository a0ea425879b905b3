/* What the rows of a weighted cover cost.
 *
 * A row in few bits is off by some part of its range, so what it loses is range^2, and its entries carry this to the
 * rows they are in. In a mean over neighbours entry (v, u) weighs a(v, u) = |value| / sum of |values| of row v. Ranges
 * are not known when a plan is made, and so all vertices have the same; a sum then has at most that of all its parts
 * together, as it has if they are alike. So, with sums over the entries of the pair of ranks, a raw row loses sum a^2
 * and a partial result (sum a)^2, as if it served all of them: which of them others serve the cover says, and that is
 * not known yet either.
 *
 * In the transposed pass gradients travel, which point every way. Of parts that are independent the range^2 of a sum is
 * the sum of theirs, and then all covers lose the same; so that pass is not in the price.
 * SPDX-License-Identifier: Apache-2.0 */
#include "spmm/plan.h"
#include "base/memory.h"

#include <math.h>

enum {
    USUAL_BITS = 2,   /* a mean row in so many bits loses 1, in the unit of the price */
    DEAREST = 1 << 30 /* the highest price */
};

struct pricing {
    struct gr_cuts               *cuts;
    const struct gr_cover_choice *choice;
    float                        *source, *target; /* [halo] sum of a^2, [targets] of a; over the entries of each */
    double                        unit;            /* what a row of USUAL_BITS loses, on the mean */
    double                        dearest;
};

static double magnitude(const graft_csr *csr, int64_t entry)
{
    if (csr->values == NULL) return 1;
    return fabs(csr->value_type == GRAFT_F64 ? ((const double *)csr->values)[entry]
                                             : (double)((const float *)csr->values)[entry]);
}

static double row_magnitude(const graft_csr *csr, int64_t row)
{
    double sum = 0;

    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) sum += magnitude(csr, e);
    return sum;
}

static void add_weights(struct pricing *p)
{
    const struct gr_part *part = p->cuts->part;

    gr_cut_walk(p->cuts);
    for (int64_t row = 0; row < part->remote.n_rows; row++) {
        const double whole = row_magnitude(&part->local, row) + row_magnitude(&part->remote, row);

        for (int64_t e = part->remote.row_ptr[row]; e < part->remote.row_ptr[row + 1]; e++) {
            const struct gr_cut_edge edge = gr_cut_step(p->cuts, row, e);
            const double             weight = whole > 0 ? magnitude(&part->remote, e) / whole : 0;

            p->source[edge.source] += (float)(weight * weight);
            p->target[edge.target] += (float)weight;
        }
    }
}

/* What a number of a row of range 1 loses, but for a factor that all bits have. */
static double part_lost(int32_t bits)
{
    return bits > GR_FEW_BITS ? 0 : pow(pow(2, bits) - 1, -2);
}

/* And a row, but for that. */
static double source_loss(const struct pricing *p, int64_t source)
{
    return p->source[source];
}

static double target_loss(const struct pricing *p, int64_t target)
{
    return (double)p->target[target] * p->target[target];
}

/* The mean over all rows that there could be. */
static void find_unit(struct pricing *p)
{
    const struct gr_cuts *c = p->cuts;
    const int64_t         targets = c->target_start[c->n_ranks];
    double                sum = 0;

    for (int64_t s = 0; s < c->part->halo.count; s++) sum += source_loss(p, s);
    for (int64_t t = 0; t < targets; t++) sum += target_loss(p, t);
    p->unit = sum > 0 ? part_lost(USUAL_BITS) * sum / (double)(c->n_sources + targets) : 1;
}

/* Rows have the same bytes, raw or not. */
static double price(const struct pricing *p, double loss)
{
    return 1 - p->choice->lambda + p->choice->lambda * part_lost(p->choice->bits) * loss / p->unit;
}

/* That of the row which loses most. */
static void find_dearest(struct pricing *p)
{
    const struct gr_cuts *c = p->cuts;
    double                most = 0;

    for (int64_t s = 0; s < c->part->halo.count; s++) most = source_loss(p, s) > most ? source_loss(p, s) : most;
    for (int64_t t = 0; t < c->target_start[c->n_ranks]; t++)
        most = target_loss(p, t) > most ? target_loss(p, t) : most;
    p->dearest = price(p, most);
}

static int32_t in_whole(const struct pricing *p, double price)
{
    return p->dearest > 0 ? 1 + (int32_t)(price / p->dearest * (DEAREST - 1)) : 1;
}

static void put(const struct pricing *p)
{
    const struct gr_cuts *c = p->cuts;

    for (int64_t s = 0; s < c->part->halo.count; s++) c->source_price[s] = in_whole(p, price(p, source_loss(p, s)));
    for (int64_t t = 0; t < c->target_start[c->n_ranks]; t++)
        c->target_price[t] = in_whole(p, price(p, target_loss(p, t)));
}

int32_t gr_cuts_price(const graft_context *context, const struct gr_cover_choice *choice, struct gr_cuts *c,
                      graft_error *error)
{
    struct pricing p = { .cuts = c, .choice = choice };
    int32_t        rc = GRAFT_OK;

    GR_TRY(GR_NEW(context, c->source_price, c->part->halo.count, error));
    GR_TRY(GR_NEW(context, c->target_price, c->target_start[c->n_ranks], error));
    GR_TRY(GR_NEW(context, p.source, c->part->halo.count, error));
    GR_TRY(GR_NEW(context, p.target, c->target_start[c->n_ranks], error));
    add_weights(&p);
    find_unit(&p);
    find_dearest(&p);
    put(&p);
done:
    gr_free(context, p.source);
    gr_free(context, p.target);
    return rc;
}
