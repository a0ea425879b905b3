/* Text of several lines in the host's storage, cut where that ends.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_TEXT_H
#define GR_BASE_TEXT_H

#include <stdint.h>

struct gr_text {
    char    *at;   /* where more goes; always terminated */
    uint64_t left; /* bytes, the end of the text included */
};

void gr_text_add(struct gr_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
