! A host in Fortran whose communicator is that of module mpi_f08. Run by test_fortran_hosts.py: fortran_f08 LIBRARY.
! SPDX-License-Identifier: Apache-2.0
program f08_host
   use graft
   use graft_f08
   use mpi_f08
   use, intrinsic :: iso_fortran_env, only: int32
   implicit none
   type(graft_context) :: context
   type(graft_ranks) :: ranks, same
   character(len=4096) :: path
   integer(int32) :: n

   call get_command_argument(1, path)
   call MPI_Init()
   call MPI_Comm_size(MPI_COMM_WORLD, n)
   call context%open(path)
   call graft_ranks_open(ranks, context, MPI_COMM_WORLD)
   call same%open(context, MPI_COMM_WORLD%mpi_val)
   if (ranks%rank() == 0 .and. ranks%size() == n .and. same%size() == n) print '(a)', 'the ranks are right'
   call same%destroy()
   call ranks%destroy()
   call context%close()
   call MPI_Finalize()
end program
