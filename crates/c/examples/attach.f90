! Halos in an MPI program in Fortran: a vector of 3 numbers an item, ghosts of both neighbours in a
! ring of ranks, and the sum of all ghosts.
!
!     mpirun -n 4 attach
program attach
   use mpi
   use conset
   implicit none
   integer(c_int64_t), parameter :: own = 5
   type(c_ptr) :: ranks, halo
   integer :: rank, size, code
   integer(c_int64_t) :: first, all, ghosts(2), exchange, reduction
   real(c_double), allocatable :: x(:, :)
   real(c_double) :: sums(2), expected
   integer :: i

   call mpi_init(code)
   call mpi_comm_rank(mpi_comm_world, rank, code)
   call mpi_comm_size(mpi_comm_world, size, code)
   call check(conset_attach(mpi_comm_world, ranks))

   ! The rank owns the ids first to first + own - 1. On one rank there are no neighbours.
   first = rank*own
   all = size*own
   ghosts = [modulo(first - 1, all), modulo(first + own, all)]
   call check(conset_halo_from_range(ranks, first, first + own, &
                                     merge(2_c_size_t, 0_c_size_t, size > 1), ghosts, halo))
   allocate (x(3, conset_halo_items(halo)))
   x = -1
   do i = 1, int(own)
      x(:, i) = real(first + i - 1, c_double)*[1, 10, 100]
   end do
   call check(conset_halo_exchange(halo, CONSET_DOUBLE, x, 3_c_size_t))

   ! The same again, with the ghosts on their way meanwhile.
   call check(conset_halo_start(halo, CONSET_DOUBLE, x, 3_c_size_t, exchange))
   sums(1) = sum(x(1, own + 1:))
   call check(conset_halo_wait(halo, exchange, CONSET_COPY, CONSET_DOUBLE, x, 3_c_size_t))
   sums(2) = sum(x(3, own + 1:))
   ! A reduction goes on while something else is computed; here it is completed at once.
   call check(conset_attached_start_allreduce(ranks, CONSET_ADD, CONSET_DOUBLE, sums, 2_c_size_t, &
                                              reduction))
   call check(conset_attached_wait(ranks, reduction, CONSET_DOUBLE, sums, 2_c_size_t))

   ! Every rank's first and last id is a ghost of a neighbour.
   expected = 0
   if (size > 1) expected = sum([(real(2*i*own + own - 1, c_double), i=0, size - 1)])
   if (any(sums /= expected*[1, 100])) call mpi_abort(mpi_comm_world, 1, code)
   if (rank == 0) print '(a)', "all as expected"

   call conset_halo_free(halo)
   call conset_detach(ranks)
   call mpi_finalize(code)

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      integer :: code
      if (status == CONSET_OK) return
      print '(a)', conset_message()
      call mpi_abort(mpi_comm_world, 1, code)
   end subroutine
end program
