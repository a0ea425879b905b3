/* Models without a trainer: copied from a trainer or to one, in files, and for predictions.
 *
 * snapshot.c      makes a model from a trainer or from texts, and applies it to a trainer
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
    struct gr_tensors      header;  /* the metadata; the list of tensors is freed after loading */
    struct gr_options      options; /* values of options of the model; all others have their defaults */
    struct gr_model        model;
    struct gr_progress     progress;
    int32_t                copies, n_progress; /* as in gr_state */
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

/** Create a model from the texts in `header`, which it takes over: options, parameters and their shapes, but no arrays
 *  yet. `shown` is the name of the file in error messages. \return OK; ERR_FORMAT; ERR_UNSUPPORTED; ERR_NOMEM. */
int32_t gr_snapshot_describe(graft_context *context, struct gr_tensors *header, const char *shown, graft_model **model,
                             graft_error *error);

/** Allocate the arrays of all tables. \return OK; ERR_NOMEM. */
int32_t gr_snapshot_allocate_tables(graft_model *model, graft_error *error);

/* The functions of graft.model/1. */
int32_t gr_snapshot_create(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error);
int32_t gr_snapshot_load(graft_context *context, const graft_transport *transport, const char *path,
                         graft_model **model, graft_error *error);
int32_t gr_snapshot_save(graft_model *model, const char *path, graft_error *error);
int32_t gr_snapshot_apply(graft_model *model, graft_trainer *trainer, graft_error *error);
void    gr_snapshot_info(const graft_model *model, graft_model_info *info);
int32_t gr_snapshot_metadata(const graft_model *model, int32_t index, const char **key, const char **value,
                             graft_error *error);
/** The value of graft_prediction.n for all vertices of the data set. */
enum { GR_ALL_VERTICES = -1 };
/** Predict. `found` is the status of this rank's arguments, on which the ranks agree. */
int32_t gr_snapshot_predict(graft_model *model, int32_t found, const graft_prediction *prediction, graft_error *error);
void    gr_snapshot_destroy(graft_model *model);
