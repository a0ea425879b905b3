/* Counts calls, and prints the lines on standard error that variable GRAFT_GRB asks for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { KINDS = 12, REASONS = 24, TRIES = 5 };

static struct {
    pthread_mutex_t lock;
    struct {
        int       tries;        /* number of attempts to compare a call; calls that are left to GraphBLAS cannot be
                                 * compared */
        double    graft, plain; /* duration of the compared call in seconds, with Graft and with GraphBLAS */
        double    seconds;      /* duration of all calls that Graft computed */
        long long taken;
    } kinds[KINDS];
    struct {
        char      text[480];
        long long calls;
    } reasons[REASONS]; /* the last element counts all further reasons */
} counts = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct grb_wishes wishes = { .work = -1, .columns = -1 };
static pthread_once_t    once = PTHREAD_ONCE_INIT;

/* Read the number of a word such as "work=10". \return 1 if the word begins with `name` */
static int read_number(const char *word, const char *name, long long *number)
{
    const size_t length = strlen(name);
    char        *end;
    long long    found;

    if (strncmp(word, name, length) != 0) return 0;
    found = strtoll(word + length, &end, 10);
    if (*end == '\0' && end != word + length && found >= 0) *number = found;
    else fprintf(stderr, "graft-grb: GRAFT_GRB has '%s', expected %s and a number\n", word, name);
    return 1;
}

/* The word without leading and trailing blanks. */
static char *trim(char *word)
{
    char *end = word + strlen(word);

    while (end > word && (end[-1] == ' ' || end[-1] == '\t')) *--end = '\0';
    return word + strspn(word, " \t");
}

static void read_word(const char *word)
{
    if (strcmp(word, "on") == 0 || word[0] == '\0') return;
    if (read_number(word, "work=", &wishes.work) || read_number(word, "columns=", &wishes.columns)) return;
    if (strcmp(word, "off") == 0) wishes.off = 1;
    else if (strcmp(word, "exact") == 0) wishes.exact = 1;
    else if (strcmp(word, "verbose") == 0) wishes.verbose = 1;
    else if (strcmp(word, "summary") == 0) wishes.summary = 1;
    else
        fprintf(stderr,
                "graft-grb: GRAFT_GRB has '%s', expected on, off, exact, verbose, summary, work=N or columns=N\n",
                word);
}

static void report(void);

static void read_wishes(void)
{
    const char *text = secure_getenv("GRAFT_GRB");
    char       *words = text != NULL ? strdup(text) : NULL, *rest = words, *word;

    while (rest != NULL && (word = strsep(&rest, ",")) != NULL) read_word(trim(word));
    free(words);
    if (wishes.summary) atexit(report);
}

const struct grb_wishes *grb_wishes(void)
{
    pthread_once(&once, read_wishes);
    return &wishes;
}

void grb_report_lock(void)
{
    pthread_mutex_lock(&counts.lock);
}

void grb_report_unlock(void)
{
    pthread_mutex_unlock(&counts.lock);
}

double grb_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int number_of(const struct grb_kind *kind)
{
    return (kind->name[4] == 'v' ? 2 : kind->name[6] == 'v') * 4 + kind->masked * 2 + kind->accumulates;
}

int grb_compare_first(const struct grb_kind *kind)
{
    int first;

    if (!wishes.summary) return 0;
    pthread_mutex_lock(&counts.lock);
    first = counts.kinds[number_of(kind)].plain == 0 && counts.kinds[number_of(kind)].tries++ < TRIES;
    pthread_mutex_unlock(&counts.lock);
    return first;
}

void grb_note_comparison(const struct grb_kind *kind, double graft, double plain)
{
    pthread_mutex_lock(&counts.lock);
    counts.kinds[number_of(kind)].graft = graft;
    counts.kinds[number_of(kind)].plain = plain;
    pthread_mutex_unlock(&counts.lock);
}

static void count_reason(const char *why)
{
    int i = 0;

    while (i < REASONS - 1 && counts.reasons[i].calls > 0 &&
           strncmp(counts.reasons[i].text, why, sizeof counts.reasons[i].text - 1) != 0)
        i++;
    if (i == REASONS - 1) why = "other reasons";
    if (counts.reasons[i].calls++ == 0) snprintf(counts.reasons[i].text, sizeof counts.reasons[i].text, "%s", why);
}

void grb_note_call(const struct grb_kind *kind, const char *why, double seconds)
{
    if (wishes.verbose && why == NULL)
        fprintf(stderr, "graft-grb: %s%s%s taken: %.6f s\n", kind->name, kind->masked ? ", masked" : "",
                kind->accumulates ? ", accumulated" : "", seconds);
    if (wishes.verbose && why != NULL)
        fprintf(stderr, "graft-grb: %s%s%s left to GraphBLAS: %s\n", kind->name, kind->masked ? ", masked" : "",
                kind->accumulates ? ", accumulated" : "", why);
    if (!wishes.summary) return;
    pthread_mutex_lock(&counts.lock);
    if (why != NULL) {
        count_reason(why);
    } else {
        counts.kinds[number_of(kind)].taken++;
        counts.kinds[number_of(kind)].seconds += seconds;
    }
    pthread_mutex_unlock(&counts.lock);
}

/* Print the summary. The saved time is estimated from the time of Graft and the ratio of the two times of the call that
 * both computed. */
static void report(void)
{
    long long taken = 0, left = 0;
    double    seconds = 0, saved = 0;

    pthread_mutex_lock(&counts.lock);
    for (int i = 0; i < KINDS; i++) {
        taken += counts.kinds[i].taken;
        seconds += counts.kinds[i].seconds;
        if (counts.kinds[i].graft > 0)
            saved += counts.kinds[i].seconds * (counts.kinds[i].plain / counts.kinds[i].graft - 1);
    }
    for (int i = 0; i < REASONS; i++) left += counts.reasons[i].calls;
    fprintf(stderr,
            "graft-grb: %lld products taken in %.3f s, about %.3f s saved (from one call of each kind that GraphBLAS "
            "computed too)\n",
            taken, seconds, saved);
    fprintf(stderr, "graft-grb: %lld left to GraphBLAS\n", left);
    for (int i = 0; i < REASONS; i++) {
        if (counts.reasons[i].calls > 0)
            fprintf(stderr, "graft-grb: %10lld: %s\n", counts.reasons[i].calls, counts.reasons[i].text);
    }
    pthread_mutex_unlock(&counts.lock);
}
