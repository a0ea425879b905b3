/* The declarations of METIS with 64-bit indices that graft-metis uses. The METIS of Debian has 32-bit indices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WIDE_METIS_H
#define WIDE_METIS_H

#include <stdint.h>

typedef int64_t idx_t;
typedef float   real_t;

#define IDX_MAX INT64_MAX

enum { METIS_OK = 1, METIS_ERROR_MEMORY = -3, METIS_NOPTIONS = 40, METIS_OPTION_SEED = 8, METIS_OPTION_NUMBERING = 17 };

int METIS_SetDefaultOptions(idx_t *options);

/** Assign vertex v to part v modulo the number of parts. */
int METIS_PartGraphKway(idx_t *n, idx_t *constraints, idx_t *begin, idx_t *neighbour, idx_t *weight, idx_t *size,
                        idx_t *edge_weight, idx_t *parts, real_t *target, real_t *imbalance, idx_t *options, idx_t *cut,
                        idx_t *owner);

#endif
