/* Assertions of preconditions of internal functions and of invariants of their structures. Errors that a host can cause
 * are statuses, not assertions.
 *
 * They are active unless NDEBUG is defined, which builds of type release and plain do (meson option b_ndebug). A
 * failing assertion prints file, line and text, and aborts. A library that hosts use must do neither.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#ifdef NDEBUG
/* The compiler checks the condition, so that it stays valid, but the program never evaluates it. */
#define GR_ASSERT(condition) ((void)(0 && (condition)))
#else
#include <stdio.h>
#include <stdlib.h>

static inline _Noreturn void gr_assert_failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
    abort();
}

#define GR_ASSERT(condition) ((condition) ? (void)0 : gr_assert_failed(__FILE__, __LINE__, #condition))
#endif
