! Halos, products in one call, data sets and training over ranks of MPI. Run by test_fortran_hosts.py: fortran_learn
! LIBRARY DATASET SCRATCH.
program learn
   use graft
   use, intrinsic :: iso_fortran_env
   implicit none
   include 'mpif.h'
   integer, parameter :: each = 20, n_epochs = 8
   character(len=4096) :: path, folder, scratch
   type(graft_context) :: context
   type(graft_ranks) :: ranks
   integer(int32) :: rank, ignored
   integer :: ierr

   call get_command_argument(1, path)
   call get_command_argument(2, folder)
   call get_command_argument(3, scratch)
   call MPI_Init(ignored)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, ignored)
   call context%open(path)
   call context%set('threads', 1)
   call ranks%open(context, MPI_COMM_WORLD)
   call use_halo()
   call update_values()
   call context%set('model', 'sage')
   call context%set('layers', 2)
   call context%set('hidden', '8')
   call context%set('epochs', n_epochs)
   call context%set('lr', 0.02)
   call learn_arrays()
   call learn_numbers()
   call learn_files()
   call ranks%destroy()
   call context%close()
   call MPI_Finalize(ignored)

contains

   ! Print a line if all ranks agree.
   subroutine report(good, line)
      logical, intent(in) :: good
      character(len=*), intent(in) :: line
      integer(int32) :: one, all_ones

      one = merge(1_int32, 0_int32, good)
      call MPI_Allreduce(one, all_ones, 1_int32, MPI_INTEGER4, MPI_MIN, MPI_COMM_WORLD, ignored)
      if (rank == 0 .and. all_ones == 1) print '(a)', line
   end subroutine

   ! Make the rows of a ring of n vertices. Each rank has `each` of them, which begin with its vertex `first`.
   subroutine ring(row_ptr, columns, first, n)
      integer, intent(out) :: row_ptr(each + 1), columns(2 * each), first, n
      integer :: v

      n = each * ranks%size()
      first = each * ranks%rank() + 1
      row_ptr = [(2 * v - 1, v=1, each + 1)]
      do v = 1, each
         columns(2 * v - 1) = modulo(first + v - 3, n) + 1
         columns(2 * v) = modulo(first + v - 1, n) + 1
      end do
   end subroutine

   ! Whether a message is the same on all ranks and contains these words.
   logical function is_shared(sentence, words)
      character(len=*), intent(in) :: sentence, words
      character(len=1024) :: first

      first = sentence
      call MPI_Bcast(first, 1024_int32, MPI_CHARACTER, 0_int32, MPI_COMM_WORLD, ignored)
      is_shared = first == sentence .and. index(sentence, words) > 0
   end function

   subroutine use_halo()
      type(graft_graph) :: graph
      type(graft_plan) :: plan
      type(graft_halo) :: halo
      type(graft_halo_info) :: info
      integer :: row_ptr(each + 1), columns(2 * each), first, n, v
      integer(int64), allocatable :: far(:)
      real(real64) :: x(each), y(each), wide(2, each), result(2, each)
      real(real64), allocatable :: received(:), both(:, :)
      logical :: good

      call ring(row_ptr, columns, first, n)
      call graph%rows(row_ptr, columns)
      call graph%owners([(ranks%rank(), v=1, each)])
      call graph%create(context, n, first, ranks)
      x = [(real(first + v - 1, real64), v=1, each)]
      wide(1, :) = x
      wide(2, :) = -x
      call plan%create(graph)
      call plan%run(x, y)
      call plan%run(wide, result, .true.)
      good = all([(nint(y(v)) == columns(2 * v - 1) + columns(2 * v), v=1, each)]) .and. &
             all(result(1, :) == y) .and. all(result(2, :) == -y)
      call plan%run(x, y(2:), ierr=ierr)
      call report(good .and. ierr == GRAFT_ERR_ARG, 'products in one call are right')

      call halo%create(graph)
      call halo%info(info)
      call halo%vertices(far)
      allocate (received(size(far)), both(2, size(far)))
      call halo%exchange(x, received)
      call halo%begin(wide, both)
      call halo%end()
      good = size(far) == merge(2, 0, ranks%size() > 1) .and. info%n_halo == size(far) .and. info%n_owned == each .and. &
             all(received == real(far, real64)) .and. all(both(1, :) == received) .and. all(both(2, :) == -received)
      received = 1000
      y = x
      call halo%begin_sum(y, received)
      call halo%end(ierr)
      if (ranks%size() > 1) x([1, each]) = x([1, each]) + 1000
      call report(good .and. ierr == GRAFT_OK .and. all(y == x), 'halos are right')
   end subroutine

   ! Give a graph and a plan new values, and compare them with a graph and a plan that are made with these values. Then
   ! make a mistake on one rank.
   subroutine update_values()
      type(graft_graph) :: graph(2)
      type(graft_plan) :: plan(2)
      integer :: row_ptr(each + 1), columns(2 * each), first, n, i
      real(real64) :: x(each), y(each), expected(each), old(2 * each), new(2 * each)
      logical :: good

      call ring(row_ptr, columns, first, n)
      old = [(sin(real(first + i, real64)), i=1, 2 * each)]
      new = [(real(nint(100 * cos(real(first + i))), real64) / 8, i=1, 2 * each)]
      x = [(1 + 0.25_real64 * (first + i), i=1, each)]
      do i = 1, 2
         call graph(i)%rows(row_ptr, columns)
         if (i == 1) call graph(i)%values(old)
         if (i == 2) call graph(i)%values(new)
         call graph(i)%owners([spread(ranks%rank(), 1, each)])
         call graph(i)%create(context, n, first, ranks)
         call plan(i)%create(graph(i))
      end do
      call plan(1)%run(x, y)
      call plan(2)%run(x, expected)
      good = any(y /= expected)
      call graph(1)%update_values(new)
      call plan(1)%run(x, y)
      good = good .and. all(y == expected)
      call graph(1)%update_values(old)
      call graph(1)%update_values(real(new, real32)) ! values with all their digits
      call plan(1)%run(x, y)
      call report(good .and. all(y == expected), 'plans have the new values of their graph')

      if (rank == 0) call graph(1)%update_values(old(2:), ierr)
      if (rank > 0) call graph(1)%update_values(old, ierr)
      good = ierr == GRAFT_ERR_ARG .and. is_shared(graft_message(), 'values')
      if (rank == 0) call plan(1)%run(x(each:1:-1), y, ierr=ierr)
      if (rank > 0) call plan(1)%run(x, y, ierr=ierr)
      good = good .and. ierr == GRAFT_ERR_ARG .and. is_shared(graft_message(), 'stride')
      if (rank == ranks%size() - 1) call plan(1)%run(x, y(2:), ierr=ierr)
      if (rank < ranks%size() - 1) call plan(1)%run(x, y, ierr=ierr)
      good = good .and. ierr == GRAFT_ERR_ARG .and. is_shared(graft_message(), '19')
      call plan(1)%run(x, y)
      call report(good .and. all(y == expected), 'what one rank does wrong is refused on all in the same words')
   end subroutine

   ! Describe a ring of vertices whose classes follow from their features.
   subroutine describe(data)
      type(graft_dataset), intent(inout) :: data
      integer :: row_ptr(each + 1), columns(2 * each), first, n, v

      call ring(row_ptr, columns, first, n)
      call data%rows(row_ptr, columns)
      call data%features(reshape([(sin(real(v)), real(class_of(v)), v=1, each)], [2, each]))
      call data%split([(1 + modulo(v, 3), v=1, each)])
      call data%slice(n, first)
   end subroutine

   integer function class_of(v)
      integer, intent(in) :: v

      class_of = merge(1, 0, modulo(v, 10) < 5)
   end function

   subroutine learn_arrays()
      type(graft_dataset) :: data, other
      type(graft_trainer) :: trainer, again
      type(graft_epoch) :: epoch, last
      type(graft_metrics) :: metrics
      integer :: labels(each), few(each - 1), v
      real(real64) :: y(2, each)
      logical :: good

      call describe(data)
      call data%labels([0, 1, 0], 2)
      if (rank > 0) call data%labels([(class_of(v), v=1, each)], 2)
      call trainer%create(context, data, ranks, ierr)
      good = ierr == GRAFT_ERR_ARG .and. is_shared(graft_message(), 'labels: 3 elements, expected 20')
      call report(good, 'an array that does not fit on one rank is refused on all')
      call data%labels([(class_of(v), v=1, each)], 2)
      call trainer%create(context, data, ranks)
      do while (epoch%done == 0)
         call trainer%epoch(epoch)
         if (epoch%epoch == n_epochs / 2) call trainer%save(trim(scratch)//'/half.safetensors')
      end do
      call trainer%evaluate(metrics, GRAFT_WEIGHTS_LAST)
      call trainer%predict(labels, GRAFT_WEIGHTS_LAST)
      call trainer%outputs(y, GRAFT_WEIGHTS_LAST)
      good = epoch%epoch == n_epochs .and. metrics%epoch == n_epochs .and. metrics%test_accuracy > 0.5 .and. &
             all(labels == maxloc(y, 1) - 1) .and. index(trainer%explain(), 'sage') > 0
      call trainer%predict(few, GRAFT_WEIGHTS_LAST, ierr)
      call report(good .and. ierr == GRAFT_ERR_ARG, 'a model learns arrays')

      call describe(other)
      call other%labels([(class_of(v), v=1, each)], 2)
      call again%create(context, other, ranks)
      call again%load('/nowhere/half.safetensors', ierr)
      good = ierr == GRAFT_ERR_NOT_FOUND
      call again%save('/nowhere/half.safetensors', ierr)
      good = good .and. ierr == GRAFT_ERR_IO
      call again%load(trim(scratch)//'/half.safetensors')
      do while (last%done == 0)
         call again%epoch(last)
      end do
      call again%epoch(last, ierr)
      call report(good .and. ierr == GRAFT_ERR_STATE .and. last%loss == epoch%loss .and. epoch%loss > 0, &
                  'resumed from a file it is bitwise identical')
   end subroutine

   ! Train a regression whose arrays have the vertices in the first dimension.
   subroutine learn_numbers()
      type(graft_dataset) :: data
      type(graft_trainer) :: trainer
      type(graft_epoch) :: first, epoch
      real(real64) :: x(each, 2)
      real(real32) :: y(1, each)
      integer :: v
      logical :: good

      call describe(data)
      x(:, 1) = [(sin(real(v, real64)), v=1, each)]
      x(:, 2) = [(cos(real(v, real64)), v=1, each)]
      call data%features(x, graft_node_component)
      call data%targets(x(:, 2:), graft_node_component)
      call context%set('loss', 'mse')
      call trainer%create(context, data, ranks)
      call trainer%epoch(first)
      do while (epoch%done == 0)
         call trainer%epoch(epoch)
      end do
      call trainer%outputs(y, GRAFT_WEIGHTS_LAST)
      good = epoch%loss < first%loss .and. maxval(abs(y)) > 0
      call trainer%destroy()
      call context%set('loss', 'softmax')
      call report(good, 'a model learns numbers')
   end subroutine

   subroutine learn_files()
      type(graft_dataset) :: data
      type(graft_trainer) :: trainer
      type(graft_epoch) :: epoch
      type(graft_metrics) :: metrics
      logical :: good

      call data%open(context, '/nowhere/data', ranks, ierr)
      good = ierr == GRAFT_ERR_NOT_FOUND .and. index(graft_message(), '/nowhere/data') > 0
      call data%open(context, folder, ranks)
      call trainer%create(context, data, ranks)
      do while (epoch%done == 0)
         call trainer%epoch(epoch)
      end do
      call trainer%evaluate(metrics, GRAFT_WEIGHTS_BEST)
      call trainer%create(context, data, ranks, ierr)
      good = good .and. ierr == GRAFT_ERR_ARG .and. index(graft_message(), 'no arrays') > 0
      if (rank == 0) print '(a,f6.4)', 'accuracy ', metrics%validation_accuracy
      call report(good .and. metrics%validation_accuracy > 0.6, 'a model learns files')
   end subroutine
end program
