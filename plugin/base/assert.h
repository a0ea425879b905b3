/* Assertions of preconditions of internal functions and of invariants of their structures. Errors that a host can cause
 * are statuses, not assertions.
 *
 * They are active unless NDEBUG is defined, which builds of type release and plain do (meson option b_ndebug). A
 * failing assertion prints its place and its text, and aborts; a library for hosts does neither.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#ifdef NDEBUG
/* The condition is compiled, so that it stays correct, and never evaluated. */
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
