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
 *   says in words what was wrong. What a call that failed may have written is of no use.
 * - Handles (pointers to conset_image, conset_layout, ...) are made by this library, freed by their
 *   conset_*_free (null is allowed) in any order, also while others that were made of them are in use.
 *   They may be used by several threads at a time, but not while they are being freed. A handle that
 *   was freed is an error (CONSET_BAD_HANDLE), for as long as it was not too long ago.
 * - Arrays have at least as many elements as the call says, and nobody writes to them during the
 *   call (or reads them, if the call writes). An array of no elements may be null. An array that is
 *   read and one that is written do not overlap.
 * - Texts are UTF-8 and end with a zero byte. Texts and arrays that are given out belong to the library.
 * - Numbers of cells, connections, sets and phases begin with 0.
 * - Structures of options begin with their size. Set the defaults with their *_init function first.
 *
 * Rules, for the function that conset_run calls:
 *
 * - It returns 0. Any other number ends the run for all cells, with an error that names the cell.
 * - Its conset_cell is its own, for as long as it runs. Used by another callback, by another thread,
 *   inside of another run or after the return it is an error (CONSET_BAD_HANDLE).
 * - It is called from several threads at a time (CONSET_THREADS). Cells of one thread take turns, at
 *   calls of this library: thread-local variables of yours are shared by them, static ones by all.
 * - Its stack has conset_options.stack_bytes: put large arrays elsewhere, and compile outside of it. A
 *   function that overflows it ends the process, with a message that names the cell and exit status 70.
 *   A call that finds it nearly used up fails (CONSET_CELL).
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

/* What CONSET_BEST makes small: the time of an exchange, or the number of phases. */
enum conset_objective { CONSET_TIME = 0, CONSET_PHASES = 1 };

/* How conset_assemble finds cells for parts: by all ways and a search, the cheapest; part p on the
 * p-th live cell; along a curve that fills the machine; by bisection. */
enum conset_placement {
    CONSET_PLACE_BEST = 0,
    CONSET_PLACE_GIVEN = 1,
    CONSET_PLACE_CURVE = 2,
    CONSET_PLACE_BISECT = 3
};

/* The sets of a tree, to be added: to the root, from the root, and both in one. The last alone serves
 * all collectives but conset_reduce. */
enum conset_tree_sets {
    CONSET_TREE_REDUCE = 1,
    CONSET_TREE_BROADCAST = 2,
    CONSET_TREE_ALLREDUCE = 4
};

typedef struct conset_image conset_image;               /* a compiled program */
typedef struct conset_layout conset_layout;             /* which entries of vectors travel */
typedef struct conset_matrix conset_matrix;             /* a sparse matrix, dealt to cells */
typedef struct conset_lists conset_lists;               /* positions in a vector that travel */
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

/* Writes an image to memory, to be read by conset_image_parse, on another rank say. At most `room`
 * bytes are written; `size` is how many there are. */
int conset_image_bytes(const conset_image *image, void *bytes, size_t room, size_t *size);

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

/* The same layout on a machine of `cells` cells, with part p on cell place[p] (conset_assemble). */
int conset_layout_placed(const conset_layout *layout, size_t parts, const uint32_t *place,
                         size_t cells, conset_layout **placed);

/* The way back: what was sent is received. */
int conset_layout_reversed(const conset_layout *layout, conset_layout **reversed);

/* Number of cells; items of a cell's vector; number of connections; 0 if the handle is wrong. */
size_t conset_layout_cells(const conset_layout *layout);
size_t conset_layout_items(const conset_layout *layout, uint32_t cell);
size_t conset_layout_connections(const conset_layout *layout);

/* What travels on a connection. The arrays have `items` elements and live as long as the layout. */
typedef struct conset_list {
    uint32_t source; /* the cell that sends */
    uint32_t target; /* the cell that receives */
    size_t items;
    const uint64_t *ids;
    const uint32_t *send;    /* where they are in the source's vector */
    const uint32_t *receive; /* and in the target's */
} conset_list;

int conset_layout_list(const conset_layout *layout, uint32_t connection, conset_list *list);

/* 1 if every cell that holds an id receives it from every other that does, which conset_sum_shared
 * needs; or 0. */
int conset_layout_is_shared(const conset_layout *layout, int *shared);

void conset_layout_free(conset_layout *layout);

/* ---- Matrices ---- */

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

/* The values of a cell's rows, in the order of its idx, out of those of the global matrix, whose `ptr`
 * is given again. `own` has conset_local_csr.entries elements. */
int conset_matrix_values(const conset_matrix *matrix, uint32_t cell, int index_type,
                         const void *ptr, int type, const void *values, void *own,
                         size_t entries);

/* The entries of a cell's vector, own and ghosts, out of a global vector of all rows. `own` has
 * conset_local_csr.items elements. */
int conset_matrix_gather(const conset_matrix *matrix, uint32_t cell, int type, const void *global,
                         void *own, size_t items);

void conset_matrix_free(conset_matrix *matrix);

/* ---- Compiling ---- */

/* A set to be compiled: the connections of a layout, `block` words for each item. */
typedef struct conset_set {
    const char *name;
    const conset_layout *layout;
    size_t block;
} conset_set;

/* Trees of reductions, broadcasts and barriers, over all live cells. */
typedef struct conset_tree {
    const char *prefix; /* of the names of its sets, for conset_trees_prefixed; null for none */
    uint32_t words;     /* that it carries at a time; longer arrays go in pieces */
    int sets;           /* those that are compiled: a sum of conset_tree_sets */
} conset_tree;

typedef struct conset_compile_options {
    size_t size;         /* of this structure */
    uint64_t seed;       /* the same seed gives the same image */
    uint32_t tree_words; /* of a tree without a prefix, with all of its sets; 0 for none; 1 */
    uint32_t max_phases; /* the most phases a set may take; 0 for as many as it needs */
    int algorithm;       /* conset_algorithm */
    int objective;       /* conset_objective */
    uint32_t attempts;   /* plans made of each set; 0 until nothing much better can be expected */
    int reroutes;        /* rounds of rip-up and reroute; -1 for the algorithm's own number */
    int placement;       /* conset_placement, of conset_assemble */
    const conset_tree *trees; /* more trees */
    size_t tree_count;
} conset_compile_options;

int conset_compile_options_init(conset_compile_options *options);

/* Compiles sets for a machine: a preset with sizes ("torus:4x4", "iwarp", "ring:8", "hypercube:6",
 * "fat-tree:64"; `conset machines` lists them) or a machine file ending in .toml; settings may follow
 * behind blanks ("torus:4x4 channels_per_cell=8"). Null options are the defaults. */
int conset_compile(const char *machine, const conset_set *sets, size_t count,
                   const conset_compile_options *options, conset_image **image);

/* The same for sets of layouts whose cells are parts, 0 to parts - 1, that are yet to get cells: parts
 * that exchange much are placed close to each other. place[p] is then the cell of part p; what is
 * needed next is conset_layout_placed with conset_image_cells. */
int conset_assemble(const char *machine, size_t parts, const conset_set *sets, size_t count,
                    const conset_compile_options *options, uint32_t *place, conset_image **image);

/* ---- Plans and trees ---- */

/* The plan by which a set exchanges vectors of a layout, `block` words for each item. One plan is for
 * all cells and any number of runs. */
int conset_plan_new(const conset_image *image, const char *set, const conset_layout *layout,
                    size_t block, conset_plan **plan);

/* The number of its set; its words for each item, 0 if the handle is wrong. */
int conset_plan_set(const conset_plan *plan, uint32_t *set);
size_t conset_plan_block(const conset_plan *plan);

/* On how many cells each item of a cell is, that cell among them; and whether the item counts as the
 * cell's own (1 or 0): of the copies of an id one does, so sums over own items count each id once.
 * The arrays have conset_layout_items elements. */
int conset_plan_multiplicity(const conset_plan *plan, uint32_t cell, uint32_t *copies,
                             size_t items);
int conset_plan_owned(const conset_plan *plan, uint32_t cell, int *owned, size_t items);

void conset_plan_free(conset_plan *plan);

/* The trees of an image: those of tree_words; those with a prefix; sets of other names, to the root,
 * from it and both ways, of which the image has at least one. */
int conset_trees_new(const conset_image *image, conset_trees **trees);
int conset_trees_prefixed(const conset_image *image, const char *prefix, conset_trees **trees);
int conset_trees_named(const conset_image *image, const char *reduce, const char *broadcast,
                       const char *allreduce, conset_trees **trees);

/* The cell that reductions end at; words that the trees carry at a time, 0 if the handle is wrong. */
int conset_trees_root(const conset_trees *trees, uint32_t *root);
size_t conset_trees_words(const conset_trees *trees);

void conset_trees_free(conset_trees *trees);

/* Lists of positions in a vector, one list behind the other: list r is positions[first[r]] to
 * positions[first[r + 1] - 1]; `first` has count + 1 elements and begins with 0. */
typedef struct conset_rows {
    size_t count;
    const size_t *first;
    const uint32_t *positions;
} conset_rows;

/* What one cell sends and receives in conset_exchange_lists: a list for each connection of a set that
 * starts at the cell, and for each that ends there, in the order of their numbers. A position is
 * `block` words. The arrays are not used afterwards. */
int conset_lists_new(const conset_rows *send, const conset_rows *receive, size_t block,
                     conset_lists **lists);
void conset_lists_free(conset_lists *lists);

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
    size_t stack_bytes;   /* of each cell's stack; 0 for the usual 1 MiB */
    const conset_communicator *communicator; /* for CONSET_OVER_MPI */
    const char *trace; /* a file for what happened when on the emulated machine, to be looked at
                          with Perfetto or Chrome; null for none */
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

/* Runs `program` on every live cell of the image's machine, with the same `data`; over MPI on the
 * cells of this rank, and all ranks call this together. Null options are the defaults; the report may
 * be null. What runs look up in an image is made with the image, once. */
int conset_run(const conset_image *image, const conset_options *options, conset_program program,
               void *data, conset_report *report);

/* The cells whose callbacks such a run executes in this process, ascending. At most `room` are
 * written; `count` is how many there are. */
int conset_run_cells(const conset_image *image, const conset_options *options, uint32_t *cells,
                     size_t room, size_t *count);

/* ---- A cell ---- */

/* Its number; UINT32_MAX for what is no cell. */
uint32_t conset_id(const conset_cell *cell);

/* Number of cells of the machine, dead ones included. */
size_t conset_cells(const conset_cell *cell);

/* Clocks since the run began, on the emulated machine; 0 elsewhere. */
uint64_t conset_clock(const conset_cell *cell);

/* Works for a number of clocks. */
int conset_compute(conset_cell *cell, uint64_t clocks);

/* Says in which round, or time step, the next calls are, and where in the program they are. Calls that
 * all cells make together, in different rounds or at different places, are an error
 * (CONSET_MISMATCH) before a word is read. Without them a cell that skips an exchange, or makes one
 * twice, may give others the words of another round if the next is of the same plan.
 * CONSET_HERE(cell) says the place where it stands. */
int conset_set_round(conset_cell *cell, uint64_t round);
int conset_set_place(conset_cell *cell, const char *file, uint32_t line);

/* Ends the run for all cells, with a reason; returns what to return. */
int conset_give_up(conset_cell *cell, const char *why);

/* ---- Exchanges of vectors, together with all cells ----
 *
 * x has `block` words for each item of this cell in the plan's layout, those of an item one behind
 * the other: `words` in all. */

/* Copies what comes in to the items it belongs to, or combines it with what is there. */
int conset_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                    size_t words);

/* Exchanges `count` vectors at a time; their words for each item together are the plan's block. */
int conset_exchange_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                         void *const *vectors, const size_t *words, size_t count);

/* All copies of an item end as the sum of all of them, with the same bits; or as another
 * operation's result. The layout is one of shared ids. */
int conset_sum_shared(conset_cell *cell, const conset_plan *plan, int type, void *x, size_t words);
int conset_combine_shared(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                          size_t words);

/* The same for owners and ghosts, by the plans of both layouts: every ghost, and its owner, end as
 * the sum of all of them, with the same bits. */
int conset_combine_owned(conset_cell *cell, const conset_plan *backward, const conset_plan *forward,
                         int op, int type, void *x, size_t words);

/* The same by a message for each connection, to be compared: with the same results, to the bit. */
int conset_msg_exchange(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                        size_t words);
int conset_msg_sum_shared(conset_cell *cell, const conset_plan *plan, int type, void *x,
                          size_t words);
int conset_msg_combine_shared(conset_cell *cell, const conset_plan *plan, int op, int type, void *x,
                              size_t words);
int conset_msg_combine_owned(conset_cell *cell, const conset_plan *backward,
                             const conset_plan *forward, int op, int type, void *x, size_t words);

/* Exchanges a set between positions of x, without a layout. */
int conset_exchange_lists(conset_cell *cell, uint32_t set, const conset_lists *lists, int op,
                          int type, void *x, size_t words);

/* An exchange that was begun. Plain data. */
typedef struct conset_pending {
    uint64_t numbers[3];
} conset_pending;

/* Begins an exchange: what goes out is packed, x may be changed at once. Several may be under way;
 * all cells begin theirs in the same order. */
int conset_begin(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                 size_t words, conset_pending *pending);

/* Begins conset_exchange_many; conset_end_many ends it. */
int conset_begin_many(conset_cell *cell, const conset_plan *plan, int op, int type,
                      const void *const *vectors, const size_t *words, size_t count,
                      conset_pending *pending);

/* Begins conset_combine_shared (with CONSET_ADD, conset_sum_shared); conset_end ends it. It combines
 * what the others had at the begin with what x has at the end, so all copies end with the same bits
 * if no shared item changes in between; the others may. */
int conset_begin_shared(conset_cell *cell, const conset_plan *plan, int op, int type, const void *x,
                        size_t words, conset_pending *pending);

/* Whether it can be ended without waiting: `done` is 1, or 0 for not yet. It does not wait itself: do
 * something else and ask again, or call conset_end, which waits. Asking in a loop comes to an end. */
int conset_test(conset_cell *cell, const conset_pending *pending, int *done);

/* Ends it: waits for what comes in, and copies it to x, or combines it with what is there now. */
int conset_end(conset_cell *cell, const conset_plan *plan, const conset_pending *pending, int type,
               void *x, size_t words);
int conset_end_many(conset_cell *cell, const conset_plan *plan, const conset_pending *pending,
                    int type, void *const *vectors, const size_t *words, size_t count);

/* ---- Collectives, called by all cells in the same order, with arrays of the same length ---- */

/* Combines the arrays entry by entry, in an order that is always the same. */
int conset_allreduce(conset_cell *cell, const conset_trees *trees, int op, int type, void *x,
                     size_t words);

/* The same, for the cell at the root alone: the first live one. Other cells' arrays are used up. */
int conset_reduce(conset_cell *cell, const conset_trees *trees, int op, int type, void *x,
                  size_t words);

/* The greatest of all cells' values, and where it is: every cell gives its own number at `greatest`,
 * with a number of its choice at `at` (a row, for a pivot), and ends with the greatest one and what was
 * given with it; of equal ones with the smallest `at`. A NaN is greater than any number. */
int conset_allreduce_max_at(conset_cell *cell, const conset_trees *trees, int type, void *greatest,
                            uint64_t *at);

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
 * other in the order of their numbers, and of those in; the second by messages. The arrays do not
 * overlap. */
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

#define CONSET_HERE(cell) conset_set_place((cell), __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif

#endif
