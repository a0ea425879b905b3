/* Memory for the library to write into, filled so that a test can tell whether it was written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include <stdatomic.h>
#include <string.h>

__attribute__((weak)) atomic_uint outputs_filled; /* shared by all files of a program */

/** Fill an output of the library before the call that writes it. Each call fills with another byte, from 0xC0 to 0xFF.
 *  Outputs of two calls that wrote nothing therefore differ, whereas zeroed ones would be equal. As a number the
 *  filling is negative or NaN in every type. */
static inline void output_clear(void *output, size_t bytes)
{
    memset(output, 0xFF - (int)(atomic_fetch_add(&outputs_filled, 1) % 0x40), bytes);
}

#endif
