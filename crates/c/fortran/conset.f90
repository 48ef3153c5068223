! conset for Fortran: the functions of conset.h, where each is described, as they are in C.
!
! - Handles (conset_image * and so on) are type(c_ptr), and so is a cell.
! - Arrays of numbers are passed as they are; CONSET_DOUBLE is real(c_double), CONSET_FLOAT
!   real(c_float), CONSET_INT64 integer(c_int64_t), CONSET_INT32 integer(c_int32_t). They are arrays
!   also where they have one number, except for elements.
! - Numbers of cells, rows, columns and pointers begin with 0: declare ptr(0:n), say.
! - Names end with c_null_char; conset_message() is the text of conset_error.
! - What conset_run calls is `function f(cell, data) bind(c) result(status)` with
!   `type(c_ptr), value :: cell, data` and `integer(c_int) :: status`, given as c_funloc(f).
! - What is written in conset.h of size_t is integer(c_size_t), of uint32_t integer(c_int32_t), of
!   uint64_t integer(c_int64_t), with the same bits.
! - Places for handles and results that may be null in C are given as c_loc(..) or c_null_ptr.
module conset
   use, intrinsic :: iso_c_binding
   implicit none
   private :: text_length

   ! conset_status
   enum, bind(c)
      enumerator :: CONSET_OK = 0, CONSET_NULL_POINTER, CONSET_BAD_ARGUMENT, CONSET_BAD_HANDLE, &
         CONSET_FILE, CONSET_INPUT, CONSET_REJECTED, CONSET_INFEASIBLE, CONSET_LAYOUT, CONSET_PLAN, &
         CONSET_CELL, CONSET_PROGRAM, CONSET_MISMATCH, CONSET_TIME_OUT, CONSET_FAULT, &
         CONSET_MEMORY, CONSET_MPI, CONSET_UNSUPPORTED, CONSET_ABORTED, CONSET_BUG
   end enum
   ! conset_transport
   enum, bind(c)
      enumerator :: CONSET_FABRIC = 0, CONSET_THREADS, CONSET_OVER_MPI
   end enum
   ! conset_op
   enum, bind(c)
      enumerator :: CONSET_COPY = 0, CONSET_ADD, CONSET_MIN, CONSET_MAX
   end enum
   ! conset_type
   enum, bind(c)
      enumerator :: CONSET_DOUBLE = 0, CONSET_FLOAT, CONSET_INT64, CONSET_INT32
   end enum
   ! conset_algorithm
   enum, bind(c)
      enumerator :: CONSET_BEST = 0, CONSET_PAPER
   end enum

   type, bind(c) :: conset_connection
      integer(c_int32_t) :: source, target, words
   end type

   type, bind(c) :: conset_operation
      integer(c_int32_t) :: connection
      integer(c_int) :: sends
      integer(c_int32_t) :: first_word, words
   end type

   type, bind(c) :: conset_local_csr
      integer(c_size_t) :: items, owned, entries
      type(c_ptr) :: ids, ptr, idx
   end type

   type, bind(c) :: conset_set
      type(c_ptr) :: name, layout
      integer(c_size_t) :: block
   end type

   type, bind(c) :: conset_compile_options
      integer(c_size_t) :: size
      integer(c_int64_t) :: seed
      integer(c_int32_t) :: tree_words, max_phases
      integer(c_int) :: algorithm
   end type

   type, bind(c) :: conset_options
      integer(c_size_t) :: size
      integer(c_int) :: transport, workers, time_out_ms
      integer(c_size_t) :: stack_bytes
      type(c_ptr) :: communicator
   end type

   type, bind(c) :: conset_report
      integer(c_int64_t) :: clocks, switches, switch_clocks, words, word_hops
   end type

   type, bind(c) :: conset_pending
      integer(c_int64_t) :: numbers(3)
   end type

   interface
      ! ---- the library ----
      function conset_version() bind(c) result(text)
         import
         type(c_ptr) :: text
      end function
      function conset_error() bind(c) result(text)
         import
         type(c_ptr) :: text
      end function
      function conset_status_text(status) bind(c) result(text)
         import
         integer(c_int), value :: status
         type(c_ptr) :: text
      end function

      ! ---- images ----
      function conset_image_parse(bytes, size, image) bind(c) result(status)
         import
         type(*), dimension(*), intent(in) :: bytes
         integer(c_size_t), value :: size
         type(c_ptr), intent(out) :: image
         integer(c_int) :: status
      end function
      function conset_image_read(path, image) bind(c) result(status)
         import
         character(kind=c_char), dimension(*), intent(in) :: path
         type(c_ptr), intent(out) :: image
         integer(c_int) :: status
      end function
      function conset_image_write(image, path) bind(c) result(status)
         import
         type(c_ptr), value :: image
         character(kind=c_char), dimension(*), intent(in) :: path
         integer(c_int) :: status
      end function
      function conset_image_digest(image, digest) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int64_t), intent(out) :: digest
         integer(c_int) :: status
      end function
      function conset_image_cells(image) bind(c) result(cells)
         import
         type(c_ptr), value :: image
         integer(c_size_t) :: cells
      end function
      function conset_image_sets(image) bind(c) result(sets)
         import
         type(c_ptr), value :: image
         integer(c_size_t) :: sets
      end function
      function conset_image_set(image, name, set) bind(c) result(status)
         import
         type(c_ptr), value :: image
         character(kind=c_char), dimension(*), intent(in) :: name
         integer(c_int32_t), intent(out) :: set
         integer(c_int) :: status
      end function
      function conset_image_phases(image, set, phases) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set
         integer(c_int32_t), intent(out) :: phases
         integer(c_int) :: status
      end function
      function conset_image_connections(image, set, connections) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set
         integer(c_int32_t), intent(out) :: connections
         integer(c_int) :: status
      end function
      function conset_image_connection(image, set, connection, found) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set, connection
         type(conset_connection), intent(out) :: found
         integer(c_int) :: status
      end function
      function conset_image_words(image, set, cell, outgoing, incoming) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set, cell
         integer(c_size_t), intent(out) :: outgoing, incoming
         integer(c_int) :: status
      end function
      function conset_image_operations(image, set, phase, cell, operations, room, count) bind(c) &
         result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set, phase, cell
         type(conset_operation), dimension(*), intent(inout) :: operations
         integer(c_size_t), value :: room
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
      subroutine conset_image_free(image) bind(c)
         import
         type(c_ptr), value :: image
      end subroutine

      ! ---- layouts ----
      function conset_layout_from_shared_ids(cells, first, ids, layout) bind(c) result(status)
         import
         integer(c_size_t), value :: cells
         integer(c_size_t), dimension(*), intent(in) :: first
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), intent(out) :: layout
         integer(c_int) :: status
      end function
      function conset_layout_from_owned(cells, first, ids, owned, forward, backward) bind(c) &
         result(status)
         import
         integer(c_size_t), value :: cells
         integer(c_size_t), dimension(*), intent(in) :: first, owned
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), value :: forward, backward
         integer(c_int) :: status
      end function
      function conset_layout_from_image(image, set, block, cells, first, ids, layout) bind(c) &
         result(status)
         import
         type(c_ptr), value :: image
         character(kind=c_char), dimension(*), intent(in) :: set
         integer(c_size_t), value :: block, cells
         integer(c_size_t), dimension(*), intent(in) :: first
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), intent(out) :: layout
         integer(c_int) :: status
      end function
      function conset_layout_placed(layout, parts, place, cells, placed) bind(c) result(status)
         import
         type(c_ptr), value :: layout
         integer(c_size_t), value :: parts, cells
         integer(c_int32_t), dimension(*), intent(in) :: place
         type(c_ptr), intent(out) :: placed
         integer(c_int) :: status
      end function
      function conset_layout_items(layout, cell) bind(c) result(items)
         import
         type(c_ptr), value :: layout
         integer(c_int32_t), value :: cell
         integer(c_size_t) :: items
      end function
      function conset_layout_connections(layout) bind(c) result(connections)
         import
         type(c_ptr), value :: layout
         integer(c_size_t) :: connections
      end function
      subroutine conset_layout_free(layout) bind(c)
         import
         type(c_ptr), value :: layout
      end subroutine
      function conset_matrix_new(rows, index_type, ptr, idx, owner, cells, matrix) bind(c) &
         result(status)
         import
         integer(c_size_t), value :: rows, cells
         integer(c_int), value :: index_type
         type(*), dimension(*), intent(in) :: ptr, idx
         integer(c_int32_t), dimension(*), intent(in) :: owner
         type(c_ptr), intent(out) :: matrix
         integer(c_int) :: status
      end function
      function conset_matrix_layouts(matrix, forward, backward) bind(c) result(status)
         import
         type(c_ptr), value :: matrix, forward, backward
         integer(c_int) :: status
      end function
      function conset_matrix_local(matrix, cell, local) bind(c) result(status)
         import
         type(c_ptr), value :: matrix
         integer(c_int32_t), value :: cell
         type(conset_local_csr), intent(out) :: local
         integer(c_int) :: status
      end function
      subroutine conset_matrix_free(matrix) bind(c)
         import
         type(c_ptr), value :: matrix
      end subroutine

      ! ---- compiling ----
      function conset_compile_options_init(options) bind(c) result(status)
         import
         type(conset_compile_options), intent(out) :: options
         integer(c_int) :: status
      end function
      function conset_compile(machine, sets, count, options, image) bind(c) result(status)
         import
         character(kind=c_char), dimension(*), intent(in) :: machine
         type(conset_set), dimension(*), intent(in) :: sets
         integer(c_size_t), value :: count
         type(conset_compile_options), intent(in), optional :: options
         type(c_ptr), intent(out) :: image
         integer(c_int) :: status
      end function

      ! ---- plans and trees ----
      function conset_plan_new(image, set, layout, block, plan) bind(c) result(status)
         import
         type(c_ptr), value :: image, layout
         character(kind=c_char), dimension(*), intent(in) :: set
         integer(c_size_t), value :: block
         type(c_ptr), intent(out) :: plan
         integer(c_int) :: status
      end function
      subroutine conset_plan_free(plan) bind(c)
         import
         type(c_ptr), value :: plan
      end subroutine
      function conset_trees_new(image, trees) bind(c) result(status)
         import
         type(c_ptr), value :: image
         type(c_ptr), intent(out) :: trees
         integer(c_int) :: status
      end function
      subroutine conset_trees_free(trees) bind(c)
         import
         type(c_ptr), value :: trees
      end subroutine

      ! ---- runs ----
      function conset_communicator_new(fortran, time_out_ms, communicator) bind(c) result(status)
         import
         integer(c_int), value :: fortran, time_out_ms
         type(c_ptr), intent(out) :: communicator
         integer(c_int) :: status
      end function
      subroutine conset_communicator_free(communicator) bind(c)
         import
         type(c_ptr), value :: communicator
      end subroutine
      function conset_options_init(options) bind(c) result(status)
         import
         type(conset_options), intent(out) :: options
         integer(c_int) :: status
      end function
      function conset_run(image, options, program, data, report) bind(c) result(status)
         import
         type(c_ptr), value :: image, data
         type(conset_options), intent(in), optional :: options
         type(c_funptr), value :: program
         type(conset_report), intent(out), optional :: report
         integer(c_int) :: status
      end function

      ! ---- a cell ----
      function conset_id(cell) bind(c) result(id)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t) :: id
      end function
      function conset_cells(cell) bind(c) result(cells)
         import
         type(c_ptr), value :: cell
         integer(c_size_t) :: cells
      end function
      function conset_clock(cell) bind(c) result(clock)
         import
         type(c_ptr), value :: cell
         integer(c_int64_t) :: clock
      end function
      function conset_compute(cell, clocks) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int64_t), value :: clocks
         integer(c_int) :: status
      end function
      function conset_give_up(cell, why) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         character(kind=c_char), dimension(*), intent(in) :: why
         integer(c_int) :: status
      end function

      ! ---- exchanges of vectors ----
      function conset_exchange(cell, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_msg_exchange(cell, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_exchange_many(cell, plan, op, type, vectors, words, count) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(c_ptr), dimension(*), intent(in) :: vectors
         integer(c_size_t), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_sum_shared(cell, plan, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_combine_shared(cell, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_begin(cell, plan, op, type, x, words, pending) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(in) :: x
         integer(c_size_t), value :: words
         type(conset_pending), intent(out) :: pending
         integer(c_int) :: status
      end function
      function conset_test(cell, pending, done) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         type(conset_pending), intent(in) :: pending
         integer(c_int), intent(out) :: done
         integer(c_int) :: status
      end function
      function conset_end(cell, plan, pending, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         type(conset_pending), intent(in) :: pending
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function

      ! ---- collectives ----
      function conset_allreduce(cell, trees, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_broadcast(cell, trees, from, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int32_t), value :: from
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_barrier(cell, trees) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int) :: status
      end function

      ! ---- sets without layouts ----
      function conset_connections_out(cell, set, connections, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         type(c_ptr), intent(out) :: connections
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
      function conset_connections_in(cell, set, connections, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         type(c_ptr), intent(out) :: connections
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
      function conset_exchange_words(cell, set, type, outgoing, outgoing_words, incoming, &
         incoming_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: outgoing
         type(*), dimension(*), intent(inout) :: incoming
         integer(c_size_t), value :: outgoing_words, incoming_words
         integer(c_int) :: status
      end function
      function conset_msg_exchange_words(cell, set, type, outgoing, outgoing_words, incoming, &
         incoming_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: outgoing
         type(*), dimension(*), intent(inout) :: incoming
         integer(c_size_t), value :: outgoing_words, incoming_words
         integer(c_int) :: status
      end function
      function conset_instantiate_phase(cell, set, phase) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set, phase
         integer(c_int) :: status
      end function
      function conset_send_element(cell, connection, type, word) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: connection
         integer(c_int), value :: type
         type(*), intent(in) :: word
         integer(c_int) :: status
      end function
      function conset_receive_element(cell, connection, type, word) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: connection
         integer(c_int), value :: type
         type(*), intent(inout) :: word
         integer(c_int) :: status
      end function

      ! ---- messages ----
      function conset_instantiate_messages(cell) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int) :: status
      end function
      function conset_msg_send(cell, target, type, words, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: target
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_msg_receive(cell, source, type, words, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: source
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
   end interface

   interface
      ! strlen of the C library.
      function text_length(text) bind(c, name="strlen") result(length)
         import
         type(c_ptr), value :: text
         integer(c_size_t) :: length
      end function
   end interface

contains

   ! What conset_error says.
   function conset_message() result(message)
      character(len=:), allocatable :: message
      character(kind=c_char), pointer :: text(:)
      type(c_ptr) :: found
      integer :: i
      found = conset_error()
      call c_f_pointer(found, text, [text_length(found)])
      allocate (character(len=size(text)) :: message)
      do i = 1, size(text)
         message(i:i) = text(i)
      end do
   end function
end module
