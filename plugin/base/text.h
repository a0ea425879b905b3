/* Text of several lines in the host's storage, truncated where that ends.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

struct gr_text {
    char    *at;   /* end of the text so far, always terminated */
    uint64_t left; /* number of bytes left, including the terminator */
};

void gr_text_add(struct gr_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
