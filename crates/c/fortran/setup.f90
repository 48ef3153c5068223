! What comes before a run: images, layouts, matrices, compiling, plans.
module conset_setup_m
   use conset_types_m
   implicit none

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
      function conset_image_bytes(image, bytes, room, size) bind(c) result(status)
         import
         type(c_ptr), value :: image
         type(*), dimension(*), intent(inout) :: bytes
         integer(c_size_t), value :: room
         integer(c_size_t), intent(out) :: size
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
      function conset_image_steps(image, set, steps) bind(c) result(status)
         import
         type(c_ptr), value :: image
         integer(c_int32_t), value :: set
         integer(c_int32_t), intent(out) :: steps
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
      function conset_connection_set_write(set, path) bind(c) result(status)
         import
         type(conset_connection_set), intent(in) :: set
         character(kind=c_char), dimension(*), intent(in) :: path
         integer(c_int) :: status
      end function

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
      function conset_layout_reversed(layout, reversed) bind(c) result(status)
         import
         type(c_ptr), value :: layout
         type(c_ptr), intent(out) :: reversed
         integer(c_int) :: status
      end function
      function conset_layout_cells(layout) bind(c) result(cells)
         import
         type(c_ptr), value :: layout
         integer(c_size_t) :: cells
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
      function conset_layout_list(layout, connection, list) bind(c) result(status)
         import
         type(c_ptr), value :: layout
         integer(c_int32_t), value :: connection
         type(conset_list), intent(out) :: list
         integer(c_int) :: status
      end function
      function conset_layout_is_shared(layout, shared) bind(c) result(status)
         import
         type(c_ptr), value :: layout
         integer(c_int), intent(out) :: shared
         integer(c_int) :: status
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
      function conset_matrix_values(matrix, cell, index_type, ptr, type, &
         values, own, entries) bind(c) result(status)
         import
         type(c_ptr), value :: matrix
         integer(c_int32_t), value :: cell
         integer(c_int), value :: index_type, type
         type(*), dimension(*), intent(in) :: ptr
         type(*), dimension(*), intent(in) :: values
         type(*), dimension(*), intent(inout) :: own
         integer(c_size_t), value :: entries
         integer(c_int) :: status
      end function
      function conset_matrix_gather(matrix, cell, type, global, own, items) bind(c) result(status)
         import
         type(c_ptr), value :: matrix
         integer(c_int32_t), value :: cell
         integer(c_int), value :: type
         type(*), dimension(*), intent(in) :: global
         type(*), dimension(*), intent(inout) :: own
         integer(c_size_t), value :: items
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
      function conset_assemble(machine, parts, sets, count, options, place, image) bind(c) &
         result(status)
         import
         character(kind=c_char), dimension(*), intent(in) :: machine
         integer(c_size_t), value :: parts, count
         type(conset_set), dimension(*), intent(in) :: sets
         type(conset_compile_options), intent(in), optional :: options
         integer(c_int32_t), dimension(*), intent(out) :: place
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
      function conset_plan_set(plan, set) bind(c) result(status)
         import
         type(c_ptr), value :: plan
         integer(c_int32_t), intent(out) :: set
         integer(c_int) :: status
      end function
      function conset_plan_block(plan) bind(c) result(block)
         import
         type(c_ptr), value :: plan
         integer(c_size_t) :: block
      end function
      function conset_plan_multiplicity(plan, cell, copies, items) bind(c) result(status)
         import
         type(c_ptr), value :: plan
         integer(c_int32_t), value :: cell
         integer(c_int32_t), dimension(*), intent(out) :: copies
         integer(c_size_t), value :: items
         integer(c_int) :: status
      end function
      function conset_plan_owned(plan, cell, owned, items) bind(c) result(status)
         import
         type(c_ptr), value :: plan
         integer(c_int32_t), value :: cell
         integer(c_int), dimension(*), intent(out) :: owned
         integer(c_size_t), value :: items
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
      function conset_trees_prefixed(image, prefix, trees) bind(c) result(status)
         import
         type(c_ptr), value :: image
         character(kind=c_char), dimension(*), intent(in) :: prefix
         type(c_ptr), intent(out) :: trees
         integer(c_int) :: status
      end function
      function conset_trees_named(image, reduce, broadcast, allreduce, trees) bind(c) result(status)
         import
         type(c_ptr), value :: image
         character(kind=c_char), dimension(*), intent(in) :: reduce, broadcast, allreduce
         type(c_ptr), intent(out) :: trees
         integer(c_int) :: status
      end function
      function conset_trees_root(trees, root) bind(c) result(status)
         import
         type(c_ptr), value :: trees
         integer(c_int32_t), intent(out) :: root
         integer(c_int) :: status
      end function
      function conset_trees_words(trees) bind(c) result(words)
         import
         type(c_ptr), value :: trees
         integer(c_size_t) :: words
      end function
      subroutine conset_trees_free(trees) bind(c)
         import
         type(c_ptr), value :: trees
      end subroutine
      function conset_lists_new(send, receive, block, lists) bind(c) result(status)
         import
         type(conset_rows), intent(in) :: send, receive
         integer(c_size_t), value :: block
         type(c_ptr), intent(out) :: lists
         integer(c_int) :: status
      end function
      subroutine conset_lists_free(lists) bind(c)
         import
         type(c_ptr), value :: lists
      end subroutine
   end interface
end module
