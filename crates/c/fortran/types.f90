! Types and constants of conset for Fortran. install.sh puts the parts (types, setup, cells, unknown, halos, conset)
! into one file.
module conset_types_m
   use, intrinsic :: iso_c_binding
   implicit none

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
   ! conset_by
   enum, bind(c)
      enumerator :: CONSET_BY_PHASES = 0, CONSET_BY_MESSAGES
   end enum
   ! conset_op
   enum, bind(c)
      enumerator :: CONSET_COPY = 0, CONSET_ADD, CONSET_MIN, CONSET_MAX
   end enum
   ! conset_type
   enum, bind(c)
      enumerator :: CONSET_DOUBLE = 0, CONSET_FLOAT, CONSET_INT64, CONSET_INT32
   end enum
   ! conset_algorithm; CONSET_BEST is the former name of CONSET_AUTO
   enum, bind(c)
      enumerator :: CONSET_AUTO = 0, CONSET_PAPER, CONSET_BEST = 0
   end enum
   ! conset_objective
   enum, bind(c)
      enumerator :: CONSET_TIME = 0, CONSET_PHASES
   end enum
   ! conset_compile_by
   enum, bind(c)
      enumerator :: CONSET_COMPILE_PHASES = 0, CONSET_COMPILE_STEPS, CONSET_COMPILE_BEST
   end enum
   ! conset_routing
   enum, bind(c)
      enumerator :: CONSET_ROUTE_AUTO = 0, CONSET_ROUTE_DIRECT, CONSET_ROUTE_ROUTED
   end enum
   ! conset_placement
   enum, bind(c)
      enumerator :: CONSET_PLACE_BEST = 0, CONSET_PLACE_GIVEN, CONSET_PLACE_CURVE, CONSET_PLACE_BISECT
   end enum
   ! conset_tree_sets
   enum, bind(c)
      enumerator :: CONSET_TREE_REDUCE = 1, CONSET_TREE_BROADCAST = 2, CONSET_TREE_ALLREDUCE = 4
   end enum

   type, bind(c) :: conset_connection
      integer(c_int32_t) :: source, target, words
   end type

   type, bind(c) :: conset_operation
      integer(c_int32_t) :: connection
      integer(c_int) :: sends
      integer(c_int32_t) :: first_word, words
   end type

   type, bind(c) :: conset_list
      integer(c_int32_t) :: source, target
      integer(c_size_t) :: items
      type(c_ptr) :: ids, send, receive
   end type

   type, bind(c) :: conset_local_csr
      integer(c_size_t) :: items, owned, entries
      type(c_ptr) :: ids, ptr, idx
   end type

   type, bind(c) :: conset_set
      type(c_ptr) :: name, layout
      integer(c_size_t) :: block
   end type

   type, bind(c) :: conset_tree
      type(c_ptr) :: prefix
      integer(c_int32_t) :: words
      integer(c_int) :: sets
   end type

   type, bind(c) :: conset_compile_options
      integer(c_size_t) :: size
      integer(c_int64_t) :: seed
      integer(c_int32_t) :: tree_words, max_phases
      integer(c_int) :: algorithm, objective
      integer(c_int32_t) :: attempts
      integer(c_int) :: reroutes, placement
      type(c_ptr) :: trees
      integer(c_size_t) :: tree_count
      integer(c_int) :: by
      type(c_ptr) :: planner, communicator
      type(c_ptr) :: connection_sets
      integer(c_size_t) :: connection_set_count
   end type

   type, bind(c) :: conset_connection_set
      type(c_ptr) :: name, connections
      integer(c_size_t) :: count
   end type

   type, bind(c) :: conset_rows
      integer(c_size_t) :: count
      type(c_ptr) :: first, positions
   end type

   type, bind(c) :: conset_options
      integer(c_size_t) :: size
      integer(c_int) :: transport, workers, time_out_ms
      integer(c_size_t) :: stack_bytes
      type(c_ptr) :: communicator, trace
   end type

   type, bind(c) :: conset_report
      integer(c_int64_t) :: clocks, switches, switch_clocks, words, word_hops
   end type

   type, bind(c) :: conset_field
      type(c_ptr) :: vector
      integer(c_size_t) :: bytes
   end type

   type, bind(c) :: conset_arrival
      integer(c_int32_t) :: source
      integer(c_size_t) :: count
      type(c_ptr) :: words
   end type

   type, bind(c) :: conset_settled
      integer(c_int64_t) :: rounds, handled
   end type

   type, bind(c) :: conset_pending
      integer(c_int64_t) :: numbers(3)
   end type
end module
