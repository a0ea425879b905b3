/* "graft.report/1": returns reports of a trainer with train/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "train/train.h"

static int32_t report_span(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error)
{
    struct gr_call call;
    graft_span     ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " span", error);

    if (rc == GRAFT_OK) rc = gr_trainer_span(trainer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(span, &ours, sizeof ours, "span", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t report_memory_item(graft_trainer *trainer, int32_t index, graft_memory_item *item, graft_error *error)
{
    struct gr_call    call;
    graft_memory_item ours = { .size = sizeof ours };
    int32_t           rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " memory_item", error);

    if (rc == GRAFT_OK) rc = gr_trainer_memory_item(trainer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t report_traffic(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    struct gr_call call;
    graft_traffic  ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " traffic", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(traffic, "traffic", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic(trainer, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(traffic, &ours, sizeof ours, "traffic", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t report_traffic_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                   graft_error *error)
{
    struct gr_call     call;
    graft_traffic_item ours = { .size = sizeof ours };
    int32_t            rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " traffic_item", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic_item(trainer, rank, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t report_traffic_pair(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                   graft_error *error)
{
    struct gr_call     call;
    graft_traffic_pair ours = { .size = sizeof ours };
    int32_t            rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " traffic_pair", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(pair, "pair", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic_pair(trainer, peer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(pair, &ours, sizeof ours, "pair", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t report_cache_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_cache_item *item,
                                 graft_error *error)
{
    struct gr_call   call;
    graft_cache_item ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_REPORT_ID " cache_item", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_cache_item(trainer, rank, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

const graft_report_api gr_interface_report = {
    .size = sizeof(graft_report_api),
    .span = report_span,
    .memory_item = report_memory_item,
    .traffic = report_traffic,
    .traffic_item = report_traffic_item,
    .traffic_pair = report_traffic_pair,
    .cache_item = report_cache_item,
};
