! Communicators of module mpi_f08 for module graft. Without this file a program passes comm%mpi_val to the procedure
! `open` of graft_ranks, which has the same effect.
module graft_f08
   use graft, only: graft_context, graft_ranks
   use mpi_f08, only: MPI_Comm
   implicit none
   private
   public :: graft_ranks_open

contains

   ! Open ranks over a communicator. Collective.
   subroutine graft_ranks_open(ranks, context, comm, ierr)
      type(graft_ranks), intent(inout) :: ranks
      type(graft_context), intent(in) :: context
      type(MPI_Comm), intent(in) :: comm
      integer, intent(out), optional :: ierr

      call ranks%open(context, comm%mpi_val, ierr)
   end subroutine
end module
