/* Graft: aggregation and training of graph neural networks, as a plugin.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The contract on one page.
 *
 *  1. libgraft.so exports one function, graft_open(). It agrees on a version, both sides giving a range, and returns a
 *     context with its calls. graft_load.h does the dlopen() for a host that wants no more than that.
 *  2. Everything else is an interface: a struct of functions fetched by an id "name/revision" (GRAFT_MXM_ID, ...).
 *     An id that the library does not know gives NULL. What an id names never changes but by growing at the tail, so a
 *     host also looks at the size of what it got; graft_interface() in graft_load.h does both.
 *  3. Every struct begins with its size; graft_base.h has the rule. New fields are zero to those who do not know them.
 *  4. Every call that can fail returns a status and, if asked, fills a graft_error that the caller owns: a sentence
 *     with what was found, what was expected, and where. A failed call leaves its outputs as they were.
 *  5. Matrices are views of the host's arrays. Each comment says until when they are borrowed, and who frees what.
 *  6. Each call says which threads may call it; a context serves one caller at a time, and contexts share nothing.
 *  7. The library never prints, exits, installs a handler, changes errno, locale, rounding or OpenMP settings, and is
 *     never unloaded under its threads. In a child process after fork() every call on a context of the parent
 *     answers GRAFT_ERR_FORKED; one that is opened there works on one thread, for a team of threads does not live on.
 *  8. Memory comes from the host's allocator if there is one; close() after the objects leaves none behind.
 *  9. What may still change lives in abi/draft, under ids that say so. CHANGELOG.md has a line for every change here.
 */
#ifndef GRAFT_H
#define GRAFT_H

#include "graft_account.h"   /* what a trainer tells of its work: spans of time, memory, messages */
#include "graft_aggregate.h" /* graft.aggregate/1: products over ranks: plan, begin, end */
#include "graft_base.h"      /* versions, sizes, status codes, errors, the words of the comments */
#include "graft_codec.h"     /* graft.codec/1: rows as messages of few bits */
#include "graft_data.h"      /* graft.data/1: data sets from files */
#include "graft_edge.h"      /* graft.edge/1: rows by index, attention on the entries of a matrix */
#include "graft_graph.h"     /* graft.graph/1: a graph over ranks, each vertex with its owner */
#include "graft_host.h"      /* graft_host, graft_api, graft_open() */
#include "graft_matrix.h"    /* sparse and dense views, masks, semirings */
#include "graft_mxm.h"       /* graft.mxm/1: C<M> (+)= A (+.x) B */
#include "graft_train.h"     /* graft.train/1: models, epochs, evaluation, state */
#include "graft_transport.h" /* graft.transport/1: what moves bytes between ranks */

#endif
