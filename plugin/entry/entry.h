/* The tables of functions of the interfaces. Each is filled in by the file with its name.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/call.h"
#include "draft/graft_mesh.h"
#include "draft/graft_network.h"
#include "draft/graft_stream.h"
#include "graft_aggregate.h"
#include "graft_codec.h"
#include "graft_edge.h"
#include "graft_graph.h"
#include "graft_group.h"
#include "graft_halo.h"
#include "graft_model.h"
#include "graft_mxm.h"
#include "graft_report.h"
#include "graft_sample.h"
#include "graft_train.h"
#include "graft_transport.h"
#include "graph/csr.h"

/** Copies of the structs that are both in graft_mxm_args and in graft_aggregate_args. */
struct gr_mask_copy {
    graft_mask     mask;
    graft_epilogue epilogue;
    graft_dense    residual;
};

/** Read a mask and an epilogue, either of which may be NULL, and point *mask and *epilogue to the copies. \return as
 *  gr_struct_read() */
int32_t gr_entry_read_mask(const graft_mask **mask, const graft_epilogue **epilogue, struct gr_mask_copy *copy,
                           graft_error *error);

/** Create a matrix object that owns the arrays of csr. They are freed if `rc` is a failure or the creation fails.
 *  \return rc; ERR_NOMEM */
int32_t gr_entry_take_csr(graft_context *context, struct gr_csr *csr, int32_t rc, graft_matrix **matrix,
                          graft_error *error);

/** Define a public function NAME(object) that destroys an object with the room's function `destroy`. */
#define GR_ENTRY_DESTROY(name, type, KIND, where, destroy)                                                             \
    static void name##_object(void *object)                                                                            \
    {                                                                                                                  \
        destroy(object);                                                                                               \
    }                                                                                                                  \
                                                                                                                       \
    static void name(type *object)                                                                                     \
    {                                                                                                                  \
        gr_handle_destroy(object, GR_HANDLE_##KIND, where, name##_object);                                             \
    }

extern const graft_mxm_api       gr_interface_mxm;
extern const graft_edge_api      gr_interface_edge;
extern const graft_data_api      gr_interface_data;
extern const graft_train_api     gr_interface_train;
extern const graft_report_api    gr_interface_report;
extern const graft_model_api     gr_interface_model;
extern const graft_transport_api gr_interface_transport;
extern const graft_group_api     gr_interface_group;
extern const graft_graph_api     gr_interface_graph;
extern const graft_halo_api      gr_interface_halo;
extern const graft_aggregate_api gr_interface_aggregate;
extern const graft_codec_api     gr_interface_codec;
extern const graft_sample_api    gr_interface_sample;
extern const graft_mesh_api      gr_interface_mesh;
extern const graft_network_api   gr_interface_network;
extern const graft_stream_api    gr_interface_stream;

extern const struct gr_option_list gr_all_options;
