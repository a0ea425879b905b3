! The solver of ../solver.c in Fortran, with the same results: advection and diffusion on triangles of the unit square,
! whose rows of nodes are distributed over the ranks of a communicator. It knows nothing of Graft.
module heat_solver
   use, intrinsic :: iso_fortran_env, only: int32, int64, real64
   implicit none
   private
   include 'mpif.h'

   real(real64), parameter, public :: solver_step = 0.032_real64
   real(real64), parameter :: diffusion = 2e-3_real64, courant = 0.25_real64

   ! The part of the mesh that a rank has: its own rows of nodes, and the adjacent row of each neighbour (ghosts). Rows
   ! count from 0.
   type, public :: solver
      integer :: comm, rank, n_ranks
      integer :: side                               ! number of nodes in each direction
      integer :: first, end                         ! rows of nodes that the rank owns, excluding `end`
      integer :: low, high                          ! rows of nodes that the rank has
      integer :: n_nodes, n_cells = 0, n_own_cells  ! numbers of nodes and cells; own cells come first
      integer :: own_begin, own_end                 ! range of own nodes
      real(real64), allocatable :: x(:, :), velocity(:, :) ! (2, node) coordinates and velocity
      integer(int32), allocatable :: cell(:, :)     ! (3, cell) nodes of each cell
      integer(int64), allocatable :: id(:)          ! id of each node, from 0
      integer, allocatable :: owner(:)              ! rank that owns each node
      logical, allocatable :: is_free(:)            ! false on the boundary, where u stays 0
      real(real64), allocatable :: mass(:), rate(:), stage(:) ! work arrays, valid for own nodes
   contains
      procedure :: init
      procedure :: start
      procedure :: exchange
      procedure :: step
      procedure :: distance
   end type

contains

   ! A pseudo-random number between -1 and 1 that depends only on the node, so that all ranks agree.
   real(real64) function shake(id)
      integer(int64), intent(in) :: id
      integer(int64) :: bits

      bits = id * int(z'9e3779b97f4a7c15', int64)
      bits = ieor(bits, shiftr(bits, 31)) * int(z'bf58476d1ce4e5b9', int64)
      shake = real(shiftr(bits, 11), real64) / 2._real64**52 - 1
   end function

   ! All ranks have at least one row: side >= n_ranks.
   subroutine init(self, comm, side)
      class(solver), intent(inout) :: self
      integer, intent(in) :: comm, side
      integer :: ierr, n

      self%comm = comm
      self%side = side
      call MPI_Comm_rank(comm, self%rank, ierr)
      call MPI_Comm_size(comm, self%n_ranks, ierr)
      self%first = side * self%rank / self%n_ranks
      self%end = side * (self%rank + 1) / self%n_ranks
      self%low = max(self%first - 1, 0)
      self%high = min(self%end + 1, side)
      n = (self%high - self%low) * side
      self%n_nodes = n
      self%own_begin = (self%first - self%low) * side + 1
      self%own_end = (self%end - self%low) * side
      allocate (self%x(2, n), self%velocity(2, n), self%cell(3, 2 * n), self%id(n), self%owner(n), self%is_free(n))
      allocate (self%mass(n), self%rate(n), self%stage(n))
      call make_nodes(self)
      call make_cells(self)
      call make_mass(self)
   end subroutine

   integer function rank_of_row(self, row)
      class(solver), intent(in) :: self
      integer, intent(in) :: row

      rank_of_row = 0
      do while (row >= self%side * (rank_of_row + 1) / self%n_ranks)
         rank_of_row = rank_of_row + 1
      end do
   end function

   subroutine make_nodes(self)
      class(solver), intent(inout) :: self
      real(real64) :: pi, h, move
      integer :: row, column, i

      pi = acos(-1._real64)
      h = 1._real64 / (self%side - 1)
      i = 0
      do row = self%low, self%high - 1
         do column = 0, self%side - 1
            i = i + 1
            self%id(i) = int(row, int64) * self%side + column
            self%owner(i) = rank_of_row(self, row)
            self%is_free(i) = row > 0 .and. row < self%side - 1 .and. column > 0 .and. column < self%side - 1
            move = merge(0.2_real64, 0._real64, self%is_free(i))
            self%x(1, i) = (column + move * shake(2 * self%id(i))) * h
            self%x(2, i) = (row + move * shake(2 * self%id(i) + 1)) * h
            self%velocity(1, i) = sin(pi * self%x(1, i)) * cos(pi * self%x(2, i)) ! a vortex, no flow through walls
            self%velocity(2, i) = -cos(pi * self%x(1, i)) * sin(pi * self%x(2, i))
         end do
      end do
   end subroutine

   ! Add two triangles between four nodes.
   subroutine add_box(self, row, column)
      class(solver), intent(inout) :: self
      integer, intent(in) :: row, column
      integer :: a, b, c, d, n

      a = (row - self%low) * self%side + column + 1
      b = a + 1
      c = a + self%side
      d = c + 1
      n = self%n_cells
      if (modulo(row + column, 2) == 0) then
         self%cell(:, n + 1:n + 2) = reshape([a, b, d, a, d, c], [3, 2])
      else
         self%cell(:, n + 1:n + 2) = reshape([a, b, c, b, d, c], [3, 2])
      end if
      self%n_cells = n + 2
   end subroutine

   ! Make the cells. Own cells are those above own rows of nodes.
   subroutine make_cells(self)
      class(solver), intent(inout) :: self
      integer :: row, column

      do row = self%first, min(self%end, self%side - 1) - 1
         do column = 0, self%side - 2
            call add_box(self, row, column)
         end do
      end do
      self%n_own_cells = self%n_cells
      if (self%low == self%first) return
      do column = 0, self%side - 2
         call add_box(self, self%low, column)
      end do
   end subroutine

   subroutine make_mass(self)
      class(solver), intent(inout) :: self
      real(real64) :: gradient(2, 3), area2
      integer :: c, k

      self%mass = 0
      do c = 1, self%n_cells
         call shape_of(self, self%cell(:, c), area2, gradient)
         do k = 1, 3
            self%mass(self%cell(k, c)) = self%mass(self%cell(k, c)) + area2 / 6
         end do
      end do
   end subroutine

   ! Compute twice the area of a cell, and the gradients of its shape functions.
   subroutine shape_of(self, cell, area2, gradient)
      class(solver), intent(in) :: self
      integer(int32), intent(in) :: cell(3)
      real(real64), intent(out) :: area2, gradient(2, 3)
      real(real64) :: a(2), b(2), c(2), p(2), q(2)
      integer :: k

      a = self%x(:, cell(1))
      b = self%x(:, cell(2))
      c = self%x(:, cell(3))
      area2 = (b(1) - a(1)) * (c(2) - a(2)) - (c(1) - a(1)) * (b(2) - a(2))
      do k = 1, 3
         p = self%x(:, cell(modulo(k, 3) + 1))
         q = self%x(:, cell(modulo(k + 1, 3) + 1))
         gradient(1, k) = (p(2) - q(2)) / area2
         gradient(2, k) = (q(1) - p(1)) / area2
      end do
   end subroutine

   ! Set u to two Gaussians, whose positions and heights depend on the number of the run.
   subroutine start(self, run, u)
      class(solver), intent(in) :: self
      integer, intent(in) :: run
      real(real64), intent(out) :: u(:)
      integer(int64) :: draw
      integer :: i, k

      u = 0
      do i = 1, self%n_nodes
         if (.not. self%is_free(i)) cycle
         do k = 0, 1
            draw = 6 * run + 3 * k
            u(i) = u(i) + (0.75_real64 + 0.25_real64 * shake(draw)) * &
                   exp(-((self%x(1, i) - 0.5_real64 - 0.25_real64 * shake(draw + 1))**2 + &
                         (self%x(2, i) - 0.5_real64 - 0.25_real64 * shake(draw + 2))**2) / 0.015_real64)
         end do
      end do
   end subroutine

   ! Copy rows of nodes from their owners to the ghosts of their neighbours.
   subroutine exchange(self, u)
      class(solver), intent(in) :: self
      real(real64), intent(inout), contiguous :: u(:)
      integer :: below, above, last, n, ierr

      below = merge(self%rank - 1, MPI_PROC_NULL, self%low < self%first)
      above = merge(self%rank + 1, MPI_PROC_NULL, self%high > self%end)
      n = self%side
      last = self%own_end - n + 1
      call MPI_Sendrecv(u(self%own_begin), n, MPI_DOUBLE_PRECISION, below, 0, u(self%n_nodes - n + 1), n, &
                        MPI_DOUBLE_PRECISION, above, 0, self%comm, MPI_STATUS_IGNORE, ierr)
      call MPI_Sendrecv(u(last), n, MPI_DOUBLE_PRECISION, above, 1, u(1), n, MPI_DOUBLE_PRECISION, below, 1, &
                        self%comm, MPI_STATUS_IGNORE, ierr)
   end subroutine

   ! Compute du/dt of own nodes.
   subroutine find_rate(self, u)
      class(solver), intent(inout) :: self
      real(real64), intent(in) :: u(:)
      real(real64) :: gradient(2, 3), slope(2), flow(2), area2
      integer :: c, i, k

      self%rate = 0
      do c = 1, self%n_cells
         call shape_of(self, self%cell(:, c), area2, gradient)
         slope = 0
         do k = 1, 3
            slope = slope + u(self%cell(k, c)) * gradient(:, k)
         end do
         do k = 1, 3
            i = self%cell(k, c)
            flow = self%velocity(:, i)
            self%rate(i) = self%rate(i) - (area2 / 6 * (flow(1) * slope(1) + flow(2) * slope(2)) + &
                                           diffusion * area2 / 2 * (gradient(1, k) * slope(1) + &
                                                                    gradient(2, k) * slope(2)))
         end do
      end do
      do i = 1, self%n_nodes
         self%rate(i) = self%rate(i) * (merge(1, 0, self%is_free(i)) / self%mass(i))
      end do
   end subroutine

   ! Advance u by solver_step, in as many steps of Heun's method as the mesh needs. Ghosts must be up to date before,
   ! and are so afterwards.
   subroutine step(self, u)
      class(solver), intent(inout) :: self
      real(real64), intent(inout), contiguous :: u(:)
      real(real64) :: time
      integer :: stages, k

      stages = ceiling(solver_step * (self%side - 1) / courant)
      time = solver_step / stages
      do k = 1, stages
         call find_rate(self, u)
         self%stage = u + time * self%rate
         call self%exchange(self%stage)
         call find_rate(self, self%stage)
         u = (u + self%stage + time * self%rate) / 2
         call self%exchange(u)
      end do
   end subroutine

   ! The root mean square of u - v over the nodes of all ranks.
   real(real64) function distance(self, u, v)
      class(solver), intent(in) :: self
      real(real64), intent(in) :: u(:), v(:)
      real(real64) :: sum, all
      integer :: i, ierr

      sum = 0
      do i = self%own_begin, self%own_end
         sum = sum + (u(i) - v(i)) * (u(i) - v(i))
      end do
      call MPI_Allreduce(sum, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, self%comm, ierr)
      distance = sqrt(all / (real(self%side, real64) * self%side))
   end function
end module
