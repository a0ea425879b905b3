/* Progress of training. On a terminal it is one line that is redrawn. Otherwise it is a line for each epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H

#include "graft_train.h"

struct progress {
    int         on_terminal;
    int         utf8;
    int         drawn;      /* whether the terminal shows an unfinished line */
    int64_t     counted;    /* number of epochs of this run */
    int64_t     omitted;    /* number of latest epochs without a line, because the output was not read */
    double      spent;      /* seconds of the counted epochs */
    double      last_draw;  /* time of the last drawing on the monotonic clock */
    int         regression; /* whether R^2 is shown instead of accuracy */
    graft_epoch shown;      /* the latest epoch, with the latest measured scores */
};

/** Begin to show progress. LC_CTYPE determines whether the output is UTF-8 or ASCII, so the program must call
 *  setlocale(LC_CTYPE, "") before. */
void progress_begin(struct progress *progress, int regression);
void progress_epoch(struct progress *progress, const graft_epoch *epoch);

/** Clear the line, so that other text can be printed. The next epoch draws the line again. */
void progress_clear(struct progress *progress);

/** Draw the last state and end the line. */
void progress_end(struct progress *progress);

/** Returns the seconds of a monotonic clock. */
double progress_clock(void);

#endif
