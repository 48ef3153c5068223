/* What is wrong is an error with a text, never a crash and never a hang. */
#include "expect.h"
#include <conset.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4 };

static conset_image *image;
static conset_layout *layout;
static conset_plan *plan;
static conset_trees *trees;

static void arguments(void)
{
    conset_image *none = NULL;
    conset_layout *l = NULL;
    const size_t first[3] = {0, 2, 4}, falling[3] = {0, 3, 2}, late[3] = {1, 2, 4};
    const uint64_t ids[4] = {1, 2, 2, 3}, twice[4] = {1, 1, 2, 3};
    EXPECT(conset_image_parse(NULL, 5, &none), CONSET_NULL_POINTER, "bytes is null");
    EXPECT(conset_image_parse("no image", 8, &none), CONSET_INPUT, "not a conset file");
    EXPECT(conset_image_parse(NULL, 0, &none), CONSET_INPUT, "conset_image_parse: <memory>");
    EXPECT(conset_image_parse("conset set 1\nset s\n c0 -> c1 words 2\n", 37, &none), CONSET_INPUT,
           "compile it first");
    EXPECT(conset_image_read(NULL, &none), CONSET_NULL_POINTER, "path is null");
    EXPECT(conset_image_read("there is no such file", &none), CONSET_FILE, "no such file");
    EXPECT(conset_image_read("\xff\xfe", &none), CONSET_BAD_ARGUMENT, "not UTF-8");
    EXPECT(conset_image_write(image, "/there/is/no/such/folder"), CONSET_FILE, "/there");
    EXPECT(conset_image_digest(image, NULL), CONSET_NULL_POINTER, "digest is null");
    EXPECT(conset_image_digest((conset_image *)layout, (uint64_t *)first), CONSET_BAD_HANDLE,
           "image is no conset_image");
    EXPECT(conset_image_digest(NULL, NULL), CONSET_NULL_POINTER, "image is null");
    uint32_t number;
    EXPECT(conset_image_set(image, "nowhere", &number), CONSET_BAD_ARGUMENT, "no set `nowhere`");
    EXPECT(conset_image_phases(image, 99, &number), CONSET_BAD_ARGUMENT, "set 99");
    conset_connection connection;
    EXPECT(conset_image_connection(image, 0, 99, &connection), CONSET_BAD_ARGUMENT, "connection 99");
    size_t count;
    EXPECT(conset_image_operations(image, 0, 99, 0, NULL, 0, &count), CONSET_BAD_ARGUMENT, "phase 99");
    EXPECT(conset_image_operations(image, 0, 0, 99, NULL, 0, &count), CONSET_BAD_ARGUMENT, "cell 99");
    if (conset_image_cells(NULL) != 0 || conset_image_cells(image) != CELLS)
        failures++;

    EXPECT(conset_layout_from_shared_ids(2, first, NULL, &l), CONSET_NULL_POINTER, "ids is null");
    EXPECT(conset_layout_from_shared_ids(2, NULL, ids, &l), CONSET_NULL_POINTER, "first is null");
    EXPECT(conset_layout_from_shared_ids(2, first, ids, NULL), CONSET_NULL_POINTER, "handle is null");
    EXPECT(conset_layout_from_shared_ids(2, falling, ids, &l), CONSET_BAD_ARGUMENT,
           "first[2] is 2, expected at least 3");
    EXPECT(conset_layout_from_shared_ids(2, late, ids, &l), CONSET_BAD_ARGUMENT, "first[0] is 1");
    EXPECT(conset_layout_from_shared_ids((size_t)-1, first, ids, &l), CONSET_BAD_ARGUMENT, "at most");
    EXPECT(conset_layout_from_shared_ids(2, first, twice, &l), CONSET_LAYOUT, "lists id 1 twice");
    EXPECT(conset_layout_from_shared_ids(2, (const size_t *)((const char *)first + 1), ids, &l),
           CONSET_BAD_ARGUMENT, "aligned to 8");
    const size_t owned[2] = {2, 2};
    EXPECT(conset_layout_from_owned(2, first, ids, owned, &l, NULL), CONSET_LAYOUT, "is owned by");
    const uint32_t place[4] = {0, 0, 1, 2};
    EXPECT(conset_layout_placed(layout, 4, place, 4, &l), CONSET_LAYOUT, "both placed on c0");
    EXPECT(conset_layout_from_image(image, "reduce", 1, 2, first, ids, &l), CONSET_LAYOUT,
           "carries no lists");

    const int32_t ptr[3] = {0, 1, 2}, minus[3] = {0, 1, -2}, idx[2] = {0, 7};
    const uint32_t owner[2] = {0, 1}, nobody[2] = {0, 9};
    conset_matrix *m = NULL;
    EXPECT(conset_matrix_new(2, CONSET_INT32, ptr, idx, owner, 2, &m), CONSET_LAYOUT, "column 7");
    EXPECT(conset_matrix_new(2, CONSET_INT32, minus, idx, owner, 2, &m), CONSET_BAD_ARGUMENT,
           "ptr[2] is -2");
    EXPECT(conset_matrix_new(2, CONSET_INT32, ptr, idx, nobody, 2, &m), CONSET_LAYOUT, "cell 9");
    EXPECT(conset_matrix_new(2, CONSET_DOUBLE, ptr, idx, owner, 2, &m), CONSET_BAD_ARGUMENT,
           "no type of integers");
    EXPECT(conset_matrix_new(2, CONSET_INT32, NULL, idx, owner, 2, &m), CONSET_NULL_POINTER, "ptr");

    conset_set set = {"s", layout, 1}, two[2] = {{"s", layout, 1}, {"s", layout, 1}};
    EXPECT(conset_compile("torus:4y4", &set, 1, NULL, &none), CONSET_INPUT, "is not a size");
    EXPECT(conset_compile("ring:4 speed", &set, 1, NULL, &none), CONSET_INPUT, "NAME=VALUE");
    EXPECT(conset_compile("none.toml", &set, 1, NULL, &none), CONSET_FILE, "none.toml");
    EXPECT(conset_compile("ring:2", &set, 1, NULL, &none), CONSET_INPUT, "cannot be an end");
    EXPECT(conset_compile("ring:2", &set, 1, NULL, &none), CONSET_INPUT, "choose a machine");
    EXPECT(conset_compile("cray", &set, 1, NULL, &none), CONSET_INPUT, "presets: iwarp");
    EXPECT(conset_compile("ring:4", NULL, 1, NULL, &none), CONSET_NULL_POINTER, "sets is null");
    EXPECT(conset_compile("ring:4", two, 2, NULL, &none), CONSET_INPUT, "s");
    set.block = 0;
    EXPECT(conset_compile("ring:4", &set, 1, NULL, &none), CONSET_BAD_ARGUMENT, "0 words");
    set.block = (size_t)1 << 62;
    EXPECT(conset_compile("ring:4", &set, 1, NULL, &none), CONSET_BAD_ARGUMENT, "at most");
    set.layout = NULL;
    EXPECT(conset_compile("ring:4", &set, 1, NULL, &none), CONSET_NULL_POINTER, "sets[0].layout");
    conset_compile_options how = {0};
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "options.size is 0");
    conset_compile_options_init(&how);
    how.algorithm = 7;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "no algorithm");
    conset_compile_options_init(&how);
    how.max_phases = 1;
    EXPECT(conset_compile("ring:4 channels_per_cell=1", two, 1, &how, &none), CONSET_INFEASIBLE,
           "(max_phases of the options)");
    EXPECT(conset_compile("ring:4 channels_per_cell=1", two, 1, &how, &none), CONSET_INFEASIBLE,
           "channels_per_cell=");
    conset_compile_options_init(&how);
    how.objective = 2;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "enum conset_objective");
    conset_compile_options_init(&how);
    how.placement = -1;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "enum conset_placement");
    conset_compile_options_init(&how);
    conset_tree tree = {NULL, 1, CONSET_TREE_ALLREDUCE};
    how.tree_count = 1;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_NULL_POINTER, "options.trees");
    how.trees = &tree;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_INPUT, "`allreduce`");
    tree.prefix = "a b";
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "options.trees[0]");
    tree.prefix = "wide-";
    tree.sets = 8;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "sum of 1, 2 and 4");
    tree.sets = 1;
    tree.words = 0;
    EXPECT(conset_compile("ring:4", two, 1, &how, &none), CONSET_BAD_ARGUMENT, "options.trees[0]");

    uint32_t places[CELLS];
    EXPECT(conset_assemble("ring:4", CELLS, two, 1, NULL, NULL, &none), CONSET_NULL_POINTER, "place");
    EXPECT(conset_assemble("ring:4", 3, two, 1, NULL, places, &none), CONSET_BAD_ARGUMENT, "4 parts");
    EXPECT(conset_assemble("ring:3", CELLS, two, 1, NULL, places, &none), CONSET_INFEASIBLE,
           "make at most 3 parts");

    uint32_t copies[2];
    conset_list list;
    EXPECT(conset_plan_multiplicity(plan, 0, copies, 1), CONSET_BAD_ARGUMENT, "expected 2 items");
    EXPECT(conset_plan_multiplicity(plan, 4, copies, 2), CONSET_BAD_ARGUMENT, "cell 4");
    EXPECT(conset_layout_list(layout, 99, &list), CONSET_BAD_ARGUMENT, "connection 99");
    conset_lists *lists = NULL;
    const conset_rows rows = {2, first, copies}, wrong = {2, falling, copies}, many = {(size_t)-1, first, copies};
    EXPECT(conset_lists_new(&rows, &rows, 0, &lists), CONSET_BAD_ARGUMENT, "block is 0");
    EXPECT(conset_lists_new(&rows, &wrong, 1, &lists), CONSET_BAD_ARGUMENT, "receive.first[2]");
    EXPECT(conset_lists_new(&many, &rows, 1, &lists), CONSET_BAD_ARGUMENT, "too many lists");
    const double global[2] = {1, 2};
    double own[2];
    const int32_t diagonal[2] = {0, 1};
    EXPECT(conset_matrix_new(2, CONSET_INT32, ptr, diagonal, owner, 2, &m), CONSET_OK, "");
    EXPECT(conset_matrix_values(m, 9, CONSET_INT32, ptr, CONSET_DOUBLE, global, own, 1),
           CONSET_BAD_ARGUMENT, "cell 9");
    EXPECT(conset_matrix_values(m, 0, CONSET_INT32, ptr, CONSET_DOUBLE, global, own, 2),
           CONSET_BAD_ARGUMENT, "expected 1");
    EXPECT(conset_matrix_gather(m, 0, CONSET_DOUBLE, own, own, 1), CONSET_BAD_ARGUMENT, "overlap");
    EXPECT(conset_matrix_gather(m, 0, 9, global, own, 1), CONSET_BAD_ARGUMENT, "9 is no type");
    conset_matrix_free(m);
    EXPECT(conset_matrix_gather(m, 0, CONSET_DOUBLE, global, own, 1), CONSET_BAD_HANDLE, "was freed");
    conset_matrix_free(m);
    m = NULL;

    conset_plan *p = NULL;
    EXPECT(conset_plan_new(image, "nowhere", layout, 1, &p), CONSET_PLAN, "nowhere");
    EXPECT(conset_plan_new(image, "halo", layout, 2, &p), CONSET_PLAN, "compile the set");
    conset_image *treeless;
    EXPECT(conset_compile_options_init(&how), CONSET_OK, "");
    how.tree_words = 0;
    EXPECT(conset_compile("ring:4", two, 1, &how, &treeless), CONSET_OK, "");
    conset_trees *t = NULL;
    EXPECT(conset_trees_new(treeless, &t), CONSET_PLAN, "no set");
    EXPECT(conset_trees_prefixed(image, "wide-", &t), CONSET_PLAN, "no set");
    EXPECT(conset_trees_named(image, "halo", "none", "none", &t), CONSET_PLAN, "tree_words");
    conset_image_free(treeless);
    EXPECT(conset_trees_new(treeless, &t), CONSET_BAD_HANDLE, "image was freed");
    conset_image_free(treeless);
    if (none || l || m || p || t || lists)
        failures++, fprintf(stderr, "something was handed out by a call that failed\n");
    conset_image_free(NULL);
    conset_layout_free(NULL);
    conset_matrix_free(NULL);
    conset_plan_free(NULL);
    conset_trees_free(NULL);
    conset_communicator_free(NULL);
}

/* Programs; `data` says which cell is the odd one. */

static int fine(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    (void)data;
    return conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
}

static int is_odd(conset_cell *cell, void *data)
{
    return conset_id(cell) == *(const uint32_t *)data;
}

/* Skips an exchange in the middle, or says nothing of where it is. */
static int skips(conset_cell *cell, void *data)
{
    for (uint64_t round = 1; round <= 3; round++) {
        double x[2] = {1, 2};
        conset_set_round(cell, round);
        const int status = is_odd(cell, data) && round == 2 ? 0 : conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
        if (status)
            return status;
    }
    return 0;
}

static int elsewhere_in_the_program(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    if (is_odd(cell, data))
        CONSET_HERE(cell);
    else
        conset_set_place(cell, "other.c", 7);
    return conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
}

static int fails(conset_cell *cell, void *data)
{
    return is_odd(cell, data) ? 7 : fine(cell, data);
}

static int leaves(conset_cell *cell, void *data)
{
    return is_odd(cell, data) ? 0 : fine(cell, data);
}

static int gives_up(conset_cell *cell, void *data)
{
    return is_odd(cell, data) ? conset_give_up(cell, "it diverges") : fine(cell, data);
}

static int short_vector(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    return conset_exchange(cell, plan, CONSET_ADD, CONSET_DOUBLE, x, is_odd(cell, data) ? 1 : 2);
}

static int null_vector(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    void *vector = is_odd(cell, data) ? NULL : x;
    const int status = conset_exchange(cell, plan, CONSET_ADD, CONSET_DOUBLE, vector, 2);
    return vector || status == CONSET_NULL_POINTER ? 0 : 1;
}

static int no_op(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    return conset_exchange(cell, plan, is_odd(cell, data) ? 9 : CONSET_ADD, CONSET_DOUBLE, x, 2);
}

static int overlap(conset_cell *cell, void *data)
{
    double x[3] = {1, 2, 3};
    void *vectors[2] = {x, x + 1};
    const size_t words[2] = {2, 2};
    (void)data;
    return conset_exchange_many(cell, plan, CONSET_ADD, CONSET_DOUBLE, vectors, words, 2);
}

static int forgets(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    conset_pending pending;
    (void)data;
    return conset_begin(cell, plan, CONSET_ADD, CONSET_DOUBLE, x, 2, &pending);
}

static int made_up(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    const conset_pending pending = {{0, 1, 2}};
    (void)data;
    return conset_end(cell, plan, &pending, CONSET_DOUBLE, x, 2);
}

static int no_phase(conset_cell *cell, void *data)
{
    (void)data;
    return conset_instantiate_phase(cell, 77, 0);
}

static int no_root(conset_cell *cell, void *data)
{
    double x = 1;
    (void)data;
    return conset_broadcast(cell, trees, 99, CONSET_DOUBLE, &x, 1);
}

static int wrong_plan(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    (void)data;
    return conset_sum_shared(cell, (const conset_plan *)trees, CONSET_DOUBLE, x, 2);
}

/* Goes on after the end of the run. */
static int deaf(conset_cell *cell, void *data)
{
    if (is_odd(cell, data))
        return 3;
    int told = 0;
    for (int i = 0; i < 1000; i++) {
        double x[2] = {1, 2};
        told += conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2) == CONSET_ABORTED;
    }
    return told == 1000 ? 0 : 99;
}

static int ended;

/* Cell 0 makes no call until the others have been told of the end. */
static int slow(conset_cell *cell, void *data)
{
    (void)data;
    if (conset_id(cell) == 0) {
        while (!__atomic_load_n(&ended, __ATOMIC_RELAXED))
            sched_yield();
        return conset_compute(cell, 1);
    }
    while (conset_compute(cell, 1) == CONSET_OK)
        ;
    __atomic_store_n(&ended, 1, __ATOMIC_RELAXED);
    return 1;
}

static conset_cell *kept;

/* Uses the cell of another callback, which waits in a call. */
static int stolen(conset_cell *cell, void *data)
{
    if (conset_id(cell) == 0) {
        kept = cell;
        return fine(cell, data);
    }
    if (conset_id(cell) == 1)
        EXPECT(conset_barrier(kept, trees), CONSET_BAD_HANDLE, "not the callback's own");
    return fine(cell, data);
}

static void *elsewhere(void *cell)
{
    EXPECT(conset_barrier(cell, trees), CONSET_BAD_HANDLE, "no callback has this cell");
    return NULL;
}

static int handed_on(conset_cell *cell, void *data)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, elsewhere, cell) == 0)
        pthread_join(thread, NULL);
    return fine(cell, data);
}

/* A run inside of a run may not use the outer one's cells, and ends before it goes on. */
static int inner(conset_cell *cell, void *outer)
{
    double x[2] = {1, 2};
    EXPECT(conset_barrier(outer, trees), CONSET_BAD_HANDLE, "not the callback's own");
    return conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
}

static int nested(conset_cell *cell, void *data)
{
    if (is_odd(cell, data))
        EXPECT(conset_run(image, NULL, inner, cell, NULL), CONSET_OK, "");
    return fine(cell, data);
}

/* Compiles in a callback. */
static int compiles(conset_cell *cell, void *data)
{
    const conset_set set = {"halo", layout, 1};
    conset_image *other = NULL;
    if (is_odd(cell, data)) {
        EXPECT(conset_compile("ring:4", &set, 1, NULL, &other), CONSET_OK, "");
        conset_image_free(other);
    }
    return fine(cell, data);
}

static int other_type(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    conset_pending pending;
    (void)data;
    int status = conset_begin(cell, plan, CONSET_ADD, CONSET_DOUBLE, x, 2, &pending);
    return status ? status : conset_end(cell, plan, &pending, CONSET_INT64, x, 2);
}

static int other_image(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    return conset_sum_shared(cell, data, CONSET_DOUBLE, x, 2);
}

static int in_a_phase(conset_cell *cell, void *data)
{
    double x = 1;
    (void)data;
    const int status = conset_instantiate_phase(cell, 0, 0);
    return status ? status : conset_msg_send(cell, 0, CONSET_DOUBLE, &x, 1);
}

static int same_buffers(conset_cell *cell, void *data)
{
    double x[2] = {1, 2};
    (void)data;
    return conset_exchange_words(cell, 0, CONSET_DOUBLE, x, 2, x, 2);
}

static int forever(conset_cell *cell, void *data)
{
    (void)data;
    return conset_compute(cell, UINT64_MAX);
}

static int keeps(conset_cell *cell, void *data)
{
    if (is_odd(cell, data))
        kept = cell;
    return fine(cell, data);
}

static void programs(int transport)
{
    conset_options options;
    uint32_t odd = 2;
    conset_options_init(&options);
    options.transport = transport;
    options.workers = 2;
#define RUN(program, status, says) EXPECT(conset_run(image, &options, program, &odd, NULL), status, says)
    RUN(skips, CONSET_MISMATCH, "c2 is in its ");
    RUN(skips, CONSET_MISMATCH, "in round 3");
    RUN(elsewhere_in_the_program, CONSET_MISMATCH, " at other.c:7");
    RUN(elsewhere_in_the_program, CONSET_MISMATCH, "misuse.c:");
    RUN(fine, CONSET_OK, "");
    RUN(NULL, CONSET_NULL_POINTER, "program is null");
    RUN(fails, CONSET_PROGRAM, "c2: its program returned 7");
    RUN(leaves, CONSET_MISMATCH, "c2 has ended");
    RUN(gives_up, CONSET_PROGRAM, "c2: it diverges");
    RUN(short_vector, CONSET_CELL, "c2: vector 0 has 1 words");
    RUN(null_vector, CONSET_PROGRAM, "c2: conset_exchange: x is null");
    RUN(no_op, CONSET_PROGRAM, "c2: conset_exchange: 9 is no operation");
    RUN(overlap, CONSET_PROGRAM, "two vectors overlap");
    RUN(forgets, CONSET_CELL, "not completed");
    RUN(made_up, CONSET_CELL, "started by");
    RUN(no_phase, CONSET_CELL, "no phase");
    RUN(no_root, CONSET_CELL, "c99");
    RUN(wrong_plan, CONSET_PROGRAM, "plan is no conset_plan");
    RUN(deaf, CONSET_PROGRAM, "c2: its program returned 3");
    if (transport == CONSET_FABRIC) {
        RUN(stolen, CONSET_OK, "");
    } else {
        options.time_out_ms = 50;
        RUN(slow, CONSET_TIME_OUT, "in its own code for more than 50ms");
        options.time_out_ms = 0;
    }
    RUN(handed_on, CONSET_OK, "");
    RUN(nested, CONSET_OK, "");
    RUN(compiles, CONSET_OK, "");
    RUN(other_type, CONSET_CELL, "started with CONSET_DOUBLE and is completed with CONSET_INT64");
    RUN(in_a_phase, CONSET_CELL, "conset_instantiate_messages first");
    RUN(same_buffers, CONSET_PROGRAM, "outgoing and incoming overlap");
    conset_image *other;
    conset_plan *of_other;
    const conset_set set = {"halo", layout, 1};
    EXPECT(conset_compile("ring:4", &set, 1, NULL, &other), CONSET_OK, "");
    EXPECT(conset_plan_new(other, "halo", layout, 1, &of_other), CONSET_OK, "");
    EXPECT(conset_run(image, &options, other_image, of_other, NULL), CONSET_CELL, "another image");
    conset_plan_free(of_other);
    conset_image_free(other);
    RUN(forever, CONSET_OK, "");
    RUN(keeps, CONSET_OK, "");
    EXPECT(conset_barrier(kept, trees), CONSET_BAD_HANDLE, "no callback has this cell");
    if (conset_id(kept) != UINT32_MAX)
        failures++;
    RUN(fine, CONSET_OK, "");
}

/* What a run, an image file and the library say of themselves. */
static void versions(void)
{
    char version[64];
    snprintf(version, sizeof version, "%d.%d.%d", CONSET_VERSION_MAJOR, CONSET_VERSION_MINOR,
             CONSET_VERSION_PATCH);
    if (strcmp(version, conset_version()) != 0)
        failures++, fprintf(stderr, "library %s, header %s\n", conset_version(), version);
    conset_image *again;
    uint64_t one = 1, other = 2;
    EXPECT(conset_image_write(image, "misuse.csi"), CONSET_OK, "");
    EXPECT(conset_image_read("misuse.csi", &again), CONSET_OK, "");
    EXPECT(conset_image_digest(image, &one), CONSET_OK, "");
    EXPECT(conset_image_digest(again, &other), CONSET_OK, "");
    if (one != other)
        failures++, fprintf(stderr, "another image was read than was written\n");
    conset_image_free(again);
    remove("misuse.csi");
}

/* Everything that a cell may have nothing of. */
static int nothing(conset_cell *cell, void *data)
{
    const conset_plan *empty = data;
    conset_pending pending;
    const uint32_t *connections;
    size_t count = 1;
    double number = 3;
    uint64_t at = 7;
    int status = conset_sum_shared(cell, empty, CONSET_DOUBLE, NULL, 0);
    status = status ? status : conset_msg_sum_shared(cell, empty, CONSET_DOUBLE, NULL, 0);
    status = status ? status : conset_exchange_words(cell, 0, CONSET_DOUBLE, NULL, 0, NULL, 0);
    status = status ? status : conset_begin(cell, empty, CONSET_ADD, CONSET_DOUBLE, NULL, 0, &pending);
    status = status ? status : conset_end(cell, empty, &pending, CONSET_DOUBLE, NULL, 0);
    status = status ? status : conset_connections_in(cell, 0, &connections, &count);
    return status ? status : count == 0 && number == 3 && at == 7 ? CONSET_OK : 99;
}

static int alone(conset_cell *cell, void *data)
{
    double number = 3;
    uint64_t at = 7;
    int status = conset_allreduce(cell, data, CONSET_ADD, CONSET_DOUBLE, &number, 1);
    status = status ? status : conset_allreduce(cell, data, CONSET_ADD, CONSET_DOUBLE, NULL, 0);
    status = status ? status : conset_allreduce_max_at(cell, data, CONSET_DOUBLE, &number, &at);
    status = status ? status : conset_barrier(cell, data);
    return status ? status : number == 3 && at == 7 ? CONSET_OK : 99;
}

/* Machines of one cell, layouts of no entries, images of no sets. */
static void least(int transport)
{
    const size_t first[CELLS + 1] = {0};
    conset_layout *none, *no_cells;
    conset_image *empty = NULL;
    conset_plan *p;
    conset_trees *t;
    conset_options options;
    conset_options_init(&options);
    options.transport = transport;
    EXPECT(conset_layout_from_shared_ids(0, first, NULL, &no_cells), CONSET_OK, "");
    EXPECT(conset_layout_from_shared_ids(1, first, NULL, &none), CONSET_OK, "");
    const conset_set set = {"none", none, 1};
    const char *machines[] = {"torus:1x1", "ring:4", "ring:1"};
    for (int i = 0; i < 3; i++) {
        EXPECT(conset_compile(machines[i], &set, 1, NULL, &empty), CONSET_OK, "");
        EXPECT(conset_plan_new(empty, "none", none, 1, &p), CONSET_OK, "");
        EXPECT(conset_run(empty, &options, nothing, p, NULL), CONSET_OK, "");
        EXPECT(conset_trees_new(empty, &t), CONSET_OK, "");
        EXPECT(conset_run(empty, &options, alone, t, NULL), i == 1 ? CONSET_PROGRAM : CONSET_OK, "");
        conset_trees_free(t);
        conset_plan_free(p);
        conset_image_free(empty);
    }
    conset_compile_options how;
    conset_compile_options_init(&how);
    how.tree_words = 0;
    EXPECT(conset_compile("ring:4", NULL, 0, &how, &empty), CONSET_OK, "");
    conset_image_free(empty);
    EXPECT(conset_assemble("ring:4", 0, NULL, 0, NULL, NULL, &empty), CONSET_OK, "");
    conset_image_free(empty);
    conset_layout_free(none);
    conset_layout_free(no_cells);
}

/* The same image, plan and trees in two runs at a time. */
static int often(conset_cell *cell, void *data)
{
    for (int round = 0; round < 50; round++) {
        double x[2] = {conset_id(cell), conset_id(cell)}, sum = conset_id(cell);
        int status = conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
        status = status ? status : conset_allreduce(cell, trees, CONSET_ADD, CONSET_DOUBLE, &sum, 1);
        if (status || sum != 6 || x[1] != conset_id(cell) + (conset_id(cell) + 1) % CELLS)
            return status ? status : 99;
    }
    (void)data;
    return CONSET_OK;
}

static void *run_often(void *transport)
{
    conset_options options;
    conset_options_init(&options);
    options.transport = *(const int *)transport;
    options.workers = 2;
    for (int round = 0; round < 20; round++)
        EXPECT(conset_run(image, &options, often, NULL, NULL), CONSET_OK, "");
    return NULL;
}

static void at_a_time(void)
{
    const int transports[4] = {CONSET_FABRIC, CONSET_THREADS, CONSET_THREADS, CONSET_FABRIC};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, run_often, (void *)&transports[i]))
            exit(1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

/* Options of compiling that are wrong, or have no effect beside others. */
static void compile_options(void)
{
    const conset_set set = {"halo", layout, 1};
    conset_compile_options o;
    conset_image *none = NULL;
#define COMPILE(field, number, says)                                                         \
    do {                                                                                     \
        conset_compile_options_init(&o);                                                     \
        o.by = CONSET_COMPILE_STEPS;                                                         \
        o.field = number;                                                                    \
        EXPECT(conset_compile("ring:4", &set, 1, &o, &none), CONSET_BAD_ARGUMENT, says);     \
    } while (0)
    COMPILE(by, 3, "3 is no compile_by");
    COMPILE(by, -1, "-1 is no compile_by");
    COMPILE(algorithm, CONSET_PAPER, "options.algorithm has no effect with CONSET_COMPILE_STEPS");
    COMPILE(objective, CONSET_PHASES, "options.objective has no effect");
    COMPILE(max_phases, 3, "options.max_phases has no effect");
    COMPILE(reroutes, 3, "options.reroutes has no effect");
    COMPILE(planner, "fastest", "options.planner: unknown `fastest`");
    COMPILE(planner, "\xff", "options.planner is not UTF-8");
    COMPILE(planner, "levels:0x4", "options.planner");
#undef COMPILE
    conset_compile_options_init(&o);
    o.planner = "loaded";
    EXPECT(conset_compile("ring:4", &set, 1, &o, &none), CONSET_BAD_ARGUMENT,
           "options.planner has no effect with CONSET_COMPILE_PHASES");
    o.by = CONSET_COMPILE_BEST;
    EXPECT(conset_compile("ring:4", &set, 1, &o, &none), CONSET_BAD_ARGUMENT,
           "options.planner has no effect with CONSET_COMPILE_BEST");
    o.by = CONSET_COMPILE_STEPS;
    o.planner = "levels:3";
    EXPECT(conset_compile("ring:4", &set, 1, &o, &none), CONSET_INPUT, "`planner`");
}

static void options(void)
{
    conset_options o;
    uint32_t odd = 0;
    EXPECT(conset_options_init(NULL), CONSET_NULL_POINTER, "options is null");
    conset_options_init(&o);
    o.transport = 9;
    EXPECT(conset_run(image, &o, fine, &odd, NULL), CONSET_BAD_ARGUMENT, "9 is no transport");
    o.transport = CONSET_OVER_MPI;
    const int status = conset_run(image, &o, fine, &odd, NULL);
    if (status != CONSET_UNSUPPORTED && status != CONSET_NULL_POINTER)
        EXPECT(status, CONSET_UNSUPPORTED, "without MPI");
    conset_options_init(&o);
    o.stack_bytes = 5;
    EXPECT(conset_run(image, &o, fine, &odd, NULL), CONSET_BAD_ARGUMENT, "stack_bytes is 5");
    for (int transport = CONSET_FABRIC; transport <= CONSET_THREADS; transport++) {
        o.transport = transport;
        o.stack_bytes = 1 << 14;
        EXPECT(conset_run(image, &o, often, NULL, NULL), CONSET_OK, "");
        o.stack_bytes = (size_t)1 << 40;
        const int large = conset_run(image, &o, often, NULL, NULL);
        if (large != CONSET_OK)
            EXPECT(large, CONSET_MEMORY, "stack_bytes");
    }
    o.size = 1000;
    EXPECT(conset_run(image, &o, fine, &odd, NULL), CONSET_BAD_ARGUMENT, "options.size is 1000");
    EXPECT(conset_run(NULL, NULL, fine, &odd, NULL), CONSET_NULL_POINTER, "image is null");
    EXPECT(conset_run(image, NULL, fine, &odd, NULL), CONSET_OK, "");
    EXPECT(conset_barrier(NULL, trees), CONSET_NULL_POINTER, "cell is null");
    if (conset_id(NULL) != UINT32_MAX || conset_cells(NULL) != 0 || conset_clock(NULL) != 0)
        failures++;
    if (strcmp(conset_status_text(-1), "no status") != 0 || *conset_status_text(CONSET_BUG) == 0)
        failures++;
}

int main(void)
{
    const size_t first[CELLS + 1] = {0, 2, 4, 6, 8};
    const uint64_t ids[2 * CELLS] = {0, 1, 1, 2, 2, 3, 3, 0};
    EXPECT(conset_layout_from_shared_ids(CELLS, first, ids, &layout), CONSET_OK, "");
    const conset_set set = {"halo", layout, 1};
    EXPECT(conset_compile("ring:4", &set, 1, NULL, &image), CONSET_OK, "");
    EXPECT(conset_plan_new(image, "halo", layout, 1, &plan), CONSET_OK, "");
    EXPECT(conset_trees_new(image, &trees), CONSET_OK, "");
    versions();
    arguments();
    compile_options();
    options();
    least(CONSET_FABRIC);
    least(CONSET_THREADS);
    at_a_time();
    programs(CONSET_FABRIC);
    programs(CONSET_THREADS);
    conset_trees_free(trees);
    conset_plan_free(plan);
    conset_layout_free(layout);
    conset_image_free(image);
    printf("%d failures\n", failures);
    return failures != 0;
}
