// Graft in programs in C++11 or later: objects that free themselves, errors that are thrown, and views of containers.
// Everything that is not here is reached through get() and table(), with the interfaces of graft.h.
//
// A failed call throws graft::error, after which its object is as before. No exception passes through the library: what
// a callback throws is kept, and thrown again where the call of the library has returned. Objects can be moved and not
// copied. They keep the context and the ranks that they need, so they may be destroyed in any order; over ranks all
// ranks destroy `ranks` objects and what uses them, since the last one closes the transport, which is collective.
//
// A context and its objects serve one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_HPP
#define GRAFT_HPP

#include "graft_context.hpp"
#include "graft_graph.hpp"
#include "graft_mxm.hpp"
#include "graft_network.hpp"
#include "graft_train.hpp"

#endif
