! Runs, and what their cells call.
module conset_cells_m
   use conset_types_m
   implicit none

   interface
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
      function conset_run_cells(image, options, cells, room, count) bind(c) result(status)
         import
         type(c_ptr), value :: image
         type(conset_options), intent(in), optional :: options
         integer(c_int32_t), dimension(*), intent(inout) :: cells
         integer(c_size_t), value :: room
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function

      ! ---- a cell ----
      function conset_id(cell) bind(c) result(id)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t) :: id
      end function
      function conset_cell_count(cell) bind(c) result(cells)
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
      function conset_set_round(cell, round) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int64_t), value :: round
         integer(c_int) :: status
      end function
      function conset_set_place(cell, file, line) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         character(kind=c_char), dimension(*), intent(in) :: file
         integer(c_int32_t), value :: line
         integer(c_int) :: status
      end function
      function conset_abort(cell, why) bind(c) result(status)
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
      function conset_exchange_by(cell, by, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: by, op, type
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
      function conset_exchange_many_by(cell, by, plan, op, type, vectors, words, count) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: by, op, type
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
      function conset_combine_shared_by(cell, by, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: by, op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_combine_owned(cell, backward, forward, op, type, x, words) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, backward, forward
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_combine_owned_by(cell, by, backward, forward, op, type, x, words) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, backward, forward
         integer(c_int), value :: by, op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_exchange_lists(cell, set, lists, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, lists
         integer(c_int32_t), value :: set
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_start(cell, plan, op, type, x, words, pending) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(in) :: x
         integer(c_size_t), value :: words
         type(conset_pending), intent(out) :: pending
         integer(c_int) :: status
      end function
      function conset_start_many(cell, plan, op, type, vectors, words, count, pending) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(c_ptr), dimension(*), intent(in) :: vectors
         integer(c_size_t), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         type(conset_pending), intent(out) :: pending
         integer(c_int) :: status
      end function
      function conset_start_shared(cell, plan, op, type, x, words, pending) bind(c) result(status)
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
      function conset_wait(cell, plan, pending, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         type(conset_pending), intent(in) :: pending
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_wait_many(cell, plan, pending, type, vectors, words, count) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         type(conset_pending), intent(in) :: pending
         integer(c_int), value :: type
         type(c_ptr), dimension(*), intent(in) :: vectors
         integer(c_size_t), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function

      ! ---- collectives ----
      function conset_start_allreduce(cell, trees, op, type, x, words, pending) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(in) :: x
         integer(c_size_t), value :: words
         type(conset_pending), intent(out) :: pending
         integer(c_int) :: status
      end function
      function conset_wait_allreduce(cell, pending, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         type(conset_pending), intent(in) :: pending
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_allreduce(cell, trees, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_reduce(cell, trees, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_allreduce_max_at(cell, trees, type, greatest, at) bind(c) result(status)
         import
         type(c_ptr), value :: cell, trees
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: greatest
         integer(c_int64_t), intent(inout) :: at
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
      function conset_exchange_words_by(cell, by, set, type, outgoing, outgoing_words, incoming, &
         incoming_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         integer(c_int), value :: by, type
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

      ! ---- former names, kept for one release ----
      function conset_cells(cell) bind(c) result(cells)
         import
         type(c_ptr), value :: cell
         integer(c_size_t) :: cells
      end function
      function conset_give_up(cell, why) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         character(kind=c_char), dimension(*), intent(in) :: why
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
      function conset_begin_many(cell, plan, op, type, vectors, words, count, pending) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(c_ptr), dimension(*), intent(in) :: vectors
         integer(c_size_t), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         type(conset_pending), intent(out) :: pending
         integer(c_int) :: status
      end function
      function conset_begin_shared(cell, plan, op, type, x, words, pending) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(in) :: x
         integer(c_size_t), value :: words
         type(conset_pending), intent(out) :: pending
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
      function conset_end_many(cell, plan, pending, type, vectors, words, count) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, plan
         type(conset_pending), intent(in) :: pending
         integer(c_int), value :: type
         type(c_ptr), dimension(*), intent(in) :: vectors
         integer(c_size_t), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
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
      function conset_msg_sum_shared(cell, plan, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_msg_combine_shared(cell, plan, op, type, x, words) bind(c) result(status)
         import
         type(c_ptr), value :: cell, plan
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
         integer(c_int) :: status
      end function
      function conset_msg_combine_owned(cell, backward, forward, op, type, x, words) bind(c) &
         result(status)
         import
         type(c_ptr), value :: cell, backward, forward
         integer(c_int), value :: op, type
         type(*), dimension(*), intent(inout) :: x
         integer(c_size_t), value :: words
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
   end interface
end module
