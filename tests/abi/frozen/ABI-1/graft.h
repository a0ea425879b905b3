/* Graft: aggregation and training of graph neural networks, as a plugin.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The contract on one page.
 *
 *  1. libgraft.so exports one function, graft_open(). It negotiates a version from the ranges of both sides, and
 *     returns a context with its calls. graft_load.h wraps dlopen() for hosts that need no more than that.
 *  2. Everything else is an interface: a struct of functions, fetched by an id "name/revision" (GRAFT_MXM_ID, ...).
 *     An unknown id gives NULL. An interface only grows at its tail, so a host also checks the size of the table that
 *     it receives; graft_interface() in graft_load.h does both.
 *  3. Every struct begins with its size; graft_base.h has the rule. Fields that a side does not know count as zero.
 *  4. Every call that can fail returns a status and fills an optional graft_error, which the caller owns: a sentence
 *     that says what was found, what was expected, and where. A failed call leaves its outputs unchanged.
 *  5. Matrices are views of the host's arrays. Each comment says how long they are borrowed, and who frees what. A
 *     borrowed array must not change, unless the host then calls update() or matrix_update_values().
 *  6. Each call has a thread tag. A context serves one caller at a time, and contexts share nothing.
 *  7. The library never prints, exits, installs a signal handler, or changes errno, locale, floating-point or OpenMP
 *     settings, and it is never unloaded. In a child process after fork() every call on a context of the parent returns
 *     GRAFT_ERR_FORKED; a context that is opened there uses one thread, because a thread team does not survive fork().
 *  8. Memory comes from the host's allocator if there is one. close() after all objects are destroyed leaves none.
 *  9. What may still change is in abi/draft, under ids that say so. CHANGELOG.md has a line for every change here.
 *
 * README.md in this folder is the manual of embedding, with a glossary. */
#ifndef GRAFT_H
#define GRAFT_H

#include "graft_aggregate.h" /* graft.aggregate/1: distributed products: plan, begin, end */
#include "graft_base.h"      /* versions, sizes, status codes, errors, tags of the comments */
#include "graft_codec.h"     /* graft.codec/1: quantized rows */
#include "graft_data.h"      /* graft.data/1: data sets from files */
#include "graft_edge.h"      /* graft.edge/1: rows by index, attention operators on edges */
#include "graft_graph.h"     /* graft.graph/1: a distributed graph, in which each vertex has an owner */
#include "graft_halo.h"      /* graft.halo/1: rows of the halo, and sums back to their owners */
#include "graft_host.h"      /* graft_host, graft_api, graft_open() */
#include "graft_matrix.h"    /* sparse and dense views, masks, semirings */
#include "graft_model.h"     /* models: formulas, initial weights */
#include "graft_mxm.h"       /* graft.mxm/1: C<M> (+)= A (+.x) B */
#include "graft_report.h"
#include "graft_train.h"     /* graft.train/1: models, epochs, evaluation, state */
#include "graft_transport.h" /* graft.transport/1: moves bytes between ranks */

#endif
