! A host in Fortran over ranks of MPI, with an integer communicator: sums on a ring. Run by test_fortran_hosts.py:
! fortran_ranks LIBRARY [fail]. With `fail` it makes a mistake and asks for no status.
! SPDX-License-Identifier: Apache-2.0
program ranks_host
   use graft
   use, intrinsic :: iso_fortran_env
   implicit none
   include 'mpif.h'
   integer, parameter :: each = 4
   character(len=4096) :: path, mode
   integer :: rank, ierr

   call get_command_argument(1, path)
   call get_command_argument(2, mode)
   call MPI_Init(ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call sum_on_ring()
   if (mode == 'fail') print '(a)', 'a mistake did not end the run'
   call MPI_Finalize(ierr)

contains

   subroutine sum_on_ring()
      type(graft_context) :: context
      type(graft_ranks) :: ranks
      type(graft_graph) :: graph
      type(graft_plan) :: plan
      integer :: row_ptr(each + 1), columns(2 * each), n, first, v
      real(real64), target :: x(each), y(each)
      logical :: good

      call context%open(path)
      call context%set('threads', 1)
      call ranks%open(context, MPI_COMM_WORLD)
      n = each * ranks%size()
      first = each * ranks%rank() + 1
      row_ptr = [(2 * v - 1, v=1, each + 1)]
      do v = 1, each
         columns(2 * v - 1) = modulo(first + v - 3, n) + 1
         columns(2 * v) = modulo(first + v - 1, n) + 1
         x(v) = first + v - 1
      end do
      if (rank == 0) columns(1) = n + 7
      call graph%rows(row_ptr, columns)
      if (mode == 'fail') call graph%create(context, n, first, ranks)
      call graph%create(context, n, first, ranks, ierr)
      good = ierr == GRAFT_ERR_FORMAT .and. index(graft_message(), 'column') > 0
      if (rank == 0) columns(1) = n
      call graph%rows(row_ptr, columns)
      call graph%create(context, n, first, ranks)
      call plan%create(graph)
      call ranks%destroy() ! graph and plan still use them
      call plan%begin(x, y)
      call plan%end()
      do v = 1, each
         good = good .and. y(v) == modulo(first + v - 3, n) + 1 + modulo(first + v - 1, n) + 1
      end do
      call MPI_Allreduce(MPI_IN_PLACE, good, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
      if (rank == 0 .and. good) print '(a)', 'the sums are right'
   end subroutine
end program
