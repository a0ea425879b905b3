// Ranks over MPI for graft.hpp. This header is compiled with the mpi.h of the program.
#ifndef GRAFT_MPI_HPP
#define GRAFT_MPI_HPP

#include "graft.hpp"
#include "graft_mpi.h"

namespace graft
{

/// The ranks of a communicator, which is duplicated. The call is collective. Destroying the last object that uses the
/// ranks is collective too; it must be done before MPI_Finalize(), after which it has no effect.
inline ranks over(MPI_Comm communicator)
{
    auto transport = GRAFT_INIT(graft_transport);

    detail::call(graft_mpi_transport, communicator, &transport);
    return ranks(transport);
}

} // namespace graft
#endif
