! Graft in programs in Fortran (2008 or later): one file without C, MPI or a preprocessor, which a program compiles with
! its own compiler and links with -ldl. README.md has an introduction, and the headers in abi/ what each call does.
!
!   Errors   Every call has an optional last argument ierr: 0, or a negative status GRAFT_ERR_..., after which objects
!            are as before; graft_message() is the sentence. Without ierr a failure is printed to the error unit, and
!            ends the communicator of the object by MPI_Abort, or the program if it has none.
!   Arrays   real(real32) and real(real64); integer(int32) and integer(int64). Values on nodes are x(component, node) or
!            x(node, component): of the two the one that has the shape which the call expects, or x(node) for one
!            component. They may be sections with a positive step, and are not copied. Arrays that describe a mesh, a
!            graph or a network are copied by the calls that take them, and freed by create().
!   Numbers  of nodes, vertices and edges begin with 1 unless index_base is 0. Global ids of nodes are any.
!   Objects  are freed when they go out of scope, or by destroy(). They are not assigned to each other.
!   Threads  graft_message() is of the last call of the program that failed.
!
! SPDX-License-Identifier: Apache-2.0

! The part of abi/ that module graft uses. A table of functions is an array of slots of eight bytes, of which the first
! has its size.
module graft_abi
   use, intrinsic :: iso_c_binding
   implicit none
   public

   integer, parameter :: api_context = 3, api_close = 4, api_get = 5, api_set = 6
   integer, parameter :: transports_open = 3
   integer, parameter :: graphs_create = 2, graphs_info = 3, graphs_owned = 4, graphs_destroy = 7
   integer, parameter :: plans_create = 2, plans_begin = 3, plans_end = 4, plans_destroy = 7
   integer, parameter :: meshes_create = 2, meshes_info = 3, meshes_view = 4, meshes_explain = 5, meshes_destroy = 6
   integer, parameter :: networks_create = 2, networks_info = 3, networks_begin = 4, networks_end = 5, &
                         networks_rollout = 6, networks_train = 9, networks_save = 12, &
                         networks_load = 13, networks_explain = 14, networks_destroy = 15
   integer, parameter :: streams_create = 2, streams_offer = 3, streams_step = 4, streams_validate = 5, &
                         streams_status = 6, streams_save = 7, streams_load = 8, streams_destroy = 9

   integer(c_int32_t), parameter :: dtype_f32 = 1, dtype_f64 = 2, dtype_i64 = 4

   type, bind(c) :: c_error
      integer(c_int32_t) :: size = 512, code = 0, native_code = 0, rank = 0
      character(kind=c_char) :: where(48) = c_null_char, message(448) = c_null_char
   end type

   type, bind(c) :: c_communicator
      integer(c_int32_t) :: size = 32, bytes = 0
      type(c_ptr) :: handle = c_null_ptr
      integer(c_int32_t) :: start = 0, reserved = 0, kind = 1, reserved2 = 0
   end type

   type, bind(c) :: c_transport
      integer(c_int32_t) :: size = 80, rank = 0, n_ranks = 1, tag_max = 0
      type(c_ptr) :: name = c_null_ptr, self = c_null_ptr
      type(c_funptr) :: send, receive, test, cancel, close, abandon
   end type

   type, bind(c) :: c_field
      integer(c_int32_t) :: size = 48, dtype = dtype_f64
      integer(c_int64_t) :: n_rows = 0, n_columns = 0, row_stride = 0, column_stride = 0
      type(c_ptr) :: data = c_null_ptr
   end type

   type, bind(c) :: c_csr
      integer(c_int32_t) :: size = 64, index_type = dtype_i64, value_type = 0, reserved = 0
      integer(c_int64_t) :: n_rows = 0, n_cols = 0
      type(c_ptr) :: row_ptr = c_null_ptr, col_idx = c_null_ptr, values = c_null_ptr, row_ptr_32 = c_null_ptr
   end type

   type, bind(c) :: c_slice
      integer(c_int32_t) :: size = 48, reserved = 0
      integer(c_int64_t) :: n_vertices = 0, first_row = 0
      type(c_ptr) :: rows = c_null_ptr, owner = c_null_ptr, train_mask = c_null_ptr
   end type

   type, bind(c) :: c_dense
      integer(c_int32_t) :: size = 40, dtype = dtype_f64
      integer(c_int64_t) :: n_rows = 0, n_cols = 0, stride = 0
      type(c_ptr) :: data = c_null_ptr
   end type

   type, bind(c) :: c_plan_args
      integer(c_int32_t) :: size = 24, flags = 0
      integer(c_int64_t) :: width = 0
      integer(c_int32_t) :: dtype = 0, layers = 0
   end type

   type, bind(c) :: c_aggregate_args
      integer(c_int32_t) :: size = 80, semiring = 1, flags = 0, layer = 0
      integer(c_int64_t) :: epoch = 0
      integer(c_int32_t) :: threads = 0, reserved = 0
      type(c_ptr) :: x = c_null_ptr, out = c_null_ptr, row_scale = c_null_ptr, times = c_null_ptr
      type(c_ptr) :: mask = c_null_ptr, epilogue = c_null_ptr
   end type

   type, bind(c) :: c_mesh_args
      integer(c_int32_t) :: size = 136, kind = 0, dim = 0, index_base = 1
      integer(c_int64_t) :: n_rows = 0
      type(c_ptr) :: coordinates = c_null_ptr, ids = c_null_ptr, owners = c_null_ptr
      integer(c_int32_t) :: id_type = dtype_i64, index_type = dtype_i64
      integer(c_int64_t) :: n_cells = 0
      type(c_ptr) :: cell_types = c_null_ptr
      integer(c_int32_t) :: cell_type = 0, reserved = 0
      type(c_ptr) :: cell_nodes = c_null_ptr
      integer(c_int64_t) :: n_edges = 0
      type(c_ptr) :: edge_sources = c_null_ptr, edge_targets = c_null_ptr
      real(c_double) :: period(3) = 0
   end type

   type, bind(c) :: c_mesh_view
      integer(c_int32_t) :: size = 128, dim = 0
      integer(c_int64_t) :: n_rows = 0, n_nodes = 0, n_halo = 0, n_edges = 0, n_sources = 0
      type(c_ptr) :: node_of = c_null_ptr, row_of = c_null_ptr, id = c_null_ptr, node_weight = c_null_ptr
      type(c_ptr) :: row_ptr = c_null_ptr, source = c_null_ptr, edge_ranks = c_null_ptr, position = c_null_ptr
      type(c_ptr) :: halo_start = c_null_ptr, halo_node = c_null_ptr
   end type

   type, bind(c) :: c_network_args
      integer(c_int32_t) :: size = 40, predicts = 0, n_in = 0, n_out = 0
      type(c_ptr) :: constant = c_null_ptr, is_free = c_null_ptr, loss_weight = c_null_ptr
   end type

   type, bind(c) :: c_pair
      integer(c_int32_t) :: size = 24, reserved = 0
      type(c_ptr) :: input = c_null_ptr, target = c_null_ptr
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

   abstract interface
      integer(c_int32_t) function call2(a, b) bind(c)
         import
         type(c_ptr), value :: a, b
      end function
      integer(c_int32_t) function call3(a, b, c) bind(c)
         import
         type(c_ptr), value :: a, b, c
      end function
      integer(c_int32_t) function call4(a, b, c, d) bind(c)
         import
         type(c_ptr), value :: a, b, c, d
      end function
      integer(c_int32_t) function call5(a, b, c, d, e) bind(c)
         import
         type(c_ptr), value :: a, b, c, d, e
      end function
      integer(c_int32_t) function call_of_rank(a, rank, b, c) bind(c)
         import
         type(c_ptr), value :: a, b, c
         integer(c_int32_t), value :: rank
      end function
      integer(c_int32_t) function call_train(a, b, n, c, d) bind(c)
         import
         type(c_ptr), value :: a, b, c, d
         integer(c_int32_t), value :: n
      end function
      integer(c_int32_t) function call_step(a, budget, n, b, c) bind(c)
         import
         type(c_ptr), value :: a, b, c
         real(c_double), value :: budget
         integer(c_int32_t), value :: n
      end function
      integer(c_int32_t) function call_explain(a, text, n, b) bind(c)
         import
         type(c_ptr), value :: a, text, b
         integer(c_int64_t), value :: n
      end function
      integer(c_int32_t) function call_open(least, most, host, api, error) bind(c)
         import
         integer(c_int32_t), value :: least, most
         type(c_ptr), value :: host, api, error
      end function
      type(c_ptr) function call_get(a, id) bind(c)
         import
         type(c_ptr), value :: a
         character(kind=c_char), intent(in) :: id(*)
      end function
      type(c_ptr) function call_owned(a) bind(c)
         import
         type(c_ptr), value :: a
      end function
      subroutine call_free(a) bind(c)
         import
         type(c_ptr), value :: a
      end subroutine
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

   ! The function of a slot.
   type(c_funptr) function slot(table, number)
      type(c_ptr), intent(in) :: table
      integer, intent(in) :: number
      type(c_funptr), pointer :: slots(:)

      call c_f_pointer(table, slots, [number])
      slot = slots(number)
   end function

   ! The pointer of a slot.
   type(c_ptr) function pointer_in(table, number)
      type(c_ptr), intent(in) :: table
      integer, intent(in) :: number
      type(c_ptr), pointer :: slots(:)

      call c_f_pointer(table, slots, [number])
      pointer_in = slots(number)
   end function

   integer(c_int32_t) function run2(table, number, a, b)
      type(c_ptr), intent(in) :: table, a, b
      integer, intent(in) :: number
      procedure(call2), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run2 = function(a, b)
   end function

   integer(c_int32_t) function run3(table, number, a, b, c)
      type(c_ptr), intent(in) :: table, a, b, c
      integer, intent(in) :: number
      procedure(call3), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run3 = function(a, b, c)
   end function

   integer(c_int32_t) function run4(table, number, a, b, c, d)
      type(c_ptr), intent(in) :: table, a, b, c, d
      integer, intent(in) :: number
      procedure(call4), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run4 = function(a, b, c, d)
   end function

   integer(c_int32_t) function run5(table, number, a, b, c, d, e)
      type(c_ptr), intent(in) :: table, a, b, c, d, e
      integer, intent(in) :: number
      procedure(call5), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      run5 = function(a, b, c, d, e)
   end function

   subroutine free(table, number, object)
      type(c_ptr), intent(in) :: table, object
      integer, intent(in) :: number
      procedure(call_free), pointer :: function

      call c_f_procpointer(slot(table, number), function)
      call function(object)
   end subroutine

   ! A text of C that ends with a null character.
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

   integer, parameter, public :: GRAFT_OK = 0, GRAFT_ERR_ARG = -1, GRAFT_ERR_NOMEM = -2, GRAFT_ERR_VERSION = -3, &
                                 GRAFT_ERR_UNSUPPORTED = -4, GRAFT_ERR_NOT_FOUND = -5, GRAFT_ERR_FORMAT = -6, &
                                 GRAFT_ERR_IO = -7, GRAFT_ERR_OPTION = -8, GRAFT_ERR_STATE = -9, &
                                 GRAFT_ERR_FORKED = -10, GRAFT_ERR_MODULE = -11, GRAFT_ERR_PEER = -12, &
                                 GRAFT_ERR_CANCELLED = -13, GRAFT_ERR_NONFINITE = -14
   integer, parameter, public :: GRAFT_MESH_GHOSTS = 1, GRAFT_MESH_SHARED = 2
   integer, parameter, public :: GRAFT_CELL_LINE = 3, GRAFT_CELL_TRIANGLE = 5, GRAFT_CELL_QUAD = 9, &
                                 GRAFT_CELL_TETRA = 10, GRAFT_CELL_HEXAHEDRON = 12, GRAFT_CELL_WEDGE = 13, &
                                 GRAFT_CELL_PYRAMID = 14
   integer, parameter, public :: GRAFT_PREDICTS_VALUE = 1, GRAFT_PREDICTS_CHANGE = 2
   integer, parameter, public :: GRAFT_STREAM_BUDGET_USED = 0, GRAFT_STREAM_NO_PAIRS = 1, &
                                 GRAFT_STREAM_BUDGET_SMALL = 2, GRAFT_STREAM_STEPS_DONE = 3

   ! What calls report: the structs of these names in abi/draft/graft_mesh.h, graft_network.h and graft_stream.h.
   type, bind(c), public :: graft_mesh_info
      integer(c_int32_t) :: size = 48, n_neighbours = 0
      integer(c_int64_t) :: n_nodes = 0, n_edges = 0, n_halo = 0, bytes = 0
      real(c_double) :: longest = 0
   end type
   type, bind(c), public :: graft_network_info
      integer(c_int32_t) :: size = 56, dtype = 0
      integer(c_int64_t) :: n_weights = 0, n_steps = 0
      real(c_double) :: multiply_adds = 0
      integer(c_int64_t) :: bytes = 0, bytes_sent = 0
      real(c_double) :: learning_rate = 0
   end type
   type, bind(c), public :: graft_network_step
      integer(c_int32_t) :: size = 40, is_gathering = 0
      integer(c_int64_t) :: step = 0
      real(c_double) :: loss = 0, learning_rate = 0, gradient_norm = 0
   end type
   type, bind(c), public :: graft_stream_status
      integer(c_int32_t) :: size = 128, should_stop = 0
      integer(c_int64_t) :: offered = 0, dropped = 0, pairs = 0, kept = 0, capacity = 0, held_out = 0, bytes = 0
      integer(c_int64_t) :: steps = 0
      integer(c_int32_t) :: steps_now = 0, reason = 0
      real(c_double) :: seconds = 0, seconds_of_step = 0, loss = 0, validation = 0, best = 0, time = 0
   end type

   ! What view() of a mesh reports: graft_mesh_view of graft_mesh.h. Arrays belong to the mesh and have its numbers,
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
      procedure :: close => context_close  ! objects made with it should have been destroyed
      generic :: set => set_text, set_integer, set_real, set_single ! (key, value, ierr): an option
      procedure, private :: set_text, set_integer, set_real, set_single
      final :: context_final
   end type

   ! Ranks over MPI, and how many objects use them; the last one closes the transport.
   type :: shared_ranks
      type(c_transport) :: transport
      integer(c_int) :: comm = 0
      integer :: users = 0
   end type
   type, public :: graft_ranks
      private
      type(shared_ranks), pointer :: shared => null()
   contains
      procedure :: open => ranks_open      ! (context, comm, ierr): comm as of module mpi, or comm%mpi_val of mpi_f08
      procedure :: rank => ranks_rank      ! from 0
      procedure :: size => ranks_size
      procedure :: destroy => ranks_destroy ! collective: closes the transport when no object uses it
      final :: ranks_final
   end type

   ! What all objects have: the functions of their interface, the slot that frees them, and the ranks that they need.
   type :: object
      private
      type(c_ptr) :: api = c_null_ptr, table = c_null_ptr, raw = c_null_ptr
      integer :: freed_by = 0
      type(shared_ranks), pointer :: shared => null()
   contains
      procedure :: destroy => object_destroy
      procedure, private :: runs
   end type

   ! graft.graph/1: a sparse matrix whose rows are spread over ranks.
   type, extends(object), public :: graft_graph
      integer :: index_base = 1
      integer(int64), allocatable, private :: row_ptr(:), columns(:)
      real(real64), allocatable, private :: weight(:)
      integer(int32), allocatable, private :: owner(:)
   contains
      generic :: rows => rows_i4, rows_i8 ! (row_ptr(m + 1), columns): of this rank, from index_base on
      procedure, private :: rows_i4, rows_i8
      generic :: values => values_r4, values_r8 ! (values): of the entries; without them each is 1
      procedure, private :: values_r4, values_r8
      procedure :: owners => graph_owners ! (ranks from 0): of the rows of this rank; without them Graft chooses
      generic :: create => create_i4, create_i8 ! (context, n_vertices, first, ranks, ierr): first is that of row 1
      procedure, private :: create_i4, create_i8
      procedure :: owned => graph_owned   ! (vertices, ierr): an allocatable array with those of this rank
      final :: graph_final
   end type

   ! graft.aggregate/1: products of that matrix with x(vertex) or x(component, vertex), real64 or real32 as the values.
   type, extends(object), public :: graft_plan
   contains
      procedure :: create => plan_create ! (graph, ierr): also for transposed products
      generic :: begin => begin_r8, begin_r4, begin_r8_1, begin_r4_1 ! (x, y, transposed, ierr): x and y until end()
      procedure, private :: begin_r8, begin_r4, begin_r8_1, begin_r4_1
      procedure :: end => plan_end ! (ierr)
      final :: plan_final
   end type

   ! graft.draft.mesh.
   type, extends(object), public :: graft_mesh
      integer :: index_base = 1
      real(real64), allocatable, private :: x(:, :)
      integer(int64), allocatable, private :: id(:), nodes(:), sources(:), targets(:)
      integer(int32), allocatable, private :: owner(:)
      integer(int8), allocatable, private :: types(:)
      integer, private :: cell_type = 0
      integer(int64), private :: n_cells = 0, n_rows = 0
      real(real64), private :: periods(3) = 0
   contains
      generic :: coordinates => coordinates_r4, coordinates_r8 ! (x): x(dim, node) or x(node, dim)
      procedure, private :: coordinates_r4, coordinates_r8
      generic :: ids => ids_i4, ids_i8 ! (ids)
      procedure, private :: ids_i4, ids_i8
      procedure :: owners => mesh_owners ! (ranks from 0)
      generic :: cells => cells_i4, cells_i8, mixed_i4, mixed_i8 ! (type, nodes(corner, cell)), or (types, nodes)
      procedure, private :: cells_i4, cells_i8, mixed_i4, mixed_i8
      generic :: edges => edges_i4, edges_i8 ! (sources, targets)
      procedure, private :: edges_i4, edges_i8
      procedure :: period => mesh_period   ! (axis from 1, length, ierr)
      procedure :: create => mesh_create   ! (context, kind, ranks, ierr)
      procedure :: info => mesh_get_info   ! (info, rank, ierr): rank -1 is all
      procedure :: view => mesh_get_view   ! (view, ierr): its arrays, until the mesh is destroyed
      procedure :: explain => mesh_explain ! a text
      final :: mesh_final
   end type

   ! graft.draft.network.
   type, extends(object), public :: graft_network
      real(real64), allocatable, private :: fixed(:, :), weight(:)
      integer(int8), allocatable, private :: free_node(:)
      integer(int64), private :: n_rows = 0
      integer, private :: n_in = 0, n_out = 0
   contains
      procedure :: constant => network_constant       ! (x(component, node)): real64
      procedure :: is_free => network_is_free         ! (logical of each node)
      procedure :: loss_weight => network_loss_weight ! (real64 of each node)
      procedure :: create => network_create           ! (mesh, n_in, n_out, predicts, ierr)
      generic :: begin => network_begin_r8, network_begin_r4, network_begin_r8_1, network_begin_r4_1 ! (state, ierr)
      procedure, private :: network_begin_r8, network_begin_r4, network_begin_r8_1, network_begin_r4_1
      generic :: end => network_end_r8, network_end_r4, network_end_r8_1, network_end_r4_1 ! (result, ierr)
      procedure, private :: network_end_r8, network_end_r4, network_end_r8_1, network_end_r4_1
      generic :: rollout => rollout_r8, rollout_r4, rollout_r8_1, rollout_r4_1 ! (state, steps, after, ierr)
      procedure, private :: rollout_r8, rollout_r4, rollout_r8_1, rollout_r4_1
      generic :: train => train_r8, train_r4, train_r8_1, train_r4_1 ! (state, target, step, ierr)
      procedure, private :: train_r8, train_r4, train_r8_1, train_r4_1
      procedure :: save => network_save       ! (path, ierr)
      procedure :: load => network_load       ! (path, ierr)
      procedure :: info => network_get_info   ! (info, ierr)
      procedure :: explain => network_explain ! a text
      final :: network_final
   end type

   ! graft.draft.stream.
   type, extends(object), public :: graft_stream
      integer(int64), private :: n_rows = 0
      integer, private :: n_in = 0, n_out = 0
   contains
      procedure :: create => stream_create ! (network, ierr)
      generic :: offer => offer_r8, offer_r4, offer_r8_1, offer_r4_1 ! (state, time, first, ierr): first of a new run
      procedure, private :: offer_r8, offer_r4, offer_r8_1, offer_r4_1
      generic :: offer_pair => pair_r8, pair_r4, pair_r8_1, pair_r4_1 ! (state, target, time, ierr)
      procedure, private :: pair_r8, pair_r4, pair_r8_1, pair_r4_1
      procedure :: step => stream_step         ! (milliseconds, max_steps, status, ierr): 0 is no limit of steps
      procedure :: validate => stream_validate ! (status, ierr)
      procedure :: status => stream_get_status ! (status, ierr)
      procedure :: save => stream_save         ! (path, ierr)
      procedure :: load => stream_load         ! (path, ierr)
      final :: stream_final
   end type

   abstract interface
      ! Called after each step of a rollout; a result that is not 0 ends it with GRAFT_ERR_CANCELLED.
      integer function graft_after(step)
         integer, intent(in) :: step
      end function
   end interface
   type, bind(c) :: each_step
      type(c_funptr) :: after
   end type

   interface view
      module procedure view_r8, view_r4, view_r8_1, view_r4_1
   end interface

   type(c_error), target, save :: last
   real(real64), target, save :: nothing = 0 ! what arrays without elements point to

   public :: graft_message, graft_after

contains

   ! The sentence of the last failure.
   function graft_message() result(text)
      character(len=:), allocatable :: text

      text = text_at(c_loc(last%message))
   end function

   ! Give the status to the caller, or, if it does not want it, end the run after a failure.
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

   ! A failure that this module finds.
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

   ! Contexts

   ! As dlopen. With OMP_PROC_BIND or OMP_PLACES, OpenMP binds the thread that loads it to one place; this thread keeps
   ! its processors.
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
      procedure(call_open), pointer :: open_library
      character(len=:), allocatable :: file
      type(c_ptr) :: library
      type(c_ptr), target :: api
      type(c_funptr) :: address
      integer(c_int32_t) :: rc

      file = 'libgraft.so.1'
      if (present(path)) file = trim(path)
      address = c_null_funptr
      library = load_file(file)
      if (c_associated(library)) address = dlsym(library, 'graft_open'//c_null_char)
      if (.not. c_associated(address)) then
         rc = refuse(GRAFT_ERR_NOT_FOUND, "cannot use '"//file//"' as the Graft library: "//text_at(dlerror()))
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

   subroutine context_close(self)
      class(graft_context), intent(inout) :: self

      if (c_associated(self%api)) call free(self%api, api_close, pointer_in(self%api, api_context))
      self%api = c_null_ptr
   end subroutine

   subroutine context_final(self)
      type(graft_context), intent(inout) :: self

      call self%close()
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
         rc = run4(self%api, api_set, pointer_in(self%api, api_context), c_loc(c_key), c_loc(c_value), c_loc(last))
      else
         rc = refuse(GRAFT_ERR_STATE, 'the context is not open')
      end if
      call finish(rc, null(), ierr)
   end subroutine

   subroutine set_integer(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      integer, intent(in) :: value
      integer, intent(out), optional :: ierr
      character(len=20) :: text

      write (text, '(i0)') value
      call self%set_text(key, text, ierr)
   end subroutine

   subroutine set_real(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      real(real64), intent(in) :: value
      integer, intent(out), optional :: ierr
      character(len=32) :: text

      write (text, '(es25.16e3)') value
      call self%set_text(key, adjustl(text), ierr)
   end subroutine

   subroutine set_single(self, key, value, ierr)
      class(graft_context), intent(in) :: self
      character(len=*), intent(in) :: key
      real(real32), intent(in) :: value
      integer, intent(out), optional :: ierr
      character(len=32) :: text

      write (text, '(es16.8e2)') value
      call self%set_text(key, adjustl(text), ierr)
   end subroutine

   ! The functions of an interface, if the library has them up to this slot; else null, and a message.
   type(c_ptr) function table_of(api, id, last_slot)
      type(c_ptr), intent(in) :: api
      character(len=*), intent(in) :: id
      integer, intent(in) :: last_slot
      procedure(call_get), pointer :: get_interface
      integer(c_int32_t), pointer :: bytes
      integer(c_int32_t) :: rc

      table_of = c_null_ptr
      if (.not. c_associated(api)) then
         rc = refuse(GRAFT_ERR_STATE, 'the context is not open')
         return
      end if
      call c_f_procpointer(slot(api, api_get), get_interface)
      table_of = get_interface(pointer_in(api, api_context), id//c_null_char)
      if (c_associated(table_of)) then
         call c_f_pointer(table_of, bytes)
         if (bytes < 8 * last_slot) table_of = c_null_ptr
      end if
      if (.not. c_associated(table_of)) &
         rc = refuse(GRAFT_ERR_VERSION, 'the library has no '//id//', or an older one than this program')
   end function

   ! Ranks

   subroutine ranks_open(self, context, comm, ierr)
      class(graft_ranks), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer, intent(in) :: comm
      integer, intent(out), optional :: ierr
      type(c_communicator), target :: communicator
      type(shared_ranks), pointer :: shared
      character(kind=c_char), target :: module_name(5)
      integer(c_int), target :: handle
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      table = table_of(context%api, 'graft.transport/1', transports_open)
      rc = last%code
      module_name = ['a', 'u', 't', 'o', c_null_char]
      handle = comm
      communicator%bytes = int(c_sizeof(handle), c_int32_t)
      communicator%handle = c_loc(handle)
      allocate (shared)
      shared%comm = comm
      shared%users = 1
      if (c_associated(table)) rc = run5(table, transports_open, pointer_in(context%api, api_context), &
                                         c_loc(module_name), c_loc(communicator), c_loc(shared%transport), c_loc(last))
      if (rc >= 0) then
         call self%destroy()
         self%shared => shared
      end if
      call finish(rc, shared, ierr)
      if (rc < 0) deallocate (shared)
   end subroutine

   integer function ranks_rank(self)
      class(graft_ranks), intent(in) :: self

      ranks_rank = 0
      if (associated(self%shared)) ranks_rank = self%shared%transport%rank
   end function

   integer function ranks_size(self)
      class(graft_ranks), intent(in) :: self

      ranks_size = 1
      if (associated(self%shared)) ranks_size = self%shared%transport%n_ranks
   end function

   subroutine leave(shared)
      type(shared_ranks), pointer, intent(inout) :: shared
      procedure(call_free), pointer :: close_transport

      if (.not. associated(shared)) return
      shared%users = shared%users - 1
      if (shared%users == 0) then
         call c_f_procpointer(shared%transport%close, close_transport)
         call close_transport(shared%transport%self)
         deallocate (shared)
      end if
      nullify (shared)
   end subroutine

   subroutine ranks_destroy(self)
      class(graft_ranks), intent(inout) :: self

      call leave(self%shared)
   end subroutine

   subroutine ranks_final(self)
      type(graft_ranks), intent(inout) :: self

      call leave(self%shared)
   end subroutine

   ! Objects

   subroutine object_destroy(self)
      class(object), intent(inout) :: self

      if (c_associated(self%raw)) call free(self%table, self%freed_by, self%raw)
      self%raw = c_null_ptr
      call leave(self%shared)
   end subroutine

   ! Whether the object exists; if not, with a message.
   logical function runs(self)
      class(object), intent(in) :: self
      integer(c_int32_t) :: rc

      runs = c_associated(self%raw)
      if (.not. runs) rc = refuse(GRAFT_ERR_STATE, 'the object has not been created')
   end function

   ! Take over what a library's create() made, in place of what was there.
   subroutine adopt(self, api, table, freed_by, raw, shared)
      class(object), intent(inout) :: self
      type(c_ptr), intent(in) :: api, table, raw
      integer, intent(in) :: freed_by
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

   ! Views of arrays

   integer(c_int64_t) function steps_between(first, second, bytes)
      type(c_ptr), intent(in) :: first, second
      integer, intent(in) :: bytes

      steps_between = (transfer(second, 0_c_intptr_t) - transfer(first, 0_c_intptr_t)) / bytes
   end function

   ! Which dimension of an array has the nodes: the second, unless only the other order has the expected shape.
   pure integer function dimension_of_nodes(extent, n_rows, n_columns)
      integer, intent(in) :: extent(2), n_columns
      integer(int64), intent(in) :: n_rows

      dimension_of_nodes = 2
      if (extent(1) == n_rows .and. extent(2) == n_columns .and. &
          .not. (extent(2) == n_rows .and. extent(1) == n_columns)) dimension_of_nodes = 1
   end function

   type(c_field) function field_of(data, dtype, extent, stride, nodes)
      type(c_ptr), intent(in) :: data
      integer(c_int32_t), intent(in) :: dtype
      integer, intent(in) :: extent(2), nodes
      integer(c_int64_t), intent(in) :: stride(2)

      field_of%dtype = dtype
      field_of%data = data
      field_of%n_rows = extent(nodes)
      field_of%n_columns = extent(3 - nodes)
      field_of%row_stride = stride(nodes)
      field_of%column_stride = stride(3 - nodes)
   end function

   type(c_field) function view_r8(x, n_rows, n_columns)
      real(real64), intent(in), target :: x(:, :)
      integer(int64), intent(in) :: n_rows
      integer, intent(in) :: n_columns
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = [1_c_int64_t, int(max(size(x, 1), 1), c_int64_t)]
      if (size(x) > 0) first = c_loc(x(1, 1))
      if (size(x) > 0 .and. size(x, 1) > 1) stride(1) = steps_between(first, c_loc(x(2, 1)), 8)
      if (size(x) > 0 .and. size(x, 2) > 1) stride(2) = steps_between(first, c_loc(x(1, 2)), 8)
      view_r8 = field_of(first, dtype_f64, shape(x), stride, dimension_of_nodes(shape(x), n_rows, n_columns))
   end function

   type(c_field) function view_r4(x, n_rows, n_columns)
      real(real32), intent(in), target :: x(:, :)
      integer(int64), intent(in) :: n_rows
      integer, intent(in) :: n_columns
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = [1_c_int64_t, int(max(size(x, 1), 1), c_int64_t)]
      if (size(x) > 0) first = c_loc(x(1, 1))
      if (size(x) > 0 .and. size(x, 1) > 1) stride(1) = steps_between(first, c_loc(x(2, 1)), 4)
      if (size(x) > 0 .and. size(x, 2) > 1) stride(2) = steps_between(first, c_loc(x(1, 2)), 4)
      view_r4 = field_of(first, dtype_f32, shape(x), stride, dimension_of_nodes(shape(x), n_rows, n_columns))
   end function

   type(c_field) function view_r8_1(x)
      real(real64), intent(in), target :: x(:)
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = 1
      if (size(x) > 0) first = c_loc(x(1))
      if (size(x) > 1) stride(2) = steps_between(first, c_loc(x(2)), 8)
      view_r8_1 = field_of(first, dtype_f64, [1, size(x)], stride, 2)
   end function

   type(c_field) function view_r4_1(x)
      real(real32), intent(in), target :: x(:)
      integer(c_int64_t) :: stride(2)
      type(c_ptr) :: first

      first = c_loc(nothing)
      stride = 1
      if (size(x) > 0) first = c_loc(x(1))
      if (size(x) > 1) stride(2) = steps_between(first, c_loc(x(2)), 4)
      view_r4_1 = field_of(first, dtype_f32, [1, size(x)], stride, 2)
   end function

   type(c_dense) function dense_of(field)
      type(c_field), intent(in) :: field

      dense_of%dtype = field%dtype
      dense_of%n_rows = field%n_rows
      dense_of%n_cols = field%n_columns
      dense_of%stride = field%row_stride
      dense_of%data = field%data
   end function

   ! Graphs

   subroutine rows_i8(self, row_ptr, columns)
      class(graft_graph), intent(inout) :: self
      integer(int64), intent(in) :: row_ptr(:), columns(:)

      self%row_ptr = row_ptr - row_ptr(1)
      self%columns = columns - self%index_base
   end subroutine

   subroutine rows_i4(self, row_ptr, columns)
      class(graft_graph), intent(inout) :: self
      integer(int32), intent(in) :: row_ptr(:), columns(:)

      call self%rows_i8(int(row_ptr, int64), int(columns, int64))
   end subroutine

   subroutine values_r8(self, values)
      class(graft_graph), intent(inout) :: self
      real(real64), intent(in) :: values(:)

      self%weight = values
   end subroutine

   subroutine values_r4(self, values)
      class(graft_graph), intent(inout) :: self
      real(real32), intent(in) :: values(:)

      self%weight = real(values, real64)
   end subroutine

   subroutine graph_owners(self, owners)
      class(graft_graph), intent(inout) :: self
      integer, intent(in) :: owners(:)

      self%owner = int(owners, int32)
   end subroutine

   subroutine create_i4(self, context, n_vertices, first, ranks, ierr)
      class(graft_graph), intent(inout) :: self
      type(graft_context), intent(in) :: context
      integer(int32), intent(in) :: n_vertices, first
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr

      call self%create_i8(context, int(n_vertices, int64), int(first, int64), ranks, ierr)
   end subroutine

   subroutine create_i8(self, context, n_vertices, first, ranks, ierr)
      class(graft_graph), intent(inout), target :: self
      type(graft_context), intent(in) :: context
      integer(int64), intent(in) :: n_vertices, first
      type(graft_ranks), intent(in), optional :: ranks
      integer, intent(out), optional :: ierr
      type(shared_ranks), pointer :: shared
      type(c_csr), target :: rows
      type(c_slice), target :: slice
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      shared => shared_of(ranks)
      slice%n_vertices = n_vertices
      slice%first_row = first - self%index_base
      if (allocated(self%row_ptr)) then
         rows%n_rows = size(self%row_ptr) - 1
         rows%n_cols = n_vertices
         rows%row_ptr = c_loc(self%row_ptr)
         rows%col_idx = address_i8(self%columns)
         if (allocated(self%weight)) then
            rows%value_type = dtype_f64
            rows%values = address_r8(self%weight)
         end if
         slice%rows = c_loc(rows)
      end if
      if (allocated(self%owner)) slice%owner = address_i4(self%owner)
      table = table_of(context%api, 'graft.graph/1', graphs_destroy)
      rc = last%code
      if (mismatch(self)) then
         rc = refuse(GRAFT_ERR_ARG, 'row_ptr, columns, values and owners of the graph have lengths that do not fit')
      else if (c_associated(table)) then
         rc = run5(table, graphs_create, pointer_in(context%api, api_context), transport_of(shared), c_loc(slice), &
                   c_loc(raw), c_loc(last))
      end if
      if (rc >= 0) then
         call adopt(self, context%api, table, graphs_destroy, raw, shared)
         if (allocated(self%row_ptr)) deallocate (self%row_ptr, self%columns)
         if (allocated(self%weight)) deallocate (self%weight)
         if (allocated(self%owner)) deallocate (self%owner)
      end if
      call finish(rc, shared, ierr)
   end subroutine

   logical function mismatch(graph)
      class(graft_graph), intent(in) :: graph

      mismatch = .false.
      if (allocated(graph%row_ptr)) mismatch = graph%row_ptr(size(graph%row_ptr)) /= size(graph%columns)
      if (allocated(graph%weight) .and. allocated(graph%columns)) &
         mismatch = mismatch .or. size(graph%weight) /= size(graph%columns)
      if (allocated(graph%owner) .and. allocated(graph%row_ptr)) &
         mismatch = mismatch .or. size(graph%owner) /= size(graph%row_ptr) - 1
   end function

   ! Addresses of arrays, also of those without elements.
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

   type(c_ptr) function address_r8(x)
      real(real64), intent(in), target, contiguous :: x(:)

      address_r8 = c_loc(nothing)
      if (size(x) > 0) address_r8 = c_loc(x)
   end function

   subroutine graph_owned(self, vertices, ierr)
      class(graft_graph), intent(in) :: self
      integer(int64), allocatable, intent(out) :: vertices(:)
      integer, intent(out), optional :: ierr
      procedure(call_of_rank), pointer :: get_info
      procedure(call_owned), pointer :: get_owned
      integer(int64), pointer :: list(:)
      integer(int64), target :: info(9) ! graft_graph_info: its fourth word is the number of owned vertices
      integer(c_int32_t) :: rc, rank

      if (self%runs()) then
         rank = 0
         if (associated(self%shared)) rank = self%shared%transport%rank
         info = 0
         info(1) = 72
         call c_f_procpointer(slot(self%table, graphs_info), get_info)
         rc = get_info(self%raw, rank, c_loc(info), c_loc(last))
         if (rc >= 0) then
            call c_f_procpointer(slot(self%table, graphs_owned), get_owned)
            call c_f_pointer(get_owned(self%raw), list, [info(4)])
            vertices = list + self%index_base
         end if
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine graph_final(self)
      type(graft_graph), intent(inout) :: self

      call self%destroy()
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

      args%flags = 1
      if (graph%runs()) then
         table = table_of(graph%api, 'graft.aggregate/1', plans_destroy)
         rc = last%code
         if (c_associated(table)) rc = run4(table, plans_create, graph%raw, c_loc(args), c_loc(raw), c_loc(last))
         if (rc >= 0) call adopt(self, graph%api, table, plans_destroy, raw, graph%shared)
      else
         rc = last%code
      end if
      call finish(rc, graph%shared, ierr)
   end subroutine

   subroutine plan_run(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      type(c_field), intent(in) :: x, y
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr
      type(c_aggregate_args), target :: args
      type(c_dense), target :: from, to
      integer(c_int32_t) :: rc

      from = dense_of(x)
      to = dense_of(y)
      args%x = c_loc(from)
      args%out = c_loc(to)
      if (present(transposed)) then
         if (transposed) args%flags = 1
      end if
      if (max(x%column_stride, y%column_stride) > 1 .and. x%n_columns > 1) then
         rc = refuse(GRAFT_ERR_ARG, 'products need arrays x(component, vertex) whose components follow each other')
      else if (self%runs()) then
         rc = run3(self%table, plans_begin, self%raw, c_loc(args), c_loc(last))
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine plan_end(self, ierr)
      class(graft_plan), intent(inout) :: self
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      if (self%runs()) then
         rc = run2(self%table, plans_end, self%raw, c_loc(last))
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine begin_r8(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:, :)
      real(real64), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call plan_run(self, view(x, int(size(x, 2), int64), size(x, 1)), &
                    view(y, int(size(y, 2), int64), size(y, 1)), transposed, ierr)
   end subroutine

   subroutine begin_r8_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real64), intent(in), target :: x(:)
      real(real64), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call plan_run(self, view(x), view(y), transposed, ierr)
   end subroutine

   subroutine begin_r4(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:, :)
      real(real32), intent(inout), target :: y(:, :)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call plan_run(self, view(x, int(size(x, 2), int64), size(x, 1)), &
                    view(y, int(size(y, 2), int64), size(y, 1)), transposed, ierr)
   end subroutine

   subroutine begin_r4_1(self, x, y, transposed, ierr)
      class(graft_plan), intent(inout) :: self
      real(real32), intent(in), target :: x(:)
      real(real32), intent(inout), target :: y(:)
      logical, intent(in), optional :: transposed
      integer, intent(out), optional :: ierr

      call plan_run(self, view(x), view(y), transposed, ierr)
   end subroutine

   subroutine plan_final(self)
      type(graft_plan), intent(inout) :: self

      call self%destroy()
   end subroutine

   ! Meshes

   subroutine coordinates_r8(self, x)
      class(graft_mesh), intent(inout) :: self
      real(real64), intent(in) :: x(:, :)

      if (size(x, 1) <= 3) then
         self%x = x
      else
         self%x = transpose(x)
      end if
   end subroutine

   subroutine coordinates_r4(self, x)
      class(graft_mesh), intent(inout) :: self
      real(real32), intent(in) :: x(:, :)

      call self%coordinates_r8(real(x, real64))
   end subroutine

   subroutine ids_i8(self, ids)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: ids(:)

      self%id = ids
   end subroutine

   subroutine ids_i4(self, ids)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: ids(:)

      self%id = int(ids, int64)
   end subroutine

   subroutine mesh_owners(self, owners)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: owners(:)

      self%owner = int(owners, int32)
   end subroutine

   subroutine cells_i8(self, type, nodes)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: type
      integer(int64), intent(in) :: nodes(:, :)

      if (allocated(self%types)) deallocate (self%types)
      self%cell_type = type
      self%n_cells = size(nodes, 2)
      self%nodes = reshape(nodes, [size(nodes)])
   end subroutine

   subroutine cells_i4(self, type, nodes)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: type
      integer(int32), intent(in) :: nodes(:, :)

      call self%cells_i8(type, int(nodes, int64))
   end subroutine

   subroutine mixed_i8(self, types, nodes)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: types(:)
      integer(int64), intent(in) :: nodes(:)

      self%types = int(types, int8)
      self%n_cells = size(types)
      self%nodes = nodes
   end subroutine

   subroutine mixed_i4(self, types, nodes)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: types(:)
      integer(int32), intent(in) :: nodes(:)

      call self%mixed_i8(types, int(nodes, int64))
   end subroutine

   subroutine edges_i8(self, sources, targets)
      class(graft_mesh), intent(inout) :: self
      integer(int64), intent(in) :: sources(:), targets(:)

      self%sources = sources
      self%targets = targets
   end subroutine

   subroutine edges_i4(self, sources, targets)
      class(graft_mesh), intent(inout) :: self
      integer(int32), intent(in) :: sources(:), targets(:)

      call self%edges_i8(int(sources, int64), int(targets, int64))
   end subroutine

   subroutine mesh_period(self, axis, length, ierr)
      class(graft_mesh), intent(inout) :: self
      integer, intent(in) :: axis
      real(real64), intent(in) :: length
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      rc = GRAFT_OK
      if (axis >= 1 .and. axis <= 3) then
         self%periods(axis) = length
      else
         rc = refuse(GRAFT_ERR_ARG, 'the axis of a period is not 1, 2 or 3')
      end if
      call finish(rc, null(), ierr)
   end subroutine

   ! How many nodes a cell has; 0: an unknown type, which the library refuses.
   elemental integer function corners_of(type)
      integer, intent(in) :: type
      integer, parameter :: corners(14) = [0, 0, 2, 0, 3, 0, 0, 0, 4, 4, 0, 8, 6, 5]

      corners_of = 0
      if (type >= 1 .and. type <= 14) corners_of = corners(type)
   end function

   ! The sentence about arrays that do not fit; empty if all do.
   function mesh_fault(self) result(fault)
      class(graft_mesh), intent(in) :: self
      character(len=:), allocatable :: fault

      fault = ''
      if (.not. allocated(self%x)) then
         fault = 'the mesh has no coordinates'
         return
      end if
      if (allocated(self%id)) then
         if (size(self%id) /= size(self%x, 2)) fault = 'ids and coordinates of the mesh have different numbers of nodes'
      end if
      if (allocated(self%owner)) then
         if (size(self%owner) /= size(self%x, 2)) fault = 'owners and coordinates have different numbers of nodes'
      end if
      if (allocated(self%types)) then
         if (sum(int(corners_of(int(self%types)), int64)) /= size(self%nodes)) fault = 'cells have another number of &
            &nodes than their types say'
      else if (allocated(self%nodes)) then
         if (self%n_cells*corners_of(self%cell_type) > size(self%nodes)) fault = 'cells have fewer nodes than their &
            &type has'
      end if
      if (allocated(self%sources)) then
         if (size(self%sources) /= size(self%targets)) fault = 'edges have different numbers of sources and targets'
      end if
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
      table = table_of(context%api, 'graft.draft.mesh/1', meshes_destroy)
      rc = last%code
      if (mesh_fault(self) /= '') then
         rc = refuse(GRAFT_ERR_ARG, mesh_fault(self))
      else if (c_associated(table)) then
         x = view_r8(self%x, int(size(self%x, 2), int64), size(self%x, 1))
         args%coordinates = c_loc(x)
         call fill_mesh_args(self, args)
         args%kind = int(kind, c_int32_t)
         rc = run5(table, meshes_create, pointer_in(context%api, api_context), transport_of(shared), c_loc(args), &
                   c_loc(raw), c_loc(last))
      end if
      if (rc >= 0) then
         call adopt(self, context%api, table, meshes_destroy, raw, shared)
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

      args%dim = size(self%x, 1)
      args%n_rows = size(self%x, 2)
      args%index_base = int(self%index_base, c_int32_t)
      args%period = self%periods
      if (allocated(self%id)) args%ids = address_i8(self%id)
      if (allocated(self%owner)) args%owners = address_i4(self%owner)
      if (allocated(self%nodes)) then
         args%n_cells = self%n_cells
         args%cell_type = int(self%cell_type, c_int32_t)
         args%cell_nodes = address_i8(self%nodes)
         if (allocated(self%types)) then
            args%cell_types = c_loc(nothing)
            if (size(self%types) > 0) args%cell_types = c_loc(self%types)
         end if
      end if
      if (allocated(self%sources)) then
         args%n_edges = size(self%sources)
         args%edge_sources = address_i8(self%sources)
         args%edge_targets = address_i8(self%targets)
      end if
   end subroutine

   subroutine mesh_get_info(self, info, rank, ierr)
      class(graft_mesh), intent(in) :: self
      type(graft_mesh_info), intent(inout), target :: info
      integer, intent(in) :: rank
      integer, intent(out), optional :: ierr
      procedure(call_of_rank), pointer :: get_info
      integer(c_int32_t) :: rc

      if (self%runs()) then
         call c_f_procpointer(slot(self%table, meshes_info), get_info)
         rc = get_info(self%raw, int(rank, c_int32_t), c_loc(info), c_loc(last))
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine mesh_get_view(self, view, ierr)
      class(graft_mesh), intent(in) :: self
      type(graft_mesh_view), intent(out) :: view
      integer, intent(out), optional :: ierr
      type(c_mesh_view), target :: raw
      integer(c_int32_t) :: rc

      if (self%runs()) then
         rc = run3(self%table, meshes_view, self%raw, c_loc(raw), c_loc(last))
      else
         rc = last%code
      end if
      if (rc >= 0) then
         call c_f_pointer(raw%node_of, view%node_of, [raw%n_rows])
         call c_f_pointer(raw%row_of, view%row_of, [raw%n_nodes])
         call c_f_pointer(raw%id, view%id, [raw%n_nodes])
         call c_f_pointer(raw%row_ptr, view%row_ptr, [raw%n_nodes + 1])
         call c_f_pointer(raw%source, view%source, [raw%n_edges])
         call c_f_pointer(raw%position, view%position, [int(raw%dim, c_int64_t), raw%n_sources])
         call c_f_pointer(raw%halo_start, view%halo_start, [n_ranks_of(self) + 1])
         call c_f_pointer(raw%halo_node, view%halo_node, [raw%n_halo])
         if (c_associated(raw%node_weight)) call c_f_pointer(raw%node_weight, view%node_weight, [raw%n_nodes])
         if (c_associated(raw%edge_ranks)) call c_f_pointer(raw%edge_ranks, view%edge_ranks, [raw%n_edges])
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   integer function n_ranks_of(self)
      class(object), intent(in) :: self

      n_ranks_of = 1
      if (associated(self%shared)) n_ranks_of = self%shared%transport%n_ranks
   end function

   ! The text of a call explain(), or of its failure.
   function explained(self, number) result(text)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      character(len=:), allocatable :: text
      character(kind=c_char), target :: letters(65536)
      procedure(call_explain), pointer :: explain

      text = ''
      if (self%runs()) then
         call c_f_procpointer(slot(self%table, number), explain)
         letters(1) = c_null_char
         if (explain(self%raw, c_loc(letters), size(letters, kind=c_int64_t), c_loc(last)) >= 0) then
            text = text_at(c_loc(letters))
            return
         end if
      end if
      text = graft_message()
   end function

   function mesh_explain(self) result(text)
      class(graft_mesh), intent(in) :: self
      character(len=:), allocatable :: text

      text = explained(self, meshes_explain)
   end function

   subroutine mesh_final(self)
      type(graft_mesh), intent(inout) :: self

      call self%destroy()
   end subroutine

   ! Networks

   subroutine network_constant(self, x)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in) :: x(:, :)

      self%fixed = x
   end subroutine

   subroutine network_is_free(self, is_free)
      class(graft_network), intent(inout) :: self
      logical, intent(in) :: is_free(:)

      self%free_node = merge(1_int8, 0_int8, is_free)
   end subroutine

   subroutine network_loss_weight(self, weight)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in) :: weight(:)

      self%weight = weight
   end subroutine

   ! The sentence about arrays of another number of nodes than the mesh has; empty if there is none.
   function network_fault(self, n_rows) result(fault)
      class(graft_network), intent(in) :: self
      integer(int64), intent(in) :: n_rows
      character(len=:), allocatable :: fault

      fault = ''
      if (allocated(self%free_node)) then
         if (size(self%free_node) /= n_rows) fault = 'is_free has another number of nodes than the mesh'
      end if
      if (allocated(self%weight)) then
         if (size(self%weight) /= n_rows) fault = 'loss_weight has another number of nodes than the mesh'
      end if
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
         constant = view_r8(self%fixed, mesh%n_rows, size(self%fixed, 1))
         args%constant = c_loc(constant)
      end if
      if (allocated(self%free_node)) then
         args%is_free = c_loc(nothing)
         if (size(self%free_node) > 0) args%is_free = c_loc(self%free_node)
      end if
      if (allocated(self%weight)) args%loss_weight = address_r8(self%weight)
      rc = GRAFT_OK
      if (.not. mesh%runs()) then
         rc = last%code
      else if (network_fault(self, mesh%n_rows) /= '') then
         rc = refuse(GRAFT_ERR_ARG, network_fault(self, mesh%n_rows))
      else
         table = table_of(mesh%api, 'graft.draft.network/1', networks_destroy)
         if (.not. c_associated(table)) rc = last%code
      end if
      if (rc >= 0) rc = run4(table, networks_create, mesh%raw, c_loc(args), c_loc(raw), c_loc(last))
      if (rc >= 0) then
         call adopt(self, mesh%api, table, networks_destroy, raw, mesh%shared)
         self%n_rows = mesh%n_rows
         self%n_in = n_in
         self%n_out = n_out
         if (allocated(self%fixed)) deallocate (self%fixed)
         if (allocated(self%free_node)) deallocate (self%free_node)
         if (allocated(self%weight)) deallocate (self%weight)
      end if
      call finish(rc, mesh%shared, ierr)
   end subroutine

   ! A call of any object with one pointer beside the error.
   subroutine call_with(self, number, argument, ierr)
      class(object), intent(in) :: self
      integer, intent(in) :: number
      type(c_ptr), intent(in) :: argument
      integer, intent(out), optional :: ierr
      integer(c_int32_t) :: rc

      if (self%runs()) then
         rc = run3(self%table, number, self%raw, argument, c_loc(last))
      else
         rc = last%code
      end if
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

   subroutine network_begin_r8(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_begin, view(state, self%n_rows, self%n_in), ierr)
   end subroutine

   subroutine network_begin_r8_1(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_begin, view(state), ierr)
   end subroutine

   subroutine network_begin_r4(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_begin, view(state, self%n_rows, self%n_in), ierr)
   end subroutine

   subroutine network_begin_r4_1(self, state, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_begin, view(state), ierr)
   end subroutine

   subroutine network_end_r8(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: result(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_end, view(result, self%n_rows, self%n_out), ierr)
   end subroutine

   subroutine network_end_r8_1(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: result(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_end, view(result), ierr)
   end subroutine

   subroutine network_end_r4(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: result(:, :)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_end, view(result, self%n_rows, self%n_out), ierr)
   end subroutine

   subroutine network_end_r4_1(self, result, ierr)
      class(graft_network), intent(inout) :: self
      real(real32), intent(inout), target :: result(:)
      integer, intent(out), optional :: ierr

      call call_with_field(self, networks_end, view(result), ierr)
   end subroutine

   integer(c_int32_t) function call_after(arg, step) bind(c)
      type(c_ptr), value :: arg
      integer(c_int32_t), value :: step
      type(each_step), pointer :: each
      procedure(graft_after), pointer :: after

      call c_f_pointer(arg, each)
      call c_f_procpointer(each%after, after)
      call_after = int(after(int(step)), c_int32_t)
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
         each%after = c_funloc(after)
         args%after = c_funloc(call_after)
         args%arg = c_loc(each)
      end if
      call call_with(self, networks_rollout, c_loc(args), ierr)
   end subroutine

   subroutine rollout_r8(self, state, steps, after, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(inout), target :: state(:, :)
      integer, intent(in) :: steps
      procedure(graft_after), optional :: after
      integer, intent(out), optional :: ierr

      call roll_out(self, view(state, self%n_rows, self%n_in), steps, after, ierr)
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

      call roll_out(self, view(state, self%n_rows, self%n_in), steps, after, ierr)
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
      procedure(call_train), pointer :: train
      type(c_pair), target :: pair
      integer(c_int32_t) :: rc

      pair%input = c_loc(state)
      pair%target = c_loc(target)
      if (self%runs()) then
         call c_f_procpointer(slot(self%table, networks_train), train)
         rc = train(self%raw, c_loc(pair), 1_c_int32_t, c_loc(step), c_loc(last))
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine train_r8(self, state, target, step, ierr)
      class(graft_network), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      type(graft_network_step), intent(inout) :: step
      integer, intent(out), optional :: ierr

      call train_one(self, view(state, self%n_rows, self%n_in), view(target, self%n_rows, self%n_out), step, ierr)
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

      call train_one(self, view(state, self%n_rows, self%n_in), view(target, self%n_rows, self%n_out), step, ierr)
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

      call call_with_path(self, networks_save, path, ierr)
   end subroutine

   subroutine network_load(self, path, ierr)
      class(graft_network), intent(inout) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, networks_load, path, ierr)
   end subroutine

   subroutine network_get_info(self, info, ierr)
      class(graft_network), intent(in) :: self
      type(graft_network_info), intent(inout), target :: info
      integer, intent(out), optional :: ierr

      call call_with(self, networks_info, c_loc(info), ierr)
   end subroutine

   function network_explain(self) result(text)
      class(graft_network), intent(in) :: self
      character(len=:), allocatable :: text

      text = explained(self, networks_explain)
   end function

   subroutine network_final(self)
      type(graft_network), intent(inout) :: self

      call self%destroy()
   end subroutine

   ! Streams

   subroutine stream_create(self, network, ierr)
      class(graft_stream), intent(inout) :: self
      type(graft_network), intent(in) :: network
      integer, intent(out), optional :: ierr
      type(c_ptr), target :: raw
      type(c_ptr) :: table
      integer(c_int32_t) :: rc

      if (network%runs()) then
         table = table_of(network%api, 'graft.draft.stream/1', streams_destroy)
         rc = last%code
         if (c_associated(table)) rc = run3(table, streams_create, network%raw, c_loc(raw), c_loc(last))
      else
         rc = last%code
      end if
      if (rc >= 0) then
         call adopt(self, network%api, table, streams_destroy, raw, network%shared)
         self%n_rows = network%n_rows
         self%n_in = network%n_in
         self%n_out = network%n_out
      end if
      call finish(rc, network%shared, ierr)
   end subroutine

   subroutine offer_state(self, state, time, first, ierr)
      class(graft_stream), intent(in) :: self
      type(c_field), intent(in), target :: state
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr
      type(c_sample_state), target :: args

      args%input = c_loc(state)
      args%time = time
      if (present(first)) then
         if (first) args%flags = 1
      end if
      call call_with(self, streams_offer, c_loc(args), ierr)
   end subroutine

   subroutine offer_r8(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, self%n_rows, self%n_in), time, first, ierr)
   end subroutine

   subroutine offer_r8_1(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, first, ierr)
   end subroutine

   subroutine offer_r4(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state, self%n_rows, self%n_in), time, first, ierr)
   end subroutine

   subroutine offer_r4_1(self, state, time, first, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      real(real64), intent(in) :: time
      logical, intent(in), optional :: first
      integer, intent(out), optional :: ierr

      call offer_state(self, view(state), time, first, ierr)
   end subroutine

   subroutine offer_pair_of(self, state, target, time, ierr)
      class(graft_stream), intent(in) :: self
      type(c_field), intent(in), target :: state, target
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr
      type(c_sample_state), target :: args

      args%input = c_loc(state)
      args%target = c_loc(target)
      args%time = time
      call call_with(self, streams_offer, c_loc(args), ierr)
   end subroutine

   subroutine pair_r8(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:, :)
      real(real64), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_pair_of(self, view(state, self%n_rows, self%n_in), view(target, self%n_rows, self%n_out), time, ierr)
   end subroutine

   subroutine pair_r8_1(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real64), intent(in), target :: state(:)
      real(real64), intent(in), target :: target(:)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_pair_of(self, view(state), view(target), time, ierr)
   end subroutine

   subroutine pair_r4(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:, :)
      real(real32), intent(in), target :: target(:, :)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_pair_of(self, view(state, self%n_rows, self%n_in), view(target, self%n_rows, self%n_out), time, ierr)
   end subroutine

   subroutine pair_r4_1(self, state, target, time, ierr)
      class(graft_stream), intent(inout) :: self
      real(real32), intent(in), target :: state(:)
      real(real32), intent(in), target :: target(:)
      real(real64), intent(in) :: time
      integer, intent(out), optional :: ierr

      call offer_pair_of(self, view(state), view(target), time, ierr)
   end subroutine

   subroutine stream_step(self, milliseconds, max_steps, status, ierr)
      class(graft_stream), intent(in) :: self
      real(real64), intent(in) :: milliseconds
      integer, intent(in) :: max_steps
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr
      procedure(call_step), pointer :: step
      integer(c_int32_t) :: rc

      if (self%runs()) then
         call c_f_procpointer(slot(self%table, streams_step), step)
         rc = step(self%raw, milliseconds, int(max_steps, c_int32_t), c_loc(status), c_loc(last))
      else
         rc = last%code
      end if
      call finish(rc, self%shared, ierr)
   end subroutine

   subroutine stream_validate(self, status, ierr)
      class(graft_stream), intent(in) :: self
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr

      call call_with(self, streams_validate, c_loc(status), ierr)
   end subroutine

   subroutine stream_get_status(self, status, ierr)
      class(graft_stream), intent(in) :: self
      type(graft_stream_status), intent(inout), target :: status
      integer, intent(out), optional :: ierr

      call call_with(self, streams_status, c_loc(status), ierr)
   end subroutine

   subroutine stream_save(self, path, ierr)
      class(graft_stream), intent(in) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, streams_save, path, ierr)
   end subroutine

   subroutine stream_load(self, path, ierr)
      class(graft_stream), intent(inout) :: self
      character(len=*), intent(in) :: path
      integer, intent(out), optional :: ierr

      call call_with_path(self, streams_load, path, ierr)
   end subroutine

   subroutine stream_final(self)
      type(graft_stream), intent(inout) :: self

      call self%destroy()
   end subroutine
end module
