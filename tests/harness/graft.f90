! The part of the contract that the hosts in Fortran use, with ISO_C_BINDING and nothing else.
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

   type, bind(c) :: graft_communicator
      integer(c_int32_t) :: size = 32, bytes = 0
      type(c_ptr) :: handle = c_null_ptr
      integer(c_int32_t) :: start = 0, reserved = 0, kind = 0, reserved2 = 0
   end type

   type, bind(c) :: graft_transport
      integer(c_int32_t) :: size = 80, rank = 0, n_ranks = 0, tag_max = 0
      type(c_ptr) :: name = c_null_ptr, self = c_null_ptr
      type(c_funptr) :: send, receive, test, cancel, close, abandon
   end type

   type, bind(c) :: graft_transports
      integer(c_int32_t) :: size, reserved
      type(c_funptr) :: threads, open, join, agree, sum, maximum, gather, broadcast, leave
   end type

   type, bind(c) :: graft_slice
      integer(c_int32_t) :: size = 48, reserved = 0
      integer(c_int64_t) :: n_vertices = 0, first_row = 0
      type(c_ptr) :: rows = c_null_ptr, owner = c_null_ptr, train_mask = c_null_ptr
   end type

   type, bind(c) :: graft_graphs
      integer(c_int32_t) :: size, reserved
      type(c_funptr) :: create, info, owned, redistribute, explain, destroy
   end type

   type, bind(c) :: graft_aggregate_args
      integer(c_int32_t) :: size = 80, semiring = 2, flags = 0, layer = 0
      integer(c_int64_t) :: epoch = 0
      integer(c_int32_t) :: threads = 1, reserved = 0
      type(c_ptr) :: x = c_null_ptr, out = c_null_ptr, row_scale = c_null_ptr, times = c_null_ptr
      type(c_ptr) :: mask = c_null_ptr, epilogue = c_null_ptr
   end type

   type, bind(c) :: graft_aggregate
      integer(c_int32_t) :: size, reserved
      type(c_funptr) :: create, begin, end, info, explain, destroy
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
      integer(c_int32_t) function transport_call(context, module, communicator, transport, error) bind(c)
         import
         type(c_ptr), value :: context
         character(kind=c_char), intent(in) :: module(*)
         type(graft_communicator), intent(in) :: communicator
         type(graft_transport), intent(inout) :: transport
         type(graft_error), intent(inout) :: error
      end function
      integer(c_int32_t) function graph_call(context, transport, slice, graph, error) bind(c)
         import
         type(c_ptr), value :: context
         type(graft_transport), intent(in) :: transport
         type(graft_slice), intent(in) :: slice
         type(c_ptr), intent(inout) :: graph
         type(graft_error), intent(inout) :: error
      end function
      integer(c_int32_t) function plan_call(graph, args, plan, error) bind(c)
         import
         type(c_ptr), value :: graph, args
         type(c_ptr), intent(inout) :: plan
         type(graft_error), intent(inout) :: error
      end function
      integer(c_int32_t) function begin_call(plan, args, error) bind(c)
         import
         type(c_ptr), value :: plan
         type(graft_aggregate_args), intent(in) :: args
         type(graft_error), intent(inout) :: error
      end function
      integer(c_int32_t) function end_call(plan, error) bind(c)
         import
         type(c_ptr), value :: plan
         type(graft_error), intent(inout) :: error
      end function
      subroutine free_call(object) bind(c)
         import
         type(c_ptr), value :: object
      end subroutine
   end interface

contains
   ! Open the library; its calls, or null with a reason.
   function open_graft(path, reason) result(api)
      character(len=*), intent(in) :: path
      character(len=:), allocatable, intent(out) :: reason
      type(graft_api), pointer :: api
      procedure(open_call), pointer :: open_library
      type(c_ptr) :: library, handle
      type(graft_error) :: error

      nullify (api)
      library = dlopen(trim(path)//c_null_char, 2)
      if (.not. c_associated(library)) then
         reason = 'no library'
         return
      end if
      call c_f_procpointer(dlsym(library, 'graft_open'//c_null_char), open_library)
      if (open_library(1, 1, c_null_ptr, handle, error) < 0) then
         reason = text_of(error)
      else
         call c_f_pointer(handle, api)
      end if
   end function

   function text_of(error) result(text)
      type(graft_error), intent(in) :: error
      character(len=:), allocatable :: text
      integer :: i

      text = ''
      do i = 1, size(error%message)
         if (error%message(i) == c_null_char) exit
         text = text//error%message(i)
      end do
   end function
end module
