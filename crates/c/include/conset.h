/*
 * conset: compiled communication for iterative solvers, from C and C++.
 *
 *     from what a solver has      compiled, checked          what exchanges need
 *     ids, matrix  -> layout  ->  set  -> conset_compile -> image  ->  plan, trees  ->  conset_run
 *
 * 1. A layout says which entries of the cells' vectors belong together: conset_layout_*,
 *    conset_matrix_*.
 * 2. conset_compile turns sets of connections into an image for a machine; or an image that was
 *    compiled ahead of time is read (conset_image_read) or linked in (conset_image_parse).
 * 3. A plan puts layout and image together (conset_plan_new), trees are for reductions.
 * 4. conset_run calls a function of yours once for every cell. Cells exchange vectors by plans. On the
 *    emulated machine, on threads and over MPI the function is the same and so are its results, to
 *    the bit.
 *
 * Rules, for all functions:
 *
 * - A function that can fail returns an int: CONSET_OK (0) or another conset_status; and conset_error
 *   says in words what was wrong. Nothing is written through the pointers of a call that failed,
 *   except to vectors that were being exchanged.
 * - Handles (pointers to conset_image, conset_layout, ...) are made by this library, freed by their
 *   conset_*_free (null is allowed) in any order, also while others that were made of them are in use.
 *   They may be used by several threads at a time, but not while they are being freed.
 * - Arrays have at least as many elements as the call says, and nobody writes to them during the
 *   call (or reads them, if the call writes). An array of no elements may be null.
 * - Texts are UTF-8 and end with a zero byte. Texts and arrays that are given out belong to the library.
 * - Numbers of cells, connections, sets and phases begin with 0.
 * - Structures of options begin with their size. Set the defaults with their *_init function first.
 *
 * Rules, for the function that conset_run calls:
 *
 * - It returns 0. Any other number ends the run for all cells, with an error that names the cell.
 * - Its conset_cell is its own, for as long as it runs. It is not used by other callbacks, by other
 *   threads, or after the return.
 * - It is called from several threads at a time (CONSET_THREADS). Cells of one thread take turns, at
 *   calls of this library: thread-local variables of yours are shared by them.
 * - Its stack has conset_options.stack_bytes: put large arrays elsewhere.
 * - It is not left by longjmp or by an exception.
 * - A call of a cell that fails ends the run. Later calls of all cells return CONSET_ABORTED, until
 *   the functions have returned.
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

/* What a call returns. */
enum conset_status {
    CONSET_OK = 0,
    CONSET_NULL_POINTER,  /* a pointer is null */
    CONSET_BAD_ARGUMENT,  /* a size, number or text is wrong */
    CONSET_BAD_HANDLE,    /* a handle is of another kind, a cell is not this callback's */
    CONSET_FILE,          /* a file cannot be read or written */
    CONSET_INPUT,         /* what a file or a specification says is wrong */
    CONSET_REJECTED,      /* the checker refuses it */
    CONSET_INFEASIBLE,    /* the machine cannot do it */
    CONSET_LAYOUT,        /* no layout can be made of it */
    CONSET_PLAN,          /* layout and image do not fit together */
    CONSET_CELL,          /* a cell asked for what it cannot have */
    CONSET_PROGRAM,       /* a callback returned another number than 0, or gave up */
    CONSET_MISMATCH,      /* the calls of two cells do not fit together */
    CONSET_TIME_OUT,      /* a cell took too long */
    CONSET_FAULT,         /* the emulated machine found a fault */
    CONSET_MEMORY,        /* there is no memory for a cell's stack */
    CONSET_MPI,           /* something between the ranks of a job */
    CONSET_UNSUPPORTED,   /* the library was built without it */
    CONSET_ABORTED,       /* the run has ended, because of another cell or an earlier call */
    CONSET_BUG            /* a bug of conset */
};

/* What carries the words of a run. */
enum conset_transport {
    CONSET_FABRIC = 0,  /* the emulated machine: every word travels, every clock is counted */
    CONSET_THREADS = 1, /* threads of this process, several cells on each */
    CONSET_OVER_MPI = 2 /* the ranks of a communicator, each with some of the cells */
};

/* How values that come in meet those that are there. */
enum conset_op { CONSET_COPY = 0, CONSET_ADD = 1, CONSET_MIN = 2, CONSET_MAX = 3 };

/* The type of an array's numbers. */
enum conset_type { CONSET_DOUBLE = 0, CONSET_FLOAT = 1, CONSET_INT64 = 2, CONSET_INT32 = 3 };

/* Which router and scheduler. */
enum conset_algorithm { CONSET_BEST = 0, CONSET_PAPER = 1 };

typedef struct conset_image conset_image;               /* a compiled program */
typedef struct conset_layout conset_layout;             /* which entries of vectors travel */
typedef struct conset_matrix conset_matrix;             /* a sparse matrix, dealt to cells */
typedef struct conset_plan conset_plan;                 /* layout and image */
typedef struct conset_trees conset_trees;               /* the trees of reductions */
typedef struct conset_communicator conset_communicator; /* a duplicate of an MPI communicator */
typedef struct conset_cell conset_cell;                 /* a cell, lent to a callback */

/* ---- The library ---- */

/* The version of the library, as "0.1.0"; that of this header is in the macros above. */
const char *conset_version(void);

/* What was wrong in the last call of this thread that failed: the function's name, then the error.
 * Empty if none has. The text stands until the thread's next call that fails. */
const char *conset_error(void);

/* What kind of error a status is, in a few words. */
const char *conset_status_text(int status);

/* ---- Images ---- */

/* Makes an image of `size` bytes in any of conset's forms (docs/format.md), and checks it as the
 * compiler's own. The bytes are not used afterwards. */
int conset_image_parse(const void *bytes, size_t size, conset_image **image);

/* The same for a file: an image (.csi) or a schedule (.csb, .json, .cset). */
int conset_image_read(const char *path, conset_image **image);

/* Writes an image to a file, to be read by conset_image_read. */
int conset_image_write(const conset_image *image, const char *path);

/* A number that is the same for equal images and hardly ever for others. */
int conset_image_digest(const conset_image *image, uint64_t *digest);

/* Number of cells of the image's machine, and of its sets; 0 if the handle is wrong. */
size_t conset_image_cells(const conset_image *image);
size_t conset_image_sets(const conset_image *image);

/* The number of the set of this name. */
int conset_image_set(const conset_image *image, const char *name, uint32_t *set);

/* Number of phases, and of connections, of a set. */
int conset_image_phases(const conset_image *image, uint32_t set, uint32_t *phases);
int conset_image_connections(const conset_image *image, uint32_t set, uint32_t *connections);

typedef struct conset_connection {
    uint32_t source; /* the cell that sends */
    uint32_t target; /* the cell that receives */
    uint32_t words;
} conset_connection;

/* What a connection of a set is. */
int conset_image_connection(const conset_image *image, uint32_t set, uint32_t connection,
                            conset_connection *found);

/* Words of all connections of a set that start at a cell, and of those that end there: the sizes of
 * the arrays of conset_exchange_words. */
int conset_image_words(const conset_image *image, uint32_t set, uint32_t cell, size_t *outgoing,
                       size_t *incoming);

typedef struct conset_operation {
    uint32_t connection;
    int sends;           /* 1: the cell sends it, 0: receives it */
    uint32_t first_word; /* words of a connection may come in several pieces */
    uint32_t words;
} conset_operation;

/* What a cell has to send and to receive in a phase (conset_send_element, conset_receive_element),
 * in the compiled order. At most `room` are written; `count` is how many there are. */
int conset_image_operations(const conset_image *image, uint32_t set, uint32_t phase, uint32_t cell,
                            conset_operation *operations, size_t room, size_t *count);

void conset_image_free(conset_image *image);

/* ---- Layouts ----
 *
 * Each cell has a local vector of items (nodes, rows), each with a global id. The ids of all cells
 * stand in one array, cell by cell: those of cell c are ids[first[c]] to ids[first[c + 1] - 1]; `first`
 * has cells + 1 elements and begins with 0. */

/* Items of one id are copies of one value, as in gslib; for conset_sum_shared. */
int conset_layout_from_shared_ids(size_t cells, const size_t *first, const uint64_t *ids,
                                  conset_layout **layout);

/* Each id has one owner, other cells have ghosts of it. Of each cell's ids it owns the first
 * owned[c]. `forward` is from owners to ghosts (to copy), `backward` from ghosts to owners (to add).
 * Either may be null. */
int conset_layout_from_owned(size_t cells, const size_t *first, const uint64_t *ids,
                             const size_t *owned, conset_layout **forward,
                             conset_layout **backward);

/* The layout of a compiled set that carries lists of nodes, as the sets of meshes do, with `block`
 * words for each node. */
int conset_layout_from_image(const conset_image *image, const char *set, size_t block,
                             size_t cells, const size_t *first, const uint64_t *ids,
                             conset_layout **layout);

/* The same layout on a machine of `cells` cells, with part p on cell place[p]. */
int conset_layout_placed(const conset_layout *layout, size_t parts, const uint32_t *place,
                         size_t cells, conset_layout **placed);

/* Items of a cell's vector; number of connections; 0 if the handle is wrong. */
size_t conset_layout_items(const conset_layout *layout, uint32_t cell);
size_t conset_layout_connections(const conset_layout *layout);

void conset_layout_free(conset_layout *layout);

/* Deals the rows of a square sparse matrix in compressed rows to `cells` cells: row r, and entry r
 * of the vector, to cell owner[r]. ptr (rows + 1) and idx (ptr[rows]) are of index_type CONSET_INT32
 * or CONSET_INT64, columns are counted from 0. */
int conset_matrix_new(size_t rows, int index_type, const void *ptr, const void *idx,
                      const uint32_t *owner, size_t cells, conset_matrix **matrix);

/* Its layouts: `forward` brings owners' entries to ghosts, before a product with the rows;
 * `backward` brings ghosts' to their owners, after one with the rows transposed. Either may be
 * null. */
int conset_matrix_layouts(const conset_matrix *matrix, conset_layout **forward,
                          conset_layout **backward);

/* The rows of one cell in local numbers. The vector has the own rows first, ascending, then the
 * ghosts by (owner, id). A row's entries are in the order of the global row. The arrays live as long
 * as the matrix. */
typedef struct conset_local_csr {
    size_t items;        /* entries of the local vector */
    size_t owned;        /* how many of them, from the first on, are own rows */
    size_t entries;      /* entries of the own rows */
    const uint64_t *ids; /* the global row of each item */
    const size_t *ptr;   /* where each own row's entries begin; owned + 1 elements */
    const uint32_t *idx; /* local columns */
} conset_local_csr;

int conset_matrix_local(const conset_matrix *matrix, uint32_t cell, conset_local_csr *local);

void conset_matrix_free(conset_matrix *matrix);

/* ---- Compiling ---- */

/* A set to be compiled: the connections of a layout, `block` words for each item. */
typedef struct conset_set {
    const char *name;
    const conset_layout *layout;
    size_t block;
} conset_set;

typedef struct conset_compile_options {
    size_t size;         /* of this structure */
    uint64_t seed;       /* the same seed gives the same image */
    uint32_t tree_words; /* words that the trees of reductions carry at a time; 0 for no trees; 1 */
    uint32_t max_phases; /* the most phases a set may take; 0 for as many as it needs */
    int algorithm;       /* conset_algorithm */
} conset_compile_options;

int conset_compile_options_init(conset_compile_options *options);

/* Compiles sets for a machine: a preset with sizes ("torus:4x4", "iwarp", "ring:8", "hypercube:6",
 * "fat-tree:64"; `conset machines` lists them) or a machine file ending in .toml; settings may follow
 * behind blanks ("torus:4x4 channels_per_cell=8"). Null options are the defaults. */
int conset_compile(const char *machine, const conset_set *sets, size_t count,
                   const conset_compile_options *options, conset_image **image);

/* ---- Plans and trees ---- */

/* The plan by which a set exchanges vectors of a layout, `block` words for each item. One plan is for
 * all cells and any number of runs. */
int conset_plan_new(const conset_image *image, const char *set, const conset_layout *layout,
                    size_t block, conset_plan **plan);
void conset_plan_free(conset_plan *plan);

/* The trees of an image (conset_compile_options.tree_words). */
int conset_trees_new(const conset_image *image, conset_trees **trees);
void conset_trees_free(conset_trees *trees);

/* ---- Runs ---- */

/* A duplicate of an MPI communicator of yours, given as its Fortran integer (MPI_Comm_c2f); all its
 * ranks call this together. One is enough for any number of runs. A rank that waits longer than
 * time_out_ms (0: ten seconds) for others ends the job. */
int conset_communicator_new(int fortran, unsigned time_out_ms, conset_communicator **communicator);
void conset_communicator_free(conset_communicator *communicator);

typedef struct conset_options {
    size_t size;          /* of this structure */
    int transport;        /* conset_transport */
    unsigned workers;     /* threads; 0 for as many as there are cores */
    unsigned time_out_ms; /* that a cell on threads may take without any call; 0 for ever */
    size_t stack_bytes;   /* of each cell's stack; 0 for the usual 256 KiB */
    const conset_communicator *communicator; /* for CONSET_OVER_MPI */
} conset_options;

int conset_options_init(conset_options *options);

typedef struct conset_report {
    uint64_t clocks;        /* until all was done; on the emulated machine, 0 elsewhere */
    uint64_t switches;      /* context switches */
    uint64_t switch_clocks; /* their clocks */
    uint64_t words;         /* delivered */
    uint64_t word_hops;     /* carried, counted once on every link */
} conset_report;

/* What every cell runs. */
typedef int (*conset_program)(conset_cell *cell, void *data);

/* Runs `program` on every cell of the image's machine, with the same `data`; over MPI on the cells
 * of this rank, and all ranks call this together. Null options are the defaults; the report may be
 * null. */
int conset_run(const conset_image *image, const conset_options *options, conset_program program,
               void *data, conset_report *report);

/* ---- A cell ---- */

/* Its number; UINT32_MAX for what is no cell. */
uint32_t conset_id(const conset_cell *cell);

/* Number of cells of the machine, dead ones included. */
size_t conset_cells(const conset_cell *cell);

/* Clocks since the run began, on the emulated machine; 0 elsewhere. */
uint64_t conset_clock(const conset_cell *cell);

/* Works for a number of clocks. */
int conset_compute(conset_cell *cell, uint64_t clocks);

/* Ends the run for all cells, with a reason; returns what to return. */
int conset_give_up(conset_cell *cell, const char *why);

/* ---- Exchanges of vectors, together with all cells ----
 *
 * x has `block` words for each item of this cell in the plan's layout, those of an item one behind
 * the other: `words` in all. */

/* Copies what comes in to the items it belongs to, or combines it with what is there. */
int conset_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                    size_t words);

/* The same by a message for each connection, to be compared. */
int conset_msg_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                        size_t words);

/* Exchanges `count` vectors at a time; their words for each item together are the plan's block. */
int conset_exchange_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                         void *const *vectors, const size_t *words, size_t count);

/* All copies of an item end as the sum of all of them, with the same bits; or as another
 * operation's result. The layout is one of shared ids. */
int conset_sum_shared(conset_cell *cell, const conset_plan *plan, int type, void *x, size_t words);
int conset_combine_shared(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                          size_t words);

/* An exchange that was begun. Plain data. */
typedef struct conset_pending {
    uint64_t numbers[3];
} conset_pending;

/* Begins an exchange: what goes out is packed, x may be changed at once. Several may be under way;
 * all cells begin theirs in the same order. */
int conset_begin(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                 size_t words, conset_pending *pending);

/* Whether it can be ended without waiting; asking again and again comes to an end. */
int conset_test(conset_cell *cell, const conset_pending *pending, int *done);

/* Ends it: what came in is copied to x, or combined with what is there now. */
int conset_end(conset_cell *cell, const conset_plan *plan, const conset_pending *pending, int type,
               void *x, size_t words);

/* ---- Collectives, called by all cells in the same order, with arrays of the same length ---- */

/* Combines the arrays entry by entry, in an order that is always the same. */
int conset_allreduce(conset_cell *cell, const conset_trees *trees, int op, int type, void *x,
                     size_t words);

/* Gives all cells the array of cell `from`. */
int conset_broadcast(conset_cell *cell, const conset_trees *trees, uint32_t from, int type, void *x,
                     size_t words);

/* Returns when all cells have called it. */
int conset_barrier(conset_cell *cell, const conset_trees *trees);

/* ---- Sets without layouts: phases, elements, buffers ---- */

/* The connections of a set that start, and that end, at this cell, ascending. The array lives as
 * long as the run. */
int conset_connections_out(conset_cell *cell, uint32_t set, const uint32_t **connections,
                           size_t *count);
int conset_connections_in(conset_cell *cell, uint32_t set, const uint32_t **connections,
                          size_t *count);

/* Exchanges a set, together with all cells: the words of the connections out, one connection behind the
 * other in the order of their numbers, and of those in. */
int conset_exchange_words(conset_cell *cell, uint32_t set, int type, const void *outgoing,
                          size_t outgoing_words, void *incoming, size_t incoming_words);
int conset_msg_exchange_words(conset_cell *cell, uint32_t set, int type, const void *outgoing,
                              size_t outgoing_words, void *incoming, size_t incoming_words);

/* Switches to a phase of a set, together with all cells. */
int conset_instantiate_phase(conset_cell *cell, uint32_t set, uint32_t phase);

/* Sends, and receives, one word of a connection of the active phase. */
int conset_send_element(conset_cell *cell, uint32_t connection, int type, const void *word);
int conset_receive_element(conset_cell *cell, uint32_t connection, int type, void *word);

/* ---- Messages ---- */

/* Switches from phases to messages, together with all cells. A run begins so. */
int conset_instantiate_messages(conset_cell *cell);

/* Sends a message to a cell; receives the next one of a cell, which has as many words. */
int conset_msg_send(conset_cell *cell, uint32_t target, int type, const void *words, size_t count);
int conset_msg_receive(conset_cell *cell, uint32_t source, int type, void *words, size_t count);

#ifdef __cplusplus
}
#endif

#endif
