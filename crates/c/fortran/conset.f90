! conset for Fortran: the functions of conset.h, where each is described, as they are in C.
!
! - Handles (conset_image * and so on) are type(c_ptr), and so is a cell.
! - Arrays of numbers are passed as they are; CONSET_DOUBLE is real(c_double), CONSET_FLOAT
!   real(c_float), CONSET_INT64 integer(c_int64_t), CONSET_INT32 integer(c_int32_t). They are arrays
!   also where they have one number, except for elements.
! - Numbers of cells, rows, columns and pointers begin with 0: declare ptr(0:n), say.
! - Names end with c_null_char; conset_message() is the text of conset_error.
! - What conset_run calls is `recursive function f(cell, data) bind(c) result(status)` with
!   `type(c_ptr), value :: cell, data` and `integer(c_int) :: status`, given as c_funloc(f). Several
!   cells are in it at a time: it is recursive, and so are the procedures that it calls and that call
!   conset, or compilers may keep their variables in one place for all cells.
! - What is written in conset.h of size_t is integer(c_size_t), of uint32_t integer(c_int32_t), of
!   uint64_t integer(c_int64_t), with the same bits.
! - Places for handles and results that may be null in C are given as c_loc(..) or c_null_ptr.
module conset
   use conset_types_m
   use conset_setup_m
   use conset_cells_m
   use conset_unknown_m
   use conset_halos_m
   implicit none
   private :: text_length

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
