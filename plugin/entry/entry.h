/* The tables of the interfaces. Each is filled in by the file of its name.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_ENTRY_ENTRY_H
#define GR_ENTRY_ENTRY_H

#include "graft_aggregate.h"
#include "graft_codec.h"
#include "graft_edge.h"
#include "graft_graph.h"
#include "graft_halo.h"
#include "graft_mxm.h"
#include "graft_train.h"
#include "graft_transport.h"

extern const graft_mxm            gr_interface_mxm;
extern const graft_edge           gr_interface_edge;
extern const graft_data_interface gr_interface_data;
extern const graft_train          gr_interface_train;
extern const graft_transports     gr_interface_transport;
extern const graft_graphs         gr_interface_graph;
extern const graft_halos          gr_interface_halo;
extern const graft_aggregate      gr_interface_aggregate;
extern const graft_codec          gr_interface_codec;

#endif
