! Traffic that nobody knows before the run, in Fortran: an epoch, exchanges with unknown partners and
! sizes, messages, collectives without trees; what was sent is recorded, compiled, and run.
! examples/unknown.c does more of it.
!
!     unknown [fabric|threads]
module unknown_traffic
   use conset
   implicit none
   integer(c_int32_t), parameter :: cells = 6
   ! What all cells recorded, at cell 0.
   type(conset_connection), target :: recorded(cells*cells)
   integer(c_size_t) :: records = 0

   ! What a cell has handled.
   type :: tally
      integer(c_int64_t) :: count = 0, total = 0
   end type

contains

   ! Handles an item of two numbers: passes it on to the next cell while the first is not 0.
   recursive function pass_on(epoch, source, item, data) bind(c) result(status)
      type(c_ptr), value :: epoch, item, data
      integer(c_int32_t), value :: source
      integer(c_int) :: status
      integer(c_int64_t), pointer :: hops(:)
      type(tally), pointer :: own
      call c_f_pointer(item, hops, [2])
      call c_f_pointer(data, own)
      own%count = own%count + 1
      own%total = own%total + hops(2) + 0*source
      status = CONSET_OK
      if (hops(1) > 0) status = conset_epoch_send(epoch, int(modulo(hops(2) + hops(1), &
         int(cells, c_int64_t)), c_int32_t), [hops(1) - 1, hops(2)])
   end function

   ! The upper words where the lower ones are 0, which does not commute.
   recursive subroutine first_not_zero(lower, upper, count, data) bind(c)
      type(c_ptr), value :: lower, upper, data
      integer(c_size_t), value :: count
      integer(c_int64_t), pointer :: own(:), other(:)
      call c_f_pointer(lower, own, [count])
      call c_f_pointer(upper, other, [count])
      if (.not. c_associated(data)) where (own == 0) own = other
   end subroutine

   recursive function program(cell, data) bind(c) result(status)
      type(c_ptr), value :: cell, data
      integer(c_int) :: status
      integer(c_int32_t) :: c
      status = CONSET_OK
      if (c_associated(data)) return
      c = conset_id(cell)
      call epoch()
      call exchanges()
      call messages()
      call collectives()

   contains

      recursive subroutine epoch()
         type(c_ptr) :: opened
         type(conset_settled) :: settled
         type(tally), target :: own
         integer(c_int64_t) :: sums(2), joined(2*cells)
         call try(conset_epoch_open(cell, 16_c_size_t, opened))
         call try(conset_epoch_send(opened, modulo(c + 1, cells), [4_c_int64_t, int(c, c_int64_t)]))
         call try(conset_epoch_limit_rounds(opened, 10_c_int64_t))
         call try(conset_epoch_settle(opened, c_funloc(pass_on), c_loc(own), settled))
         call try(conset_epoch_close(opened))
         call expect(settled%rounds == 5 .and. settled%handled == own%count, "the rounds")
         sums = [own%count, own%total]
         call try(conset_gather(cell, 1, CONSET_INT64, sums, 2_c_size_t, joined, &
                                merge(int(2*cells, c_size_t), 0_c_size_t, c == 1)))
         if (c == 1) call expect(sum(joined(1::2)) == 5*cells .and. &
                                 sum(joined(2::2)) == 5*cells*(cells - 1)/2, "the items")
      end subroutine

      recursive subroutine exchanges()
         type(c_ptr) :: arrivals
         type(conset_arrival) :: found
         type(conset_connection) :: own(cells)
         real(c_double), pointer :: words(:)
         integer(c_int32_t) :: row(cells), joined(cells*cells), source, target
         integer(c_int64_t) :: incoming(5)
         integer(c_size_t) :: count, sizes(1)
         call try(conset_set_routing(cell, CONSET_ROUTE_DIRECT))
         call try(conset_start_record(cell))
         call try(conset_exchange_any(cell, CONSET_DOUBLE, 1_c_size_t, [modulo(c + 2, cells)], &
                                      [0_c_size_t, 2_c_size_t], [c + 0.5_c_double, 1.0_c_double], arrivals))
         call expect(conset_arrivals_count(arrivals) == 1, "the sources")
         call try(conset_arrivals_list(arrivals, 0_c_size_t, found))
         if (status /= CONSET_OK) return
         call c_f_pointer(found%words, words, [found%count])
         call expect(found%source == modulo(c - 2, cells) .and. found%count == 2, "the source")
         call expect(words(1) == found%source + 0.5_c_double .and. words(2) == 1, "the words")
         call conset_arrivals_free(arrivals)

         ! The record of all cells, at cell 0.
         call try(conset_take_record(cell, own, int(cells, c_size_t), count))
         row = 0
         if (status == CONSET_OK) row(own(:count)%target + 1) = own(:count)%words
         call try(conset_gather(cell, 0, CONSET_INT32, row, int(cells, c_size_t), joined, &
                                merge(int(cells*cells, c_size_t), 0_c_size_t, c == 0)))
         do source = 0, merge(cells, 0, c == 0) - 1
            do target = 0, cells - 1
               if (joined(source*cells + target + 1) == 0) cycle
               records = records + 1
               recorded(records) = conset_connection(source, target, joined(source*cells + target + 1))
            end do
         end do

         ! As many words to the next cell as the number of the cell.
         incoming = -1
         call try(conset_exchange_sized(cell, 0, CONSET_INT64, 1_c_size_t, [0_c_size_t, int(c, c_size_t)], &
                                        [7_c_int64_t, 6_c_int64_t, 5_c_int64_t, 4_c_int64_t, 3_c_int64_t], &
                                        incoming, 5_c_size_t, sizes))
         call expect(sizes(1) == modulo(c - 1, cells) .and. count_of(incoming, -1) == 5 - sizes(1), "sizes")
      end subroutine

      recursive integer function count_of(numbers, number)
         integer(c_int64_t), intent(in) :: numbers(:)
         integer, intent(in) :: number
         count_of = count(numbers == number)
      end function

      recursive subroutine messages()
         integer(c_int32_t) :: after, before, got(2), source
         integer(c_int) :: found
         integer(c_size_t) :: count
         after = modulo(c + 1, cells)
         before = modulo(c - 1, cells)
         call try(conset_send_receive(cell, CONSET_INT32, after, [c, 1], 2_c_size_t, before, got, 2_c_size_t))
         call expect(all(got == [before, 1]), "both at once")
         if (modulo(c, 2) == 0) call try(conset_send(cell, after, CONSET_INT32, [c], 1_c_size_t))
         if (modulo(c, 2) == 1) call try(conset_receive(cell, before, CONSET_INT32, got, 1_c_size_t))
         call try(conset_msg_send(cell, after, CONSET_INT32, [3*c], 1_c_size_t))
         found = 0
         do while (status == CONSET_OK .and. found == 0)
            call try(conset_msg_try_receive(cell, before, CONSET_INT32, got, 1_c_size_t, found))
         end do
         call expect(got(1) == 3*before, "whether one has come")
         call try(conset_msg_send(cell, after, CONSET_INT32, [c, c], 2_c_size_t))
         call try(conset_msg_receive_any(cell, CONSET_INT32, got, 2_c_size_t, source, count))
         call expect(source == before .and. count == 2 .and. got(2) == before, "whoever comes")
      end subroutine

      recursive subroutine collectives()
         integer(c_int64_t) :: own(2), first(4), joined(2*cells)
         integer :: i
         joined = [(10*i, i=1, 2*cells)]
         call try(conset_scatter(cell, 2, CONSET_INT64, joined, merge(int(2*cells, c_size_t), 0_c_size_t, c == 2), &
                                 own, 2_c_size_t))
         call expect(joined(2*c + 1) == own(1) .and. joined(2*c + 2) == own(2), "scatter")
         call try(conset_broadcast_from(cell, 3, CONSET_INT64, own, 2_c_size_t))
         call expect(own(1) == 70, "broadcast")
         ! In each place the number of the lowest cell that has one.
         first = [merge(c, 0, c > 1), merge(c, 0, c > 3), c + 1, 0]
         call try(conset_reduce_with(cell, 0, 1_c_size_t, CONSET_INT64, first, 4_c_size_t, &
                                     c_funloc(first_not_zero), c_null_ptr))
         if (c == 0) call expect(all(first == [2, 4, 1, 0]), "the operator")
      end subroutine

      recursive subroutine try(result)
         integer(c_int), intent(in) :: result
         if (status == CONSET_OK) status = result
      end subroutine

      recursive subroutine expect(holds, what)
         logical, intent(in) :: holds
         character(len=*), intent(in) :: what
         if (status == CONSET_OK .and. .not. holds) status = conset_abort(cell, what//c_null_char)
      end subroutine
   end function

   ! What the record says, by the compiled set 1.
   recursive function again(cell, data) bind(c) result(status)
      type(c_ptr), value :: cell, data
      integer(c_int) :: status
      integer(c_int32_t) :: c
      real(c_double) :: got(2)
      c = conset_id(cell)
      status = conset_exchange_words(cell, 1, CONSET_DOUBLE, [c + 0.5_c_double, 1.0_c_double], 2_c_size_t, &
                                     got, 2_c_size_t)
      if (status == CONSET_OK .and. (c_associated(data) .or. got(1) /= modulo(c - 2, cells) + 0.5_c_double)) &
         status = conset_abort(cell, "the recorded set"//c_null_char)
   end function
end module

program unknown
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
   character(len=16) :: transport
   integer(c_int32_t) :: c

   ring = [(conset_connection(c, modulo(c + 1, cells), 5), c=0, cells - 1)]
   sets(1) = conset_connection_set(c_loc(ring_name), c_loc(ring), int(cells, c_size_t))
   call check(conset_compile_options_init(how))
   how%connection_sets = c_loc(sets)
   how%connection_set_count = 1
   call check(conset_compile("ring:6"//c_null_char, none, 0_c_size_t, how, image))
   call check(conset_options_init(options))
   call get_command_argument(1, transport)
   options%transport = merge(CONSET_FABRIC, CONSET_THREADS, transport == "fabric")
   call check(conset_run(image, options, c_funloc(program), c_null_ptr))
   call conset_image_free(image)

   sets(2) = conset_connection_set(c_loc(name), c_loc(recorded), records)
   how%connection_set_count = 2
   call check(conset_compile("ring:6"//c_null_char, none, 0_c_size_t, how, image))
   call check(conset_run(image, options, c_funloc(again), c_null_ptr))
   call conset_image_free(image)
   print '(a)', "all as expected"

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      if (status == CONSET_OK) return
      print '(a)', conset_message()
      error stop 1
   end subroutine
end program
