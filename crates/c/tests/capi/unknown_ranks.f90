! The module of examples/unknown.f90 on the ranks of a job. The test puts this program after it.
program unknown_ranks
   use mpi
   use unknown_traffic
   implicit none
   type(conset_connection), target :: ring(cells)
   type(conset_connection_set), target :: sets(2)
   type(conset_set) :: none(0)
   type(conset_compile_options) :: how
   type(conset_options) :: options
   type(c_ptr) :: image
   character(kind=c_char), target :: ring_name(5) = ['r', 'i', 'n', 'g', c_null_char]
   character(kind=c_char), target :: name(4) = ['w', 'a', 's', c_null_char]
   integer(c_int32_t) :: c
   integer :: error, count, rank

   call mpi_init(error)
   call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
   ring = [(conset_connection(c, modulo(c + 1, cells), 5), c=0, cells - 1)]
   sets(1) = conset_connection_set(c_loc(ring_name), c_loc(ring), int(cells, c_size_t))
   call check(conset_compile_options_init(how))
   how%connection_sets = c_loc(sets)
   how%connection_set_count = 1
   call check(conset_compile("ring:6"//c_null_char, none, 0_c_size_t, how, image))
   call check(conset_options_init(options))
   options%transport = CONSET_OVER_MPI
   call check(conset_communicator_new(MPI_COMM_WORLD, 0, options%communicator))
   call check(conset_run(image, options, c_funloc(program), c_null_ptr))
   call conset_image_free(image)

   ! Cell 0 has the record of all, and is on rank 0.
   count = int(records)
   call mpi_bcast(count, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   records = count
   call mpi_bcast(recorded%source, size(recorded), MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   call mpi_bcast(recorded%target, size(recorded), MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   call mpi_bcast(recorded%words, size(recorded), MPI_INTEGER, 0, MPI_COMM_WORLD, error)
   sets(2) = conset_connection_set(c_loc(name), c_loc(recorded), records)
   how%connection_set_count = 2
   call check(conset_compile("ring:6"//c_null_char, none, 0_c_size_t, how, image))
   call check(conset_run(image, options, c_funloc(again), c_null_ptr))
   call conset_image_free(image)
   call conset_communicator_free(options%communicator)
   if (rank == 0) print '(a)', "all as expected"
   call mpi_finalize(error)

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      integer :: ignored
      if (status == CONSET_OK) return
      print '(a)', conset_message()
      call mpi_abort(MPI_COMM_WORLD, 1, ignored)
   end subroutine
end program
