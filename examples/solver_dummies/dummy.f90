! A solver dummy in Fortran: heat in a rod. Graft learns while the solver runs, and then takes its place.
!     gfortran $(pkg-config --variable=fortran graft) dummy.f90 -o dummy -ldl && ./dummy [LIBRARY]
! SPDX-License-Identifier: Apache-2.0
program dummy
   use graft
   implicit none
   integer, parameter :: n = 42 ! number of points of the rod, including its ends
   double precision :: x(1, n), u(n), exact(n), total, apart
   type(graft_context) :: context
   type(graft_mesh) :: mesh
   type(graft_network) :: network
   type(graft_stream) :: stream
   type(graft_stream_status) :: status
   character(len=1000) :: library
   integer :: i, step

   x(1, :) = [(i / (n - 1d0), i=0, n - 1)]
   u = 4 * x(1, :) * (1 - x(1, :))
   call get_command_argument(1, library)
   if (library == '') library = 'libgraft.so.1'
   call context%open(library)
   call context%set('hidden', 16)
   call context%set('layers', 2)
   call context%set('lr', '0.003')
   call mesh%coordinates(x)
   call mesh%cells(GRAFT_CELL_LINE, reshape([(i, i + 1, i=1, n - 1)], [2, n - 1]))
   call mesh%create(context, GRAFT_MESH_GHOSTS) ! over ranks: with ids, and graft_ranks at the end
   call network%is_free([(i > 1 .and. i < n, i=1, n)])
   call network%create(mesh, 1, 1, GRAFT_PREDICTS_CHANGE)
   call stream%create(network)
   do step = 1, 300
      call stream%offer(u, dble(step))
      call stream%step(1d3, 1, status) ! trains for at most a second, and at most one step
      call solve(u)
   end do
   exact = u
   do step = 1, 10
      call network%begin(u) ! the solver may compute between these two
      call network%end(u)
      call solve(exact)
   end do
   total = 0
   apart = 0
   do i = 1, n
      total = total + u(i)
      apart = apart + (u(i) - exact(i))**2
   end do
   print '(a,es13.6e2,a,es13.6e2,a,es24.16e3)', 'loss ', status%loss, ' error ', apart, ' sum ', total

contains
   subroutine solve(t)
      double precision, intent(inout) :: t(n)
      double precision :: old(n)

      old = t
      t(2:n - 1) = old(2:n - 1) + 0.4d0 * (old(1:n - 2) - 2 * old(2:n - 1) + old(3:n))
   end subroutine
end program
