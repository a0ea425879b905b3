! A host in Fortran in one process: options, products, meshes, networks, and mistakes. Run by test_fortran_hosts.py:
! fortran_host LIBRARY.
! SPDX-License-Identifier: Apache-2.0
module checks
   use graft
   implicit none
   integer :: count = 0

contains

   subroutine ok(condition, what)
      logical, intent(in) :: condition
      character(len=*), intent(in) :: what

      count = count + 1
      if (.not. condition) write (*, '(a)', advance='no') 'not '
      write (*, '(a,i0,2a)') 'ok ', count, ' - ', what
      if (.not. condition) write (*, '(2a)') '# ', graft_message()
   end subroutine

   ! Check that a mistake gives this status and a message with these words.
   subroutine refused(ierr, status, words, what)
      integer, intent(in) :: ierr, status
      character(len=*), intent(in) :: words, what

      call ok(ierr == status .and. index(graft_message(), words) > 0, what)
   end subroutine
end module

program host
   use checks
   use graft
   use, intrinsic :: iso_fortran_env
   implicit none
   character(len=4096) :: path

   call get_command_argument(1, path)
   call test_context()
   call test_plans()
   call test_meshes()
   print '(a,i0)', '1..', count

contains

   subroutine test_context()
      type(graft_context) :: context
      integer :: ierr

      call context%set('threads', 2, ierr)
      call refused(ierr, GRAFT_ERR_STATE, 'not open', 'a context that is not open is refused')
      call context%open('/nowhere/libgraft.so', ierr)
      call refused(ierr, GRAFT_ERR_NOT_FOUND, '/nowhere/libgraft.so', 'a library that is not there is told')
      call context%open(path, ierr)
      call ok(ierr == GRAFT_OK, 'the library opens')
      call context%set('halo.timeouts', 3, ierr)
      call refused(ierr, GRAFT_ERR_OPTION, 'halo.timeout', 'the nearest option is told')
      call context%set('lr', 0.25_real64, ierr)
      call ok(ierr == GRAFT_OK, 'options are set to numbers')
      call context%set('lr', 0.25, ierr)
      call context%set('model', 'sage', ierr)
      call ok(ierr == GRAFT_OK, 'and to words')
   end subroutine

   ! Make a ring of n vertices whose entries are 1 and 2, with row pointers of both integer kinds.
   subroutine ring(n, row_ptr, columns, values)
      integer, intent(in) :: n
      integer(int64), intent(out) :: row_ptr(:)
      integer(int32), intent(out) :: columns(:)
      real(real64), intent(out) :: values(:)
      integer :: v

      do v = 1, n
         row_ptr(v) = 2 * v - 1
         columns(2 * v - 1) = modulo(v - 2, n) + 1
         columns(2 * v) = modulo(v, n) + 1
         values(2 * v - 1) = 1
         values(2 * v) = 2
      end do
      row_ptr(n + 1) = 2 * n + 1
   end subroutine

   subroutine test_plans()
      integer, parameter :: n = 9
      type(graft_context) :: context
      type(graft_graph) :: graph
      type(graft_plan) :: plan
      integer(int64) :: row_ptr(n + 1)
      integer(int64), allocatable :: vertices(:)
      integer(int32) :: columns(2 * n)
      real(real64) :: values(2 * n)
      real(real64), target :: x(3, n), y(3, n), expected(3, n), wide(5, 2 * n), flat(n), product(n)
      real(real32), target :: single(n)
      integer :: v, ierr

      call context%open(path)
      call ring(n, row_ptr, columns, values)
      call plan%create(graph, ierr)
      call refused(ierr, GRAFT_ERR_STATE, 'not been created', 'a plan of no graph is refused')
      call graph%rows(row_ptr, int(columns, int64))
      call graph%values(values(2:))
      call graph%create(context, n, 1, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'values: 17 elements, expected 18', 'so are values of another number')
      call graph%values(values)
      call graph%owners(spread(0, 1, n - 1))
      call graph%create(context, n, 1, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'owners: 8 elements, expected 9', 'and owners of another number')
      call graph%owners(spread(1, 1, n))
      call graph%create(context, n, 1, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'owner of vertex 0 is 1', 'and owners that are no ranks')
      call graph%rows(int(row_ptr, int32), columns)
      call graph%values(values)
      call graph%owners(spread(0, 1, n))
      call graph%create(context, n, 1, ierr=ierr)
      call ok(ierr == GRAFT_OK, 'a graph is made of 32-bit integers')
      call graph%owned(vertices)
      call ok(all(vertices == [(int(v, int64), v=1, n)]), 'which has its vertices')
      call plan%create(graph)
      call graph%destroy()

      call random_number(x)
      do v = 1, n
         expected(:, v) = x(:, modulo(v - 2, n) + 1) + 2 * x(:, modulo(v, n) + 1)
      end do
      call plan%begin(x, y)
      call plan%end(ierr)
      call ok(ierr == GRAFT_OK .and. maxval(abs(y - expected)) < 1e-14_real64, 'x(component, vertex) is multiplied')
      wide = -1
      wide(1:3, ::2) = x
      y = 0
      call plan%begin(wide(1:3, ::2), y)
      call plan%end()
      call ok(maxval(abs(y - expected)) < 1e-14_real64, 'a section is read')
      wide = -1
      call plan%begin(x, wide(2:4, 2::2))
      call plan%end()
      call ok(maxval(abs(wide(2:4, 2::2) - expected)) < 1e-14_real64 .and. all(wide(:, ::2) < 0) .and. &
              all(wide(1, :) < 0) .and. all(wide(5, :) < 0), 'a section is written, and nothing beside it')
      flat = x(1, :)
      call plan%begin(flat, product, .true.)
      call plan%end()
      do v = 1, n
         expected(1, v) = 2 * flat(modulo(v - 2, n) + 1) + flat(modulo(v, n) + 1)
      end do
      call ok(maxval(abs(product - expected(1, :))) < 1e-14_real64, 'x(vertex) is multiplied by the transpose')
      call plan%begin(transpose(x), wide, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, '', 'an array of another shape is refused')
      single = 1
      call plan%begin(single, single, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, '', 'so is one of another type')
      call plan%end(ierr)
      call refused(ierr, GRAFT_ERR_STATE, '', 'and an end without a beginning')
   end subroutine

   ! Check a mesh of four triangles around the middle of a square.
   subroutine test_meshes()
      real(real64), parameter :: corners(2, 5) = reshape([0, 0, 2, 0, 2, 2, 0, 2, 1, 1], [2, 5])
      integer, parameter :: triangles(3, 4) = reshape([1, 2, 5, 2, 3, 5, 3, 4, 5, 4, 1, 5], [3, 4])
      type(graft_context) :: context
      type(graft_mesh) :: mesh
      type(graft_mesh_info) :: info
      type(graft_mesh_view) :: view
      integer :: broken(3, 4), way, ierr
      logical :: good

      call context%open(path)
      call mesh%create(context, GRAFT_MESH_GHOSTS, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'no coordinates', 'a mesh without coordinates is refused')
      call mesh%view(view, ierr)
      call refused(ierr, GRAFT_ERR_STATE, 'not been created', 'and has nothing to view')
      call ok(.not. associated(view%id), 'of which no array is there')
      good = .true.
      do way = 1, 4
         if (way == 1) call mesh%coordinates(corners)
         if (way == 2) call mesh%coordinates(real(corners, real32))
         if (way == 3) call mesh%coordinates(transpose(corners), graft_node_component)
         if (way == 4) call mesh%coordinates(corners)
         if (way < 3) call mesh%ids([10_int64**13, 7_int64, 9_int64, 0_int64, 5_int64])
         if (way == 3) call mesh%ids([5, 4, 3, 2, 1])
         if (way == 1) call mesh%cells(GRAFT_CELL_TRIANGLE, triangles)
         if (way == 2) call mesh%cells(GRAFT_CELL_TRIANGLE, int(triangles, int64))
         if (way == 3) call mesh%cells([5, 5, 5, 5], reshape(triangles, [12]))
         if (way == 4) call mesh%edges([1, 2, 2, 3, 3, 4, 4, 1, 5, 1, 5, 2, 5, 3, 5, 4], &
                                       [2, 1, 3, 2, 4, 3, 1, 4, 1, 5, 2, 5, 3, 5, 4, 5])
         call mesh%create(context, GRAFT_MESH_GHOSTS, ierr=ierr)
         call ok(ierr == GRAFT_OK, 'a mesh is made')
         if (ierr == GRAFT_OK) call mesh%info(info, -1)
         good = good .and. info%n_nodes == 5 .and. info%n_edges == 16 .and. abs(info%longest - 2) < 1e-12_real64
      end do
      call ok(good, 'both layouts, both kinds, cells and edges give the same mesh')
      call mesh%view(view, ierr)
      call ok(ierr == GRAFT_OK .and. all(view%node_of == [0, 1, 2, 3, 4]) .and. all(view%row_of == view%node_of) .and. &
              all(view%row_ptr == [0, 3, 6, 9, 12, 16]) .and. all(view%source(13:) == [0, 1, 2, 3]) .and. &
              all(abs(view%position - corners) < 1e-12_real64) .and. all(view%halo_start == 0) .and. &
              size(view%halo_start) == 2 .and. size(view%halo_node) == 0 .and. &
              .not. associated(view%node_weight) .and. .not. associated(view%edge_ranks), 'and its arrays are right')
      broken = triangles
      broken(2, 3) = 99
      call mesh%coordinates(corners)
      call mesh%cells(GRAFT_CELL_TRIANGLE, broken)
      call mesh%create(context, GRAFT_MESH_GHOSTS, ierr=ierr)
      call refused(ierr, GRAFT_ERR_FORMAT, '99', 'a cell with a node that is not there is refused')
      call mesh%info(info, -1, ierr)
      call ok(ierr == GRAFT_OK .and. info%n_edges == 16, 'and the mesh is as before')
      call mesh%coordinates(corners)
      call mesh%ids([1, 2, 3])
      call mesh%create(context, GRAFT_MESH_GHOSTS, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'ids: 3 elements, expected 5', 'so are too few ids')
      call mesh%ids([1, 2, 3, 4, 5])
      call mesh%cells([5, 5, 9, 5], reshape(triangles, [12]))
      call mesh%create(context, GRAFT_MESH_GHOSTS, ierr=ierr)
      call refused(ierr, GRAFT_ERR_ARG, '12 elements, expected 13', 'and cells with too few nodes for their types')
      call mesh%period(4, 1.0_real64, ierr)
      call refused(ierr, GRAFT_ERR_ARG, 'axis', 'and a period in a fourth direction')
   end subroutine
end program
