/* The Test Anything Protocol, as far as tests need it. A failed check prints a line "not ok", and the program
 * continues. It exits with 0, so that the runner reads all lines; any other exit status means a crash.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Counters that all files of a program share. */
__attribute__((weak)) int tap_count, tap_failed;

/** Print a comment of one or more lines, which explains the check before it or after it. */
__attribute__((format(printf, 1, 2), unused)) static void diag(const char *format, ...)
{
    char    text[8192];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    for (const char *line = text; line != NULL; line = strchr(line, '\n'), line += line != NULL)
        printf("# %.*s\n", (int)strcspn(line, "\n"), line);
    fflush(stdout);
}

__attribute__((format(printf, 2, 0), unused)) static int tap_check(int condition, const char *format, va_list list)
{
    tap_count++;
    if (!condition) tap_failed++;
    printf("%sok %d - ", condition ? "" : "not ", tap_count);
    vprintf(format, list);
    printf("\n");
    fflush(stdout);
    return condition;
}

/** Print one check. The result is the condition, so that the caller can leave out checks that depend on it. */
__attribute__((format(printf, 2, 3), unused)) static int ok(int condition, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    tap_check(condition, format, list);
    va_end(list);
    return condition;
}

/** Print one check and, if it fails, the reason in words, which may be NULL. */
__attribute__((format(printf, 3, 4), unused)) static int ok_or(int condition, const char *why, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    tap_check(condition, format, list);
    va_end(list);
    if (!condition && why != NULL) diag("%s", why);
    return condition;
}

/** Print one check that passed if the error is NULL; otherwise the error is a reason in words. */
__attribute__((unused)) static int ok_fault(const char *name, const char *fault)
{
    return ok_or(fault == NULL, fault, "%s", name);
}

/** Print that `count` checks cannot be made here, and the reason. */
__attribute__((format(printf, 2, 3), unused)) static void skip(int count, const char *format, ...)
{
    char    reason[512];
    va_list list;

    va_start(list, format);
    vsnprintf(reason, sizeof reason, format, list);
    va_end(list);
    for (int i = 0; i < count; i++) printf("ok %d # SKIP %s\n", ++tap_count, reason);
    fflush(stdout);
}

/** Print the plan; main() returns the result of this call at its end. With variable GRAFT_TEST_EXIT failed checks
 * change the exit status. */
__attribute__((unused)) static int done(void)
{
    printf("1..%d\n", tap_count);
    return getenv("GRAFT_TEST_EXIT") != NULL && tap_failed > 0;
}

#endif
