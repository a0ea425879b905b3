/* Appends text to storage of fixed size.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stdio.h>

void gr_text_add(struct gr_text *text, const char *format, ...)
{
    va_list list;
    int     length;

    va_start(list, format);
    length = vsnprintf(text->at, text->left, format, list);
    va_end(list);
    if (length < 0 || text->left == 0) return;
    if ((uint64_t)length >= text->left) length = (int)text->left - 1;
    GR_ASSERT((uint64_t)length < text->left);
    text->at += length;
    text->left -= (uint64_t)length;
}
