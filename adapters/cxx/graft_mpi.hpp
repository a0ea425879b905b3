// Ranks over MPI for graft.hpp, compiled with the mpi.h of the program.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_MPI_HPP
#define GRAFT_MPI_HPP

#include "graft.hpp"
#include "graft_mpi.h"

namespace graft
{

/// The ranks of a communicator, which is duplicated. Collective, and so is the end of the last object that uses them:
/// before MPI_Finalize(), or after it without effect.
inline ranks over(MPI_Comm communicator)
{
    auto transport = GRAFT_INIT(graft_transport);

    detail::call(graft_mpi_transport, communicator, &transport);
    return ranks(transport);
}

} // namespace graft
#endif
