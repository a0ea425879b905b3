! A host in Fortran over ranks of MPI, with an integer communicator. It sums on a ring and trains a network on a rod.
! Run by test_fortran_hosts.py: fortran_ranks LIBRARY [fail]. With `fail` it makes a mistake without asking for a
! status.
program ranks_host
   use graft
   use, intrinsic :: iso_fortran_env
   use, intrinsic :: ieee_arithmetic
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
   call learn_on_rod()
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
      call ranks%destroy() ! the graph and the plan still use the ranks
      call plan%begin(x, y)
      call plan%end()
      do v = 1, each
         good = good .and. y(v) == modulo(first + v - 3, n) + 1 + modulo(first + v - 1, n) + 1
      end do
      call report(good, 'the sums are right')
   end subroutine

   ! Print a line if all ranks agree.
   subroutine report(good, line)
      logical, intent(in) :: good
      character(len=*), intent(in) :: line
      logical :: all_good

      call MPI_Allreduce(good, all_good, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
      if (rank == 0 .and. all_good) print '(a)', line
   end subroutine

   ! Points of a rod between ghosts or ends. A network learns that a state shrinks, with arrays in both layouts.
   subroutine learn_on_rod()
      type(graft_context) :: context
      type(graft_ranks) :: ranks
      type(graft_mesh) :: mesh
      type(graft_mesh_info) :: info
      type(graft_network) :: network
      type(graft_network_step) :: step
      integer(int64) :: id(0:each + 1)
      real(real64) :: x(1, 0:each + 1), u(2, 0:each + 1), v(0:each + 1, 2)
      integer :: n, i
      logical :: good

      call context%open(path)
      call context%set('threads', 1)
      call context%set('hidden', 8)
      call context%set('layers', 1)
      call ranks%open(context, MPI_COMM_WORLD)
      n = each * ranks%size()
      id = [(int(each * rank + i, int64), i=0, each + 1)]
      x(1, :) = real(id, real64) / (n + 1)
      call describe(mesh, x, id, n)
      if (rank == ranks%size() - 1) call mesh%ids(-id)
      call mesh%create(context, GRAFT_MESH_GHOSTS, ranks, ierr)
      good = ierr == GRAFT_ERR_FORMAT .and. index(graft_message(), '-') > 0
      call describe(mesh, x, id, n)
      call mesh%create(context, GRAFT_MESH_GHOSTS, ranks)
      call mesh%info(info, -1)
      good = good .and. info%n_nodes == n + 2 .and. info%n_edges == 2 * (n + 1)
      call report(good, 'the mesh is right')

      call network%create(mesh, 2, 2, GRAFT_PREDICTS_CHANGE)
      do i = 1, 6
         u(1, :) = 0.9_real64**i * x(1, :)
         u(2, :) = 0.9_real64**i * (1 - x(1, :))
         v = 0.9_real64 * transpose(u)
         if (modulo(i, 2) == 0) call network%train(u, 0.9_real64 * u, step)
         if (modulo(i, 2) == 1) call network%train(v / 0.9_real64, v, step, graft_node_component)
      end do
      good = step%step == 6 .and. step%loss < 10
      if (rank == 0) v(2, 1) = ieee_value(v(2, 1), ieee_quiet_nan)
      call network%train(v, v, step, graft_node_component, ierr)
      good = good .and. ierr == GRAFT_ERR_NONFINITE
      call network%begin(u(:, 1:), ierr)
      good = good .and. (ierr == GRAFT_OK .eqv. ranks%size() > 1)
      if (ierr == GRAFT_OK) call network%end(u, ierr)
      good = good .and. ierr == GRAFT_ERR_ARG
      v = transpose(u)
      call network%begin(u)
      call network%end(u)
      call network%begin(v, graft_node_component)
      call network%end(v, graft_node_component)
      good = good .and. all(v(1:each, :) == transpose(u(:, 1:each))) .and. all(abs(u(:, 1:each)) < 2)
      v = transpose(u)
      call network%rollout(u, 3, keep_first)
      call network%rollout(v, 3, graft_node_component)
      good = good .and. all(v(1:each, :) == transpose(u(:, 1:each)))
      call network%rollout(v, 3, graft_node_component, stop_at_two, ierr)
      good = good .and. ierr == GRAFT_ERR_CANCELLED
      call network%load('/nowhere/network.safetensors', ierr)
      good = good .and. ierr == GRAFT_ERR_NOT_FOUND .and. index(graft_message(), '/nowhere') > 0
      call report(good, 'the network learns')
      call learn_on_line(network, x(1, :))
   end subroutine

   ! The same network learns online.
   subroutine learn_on_line(network, x)
      type(graft_network), intent(inout) :: network
      real(real64), intent(in) :: x(:)
      type(graft_stream) :: stream
      type(graft_stream_status) :: status
      real(real64) :: u(2, size(x)), v(size(x), 2)
      integer :: i
      logical :: good

      call stream%create(network)
      do i = 1, 30
         u(1, :) = 0.9_real64**i * x
         u(2, :) = 0.9_real64**i * (1 - x)
         v = transpose(u)
         if (modulo(i, 2) == 0) call stream%offer(u, real(i, real64), i == 20)
         if (modulo(i, 2) == 1) call stream%offer(v, real(i, real64), graft_node_component)
         call stream%step(1000._real64, 1, status)
      end do
      good = status%offered == 30 .and. status%pairs == 28 .and. status%steps > 20 .and. status%loss < 10
      good = good .and. status%reason == GRAFT_STREAM_STEPS_DONE
      call stream%step(0._real64, 0, status)
      good = good .and. status%steps_now == 0 .and. ieee_is_nan(status%loss)
      if (rank == 0) v(2, 1) = ieee_value(v(2, 1), ieee_quiet_nan)
      call stream%offer(v, 31._real64, graft_node_component, ierr=ierr)
      good = good .and. ierr == GRAFT_ERR_NONFINITE
      call stream%offer(v(2:, :), 31._real64, graft_node_component, ierr=ierr)
      good = good .and. ierr == GRAFT_ERR_ARG
      call stream%offer_pair(transpose(u), transpose(u), 31._real64, graft_node_component)
      call stream%status(status)
      call report(good .and. status%pairs == 29, 'the network learns online')
   end subroutine

   integer function keep_first(step)
      integer, intent(in) :: step

      keep_first = merge(0, 1, step >= 1 .and. step <= 3)
   end function

   integer function stop_at_two(step)
      integer, intent(in) :: step

      stop_at_two = merge(1, 0, step == 2)
   end function

   subroutine describe(mesh, x, id, n)
      type(graft_mesh), intent(inout) :: mesh
      real(real64), intent(in) :: x(:, :)
      integer(int64), intent(in) :: id(:)
      integer, intent(in) :: n
      integer :: i

      call mesh%coordinates(x)
      call mesh%ids(id)
      call mesh%owners(int(max(1_int64, min(id, int(n, int64))) - 1) / each)
      call mesh%cells(GRAFT_CELL_LINE, reshape([(i, i + 1, i=1, each + 1)], [2, each + 1]))
   end subroutine
end program
