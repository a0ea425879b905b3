! A host in Fortran with MPI: ranks sum over the neighbours of a ring through an integer communicator, whose ranks are in
! another order than those of MPI_COMM_WORLD; and it makes a mistake.
! SPDX-License-Identifier: Apache-2.0
program host
   use graft
   use mpi
   implicit none
   integer(c_int64_t), parameter :: n = 5, width = 3
   integer(c_int64_t), target :: row_ptr(n + 1)
   integer(c_int32_t), target :: col_idx(2 * n)
   real(c_float), target :: x(width, n), y(width, n) ! columns of Fortran are rows of C
   integer(c_int), target :: comm
   integer :: rank, ranks, ierr
   integer(c_int64_t) :: v, first, total
   character(len=4096) :: path
   character(len=:), allocatable :: reason
   type(graft_api), pointer :: api
   type(graft_transports), pointer :: transports
   type(graft_graphs), pointer :: graphs
   type(graft_aggregate), pointer :: aggregate
   type(graft_error) :: error
   type(graft_communicator) :: communicator
   type(graft_transport) :: transport
   type(graft_csr), target :: rows
   type(graft_slice) :: slice
   type(graft_dense), target :: input, output
   type(graft_aggregate_args) :: args
   type(c_ptr) :: graph, plan
   procedure(interface_call), pointer :: get_interface
   procedure(transport_call), pointer :: open_transport
   procedure(graph_call), pointer :: create_graph
   procedure(plan_call), pointer :: create_plan
   procedure(begin_call), pointer :: begin_pass
   procedure(end_call), pointer :: end_pass
   procedure(free_call), pointer :: destroy_graph, destroy_plan, close_transport
   procedure(close_call), pointer :: close_library

   call MPI_Init(ierr)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
   call MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, comm, ierr)
   call MPI_Comm_rank(comm, rank, ierr)

   call get_command_argument(1, path)
   api => open_graft(path, reason)
   if (.not. associated(api)) call fail(reason)
   call c_f_procpointer(api%close, close_library)
   call c_f_procpointer(api%get_interface, get_interface)
   call c_f_pointer(get_interface(api%context, 'graft.transport/1'//c_null_char), transports)
   call c_f_pointer(get_interface(api%context, 'graft.graph/1'//c_null_char), graphs)
   call c_f_pointer(get_interface(api%context, 'graft.aggregate/1'//c_null_char), aggregate)
   call c_f_procpointer(transports%open, open_transport)
   call c_f_procpointer(graphs%create, create_graph)
   call c_f_procpointer(graphs%destroy, destroy_graph)
   call c_f_procpointer(aggregate%create, create_plan)
   call c_f_procpointer(aggregate%begin, begin_pass)
   call c_f_procpointer(aggregate%end, end_pass)
   call c_f_procpointer(aggregate%destroy, destroy_plan)

   ! The mistake: the value of the integer communicator where its address is expected.
   communicator%handle = transfer(int(comm, c_intptr_t), c_null_ptr)
   communicator%bytes = int(c_sizeof(comm))
   if (open_transport(api%context, 'auto'//c_null_char, communicator, transport, error) >= 0) &
      call fail('a communicator by value was taken')
   if (rank == 0) print '(a)', text_of(error)

   communicator%handle = c_loc(comm)
   communicator%kind = 1
   if (open_transport(api%context, 'auto'//c_null_char, communicator, transport, error) < 0) call fail(text_of(error))
   if (transport%rank /= rank .or. transport%n_ranks /= ranks) call fail('the ranks are not those of the communicator')
   call c_f_procpointer(transport%close, close_transport)

   first = rank * n
   total = ranks * n
   row_ptr = [(2 * v, v = 0, n)]
   do v = 0, n - 1
      col_idx(2 * v + 1) = int(modulo(first + v - 1, total))
      col_idx(2 * v + 2) = int(modulo(first + v + 1, total))
      x(:, v + 1) = of_vertex(first + v)
   end do
   rows%n_rows = n
   rows%n_cols = total
   rows%row_ptr = c_loc(row_ptr)
   rows%col_idx = c_loc(col_idx)
   slice%n_vertices = total
   slice%first_row = first
   slice%rows = c_loc(rows)
   graph = c_null_ptr
   if (create_graph(api%context, transport, slice, graph, error) < 0) call fail(text_of(error))
   plan = c_null_ptr
   if (create_plan(graph, c_null_ptr, plan, error) < 0) call fail(text_of(error))

   input%n_rows = n
   input%n_cols = width
   input%stride = width
   input%data = c_loc(x)
   output = input
   output%data = c_loc(y)
   args%x = c_loc(input)
   args%out = c_loc(output)
   if (begin_pass(plan, args, error) < 0) call fail(text_of(error))
   if (end_pass(plan, error) < 0) call fail(text_of(error))
   do v = 1, n
      if (any(y(:, v) /= of_vertex(modulo(first + v - 2, total)) + of_vertex(modulo(first + v, total)))) &
         call fail('wrong sums')
   end do

   call destroy_plan(plan)
   call destroy_graph(graph)
   call close_transport(transport%self)
   call close_library(api%context)
   call MPI_Comm_free(comm, ierr)
   call MPI_Barrier(MPI_COMM_WORLD, ierr)
   if (rank == 0) print '(a)', 'the sums are right'
   call MPI_Finalize(ierr)

contains
   function of_vertex(vertex) result(row)
      integer(c_int64_t), intent(in) :: vertex
      real(c_float) :: row(width)
      row = [real(vertex), real(vertex * vertex), 1.0]
   end function

   subroutine fail(text)
      character(len=*), intent(in) :: text
      print '(a, i0, a)', 'rank ', rank, ': '//text
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
   end subroutine
end program
