/* The rows of the option table, for the code that walks it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_OPTION_ROW_H
#define GR_BASE_OPTION_ROW_H

#include "base/option.h"

/** The parsed type of a value, and the contents of `domain`. */
enum gr_option_type {
    GR_TYPE_CHOICE,  /* an enum: its words, parted by '|' */
    GR_TYPE_INTEGER, /* int64_t: a range such as "1..64", or "0.." */
    GR_TYPE_COUNT,   /* int64_t: a range as of INTEGER, or "auto", which is GR_COUNT_AUTO */
    GR_TYPE_NUMBER,  /* double: a range, "[0..1)" without the upper end, "(0.." without the lower one, or "" */
    GR_TYPE_WIDTHS,  /* struct gr_widths: the range of each */
    GR_TYPE_TEXT,    /* const char *: "" */
    GR_TYPE_CODEC,   /* struct gr_halo_codec[2]: the words */
    GR_TYPE_BUDGET   /* struct gr_halo_budget: the words */
};

/** A group is a part of the list of options, whose options are compared and reported together. */
enum gr_option_group {
    GR_GROUP_MODEL,
    GR_GROUP_TRAINING,
    GR_GROUP_DATA,
    GR_GROUP_RESOURCES,
    GR_GROUP_KERNELS,
    GR_GROUP_PARTITION,
    GR_GROUP_HALO,
    GR_GROUP_SAMPLING,
    GR_GROUP_MESH,
    GR_GROUP_LIBRARY,
    GR_GROUPS
};

/** USUAL: listed first. LIVE: may change later. EVERYWHERE: read with every group. PREDICTS: in group training, but
 *  changes predictions. CONNECTS: of the ranks of a graph for any use. TRAINS: in group model, but may differ from the
 *  value with which weights were trained. */
enum {
    GR_OPTION_USUAL = 1,
    GR_OPTION_LIVE = 2,
    GR_OPTION_EVERYWHERE = 4,
    GR_OPTION_PREDICTS = 8,
    GR_OPTION_CONNECTS = 16,
    GR_OPTION_TRAINS = 32
};

struct gr_option_row {
    const char          *key;
    enum gr_option_type  type;
    uint32_t             at; /* byte of the parsed value in struct gr_options */
    const char          *domain, *default_value;
    enum gr_option_group group;
    graft_option_scope   scope;
    int32_t              flags;
    /* The condition for an effect: terms "KEY=WORD|WORD", "KEY!=WORD", "processes>1" or "processes=1", or several as
     * "(TERM or TERM)", parted by " and "; "": always. For a codec one direction is enough; KEY ":forward" reads only
     * the forward direction. */
    const char          *needs;
    const char          *help; /* one line */
};

extern const struct gr_option_row gr_option_table[];
extern const int32_t              gr_option_count;
extern const char *const          gr_option_groups[GR_GROUPS];

/** Parse a value as its row says, into `parsed` (struct gr_options). \return whether it is legal; if not, `parsed` is
 *  unchanged. The caller parses texts. */
int gr_option_parse(const struct gr_option_row *row, const char *value, struct gr_options *parsed);

/** Bytes of the parsed value. */
uint64_t gr_option_bytes(const struct gr_option_row *row);

/** The kinds of objects (a bit for each) that keep the value that the option had when they were created. */
uint32_t gr_option_keepers(const struct gr_option_row *row);

/** The set value of a row, or its default. */
const char *gr_option_text(const graft_context *context, const struct gr_option_row *row);

/** Whether a row belongs to one of these groups (a bit for each). */
static inline int gr_option_in(const struct gr_option_row *row, uint32_t groups)
{
    return (groups >> row->group & 1) != 0 || (row->flags & GR_OPTION_EVERYWHERE) != 0;
}

/** Whether a row has an effect with these options in `n_processes` processes. Conditions on options of other groups
 *  than these (a bit for each) count as met. */
int gr_option_has_effect(const struct gr_options *options, const struct gr_option_row *row, uint32_t groups,
                         int32_t n_processes);

/** Warn once of each option of these groups (a bit for each) that was set and has no effect with the others in
 *  `n_processes` processes. Conditions on options of other groups count as met. Not collective. */
void gr_options_report(graft_context *context, uint32_t groups, int32_t n_processes);

/** The same warning of one option, for a reason that the conditions of the table do not express. Not collective.
 * \param[in] reason  The end of the sentence "option 'KEY' is VALUE, which has no effect because". */
void gr_option_report_idle(graft_context *context, const char *key, const char *reason);

#endif
