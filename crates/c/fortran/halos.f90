! Halos in an MPI program, as in conset.h.
!
! - The communicator is what Fortran has: an integer of `use mpi`, or comm%mpi_val of `use mpi_f08`.
! - Ids, ghosts and columns are counted as the program likes, rows and columns of a matrix from 0;
!   local columns are counted from 0, too: entry k of a row is x(local(k) + 1).
! - Nothing is written to a vector between conset_halo_start and conset_halo_wait, and none of its
!   addresses is kept: vectors need neither the attribute asynchronous nor target, and a section of an
!   array may be passed, which the compiler copies.
! - A vector of several numbers an item is x(block, items).
! - Complex numbers are items of two: block 2 of CONSET_DOUBLE.
module conset_halos_m
   use conset_types_m
   implicit none

   interface
      function conset_attach(fortran, attached) bind(c) result(status)
         import
         integer(c_int), value :: fortran
         type(c_ptr), intent(out) :: attached
         integer(c_int) :: status
      end function
      function conset_halo_from_shared_ids(attached, items, ids, halo) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_size_t), value :: items
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), intent(out) :: halo
         integer(c_int) :: status
      end function
      function conset_halo_from_range(attached, first, end, ghosts, &
         ids, halo) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int64_t), value :: first, end
         integer(c_size_t), value :: ghosts
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), intent(out) :: halo
         integer(c_int) :: status
      end function
      function conset_halo_from_owned(attached, items, ids, owned, halo) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_size_t), value :: items, owned
         integer(c_int64_t), dimension(*), intent(in) :: ids
         type(c_ptr), intent(out) :: halo
         integer(c_int) :: status
      end function
      function conset_halo_from_rows(attached, first, end, index_type, ptr, &
         columns, entries, local, halo) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int64_t), value :: first, end
         integer(c_int), value :: index_type
         type(*), dimension(*), intent(in) :: ptr, columns
         integer(c_size_t), value :: entries
         integer(c_int32_t), dimension(*), intent(out) :: local
         type(c_ptr), intent(out) :: halo
         integer(c_int) :: status
      end function
      function conset_halo_ghosts(halo, ids, room, count) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int64_t), dimension(*), intent(out) :: ids
         integer(c_size_t), value :: room
         integer(c_size_t), intent(out) :: count
         integer(c_int) :: status
      end function
      function conset_halo_multiplicity(halo, copies, items) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int32_t), dimension(*), intent(out) :: copies
         integer(c_size_t), value :: items
         integer(c_int) :: status
      end function
      function conset_halo_owned(halo, owned, items) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), dimension(*), intent(out) :: owned
         integer(c_size_t), value :: items
         integer(c_int) :: status
      end function
      function conset_halo_exchange(halo, number_type, vector, block) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(inout) :: vector
         integer(c_size_t), value :: block
         integer(c_int) :: status
      end function
      function conset_halo_exchange_fields(halo, fields, count) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         type(conset_field), dimension(*), intent(in) :: fields
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_halo_reduce(halo, operation, number_type, &
         vector, block) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: operation, number_type
         type(*), dimension(*), intent(inout) :: vector
         integer(c_size_t), value :: block
         integer(c_int) :: status
      end function
      function conset_halo_combine(halo, operation, number_type, &
         vector, block) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: operation, number_type
         type(*), dimension(*), intent(inout) :: vector
         integer(c_size_t), value :: block
         integer(c_int) :: status
      end function
      function conset_halo_sum(halo, number_type, vector, block) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(inout) :: vector
         integer(c_size_t), value :: block
         integer(c_int) :: status
      end function
      function conset_halo_start(halo, number_type, vector, block, exchange) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(in) :: vector
         integer(c_size_t), value :: block
         integer(c_int64_t), intent(out) :: exchange
         integer(c_int) :: status
      end function
      function conset_halo_start_reduce(halo, number_type, vector, &
         block, exchange) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(in) :: vector
         integer(c_size_t), value :: block
         integer(c_int64_t), intent(out) :: exchange
         integer(c_int) :: status
      end function
      function conset_halo_start_combine(halo, number_type, vector, &
         block, exchange) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(in) :: vector
         integer(c_size_t), value :: block
         integer(c_int64_t), intent(out) :: exchange
         integer(c_int) :: status
      end function
      function conset_halo_test(halo, exchange, done) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int64_t), value :: exchange
         integer(c_int), intent(out) :: done
         integer(c_int) :: status
      end function
      function conset_halo_wait(halo, exchange, operation, number_type, &
         vector, block) bind(c) result(status)
         import
         type(c_ptr), value :: halo
         integer(c_int64_t), value :: exchange
         integer(c_int), value :: operation, number_type
         type(*), dimension(*), intent(inout) :: vector
         integer(c_size_t), value :: block
         integer(c_int) :: status
      end function
      function conset_attached_allreduce(attached, operation, number_type, &
         words, count) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int), value :: operation, number_type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_attached_broadcast(attached, root, number_type, &
         words, count) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int), value :: root, number_type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      function conset_attached_barrier(attached) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int) :: status
      end function
      function conset_attached_start_allreduce(attached, operation, number_type, &
         words, count, reduction) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int), value :: operation, number_type
         type(*), dimension(*), intent(in) :: words
         integer(c_size_t), value :: count
         integer(c_int64_t), intent(out) :: reduction
         integer(c_int) :: status
      end function
      function conset_attached_test(attached, reduction, done) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int64_t), value :: reduction
         integer(c_int), intent(out) :: done
         integer(c_int) :: status
      end function
      function conset_attached_wait(attached, reduction, number_type, &
         words, count) bind(c) result(status)
         import
         type(c_ptr), value :: attached
         integer(c_int64_t), value :: reduction
         integer(c_int), value :: number_type
         type(*), dimension(*), intent(inout) :: words
         integer(c_size_t), value :: count
         integer(c_int) :: status
      end function
      subroutine conset_detach(attached) bind(c)
         import
         type(c_ptr), value :: attached
      end subroutine
      subroutine conset_halo_free(halo) bind(c)
         import
         type(c_ptr), value :: halo
      end subroutine
      function conset_halo_items(halo) bind(c) result(items)
         import
         type(c_ptr), value :: halo
         integer(c_size_t) :: items
      end function
   end interface
end module
