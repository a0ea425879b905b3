! Graft in programs in Fortran (2008 or later): one file without C, MPI or a preprocessor, which a program compiles with
! its own compiler and links with -ldl. README.md has an introduction, and the headers in abi/ what each call does.
! Written by generate.py from the headers and from graft.f90.in: change those.
!
!   Errors   Every subroutine has an optional last argument ierr: 0, or a negative status GRAFT_ERR_..., after which
!            objects are as before; graft_message() is the sentence. Without ierr a failure is printed to the error
!            unit, and ends the communicator of the object by MPI_Abort, or the program if it has none.
!   Arrays   real(real32) and real(real64); integer(int32) and integer(int64). Values on nodes are x(component, node),
!            or x(node) for one component; with argument layout=graft_node_component they are x(node, component). Shapes
!            are never guessed. Arrays may be sections with a positive step, and are not copied. Arrays that describe a
!            mesh, a graph, a network or a data set are copied by the calls that take them, and freed by create().
!   Numbers  of nodes, vertices and edges begin with 1 unless index_base is 0. Global ids of nodes are any.
!   Ranks    agree on the status of a call that is collective, also if only the arrays of one rank do not fit.
!   Objects  are freed when they go out of scope, or by destroy(). They are not assigned to each other.
!   Threads  graft_message() is of the last call of the program that failed.
!
! SPDX-License-Identifier: Apache-2.0

! The declarations of the headers in abi/ that module graft uses. A table of functions is an array of slots of eight
! bytes; the first slot has the size of the table. Struct graft_x is type c_x. Its default is zero, except for its size.
module graft_abi
   use, intrinsic :: iso_c_binding
   implicit none
   public

   integer, parameter :: GRAFT_OK = 0, GRAFT_ERR_ARG = -1, GRAFT_ERR_NOMEM = -2, GRAFT_ERR_VERSION = -3, &
      GRAFT_ERR_UNSUPPORTED = -4, GRAFT_ERR_NOT_FOUND = -5, GRAFT_ERR_FORMAT = -6, GRAFT_ERR_IO = -7, &
      GRAFT_ERR_OPTION = -8, GRAFT_ERR_STATE = -9, GRAFT_ERR_FORKED = -10, GRAFT_ERR_MODULE = -11, &
      GRAFT_ERR_PEER = -12, GRAFT_ERR_CANCELLED = -13, GRAFT_ERR_NONFINITE = -14
   integer, parameter :: GRAFT_F32 = 1, GRAFT_F64 = 2, GRAFT_I32 = 3, GRAFT_I64 = 4, GRAFT_U8 = 5, GRAFT_BF16 = 6, &
      GRAFT_F16 = 7
   integer, parameter :: GRAFT_PLUS_TIMES = 1, GRAFT_PLUS_SECOND = 2, GRAFT_MAX_TIMES = 3, GRAFT_MAX_SECOND = 4, &
      GRAFT_MIN_TIMES = 5, GRAFT_MIN_SECOND = 6
   integer, parameter :: GRAFT_MASK_ROWS = 1, GRAFT_MASK_BITS = 2, GRAFT_MASK_BYTES = 3
   integer, parameter :: GRAFT_MASK_STRUCTURE = 1, GRAFT_MASK_COMPLEMENT = 2
   integer, parameter :: GRAFT_LOG_DEBUG = 0, GRAFT_LOG_INFO = 1, GRAFT_LOG_WARNING = 2, GRAFT_LOG_ERROR = 3
   integer, parameter :: GRAFT_HOST_NO_ENVIRONMENT = 1, GRAFT_HOST_STARTS_LIBRARIES = 2
   integer, parameter :: GRAFT_SCOPE_SAME = 0, GRAFT_SCOPE_EACH = 1, GRAFT_SCOPE_ROOT = 2
   integer, parameter :: GRAFT_MPI_C = 0, GRAFT_MPI_FORTRAN = 1
   integer, parameter :: GRAFT_TO_OWNERS = 1, GRAFT_TO_SLICES = 2
   integer, parameter :: GRAFT_MXM_ACCUMULATE = 1, GRAFT_MXM_REPLACE = 2
   integer, parameter :: GRAFT_EPILOGUE_RELU = 1
   integer, parameter :: GRAFT_PLAN_TRANSPOSED = 1
   integer, parameter :: GRAFT_AGGREGATE_TRANSPOSE = 1, GRAFT_AGGREGATE_ACCUMULATE = 2, GRAFT_AGGREGATE_EXACT = 4, &
      GRAFT_AGGREGATE_STATELESS = 8, GRAFT_AGGREGATE_SYNCHRONOUS = 16, GRAFT_AGGREGATE_REPLACE = 32
   integer, parameter :: GRAFT_CODEC_MINMAX = 1, GRAFT_CODEC_ROTATED = 2
   integer, parameter :: GRAFT_ROUND_NEAREST = 1, GRAFT_ROUND_STOCHASTIC = 2
   integer, parameter :: GRAFT_SPLIT_NONE = 0, GRAFT_SPLIT_TRAIN = 1, GRAFT_SPLIT_VALIDATION = 2, GRAFT_SPLIT_TEST = 3
   integer, parameter :: GRAFT_DATASET_SLICE = 1
   integer, parameter :: GRAFT_EDGE_TRANSPOSE = 1
   integer, parameter :: GRAFT_HALO_SUM = 1, GRAFT_HALO_EXACT = 2
   integer, parameter :: GRAFT_WEIGHTS_LAST = 0, GRAFT_WEIGHTS_BEST = 1
   integer, parameter :: GRAFT_UPDATE_FEATURES = 1, GRAFT_UPDATE_LABELS = 2, GRAFT_UPDATE_TARGETS = 4, &
      GRAFT_UPDATE_SPLIT = 8, GRAFT_UPDATE_EDGE_VALUES = 16, GRAFT_UPDATE_EDGE_FEATURES = 32
   integer, parameter :: GRAFT_MODEL_LAST = 0, GRAFT_MODEL_BEST = 1, GRAFT_MODEL_STATE = 2
   integer, parameter :: GRAFT_PASS_FORWARD = 0, GRAFT_PASS_BACKWARD = 1, GRAFT_PASS_EVALUATION = 2
   integer, parameter :: GRAFT_SAMPLE_ALL = 1
   integer, parameter :: GRAFT_MESH_GHOSTS = 1, GRAFT_MESH_SHARED = 2
   integer, parameter :: GRAFT_CELL_LINE = 3, GRAFT_CELL_TRIANGLE = 5, GRAFT_CELL_QUAD = 9, GRAFT_CELL_TETRA = 10, &
      GRAFT_CELL_HEXAHEDRON = 12, GRAFT_CELL_WEDGE = 13, GRAFT_CELL_PYRAMID = 14
   integer, parameter :: GRAFT_PREDICTS_VALUE = 1, GRAFT_PREDICTS_CHANGE = 2
   integer, parameter :: GRAFT_STREAM_FIRST = 1
   integer, parameter :: GRAFT_STREAM_BUDGET_USED = 0, GRAFT_STREAM_NO_PAIRS = 1, GRAFT_STREAM_BUDGET_SMALL = 2, &
      GRAFT_STREAM_STEPS_DONE = 3
   character(len=*), parameter :: GRAFT_AGGREGATE_ID = 'graft.aggregate/1', GRAFT_DATA_ID = 'graft.data/1', &
      GRAFT_GRAPH_ID = 'graft.graph/1', GRAFT_GROUP_ID = 'graft.group/1', GRAFT_HALO_ID = 'graft.halo/1', &
      GRAFT_MESH_ID = 'graft.draft.mesh/1', GRAFT_MODEL_ID = 'graft.model/1', &
      GRAFT_NETWORK_ID = 'graft.draft.network/1', GRAFT_STREAM_ID = 'graft.draft.stream/1', &
      GRAFT_TRAIN_ID = 'graft.train/1', GRAFT_TRANSPORT_ID = 'graft.transport/1'

   ! The numbers of slots of functions and pointers.
   integer, parameter :: aggregate_api_create = 2, aggregate_api_begin = 3, aggregate_api_end = 4, &
      aggregate_api_destroy = 7, api_context = 3, api_close = 4, api_get_interface = 5, api_set = 6, &
      data_api_view = 3, data_api_close = 4, data_api_open_slice = 5, graph_api_create = 2, graph_api_info = 3, &
      graph_api_owned = 4, graph_api_destroy = 7, graph_api_update_values = 8, group_api_create = 2, &
      group_api_agree = 3, group_api_destroy = 8, halo_api_create = 2, halo_api_info = 3, halo_api_begin = 5, &
      halo_api_end = 7, halo_api_destroy = 8, mesh_api_create = 2, mesh_api_info = 3, mesh_api_view = 4, &
      mesh_api_explain = 5, mesh_api_destroy = 6, model_api_create = 2, model_api_load = 3, model_api_save = 4, &
      model_api_apply = 5, model_api_destroy = 10, network_api_create = 2, network_api_info = 3, &
      network_api_begin = 4, network_api_end = 5, network_api_rollout = 6, network_api_train = 9, &
      network_api_save = 12, network_api_load = 13, network_api_explain = 14, network_api_destroy = 15, &
      stream_api_create = 2, stream_api_offer = 3, stream_api_step = 4, stream_api_validate = 5, &
      stream_api_status = 6, stream_api_save = 7, stream_api_load = 8, stream_api_destroy = 9, train_api_create = 2, &
      train_api_epoch = 3, train_api_evaluate = 4, train_api_predict = 5, train_api_explain = 8, &
      train_api_destroy = 9, transport_close = 9, transport_api_open = 3

   type, bind(c) :: c_aggregate_args
      integer(c_int32_t) :: size = 80, semiring = 0, flags = 0, layer = 0
      integer(c_int64_t) :: epoch = 0
      integer(c_int32_t) :: threads = 0, reserved = 0
      type(c_ptr) :: x = c_null_ptr, out = c_null_ptr, row_scale = c_null_ptr, times = c_null_ptr, mask = c_null_ptr, &
         epilogue = c_null_ptr
   end type

   type, bind(c) :: c_communicator
      integer(c_int32_t) :: size = 32, bytes = 0
      type(c_ptr) :: handle = c_null_ptr
      integer(c_int32_t) :: start = 0, reserved = 0, kind = 0, reserved2 = 0
   end type

   type, bind(c) :: c_csr
      integer(c_int32_t) :: size = 64, index_type = 0, value_type = 0, reserved = 0
      integer(c_int64_t) :: n_rows = 0, n_cols = 0
      type(c_ptr) :: row_ptr = c_null_ptr, col_idx = c_null_ptr, values = c_null_ptr, row_ptr_32 = c_null_ptr
   end type

   type, bind(c) :: c_dataset
      integer(c_int32_t) :: size = 136, flags = 0
      integer(c_int64_t) :: n_vertices = 0, n_features = 0, n_classes = 0
      type(c_ptr) :: graph = c_null_ptr, features = c_null_ptr, sparse_features = c_null_ptr, labels = c_null_ptr, &
         targets = c_null_ptr, split = c_null_ptr
      integer(c_int64_t) :: first_vertex = 0, n_slice = 0
      type(c_ptr) :: over = c_null_ptr, float_targets = c_null_ptr, edge_features = c_null_ptr, &
         feature_scale = c_null_ptr, feature_zero = c_null_ptr
   end type

   type, bind(c) :: c_dense
      integer(c_int32_t) :: size = 40, dtype = 0
      integer(c_int64_t) :: n_rows = 0, n_cols = 0, stride = 0
      type(c_ptr) :: data = c_null_ptr
   end type

   type, bind(c) :: graft_epoch
      integer(c_int32_t) :: size = 176, done = 0
      integer(c_int64_t) :: epoch = 0, epochs = 0
      real(c_double) :: loss = 0, seconds = 0, seconds_step = 0
      integer(c_int32_t) :: evaluated = 0, best = 0
      real(c_double) :: train_accuracy = 0, validation_accuracy = 0, test_accuracy = 0, validation_loss = 0, drift = 0
      integer(c_int32_t) :: synchronous = 0, reserved = 0
      real(c_double) :: learning_rate = 0, train_rmse = 0, validation_rmse = 0, test_rmse = 0, train_r2 = 0, &
         validation_r2 = 0, test_r2 = 0
      integer(c_int32_t) :: should_stop = 0, reserved_tail = 0
      real(c_double) :: gradient_norm = 0
   end type

   type, bind(c) :: c_error
      integer(c_int32_t) :: size = 512, code = 0, native_code = 0, rank = 0
      character(kind=c_char) :: where(48) = c_null_char, message(448) = c_null_char
   end type

   type, bind(c) :: c_field
      integer(c_int32_t) :: size = 48, dtype = 0
      integer(c_int64_t) :: n_rows = 0, n_columns = 0, row_stride = 0, column_stride = 0
      type(c_ptr) :: data = c_null_ptr
   end type

   type, bind(c) :: c_graph_info
      integer(c_int32_t) :: size = 72, rank = 0
      integer(c_int64_t) :: n_vertices = 0, n_slice = 0, n_owned = 0, n_edges = 0, n_cut = 0, n_halo = 0
      real(c_double) :: vertex_imbalance = 0, edge_imbalance = 0
   end type

   type, bind(c) :: c_halo_args
      integer(c_int32_t) :: size = 32, flags = 0, threads = 0, reserved = 0
      type(c_ptr) :: owned = c_null_ptr, halo = c_null_ptr
   end type

   type, bind(c) :: graft_halo_info
      integer(c_int32_t) :: size = 88, n_neighbours = 0
      integer(c_int64_t) :: n_owned = 0, n_halo = 0, n_sent = 0
      type(c_ptr) :: vertex = c_null_ptr, neighbour = c_null_ptr, receive_start = c_null_ptr, send_start = c_null_ptr, &
         send_row = c_null_ptr
      integer(c_int64_t) :: bytes = 0, passes = 0
   end type

   type, bind(c) :: c_mesh_args
      integer(c_int32_t) :: size = 136, kind = 0, dim = 0, index_base = 0
      integer(c_int64_t) :: n_rows = 0
      type(c_ptr) :: coordinates = c_null_ptr, ids = c_null_ptr, owners = c_null_ptr
      integer(c_int32_t) :: id_type = 0, index_type = 0
      integer(c_int64_t) :: n_cells = 0
      type(c_ptr) :: cell_types = c_null_ptr
      integer(c_int32_t) :: cell_type = 0, reserved = 0
      type(c_ptr) :: cell_nodes = c_null_ptr
      integer(c_int64_t) :: n_edges = 0
      type(c_ptr) :: edge_sources = c_null_ptr, edge_targets = c_null_ptr
      real(c_double) :: period(3) = 0
   end type

   type, bind(c) :: graft_mesh_info
      integer(c_int32_t) :: size = 48, n_neighbours = 0
      integer(c_int64_t) :: n_nodes = 0, n_edges = 0, n_halo = 0, bytes = 0
      real(c_double) :: longest = 0
   end type

   type, bind(c) :: c_mesh_view
      integer(c_int32_t) :: size = 128, dim = 0
      integer(c_int64_t) :: n_rows = 0, n_nodes = 0, n_halo = 0, n_edges = 0, n_sources = 0
      type(c_ptr) :: node_of = c_null_ptr, row_of = c_null_ptr, id = c_null_ptr, node_weight = c_null_ptr, &
         row_ptr = c_null_ptr, source = c_null_ptr, edge_ranks = c_null_ptr, position = c_null_ptr, &
         halo_start = c_null_ptr, halo_node = c_null_ptr
   end type

   type, bind(c) :: graft_metrics
      integer(c_int32_t) :: size = 112, reserved = 0
      integer(c_int64_t) :: epoch = 0
      real(c_double) :: train_accuracy = 0, validation_accuracy = 0, test_accuracy = 0, train_loss = 0, &
         validation_loss = 0, test_loss = 0, train_rmse = 0, validation_rmse = 0, test_rmse = 0, train_r2 = 0, &
         validation_r2 = 0, test_r2 = 0
   end type

   type, bind(c) :: c_network_args
      integer(c_int32_t) :: size = 40, predicts = 0, n_in = 0, n_out = 0
      type(c_ptr) :: constant = c_null_ptr, is_free = c_null_ptr, loss_weight = c_null_ptr
   end type

   type, bind(c) :: graft_network_info
      integer(c_int32_t) :: size = 56, dtype = 0
      integer(c_int64_t) :: n_weights = 0, n_steps = 0
      real(c_double) :: multiply_adds = 0
      integer(c_int64_t) :: bytes = 0, bytes_sent = 0
      real(c_double) :: learning_rate = 0
   end type

   type, bind(c) :: graft_network_step
      integer(c_int32_t) :: size = 40, is_gathering = 0
      integer(c_int64_t) :: step = 0
      real(c_double) :: loss = 0, learning_rate = 0, gradient_norm = 0
   end type

   type, bind(c) :: c_pair
      integer(c_int32_t) :: size = 24, reserved = 0
      type(c_ptr) :: input = c_null_ptr, target = c_null_ptr
   end type

   type, bind(c) :: c_plan_args
      integer(c_int32_t) :: size = 24, flags = 0
      integer(c_int64_t) :: width = 0
      integer(c_int32_t) :: dtype = 0, layers = 0
   end type

   type, bind(c) :: c_rollout
      integer(c_int32_t) :: size = 40, steps = 0
      type(c_ptr) :: initial = c_null_ptr, state = c_null_ptr
      type(c_funptr) :: after = c_null_funptr
      type(c_ptr) :: arg = c_null_ptr
   end type

   type, bind(c) :: c_sample_state
      integer(c_int32_t) :: size = 32, flags = 0
      type(c_ptr) :: input = c_null_ptr, target = c_null_ptr
      real(c_double) :: time = 0
   end type

   type, bind(c) :: c_slice
      integer(c_int32_t) :: size = 48, reserved = 0
      integer(c_int64_t) :: n_vertices = 0, first_row = 0
      type(c_ptr) :: rows = c_null_ptr, owner = c_null_ptr, train_mask = c_null_ptr
   end type

   type, bind(c) :: graft_stream_status
      integer(c_int32_t) :: size = 128, should_stop = 0
      integer(c_int64_t) :: offered = 0, dropped = 0, pairs = 0, kept = 0, capacity = 0, held_out = 0, bytes = 0, &
         steps = 0
      integer(c_int32_t) :: steps_now = 0, reason = 0
      real(c_double) :: seconds = 0, seconds_of_step = 0, loss = 0, validation = 0, best = 0, time = 0
   end type

   type, bind(c) :: c_transport
      integer(c_int32_t) :: size = 80, rank = 0, n_ranks = 0, tag_max = 0
      type(c_ptr) :: name = c_null_ptr, self = c_null_ptr
      type(c_funptr) :: send = c_null_funptr, receive = c_null_funptr, test = c_null_funptr, cancel = c_null_funptr, &
         close = c_null_funptr, abandon = c_null_funptr
   end type

   abstract interface
      subroutine c_free_p(a) bind(c)
         import
         type(c_ptr), value :: a
      end subroutine
      type(c_ptr) function c_get_p(a) bind(c)
         import
         type(c_ptr), value :: a
      end function
      type(c_ptr) function c_get_pp(a, b) bind(c)
         import
         type(c_ptr), value :: a, b
      end function
      integer(c_int32_t) function c_run_iippp(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: c, d, e
         integer(c_int32_t), value :: a, b
      end function
      integer(c_int32_t) function c_run_pdipp(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: a, d, e
         integer(c_int32_t), value :: c
         real(c_double), value :: b
      end function
      integer(c_int32_t) function c_run_pip(a, b, c) bind(c)
         import
         type(c_ptr), value :: a, c
         integer(c_int32_t), value :: b
      end function
      integer(c_int32_t) function c_run_pipp(a, b, c, d) bind(c)
         import
         type(c_ptr), value :: a, c, d
         integer(c_int32_t), value :: b
      end function
      integer(c_int32_t) function c_run_pippp(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: a, c, d, e
         integer(c_int32_t), value :: b
      end function
      integer(c_int32_t) function c_run_pp(a, b) bind(c)
         import
         type(c_ptr), value :: a, b
      end function
      integer(c_int32_t) function c_run_ppipp(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: a, b, d, e
         integer(c_int32_t), value :: c
      end function
      integer(c_int32_t) function c_run_pplp(a, b, c, d) bind(c)
         import
         type(c_ptr), value :: a, b, d
         integer(c_int64_t), value :: c
      end function
      integer(c_int32_t) function c_run_ppp(a, b, c) bind(c)
         import
         type(c_ptr), value :: a, b, c
      end function
      integer(c_int32_t) function c_run_pppp(a, b, c, d) bind(c)
         import
         type(c_ptr), value :: a, b, c, d
      end function
      integer(c_int32_t) function c_run_ppppp(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: a, b, c, d, e
      end function
      subroutine call_abort(comm, code, ierr) bind(c)
         import
         integer(c_int), intent(in) :: comm, code
         integer(c_int), intent(out) :: ierr
      end subroutine
   end interface

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
      type(c_ptr) function dlerror() bind(c)
         import
      end function
      integer(c_int) function sched_getaffinity(thread, bytes, processors) bind(c)
         import
         integer(c_int), value :: thread
         integer(c_size_t), value :: bytes
         integer(c_int64_t), intent(out) :: processors(*)
      end function
      integer(c_int) function sched_setaffinity(thread, bytes, processors) bind(c)
         import
         integer(c_int), value :: thread
         integer(c_size_t), value :: bytes
         integer(c_int64_t), intent(in) :: processors(*)
      end function
   end interface

contains

   ! The function in a slot.
   type(c_funptr) function slot(table, number)
      type(c_ptr), intent(in) :: table
      integer, intent(in) :: number
      type(c_funptr), pointer :: slots(:)

      call c_f_pointer(table, slots, [number])
      slot = slots(number)
   end function

   ! The pointer in a slot.
   type(c_ptr) function pointer_in(table, number)
      type(c_ptr), intent(in) :: table
      integer, intent(in) :: number
      type(c_ptr), pointer :: slots(:)

      call c_f_pointer(table, slots, [number])
      pointer_in = slots(number)
   end function

   ! Procedures that call the function in a slot. Their names tell its parameters: p is a pointer, i and l are integers
   ! of 32 and 64 bits, d is a double.
   subroutine free_p(table, number, a)
      type(c_ptr), intent(in) :: table, a
      integer, intent(in) :: number
      procedure(c_free_p), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      call function(a)
   end subroutine

   type(c_ptr) function get_p(table, number, a)
      type(c_ptr), intent(in) :: table, a
      integer, intent(in) :: number
      procedure(c_get_p), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      get_p = function(a)
   end function

   type(c_ptr) function get_pp(table, number, a, b)
      type(c_ptr), intent(in) :: table, a, b
      integer, intent(in) :: number
      procedure(c_get_pp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      get_pp = function(a, b)
   end function

   integer(c_int32_t) function run_pdipp(table, number, a, b, c, d, e)
      type(c_ptr), intent(in) :: table, a, d, e
      integer(c_int32_t), intent(in) :: c
      real(c_double), intent(in) :: b
      integer, intent(in) :: number
      procedure(c_run_pdipp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pdipp = function(a, b, c, d, e)
   end function

   integer(c_int32_t) function run_pip(table, number, a, b, c)
      type(c_ptr), intent(in) :: table, a, c
      integer(c_int32_t), intent(in) :: b
      integer, intent(in) :: number
      procedure(c_run_pip), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pip = function(a, b, c)
   end function

   integer(c_int32_t) function run_pipp(table, number, a, b, c, d)
      type(c_ptr), intent(in) :: table, a, c, d
      integer(c_int32_t), intent(in) :: b
      integer, intent(in) :: number
      procedure(c_run_pipp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pipp = function(a, b, c, d)
   end function

   integer(c_int32_t) function run_pippp(table, number, a, b, c, d, e)
      type(c_ptr), intent(in) :: table, a, c, d, e
      integer(c_int32_t), intent(in) :: b
      integer, intent(in) :: number
      procedure(c_run_pippp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pippp = function(a, b, c, d, e)
   end function

   integer(c_int32_t) function run_pp(table, number, a, b)
      type(c_ptr), intent(in) :: table, a, b
      integer, intent(in) :: number
      procedure(c_run_pp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pp = function(a, b)
   end function

   integer(c_int32_t) function run_ppipp(table, number, a, b, c, d, e)
      type(c_ptr), intent(in) :: table, a, b, d, e
      integer(c_int32_t), intent(in) :: c
      integer, intent(in) :: number
      procedure(c_run_ppipp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_ppipp = function(a, b, c, d, e)
   end function

   integer(c_int32_t) function run_pplp(table, number, a, b, c, d)
      type(c_ptr), intent(in) :: table, a, b, d
      integer(c_int64_t), intent(in) :: c
      integer, intent(in) :: number
      procedure(c_run_pplp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pplp = function(a, b, c, d)
   end function

   integer(c_int32_t) function run_ppp(table, number, a, b, c)
      type(c_ptr), intent(in) :: table, a, b, c
      integer, intent(in) :: number
      procedure(c_run_ppp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_ppp = function(a, b, c)
   end function

   integer(c_int32_t) function run_pppp(table, number, a, b, c, d)
      type(c_ptr), intent(in) :: table, a, b, c, d
      integer, intent(in) :: number
      procedure(c_run_pppp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_pppp = function(a, b, c, d)
   end function

   integer(c_int32_t) function run_ppppp(table, number, a, b, c, d, e)
      type(c_ptr), intent(in) :: table, a, b, c, d, e
      integer, intent(in) :: number
      procedure(c_run_ppppp), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run_ppppp = function(a, b, c, d, e)
   end function

   ! Convert a text of C, which ends with a null character, to Fortran.
   function text_at(address) result(text)
      type(c_ptr), intent(in) :: address
      character(len=:), allocatable :: text
      character(kind=c_char), pointer :: letters(:)
      integer :: n

      text = ''
      if (.not. c_associated(address)) return
      call c_f_pointer(address, letters, [65536])
      n = 0
      do while (n < size(letters))
         if (letters(n + 1) == c_null_char) exit
         n = n + 1
      end do
      text = repeat(' ', n)
      do n = 1, len(text)
         text(n:n) = letters(n)
      end do
   end function
end module

module graft
   use, intrinsic :: iso_c_binding
   use, intrinsic :: iso_fortran_env, only: error_unit, int8, int32, int64, real32, real64
   use graft_abi
   implicit none
   private

   public :: GRAFT_OK, GRAFT_ERR_ARG, GRAFT_ERR_NOMEM, GRAFT_ERR_VERSION, GRAFT_ERR_UNSUPPORTED, GRAFT_ERR_NOT_FOUND, &
      GRAFT_ERR_FORMAT, GRAFT_ERR_IO, GRAFT_ERR_OPTION, GRAFT_ERR_STATE, GRAFT_ERR_FORKED, GRAFT_ERR_MODULE, &
      GRAFT_ERR_PEER, GRAFT_ERR_CANCELLED, GRAFT_ERR_NONFINITE, GRAFT_F32, GRAFT_F64, GRAFT_I32, GRAFT_I64, GRAFT_U8, &
      GRAFT_BF16, GRAFT_F16, GRAFT_PLUS_TIMES, GRAFT_PLUS_SECOND, GRAFT_MAX_TIMES, GRAFT_MAX_SECOND, GRAFT_MIN_TIMES, &
      GRAFT_MIN_SECOND, GRAFT_MASK_ROWS, GRAFT_MASK_BITS, GRAFT_MASK_BYTES, GRAFT_MASK_STRUCTURE, &
      GRAFT_MASK_COMPLEMENT, GRAFT_LOG_DEBUG, GRAFT_LOG_INFO, GRAFT_LOG_WARNING, GRAFT_LOG_ERROR, &
      GRAFT_HOST_NO_ENVIRONMENT, GRAFT_HOST_STARTS_LIBRARIES, GRAFT_SCOPE_SAME, GRAFT_SCOPE_EACH, GRAFT_SCOPE_ROOT, &
      GRAFT_MPI_C, GRAFT_MPI_FORTRAN, GRAFT_TO_OWNERS, GRAFT_TO_SLICES, GRAFT_MXM_ACCUMULATE, GRAFT_MXM_REPLACE, &
      GRAFT_EPILOGUE_RELU, GRAFT_PLAN_TRANSPOSED, GRAFT_AGGREGATE_TRANSPOSE, GRAFT_AGGREGATE_ACCUMULATE, &
      GRAFT_AGGREGATE_EXACT, GRAFT_AGGREGATE_STATELESS, GRAFT_AGGREGATE_SYNCHRONOUS, GRAFT_AGGREGATE_REPLACE, &
      GRAFT_CODEC_MINMAX, GRAFT_CODEC_ROTATED, GRAFT_ROUND_NEAREST, GRAFT_ROUND_STOCHASTIC, GRAFT_SPLIT_NONE, &
      GRAFT_SPLIT_TRAIN, GRAFT_SPLIT_VALIDATION, GRAFT_SPLIT_TEST, GRAFT_DATASET_SLICE, GRAFT_EDGE_TRANSPOSE, &
      GRAFT_HALO_SUM, GRAFT_HALO_EXACT, GRAFT_WEIGHTS_LAST, GRAFT_WEIGHTS_BEST, GRAFT_UPDATE_FEATURES, &
      GRAFT_UPDATE_LABELS, GRAFT_UPDATE_TARGETS, GRAFT_UPDATE_SPLIT, GRAFT_UPDATE_EDGE_VALUES, &
      GRAFT_UPDATE_EDGE_FEATURES, GRAFT_MODEL_LAST, GRAFT_MODEL_BEST, GRAFT_MODEL_STATE, GRAFT_PASS_FORWARD, &
      GRAFT_PASS_BACKWARD, GRAFT_PASS_EVALUATION, GRAFT_SAMPLE_ALL, GRAFT_MESH_GHOSTS, GRAFT_MESH_SHARED, &
      GRAFT_CELL_LINE, GRAFT_CELL_TRIANGLE, GRAFT_CELL_QUAD, GRAFT_CELL_TETRA, GRAFT_CELL_HEXAHEDRON, &
      GRAFT_CELL_WEDGE, GRAFT_CELL_PYRAMID, GRAFT_PREDICTS_VALUE, GRAFT_PREDICTS_CHANGE, GRAFT_STREAM_FIRST, &
      GRAFT_STREAM_BUDGET_USED, GRAFT_STREAM_NO_PAIRS, GRAFT_STREAM_BUDGET_SMALL, GRAFT_STREAM_STEPS_DONE, &
      graft_epoch, graft_halo_info, graft_mesh_info, graft_metrics, graft_network_info, graft_network_step, &
      graft_stream_status
   public :: graft_message, graft_after

   ! The order of the dimensions of an array of values on nodes.
   type, public :: graft_layout
      private
      integer :: nodes = 2 ! the dimension that counts nodes
   end type
   type(graft_layout), parameter, public :: graft_component_node = graft_layout(2) ! x(component, node): the default
   type(graft_layout), parameter, public :: graft_node_component = graft_layout(1) ! x(node, component)

   ! What view() of a mesh reports: graft_mesh_view of the headers. Arrays belong to the mesh and have its numbers,
   ! which begin with 0. Weights that are all 1 are not associated.
   type, public :: graft_mesh_view
      integer(int32), pointer :: node_of(:) => null(), row_of(:) => null(), source(:) => null(), &
                                 edge_ranks(:) => null(), halo_node(:) => null()
      integer(int64), pointer :: id(:) => null(), row_ptr(:) => null(), halo_start(:) => null()
      real(real64), pointer :: node_weight(:) => null(), position(:, :) => null()
   end type

   ! An instance of the library.
   type, public :: graft_context
      private
      type(c_ptr) :: api = c_null_ptr
   contains
      procedure :: open => context_open    ! (path, ierr): the library in a file, or without path by its soname
      procedure :: close => context_close  ! (ierr): objects made with it should have been destroyed
      generic :: set => set_text, set_i4, set_i8, set_r8, set_r4 ! (key, value, ierr): an option
      procedure, private :: set_text, set_i4, set_i8, set_r8, set_r4
      final :: context_final
   end type

   ! Ranks over MPI, the group in which they agree, and how many objects use them; the last one closes the transport.
   type :: shared_ranks
      type(c_transport) :: transport
      type(c_ptr) :: table = c_null_ptr, group = c_null_ptr
      integer(c_int) :: comm = 0
      integer :: users = 0
   end type
   type, public :: graft_ranks
      private
      type(shared_ranks), pointer :: shared => null()
   contains
      ! (context, comm, ierr): comm as of module mpi, or comm%mpi_val of mpi_f08
      generic :: open => ranks_open_i4, ranks_open_i8
      procedure, private :: ranks_open_i4, ranks_open_i8
      procedure :: rank => ranks_rank   ! from 0
      procedure :: size => ranks_size
      procedure :: destroy => ranks_destroy ! (ierr): collective: closes the transport when no object uses it
      final :: ranks_final
   end type

   ! The data of every object: the functions of its interface, the slot that frees it, and the ranks that it needs.
   type :: object
      private
      type(c_ptr) :: api = c_null_ptr, table = c_null_ptr, raw = c_null_ptr
      integer :: freed_by = 0
      integer, public :: index_base = 1 ! the number of the first vertex or node
      type(shared_ranks), pointer :: shared => null()
   contains
      procedure :: destroy => object_destroy ! (ierr)
   end type

   ! graft.graph/1: a sparse matrix whose rows are spread over ranks.
   type, extends(object), public :: graft_graph
      integer(int64), allocatable, private :: row_ptr(:), columns(:)
      real(real64), allocatable, private :: weight(:)
      integer(int32), allocatable, private :: owner(:)
   contains
      ! (row_ptr(m + 1), columns, ierr): of this rank, from index_base on
      generic :: rows => graph_rows_i4, graph_rows_i8
      procedure, private :: graph_rows_i4, graph_rows_i8
      generic :: values => graph_values_r8, graph_values_r4 ! (values, ierr): of the entries; without them each is 1
      procedure, private :: graph_values_r8, graph_values_r4
      ! (ranks from 0, ierr): of the rows; without them Graft chooses
      generic :: owners => graph_owners_i4, graph_owners_i8
      procedure, private :: graph_owners_i4, graph_owners_i8
      ! (context, n_vertices, first, ranks, ierr): first is that of row 1
      generic :: create => graph_create_i4, graph_create_i8
      procedure, private :: graph_create_i4, graph_create_i8
      ! (values, ierr): in place of the old ones, also for plans of the graph
      generic :: update_values => graph_update_r8, graph_update_r4
      procedure, private :: graph_update_r8, graph_update_r4
      procedure :: owned => graph_owned   ! (vertices, ierr): an allocatable array with those of this rank
      final :: graph_final
   end type

   ! graft.aggregate/1: products of that matrix with x(vertex) or x(component, vertex), real64 or real32 as the values.
   type, extends(object), public :: graft_plan
   contains
      procedure :: create => plan_create ! (graph, ierr): also for transposed products
      ! (x, y, transposed, ierr): x and y until end()
      generic :: begin => plan_begin_r8, plan_begin_r8_1, plan_begin_r4, plan_begin_r4_1
      procedure, private :: plan_begin_r8, plan_begin_r8_1, plan_begin_r4, plan_begin_r4_1
      ! (x, y, transposed, ierr): begin() and end()
      generic :: run => plan_run_r8, plan_run_r8_1, plan_run_r4, plan_run_r4_1
      procedure, private :: plan_run_r8, plan_run_r8_1, plan_run_r4, plan_run_r4_1
      procedure :: end => plan_end ! (ierr)
      final :: plan_final
   end type

   ! graft.halo/1: rows of vertices that other ranks own and rows of this rank refer to, x(vertex) or x(component,
   ! vertex) in the order of vertices().
   type, extends(object), public :: graft_halo
   contains
      procedure :: create => halo_create ! (graph, ierr)
      procedure :: info => halo_get_info ! (info, ierr)
      procedure :: vertices => halo_vertices ! (vertices, ierr): an allocatable array with those of the rows
      ! (owned, halo, ierr): copy owned rows into halos, until end()
      generic :: begin => halo_begin_r8, halo_begin_r8_1, halo_begin_r4, halo_begin_r4_1
      procedure, private :: halo_begin_r8, halo_begin_r8_1, halo_begin_r4, halo_begin_r4_1
      ! (owned, halo, ierr): add rows of halo to owned ones, until end()
      generic :: begin_sum => halo_sum_r8, halo_sum_r8_1, halo_sum_r4, halo_sum_r4_1
      procedure, private :: halo_sum_r8, halo_sum_r8_1, halo_sum_r4, halo_sum_r4_1
      ! (owned, halo, ierr): begin() and end()
      generic :: exchange => halo_exchange_r8, halo_exchange_r8_1, halo_exchange_r4, halo_exchange_r4_1
      procedure, private :: halo_exchange_r8, halo_exchange_r8_1, halo_exchange_r4, halo_exchange_r4_1
      procedure :: end => halo_end ! (ierr)
      final :: halo_final
   end type

   ! graft.draft.mesh.
   type, extends(object), public :: graft_mesh
      real(real64), allocatable, private :: x(:, :)
      integer(int64), allocatable, private :: id(:), nodes(:), sources(:), targets(:)
      integer(int32), allocatable, private :: owner(:)
      integer(int8), allocatable, private :: types(:)
      integer, private :: cell_type = 0, bad_axis = 0
      integer(int64), private :: n_cells = 0, n_rows = 0
      real(real64), private :: periods(3) = 0
   contains
      generic :: coordinates => coordinates_r8, coordinates_r4 ! (x(dim, node), layout, ierr)
      procedure, private :: coordinates_r8, coordinates_r4
      generic :: ids => mesh_ids_i4, mesh_ids_i8 ! (ids, ierr)
      procedure, private :: mesh_ids_i4, mesh_ids_i8
      generic :: owners => mesh_owners_i4, mesh_owners_i8 ! (ranks from 0, ierr)
      procedure, private :: mesh_owners_i4, mesh_owners_i8
      ! (type, nodes(corner, cell), ierr), or (types, nodes, ierr)
      generic :: cells => cells_i4, cells_i8, mixed_i4, mixed_i8
      procedure, private :: cells_i4, cells_i8, mixed_i4, mixed_i8
      generic :: edges => edges_i4, edges_i8 ! (sources, targets, ierr)
      procedure, private :: edges_i4, edges_i8
      procedure :: period => mesh_period   ! (axis from 1, length, ierr)
      procedure :: create => mesh_create   ! (context, kind, ranks, ierr)
      procedure :: info => mesh_get_info   ! (info, rank, ierr): rank -1 is all
      procedure :: view => mesh_get_view   ! (view, ierr): its arrays, until the mesh is destroyed
      procedure :: explain => mesh_explain ! a text
      final :: mesh_final
   end type

   ! graft.draft.network. States and results are u(component, node), u(node, component) with a layout, or u(node).
   type, extends(object), public :: graft_network
      real(real64), allocatable, private :: fixed(:, :), weight(:)
      integer(int8), allocatable, private :: free_node(:)
   contains
      generic :: constant => network_constant_r8    , network_constant_r4     ! (x(component, node), layout, ierr)
      procedure, private :: network_constant_r8    , network_constant_r4    
      procedure :: is_free => network_is_free         ! (logical of each node, ierr)
      generic :: loss_weight => network_weight_r8   , network_weight_r4    ! (of each node, ierr)
      procedure, private :: network_weight_r8   , network_weight_r4   
      procedure :: create => network_create           ! (mesh, n_in, n_out, predicts, ierr)
      ! (state, ierr), (state, layout, ierr)
      generic :: begin => network_begin_r8, network_begin_r8_as, network_begin_r8_1, network_begin_r4, &
         network_begin_r4_as, network_begin_r4_1
      procedure, private :: network_begin_r8, network_begin_r8_as, network_begin_r8_1, network_begin_r4, &
         network_begin_r4_as, network_begin_r4_1
      ! (result, ierr), (result, layout, ierr)
      generic :: end => network_end_r8, network_end_r8_as, network_end_r8_1, network_end_r4, network_end_r4_as, &
         network_end_r4_1
      procedure, private :: network_end_r8, network_end_r8_as, network_end_r8_1, network_end_r4, network_end_r4_as, &
         network_end_r4_1
      ! (state, steps, after, ierr), (state, steps, layout, after, ierr)
      generic :: rollout => rollout_r8, rollout_r8_as, rollout_r8_1, rollout_r4, rollout_r4_as, rollout_r4_1
      procedure, private :: rollout_r8, rollout_r8_as, rollout_r8_1, rollout_r4, rollout_r4_as, rollout_r4_1
      ! (state, target, step, ierr), (state, target, step, layout, ierr)
      generic :: train => train_r8, train_r8_as, train_r8_1, train_r4, train_r4_as, train_r4_1
      procedure, private :: train_r8, train_r8_as, train_r8_1, train_r4, train_r4_as, train_r4_1
      procedure :: save => network_save       ! (path, ierr)
      procedure :: load => network_load       ! (path, ierr)
      procedure :: info => network_get_info   ! (info, ierr)
      procedure :: explain => network_explain ! a text
      final :: network_final
   end type

   ! graft.draft.stream.
   type, extends(object), public :: graft_stream
   contains
      procedure :: create => stream_create ! (network, ierr)
      ! (state, time, first, ierr), (state, time, layout, first, ierr): of a new run
      generic :: offer => offer_r8, offer_r8_as, offer_r8_1, offer_r4, offer_r4_as, offer_r4_1
      procedure, private :: offer_r8, offer_r8_as, offer_r8_1, offer_r4, offer_r4_as, offer_r4_1
      ! (state, target, time, ierr), (state, target, time, layout, ierr)
      generic :: offer_pair => pair_r8, pair_r8_as, pair_r8_1, pair_r4, pair_r4_as, pair_r4_1
      procedure, private :: pair_r8, pair_r8_as, pair_r8_1, pair_r4, pair_r4_as, pair_r4_1
      procedure :: step => stream_step         ! (milliseconds, max_steps, status, ierr): 0 is no limit of steps
      procedure :: validate => stream_validate ! (status, ierr)
      procedure :: status => stream_get_status ! (status, ierr)
      procedure :: save => stream_save         ! (path, ierr)
      procedure :: load => stream_load         ! (path, ierr)
      final :: stream_final
   end type

   ! The arrays of a data set, and the objects that the library has made from them.
   type :: data_arrays
      integer(int64), allocatable :: row_ptr(:), columns(:)
      real(real32), allocatable :: weight(:), x(:, :), y(:, :)
      integer(int32), allocatable :: label(:)
      integer(int8), allocatable :: part(:), is_trained(:)
      type(c_dataset) :: set
      type(c_csr) :: rows
      type(c_dense) :: features, outputs
      integer :: base = 1
      ! Objects of the library: data that were read, the graph over ranks, and their functions.
      type(c_ptr) :: api = c_null_ptr, table = c_null_ptr, raw = c_null_ptr, graphs = c_null_ptr, graph = c_null_ptr
   end type

   ! The data from which a model learns, of one process or of the slice of a rank: arrays of the program, or files.
   type, public :: graft_dataset
      integer :: index_base = 1
      type(data_arrays), pointer, private :: arrays => null()
   contains
      ! (row_ptr(n + 1), columns, ierr): vertex v gathers from columns of row v
      generic :: rows => data_rows_i4, data_rows_i8
      procedure, private :: data_rows_i4, data_rows_i8
      generic :: values => data_values_r8, data_values_r4 ! (values, ierr): of the entries; without them each is 1
      procedure, private :: data_values_r8, data_values_r4
      generic :: features => features_r8, features_r4 ! (x(feature, vertex), layout, ierr)
      procedure, private :: features_r8, features_r4
      generic :: labels => labels_i4, labels_i8 ! (classes from 0, n_classes, ierr): -1 is unlabelled
      procedure, private :: labels_i4, labels_i8
      generic :: targets => targets_r8, targets_r4 ! (y(output, vertex), layout, ierr): of a regression; NaN is unknown
      procedure, private :: targets_r8, targets_r4
      generic :: split => split_i4, split_i8 ! (GRAFT_SPLIT_... of each vertex, ierr)
      procedure, private :: split_i4, split_i8
      generic :: slice => slice_i4, slice_i8 ! (n_vertices, first, ierr): over ranks, first is the vertex of row 1
      procedure, private :: slice_i4, slice_i8
      procedure :: open => data_open ! (context, path, ranks, ierr): a folder or file in place of arrays
      procedure :: destroy => data_destroy ! (ierr)
      final :: data_final
   end type

   ! graft.train/1. create() takes over what the data set has.
   type, extends(object), public :: graft_trainer
      type(data_arrays), pointer, private :: arrays => null()
   contains
      procedure :: create => trainer_create     ! (context, dataset, ranks, ierr)
      procedure :: epoch => trainer_epoch       ! (epoch, ierr): until epoch%done is 1
      procedure :: evaluate => trainer_evaluate ! (metrics, weights, ierr)
      generic :: predict => predict_i4, predict_i8 ! (labels, weights, ierr): the class of each vertex, from 0
      procedure, private :: predict_i4, predict_i8
      generic :: outputs => outputs_r8, outputs_r4 ! (y(output, vertex), weights, ierr): of the model, for each vertex
      procedure, private :: outputs_r8, outputs_r4
      procedure :: save => trainer_save         ! (path, ierr): the whole state; rank 0 writes
      procedure :: load => trainer_load         ! (path, ierr): to go on from it; rank 0 reads
      procedure :: explain => trainer_explain   ! a text
      procedure :: destroy => trainer_destroy   ! (ierr)
      final :: trainer_final
   end type

   abstract interface
      ! Called after each step of a rollout; a result that is not 0 ends it with GRAFT_ERR_CANCELLED.
      integer function graft_after(step)
         integer, intent(in) :: step
      end function
   end interface
   type :: each_step
      procedure(graft_after), pointer, nopass :: after
   end type

   interface view
      module procedure view_r8, view_r4, view_r8_1, view_r4_1
   end interface
   interface address
      module procedure address_i1, address_i4, address_i8, address_r4, address_r8
   end interface

   character(len=*), parameter :: load_hint = &
      '; pass the path of the file, or link the program with a run path, or set LD_LIBRARY_PATH'
   type(c_error), target, save :: last
   real(real64), target, save :: nothing = 0 ! target of pointers to arrays without elements

contains

   ! The message of the last failure.
   function graft_message() result(text)
      character(len=:), allocatable :: text

      text = text_at(c_loc(last%message))
   end function

   ! Return the status to the caller. If it passes no ierr, end the run after a failure.
   subroutine finish(rc, shared, ierr)
      integer(c_int32_t), intent(in) :: rc
      type(shared_ranks), pointer, intent(in) :: shared
      integer, intent(out), optional :: ierr
      procedure(call_abort), pointer :: abort_all
      type(c_funptr) :: address
      integer(c_int) :: ignored

      if (present(ierr)) then
         ierr = int(rc)
         return
      end if
      if (rc >= 0) return
      write (error_unit, '(a,i0,2a)') 'Graft: status ', rc, ': ', graft_message()
      flush (error_unit)
      if (associated(shared)) then ! The program has MPI, whose Fortran name is found as the linker would.
         address = dlsym(c_null_ptr, 'mpi_abort_'//c_null_char)
         if (c_associated(address)) then
            call c_f_procpointer(address, abort_all)
            call abort_all(shared%comm, 1_c_int, ignored)
         end if
      end if
      error stop 1
   end subroutine

   ! End a call that cannot fail.
   subroutine succeed(ierr)
      integer, intent(out), optional :: ierr

      if (present(ierr)) ierr = GRAFT_OK
   end subroutine

   ! Record a failure that this module finds.
   integer(c_int32_t) function refuse(code, sentence)
      integer, intent(in) :: code
      character(len=*), intent(in) :: sentence
      integer :: i

      last = c_error(code=int(code, c_int32_t))
      do i = 1, min(len(sentence), size(last%message) - 1)
         last%message(i) = sentence(i:i)
      end do
      refuse = int(code, c_int32_t)
   end function

   ! The status on which ranks agree before a collective call: that of the lowest rank with a failure, such as refuse().
   integer(c_int32_t) function agreed(shared, rc)
      type(shared_ranks), pointer, intent(in) :: shared
      integer(c_int32_t), intent(in) :: rc

      agreed = rc
      if (associated(shared)) agreed = run_pip(shared%table, group_api_agree, shared%group, rc, c_loc(last))
   end function

   ! GRAFT_ERR_ARG with this sentence, if there is one.
   integer(c_int32_t) function unless(fault)
      character(len=*), intent(in) :: fault

      unless = GRAFT_OK
      if (fault /= '') unless = refuse(GRAFT_ERR_ARG, fault)
   end function

   ! Make a message if an array has another size than expected, unless there is a message already.
   subroutine compare(what, n, expected, fault)
      character(len=*), intent(in) :: what
      integer(int64), intent(in) :: n, expected
      character(len=:), allocatable, intent(inout) :: fault

      if (fault == '' .and. n /= expected) &
         fault = what//': '//number_of(n)//' elements, expected '//number_of(expected)
   end subroutine

   ! A number in a sentence.
   function number_of(n) result(text)
      integer(int64), intent(in) :: n
      character(len=:), allocatable :: text
      character(len=20) :: buffer

      write (buffer, '(i0)') n
      text = trim(buffer)
   end function

   ! Contexts

   ! Load a file with dlopen(). With OMP_PROC_BIND or OMP_PLACES, OpenMP binds the thread that loads it to one place;
   ! afterwards this thread gets its processors back.
   type(c_ptr) function load_file(file) result(library)
      character(len=*), intent(in) :: file
      integer(c_int64_t) :: processors(128)
      integer(c_size_t), parameter :: bytes = 1024
      integer(c_int) :: rc

      rc = sched_getaffinity(0_c_int, bytes, processors)
      library = dlopen(file//c_null_char, 2_c_int)
      if (rc == 0) rc = sched_setaffinity(0_c_int, bytes, processors)
   end function

   subroutine context_open(self, path, ierr)
      class(graft_context), intent(inout) :: self
      character(len=*), intent(in), optional :: path
      integer, intent(out), optional :: ierr
      procedure(c_run_iippp), pointer :: open_library
      character(len=:), allocatable :: file
      type(c_ptr) :: library
      type(c_ptr), target :: api
      type(c_funptr) :: address
      integer(c_int32_t) :: rc

      file = 'libgraft.so.1'
      if (present(path)) then
         if (path /= '') file = trim(path)
      end if
      address = c_null_funptr
      library = load_file(file)
      if (c_associated(library)) address = dlsym(library, 'graft_open'//c_null_char)
      if (.not. c_associated(address)) then
         rc = refuse(GRAFT_ERR_NOT_FOUND, "cannot use '"//file//"' as the Graft library: "//text_at(dlerror())// &
                     trim(merge(load_hint, repeat(' ', len(load_hint)), index(file, '/') == 0)))
      else
         call c_f_procpointer(address, open_library)
         api = c_null_ptr
         rc = open_library(1_c_int32_t, 1_c_int32_t, c_null_ptr, c_loc(api), c_loc(last))
         if (rc >= 0) then
            call self%close()
            self%api = api
         end if
      end if
      call finish(rc, null(), ierr)
   end subroutine

   subroutine context_close(self, ierr)
      class(graft_context), intent(inout) :: self
      integer, intent(out), optional :: ierr

      if (c_associated(self%api)) call free_p(self%api, api_close, pointer_in(self%api, api_context))
      self%api = c_null_ptr
      call succeed(ierr)
   end subroutine

   subroutine set_text(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key, value
      integer, intent(out), optional :: ierr
      character(kind=c_char, len=:), allocatable, target :: c_key, c_value
      integer(c_int32_t) :: rc

      c_key = trim(key)//c_null_char
      c_value = trim(value)//c_null_char
      if (c_associated(self%api)) then
         rc = run_pppp(self%api, api_set, pointer_in(self%api, api_context), c_loc(c_key), c_loc(c_value), c_loc(last))
      else
         rc = refuse(GRAFT_ERR_STATE, 'the context is not open')
      end if
      call finish(rc, null(), ierr)
   end subroutine

   subroutine set_i4(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      integer(int32), intent(in) :: value
      integer, intent(out), optional :: ierr

      call self%set_text(key, number_of(int(value, int64)), ierr)
   end subroutine

   subroutine set_i8(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      integer(int64), intent(in) :: value
      integer, intent(out), optional :: ierr

      call self%set_text(key, number_of(int(value, int64)), ierr)
   end subroutine

   subroutine set_r8(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      real(real64), intent(in) :: value
      integer, intent(out), optional :: ierr
      character(len=32) :: text

      write (text, '(es25.16e3)') value
      call self%set_text(key, adjustl(text), ierr)
   end subroutine

   subroutine set_r4(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      real(real32), intent(in) :: value
      integer, intent(out), optional :: ierr
      character(len=32) :: text

      write (text, '(es16.8e2)') value
      call self%set_text(key, adjustl(text), ierr)
   end subroutine

   ! The functions of an interface, if the library has them up to this slot.
   integer(c_int32_t) function find_table(api, id, last_slot, table) result(rc)
      type(c_ptr), intent(in) :: api
      character(len=*), intent(in) :: id
      integer, intent(in) :: last_slot
      type(c_ptr), intent(out) :: table
      character(kind=c_char, len=:), allocatable, target :: c_id
      integer(c_int32_t), pointer :: bytes

      table = c_null_ptr
      if (.not. c_associated(api)) then
         rc = refuse(GRAFT_ERR_STATE, 'the context is not open')
         return
      end if
      c_id = id//c_null_char
      table = get_pp(api, api_get_interface, pointer_in(api, api_context), c_loc(c_id))
      rc = GRAFT_OK
      if (c_associated(table)) then
         call c_f_pointer(table, bytes)
         if (bytes >= 8 * last_slot) return
      end if
      rc = refuse(GRAFT_ERR_VERSION, 'the library has no '//id//', or an older one than this program')
   end function

   ! Ranks

   subroutine ranks_open_i4(self, context, comm, ierr)
      class(graft_ranks), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(int32), intent(in) :: comm
      integer, intent(out), optional :: ierr

      call ranks_open(self, context, int(comm, c_int), ierr)
   end subroutine

   subroutine ranks_open_i8(self, context, comm, ierr)
      class(graft_ranks), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(int64), intent(in) :: comm
      integer, intent(out), optional :: ierr

      call ranks_open(self, context, int(comm, c_int), ierr)
   end subroutine

   subroutine ranks_open(self, context, comm, ierr)
      class(graft_ranks), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(c_int), intent(in), target :: comm
      integer, intent(out), optional :: ierr
      type(c_communicator), target :: communicator
      type(shared_ranks), pointer :: shared
      character(kind=c_char), target :: module_name(5)
      type(c_ptr) :: transports
      integer(c_int32_t) :: rc

      module_name = ['a', 'u', 't', 'o', c_null_char]
      communicator%bytes = int(c_sizeof(comm), c_int32_t)
      communicator%handle = c_loc(comm)
      communicator%kind = GRAFT_MPI_FORTRAN
      allocate (shared)
      shared%comm = comm
      shared%users = 1
      rc = find_table(context%api, GRAFT_TRANSPORT_ID, transport_api_open, transports)
      if (rc >= 0) rc = find_table(context%api, GRAFT_GROUP_ID, group_api_destroy, shared%table)
      if (rc >= 0) rc = run_ppppp(transports, transport_api_open, pointer_in(context%api, api_context), &
                                  c_loc(module_name), c_loc(communicator), c_loc(shared%transport), c_loc(last))
      if (rc >= 0) then
         rc = run_pppp(shared%table, group_api_create, pointer_in(context%api, api_context), c_loc(shared%transport), &
                       c_loc(shared%group), c_loc(last))
         if (rc < 0) call free_p(c_loc(shared%transport), transport_close, shared%transport%self)
      end if
      if (rc >= 0) then
         call self%destroy()
         self%shared => shared
      end if
      call finish(rc, shared, ierr)
      if (rc < 0) deallocate (shared)
   end subroutine

   integer function ranks_rank(self)
      class(graft_ranks), intent(in) :: self

      ranks_rank = rank_of(self%shared)
   end function

   integer function ranks_size(self)
      class(graft_ranks), intent(in) :: self

      ranks_size = n_ranks_of(self%shared)
   end function

   integer function rank_of(shared)
      type(shared_ranks), pointer, intent(in) :: shared

      rank_of = 0
      if (associated(shared)) rank_of = shared%transport%rank
   end function

   integer function n_ranks_of(shared)
      type(shared_ranks), pointer, intent(in) :: shared

      n_ranks_of = 1
      if (associated(shared)) n_ranks_of = shared%transport%n_ranks
   end function

   subroutine leave(shared)
      type(shared_ranks), pointer, intent(inout) :: shared

      if (.not. associated(shared)) return
      shared%users = shared%users - 1
      if (shared%users == 0) then
         call free_p(shared%table, group_api_destroy, shared%group)
         call free_p(c_loc(shared%transport), transport_close, shared%transport%self)
         deallocate (shared)
      end if
      nullify (shared)
   end subroutine

   subroutine ranks_destroy(self, ierr)
      class(graft_ranks), intent(inout) :: self
      integer, intent(out), optional :: ierr

      call leave(self%shared)
      call succeed(ierr)
   end subroutine

   subroutine context_final(self)
      type(graft_context), intent(inout) :: self

      call self%close()
   end subroutine

   subroutine ranks_final(self)
      type(graft_ranks), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine graph_final(self)
      type(graft_graph), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine plan_final(self)
      type(graft_plan), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine halo_final(self)
      type(graft_halo), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine mesh_final(self)
      type(graft_mesh), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine network_final(self)
      type(graft_network), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine stream_final(self)
      type(graft_stream), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine data_final(self)
      type(graft_dataset), intent(inout) :: self

      call self%destroy()
   end subroutine

   subroutine trainer_final(self)
      type(graft_trainer), intent(inout) :: self

      call self%destroy()
   end subroutine

   ! Objects

   subroutine object_destroy(self, ierr)
      class(object), intent(inout) :: self
      integer, intent(out), optional :: ierr

      if (c_associated(self%raw)) call free_p(self%table, self%freed_by, self%raw)
      self%raw = c_null_ptr
      call leave(self%shared)
      call succeed(ierr)
   end subroutine

   ! GRAFT_OK if the object exists.
   integer(c_int32_t) function ready(self)
      class(object), intent(in) :: self

      ready = GRAFT_OK
      if (.not. c_associated(self%raw)) ready = refuse(GRAFT_ERR_STATE, 'the object has not been created')
   end function

   ! Take over an object that the library has created, and free the previous one.
   subroutine adopt(self, freed_by, api, table, raw, shared)
      class(object), intent(inout) :: self
      integer, intent(in) :: freed_by
      type(c_ptr), intent(in) :: api, table, raw
      type(shared_ranks), pointer, intent(in) :: shared

      if (associated(shared)) shared%users = shared%users + 1
      call self%destroy()
      self%api = api
      self%table = table
      self%freed_by = freed_by
      self%raw = raw
      self%shared => shared
   end subroutine

   function shared_of(ranks) result(shared)
      type(graft_ranks), intent(in), optional :: ranks
      type(shared_ranks), pointer :: shared

      nullify (shared)
      if (present(ranks)) shared => ranks%shared
   end function

   type(c_ptr) function transport_of(shared)
      type(shared_ranks), pointer, intent(in) :: shared

      transport_of = c_null_ptr
      if (associated(shared)) transport_of = c_loc(shared%transport)
   end function

   ! Make a call whose only argument besides the object is the error.
   subroutine call_without(self, number, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      rc = ready(self)
      if (rc >= 0) rc = run_pp(self%table, number, self%raw, c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   ! Make a call with one pointer besides the error.
   subroutine call_with(self, number, argument, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      type(c_ptr), intent(in) :: argument
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      rc = ready(self)
      if (rc >= 0) rc = run_ppp(self%table, number, self%raw, argument, c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   ! Make a call with a number, such as a rank, before the pointer.
   subroutine call_with_number(self, number, n, argument, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number, n
      type(c_ptr), intent(in) :: argument
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      rc = ready(self)
      if (rc >= 0) rc = run_pipp(self%table, number, self%raw, int(n, c_int32_t), argument, c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine call_with_path(self, number, path, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr
      character(kind=c_char, len=:), allocatable, target :: c_path

      c_path = trim(path)//c_null_char
      call call_with(self, number, c_loc(c_path), ierr)
   end subroutine

   subroutine call_with_field(self, number, field, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      type(c_field), intent(in), target :: field
      integer, intent(out), optional :: ierr

      call call_with(self, number, c_loc(field), ierr)
   end subroutine

   ! The text that explain() returns, or the message of its failure.
   function explained(self, number) result(text)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      character(len=:), allocatable :: text
      character(kind=c_char), target :: letters(65536)
      integer(c_int32_t) :: rc

      letters(1) = c_null_char
      rc = ready(self)
      if (rc >= 0) rc = run_pplp(self%table, number, self%raw, c_loc(letters), size(letters, kind=c_int64_t), &
                                 c_loc(last))
      text = text_at(c_loc(letters))
      if (rc < 0) text = graft_message()
   end function

   ! Views of arrays

   integer(c_int64_t) function steps_between(first, second, bytes)
      type(c_ptr), intent(in) :: first, second
      integer, intent(in) :: bytes

      steps_between = (transfer(second, 0_c_intptr_t) - transfer(first, 0_c_intptr_t)) / bytes
   end function

   ! Which dimension of an array counts nodes.
   pure integer function nodes_of(layout)
      type(graft_layout), intent(in), optional :: layout

      nodes_of = 2
      if (present(layout)) nodes_of = layout%nodes
   end function

   type(c_field) function field_of(data, dtype, extent, stride, nodes)
      type(c_ptr), intent(in) :: data
      integer, intent(in) :: dtype, nodes
      integer(c_int64_t), intent(in) :: extent(2), stride(2)

      field_of%dtype = int(dtype, c_int32_t)
      field_of%data = data
      field_of%n_rows = extent(nodes)
      field_of%n_columns = extent(3 - nodes)
      field_of%row_stride = stride(nodes)
      field_of%column_stride = stride(3 - nodes)
   end function

   type(c_field) function view_r8(x, layout)
      real(real64), intent(in), target :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = [1_c_int64_t, max(size(x, 1, c_int64_t), 1_c_int64_t)]
      if (size(x) > 0) first = c_loc(x(1, 1))
      if (size(x) > 0 .and. size(x, 1) > 1) stride(1) = steps_between(first, c_loc(x(2, 1)), 8)
      if (size(x) > 0 .and. size(x, 2) > 1) stride(2) = steps_between(first, c_loc(x(1, 2)), 8)
      view_r8 = field_of(first, GRAFT_F64, shape(x, c_int64_t), stride, nodes_of(layout))
   end function

   type(c_field) function view_r4(x, layout)
      real(real32), intent(in), target :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = [1_c_int64_t, max(size(x, 1, c_int64_t), 1_c_int64_t)]
      if (size(x) > 0) first = c_loc(x(1, 1))
      if (size(x) > 0 .and. size(x, 1) > 1) stride(1) = steps_between(first, c_loc(x(2, 1)), 4)
      if (size(x) > 0 .and. size(x, 2) > 1) stride(2) = steps_between(first, c_loc(x(1, 2)), 4)
      view_r4 = field_of(first, GRAFT_F32, shape(x, c_int64_t), stride, nodes_of(layout))
   end function

   type(c_field) function view_r8_1(x)
      real(real64), intent(in), target :: x(:)
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = 1
      if (size(x) > 0) first = c_loc(x(1))
      if (size(x) > 1) stride(2) = steps_between(first, c_loc(x(2)), 8)
      view_r8_1 = field_of(first, GRAFT_F64, [1_c_int64_t, size(x, kind=c_int64_t)], stride, 2)
   end function

   type(c_field) function view_r4_1(x)
      real(real32), intent(in), target :: x(:)
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = 1
      if (size(x) > 0) first = c_loc(x(1))
      if (size(x) > 1) stride(2) = steps_between(first, c_loc(x(2)), 4)
      view_r4_1 = field_of(first, GRAFT_F32, [1_c_int64_t, size(x, kind=c_int64_t)], stride, 2)
   end function

   ! Describe a field as a matrix of rows. The elements of a row must be contiguous; otherwise the stride is illegal.
   type(c_dense) function dense_of(field)
      type(c_field), intent(in) :: field

      dense_of%dtype = field%dtype
      dense_of%n_rows = field%n_rows
      dense_of%n_cols = field%n_columns
      dense_of%stride = merge(-1_c_int64_t, field%row_stride, field%column_stride > 1 .and. field%n_columns > 1)
      dense_of%data = field%data
   end function

   ! Addresses of arrays, also of those without elements.
   type(c_ptr) function address_i1(x)
      integer(int8), intent(in), target, contiguous :: x(:)

      address_i1 = c_loc(nothing)
      if (size(x) > 0) address_i1 = c_loc(x)
   end function

   type(c_ptr) function address_i4(x)
      integer(int32), intent(in), target, contiguous :: x(:)

      address_i4 = c_loc(nothing)
      if (size(x) > 0) address_i4 = c_loc(x)
   end function

   type(c_ptr) function address_i8(x)
      integer(int64), intent(in), target, contiguous :: x(:)

      address_i8 = c_loc(nothing)
      if (size(x) > 0) address_i8 = c_loc(x)
   end function

   type(c_ptr) function address_r4(x)
      real(real32), intent(in), target, contiguous :: x(:)

      address_r4 = c_loc(nothing)
      if (size(x) > 0) address_r4 = c_loc(x)
   end function

   type(c_ptr) function address_r8(x)
      real(real64), intent(in), target, contiguous :: x(:)

      address_r8 = c_loc(nothing)
      if (size(x) > 0) address_r8 = c_loc(x)
   end function

   ! Graphs

   subroutine graph_rows_i4(self, row_ptr, columns, ierr)
      class(graft_graph), intent(inout) :: self
      integer(int32), intent(in) :: row_ptr(:), columns(:)
      integer, intent(out), optional :: ierr

      self%row_ptr = int(row_ptr - row_ptr(1), int64)
      self%columns = int(columns, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine graph_rows_i8(self, row_ptr, columns, ierr)
      class(graft_graph), intent(inout) :: self
      integer(int64), intent(in) :: row_ptr(:), columns(:)
      integer, intent(out), optional :: ierr

      self%row_ptr = int(row_ptr - row_ptr(1), int64)
      self%columns = int(columns, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine graph_values_r8(self, values, ierr)
      class(graft_graph), intent(inout) :: self
      real(real64), intent(in) :: values(:)
      integer, intent(out), optional :: ierr

      self%weight = real(values, real64)
      call succeed(ierr)
   end subroutine

   subroutine graph_values_r4(self, values, ierr)
      class(graft_graph), intent(inout) :: self
      real(real32), intent(in) :: values(:)
      integer, intent(out), optional :: ierr

      self%weight = real(values, real64)
      call succeed(ierr)
   end subroutine

   subroutine graph_owners_i4(self, owners, ierr)
      class(graft_graph), intent(inout) :: self
      integer(int32), intent(in) :: owners(:)
      integer, intent(out), optional :: ierr

      self%owner = int(owners, int32)
      call succeed(ierr)
   end subroutine

   subroutine graph_owners_i8(self, owners, ierr)
      class(graft_graph), intent(inout) :: self
      integer(int64), intent(in) :: owners(:)
      integer, intent(out), optional :: ierr

      self%owner = int(owners, int32)
      call succeed(ierr)
   end subroutine

   subroutine graph_create_i4(self, context, n_vertices, first, ranks, ierr)
      class(graft_graph), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(int32), intent(in) :: n_vertices, first
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr

      call graph_create(self, context, int(n_vertices, int64), int(first, int64), shared_of(ranks), ierr)
   end subroutine

   subroutine graph_create_i8(self, context, n_vertices, first, ranks, ierr)
      class(graft_graph), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(int64), intent(in) :: n_vertices, first
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr

      call graph_create(self, context, int(n_vertices, int64), int(first, int64), shared_of(ranks), ierr)
   end subroutine

   subroutine graph_create(self, context, n_vertices, first, shared, ierr)
      class(graft_graph), intent(inout), target :: self
      type(graft_context), intent(in) :: context
      integer(int64), intent(in) :: n_vertices, first
      type(shared_ranks), pointer, intent(in) :: shared
      integer, intent(out), optional :: ierr
      type(c_csr), target :: rows
      type(c_slice), target :: slice
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      slice%n_vertices = n_vertices
      slice%first_row = first - self%index_base
      if (allocated(self%row_ptr)) then
         rows = rows_of(self%row_ptr, self%columns, n_vertices)
         if (allocated(self%weight)) then
            rows%value_type = GRAFT_F64
            rows%values = address(self%weight)
         end if
         slice%rows = c_loc(rows)
      end if
      if (allocated(self%owner)) slice%owner = address(self%owner)
      rc = find_table(context%api, GRAFT_GRAPH_ID, graph_api_destroy, table)
      if (rc >= 0) rc = unless(graph_fault(self))
      rc = agreed(shared, rc)
      if (rc >= 0) rc = run_ppppp(table, graph_api_create, pointer_in(context%api, api_context), transport_of(shared), &
                                  c_loc(slice), c_loc(raw), c_loc(last))
      if (rc >= 0) then
         call adopt(self, graph_api_destroy, context%api, table, raw, shared)
         if (allocated(self%row_ptr)) deallocate (self%row_ptr, self%columns)
         if (allocated(self%weight)) deallocate (self%weight)
         if (allocated(self%owner)) deallocate (self%owner)
      end if
      call finish(rc, shared, ierr)
   end subroutine

   type(c_csr) function rows_of(row_ptr, columns, n_vertices)
      integer(int64), intent(in), target, contiguous :: row_ptr(:), columns(:)
      integer(int64), intent(in) :: n_vertices

      rows_of%index_type = GRAFT_I64
      rows_of%n_rows = size(row_ptr, kind=int64) - 1
      rows_of%n_cols = n_vertices
      rows_of%row_ptr = address(row_ptr)
      rows_of%col_idx = address(columns)
   end function

   function graph_fault(graph) result(fault)
      class(graft_graph), intent(in) :: graph
      character(len=:), allocatable :: fault
      integer(int64) :: n

      fault = ''
      if (.not. allocated(graph%row_ptr)) return
      n = graph%row_ptr(size(graph%row_ptr))
      call compare('columns', size(graph%columns, kind=int64), n, fault)
      if (allocated(graph%weight)) call compare('values', size(graph%weight, kind=int64), n, fault)
      n = size(graph%row_ptr, kind=int64) - 1
      if (allocated(graph%owner)) call compare('owners', size(graph%owner, kind=int64), n, fault)
   end function

   subroutine graph_update_r8(self, values, ierr)
      class(graft_graph), intent(in) :: self
      real(real64), intent(in) :: values(:)
      integer, intent(out), optional :: ierr
      real(real64), allocatable, target :: weight(:)
      type(c_dense), target :: one_column
      type(c_ptr) :: given, table
      integer(c_int32_t) :: rc

      allocate (weight(size(values))) ! because gfortran 12 warns about assignments that allocate
      weight(:) = real(values, real64)
      one_column = c_dense(dtype=GRAFT_F64, n_rows=size(values, kind=int64), n_cols=1, stride=1, data=address(weight))
      given = c_null_ptr
      if (size(values) > 0) given = c_loc(one_column)
      rc = ready(self)
      if (rc >= 0) rc = find_table(self%api, GRAFT_GRAPH_ID, graph_api_update_values, table)
      if (rc >= 0) rc = run_ppp(table, graph_api_update_values, self%raw, given, c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine graph_update_r4(self, values, ierr)
      class(graft_graph), intent(in) :: self
      real(real32), intent(in) :: values(:)
      integer, intent(out), optional :: ierr
      real(real64), allocatable, target :: weight(:)
      type(c_dense), target :: one_column
      type(c_ptr) :: given, table
      integer(c_int32_t) :: rc

      allocate (weight(size(values))) ! because gfortran 12 warns about assignments that allocate
      weight(:) = real(values, real64)
      one_column = c_dense(dtype=GRAFT_F64, n_rows=size(values, kind=int64), n_cols=1, stride=1, data=address(weight))
      given = c_null_ptr
      if (size(values) > 0) given = c_loc(one_column)
      rc = ready(self)
      if (rc >= 0) rc = find_table(self%api, GRAFT_GRAPH_ID, graph_api_update_values, table)
      if (rc >= 0) rc = run_ppp(table, graph_api_update_values, self%raw, given, c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine graph_owned(self, vertices, ierr)
      class(graft_graph), intent(in) :: self
      integer(int64), allocatable, intent(out) :: vertices(:)
      integer, intent(out), optional :: ierr
      integer(int64), pointer :: list(:)
      type(c_graph_info), target :: info
      integer :: rc

      call call_with_number(self, graph_api_info, rank_of(self%shared), c_loc(info), rc)
      if (rc >= 0) then
         call c_f_pointer(get_p(self%table, graph_api_owned, self%raw), list, [info%n_owned])
         vertices = list + self%index_base
      end if
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   ! Plans

   subroutine plan_create(self, graph, ierr)
      class(graft_plan), intent(inout) :: self
      type(graft_graph), intent(in) :: graph
      integer, intent(out), optional :: ierr
      type(c_plan_args), target :: args
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      args%flags = GRAFT_PLAN_TRANSPOSED
      rc = ready(graph)
      if (rc >= 0) rc = find_table(graph%api, GRAFT_AGGREGATE_ID, aggregate_api_destroy, table)
      if (rc >= 0) rc = run_pppp(table, aggregate_api_create, graph%raw, c_loc(args), c_loc(raw), c_loc(last))
      if (rc >= 0) call adopt(self, aggregate_api_destroy, graph%api, table, raw, graph%shared)
      call finish(rc, graph%shared, ierr)
   end subroutine

   subroutine multiply(self, x, y, is_whole, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      type(c_field), intent(in) :: x, y
      logical, intent(in) :: is_whole
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr
      type(c_aggregate_args), target :: args
      type(c_dense), target :: from, to
      integer :: rc

      from = dense_of(x)
      to = dense_of(y)
      args%semiring = GRAFT_PLUS_TIMES
      args%x = c_loc(from)
      args%out = c_loc(to)
      if (present(transposed)) then
         if (transposed) args%flags = GRAFT_AGGREGATE_TRANSPOSE
      end if
      call call_with(self, aggregate_api_begin, c_loc(args), rc)
      if (rc >= 0 .and. is_whole) call call_without(self, aggregate_api_end, rc)
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine plan_begin_r8(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:, :)
      real(real64), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .false., transposed, ierr)
   end subroutine

   subroutine plan_run_r8(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:, :)
      real(real64), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .true., transposed, ierr)
   end subroutine

   subroutine plan_begin_r8_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:)
      real(real64), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .false., transposed, ierr)
   end subroutine

   subroutine plan_run_r8_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:)
      real(real64), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .true., transposed, ierr)
   end subroutine

   subroutine plan_begin_r4(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:, :)
      real(real32), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .false., transposed, ierr)
   end subroutine

   subroutine plan_run_r4(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:, :)
      real(real32), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .true., transposed, ierr)
   end subroutine

   subroutine plan_begin_r4_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:)
      real(real32), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .false., transposed, ierr)
   end subroutine

   subroutine plan_run_r4_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:)
      real(real32), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call multiply(self, view(x), view(y), .true., transposed, ierr)
   end subroutine

   subroutine plan_end(self, ierr)
      class(graft_plan), intent(in) :: self
      integer, intent(out), optional :: ierr

      call call_without(self, aggregate_api_end, ierr)
   end subroutine

   ! Halos

   subroutine halo_create(self, graph, ierr)
      class(graft_halo), intent(inout) :: self
      type(graft_graph), intent(in) :: graph
      integer, intent(out), optional :: ierr
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      rc = ready(graph)
      if (rc >= 0) rc = find_table(graph%api, GRAFT_HALO_ID, halo_api_destroy, table)
      if (rc >= 0) rc = run_ppp(table, halo_api_create, graph%raw, c_loc(raw), c_loc(last))
      if (rc >= 0) call adopt(self, halo_api_destroy, graph%api, table, raw, graph%shared)
      if (rc >= 0) self%index_base = graph%index_base
      call finish(rc, graph%shared, ierr)
   end subroutine

   subroutine stream_create(self, network, ierr)
      class(graft_stream), intent(inout) :: self
      type(graft_network), intent(in) :: network
      integer, intent(out), optional :: ierr
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      rc = ready(network)
      if (rc >= 0) rc = find_table(network%api, GRAFT_STREAM_ID, stream_api_destroy, table)
      if (rc >= 0) rc = run_ppp(table, stream_api_create, network%raw, c_loc(raw), c_loc(last))
      if (rc >= 0) call adopt(self, stream_api_destroy, network%api, table, raw, network%shared)
      if (rc >= 0) self%index_base = network%index_base
      call finish(rc, network%shared, ierr)
   end subroutine

   subroutine halo_get_info(self, info, ierr)
      class(graft_halo), intent(in) :: self
      type(graft_halo_info), intent(inout), target :: info
      integer, intent(out), optional :: ierr

      call call_with(self, halo_api_info, c_loc(info), ierr)
   end subroutine

   subroutine halo_vertices(self, vertices, ierr)
      class(graft_halo), intent(in) :: self
      integer(int64), allocatable, intent(out) :: vertices(:)
      integer, intent(out), optional :: ierr
      integer(int64), pointer :: list(:)
      type(graft_halo_info), target :: info
      integer :: rc

      call call_with(self, halo_api_info, c_loc(info), rc)
      if (rc >= 0) then
         allocate (vertices(info%n_halo))
         if (info%n_halo > 0) then
            call c_f_pointer(info%vertex, list, [info%n_halo])
            vertices = list + self%index_base
         end if
      end if
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine move_rows(self, owned, halo, flags, is_whole, ierr)
      class(graft_halo), intent(inout) :: self
      type(c_field), intent(in) :: owned, halo
      integer, intent(in) :: flags
      logical, intent(in) :: is_whole
      integer, intent(out), optional :: ierr
      type(c_halo_args), target :: args
      type(c_dense), target :: from, to
      integer :: rc

      from = dense_of(owned)
      to = dense_of(halo)
      args%flags = int(flags, c_int32_t)
      args%owned = c_loc(from)
      args%halo = c_loc(to)
      call call_with(self, halo_api_begin, c_loc(args), rc)
      if (rc >= 0 .and. is_whole) call call_without(self, halo_api_end, rc)
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine halo_begin_r8(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(in), target :: owned(:, :)
      real(real64), intent(inout), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .false., ierr)
   end subroutine

   subroutine halo_sum_r8(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(inout), target :: owned(:, :)
      real(real64), intent(in), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), GRAFT_HALO_SUM, .false., ierr)
   end subroutine

   subroutine halo_exchange_r8(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(in), target :: owned(:, :)
      real(real64), intent(inout), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .true., ierr)
   end subroutine

   subroutine halo_begin_r8_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(in), target :: owned(:)
      real(real64), intent(inout), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .false., ierr)
   end subroutine

   subroutine halo_sum_r8_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(inout), target :: owned(:)
      real(real64), intent(in), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), GRAFT_HALO_SUM, .false., ierr)
   end subroutine

   subroutine halo_exchange_r8_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real64), intent(in), target :: owned(:)
      real(real64), intent(inout), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .true., ierr)
   end subroutine

   subroutine halo_begin_r4(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(in), target :: owned(:, :)
      real(real32), intent(inout), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .false., ierr)
   end subroutine

   subroutine halo_sum_r4(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(inout), target :: owned(:, :)
      real(real32), intent(in), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), GRAFT_HALO_SUM, .false., ierr)
   end subroutine

   subroutine halo_exchange_r4(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(in), target :: owned(:, :)
      real(real32), intent(inout), target :: halo(:, :)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .true., ierr)
   end subroutine

   subroutine halo_begin_r4_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(in), target :: owned(:)
      real(real32), intent(inout), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .false., ierr)
   end subroutine

   subroutine halo_sum_r4_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(inout), target :: owned(:)
      real(real32), intent(in), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), GRAFT_HALO_SUM, .false., ierr)
   end subroutine

   subroutine halo_exchange_r4_1(self, owned, halo, ierr)
      class(graft_halo), intent(inout) :: self
      real(real32), intent(in), target :: owned(:)
      real(real32), intent(inout), target :: halo(:)
      integer, intent(out), optional :: ierr

      call move_rows(self, view(owned), view(halo), 0, .true., ierr)
   end subroutine

   subroutine halo_end(self, ierr)
      class(graft_halo), intent(in) :: self
      integer, intent(out), optional :: ierr

      call call_without(self, halo_api_end, ierr)
   end subroutine

   ! Meshes

   subroutine coordinates_r8(self, x, layout, ierr)
      class(graft_mesh), intent(inout) :: self
      real(real64), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr

      self%x = by_node(real(x, real64), layout)
      call succeed(ierr)
   end subroutine

   subroutine coordinates_r4(self, x, layout, ierr)
      class(graft_mesh), intent(inout) :: self
      real(real32), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr

      self%x = by_node(real(x, real64), layout)
      call succeed(ierr)
   end subroutine

   ! Copy values to the layout x(component, node).
   function by_node(x, layout) result(values)
      real(real64), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      real(real64), allocatable :: values(:, :)

      if (nodes_of(layout) == 2) then
         values = x
      else
         values = transpose(x)
      end if
   end function

   subroutine mesh_ids_i4(self, ids, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: ids(:)
      integer, intent(out), optional :: ierr

      self%id = int(ids, int64)
      call succeed(ierr)
   end subroutine

   subroutine mesh_ids_i8(self, ids, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: ids(:)
      integer, intent(out), optional :: ierr

      self%id = int(ids, int64)
      call succeed(ierr)
   end subroutine

   subroutine mesh_owners_i4(self, owners, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: owners(:)
      integer, intent(out), optional :: ierr

      self%owner = int(owners, int32)
      call succeed(ierr)
   end subroutine

   subroutine mesh_owners_i8(self, owners, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: owners(:)
      integer, intent(out), optional :: ierr

      self%owner = int(owners, int32)
      call succeed(ierr)
   end subroutine

   subroutine cells_i4(self, type, nodes, ierr)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: type
      integer(int32), intent(in) :: nodes(:, :)
      integer, intent(out), optional :: ierr

      if (allocated(self%types)) deallocate (self%types)
      self%cell_type = type
      self%n_cells = size(nodes, 2, int64)
      self%nodes = reshape(int(nodes, int64), [size(nodes, kind=int64)])
      call succeed(ierr)
   end subroutine

   subroutine cells_i8(self, type, nodes, ierr)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: type
      integer(int64), intent(in) :: nodes(:, :)
      integer, intent(out), optional :: ierr

      if (allocated(self%types)) deallocate (self%types)
      self%cell_type = type
      self%n_cells = size(nodes, 2, int64)
      self%nodes = reshape(int(nodes, int64), [size(nodes, kind=int64)])
      call succeed(ierr)
   end subroutine

   subroutine mixed_i4(self, types, nodes, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: types(:), nodes(:)
      integer, intent(out), optional :: ierr

      self%types = int(min(int(types), 127), int8)
      self%n_cells = size(types, kind=int64)
      self%nodes = int(nodes, int64)
      call succeed(ierr)
   end subroutine

   subroutine mixed_i8(self, types, nodes, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: types(:), nodes(:)
      integer, intent(out), optional :: ierr

      self%types = int(min(int(types), 127), int8)
      self%n_cells = size(types, kind=int64)
      self%nodes = int(nodes, int64)
      call succeed(ierr)
   end subroutine

   subroutine edges_i4(self, sources, targets, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: sources(:), targets(:)
      integer, intent(out), optional :: ierr

      self%sources = int(sources, int64)
      self%targets = int(targets, int64)
      call succeed(ierr)
   end subroutine

   subroutine edges_i8(self, sources, targets, ierr)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: sources(:), targets(:)
      integer, intent(out), optional :: ierr

      self%sources = int(sources, int64)
      self%targets = int(targets, int64)
      call succeed(ierr)
   end subroutine

   ! A wrong axis is refused now, and again by create(), on all ranks.
   subroutine mesh_period(self, axis, length, ierr)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: axis
      real(real64), intent(in) :: length
      integer, intent(out), optional :: ierr

      self%bad_axis = 0
      if (axis >= 1 .and. axis <= 3) then
         self%periods(axis) = length
      else
         self%bad_axis = axis
      end if
      call finish(unless(axis_fault(self)), null(), ierr)
   end subroutine

   function axis_fault(mesh) result(fault)
      class(graft_mesh), intent(in) :: mesh
      character(len=:), allocatable :: fault

      fault = ''
      if (mesh%bad_axis /= 0) &
         fault = 'the axis of a period is '//number_of(int(mesh%bad_axis, int64))//', not 1, 2 or 3'
   end function

   ! The number of nodes of a cell; 0 for an unknown type, which the library refuses.
   elemental integer function corners_of(type)
      integer, intent(in) :: type
      integer, parameter :: corners(14) = [0, 0, 2, 0, 3, 0, 0, 0, 4, 4, 0, 8, 6, 5]

      corners_of = 0
      if (type >= 1 .and. type <= 14) corners_of = corners(type)
   end function

   ! The message about arrays of this rank that do not fit; empty if all fit.
   function mesh_fault(self) result(fault)
      class(graft_mesh), intent(in) :: self
      character(len=:), allocatable :: fault
      integer(int64) :: n

      fault = axis_fault(self)
      if (.not. allocated(self%x)) then
         fault = 'the mesh has no coordinates'
         return
      end if
      n = size(self%x, 2, int64)
      if (allocated(self%id)) call compare('ids', size(self%id, kind=int64), n, fault)
      if (allocated(self%owner)) call compare('owners', size(self%owner, kind=int64), n, fault)
      if (fault == '' .and. (size(self%x, 1) < 1 .or. size(self%x, 1) > 3)) &
         fault = 'coordinates have '//number_of(size(self%x, 1, int64))//' dimensions, expected 1 to 3'
      if (fault /= '') fault = fault//'. Coordinates are '//number_of(n)//' nodes x(dim, node); x(node, dim) needs &
                               &layout=graft_node_component'
      if (allocated(self%types)) call compare('nodes of cells', size(self%nodes, kind=int64), &
                                              sum(int(corners_of(int(self%types)), int64)), fault)
      if (allocated(self%nodes) .and. .not. allocated(self%types) .and. corners_of(self%cell_type) > 0) &
         call compare('nodes of cells', size(self%nodes, kind=int64), self%n_cells*corners_of(self%cell_type), fault)
      if (allocated(self%sources)) &
         call compare('targets of edges', size(self%targets, kind=int64), size(self%sources, kind=int64), fault)
   end function

   subroutine mesh_create(self, context, kind, ranks, ierr)
      class(graft_mesh), intent(inout), target :: self
      type(graft_context), intent(in) :: context
      integer, intent(in) :: kind
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr
      type(shared_ranks), pointer :: shared
      type(c_mesh_args), target :: args
      type(c_field), target :: x
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      shared => shared_of(ranks)
      rc = find_table(context%api, GRAFT_MESH_ID, mesh_api_destroy, table)
      if (rc >= 0) rc = unless(mesh_fault(self))
      rc = agreed(shared, rc)
      if (rc >= 0) then
         x = view(self%x)
         args%kind = int(kind, c_int32_t)
         args%coordinates = c_loc(x)
         call fill_mesh_args(self, args)
         rc = run_ppppp(table, mesh_api_create, pointer_in(context%api, api_context), transport_of(shared), c_loc(args), &
                        c_loc(raw), c_loc(last))
      end if
      if (rc >= 0) then
         call adopt(self, mesh_api_destroy, context%api, table, raw, shared)
         self%n_rows = size(self%x, 2)
         deallocate (self%x)
         if (allocated(self%id)) deallocate (self%id)
         if (allocated(self%owner)) deallocate (self%owner)
         if (allocated(self%nodes)) deallocate (self%nodes)
         if (allocated(self%types)) deallocate (self%types)
         if (allocated(self%sources)) deallocate (self%sources, self%targets)
      end if
      call finish(rc, shared, ierr)
   end subroutine

   subroutine fill_mesh_args(self, args)
      class(graft_mesh), intent(in), target :: self
      type(c_mesh_args), intent(inout) :: args

      args%dim = int(size(self%x, 1), c_int32_t)
      args%n_rows = size(self%x, 2, int64)
      args%index_base = int(self%index_base, c_int32_t)
      args%id_type = GRAFT_I64
      args%index_type = GRAFT_I64
      args%period = self%periods
      if (allocated(self%id)) args%ids = address(self%id)
      if (allocated(self%owner)) args%owners = address(self%owner)
      if (allocated(self%nodes)) then
         args%n_cells = self%n_cells
         args%cell_type = int(self%cell_type, c_int32_t)
         args%cell_nodes = address(self%nodes)
         if (allocated(self%types)) args%cell_types = address(self%types)
      end if
      if (allocated(self%sources)) then
         args%n_edges = size(self%sources, kind=int64)
         args%edge_sources = address(self%sources)
         args%edge_targets = address(self%targets)
      end if
   end subroutine

   subroutine mesh_get_info(self, info, rank, ierr)
      class(graft_mesh), intent(in) :: self
      type(graft_mesh_info), intent(inout), target :: info
      integer, intent(in) :: rank
      integer, intent(out), optional :: ierr

      call call_with_number(self, mesh_api_info, rank, c_loc(info), ierr)
   end subroutine

   subroutine mesh_get_view(self, view, ierr)
      class(graft_mesh), intent(in) :: self
      type(graft_mesh_view), intent(out) :: view
      integer, intent(out), optional :: ierr
      type(c_mesh_view), target :: raw
      integer :: rc

      call call_with(self, mesh_api_view, c_loc(raw), rc)
      if (rc >= 0) then
         call c_f_pointer(raw%node_of, view%node_of, [raw%n_rows])
         call c_f_pointer(raw%row_of, view%row_of, [raw%n_nodes])
         call c_f_pointer(raw%id, view%id, [raw%n_nodes])
         call c_f_pointer(raw%row_ptr, view%row_ptr, [raw%n_nodes + 1])
         call c_f_pointer(raw%source, view%source, [raw%n_edges])
         call c_f_pointer(raw%position, view%position, [int(raw%dim, c_int64_t), raw%n_sources])
         call c_f_pointer(raw%halo_start, view%halo_start, [n_ranks_of(self%shared) + 1])
         call c_f_pointer(raw%halo_node, view%halo_node, [raw%n_halo])
         if (c_associated(raw%node_weight)) call c_f_pointer(raw%node_weight, view%node_weight, [raw%n_nodes])
         if (c_associated(raw%edge_ranks)) call c_f_pointer(raw%edge_ranks, view%edge_ranks, [raw%n_edges])
      end if
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   function mesh_explain(self) result(text)
      class(graft_mesh), intent(in) :: self
      character(len=:), allocatable :: text

      text = explained(self, mesh_api_explain)
   end function

   ! Networks

   subroutine network_constant_r8(self, x, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr

      self%fixed = by_node(real(x, real64), layout)
      call succeed(ierr)
   end subroutine

   subroutine network_constant_r4(self, x, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr

      self%fixed = by_node(real(x, real64), layout)
      call succeed(ierr)
   end subroutine

   subroutine network_is_free(self, is_free, ierr)
      class(graft_network), intent(inout) :: self
      logical, intent(in) :: is_free(:)
      integer, intent(out), optional :: ierr

      self%free_node = merge(1_int8, 0_int8, is_free)
      call succeed(ierr)
   end subroutine

   subroutine network_weight_r8(self, weight, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in) :: weight(:)
      integer, intent(out), optional :: ierr

      self%weight = real(weight, real64)
      call succeed(ierr)
   end subroutine

   subroutine network_weight_r4(self, weight, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in) :: weight(:)
      integer, intent(out), optional :: ierr

      self%weight = real(weight, real64)
      call succeed(ierr)
   end subroutine

   ! The message about arrays whose number of nodes differs from that of the mesh; empty if there is none.
   function network_fault(self, n) result(fault)
      class(graft_network), intent(in) :: self
      integer(int64), intent(in) :: n
      character(len=:), allocatable :: fault

      fault = ''
      if (allocated(self%fixed)) call compare('nodes of constant', size(self%fixed, 2, int64), n, fault)
      if (allocated(self%free_node)) call compare('is_free', size(self%free_node, kind=int64), n, fault)
      if (allocated(self%weight)) call compare('loss_weight', size(self%weight, kind=int64), n, fault)
   end function

   subroutine network_create(self, mesh, n_in, n_out, predicts, ierr)
      class(graft_network), intent(inout), target :: self
      type(graft_mesh), intent(in) :: mesh
      integer, intent(in) :: n_in, n_out, predicts
      integer, intent(out), optional :: ierr
      type(c_network_args), target :: args
      type(c_field), target :: constant
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      args%n_in = int(n_in, c_int32_t)
      args%n_out = int(n_out, c_int32_t)
      args%predicts = int(predicts, c_int32_t)
      if (allocated(self%fixed)) then
         constant = view(self%fixed)
         args%constant = c_loc(constant)
      end if
      if (allocated(self%free_node)) args%is_free = address(self%free_node)
      if (allocated(self%weight)) args%loss_weight = address(self%weight)
      rc = ready(mesh)
      if (rc >= 0) rc = find_table(mesh%api, GRAFT_NETWORK_ID, network_api_destroy, table)
      if (rc >= 0) rc = unless(network_fault(self, mesh%n_rows))
      rc = agreed(mesh%shared, rc)
      if (rc >= 0) rc = run_pppp(table, network_api_create, mesh%raw, c_loc(args), c_loc(raw), c_loc(last))
      if (rc >= 0) then
         call adopt(self, network_api_destroy, mesh%api, table, raw, mesh%shared)
         if (allocated(self%fixed)) deallocate (self%fixed)
         if (allocated(self%free_node)) deallocate (self%free_node)
         if (allocated(self%weight)) deallocate (self%weight)
      end if
      call finish(rc, mesh%shared, ierr)
   end subroutine

   subroutine network_begin_r8(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state), ierr)
   end subroutine

   subroutine network_begin_r8_as(self, state, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state, layout), ierr)
   end subroutine

   subroutine network_begin_r8_1(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state), ierr)
   end subroutine

   subroutine network_begin_r4(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state), ierr)
   end subroutine

   subroutine network_begin_r4_as(self, state, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state, layout), ierr)
   end subroutine

   subroutine network_begin_r4_1(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_begin, view(state), ierr)
   end subroutine

   subroutine network_end_r8(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: result(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result), ierr)
   end subroutine

   subroutine network_end_r8_as(self, result, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: result(:, :)
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result, layout), ierr)
   end subroutine

   subroutine network_end_r8_1(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: result(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result), ierr)
   end subroutine

   subroutine network_end_r4(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: result(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result), ierr)
   end subroutine

   subroutine network_end_r4_as(self, result, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: result(:, :)
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result, layout), ierr)
   end subroutine

   subroutine network_end_r4_1(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: result(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, network_api_end, view(result), ierr)
   end subroutine

   integer(c_int32_t) function call_after(arg, step) bind(c)
      type(c_ptr), value :: arg
      integer(c_int32_t), value :: step
      type(each_step), pointer :: each

      call c_f_pointer(arg, each)
      call_after = int(each%after(int(step)), c_int32_t)
   end function

   subroutine roll_out(self, state, steps, after, ierr)
      class(graft_network), intent(in) :: self
      type(c_field), intent(in), target :: state
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr
      type(each_step), target :: each
      type(c_rollout), target :: args

      args%steps = int(steps, c_int32_t)
      args%initial = c_loc(state)
      args%state = c_loc(state)
      if (present(after)) then
         each%after => after
         args%after = c_funloc(call_after)
         args%arg = c_loc(each)
      end if
      call call_with(self, network_api_rollout, c_loc(args), ierr)
   end subroutine

   subroutine rollout_r8(self, state, steps, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: state(:, :)
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state), steps, after, ierr)
   end subroutine

   subroutine rollout_r8_as(self, state, steps, layout, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: state(:, :)
      integer, intent(in) :: steps
      type(graft_layout), intent(in) :: layout
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state, layout), steps, after, ierr)
   end subroutine

   subroutine rollout_r8_1(self, state, steps, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: state(:)
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state), steps, after, ierr)
   end subroutine

   subroutine rollout_r4(self, state, steps, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: state(:, :)
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state), steps, after, ierr)
   end subroutine

   subroutine rollout_r4_as(self, state, steps, layout, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: state(:, :)
      integer, intent(in) :: steps
      type(graft_layout), intent(in) :: layout
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state, layout), steps, after, ierr)
   end subroutine

   subroutine rollout_r4_1(self, state, steps, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: state(:)
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state), steps, after, ierr)
   end subroutine

   subroutine train_one(self, state, target, step, ierr)
      class(graft_network), intent(in) :: self
      type(c_field), intent(in), target :: state, target
      type(graft_network_step), intent(inout), target :: step
      integer, intent(out), optional :: ierr
      type(c_pair), target :: pair
      integer(c_int32_t) :: rc

      pair%input = c_loc(state)
      pair%target = c_loc(target)
      rc = ready(self)
      if (rc >= 0) rc = run_ppipp(self%table, network_api_train, self%raw, c_loc(pair), 1_c_int32_t, c_loc(step), &
                                  c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine train_r8(self, state, target, step, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      type(graft_network_step), intent(inout) :: step
      integer, intent(out), optional :: ierr

      call train_one(self, view(state), view(target), step, ierr)
   end subroutine

   subroutine train_r8_as(self, state, target, step, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      type(graft_network_step), intent(inout) :: step
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call train_one(self, view(state, layout), view(target, layout), step, ierr)
   end subroutine

   subroutine train_r8_1(self, state, target, step, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      real(real64), intent(in), target :: target(:)
      type(graft_network_step), intent(inout) :: step
      integer, intent(out), optional :: ierr

      call train_one(self, view(state), view(target), step, ierr)
   end subroutine

   subroutine train_r4(self, state, target, step, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real32), intent(in), target :: target(:, :)
      type(graft_network_step), intent(inout) :: step
      integer, intent(out), optional :: ierr

      call train_one(self, view(state), view(target), step, ierr)
   end subroutine

   subroutine train_r4_as(self, state, target, step, layout, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real32), intent(in), target :: target(:, :)
      type(graft_network_step), intent(inout) :: step
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call train_one(self, view(state, layout), view(target, layout), step, ierr)
   end subroutine

   subroutine train_r4_1(self, state, target, step, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      real(real32), intent(in), target :: target(:)
      type(graft_network_step), intent(inout) :: step
      integer, intent(out), optional :: ierr

      call train_one(self, view(state), view(target), step, ierr)
   end subroutine

   subroutine network_save(self, path, ierr)
      class(graft_network), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, network_api_save, path, ierr)
   end subroutine

   subroutine network_load(self, path, ierr)
      class(graft_network), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, network_api_load, path, ierr)
   end subroutine

   subroutine network_get_info(self, info, ierr)
      class(graft_network), intent(in) :: self
      type(graft_network_info), intent(inout), target :: info
      integer, intent(out), optional :: ierr

      call call_with(self, network_api_info, c_loc(info), ierr)
   end subroutine

   function network_explain(self) result(text)
      class(graft_network), intent(in) :: self
      character(len=:), allocatable :: text

      text = explained(self, network_api_explain)
   end function

   ! Streams

   ! Offer a state, with a target, or as a target of the state before it.
   subroutine offer_state(self, state, time, ierr, first, target)
      class(graft_stream), intent(in) :: self
      type(c_field), intent(in), target :: state
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr
      logical, intent(in), optional :: first
      type(c_field), intent(in), target, optional :: target
      type(c_sample_state), target :: args

      args%input = c_loc(state)
      args%time = time
      if (present(first)) then
         if (first) args%flags = GRAFT_STREAM_FIRST
      end if
      if (present(target)) args%target = c_loc(target)
      call call_with(self, stream_api_offer, c_loc(args), ierr)
   end subroutine

   subroutine offer_r8(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, first)
   end subroutine

   subroutine offer_r8_as(self, state, time, layout, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      type(graft_layout), intent(in) :: layout
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, layout), time, ierr, first)
   end subroutine

   subroutine offer_r8_1(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, first)
   end subroutine

   subroutine offer_r4(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, first)
   end subroutine

   subroutine offer_r4_as(self, state, time, layout, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      type(graft_layout), intent(in) :: layout
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, layout), time, ierr, first)
   end subroutine

   subroutine offer_r4_1(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, first)
   end subroutine

   subroutine pair_r8(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, target=view(target))
   end subroutine

   subroutine pair_r8_as(self, state, target, time, layout, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, layout), time, ierr, target=view(target, layout))
   end subroutine

   subroutine pair_r8_1(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      real(real64), intent(in), target :: target(:)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, target=view(target))
   end subroutine

   subroutine pair_r4(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real32), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, target=view(target))
   end subroutine

   subroutine pair_r4_as(self, state, target, time, layout, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real32), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      type(graft_layout), intent(in) :: layout
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, layout), time, ierr, target=view(target, layout))
   end subroutine

   subroutine pair_r4_1(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      real(real32), intent(in), target :: target(:)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, ierr, target=view(target))
   end subroutine

   subroutine stream_step(self, milliseconds, max_steps, status, ierr)
      class(graft_stream), intent(in) :: self
      real(real64), intent(in) :: milliseconds
      integer, intent(in) :: max_steps
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      rc = ready(self)
      if (rc >= 0) rc = run_pdipp(self%table, stream_api_step, self%raw, milliseconds, int(max_steps, c_int32_t), &
                                  c_loc(status), c_loc(last))
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine stream_validate(self, status, ierr)
      class(graft_stream), intent(in) :: self
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr

      call call_with(self, stream_api_validate, c_loc(status), ierr)
   end subroutine

   subroutine stream_get_status(self, status, ierr)
      class(graft_stream), intent(in) :: self
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr

      call call_with(self, stream_api_status, c_loc(status), ierr)
   end subroutine

   subroutine stream_save(self, path, ierr)
      class(graft_stream), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, stream_api_save, path, ierr)
   end subroutine

   subroutine stream_load(self, path, ierr)
      class(graft_stream), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, stream_api_load, path, ierr)
   end subroutine

   ! Data sets

   ! The arrays of a data set. They are allocated when the first array is given.
   function arrays_of(self) result(arrays)
      class(graft_dataset), intent(inout) :: self
      type(data_arrays), pointer :: arrays

      if (.not. associated(self%arrays)) then
         allocate (self%arrays)
         self%arrays%set%n_vertices = -1
      end if
      arrays => self%arrays
   end function

   subroutine data_rows_i4(self, row_ptr, columns, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int32), intent(in) :: row_ptr(:), columns(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%row_ptr = int(row_ptr - row_ptr(1), int64)
      arrays%columns = int(columns, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine data_rows_i8(self, row_ptr, columns, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int64), intent(in) :: row_ptr(:), columns(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%row_ptr = int(row_ptr - row_ptr(1), int64)
      arrays%columns = int(columns, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine data_values_r8(self, values, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real64), intent(in) :: values(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%weight = real(values, real32)
      call succeed(ierr)
   end subroutine

   subroutine data_values_r4(self, values, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real32), intent(in) :: values(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%weight = real(values, real32)
      call succeed(ierr)
   end subroutine

   subroutine features_r8(self, x, layout, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real64), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%x = real(by_node(real(x, real64), layout), real32)
      call succeed(ierr)
   end subroutine

   subroutine features_r4(self, x, layout, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real32), intent(in) :: x(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%x = real(by_node(real(x, real64), layout), real32)
      call succeed(ierr)
   end subroutine

   subroutine labels_i4(self, labels, n_classes, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int32), intent(in) :: labels(:)
      integer, intent(in) :: n_classes
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%label = int(labels, int32)
      arrays%set%n_classes = n_classes
      call succeed(ierr)
   end subroutine

   subroutine labels_i8(self, labels, n_classes, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int64), intent(in) :: labels(:)
      integer, intent(in) :: n_classes
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%label = int(labels, int32)
      arrays%set%n_classes = n_classes
      call succeed(ierr)
   end subroutine

   subroutine targets_r8(self, y, layout, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real64), intent(in) :: y(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%y = real(by_node(real(y, real64), layout), real32)
      arrays%set%n_classes = size(arrays%y, 1, int64)
      call succeed(ierr)
   end subroutine

   subroutine targets_r4(self, y, layout, ierr)
      class(graft_dataset), intent(inout) :: self
      real(real32), intent(in) :: y(:, :)
      type(graft_layout), intent(in), optional :: layout
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%y = real(by_node(real(y, real64), layout), real32)
      arrays%set%n_classes = size(arrays%y, 1, int64)
      call succeed(ierr)
   end subroutine

   subroutine split_i4(self, split, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int32), intent(in) :: split(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%part = int(split, int8)
      call succeed(ierr)
   end subroutine

   subroutine split_i8(self, split, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int64), intent(in) :: split(:)
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%part = int(split, int8)
      call succeed(ierr)
   end subroutine

   subroutine slice_i4(self, n_vertices, first, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int32), intent(in) :: n_vertices, first
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%set%n_vertices = int(n_vertices, int64)
      arrays%set%first_vertex = int(first, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine slice_i8(self, n_vertices, first, ierr)
      class(graft_dataset), intent(inout) :: self
      integer(int64), intent(in) :: n_vertices, first
      integer, intent(out), optional :: ierr
      type(data_arrays), pointer :: arrays

      arrays => arrays_of(self)
      arrays%set%n_vertices = int(n_vertices, int64)
      arrays%set%first_vertex = int(first, int64) - self%index_base
      call succeed(ierr)
   end subroutine

   subroutine data_open(self, context, path, ranks, ierr)
      class(graft_dataset), intent(inout) :: self
      type(graft_context), intent(in) :: context
      character(len=*), intent(in) :: path
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr
      character(kind=c_char, len=:), allocatable, target :: c_path
      type(shared_ranks), pointer :: shared
      type(c_dataset), pointer :: set
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      shared => shared_of(ranks)
      c_path = trim(path)//c_null_char
      rc = agreed(shared, find_table(context%api, GRAFT_DATA_ID, data_api_open_slice, table))
      if (rc >= 0) rc = run_ppppp(table, data_api_open_slice, pointer_in(context%api, api_context), &
                                  transport_of(shared), c_loc(c_path), c_loc(raw), c_loc(last))
      if (rc >= 0) then
         call self%destroy()
         allocate (self%arrays)
         self%arrays%api = context%api
         self%arrays%table = table
         self%arrays%raw = raw
         call c_f_pointer(get_p(table, data_api_view, raw), set)
         self%arrays%set = set
      end if
      call finish(rc, shared, ierr)
   end subroutine

   subroutine data_destroy(self, ierr)
      class(graft_dataset), intent(inout) :: self
      integer, intent(out), optional :: ierr

      call free_arrays(self%arrays)
      call succeed(ierr)
   end subroutine

   subroutine free_arrays(arrays)
      type(data_arrays), pointer, intent(inout) :: arrays

      if (.not. associated(arrays)) return
      if (c_associated(arrays%graph)) call free_p(arrays%graphs, graph_api_destroy, arrays%graph)
      if (c_associated(arrays%raw)) call free_p(arrays%table, data_api_close, arrays%raw)
      deallocate (arrays)
      nullify (arrays)
   end subroutine

   ! Trainers

   ! The sentence about arrays that do not fit; empty if all do.
   function data_fault(arrays) result(fault)
      type(data_arrays), pointer, intent(in) :: arrays
      character(len=:), allocatable :: fault
      integer(int64) :: n, m

      fault = ''
      if (.not. associated(arrays)) then
         fault = 'the data set has no arrays: call rows() and features(), or open()'
      else if (.not. c_associated(arrays%raw)) then
         if (.not. (allocated(arrays%row_ptr) .and. allocated(arrays%x))) then
            fault = 'the data set has no rows or no features'
            return
         end if
         n = size(arrays%row_ptr, kind=int64) - 1
         m = arrays%row_ptr(n + 1)
         call compare('columns', size(arrays%columns, kind=int64), m, fault)
         if (allocated(arrays%weight)) call compare('values', size(arrays%weight, kind=int64), m, fault)
         call compare('vertices of features', size(arrays%x, 2, int64), n, fault)
         if (allocated(arrays%label)) call compare('labels', size(arrays%label, kind=int64), n, fault)
         if (allocated(arrays%y)) call compare('vertices of targets', size(arrays%y, 2, int64), n, fault)
         if (allocated(arrays%part)) call compare('split', size(arrays%part, kind=int64), n, fault)
      end if
   end function

   ! Describe the arrays of the program to the library.
   subroutine fill_set(arrays)
      type(data_arrays), pointer, intent(in) :: arrays
      type(c_dataset), pointer :: set

      set => arrays%set
      set%n_slice = size(arrays%row_ptr, kind=int64) - 1
      if (set%n_vertices < 0) set%n_vertices = set%n_slice
      arrays%rows = rows_of(arrays%row_ptr, arrays%columns, set%n_vertices)
      if (allocated(arrays%weight)) then
         arrays%rows%value_type = GRAFT_F32
         arrays%rows%values = address(arrays%weight)
      end if
      set%graph = c_loc(arrays%rows)
      set%n_features = size(arrays%x, 1, int64)
      arrays%features = dense_of(view(arrays%x))
      set%features = c_loc(arrays%features)
      if (allocated(arrays%label)) set%labels = address(arrays%label)
      if (allocated(arrays%part)) set%split = address(arrays%part)
      if (allocated(arrays%y)) then
         arrays%outputs = dense_of(view(arrays%y))
         set%float_targets = c_loc(arrays%outputs)
      end if
   end subroutine

   ! Distribute the graph of the slices over ranks, with about as many training vertices on each rank.
   integer(c_int32_t) function distribute(arrays, api, shared) result(rc)
      type(data_arrays), pointer, intent(in) :: arrays
      type(c_ptr), intent(in) :: api
      type(shared_ranks), pointer, intent(in) :: shared
      type(c_slice), target :: slice
      type(c_ptr), target :: raw
      integer(c_int8_t), pointer :: split(:)

      slice%n_vertices = arrays%set%n_vertices
      slice%first_row = arrays%set%first_vertex
      slice%rows = arrays%set%graph
      if (c_associated(arrays%set%split)) then
         call c_f_pointer(arrays%set%split, split, [arrays%set%n_slice])
         arrays%is_trained = merge(1_int8, 0_int8, split == GRAFT_SPLIT_TRAIN)
         slice%train_mask = address(arrays%is_trained)
      end if
      rc = run_ppppp(arrays%graphs, graph_api_create, pointer_in(api, api_context), transport_of(shared), c_loc(slice), &
                     c_loc(raw), c_loc(last))
      if (rc < 0) return
      arrays%graph = raw
      arrays%set%over = raw
   end function

   subroutine trainer_create(self, context, dataset, ranks, ierr)
      class(graft_trainer), intent(inout) :: self
      type(graft_context), intent(in) :: context
      type(graft_dataset), intent(inout) :: dataset
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr
      type(shared_ranks), pointer :: shared
      type(data_arrays), pointer :: arrays
      type(c_ptr), target :: raw
      type(c_ptr) :: table, graphs
      integer(c_int32_t) :: rc

      shared => shared_of(ranks)
      arrays => dataset%arrays
      rc = find_table(context%api, GRAFT_TRAIN_ID, train_api_destroy, table)
      if (rc >= 0) rc = find_table(context%api, GRAFT_GRAPH_ID, graph_api_destroy, graphs)
      if (rc >= 0) rc = unless(data_fault(arrays))
      rc = agreed(shared, rc)
      if (rc >= 0) then
         if (.not. c_associated(arrays%raw)) call fill_set(arrays)
         arrays%graphs = graphs
         if (associated(shared) .and. .not. c_associated(arrays%graph)) rc = distribute(arrays, context%api, shared)
      end if
      if (rc >= 0) rc = run_pppp(table, train_api_create, pointer_in(context%api, api_context), c_loc(arrays%set), &
                                 c_loc(raw), c_loc(last))
      if (rc >= 0) then
         call adopt(self, train_api_destroy, context%api, table, raw, shared)
         self%arrays => arrays
         nullify (dataset%arrays)
      end if
      call finish(rc, shared, ierr)
   end subroutine

   subroutine trainer_epoch(self, epoch, ierr)
      class(graft_trainer), intent(in) :: self
      type(graft_epoch), intent(inout), target :: epoch
      integer, intent(out), optional :: ierr

      call call_with(self, train_api_epoch, c_loc(epoch), ierr)
   end subroutine

   subroutine trainer_evaluate(self, metrics, weights, ierr)
      class(graft_trainer), intent(in) :: self
      type(graft_metrics), intent(inout), target :: metrics
      integer, intent(in) :: weights
      integer, intent(out), optional :: ierr

      call call_with_number(self, train_api_evaluate, weights, c_loc(metrics), ierr)
   end subroutine

   subroutine predict_i4(self, labels, weights, ierr)
      class(graft_trainer), intent(inout) :: self
      integer(int32), intent(inout) :: labels(:)
      integer, intent(in) :: weights
      integer, intent(out), optional :: ierr
      integer(c_int32_t), allocatable, target :: found(:)
      integer :: rc

      allocate (found(size(labels)))
      call predict_all(self, weights, size(labels, kind=int64), address(found), c_null_ptr, rc)
      if (rc >= 0) labels = found
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine predict_i8(self, labels, weights, ierr)
      class(graft_trainer), intent(inout) :: self
      integer(int64), intent(inout) :: labels(:)
      integer, intent(in) :: weights
      integer, intent(out), optional :: ierr
      integer(c_int32_t), allocatable, target :: found(:)
      integer :: rc

      allocate (found(size(labels)))
      call predict_all(self, weights, size(labels, kind=int64), address(found), c_null_ptr, rc)
      if (rc >= 0) labels = found
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine outputs_r8(self, y, weights, ierr)
      class(graft_trainer), intent(inout) :: self
      real(real64), intent(inout) :: y(:, :)
      integer, intent(in) :: weights
      integer, intent(out), optional :: ierr
      real(real32), allocatable, target :: found(:, :)
      type(c_dense), target :: to
      integer :: rc

      allocate (found(size(y, 1), size(y, 2)))
      to = dense_of(view(found))
      call predict_all(self, weights, size(y, 2, int64), c_null_ptr, c_loc(to), rc)
      if (rc >= 0) y = found
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine outputs_r4(self, y, weights, ierr)
      class(graft_trainer), intent(inout) :: self
      real(real32), intent(inout) :: y(:, :)
      integer, intent(in) :: weights
      integer, intent(out), optional :: ierr
      real(real32), allocatable, target :: found(:, :)
      type(c_dense), target :: to
      integer :: rc

      allocate (found(size(y, 1), size(y, 2)))
      to = dense_of(view(found))
      call predict_all(self, weights, size(y, 2, int64), c_null_ptr, c_loc(to), rc)
      if (rc >= 0) y = found
      call finish(int(rc, c_int32_t), self%shared, ierr)
   end subroutine

   subroutine predict_all(self, weights, n, labels, outputs, ierr)
      class(graft_trainer), intent(in) :: self
      integer, intent(in) :: weights
      integer(int64), intent(in) :: n
      type(c_ptr), intent(in) :: labels, outputs
      integer, intent(out) :: ierr
      character(len=:), allocatable :: fault
      integer(c_int32_t) :: rc

      rc = ready(self)
      if (rc >= 0) then
         fault = ''
         call compare('vertices of predictions', n, self%arrays%set%n_slice, fault)
         rc = unless(fault)
      end if
      rc = agreed(self%shared, rc)
      if (rc >= 0) rc = run_pippp(self%table, train_api_predict, self%raw, int(weights, c_int32_t), labels, outputs, &
                                  c_loc(last))
      ierr = int(rc)
   end subroutine

   ! Trainers and files exchange models of graft.model/1. Rank 0 accesses the file, and all ranks agree on the status.
   subroutine trainer_save(self, path, ierr)
      class(graft_trainer), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr
      character(kind=c_char, len=:), allocatable, target :: c_path
      type(c_ptr), target :: model
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      c_path = trim(path)//c_null_char
      rc = ready(self)
      if (rc >= 0) rc = find_table(self%api, GRAFT_MODEL_ID, model_api_destroy, table)
      if (rc >= 0 .and. rank_of(self%shared) == 0) then
         rc = run_pipp(table, model_api_create, self%raw, int(GRAFT_MODEL_STATE, c_int32_t), c_loc(model), c_loc(last))
         if (rc >= 0) then
            rc = run_ppp(table, model_api_save, model, c_loc(c_path), c_loc(last))
            call free_p(table, model_api_destroy, model)
         end if
      end if
      call finish(agreed(self%shared, rc), self%shared, ierr)
   end subroutine

   subroutine trainer_load(self, path, ierr)
      class(graft_trainer), intent(inout) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr
      character(kind=c_char, len=:), allocatable, target :: c_path
      type(c_ptr), target :: model
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      c_path = trim(path)//c_null_char
      rc = ready(self)
      if (rc >= 0) rc = find_table(self%api, GRAFT_MODEL_ID, model_api_destroy, table)
      if (rc >= 0) rc = run_ppppp(table, model_api_load, pointer_in(self%api, api_context), transport_of(self%shared), &
                                  c_loc(c_path), c_loc(model), c_loc(last))
      if (rc >= 0) then
         rc = run_ppp(table, model_api_apply, model, self%raw, c_loc(last))
         call free_p(table, model_api_destroy, model)
         rc = agreed(self%shared, rc)
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   function trainer_explain(self) result(text)
      class(graft_trainer), intent(in) :: self
      character(len=:), allocatable :: text

      text = explained(self, train_api_explain)
   end function

   subroutine trainer_destroy(self, ierr)
      class(graft_trainer), intent(inout) :: self
      integer, intent(out), optional :: ierr

      call self%object%destroy()
      call free_arrays(self%arrays)
      call succeed(ierr)
   end subroutine

end module
