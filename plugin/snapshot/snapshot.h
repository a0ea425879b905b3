/* Models outside of a trainer: copied out of one and into one, in files, and predicting.
 *
 * snapshot.c      from a trainer or a description to a model, and into a trainer
 * file.c          files
 * predict.c       a setup with the model
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_model.h"
#include "io/state_file.h"
#include "train/train.h"

#define GR_SNAPSHOT_PREVIOUS ".previous"

struct graft_model {
    struct gr_handle       handle;
    graft_context         *context;
    struct gr_budget       budget;
    struct gr_tensors      header;  /* the metadata; tensors are not used any more */
    struct gr_options      options; /* values of its model; other tables have defaults */
    struct gr_model        model;
    struct gr_progress     progress;
    int32_t                copies, n_progress; /* of gr_state */
    int32_t                n_tables;
    struct gr_state_table *tables; /* [n_tables] */
};

static inline struct gr_state gr_snapshot_state(const graft_model *m)
{
    return (struct gr_state){ .model = &m->model,
                              .progress = &m->progress,
                              .copies = m->copies,
                              .n_progress = m->n_progress,
                              .n_tables = m->n_tables,
                              .tables = m->tables };
}

/** A model with the texts of `header`, which it takes: options, parameters and their shapes, but no arrays yet. `shown`
 *  is the name for messages. \return OK; ERR_FORMAT; ERR_UNSUPPORTED; ERR_NOMEM. */
int32_t gr_snapshot_describe(graft_context *context, struct gr_tensors *header, const char *shown, graft_model **model,
                             graft_error *error);

/** Allocate the words of all tables. \return OK; ERR_NOMEM. */
int32_t gr_snapshot_allocate_tables(graft_model *model, graft_error *error);

/* graft.model/1 */
int32_t gr_snapshot_create(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error);
int32_t gr_snapshot_load(graft_context *context, const graft_transport *transport, const char *path,
                         graft_model **model, graft_error *error);
int32_t gr_snapshot_save(graft_model *model, const char *path, graft_error *error);
int32_t gr_snapshot_apply(graft_model *model, graft_trainer *trainer, graft_error *error);
void    gr_snapshot_info(const graft_model *model, graft_model_info *info);
int32_t gr_snapshot_metadata(const graft_model *model, int32_t index, const char **key, const char **value,
                             graft_error *error);
/** In graft_prediction.n: all vertices of the data set. */
enum { GR_ALL_VERTICES = -1 };
/** `found`: the status of the arguments on this rank, on which the ranks agree. */
int32_t gr_snapshot_predict(graft_model *model, int32_t found, const graft_prediction *prediction, graft_error *error);
void    gr_snapshot_destroy(graft_model *model);
