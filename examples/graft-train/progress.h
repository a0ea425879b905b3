/* Progress: on a terminal one line that is redrawn, elsewhere a line per epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "graft_train.h"

struct progress {
    int         on_terminal;
    int         utf8;
    int         drawn;      /* the terminal shows an unfinished line */
    int64_t     counted;    /* epochs of this run */
    int64_t     omitted;    /* latest epochs without a line, because nothing read the output */
    double      spent;      /* seconds in them */
    double      last_draw;  /* seconds of the steady clock */
    int         regression; /* R^2 is shown, not accuracy */
    graft_epoch shown;      /* the latest epoch, with the latest measured scores */
};

/** The locale of LC_CTYPE decides between UTF-8 and ASCII, so setlocale(LC_CTYPE, "") comes first. */
void progress_begin(struct progress *progress, int regression);
void progress_epoch(struct progress *progress, const graft_epoch *epoch);

/** Clear the line for other text; the next epoch draws it again. */
void progress_clear(struct progress *progress);

/** Draw the last state and end the line. */
void progress_end(struct progress *progress);

/** Seconds of a monotonic clock. */
double progress_clock(void);

#endif
