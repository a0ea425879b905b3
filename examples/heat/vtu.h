/* Writes files for ParaView: a .vtu for each rank and time with raw appended data, a .pvtu that joins the files of one
 * time, and a .pvd with the times.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef VTU_H
#define VTU_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { VTU_FIELDS = 2 };

/** The triangles of one rank, with values at their nodes. */
struct vtu {
    const char    *folder;
    int            rank, n_ranks;
    int64_t        n_nodes, n_cells;
    const double  *x;    /* [n_nodes x 2] */
    const int32_t *cell; /* [n_cells x 3] */
    const char    *name[VTU_FIELDS];
    const double  *value[VTU_FIELDS]; /* [n_nodes] values of each field */
};

/** Write FOLDER/heat_STEP_RANK.vtu, and on rank 0 heat_STEP.pvtu. Returns 0, or -1 with errno. */
int vtu_write(const struct vtu *vtu, int step);

/** Write FOLDER/heat.pvd with steps 0, every, 2 every, ... up to last. Returns 0, or -1 with errno. */
int vtu_write_times(const char *folder, int every, int last, double step_time);

#ifdef __cplusplus
}
#endif
#endif
