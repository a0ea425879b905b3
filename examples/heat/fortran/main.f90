! The program of ../main.c in Fortran, with a solver in Fortran: see ../README.md.
! SPDX-License-Identifier: Apache-2.0
program heat
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: error_unit, int32, int64, real64
   use graft
   use heat_solver, only: solver, solver_step
   implicit none
   include 'mpif.h'

   integer, parameter :: run_length = 40, trainings = 5, middle = 50, every = 10

   ! struct vtu of ../vtu.h
   type, bind(c) :: vtu
      type(c_ptr) :: folder
      integer(c_int) :: rank, n_ranks
      integer(c_int64_t) :: n_nodes, n_cells
      type(c_ptr) :: x, cell, name(2), value(2)
   end type

   interface
      integer(c_int) function vtu_write(files, step) bind(c)
         import :: c_int, vtu
         type(vtu), intent(in) :: files
         integer(c_int), value :: step
      end function
      integer(c_int) function vtu_write_times(folder, every, last, step_time) bind(c)
         import :: c_char, c_double, c_int
         character(kind=c_char), intent(in) :: folder(*)
         integer(c_int), value :: every, last
         real(c_double), value :: step_time
      end function
   end interface

   character(len=1000) :: library, folder
   integer :: comm, n_ranks, side, steps, after, ierr

   call MPI_Init(ierr)
   call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
   call MPI_Comm_size(comm, n_ranks, ierr)
   call get_command_argument(1, library)
   call get_command_argument(2, folder)
   side = argument(3, 24)
   steps = argument(4, 800)
   after = argument(5, 100)
   if (library == '' .or. side < 3 .or. side < n_ranks .or. steps < 2 .or. after < 1) then
      write (error_unit, '(a)') 'usage: heat LIBRARY [FOLDER [SIDE [STEPS [AFTER]]]], see README.md'
      call MPI_Abort(comm, 1, ierr)
   end if
   call simulate()
   call MPI_Comm_free(comm, ierr)
   call MPI_Finalize(ierr)

contains

   integer function argument(number, otherwise)
      integer, intent(in) :: number, otherwise
      character(len=20) :: text
      integer :: status

      call get_command_argument(number, text)
      argument = otherwise
      if (text == '') return
      read (text, *, iostat=status) argument
      if (status /= 0) argument = 0
   end function

   ! The objects of Graft are freed at the end of this procedure. No call asks for a status, so a failure is printed and
   ! ends all ranks.
   subroutine simulate()
      type(solver), target :: s
      type(graft_context) :: context
      type(graft_ranks) :: ranks
      type(graft_mesh) :: mesh
      type(graft_plan) :: filter
      type(graft_network) :: network
      type(graft_stream) :: stream

      call s%init(comm, side)
      call configure(context)
      call ranks%open(context, comm)
      call make_mesh(s, context, ranks, mesh)
      call make_filter(s, context, ranks, mesh, filter)
      call make_network(s, mesh, network)
      call stream%create(network)
      call train(s, filter, stream)
      call compare(s, filter, network)
   end subroutine

   subroutine configure(context)
      type(graft_context), intent(inout) :: context
      character(len=32) :: schedule

      call context%open(library)
      call context%set('hidden', 32)
      call context%set('layers', 3)
      call context%set('mgn.linear', 2)
      call context%set('lr', '0.002')
      write (schedule, '(a, i0)') 'cosine:', trainings * steps
      call context%set('mgn.schedule', trim(schedule))
      call context%set('mgn.noise', '0.0003')
      call context%set('stream.holdout', 20)
   end subroutine

   subroutine make_mesh(s, context, ranks, mesh)
      type(solver), intent(in) :: s
      type(graft_context), intent(in) :: context
      type(graft_ranks), intent(in) :: ranks
      type(graft_mesh), intent(inout) :: mesh

      call mesh%coordinates(s%x)
      call mesh%ids(s%id)
      call mesh%owners(s%owner)
      call mesh%cells(GRAFT_CELL_TRIANGLE, s%cell(:, 1:s%n_cells))
      call mesh%create(context, GRAFT_MESH_GHOSTS, ranks)
   end subroutine

   ! The id of a source of the mesh. The nodes of a rank have consecutive ids.
   integer(int64) function id_of(s, view, source)
      type(solver), intent(in) :: s
      type(graft_mesh_view), intent(in) :: view
      integer(int32), intent(in) :: source
      integer :: k, q

      k = source - size(view%id)
      if (k < 0) then
         id_of = view%id(source + 1)
         return
      end if
      q = 0
      do while (k >= view%halo_start(q + 2))
         q = q + 1
      end do
      id_of = int(s%side * q / s%n_ranks, int64) * s%side + view%halo_node(k + 1)
   end function

   ! Make a filter, by which a node keeps 90 % of its value and gets 10 % of the mean of its neighbours. On the boundary
   ! it is the identity.
   subroutine make_filter(s, context, ranks, mesh, filter)
      type(solver), intent(in) :: s
      type(graft_context), intent(in) :: context
      type(graft_ranks), intent(in) :: ranks
      type(graft_mesh), intent(in) :: mesh
      type(graft_plan), intent(inout) :: filter
      type(graft_graph) :: graph
      type(graft_mesh_view) :: view
      integer(int64), allocatable :: row_ptr(:), columns(:)
      real(real64), allocatable :: values(:)
      integer(int64) :: put, e
      real(real64) :: share
      integer :: i, n

      call mesh%view(view)
      n = size(view%id)
      allocate (row_ptr(n + 1), columns(n + size(view%source)), values(n + size(view%source)))
      put = 0
      row_ptr(1) = 0
      do i = 1, n
         share = merge(0.1_real64, 0._real64, s%is_free(view%row_of(i) + 1))
         put = put + 1
         columns(put) = view%id(i)
         values(put) = 1 - share
         do e = view%row_ptr(i) + 1, view%row_ptr(i + 1)
            if (share == 0) exit
            put = put + 1
            columns(put) = id_of(s, view, view%source(e))
            values(put) = share / (view%row_ptr(i + 1) - view%row_ptr(i))
         end do
         row_ptr(i + 1) = put
      end do
      graph%index_base = 0
      call graph%rows(row_ptr, columns(1:put))
      call graph%values(values(1:put))
      call graph%owners(spread(s%rank, 1, n))
      call graph%create(context, s%side * s%side, s%first * s%side, ranks)
      call filter%create(graph)
   end subroutine

   ! Make a network from u to its change in a step. Its constant inputs are the velocity and the boundary of the nodes.
   subroutine make_network(s, mesh, network)
      type(solver), intent(in) :: s
      type(graft_mesh), intent(in) :: mesh
      type(graft_network), intent(inout) :: network
      real(real64) :: constant(3, s%n_nodes)

      constant(1:2, :) = s%velocity
      constant(3, :) = merge(1._real64, 0._real64, s%is_free)
      call network%constant(constant)
      call network%is_free(s%is_free)
      call network%create(mesh, 1, 1, GRAFT_PREDICTS_CHANGE)
   end subroutine

   ! Make one step of the solver, and then apply the filter to own nodes.
   subroutine advance(s, filter, u)
      type(solver), intent(inout) :: s
      type(graft_plan), intent(inout) :: filter
      real(real64), intent(inout), target, contiguous :: u(:)
      real(real64), target :: smooth(s%own_end - s%own_begin + 1)

      call s%step(u)
      call filter%begin(u(s%own_begin:s%own_end), smooth)
      call filter%end()
      u(s%own_begin:s%own_end) = smooth
      call s%exchange(u)
   end subroutine

   ! Train while the solver runs several times, each time with another initial state.
   subroutine train(s, filter, stream)
      type(solver), intent(inout) :: s
      type(graft_plan), intent(inout) :: filter
      type(graft_stream), intent(inout) :: stream
      type(graft_stream_status) :: status
      real(real64) :: u(s%n_nodes)
      integer :: step

      do step = 0, steps - 1
         if (modulo(step, run_length) == 0) call s%start(step / run_length, u)
         call stream%offer(u, step * solver_step, modulo(step, run_length) == 0)
         call stream%step(1000._real64, trainings, status)
         call advance(s, filter, u)
      end do
      if (status%held_out > 0) call stream%validate(status)
      if (s%rank > 0) return
      write (*, '(i0,a,es9.2)', advance='no') status%steps, ' training steps, loss ', status%loss
      if (status%held_out > 0) write (*, '(a,es9.2)', advance='no') ', of held-out pairs ', status%validation
      print '(a)', ''
   end subroutine

   ! Solver and surrogate start with the same state of a new run. Their distance is the error of the surrogate.
   subroutine compare(s, filter, network)
      type(solver), intent(inout) :: s
      type(graft_plan), intent(inout) :: filter
      type(graft_network), intent(inout) :: network
      real(real64) :: u(s%n_nodes), begin(s%n_nodes), surrogate(s%n_nodes), error, change
      integer :: step

      call s%start(steps, begin)
      u = begin
      surrogate = begin
      call write_files(s, u, surrogate, 0)
      if (s%rank == 0) print '(a8,2a13)', 'steps', 'surrogate', 'no change'
      do step = 1, after
         call network%begin(surrogate)
         call advance(s, filter, u) ! computes while the first messages are in flight
         call network%end(surrogate)
         call s%exchange(surrogate)
         if (modulo(step, every) == 0) call write_files(s, u, surrogate, step)
         if (step /= 1 .and. step /= middle .and. step /= after) cycle
         error = s%distance(surrogate, u)
         change = s%distance(begin, u)
         if (s%rank == 0) print '(i8,2es13.4)', step, error, change
      end do
   end subroutine

   ! Write files with ../vtu.c, whose cells count nodes from 0.
   subroutine write_files(s, u, surrogate, step)
      type(solver), intent(in), target :: s
      real(real64), intent(in), target, contiguous :: u(:), surrogate(:)
      integer, intent(in) :: step
      character(kind=c_char, len=:), allocatable, target :: path, solver_name, surrogate_name
      integer(c_int32_t), target :: cell(3, s%n_own_cells)
      integer(c_int) :: status

      if (folder == '') return
      path = trim(folder)//c_null_char
      solver_name = 'solver'//c_null_char
      surrogate_name = 'surrogate'//c_null_char
      cell = s%cell(:, 1:s%n_own_cells) - 1
      status = vtu_write(vtu(c_loc(path), s%rank, s%n_ranks, int(s%n_nodes, c_int64_t), &
                             int(s%n_own_cells, c_int64_t), c_loc(s%x), c_loc(cell), &
                             [c_loc(solver_name), c_loc(surrogate_name)], [c_loc(u), c_loc(surrogate)]), step)
      if (status == 0 .and. s%rank == 0) status = vtu_write_times(path, every, step, solver_step)
      if (status == 0) return
      write (error_unit, '(2a)') 'heat: cannot write to ', trim(folder)
      call MPI_Abort(comm, 1, ierr)
   end subroutine
end program
