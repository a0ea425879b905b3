/* Prints progress. On a terminal it redraws one line. Otherwise it prints a line for each epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include "launch.h"

#include <inttypes.h>
#include <langinfo.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double REDRAW_SECONDS = 0.05;

enum { MIN_BAR = 6, MAX_COLUMNS = 240, TEXT = 256, READER_MILLISECONDS = 200 };

double progress_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void progress_begin(struct progress *progress, int regression)
{
    const char *term = getenv("TERM");

    *progress = (struct progress){ .regression = regression, .shown = GRAFT_INIT(graft_epoch) };
    progress->on_terminal = isatty(STDOUT_FILENO) && !launch_is_known() && (term == NULL || strcmp(term, "dumb") != 0);
    progress->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/** Returns a number with `decimals` decimals, or "-" for NaN. */
static const char *number(char text[32], double value, int decimals)
{
    if (isnan(value)) return "-";
    snprintf(text, 32, "%.*f", decimals, value);
    return text;
}

/** The scores of an epoch that are shown: training, validation and test accuracy, or R^2. */
struct scores {
    double of[3];
};

static struct scores scores_of(const struct progress *progress, const graft_epoch *e)
{
    if (progress->regression) return (struct scores){ { e->train_r2, e->validation_r2, e->test_r2 } };
    return (struct scores){ { e->train_accuracy, e->validation_accuracy, e->test_accuracy } };
}

static void print_plain(const struct progress *progress, const graft_epoch *epoch)
{
    const struct scores none = { { NAN, NAN, NAN } }, s = epoch->evaluated ? scores_of(progress, epoch) : none;
    char                loss[32], train[32], validation[32], test[32], drift[32] = "";

    if (epoch->drift > 0) snprintf(drift, sizeof drift, "  drift %.3f", epoch->drift);
    printf("epoch %" PRId64 "/%" PRId64 "  loss %s  %strain %s  val %s  test %s  %.4f s%s%s%s\n", epoch->epoch,
           epoch->epochs, number(loss, epoch->loss, 6), progress->regression ? "R^2 " : "", number(train, s.of[0], 4),
           number(validation, s.of[1], 4), number(test, s.of[2], 4), epoch->seconds, drift,
           epoch->synchronous ? "  synchronous" : "", epoch->best ? "  best" : "");
    fflush(stdout);
}

/** Returns whether the reader of the output accepts more text. A launcher stops reading when it is interrupted. Ranks
 *  must not wait for such a reader, because the other ranks would wait for them until their deadline. After the reader
 *  has stopped once, the function only polls it. */
static int reader_is_ready(const struct progress *progress)
{
    struct pollfd out = { .fd = STDOUT_FILENO, .events = POLLOUT };

    return launch_size() == 1 || poll(&out, 1, progress->omitted > 0 ? 0 : READER_MILLISECONDS) > 0;
}

static void print_or_omit(struct progress *progress, const graft_epoch *epoch)
{
    if (!reader_is_ready(progress)) {
        progress->omitted++;
        return;
    }
    if (progress->omitted > 0)
        printf("(%" PRId64 " epochs are not listed, because nothing read standard output)\n", progress->omitted);
    progress->omitted = 0;
    print_plain(progress, epoch);
}

static int terminal_columns(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col < MAX_COLUMNS ? size.ws_col : MAX_COLUMNS;
}

static void time_left(const struct progress *progress, char text[32])
{
    const double  each = progress->counted > 0 ? progress->spent / (double)progress->counted : 0;
    const double  left = each * (double)(progress->shown.epochs - progress->shown.epoch);
    const int64_t seconds = left < 3.6e8 ? (int64_t)(left + 0.5) : 360000000;

    if (seconds < 3600) snprintf(text, 32, "%" PRId64 ":%02" PRId64, seconds / 60, seconds % 60);
    else snprintf(text, 32, "%" PRId64 ":%02" PRId64 ":%02" PRId64, seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/** Compose the line in one of five forms, of which form 0 is the longest. `head` is the text before the bar, and `tail`
 *  the text after it. */
static void compose(const struct progress *progress, int form, char head[TEXT], char tail[TEXT])
{
    const graft_epoch  *e = &progress->shown;
    const struct scores s = scores_of(progress, e);
    const char         *r = progress->regression ? "R^2 " : "";
    char                loss[32], train[32], val[32], test[32], left[32], speed[32];
    const double        each = progress->counted > 0 ? progress->spent / (double)progress->counted : 0;
    const char         *l = number(loss, e->loss, form == 0 ? 4 : 3), *a = number(train, s.of[0], 3);
    const char         *b = number(val, s.of[1], 3), *c = number(test, s.of[2], 3);

    time_left(progress, left);
    snprintf(speed, sizeof speed, each < 10 ? "%#.3g" : "%.1f", each); /* with a constant width */
    snprintf(head, TEXT, "%s%" PRId64 "/%" PRId64 " ", form == 0 ? "epoch " : "", e->epoch, e->epochs);
    switch (form) {
    case 0:
        snprintf(tail, TEXT, " loss %s  %strain %s  val %s  test %s  %s s/epoch  %s left", l, r, a, b, c, speed, left);
        break;
    case 1: snprintf(tail, TEXT, " loss %s %strain %s val %s test %s %ss %s left", l, r, a, b, c, speed, left); break;
    case 2: snprintf(tail, TEXT, " loss %s %sval %s %s left", l, r, b, left); break;
    case 3: snprintf(tail, TEXT, " loss %s", l); break;
    default: *tail = '\0';
    }
}

static void draw(struct progress *progress)
{
    /* The last column stays empty, because some terminals begin a new line after a character there. */
    const int    columns = terminal_columns() - 1;
    const double share = (double)progress->shown.epoch / (double)progress->shown.epochs;
    char         head[TEXT], tail[TEXT];
    int          width = 0;

    for (int form = 0; form < 5 && width < MIN_BAR; form++) {
        compose(progress, form, head, tail);
        width = columns - (int)strlen(head) - (int)strlen(tail);
    }
    printf("\r\033[K%.*s", columns, head);
    for (int i = 0; i < width; i++) {
        if (i < (int)(share * width + 0.5)) fputs(progress->utf8 ? "█" : "#", stdout);
        else fputs(progress->utf8 ? "░" : ".", stdout);
    }
    fputs(tail, stdout);
    fflush(stdout);
    progress->drawn = 1;
    progress->last_draw = progress_clock();
}

void progress_epoch(struct progress *progress, const graft_epoch *epoch)
{
    const graft_epoch before = progress->shown;

    progress->shown = *epoch;
    if (!epoch->evaluated) {
        const struct scores none = { { NAN, NAN, NAN } };
        const struct scores s = progress->counted == 0 ? none : scores_of(progress, &before);

        progress->shown.train_accuracy = progress->shown.train_r2 = s.of[0];
        progress->shown.validation_accuracy = progress->shown.validation_r2 = s.of[1];
        progress->shown.test_accuracy = progress->shown.test_r2 = s.of[2];
    }
    progress->counted++;
    progress->spent += epoch->seconds;
    if (!progress->on_terminal) print_or_omit(progress, epoch);
    else if (progress_clock() - progress->last_draw >= REDRAW_SECONDS) draw(progress);
}

void progress_clear(struct progress *progress)
{
    if (!progress->drawn) return;
    fputs("\r\033[K", stdout);
    fflush(stdout);
    progress->drawn = 0;
}

void progress_end(struct progress *progress)
{
    if (!progress->on_terminal || progress->counted == 0) return;
    draw(progress);
    putchar('\n');
    fflush(stdout);
    progress->drawn = 0;
}
