! Messages between two cells, collectives without trees, and traffic that is not known before.
module conset_unknown_m
   use conset_types_m
   implicit none

   interface
      ! ---- messages between two cells ----
      function conset_msg_try_receive(cell, source, type, words, count, &
         found) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: source
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int), intent(out) :: found
         integer(c_int) :: status
      end function
      function conset_msg_receive_any(cell, type, words, room, source, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: room
         integer(c_int32_t), intent(out) :: source
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
      function conset_send(cell, target, type, words, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: target
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_receive(cell, source, type, words, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: source
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_send_receive(cell, type, target, outgoing, outgoing_words, source, &
         incoming, incoming_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int), value :: type
         integer(c_int32_t), value :: target, source
         type(*), dimension(*), intent(in) :: outgoing
         type(*), dimension(*), intent(inout) :: incoming
         integer(c_size_t), value :: outgoing_words, incoming_words
         integer(c_int) :: status
      end function

      ! ---- collectives without trees ----
      function conset_broadcast_from(cell, root, type, words, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: root
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_gather(cell, root, type, own, own_words, all, &
         all_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: root
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: own
         type(*), dimension(*), intent(inout) :: all
         integer(c_size_t), value :: own_words, all_words
         integer(c_int) :: status
      end function
      function conset_scatter(cell, root, type, all, all_words, own, &
         own_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: root
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: all
         type(*), dimension(*), intent(inout) :: own
         integer(c_size_t), value :: all_words, own_words
         integer(c_int) :: status
      end function
      ! `combine` is `recursive subroutine f(lower, upper, count, data) bind(c)` with
      ! `type(c_ptr), value :: lower, upper, data` and `integer(c_size_t), value :: count`.
      function conset_reduce_with(cell, root, block, type, words, count, combine, &
         data) bind(c) result(status)
         import
         type(c_ptr), value :: cell, data
         integer(c_int32_t), value :: root
         integer(c_int), value :: type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: block, count
         type(c_funptr), value :: combine
         integer(c_int) :: status
      end function

      ! ---- when the pattern is not known ----
      function conset_exchange_any(cell, type, count, targets, first, words, &
         arrivals) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int), value :: type
         integer(c_size_t), value :: count
         integer(c_int32_t), dimension(*), intent(in) :: targets
         integer(c_size_t), dimension(*), intent(in) :: first
         type(*), dimension(*), intent(in) :: words
         type(c_ptr), intent(out) :: arrivals
         integer(c_int) :: status
      end function
      function conset_arrivals_count(arrivals) bind(c) result(count)
         import
         type(c_ptr), value :: arrivals
         integer(c_size_t) :: count
      end function
      function conset_arrivals_list(arrivals, row, found) bind(c) result(status)
         import
         type(c_ptr), value :: arrivals
         integer(c_size_t), value :: row
         type(conset_arrival), intent(out) :: found
         integer(c_int) :: status
      end function
      subroutine conset_arrivals_free(arrivals) bind(c)
         import
         type(c_ptr), value :: arrivals
      end subroutine
      function conset_exchange_sized(cell, set, type, count, first, words, incoming, room, &
         incoming_words) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int32_t), value :: set
         integer(c_int), value :: type
         integer(c_size_t), value :: count, room
         integer(c_size_t), dimension(*), intent(in) :: first
         type(*), dimension(*), intent(in) :: words
         type(*), dimension(*), intent(inout) :: incoming
         integer(c_size_t), dimension(*), intent(inout) :: incoming_words
         integer(c_int) :: status
      end function
      function conset_epoch_open(cell, item_bytes, epoch) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_size_t), value :: item_bytes
         type(c_ptr), intent(out) :: epoch
         integer(c_int) :: status
      end function
      function conset_epoch_send(epoch, target, item) bind(c) result(status)
         import
         type(c_ptr), value :: epoch
         integer(c_int32_t), value :: target
         type(*), dimension(*), intent(in) :: item
         integer(c_int) :: status
      end function
      ! `handler` is `recursive function f(epoch, source, item, data) bind(c) result(status)` with
      ! `type(c_ptr), value :: epoch, item, data`, `integer(c_int32_t), value :: source` and
      ! `integer(c_int) :: status`.
      function conset_epoch_settle(epoch, handler, data, settled) bind(c) result(status)
         import
         type(c_ptr), value :: epoch, data
         type(c_funptr), value :: handler
         type(conset_settled), intent(out), optional :: settled
         integer(c_int) :: status
      end function
      function conset_epoch_limit_rounds(epoch, rounds) bind(c) result(status)
         import
         type(c_ptr), value :: epoch
         integer(c_int64_t), value :: rounds
         integer(c_int) :: status
      end function
      function conset_epoch_close(epoch) bind(c) result(status)
         import
         type(c_ptr), value :: epoch
         integer(c_int) :: status
      end function
      function conset_set_routing(cell, routing) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int), value :: routing
         integer(c_int) :: status
      end function
      function conset_start_record(cell) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         integer(c_int) :: status
      end function
      function conset_take_record(cell, connections, room, count) bind(c) result(status)
         import
         type(c_ptr), value :: cell
         type(conset_connection), dimension(*), intent(inout) :: connections
         integer(c_size_t), value :: room
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
   end interface
end module
