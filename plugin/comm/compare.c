/* Checks that all ranks pass the same values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/calls.h"
#include "comm/collective.h"

#include "base/assert.h"
#include "base/crc.h"

#include <stdio.h>
#include <string.h>

enum { SAME = -1, RELEASE = -2, SUBJECT = -3 };

enum { TEXT = 80, CALL = TEXT + 40 };

/* The values of a rank, and the first difference that was found among the ranks below it in the tree. */
struct record {
    int32_t  rank;
    int32_t  count;
    int32_t  item; /* an index, SAME, RELEASE or SUBJECT: what differs between the ranks rank_of */
    int32_t  rank_of[2];
    uint32_t subject; /* CRC32C of the names */
    char     release[32];
    char     release_of[2][32];
    uint64_t value[GR_COMPARE_MAX];
    uint64_t value_of[2];
    char     name[104]; /* name of the item that differs, as rank 0 calls it */
};

_Static_assert(2 * sizeof(struct record) <= GR_SCRATCH_LEAST, "gr_comm_compare() allocates nothing");

static void note_difference(struct record *a, const struct record *b, int32_t item, uint64_t value_a, uint64_t value_b)
{
    a->item = item;
    a->rank_of[0] = a->rank;
    a->rank_of[1] = b->rank;
    a->value_of[0] = value_a;
    a->value_of[1] = value_b;
    memcpy(a->release_of[0], a->release, sizeof a->release);
    memcpy(a->release_of[1], b->release, sizeof b->release);
}

static void take_difference(void *value, const void *incoming, uint64_t bytes)
{
    struct record       *a = value;
    const struct record *b = incoming;

    (void)bytes;
    if (a->item == RELEASE || a->item == SUBJECT) return;
    if (memcmp(a->release, b->release, sizeof a->release) != 0) {
        note_difference(a, b, RELEASE, 0, 0);
        return;
    }
    /* The names are compared first, because rank 0 finds the name of an item by its index in its own list. */
    if (a->count != b->count || a->subject != b->subject) {
        note_difference(a, b, SUBJECT, (uint64_t)a->count, (uint64_t)b->count);
        return;
    }
    if (b->item == RELEASE || b->item == SUBJECT || (a->item == SAME && b->item != SAME)) {
        a->item = b->item;
        memcpy(a->rank_of, b->rank_of, sizeof a->rank_of);
        memcpy(a->value_of, b->value_of, sizeof a->value_of);
        memcpy(a->release_of, b->release_of, sizeof a->release_of);
        return;
    }
    for (int32_t i = 0; i < a->count && a->item == SAME; i++)
        if (a->value[i] != b->value[i]) note_difference(a, b, i, a->value[i], b->value[i]);
}

/* Broadcast, from each of the two ranks that differ in an item, its text. */
static int32_t spread_texts(struct gr_comm *comm, const struct record *r, const char *text, char (*shown)[TEXT],
                            graft_error *error)
{
    for (int i = 0; i < 2; i++) {
        if (snprintf(shown[i], TEXT, "%s", text) >= TEXT) memcpy(shown[i] + TEXT - 4, "...", 3);
        GR_TRY(gr_comm_calls_spread(comm, GR_CALL_COMPARE, r->rank_of[i], shown[i], TEXT, error));
    }
    return GRAFT_OK;
}

static int32_t report_values(struct gr_comm *comm, const struct record *r, const char *text, graft_error *error)
{
    const unsigned long long a = r->value_of[0], b = r->value_of[1];
    char                     shown[2][TEXT] = { "" };

    if (text == NULL)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "the ranks disagree: %.100s is %llu (0x%llx) on rank %d, %llu (0x%llx) on rank %d", r->name, a,
                       a, r->rank_of[0], b, b, r->rank_of[1]);
    GR_TRY(spread_texts(comm, r, text, shown, error));
    return gr_fail(error, GRAFT_ERR_ARG, "the ranks disagree: %.100s is %s on rank %d, %s on rank %d", r->name,
                   shown[0], r->rank_of[0], shown[1], r->rank_of[1]);
}

/* Describe the items that a rank compares. The name of the last one identifies the call. */
static void describe_call(uint64_t items, const char *last, char call[CALL])
{
    if (items == 0) snprintf(call, CALL, "nothing");
    else snprintf(call, CALL, "%llu items up to '%.79s'", (unsigned long long)items, last);
}

static int32_t report_calls(struct gr_comm *comm, const struct record *r, const char *last, graft_error *error)
{
    char shown[2][TEXT] = { "" }, calls[2][CALL];

    GR_TRY(spread_texts(comm, r, last, shown, error));
    for (int i = 0; i < 2; i++) describe_call(r->value_of[i], shown[i], calls[i]);
    return gr_fail(error, GRAFT_ERR_ARG, "the ranks make different calls: rank %d compares %s, rank %d %s",
                   r->rank_of[0], calls[0], r->rank_of[1], calls[1]);
}

/* Make the error that all ranks return. All have the same record, apart from the texts. */
static int32_t report_difference(struct gr_comm *comm, const struct record *r, const char *last,
                                 const char *const *texts, graft_error *error)
{
    int32_t rc;

    if (r->item == SAME) return GRAFT_OK;
    if (r->item == RELEASE)
        rc = gr_fail(error, GRAFT_ERR_VERSION,
                     "rank %d runs release %.31s, rank %d release %.31s; all must run the same", r->rank_of[0],
                     r->release_of[0], r->rank_of[1], r->release_of[1]);
    else if (r->item == SUBJECT) rc = report_calls(comm, r, last, error);
    else rc = report_values(comm, r, texts != NULL ? texts[r->item] : NULL, error);
    if (rc != GRAFT_ERR_PEER) error->rank = r->rank_of[1];
    return rc;
}

int32_t gr_comm_compare_texts(struct gr_comm *comm, const char *const *names, const uint64_t *values,
                              const char *const *texts, int32_t count, graft_error *error)
{
    struct record *mine, *incoming;
    int32_t        rc = GRAFT_OK;

    GR_ASSERT(count >= 0 && count <= GR_COMPARE_MAX);
    GR_TRY_DONE(gr_comm_calls_begin(comm, error));
    if (comm->n_ranks == 1) goto done;
    mine = comm->calls->scratch;
    incoming = mine + 1;
    memset(mine, 0, sizeof *mine);
    mine->rank = comm->rank;
    mine->count = count;
    mine->item = SAME;
    snprintf(mine->release, sizeof mine->release, "%s", GRAFT_RELEASE);
    if (count > 0) memcpy(mine->value, values, (size_t)count * sizeof *values);
    for (int32_t i = 0; i < count; i++) mine->subject = gr_crc(mine->subject, names[i], strlen(names[i]) + 1);
    GR_TRY_DONE(gr_comm_calls_reduce(comm, GR_CALL_COMPARE, mine, incoming, sizeof *mine, take_difference, error));
    if (mine->item >= 0) snprintf(mine->name, sizeof mine->name, "%.100s", names[mine->item]);
    GR_TRY_DONE(gr_comm_calls_spread(comm, GR_CALL_COMPARE, 0, mine, sizeof *mine, error));
    rc = report_difference(comm, mine, count > 0 ? names[count - 1] : "", texts, error);
done:
    return rc;
}

int32_t gr_comm_compare(struct gr_comm *comm, const char *const *names, const uint64_t *values, int32_t count,
                        graft_error *error)
{
    return gr_comm_compare_texts(comm, names, values, NULL, count, error);
}

int32_t gr_comm_agree_same(struct gr_comm *comm, int32_t rc, const char *const *names, const uint64_t *values,
                           int32_t count, graft_error *error)
{
    const char *name[GR_COMPARE_MAX] = { "the status" };
    uint64_t    value[GR_COMPARE_MAX] = { (uint64_t)(int64_t)rc };
    graft_error differs = { .size = sizeof differs };
    int32_t     same;

    GR_ASSERT(count >= 0 && count < GR_COMPARE_MAX);
    if (comm->n_ranks == 1) return rc;
    for (int32_t i = 0; i < count; i++) {
        name[i + 1] = names[i];
        value[i + 1] = values[i];
    }
    same = gr_comm_compare(comm, name, value, count + 1, &differs);
    if (same == GRAFT_OK && rc == GRAFT_OK) return GRAFT_OK;
    if (same != GRAFT_ERR_PEER) {
        const int32_t agreed = gr_comm_agree_on(comm, rc, error);

        if (agreed < 0) return agreed;
    }
    *error = differs;
    return same;
}
