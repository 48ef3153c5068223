/*
 * conset: compiled communication for iterative solvers, for C and C++.
 *
 *     ids or matrix -> layout -> set -> conset_compile -> image -> plan, trees -> conset_run
 *
 * 1. A layout states which entries of the vectors of the cells belong together: conset_layout_*,
 *    conset_matrix_*.
 * 2. conset_compile compiles sets of connections into an image for a machine. An image that was
 *    compiled earlier is read from a file (conset_image_read) or from memory (conset_image_parse).
 * 3. A plan combines a layout with an image (conset_plan_new); trees serve reductions.
 * 4. conset_run calls a function of yours once for each cell. The cells exchange vectors by plans.
 *    The same function runs on the emulated machine, on threads and over MPI, and its results have
 *    the same bits on all of them.
 *
 * Rules for all functions:
 *
 * - A function that can fail returns an int: CONSET_OK (0) or another conset_status. conset_error
 *   returns the description of the error. The outputs of a call that failed are undefined.
 * - Handles (pointers to conset_image, conset_layout, ...) are created by this library and freed by
 *   their conset_*_free function, which accepts null. They may be freed in any order, even while
 *   handles that were created from them are in use. Several threads may use a handle at a time, but
 *   not while it is being freed. Using a freed handle is an error (CONSET_BAD_HANDLE), as long as
 *   its memory has not been reused.
 * - An array has at least as many elements as the call states. Nobody writes to it during the call,
 *   or reads it if the call writes to it. An array of no elements may be null. Input and output
 *   arrays do not overlap.
 * - Texts are UTF-8 and end with a zero byte. Returned texts and arrays belong to the library.
 * - Cells, connections, sets and phases are numbered from 0.
 * - Structures of options begin with their size. Set the defaults with their *_init function first.
 *
 * Rules for the function that conset_run calls:
 *
 * - It returns 0. Any other value aborts the run for all cells, with an error that names the cell
 *   (CONSET_PROGRAM). Over MPI conset_run fails on all ranks: on the rank of the cell with that error,
 *   on the others with CONSET_ABORTED and a text that contains it. The job goes on, and another run may
 *   follow on the same communicator. Errors of MPI itself, and time-outs, end the job.
 * - Its conset_cell is valid only within the callback. Using it in another callback, on another
 *   thread, inside another run or after the return is an error (CONSET_BAD_HANDLE).
 * - It is called from several threads at a time (CONSET_THREADS). The cells of one thread switch
 *   only at calls of this library; they share the thread-local variables of your program, and all
 *   cells share its static variables.
 * - Its stack has conset_options.stack_bytes. Allocate large arrays on the heap, and compile outside
 *   the callback. A function that overflows its stack ends the process with a message that names
 *   the cell, and exit status 70. A call that finds the stack nearly exhausted fails (CONSET_CELL).
 * - It must not be left by longjmp or by an exception.
 * - A call of a cell that fails aborts the run. Later calls of all cells return CONSET_ABORTED until
 *   the callbacks have returned.
 */
#ifndef CONSET_H
#define CONSET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONSET_VERSION_MAJOR 0
#define CONSET_VERSION_MINOR 1
#define CONSET_VERSION_PATCH 0

/* The result of a call. */
enum conset_status {
    CONSET_OK = 0,
    CONSET_NULL_POINTER,  /* a pointer is null */
    CONSET_BAD_ARGUMENT,  /* a size, number or text is wrong */
    CONSET_BAD_HANDLE,    /* a handle of another kind, or a cell of another callback */
    CONSET_FILE,          /* a file cannot be read or written */
    CONSET_INPUT,         /* a file or a specification is invalid */
    CONSET_REJECTED,      /* the checker rejects the input */
    CONSET_INFEASIBLE,    /* the machine does not have the resources */
    CONSET_LAYOUT,        /* the ids, owners or matrix form no layout */
    CONSET_PLAN,          /* layout and image do not match */
    CONSET_CELL,          /* invalid arguments of a call of a cell */
    CONSET_PROGRAM,       /* a callback returned a nonzero value or aborted the run */
    CONSET_MISMATCH,      /* the cells do not make matching calls */
    CONSET_TIME_OUT,      /* a cell took too long */
    CONSET_FAULT,         /* the emulated machine detected a fault */
    CONSET_MEMORY,        /* no memory for the stack of a cell */
    CONSET_MPI,           /* an error of MPI or between the ranks of a job */
    CONSET_UNSUPPORTED,   /* the library was built without this feature */
    CONSET_ABORTED,       /* the run was aborted by another cell or an earlier call */
    CONSET_BUG            /* a bug in conset */
};

/* The transport of a run. */
enum conset_transport {
    CONSET_FABRIC = 0,  /* the emulated machine, clock by clock */
    CONSET_THREADS = 1, /* threads of this process, with several cells each */
    CONSET_OVER_MPI = 2 /* the ranks of a communicator, with some of the cells each */
};

/* How a set is exchanged: as it was compiled, by phases or by the messages of its step plan
 * (CONSET_BY_PHASES), or by one message for each connection. The results have the same bits; message
 * passing without a plan is for comparison. */
enum conset_by { CONSET_BY_PHASES = 0, CONSET_BY_MESSAGES = 1 };

/* How received values are combined with the current ones. */
enum conset_op { CONSET_COPY = 0, CONSET_ADD = 1, CONSET_MIN = 2, CONSET_MAX = 3 };

/* The number type of an array. */
enum conset_type { CONSET_DOUBLE = 0, CONSET_FLOAT = 1, CONSET_INT64 = 2, CONSET_INT32 = 3 };

/* The planner: CONSET_AUTO tries several and keeps the cheapest plan; CONSET_PAPER is the algorithm of
 * the ConSet paper. CONSET_BEST is the former name of CONSET_AUTO. */
enum conset_algorithm { CONSET_AUTO = 0, CONSET_PAPER = 1, CONSET_BEST = CONSET_AUTO };

/* What CONSET_AUTO minimises: the time of an exchange, or the number of phases. */
enum conset_objective { CONSET_TIME = 0, CONSET_PHASES = 1 };

/* What sets are compiled to: phases, whose routes are in the tables of the machine; messages in steps,
 * for machines without tables; or whichever of the two is predicted to take fewer clocks. Programs call
 * the same functions with each of them, except that sets in steps have no phases to instantiate. */
enum conset_compile_by {
    CONSET_COMPILE_PHASES = 0,
    CONSET_COMPILE_STEPS = 1,
    CONSET_COMPILE_BEST = 2
};

/* How the items of epochs find their targets over MPI: directly up to some number of cells and routed
 * above; by a message of each cell to every other; or by as many messages as the number of cells has
 * binary digits, whose words other cells pass on. What arrives does not depend on it. */
enum conset_routing { CONSET_ROUTE_AUTO = 0, CONSET_ROUTE_DIRECT = 1, CONSET_ROUTE_ROUTED = 2 };

/* How conset_assemble places parts on cells: the cheapest placement of all methods and a search; part p
 * on the p-th live cell; along a space-filling curve; by recursive bisection. */
enum conset_placement {
    CONSET_PLACE_BEST = 0,
    CONSET_PLACE_GIVEN = 1,
    CONSET_PLACE_CURVE = 2,
    CONSET_PLACE_BISECT = 3
};

/* The sets of a tree, to be added up: towards the root, from the root, and both in one. The last one
 * alone serves all collectives except conset_reduce. */
enum conset_tree_sets {
    CONSET_TREE_REDUCE = 1,
    CONSET_TREE_BROADCAST = 2,
    CONSET_TREE_ALLREDUCE = 4
};

typedef struct conset_image conset_image;               /* a compiled program */
typedef struct conset_layout conset_layout;             /* which entries of vectors are exchanged */
typedef struct conset_matrix conset_matrix;             /* a sparse matrix, distributed to cells */
typedef struct conset_lists conset_lists;               /* positions in a vector that are exchanged */
typedef struct conset_plan conset_plan;                 /* a layout combined with an image */
typedef struct conset_trees conset_trees;               /* the trees of collectives */
typedef struct conset_communicator conset_communicator; /* a duplicate of an MPI communicator */
typedef struct conset_cell conset_cell;                 /* a cell, valid within its callback */
typedef struct conset_epoch conset_epoch;               /* an epoch, valid within the callback of its cell */
typedef struct conset_arrivals conset_arrivals;         /* what conset_exchange_any brought */
typedef struct conset_attached conset_attached;         /* an MPI communicator, without a callback */
typedef struct conset_halo conset_halo;                 /* what a rank exchanges with its neighbours */

/* ---- The library ---- */

/* The version of the library, such as "0.1.0"; the version of this header is in the macros above. */
const char *conset_version(void);

/* The error of the last call of this thread that failed: the name of the function, then the
 * description. Empty if none has failed. Valid until the next call of this thread that fails. */
const char *conset_error(void);

/* A short description of a status. */
const char *conset_status_text(int status);

/* ---- Images ---- */

/* Creates an image from `size` bytes in any format of conset (docs/format.md), after checking it like
 * the output of the compiler. The bytes are not used after the call. */
int conset_image_parse(const void *bytes, size_t size, conset_image **image);

/* Creates an image from a file: an image (.csi) or a schedule (.csb, .json, .cset). */
int conset_image_read(const char *path, conset_image **image);

/* Writes an image to a file, for conset_image_read. */
int conset_image_write(const conset_image *image, const char *path);

/* Writes an image to memory, for conset_image_parse, for example on another rank. At most `room`
 * bytes are written; `size` is set to the total number. */
int conset_image_bytes(const conset_image *image, void *bytes, size_t room, size_t *size);

/* A hash of the image: equal for equal images, and very unlikely to be equal for others. */
int conset_image_digest(const conset_image *image, uint64_t *digest);

/* The number of cells of the machine and the number of sets; 0 if the handle is invalid. */
size_t conset_image_cells(const conset_image *image);
size_t conset_image_sets(const conset_image *image);

/* The number of the set with this name. */
int conset_image_set(const conset_image *image, const char *name, uint32_t *set);

/* The number of phases, of steps and of connections of a set. Sets have either phases or steps; the
 * number of the others is 0. */
int conset_image_phases(const conset_image *image, uint32_t set, uint32_t *phases);
int conset_image_steps(const conset_image *image, uint32_t set, uint32_t *steps);
int conset_image_connections(const conset_image *image, uint32_t set, uint32_t *connections);

typedef struct conset_connection {
    uint32_t source; /* the cell that sends */
    uint32_t target; /* the cell that receives */
    uint32_t words;
} conset_connection;

/* A connection of a set. */
int conset_image_connection(const conset_image *image, uint32_t set, uint32_t connection,
                            conset_connection *found);

/* The words of all connections of a set that start at a cell, and of those that end there: the sizes
 * of the arrays of conset_exchange_words. */
int conset_image_words(const conset_image *image, uint32_t set, uint32_t cell, size_t *outgoing,
                       size_t *incoming);

typedef struct conset_operation {
    uint32_t connection;
    int sends;           /* 1: the cell sends, 0: the cell receives */
    uint32_t first_word; /* a connection may be split into several operations */
    uint32_t words;
} conset_operation;

/* The operations of a cell in a phase (for conset_send_element, conset_receive_element), in the
 * compiled order. At most `room` are written; `count` is set to the total number. */
int conset_image_operations(const conset_image *image, uint32_t set, uint32_t phase, uint32_t cell,
                            conset_operation *operations, size_t room, size_t *count);

void conset_image_free(conset_image *image);

/* ---- Layouts ----
 *
 * Each cell has a local vector of items (nodes, rows), each with a global id. One array holds the ids
 * of all cells, cell by cell: those of cell c are ids[first[c]] to ids[first[c + 1] - 1]. `first` has
 * cells + 1 elements and begins with 0. */

/* Items with the same id are copies of one value, as in gslib; for conset_sum_shared. */
int conset_layout_from_shared_ids(size_t cells, const size_t *first, const uint64_t *ids,
                                  conset_layout **layout);

/* Each id has one owner; other cells have ghosts of it. Cell c owns the first owned[c] of its ids.
 * `forward` is from owners to ghosts (to copy), `backward` from ghosts to owners (to add). Either may
 * be null. */
int conset_layout_from_owned(size_t cells, const size_t *first, const uint64_t *ids,
                             const size_t *owned, conset_layout **forward,
                             conset_layout **backward);

/* The layout of a compiled set that contains lists of nodes, as the sets of meshes do, with `block`
 * words for each node. */
int conset_layout_from_image(const conset_image *image, const char *set, size_t block,
                             size_t cells, const size_t *first, const uint64_t *ids,
                             conset_layout **layout);

/* The same layout on a machine of `cells` cells, with part p on cell place[p] (conset_assemble). */
int conset_layout_placed(const conset_layout *layout, size_t parts, const uint32_t *place,
                         size_t cells, conset_layout **placed);

/* The reversed layout: each connection swaps its source and target. */
int conset_layout_reversed(const conset_layout *layout, conset_layout **reversed);

/* The number of cells; of items of a cell; of connections; 0 if the handle is invalid. */
size_t conset_layout_cells(const conset_layout *layout);
size_t conset_layout_items(const conset_layout *layout, uint32_t cell);
size_t conset_layout_connections(const conset_layout *layout);

/* The items of a connection. The arrays have `items` elements and live as long as the layout. */
typedef struct conset_list {
    uint32_t source; /* the cell that sends */
    uint32_t target; /* the cell that receives */
    size_t items;
    const uint64_t *ids;
    const uint32_t *send;    /* their positions in the vector of the source */
    const uint32_t *receive; /* and of the target */
} conset_list;

int conset_layout_list(const conset_layout *layout, uint32_t connection, conset_list *list);

/* 1 if every cell that holds an id receives it from every other cell that holds it, as
 * conset_sum_shared requires; 0 otherwise. */
int conset_layout_is_shared(const conset_layout *layout, int *shared);

void conset_layout_free(conset_layout *layout);

/* ---- Matrices ---- */

/* Distributes a square sparse matrix in compressed row format to `cells` cells: row r, and entry r
 * of the vector, to cell owner[r]. ptr (rows + 1) and idx (ptr[rows]) are of index_type CONSET_INT32
 * or CONSET_INT64, columns are counted from 0. */
int conset_matrix_new(size_t rows, int index_type, const void *ptr, const void *idx,
                      const uint32_t *owner, size_t cells, conset_matrix **matrix);

/* Its layouts: `forward` copies the entries of owners to ghosts, before a product with the matrix;
 * `backward` adds ghosts to their owners, after a product with the transposed matrix. Either may be
 * null. */
int conset_matrix_layouts(const conset_matrix *matrix, conset_layout **forward,
                          conset_layout **backward);

/* The rows of one cell with local column numbers. The local vector has the owned rows first,
 * ascending, then the ghosts by (owner, id). The entries of a row are in the order of the global row.
 * The arrays live as long as the matrix. */
typedef struct conset_local_csr {
    size_t items;        /* entries of the local vector */
    size_t owned;        /* the first `owned` of them are owned rows */
    size_t entries;      /* entries of the owned rows */
    const uint64_t *ids; /* the global row of each item */
    const size_t *ptr;   /* where the entries of each row begin; owned + 1 elements */
    const uint32_t *idx; /* local columns */
} conset_local_csr;

int conset_matrix_local(const conset_matrix *matrix, uint32_t cell, conset_local_csr *local);

/* Extracts the values of the rows of a cell, in the order of its idx, from those of the global matrix
 * with row pointers `ptr`. `own` has conset_local_csr.entries elements. */
int conset_matrix_values(const conset_matrix *matrix, uint32_t cell, int index_type,
                         const void *ptr, int type, const void *values, void *own,
                         size_t entries);

/* Extracts the vector of a cell, owned entries and ghosts, from a global vector of all rows. `own`
 * has conset_local_csr.items elements. */
int conset_matrix_gather(const conset_matrix *matrix, uint32_t cell, int type, const void *global,
                         void *own, size_t items);

void conset_matrix_free(conset_matrix *matrix);

/* ---- Compiling ---- */

/* A set to compile: the connections of a layout, with `block` words for each item. */
typedef struct conset_set {
    const char *name;
    const conset_layout *layout;
    size_t block;
} conset_set;

/* A set to compile that is given by its connections, for example by what cells recorded
 * (conset_take_record). conset_connection_set_write writes it to a file, for `conset compile`. */
typedef struct conset_connection_set {
    const char *name;
    const conset_connection *connections;
    size_t count;
} conset_connection_set;

int conset_connection_set_write(const conset_connection_set *set, const char *path);

/* Trees for reductions, broadcasts and barriers over all live cells. */
typedef struct conset_tree {
    const char *prefix; /* prefix of its set names, for conset_trees_prefixed; null for none */
    uint32_t words;     /* words per connection; longer arrays are sent in pieces */
    int sets;           /* the sets to compile: a sum of conset_tree_sets */
} conset_tree;

typedef struct conset_compile_options {
    size_t size;         /* of this structure */
    uint64_t seed;       /* of random choices; the same seed gives the same image */
    uint32_t tree_words; /* words of a tree without a prefix, with all its sets; 0 for no tree; default 1 */
    uint32_t max_phases; /* limit on the phases of a set; 0 for no limit */
    int algorithm;       /* conset_algorithm */
    int objective;       /* conset_objective */
    uint32_t attempts;   /* limit on the plans tried for each set; 0 for automatic */
    int reroutes;        /* rip-up iterations of the router; -1 for the default */
    int placement;       /* conset_placement, for conset_assemble */
    const conset_tree *trees; /* additional trees */
    size_t tree_count;
    int by;              /* conset_compile_by; with steps, algorithm, objective, max_phases and reroutes
                            have no effect and are refused */
    const char *planner; /* of steps (docs/planners.md): "loaded", "pairwise", "levels:4x4/ring", ...;
                            null to try all and keep the cheapest plan */
    const conset_communicator *communicator; /* conset_compile only: rank 0 compiles and sends the
                            image to the others, whose sets are not used. Collective over the ranks;
                            an error of rank 0 is one of all. Null: every process compiles for itself */
    const conset_connection_set *connection_sets; /* sets that are numbered after those of the call */
    size_t connection_set_count;
} conset_compile_options;

int conset_compile_options_init(conset_compile_options *options);

/* Compiles sets for a machine: a preset with sizes ("torus:4x4", "iwarp", "ring:8", "hypercube:6",
 * "fat-tree:64", "cm5:32"; `conset machines` lists them) or a machine file ending in .toml; parameters may follow
 * after spaces ("torus:4x4 channels_per_cell=8"). Null options are the defaults. */
int conset_compile(const char *machine, const conset_set *sets, size_t count,
                   const conset_compile_options *options, conset_image **image);

/* Places parts on cells and compiles. The cells of the layouts are parts, 0 to parts - 1; parts that
 * exchange many words are placed close to each other. place[p] is set to the cell of part p; convert
 * the layouts with conset_layout_placed and conset_image_cells before making plans. */
int conset_assemble(const char *machine, size_t parts, const conset_set *sets, size_t count,
                    const conset_compile_options *options, uint32_t *place, conset_image **image);

/* ---- Plans and trees ---- */

/* The plan for exchanging vectors of a layout by a set, with `block` words for each item. One plan
 * serves all cells and any number of runs. */
int conset_plan_new(const conset_image *image, const char *set, const conset_layout *layout,
                    size_t block, conset_plan **plan);

/* The number of its set; its words for each item, 0 if the handle is invalid. */
int conset_plan_set(const conset_plan *plan, uint32_t *set);
size_t conset_plan_block(const conset_plan *plan);

/* For each item of a cell, the number of cells that hold it (including this one), and whether this
 * cell owns it (1 or 0). Exactly one cell owns each id, so that sums over owned items count each id
 * once. The arrays have conset_layout_items elements. */
int conset_plan_multiplicity(const conset_plan *plan, uint32_t cell, uint32_t *copies,
                             size_t items);
int conset_plan_owned(const conset_plan *plan, uint32_t cell, int *owned, size_t items);

void conset_plan_free(conset_plan *plan);

/* The trees of an image: those of tree_words; those with a prefix; or those with other set names,
 * towards the root, from the root, and both. The image has at least one of the three sets. */
int conset_trees_new(const conset_image *image, conset_trees **trees);
int conset_trees_prefixed(const conset_image *image, const char *prefix, conset_trees **trees);
int conset_trees_named(const conset_image *image, const char *reduce, const char *broadcast,
                       const char *allreduce, conset_trees **trees);

/* The root of the trees; their words per connection, 0 if the handle is invalid. */
int conset_trees_root(const conset_trees *trees, uint32_t *root);
size_t conset_trees_words(const conset_trees *trees);

void conset_trees_free(conset_trees *trees);

/* Lists of positions in a vector: list r is positions[first[r]] to positions[first[r + 1] - 1].
 * `first` has count + 1 elements and begins with 0. */
typedef struct conset_rows {
    size_t count;
    const size_t *first;
    const uint32_t *positions;
} conset_rows;

/* The positions that one cell sends and receives in conset_exchange_lists: a list for each connection
 * of a set that starts at the cell, and one for each that ends there, in the order of their numbers.
 * A position is `block` words. The arrays are not used after the call. */
int conset_lists_new(const conset_rows *send, const conset_rows *receive, size_t block,
                     conset_lists **lists);
void conset_lists_free(conset_lists *lists);

/* ---- Runs ---- */

/* Duplicates an MPI communicator, given as a Fortran integer (MPI_Comm_c2f). Collective over its ranks.
 * One duplicate serves any number of runs. A rank that waits for others longer than time_out_ms aborts
 * the job; 0 is the number of seconds in the environment variable CONSET_TIMEOUT, or without that no
 * limit. Waits of 10 seconds, then 20, 40, ... are reported on standard error, with the awaited ranks. */
int conset_communicator_new(int fortran, unsigned time_out_ms, conset_communicator **communicator);
void conset_communicator_free(conset_communicator *communicator);

typedef struct conset_options {
    size_t size;          /* of this structure */
    int transport;        /* conset_transport */
    unsigned workers;     /* threads; 0 for as many as there are cores */
    unsigned time_out_ms; /* longest time between two calls of a cell on threads; 0 for that of the
                             environment variable CONSET_TIMEOUT (in seconds), or no limit */
    size_t stack_bytes;   /* size of the stack of each cell; 0 for the default of 1 MiB */
    const conset_communicator *communicator; /* for CONSET_OVER_MPI */
    const char *trace; /* output file for a trace of the emulated machine, for Perfetto or
                          Chrome; null for none */
} conset_options;

int conset_options_init(conset_options *options);

typedef struct conset_report {
    uint64_t clocks;        /* total clocks, on the emulated machine; 0 on other transports */
    uint64_t switches;      /* context switches */
    uint64_t switch_clocks; /* clocks of all context switches */
    uint64_t words;         /* words delivered */
    uint64_t word_hops;     /* words times the links that they crossed */
} conset_report;

/* The program of a cell. */
typedef int (*conset_program)(conset_cell *cell, void *data);

/* Runs `program` on every live cell of the machine, with the same `data`. Over MPI, runs it on the
 * cells of this rank; collective over the ranks. Null options are the defaults; the report may be
 * null. */
int conset_run(const conset_image *image, const conset_options *options, conset_program program,
               void *data, conset_report *report);

/* The cells that a run with these options executes in this process, ascending. At most `room` are
 * written; `count` is set to the total number. */
int conset_run_cells(const conset_image *image, const conset_options *options, uint32_t *cells,
                     size_t room, size_t *count);

/* ---- A cell ---- */

/* The number of the cell; UINT32_MAX if it is invalid. */
uint32_t conset_id(const conset_cell *cell);

/* The number of cells of the machine, including dead ones. */
size_t conset_cell_count(const conset_cell *cell);

/* Clocks since the start of the run, on the emulated machine; 0 on other transports. */
uint64_t conset_clock(const conset_cell *cell);

/* Charges the cell for computing, in clocks of the emulated machine. */
int conset_compute(conset_cell *cell, uint64_t clocks);

/* Sets the round (or time step) and the source location of the following calls. If cells make a
 * collective call in different rounds or at different locations, the run fails (CONSET_MISMATCH)
 * before any word is read. Without them, a cell that skips an exchange or repeats one may deliver the
 * words of another round, if the next exchange is of the same plan. CONSET_HERE(cell) sets the
 * location to its own line. */
int conset_set_round(conset_cell *cell, uint64_t round);
int conset_set_place(conset_cell *cell, const char *file, uint32_t line);

/* Aborts the run for all cells, with a reason. Returns the status that the callback should return. */
int conset_abort(conset_cell *cell, const char *why);

/* ---- Exchanges of vectors: collective, called by all cells in the same order ----
 *
 * x has `block` words for each item of this cell in the layout of the plan, stored item by item:
 * `words` in total. The functions ending in _by select phases or messages (conset_by); the others use
 * phases. */

/* Copies the received values to their items, or combines them with the current values. */
int conset_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                    size_t words);
int conset_exchange_by(conset_cell *cell, int by, const conset_plan *plan, int op, int type, void *x,
                       size_t words);

/* Exchanges `count` vectors at a time; the sum of their words for each item is the block of the plan. */
int conset_exchange_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                         void *const *vectors, const size_t *words, size_t count);
int conset_exchange_many_by(conset_cell *cell, int by, const conset_plan *plan, int op, int type,
                            void *const *vectors, const size_t *words, size_t count);

/* Sums all copies of each item, or combines them with another operation; every copy ends with the same
 * bits. The layout is one of shared ids. */
int conset_sum_shared(conset_cell *cell, const conset_plan *plan, int type, void *x, size_t words);
int conset_combine_shared(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                          size_t words);
int conset_combine_shared_by(conset_cell *cell, int by, const conset_plan *plan, int op, int type,
                             void *x, size_t words);

/* Combines each item of an owner with its ghosts, by the plans of both layouts; the owner and all
 * ghosts end with the same bits. */
int conset_combine_owned(conset_cell *cell, const conset_plan *backward, const conset_plan *forward,
                         int op, int type, void *x, size_t words);
int conset_combine_owned_by(conset_cell *cell, int by, const conset_plan *backward,
                            const conset_plan *forward, int op, int type, void *x, size_t words);

/* Exchanges a set between positions of x, without a layout. */
int conset_exchange_lists(conset_cell *cell, uint32_t set, const conset_lists *lists, int op,
                          int type, void *x, size_t words);

/* A nonblocking exchange or reduction in progress. Plain data. */
typedef struct conset_pending {
    uint64_t numbers[3];
} conset_pending;

/* Starts a nonblocking exchange: packs the outgoing values, after which x may be changed. Several may
 * be in progress; all cells start them in the same order. */
int conset_start(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                 size_t words, conset_pending *pending);

/* Starts conset_exchange_many; complete it with conset_wait_many. */
int conset_start_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                      const void *const *vectors, const size_t *words, size_t count,
                      conset_pending *pending);

/* Starts conset_combine_shared (with CONSET_ADD, conset_sum_shared); complete it with conset_wait. It
 * combines the values that other cells had at the start with those of x at completion: all copies end
 * with the same bits if no shared item changes in between. Other items may change. */
int conset_start_shared(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                        size_t words, conset_pending *pending);

/* Sets `done` to 1 if the exchange or reduction can be completed without waiting, or to 0. Does not wait. Calling it
 * in a loop terminates. */
int conset_test(conset_cell *cell, const conset_pending *pending, int *done);

/* Completes the exchange: waits for the incoming values and copies them to x, or combines them with
 * the current values of x. */
int conset_wait(conset_cell *cell, const conset_plan *plan, const conset_pending *pending, int type,
                void *x, size_t words);
int conset_wait_many(conset_cell *cell, const conset_plan *plan, const conset_pending *pending,
                     int type, void *const *vectors, const size_t *words, size_t count);

/* ---- Collectives: called by all cells in the same order, with arrays of the same length ----
 * Arrays have any length; reduce several scalars in one call, which takes as long as one. A cell with
 * another length, type or operation than the others ends the run (CONSET_MISMATCH). */

/* Combines the arrays entry by entry, in a fixed order. All cells get the result. */
int conset_allreduce(conset_cell *cell, const conset_trees *trees, int op, int type, void *x,
                     size_t words);

/* Starts conset_allreduce: the values are combined that x has now, and it may be changed afterwards.
 * Complete it with conset_wait_allreduce; conset_test polls. All cells start reductions and make
 * collective calls in the same order. On the emulated machine it is performed at the cell's next call
 * that communicates. */
int conset_start_allreduce(conset_cell *cell, const conset_trees *trees, int op, int type,
                           const void *x, size_t words, conset_pending *pending);

/* Completes a reduction: x becomes the result. Type and words are those of the start. */
int conset_wait_allreduce(conset_cell *cell, const conset_pending *pending, int type, void *x,
                          size_t words);

/* The same, but only the root gets the result. The arrays of other cells are overwritten. */
int conset_reduce(conset_cell *cell, const conset_trees *trees, int op, int type, void *x,
                  size_t words);

/* The maximum over all cells and its index: each cell passes its value in `greatest` and an index of
 * its choice in `at` (for a pivot, a row), and gets the maximum and the index passed with it. Of equal
 * values, the smallest index wins. A NaN is greater than any number. */
int conset_allreduce_max_at(conset_cell *cell, const conset_trees *trees, int type, void *greatest,
                            uint64_t *at);

/* Copies the array of cell `from` to all cells. */
int conset_broadcast(conset_cell *cell, const conset_trees *trees, uint32_t from, int type, void *x,
                     size_t words);

/* Returns after all cells have called it. */
int conset_barrier(conset_cell *cell, const conset_trees *trees);

/* ---- Sets without layouts: phases, elements, buffers ---- */

/* The connections of a set that start at this cell, and those that end at it, ascending. The array
 * lives as long as the run. */
int conset_connections_out(conset_cell *cell, uint32_t set, const uint32_t **connections,
                           size_t *count);
int conset_connections_in(conset_cell *cell, uint32_t set, const uint32_t **connections,
                          size_t *count);

/* Exchanges a set, together with all cells. `outgoing` holds the words of the connections that start
 * here in the order of their numbers, `incoming` those of the connections that end here. The arrays do
 * not overlap. */
int conset_exchange_words(conset_cell *cell, uint32_t set, int type, const void *outgoing,
                          size_t outgoing_words, void *incoming, size_t incoming_words);
int conset_exchange_words_by(conset_cell *cell, int by, uint32_t set, int type, const void *outgoing,
                             size_t outgoing_words, void *incoming, size_t incoming_words);

/* Switches to a phase of a set, together with all cells. */
int conset_instantiate_phase(conset_cell *cell, uint32_t set, uint32_t phase);

/* Sends or receives one word of a connection of the active phase. */
int conset_send_element(conset_cell *cell, uint32_t connection, int type, const void *word);
int conset_receive_element(conset_cell *cell, uint32_t connection, int type, void *word);

/* ---- Messages ---- */

/* Switches from phases to messages, together with all cells. A run starts in this mode. */
int conset_instantiate_messages(conset_cell *cell);

/* Sends a message to a cell; receives the next message from a cell, which has `count` words. */
int conset_msg_send(conset_cell *cell, uint32_t target, int type, const void *words, size_t count);
int conset_msg_receive(conset_cell *cell, uint32_t source, int type, void *words, size_t count);

/* Receives the next message from a cell if one has come (`found` is 1), and does not wait for one (0).
 * Calling it in a loop lets other cells continue. */
int conset_msg_try_receive(conset_cell *cell, uint32_t source, int type, void *words, size_t count,
                           int *found);

/* Receives the next message from any cell, of at most `room` words: who has sent it, and its number of
 * words. Which one it is depends on time, except on the emulated machine. */
int conset_msg_receive_any(conset_cell *cell, int type, void *words, size_t room, uint32_t *source,
                           size_t *count);

/* Messages without a copy: conset_send waits until the target asks for the words by conset_receive or
 * conset_send_receive, which does both at the same time, so that cells can exchange words or pass them
 * round a ring. They are not mixed with conset_msg_*. */
int conset_send(conset_cell *cell, uint32_t target, int type, const void *words, size_t count);
int conset_receive(conset_cell *cell, uint32_t source, int type, void *words, size_t count);
int conset_send_receive(conset_cell *cell, int type, uint32_t target, const void *outgoing,
                        size_t outgoing_words, uint32_t source, void *incoming,
                        size_t incoming_words);

/* ---- Collectives without trees: of all live cells, with any image ----
 * Called by all live cells with the same root. If phases are active, all cells switch to messages. */

/* Copies the array of the root to all cells. */
int conset_broadcast_from(conset_cell *cell, uint32_t root, int type, void *words, size_t count);

/* Brings `own_words` words of each cell to `all` of the root, in the order of the cells, or the reverse.
 * `all` has own_words words for each live cell; on other cells it is not used. */
int conset_gather(conset_cell *cell, uint32_t root, int type, const void *own, size_t own_words,
                  void *all, size_t all_words);
int conset_scatter(conset_cell *cell, uint32_t root, int type, const void *all, size_t all_words,
                   void *own, size_t own_words);

/* An operator: changes the first `count` words to their combination with the second ones, which come
 * from cells with higher numbers. It is associative and need not commute, and calls no function of a
 * cell. */
typedef void (*conset_combine)(void *lower, const void *upper, size_t count, void *data);

/* Combines the arrays of all cells into that of the root, by a tree or by swap, whichever is cheaper.
 * The operator gets stretches of any whole number of blocks of `block` words. The arrays of other cells
 * are overwritten. */
int conset_reduce_with(conset_cell *cell, uint32_t root, size_t block, int type, void *words,
                       size_t count, conset_combine combine, void *data);

/* ---- When the pattern is not known: called by all cells in the same order ---- */

/* Sends words to some cells and receives what others have sent to this one. List i, for cell targets[i],
 * is words[first[i]] to words[first[i + 1] - 1]; `first` has count + 1 elements and begins with 0.
 * Lists for the same cell arrive as one, empty lists do not arrive. */
int conset_exchange_any(conset_cell *cell, int type, size_t count, const uint32_t *targets,
                        const size_t *first, const void *words, conset_arrivals **arrivals);

/* The words of a cell. They live as long as the arrivals. */
typedef struct conset_arrival {
    uint32_t source;
    size_t count;
    const void *words; /* of the type of the exchange */
} conset_arrival;

/* The number of cells that have sent words, 0 if the handle is invalid; those of one of them, in the
 * order of the cells. */
size_t conset_arrivals_count(const conset_arrivals *arrivals);
int conset_arrivals_list(const conset_arrivals *arrivals, size_t row, conset_arrival *found);
void conset_arrivals_free(conset_arrivals *arrivals);

/* Exchanges a set where each connection carries as many words as its source decides, at most those of
 * the set. There is a list, as above, for each of conset_connections_out. `incoming` has room for at
 * least the words of all connections that end here (conset_image_words); the words of
 * conset_connections_in are written one connection after the other, and their numbers to
 * incoming_words, which has an element for each. */
int conset_exchange_sized(conset_cell *cell, uint32_t set, int type, size_t count,
                          const size_t *first, const void *words, void *incoming, size_t room,
                          size_t *incoming_words);

/* Opens an epoch, in which cells send items of `item_bytes` bytes to any cells: numbers or structures,
 * which are not converted. It is closed when the callback returns, if not before. */
int conset_epoch_open(conset_cell *cell, size_t item_bytes, conset_epoch **epoch);

/* Sends an item to a cell, which may be the sender. It leaves when the epoch is settled; a handler's
 * items leave in the next round. */
int conset_epoch_send(conset_epoch *epoch, uint32_t target, const void *item);

/* Handles an item. It is aligned to the largest power of two up to 8 that divides item_bytes, and may
 * be read until the handler returns. A handler calls conset_epoch_send for the same epoch, and no
 * function of a cell. It returns 0; any other value aborts the run. */
typedef int (*conset_handler)(conset_epoch *epoch, uint32_t source, const void *item, void *data);

typedef struct conset_settled {
    uint64_t rounds;  /* rounds in which any cell had an item under way: the same on all cells */
    uint64_t handled; /* items that this cell has handled */
} conset_settled;

/* Delivers all items in rounds, until none is under way. A cell handles those of a round by their
 * senders, and those of one sender in the order of sending, on every transport. The epoch can be used
 * again afterwards. `settled` may be null. */
int conset_epoch_settle(conset_epoch *epoch, conset_handler handler, void *data,
                        conset_settled *settled);

/* Sets the number of rounds after which settling fails if cells still send; about a million unless it
 * is set. */
int conset_epoch_limit_rounds(conset_epoch *epoch, uint64_t rounds);

/* Closes an epoch. Items that were not delivered are an error. */
int conset_epoch_close(conset_epoch *epoch);

/* Selects how the items of epochs and of conset_exchange_any find their targets over MPI. */
int conset_set_routing(conset_cell *cell, int routing);

/* Records what this cell sends in epochs and by conset_exchange_any, until it takes the record: the
 * connections from this cell, by their targets, of which there are at most conset_cell_count. Join
 * those of all cells (conset_gather) to a conset_connection_set, and the traffic can be compiled. Items
 * are counted in words of 8, 4, 2 or 1 bytes, the longest that divide them. */
int conset_start_record(conset_cell *cell);
int conset_take_record(conset_cell *cell, conset_connection *connections, size_t room,
                       size_t *count);

/* ---- Halos in an MPI program: no callback, no image ----
 *
 *     conset_attach -> conset_halo_from_* -> conset_halo_exchange, ... -> conset_halo_free -> conset_detach
 *
 * Each rank is one cell. Halos are made from what a rank has, and made and dropped at any time; no
 * rank holds anything in proportion to the number of ranks. All ranks of the communicator make the
 * same calls in the same order, except conset_halo_test and conset_halo_free. A call that fails
 * returns; it does not end the job. Where a rank's ids are wrong, all ranks get the error
 * (CONSET_LAYOUT), which names the rank, and can go on. A message of another size than expected is an
 * error (CONSET_MISMATCH); messages of the same size of two different calls on one halo cannot be
 * told apart. In a library without MPI all calls return CONSET_UNSUPPORTED.
 *
 * A vector has conset_halo_items(halo) items of `block` numbers each. Blocks and types can be others
 * in every call. */

/* Duplicates a communicator, given as a Fortran integer (MPI_Comm_c2f). Several communicators can be
 * attached at a time. Collective. */
int conset_attach(int fortran, conset_attached **attached);

/* Gives the duplicate back when its halos are freed, too. */
void conset_detach(conset_attached *attached);

/* Items with the same id on several ranks are copies of one value, as in gslib; for conset_halo_sum and
 * conset_halo_combine. ids[i] is the id of item i. */
int conset_halo_from_shared_ids(const conset_attached *attached, size_t items, const uint64_t *ids,
                                conset_halo **halo);

/* This rank owns the ids first to end - 1, and has the given ghosts, which other ranks own, as in PETSc:
 * the vectors have the owned items, then the ghosts. For conset_halo_exchange and conset_halo_reduce. */
int conset_halo_from_range(const conset_attached *attached, uint64_t first, uint64_t end,
                           size_t ghosts, const uint64_t *ids, conset_halo **halo);

/* The same with any ids: this rank owns the first `owned` of its items, the others are ghosts. */
int conset_halo_from_owned(const conset_attached *attached, size_t items, const uint64_t *ids,
                           size_t owned, conset_halo **halo);

/* The halo of the vectors that a square sparse matrix is multiplied with. This rank has the rows first
 * to end - 1: row first + i has the columns columns[ptr[i]] to columns[ptr[i + 1] - 1], which are
 * global and counted from 0. ptr and columns are of index_type CONSET_INT32 or CONSET_INT64. `local`
 * gets the local columns: row first + i is item i, and the ghosts follow (conset_halo_ghosts). It has
 * `entries` elements, as columns has. conset_halo_exchange before a product with the rows,
 * conset_halo_reduce after one with the transposed rows. */
int conset_halo_from_rows(const conset_attached *attached, uint64_t first, uint64_t end,
                          int index_type, const void *ptr, const void *columns, size_t entries,
                          uint32_t *local, conset_halo **halo);

/* The items of the vectors; 0 if the handle is invalid. */
size_t conset_halo_items(const conset_halo *halo);

/* The ids of the ghosts of a range or of rows, which are the last items. At most `room` are written;
 * `count` is set to the total number. */
int conset_halo_ghosts(const conset_halo *halo, uint64_t *ids, size_t room, size_t *count);

/* For each item the number of ranks that have it, and whether it counts for this rank in sums over all
 * ids (1 or 0): every id counts on one rank. */
int conset_halo_multiplicity(const conset_halo *halo, uint32_t *copies, size_t items);
int conset_halo_owned(const conset_halo *halo, int *owned, size_t items);

/* Copies the items of owners to their ghosts. */
int conset_halo_exchange(conset_halo *halo, int type, void *vector, size_t block);

/* The same for several vectors by one message to each neighbour, and for items of any size. */
typedef struct conset_field {
    void *vector; /* an item after the other */
    size_t bytes; /* of an item */
} conset_field;

int conset_halo_exchange_fields(conset_halo *halo, const conset_field *fields, size_t count);

/* Combines each owned item with its ghosts: the owner's value first, then the ghosts by rank. */
int conset_halo_reduce(conset_halo *halo, int op, int type, void *vector, size_t block);

/* Combines all copies of each shared item, in the order of the ranks; every rank gets the result, with
 * the same bits. CONSET_COPY: the value of the lowest rank. conset_halo_sum is CONSET_ADD. */
int conset_halo_combine(conset_halo *halo, int op, int type, void *vector, size_t block);
int conset_halo_sum(conset_halo *halo, int type, void *vector, size_t block);

/* Start one of these three with the values that the vector has now; `exchange` gets a number for
 * conset_halo_wait. Any number can be under way. */
int conset_halo_start(conset_halo *halo, int type, const void *vector, size_t block,
                      uint64_t *exchange);
int conset_halo_start_reduce(conset_halo *halo, int type, const void *vector, size_t block,
                             uint64_t *exchange);
int conset_halo_start_combine(conset_halo *halo, int type, const void *vector, size_t block,
                              uint64_t *exchange);

/* Whether an exchange can be completed without waiting (1 or 0). It makes progress. */
int conset_halo_test(conset_halo *halo, uint64_t exchange, int *done);

/* Completes an exchange in a vector of the same type and block. `op` is CONSET_COPY for
 * conset_halo_start. Nothing is written to the vector before. */
int conset_halo_wait(conset_halo *halo, uint64_t exchange, int op, int type, void *vector,
                     size_t block);

void conset_halo_free(conset_halo *halo);

/* Reductions over all ranks along a fixed binomial tree: the same bits in every run. Several scalars in
 * one array cost as much as one. Broadcasts are from rank `root`. */
int conset_attached_allreduce(const conset_attached *attached, int op, int type, void *words,
                              size_t count);
int conset_attached_broadcast(const conset_attached *attached, int root, int type, void *words,
                              size_t count);
int conset_attached_barrier(const conset_attached *attached);

/* Starts conset_attached_allreduce: the words are combined that are there now, and may be changed
 * afterwards. Several can be under way; all ranks start them in the same order. They proceed in calls
 * only, those of halos included. */
int conset_attached_start_allreduce(const conset_attached *attached, int op, int type,
                                    const void *words, size_t count, uint64_t *reduction);

/* Whether a reduction can be completed without waiting (1 or 0). It makes progress. */
int conset_attached_test(const conset_attached *attached, uint64_t reduction, int *done);

/* Completes a reduction: words become the result. Type and count are those of the start. */
int conset_attached_wait(const conset_attached *attached, uint64_t reduction, int type, void *words,
                         size_t count);

/* ---- Former names, kept for one release ---- */

/* conset_cell_count, conset_abort. */
size_t conset_cells(const conset_cell *cell);
int conset_give_up(conset_cell *cell, const char *why);

/* conset_start, conset_start_many, conset_start_shared, conset_wait, conset_wait_many. */
int conset_begin(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                 size_t words, conset_pending *pending);
int conset_begin_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                      const void *const *vectors, const size_t *words, size_t count,
                      conset_pending *pending);
int conset_begin_shared(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                        size_t words, conset_pending *pending);
int conset_end(conset_cell *cell, const conset_plan *plan, const conset_pending *pending, int type,
               void *x, size_t words);
int conset_end_many(conset_cell *cell, const conset_plan *plan, const conset_pending *pending,
                    int type, void *const *vectors, const size_t *words, size_t count);

/* The functions ending in _by, with CONSET_BY_MESSAGES. */
int conset_msg_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                        size_t words);
int conset_msg_sum_shared(conset_cell *cell, const conset_plan *plan, int type, void *x,
                          size_t words);
int conset_msg_combine_shared(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                              size_t words);
int conset_msg_combine_owned(conset_cell *cell, const conset_plan *backward,
                             const conset_plan *forward, int op, int type, void *x, size_t words);
int conset_msg_exchange_words(conset_cell *cell, uint32_t set, int type, const void *outgoing,
                              size_t outgoing_words, void *incoming, size_t incoming_words);

#define CONSET_HERE(cell) conset_set_place((cell), __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif

#endif
