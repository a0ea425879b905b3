/* The part of the Test Anything Protocol that the tests need. A failed check is a line "not ok"; the program goes on,
 * and exits with 0 so that the runner reads the lines (a crash is any other exit).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TAP_H
#define TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* One instance of each for all files of a program. */
__attribute__((weak)) int tap_count, tap_failed;

/** A comment line, for readers of the next lines. */
__attribute__((format(printf, 1, 2), unused)) static void diag(const char *format, ...)
{
    va_list list;

    printf("# ");
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
}

/** One check. Returns the condition, so that dependent checks can be left out. */
__attribute__((format(printf, 2, 3), unused)) static int ok(int condition, const char *format, ...)
{
    va_list list;

    tap_count++;
    if (!condition) tap_failed++;
    printf("%sok %d - ", condition ? "" : "not ", tap_count);
    va_start(list, format);
    vprintf(format, list);
    va_end(list);
    printf("\n");
    fflush(stdout);
    return condition;
}

/** A check with its error in words; NULL: no error. */
__attribute__((unused)) static int ok_fault(const char *name, const char *fault)
{
    if (!ok(fault == NULL, "%s", name)) diag("%s", fault);
    return fault == NULL;
}

/** `count` checks that cannot be made here, and why. */
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

/** The plan, at the end. main() returns it. With GRAFT_TEST_EXIT set, failures show in the exit code, for use by hand.
 *  */
__attribute__((unused)) static int done(void)
{
    printf("1..%d\n", tap_count);
    return getenv("GRAFT_TEST_EXIT") != NULL && tap_failed > 0;
}

#endif
