! The ways to exchange that examples/cg.f90 does not take, in Fortran: sums of shared entries at once, by
! messages and in halves, several vectors, lists of positions, the greatest value, placed parts.
!
!     halo [fabric|threads]
!
! Sixteen parts in a ring share an entry with each neighbour: part p has the ids p and p + 1.
module halo_ways
   use conset
   implicit none
   integer, parameter :: parts = 16
   integer(c_int32_t) :: place(0:parts - 1)
   type(c_ptr) :: one, two, trees, wide, layout
   integer(c_int32_t) :: set

contains

   ! Recursive, as several cells are in it at a time.
   recursive function exchange(cell, data) bind(c) result(status)
      type(c_ptr), value :: cell, data
      integer(c_int) :: status
      integer(c_int32_t) :: part, before, after, own(2)
      integer(c_int) :: owned(2), done
      real(c_double), target :: x(2), y(2)
      real(c_double) :: sum(2), z(2), most(1)
      integer(c_int64_t) :: at
      type(conset_pending) :: first, second
      type(c_ptr) :: both(2)

      status = CONSET_OK
      if (c_associated(data)) return
      part = findloc(place, conset_id(cell), dim=1) - 1
      before = modulo(part - 1, parts)
      after = modulo(part + 1, parts)
      sum = part
      call try(conset_sum_shared(cell, one, CONSET_DOUBLE, sum, 2_c_size_t))
      call expect(all(sum == [part + before, part + after]), "the sum")
      z = part
      call try(conset_combine_shared_by(cell, CONSET_BY_MESSAGES, one, CONSET_ADD, CONSET_DOUBLE, z, &
         2_c_size_t))
      call expect(all(z == sum), "the sum by messages")

      ! In halves: a sum, and two vectors.
      z = part
      x = part
      y = -part
      both = [c_loc(x), c_loc(y)]
      call try(conset_start_shared(cell, one, CONSET_ADD, CONSET_DOUBLE, z, 2_c_size_t, first))
      call try(conset_start_many(cell, two, CONSET_COPY, CONSET_DOUBLE, both, &
                                 [2_c_size_t, 2_c_size_t], 2_c_size_t, second))
      done = 0
      do while (status == CONSET_OK .and. done == 0)
         call try(conset_test(cell, first, done))
      end do
      call try(conset_wait(cell, one, first, CONSET_DOUBLE, z, 2_c_size_t))
      call try(conset_wait_many(cell, two, second, CONSET_DOUBLE, both, [2_c_size_t, 2_c_size_t], &
                               2_c_size_t))
      call expect(all(z == sum), "the sum in halves")
      call expect(all(x == [before, after]) .and. all(y == -x), "two vectors")

      ! The set between positions.
      z = part
      call by_lists()
      call expect(all(z == sum), "lists")

      ! Each entry once; the greatest value and its part.
      call try(conset_plan_owned(one, conset_id(cell), owned, 2_c_size_t))
      own = owned(1) + owned(2)
      call try(conset_allreduce(cell, wide, CONSET_ADD, CONSET_INT32, own, 2_c_size_t))
      call expect(own(1) == parts, "owned entries")
      own = 1
      call try(conset_start_allreduce(cell, wide, CONSET_ADD, CONSET_INT32, own, 2_c_size_t, first))
      own = 0
      call try(conset_wait_allreduce(cell, first, CONSET_INT32, own, 2_c_size_t))
      call expect(all(own == parts), "a reduction in halves")
      most = -abs(part - 9)
      at = part
      call try(conset_allreduce_max_at(cell, trees, CONSET_DOUBLE, most, at))
      call expect(most(1) == 0 .and. at == 9, "the greatest")

   contains

      ! Calls after one that failed are left out.
      recursive subroutine try(result)
         integer(c_int), intent(in) :: result
         if (status == CONSET_OK) status = result
      end subroutine

      recursive subroutine expect(holds, what)
         logical, intent(in) :: holds
         character(len=*), intent(in) :: what
         if (status == CONSET_OK .and. .not. holds) status = conset_abort(cell, what//c_null_char)
      end subroutine

      recursive subroutine by_lists()
         type(c_ptr) :: out, in, lists
         integer(c_size_t) :: outs, ins
         integer(c_size_t), target :: begins(0:2)
         integer(c_int32_t), target :: sent(2), received(2)
         begins = [0, 1, 2]
         call try(conset_connections_out(cell, set, out, outs))
         call try(conset_connections_in(cell, set, in, ins))
         if (status /= CONSET_OK) return
         call positions(out, outs, .true., sent)
         call positions(in, ins, .false., received)
         call try(conset_lists_new(conset_rows(outs, c_loc(begins), c_loc(sent)), &
                                   conset_rows(ins, c_loc(begins), c_loc(received)), 1_c_size_t, lists))
         call try(conset_exchange_lists(cell, set, lists, CONSET_ADD, CONSET_DOUBLE, z, 2_c_size_t))
         call conset_lists_free(lists)
      end subroutine

      ! Of each connection the one position of its list.
      recursive subroutine positions(connections, count, sends, found)
         type(c_ptr), intent(in) :: connections
         integer(c_size_t), intent(in) :: count
         logical, intent(in) :: sends
         integer(c_int32_t), intent(out) :: found(2)
         integer(c_int32_t), pointer :: connection(:), at(:)
         type(conset_list) :: list
         integer :: i
         found = 0
         call c_f_pointer(connections, connection, [count])
         do i = 1, min(2, int(count))
            call try(conset_layout_list(layout, connection(i), list))
            call c_f_pointer(merge(list%send, list%receive, sends), at, [list%items])
            found(i) = at(1)
         end do
      end subroutine
   end function
end module

program halo
   use conset
   use halo_ways
   implicit none
   integer(c_size_t) :: first(0:parts), count
   integer(c_int64_t) :: ids(0:2*parts - 1)
   integer(c_int32_t) :: cells(2*parts)
   character(len=16) :: transport
   character(kind=c_char), target :: names(4, 2), prefix(6) = ['w', 'i', 'd', 'e', '-', c_null_char]
   type(c_ptr) :: given, image
   type(conset_set) :: sets(2)
   type(conset_tree), target :: more(1)
   type(conset_compile_options) :: how
   type(conset_options) :: options
   integer :: part

   first = [(2_c_size_t*part, part=0, parts)]
   ids = [([int(part, c_int64_t), int(modulo(part + 1, parts), c_int64_t)], part=0, parts - 1)]
   names(:, 1) = ['o', 'n', 'e', c_null_char]
   names(:, 2) = ['t', 'w', 'o', c_null_char]
   call check(conset_layout_from_shared_ids(int(parts, c_size_t), first, ids, given))
   sets = [conset_set(c_loc(names(1, 1)), given, 1_c_size_t), conset_set(c_loc(names(1, 2)), given, 2_c_size_t)]
   more(1) = conset_tree(c_loc(prefix), 2, CONSET_TREE_ALLREDUCE)
   call check(conset_compile_options_init(how))
   how%trees = c_loc(more)
   how%tree_count = 1
   call check(conset_assemble("torus:4x4"//c_null_char, int(parts, c_size_t), sets, 2_c_size_t, how, &
                              place, image))
   call check(conset_layout_placed(given, int(parts, c_size_t), place, conset_image_cells(image), layout))
   call check(conset_plan_new(image, names(:, 1), layout, 1_c_size_t, one))
   call check(conset_plan_new(image, names(:, 2), layout, 2_c_size_t, two))
   call check(conset_plan_set(one, set))
   call check(conset_trees_new(image, trees))
   call check(conset_trees_prefixed(image, prefix, wide))

   call check(conset_options_init(options))
   call get_command_argument(1, transport)
   options%transport = merge(CONSET_FABRIC, CONSET_THREADS, transport == "fabric")
   call check(conset_run_cells(image, options, cells, size(cells, kind=c_size_t), count))
   if (count /= conset_image_cells(image)) error stop "not all cells"
   call check(conset_run(image, options, c_funloc(exchange), c_null_ptr))
   print '(a)', "all as expected"
   call conset_trees_free(trees)
   call conset_trees_free(wide)
   call conset_plan_free(one)
   call conset_plan_free(two)
   call conset_layout_free(layout)
   call conset_layout_free(given)
   call conset_image_free(image)

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      if (status == CONSET_OK) return
      print '(a)', conset_message()
      error stop 1
   end subroutine
end program
