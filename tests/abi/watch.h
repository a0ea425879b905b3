/* Tables that pass each call on to the library and then check what must hold after every call. errno is unchanged.
 * After a failure the error is filled and outputs are unchanged; after a success the error is unchanged. There is one
 * library, and one thread at a time may call.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef WATCH_H
#define WATCH_H

#include "graft.h"
#include "harness/strict_host.h"

struct watch {
    struct strict_host *host; /* the allocator to check, or NULL */
    void (*before)(void);     /* a function called before and after every call of the library, or NULL */
    void (*after)(const char *call);
    int     retry; /* whether a call that failed for lack of memory is repeated, and must then succeed */
    int64_t calls;
    int     faults;
    char    fault[1024]; /* sentence about the first fault */
};
extern struct watch watch;

/** Record that the current call did something that it must not do. */
__attribute__((format(printf, 1, 2))) void watch_blame(const char *format, ...);

/** Forget all faults. */
void watch_reset(struct strict_host *host);

/** A context and its interfaces, all wrapped. */
struct subject {
    graft_api                  api;
    graft_context             *context;
    const graft_mxm_api       *mxm;
    const graft_edge_api      *edge;
    const graft_data_api      *data;
    const graft_train_api     *train;
    const graft_report_api    *report;
    const graft_transport_api *transport;
    const graft_group_api     *group;
    const graft_graph_api     *graph;
    const graft_aggregate_api *aggregate;
    const graft_codec_api     *codec;
    const graft_halo_api      *halo;
    const graft_model_api     *model;
    const graft_sample_api    *samples;
};

/** Load the library that GRAFT_LIBRARY names, and open a context with the host of the wrapper. */
int32_t subject_open(struct subject *subject, graft_error *error);
void    subject_close(struct subject *subject);

#endif
