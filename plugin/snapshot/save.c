/* A model into a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/tensor_file.h"
#include "snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int gr_snapshot_is_whole(graft_context *context, const char *path)
{
    struct gr_file    file;
    struct gr_tensors header = { 0 };
    graft_error       error = { .size = sizeof error };
    const int32_t     opened = gr_file_open(&file, AT_FDCWD, path, "", &error);
    const int whole = opened == GRAFT_OK && gr_io_tensor_file_header(context, &file, &header, &error) == GRAFT_OK;

    gr_io_tensors_fini(&header);
    gr_file_close(&file);
    return whole;
}

int32_t gr_snapshot_save(graft_model *m, const char *path, graft_error *error)
{
    struct gr_state             state = gr_snapshot_state(m);
    const struct gr_state_items items = gr_snapshot_items(&state);
    struct gr_tensor_data      *data = NULL;
    struct gr_output            output = { .temporary.fd = -1 };
    char                        previous[PATH_MAX];
    int32_t                     count, rc = GRAFT_OK;

    if (snprintf(previous, sizeof previous, "%s" GR_SNAPSHOT_PREVIOUS, path) >= (int)sizeof previous)
        return gr_output_failed(path, ENAMETOOLONG, error);
    GR_TRY_DONE(gr_io_state_file_list(m->context, &items, 0, &data, &count, error));
    GR_TRY_DONE(
        gr_io_tensor_file_write(m->context, data, count, m->header.pairs, m->header.n_pairs, path, &output, error));
    rc = gr_output_end(&output, gr_snapshot_is_whole(m->context, path) ? previous : NULL, error);
done:
    gr_output_abort(&output);
    gr_free(m->context, data);
    return rc;
}
