/* Reports on the calls of the drop-in, on request.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_REPORT_H
#define GRAFT_GRB_DROPIN_REPORT_H

struct graft_grb;

/** The words of the variable GRAFT_GRB, which are separated by commas. */
struct grb_wishes {
    int       off;     /**< "off": pass all calls on */
    int       exact;   /**< "exact": compute nothing that may differ in rounding */
    int       verbose; /**< "verbose": a line on standard error for each call */
    int       summary; /**< "summary": some lines on standard error when the program ends */
    long long work;    /** "work=N": the smallest number of entries times columns of a product that Graft computes; -1
                        * for the default */
    long long columns; /** "columns=N": the smallest number of columns of its dense operand; -1 for the default */
};

/** The words, which are read once. [any-thread] */
const struct grb_wishes *grb_wishes(void);

/** A kind of call; for a summary GraphBLAS also computes one call of each kind. */
struct grb_kind {
    const char *name; /**< "GrB_mxm", "GrB_mxv" or "GrB_vxm" */
    int         masked, accumulates;
};

/** The time of CLOCK_MONOTONIC in seconds. */
double grb_seconds(void);

/** Whether a call of this kind must be compared, because none has been compared yet. [any-thread] */
int grb_compare_first(const struct grb_kind *kind);

/** Record the duration of the compared call in seconds: `graft` of Graft, and `plain` of GraphBLAS. */
void grb_note_comparison(const struct grb_kind *kind, double graft, double plain);

/** Take the lock, which is held while the process forks. */
void grb_report_lock(void);
void grb_report_unlock(void);

/** Count one call. `why` is NULL if Graft computed it. [any-thread] */
void grb_note_call(const struct grb_kind *kind, const char *why, double seconds);

#endif
