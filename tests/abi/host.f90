! A host in Fortran, with ISO_C_BINDING and nothing else: it sums over the neighbours of a ring, and makes a mistake.
! SPDX-License-Identifier: Apache-2.0
module graft
   use, intrinsic :: iso_c_binding
   implicit none

   type, bind(c) :: graft_error
      integer(c_int32_t) :: size = 512, code = 0, native_code = 0, rank = 0
      character(kind=c_char) :: where(48), message(448)
   end type

   type, bind(c) :: graft_api
      integer(c_int32_t) :: size, abi
      type(c_ptr) :: version, context
      type(c_funptr) :: close, get_interface, set, option_info, load_module, module_info
   end type

   type, bind(c) :: graft_csr
      integer(c_int32_t) :: size = 56, index_type = 3, value_type = 0, reserved = 0
      integer(c_int64_t) :: n_rows = 0, n_cols = 0
      type(c_ptr) :: row_ptr = c_null_ptr, col_idx = c_null_ptr, values = c_null_ptr
   end type

   type, bind(c) :: graft_dense
      integer(c_int32_t) :: size = 40, dtype = 1
      integer(c_int64_t) :: n_rows = 0, n_cols = 0, stride = 0
      type(c_ptr) :: data = c_null_ptr
   end type

   ! The fields that a product needs; the library takes those that come after them as zero.
   type, bind(c) :: graft_mxm_args
      integer(c_int32_t) :: size = 40, semiring = 2, flags = 0, threads = 1
      type(c_ptr) :: a = c_null_ptr, b = c_null_ptr, c = c_null_ptr
   end type

   type, bind(c) :: graft_mxm
      integer(c_int32_t) :: size, reserved
      type(c_funptr) :: matrix_create, matrix_transpose, matrix_bytes, matrix_destroy, run
   end type

   interface
      type(c_ptr) function dlopen(path, flags) bind(c)
         import
         character(kind=c_char), intent(in) :: path(*)
         integer(c_int), value :: flags
      end function
      type(c_funptr) function dlsym(library, name) bind(c)
         import
         type(c_ptr), value :: library
         character(kind=c_char), intent(in) :: name(*)
      end function
   end interface

   abstract interface
      integer(c_int32_t) function open_call(abi_min, abi_max, host, api, error) bind(c)
         import
         integer(c_int32_t), value :: abi_min, abi_max
         type(c_ptr), value :: host
         type(c_ptr), intent(out) :: api
         type(graft_error), intent(inout) :: error
      end function
      subroutine close_call(context) bind(c)
         import
         type(c_ptr), value :: context
      end subroutine
      type(c_ptr) function interface_call(context, id) bind(c)
         import
         type(c_ptr), value :: context
         character(kind=c_char), intent(in) :: id(*)
      end function
      integer(c_int32_t) function create_call(context, csr, trust, matrix, error) bind(c)
         import
         type(c_ptr), value :: context
         type(graft_csr), intent(in) :: csr
         integer(c_int32_t), value :: trust
         type(c_ptr), intent(inout) :: matrix
         type(graft_error), intent(inout) :: error
      end function
      integer(c_int32_t) function run_call(context, args, error) bind(c)
         import
         type(c_ptr), value :: context
         type(graft_mxm_args), intent(in) :: args
         type(graft_error), intent(inout) :: error
      end function
      subroutine destroy_call(context, matrix) bind(c)
         import
         type(c_ptr), value :: context, matrix
      end subroutine
   end interface
end module

program host
   use graft
   implicit none
   integer(c_int64_t), parameter :: n = 6, width = 3
   integer(c_int64_t), target :: row_ptr(n + 1)
   integer(c_int32_t), target :: col_idx(2 * n)
   real(c_float), target :: x(width, n), y(width, n) ! columns of Fortran are rows of C
   character(len=4096) :: path
   type(c_ptr) :: library, handle, matrix
   type(graft_api), pointer :: api
   type(graft_mxm), pointer :: mxm
   type(graft_error) :: error
   type(graft_csr) :: csr
   type(graft_dense), target :: input, output
   type(graft_mxm_args) :: args
   procedure(open_call), pointer :: open_library
   procedure(close_call), pointer :: close_library
   procedure(interface_call), pointer :: get_interface
   procedure(create_call), pointer :: create
   procedure(run_call), pointer :: run
   procedure(destroy_call), pointer :: destroy
   integer(c_int64_t) :: v

   call get_command_argument(1, path)
   library = dlopen(trim(path)//c_null_char, 2)
   if (.not. c_associated(library)) stop 'no library'
   call c_f_procpointer(dlsym(library, 'graft_open'//c_null_char), open_library)
   if (open_library(1, 1, c_null_ptr, handle, error) < 0) stop 'not opened'
   call c_f_pointer(handle, api)
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
   print '(448a)', error%message(1:index_of_end(error%message))
   call close_library(api%context)

contains
   integer function index_of_end(text)
      character(kind=c_char), intent(in) :: text(:)
      index_of_end = 0
      do while (text(index_of_end + 1) /= c_null_char)
         index_of_end = index_of_end + 1
      end do
   end function
end program
