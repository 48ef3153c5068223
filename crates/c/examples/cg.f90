! Conjugate gradients on a matrix in compressed rows, dealt to the cells of a machine:
! examples/cg.c in Fortran, with the same numbers.
!
!     cg [fabric|threads]
module cg_solver
   use conset
   implicit none
   integer, parameter :: cells = 16, side = 24, rows = side*side
   ! Counted from 0, as conset does.
   integer(c_int32_t) :: ptr(0:rows), idx(0:5*rows - 1), owner(0:rows - 1)
   real(c_double) :: val(0:5*rows - 1)
   type(c_ptr) :: matrix, plan, trees
   real(c_double) :: residual, error
   integer :: iterations

contains

   subroutine laplacian()
      integer :: x, y, k, at, row, columns(5)
      logical :: inside(5)
      at = 0
      ptr(0) = 0
      do y = 0, side - 1
         do x = 0, side - 1
            row = y*side + x
            columns = [row - side, row - 1, row, row + 1, row + side]
            inside = [y > 0, x > 0, .true., x + 1 < side, y + 1 < side]
            do k = 1, 5
               if (.not. inside(k)) cycle
               idx(at) = columns(k)
               val(at) = merge(4, -1, k == 3)
               at = at + 1
            end do
            ptr(row + 1) = at
            owner(row) = int(int(row, c_int64_t)*cells/rows)
         end do
      end do
   end subroutine

   ! What every cell runs. Recursive, as several cells are in it at a time.
   recursive function solve(cell, data) bind(c) result(status)
      type(c_ptr), value :: cell, data
      integer(c_int) :: status
      type(conset_local_csr) :: local
      integer(c_int64_t), pointer :: ids(:)
      integer(c_size_t), pointer :: first(:)
      integer(c_int32_t), pointer :: column(:)
      real(c_double), allocatable :: a(:), x(:), p(:), r(:), q(:), e(:)
      real(c_double) :: rr, begun, pq, alpha, old, wrong
      integer :: i, n, step
      integer(c_int32_t) :: row

      status = conset_matrix_local(matrix, conset_id(cell), local)
      if (status /= CONSET_OK .or. c_associated(data)) return
      n = int(local%owned)
      call c_f_pointer(local%ids, ids, [local%items])
      call c_f_pointer(local%ptr, first, [local%owned + 1])
      call c_f_pointer(local%idx, column, [local%entries])
      allocate (a(local%entries), x(local%items), p(local%items), q(local%items), &
                r(local%items), e(local%items))
      do i = 1, n
         row = int(ids(i), c_int32_t)
         a(first(i) + 1:first(i + 1)) = val(ptr(row):ptr(row + 1) - 1)
         e(i) = 1 + real(modulo(row, 7), c_double)/7
      end do

      x = 0
      call multiply(e, r)
      p(1:n) = r(1:n)
      call dot(r, r, rr)
      begun = rr
      step = 0
      do while (status == CONSET_OK .and. step < 1000 .and. rr > 1e-20_c_double*begun)
         call multiply(p, q)
         call dot(p, q, pq)
         alpha = rr/pq
         old = rr
         x(1:n) = x(1:n) + alpha*p(1:n)
         r(1:n) = r(1:n) - alpha*q(1:n)
         call dot(r, r, rr)
         p(1:n) = r(1:n) + rr/old*p(1:n)
         step = step + 1
      end do
      wrong = reduced(CONSET_MAX, maxval(abs(x(1:n) - e(1:n))))
      if (conset_id(cell) == 0) then
         residual = sqrt(rr/begun)
         error = wrong
         iterations = step
      end if

   contains

      ! y = A v for the own rows, after the ghosts of v have come.
      recursive subroutine multiply(v, y)
         real(c_double), intent(inout) :: v(:), y(:)
         integer :: k
         if (status /= CONSET_OK) return
         status = conset_exchange(cell, plan, CONSET_COPY, CONSET_DOUBLE, v, local%items)
         do k = 1, n
            y(k) = sum(a(first(k) + 1:first(k + 1))*v(column(first(k) + 1:first(k + 1)) + 1))
         end do
      end subroutine

      recursive subroutine dot(v, w, product)
         real(c_double), intent(in) :: v(:), w(:)
         real(c_double), intent(out) :: product
         product = reduced(CONSET_ADD, dot_product(v(1:n), w(1:n)))
      end subroutine

      ! What the numbers of all cells are together.
      recursive function reduced(op, own) result(all)
         integer(c_int), intent(in) :: op
         real(c_double), intent(in) :: own
         real(c_double) :: all, numbers(1)
         numbers = own
         if (status == CONSET_OK) &
            status = conset_allreduce(cell, trees, op, CONSET_DOUBLE, numbers, 1_c_size_t)
         all = numbers(1)
      end function
   end function
end module

program cg
   use conset
   use cg_solver
   implicit none
   character(len=16) :: transport
   character(kind=c_char), target :: name(5) = ['h', 'a', 'l', 'o', c_null_char]
   type(c_ptr), target :: forward
   type(c_ptr) :: image
   type(conset_set) :: sets(1)
   type(conset_options) :: options
   type(conset_report) :: report

   call laplacian()
   call check(conset_matrix_new(int(rows, c_size_t), CONSET_INT32, ptr, idx, owner, &
                                int(cells, c_size_t), matrix))
   call check(conset_matrix_layouts(matrix, c_loc(forward), c_null_ptr))
   sets(1) = conset_set(c_loc(name), forward, 1_c_size_t)
   call check(conset_compile("torus:4x4"//c_null_char, sets, 1_c_size_t, image=image))
   call check(conset_plan_new(image, name, forward, 1_c_size_t, plan))
   call check(conset_trees_new(image, trees))
   call check(conset_options_init(options))
   call get_command_argument(1, transport)
   options%transport = merge(CONSET_FABRIC, CONSET_THREADS, transport == "fabric")
   call check(conset_run(image, options, c_funloc(solve), c_null_ptr, report))
   print '(a, i0, a, z16.16, a, es9.2)', "iterations ", iterations, " residual ", residual, &
      " error ", error
   call conset_trees_free(trees)
   call conset_plan_free(plan)
   call conset_layout_free(forward)
   call conset_image_free(image)
   call conset_matrix_free(matrix)
   if (error > 1e-8) error stop "the solution is wrong"

contains

   subroutine check(status)
      integer(c_int), intent(in) :: status
      if (status == CONSET_OK) return
      print '(a)', conset_message()
      error stop 1
   end subroutine
end program
