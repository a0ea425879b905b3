! Ranks with 0 to 3 nodes, in 1 to 3 dimensions and in both layouts. Each mesh must be right, or refused on all ranks
! within a second. The same holds for states with as many components as dimensions. Run by test_fortran_hosts.py:
! fortran_layouts LIBRARY.
program layouts
   use graft
   use, intrinsic :: iso_fortran_env
   implicit none
   include 'mpif.h'
   character(len=4096) :: path
   type(graft_context) :: context
   type(graft_ranks) :: ranks
   integer(int32) :: rank, ignored
   integer :: ierr, dim, way, n
   logical :: is_right = .true., is_refused = .true., are_states_right = .true., &
              are_wrong_refused = .true.
   integer :: meshes = 0, refusals = 0

   call get_command_argument(1, path)
   call MPI_Init(ignored)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ignored)
   call context%open(path)
   call context%set('threads', 1)
   call context%set('hidden', 4)
   call context%set('layers', 1)
   call ranks%open(context, MPI_COMM_WORLD)
   do dim = 1, 3
      do way = 0, 7 ! for way <= 3 all ranks have the same number of nodes, otherwise their numbers differ
         n = modulo(way + merge(int(rank), 0, way > 3), 4)
         call test_mesh(dim, n, all_are(n == dim))
      end do
   end do
   if (rank == 0) print '(a,i0,1x,i0)', 'meshes and refusals: ', meshes, refusals
   if (rank == 0 .and. is_right) print '(a)', 'meshes are right in both layouts'
   if (rank == 0 .and. is_refused) print '(a)', 'wrong layouts are refused on all ranks'
   if (rank == 0 .and. are_states_right) print '(a)', 'states are right in both layouts'
   if (rank == 0 .and. are_wrong_refused) print '(a)', 'states in the wrong layout are refused on all ranks'
   call ranks%destroy()
   call context%close()
   call MPI_Finalize(ignored)

contains

   logical function all_are(condition)
      logical, intent(in) :: condition
      integer(int32) :: one, all_ones

      one = merge(1_int32, 0_int32, condition)
      call MPI_Allreduce(one, all_ones, 1_int32, MPI_INTEGER4, MPI_MIN, MPI_COMM_WORLD, ignored)
      all_are = all_ones == 1
   end function

   ! Describe points on a line through the corner of a box. All their coordinates differ, and each rank has its own
   ! piece of the line.
   subroutine describe(mesh, n)
      type(graft_mesh), intent(inout) :: mesh
      integer, intent(in) :: n
      integer :: i

      call mesh%ids([(int(10 * rank + i, int64), i=1, n)])
      call mesh%cells(GRAFT_CELL_LINE, reshape([(i, i + 1, i=1, n - 1)], [2, max(n - 1, 0)]))
   end subroutine

   subroutine test_mesh(dim, n, is_square)
      integer, intent(in) :: dim, n
      logical, intent(in) :: is_square
      type(graft_mesh) :: mesh(3)
      real(real64) :: x(dim, n)
      integer :: status(3), i, d

      x = reshape([((d + 10 * i + 100 * real(rank, real64), d=1, dim), i=1, n)], [dim, n])
      do i = 1, 3
         call describe(mesh(i), n)
         if (i == 1) call mesh(i)%coordinates(x, ierr=ierr)
         if (i == 2) call mesh(i)%coordinates(real(transpose(x), real32), graft_node_component)
         if (i == 3) call mesh(i)%coordinates(transpose(x), graft_component_node, ierr)
         call create(mesh(i), status(i))
         if (i < 3) is_right = is_right .and. all_are(is_mesh(mesh(i), x, status(i)))
      end do
      if (status(1) >= 0) meshes = meshes + 1
      if (is_square) return ! a square array is legal in both layouts
      refusals = refusals + 1
      is_refused = is_refused .and. all_are(status(3) == GRAFT_ERR_ARG .and. len(graft_message()) > 20)
      if (status(1) >= 0 .and. .not. all_are(n == 0)) call test_states(mesh(1), dim, n)
   end subroutine

   ! Create a mesh. The status must be the same on all ranks, and be returned within a second.
   subroutine create(mesh, status)
      type(graft_mesh), intent(inout) :: mesh
      integer, intent(out) :: status
      real(real64) :: begin
      integer(int32) :: mine, least, most

      begin = MPI_Wtime()
      call mesh%create(context, GRAFT_MESH_GHOSTS, ranks, status)
      is_refused = is_refused .and. all_are(MPI_Wtime() - begin < 1)
      mine = int(status, int32)
      call MPI_Allreduce(mine, least, 1_int32, MPI_INTEGER4, MPI_MIN, MPI_COMM_WORLD, ignored)
      call MPI_Allreduce(mine, most, 1_int32, MPI_INTEGER4, MPI_MAX, MPI_COMM_WORLD, ignored)
      is_refused = is_refused .and. least == most
   end subroutine

   logical function is_mesh(mesh, x, status)
      type(graft_mesh), intent(in) :: mesh
      real(real64), intent(in) :: x(:, :)
      integer, intent(in) :: status
      type(graft_mesh_info) :: info
      type(graft_mesh_view) :: view

      is_mesh = status == GRAFT_OK
      if (.not. is_mesh) return
      call mesh%info(info, int(rank))
      call mesh%view(view)
      is_mesh = info%n_nodes == size(x, 2) .and. info%n_edges == 2 * max(size(x, 2) - 1, 0) .and. &
                all(shape(view%position) == shape(x))
      if (is_mesh) is_mesh = all(view%position == x)
   end function

   ! Make inferences of a state in both layouts, where only the layout says which dimension belongs to the nodes.
   subroutine test_states(mesh, n_in, n)
      type(graft_mesh), intent(in) :: mesh
      integer, intent(in) :: n_in, n
      type(graft_network) :: network
      real(real64) :: u(n_in, n), v(n, n_in)
      integer :: i, status

      call network%create(mesh, n_in, n_in, GRAFT_PREDICTS_CHANGE)
      u = reshape([(sin(real(i, real64)), i=1, n * n_in)], [n_in, n])
      v = transpose(u)
      call network%begin(u)
      call network%end(u)
      call network%begin(v, graft_node_component)
      call network%end(v, graft_node_component)
      are_states_right = are_states_right .and. all_are(all(v == transpose(u)))
      v = transpose(u)
      call infer(network, v, status)
      are_wrong_refused = are_wrong_refused .and. all_are(status == GRAFT_ERR_ARG .and. all(v == transpose(u)))
      call network%begin(u)
      call network%end(u, ierr)
      are_wrong_refused = are_wrong_refused .and. all_are(ierr == GRAFT_OK)
   end subroutine

   ! Infer from an array in the wrong layout, which is legal only on ranks where it is square. The result is the status
   ! of begin() or end().
   subroutine infer(network, v, status)
      type(graft_network), intent(inout) :: network
      real(real64), intent(inout) :: v(:, :)
      integer, intent(out) :: status
      real(real64) :: begin

      begin = MPI_Wtime()
      call network%begin(v, status)
      if (status == GRAFT_OK) call network%end(v, status)
      is_refused = is_refused .and. all_are(MPI_Wtime() - begin < 1)
   end subroutine
end program
