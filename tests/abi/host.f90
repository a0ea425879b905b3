! A host in Fortran: it sums over the neighbours of a ring, and makes a mistake.
! SPDX-License-Identifier: Apache-2.0
program host
   use graft
   implicit none
   integer(c_int64_t), parameter :: n = 6, width = 3
   integer(c_int64_t), target :: row_ptr(n + 1)
   integer(c_int32_t), target :: col_idx(2 * n)
   real(c_float), target :: x(width, n), y(width, n) ! columns of Fortran are rows of C
   character(len=4096) :: path
   character(len=:), allocatable :: reason
   type(c_ptr) :: matrix
   type(graft_api), pointer :: api
   type(graft_mxm), pointer :: mxm
   type(graft_error) :: error
   type(graft_csr) :: csr
   type(graft_dense), target :: input, output
   type(graft_mxm_args) :: args
   procedure(close_call), pointer :: close_library
   procedure(interface_call), pointer :: get_interface
   procedure(create_call), pointer :: create
   procedure(run_call), pointer :: run
   procedure(destroy_call), pointer :: destroy
   integer(c_int64_t) :: v

   call get_command_argument(1, path)
   api => open_graft(path, reason)
   if (.not. associated(api)) then
      print '(a)', reason
      stop 1
   end if
   call c_f_procpointer(api%close, close_library)
   call c_f_procpointer(api%get_interface, get_interface)
   call c_f_pointer(get_interface(api%context, 'graft.mxm/1'//c_null_char), mxm)
   call c_f_procpointer(mxm%matrix_create, create)
   call c_f_procpointer(mxm%run, run)
   call c_f_procpointer(mxm%matrix_destroy, destroy)

   row_ptr = [(2 * v, v = 0, n)]
   do v = 0, n - 1
      col_idx(2 * v + 1) = int(modulo(v - 1, n))
      col_idx(2 * v + 2) = int(modulo(v + 1, n))
      x(:, v + 1) = [real(v), real(v * v), 1.0]
   end do
   csr%n_rows = n
   csr%n_cols = n
   csr%row_ptr = c_loc(row_ptr)
   csr%col_idx = c_loc(col_idx)
   input%n_rows = n
   input%n_cols = width
   input%stride = width
   input%data = c_loc(x)
   output = input
   output%data = c_loc(y)

   matrix = c_null_ptr
   if (create(api%context, csr, 0, matrix, error) < 0) stop 'no matrix'
   args%a = matrix
   args%b = c_loc(input)
   args%c = c_loc(output)
   if (run(api%context, args, error) < 0) stop 'no product'
   do v = 1, n
      if (any(y(:, v) /= x(:, modulo(v - 2, n) + 1) + x(:, modulo(v, n) + 1))) stop 'wrong sums'
   end do
   call destroy(api%context, matrix)

   col_idx(5) = -7
   if (create(api%context, csr, 0, matrix, error) /= -6) stop 'a column of -7 was taken'
   print '(a)', text_of(error)
   call close_library(api%context)
end program
