/* What the calls that `hostile.rs` makes up are given where they are given what is right, and how
 * they are made: one after the other, outside of runs or by one of the cells of a run. A call may
 * fail; it may not crash, hang, or find a bug. */
#include <conset.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4, ODD = 1, ROOM = 1 << 16 };

static conset_image *image, *freed;
static conset_layout *layout;
static conset_matrix *matrix;
static conset_plan *plan;
static conset_trees *trees;
static conset_lists *lists;
static conset_arrivals *arrivals;
static conset_cell *other;
static conset_epoch *epoch, *closed, *others_epoch;

static double buffer[ROOM], more[ROOM];
static size_t sizes[64];
static uint32_t numbers[64];
static uint64_t longs[64];
static int ints[64];
static const uint32_t *connections;
static const size_t first[CELLS + 1] = {0, 2, 4, 6, 8}, two[CELLS] = {2, 2, 2, 2}, one[CELLS] = {1, 1, 1, 1};
static const uint64_t ids[2 * CELLS] = {0, 1, 1, 2, 2, 3, 3, 0};
static const uint32_t place[2 * CELLS] = {0, 1, 2, 3, 0, 1, 0, 1};
static const int32_t ptr[3] = {0, 2, 4}, idx[4] = {0, 1, 0, 1};
static void *vectors[2] = {buffer, more};
static const void *const_vectors[2] = {buffer, more};
static conset_set sets[2];
static unsigned char bytes[ROOM];
static size_t bytes_size;
static const conset_rows rows = {2, first, place};
static conset_compile_options compile_options, odd_compile_options;
static conset_options options, odd_options;
static conset_report report;
static conset_connection connection;
static conset_operation operations[64];
static conset_list list;
static conset_local_csr local;
static conset_pending pending;
static conset_arrival arrival;
static conset_settled settled;
static conset_connection records[64];
static const conset_connection ring[CELLS] = {{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {3, 0, 2}};
static const conset_connection_set connection_set = {"ring", ring, CELLS};

/* Handles that a call gave. */
static conset_image *new_image;
static conset_layout *new_layout, *new_backward;
static conset_matrix *new_matrix;
static conset_plan *new_plan;
static conset_halo *new_halo;
static conset_field field;
static conset_trees *new_trees;
static conset_lists *new_lists;
static conset_communicator *new_communicator;
static conset_epoch *new_epoch;
static conset_arrivals *new_arrivals;

static int program(conset_cell *cell, void *data)
{
    (void)data;
    return conset_id(cell) == UINT32_MAX;
}

static int handler(conset_epoch *of, uint32_t source, const void *item, void *data)
{
    (void)of, (void)source, (void)item, (void)data;
    return 0;
}

static void combine(void *lower, const void *upper, size_t count, void *data)
{
    (void)lower, (void)upper, (void)count, (void)data;
}

/* The calls. */
static int call(int row, conset_cell *cell);
static const char *const names[];
static const int calls, calls_of_cells;

static int failures;

static void judge(int row, const char *how, int status)
{
    const char *text = status == CONSET_OK ? "" : conset_error();
    if (status == CONSET_UNSUPPORTED) /* a library without MPI says how to get one */
        return;
    if (status < 0 || status >= CONSET_BUG || (status != CONSET_OK && *text == 0) ||
        strstr(text, "--") || strstr(text, "::"))
        failures++, fprintf(stderr, "%s: %s: %d, `%s`\n", names[row], how, status, text);
}

static void forget(void)
{
    conset_image_free(new_image);
    conset_layout_free(new_layout);
    conset_layout_free(new_backward);
    conset_matrix_free(new_matrix);
    conset_plan_free(new_plan);
    conset_trees_free(new_trees);
    conset_lists_free(new_lists);
    conset_communicator_free(new_communicator);
    conset_arrivals_free(new_arrivals);
    new_image = NULL, new_layout = new_backward = NULL, new_matrix = NULL, new_plan = NULL, new_trees = NULL;
    new_lists = NULL, new_communicator = NULL, new_arrivals = NULL;
}

/* One cell makes the call, the others exchange. */
static int run_one(conset_cell *cell, void *data)
{
    const int row = *(const int *)data;
    double x[2] = {1, 2};
    if (conset_id(cell) == 0) {
        other = cell;
        if (conset_epoch_open(cell, 8, &others_epoch) != CONSET_OK)
            return 1;
    }
    if (conset_id(cell) != ODD)
        return conset_sum_shared(cell, plan, CONSET_DOUBLE, x, 2);
    if (conset_epoch_open(cell, 8, &closed) != CONSET_OK || conset_epoch_close(closed) != CONSET_OK ||
        conset_epoch_open(cell, 8, &epoch) != CONSET_OK)
        return 1;
    judge(row, "call", call(row, cell));
    return 0;
}

static int brings(conset_cell *cell, void *data)
{
    (void)data;
    const size_t from[2] = {0, 2};
    conset_arrivals *found = NULL;
    const int status = conset_exchange_any(cell, CONSET_DOUBLE, 1, place + 1, from, buffer, &found);
    if (conset_id(cell) == 1)
        arrivals = found;
    else
        conset_arrivals_free(found);
    return status;
}

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        exit(1);
    }
}

int main(void)
{
    check(conset_layout_from_shared_ids(CELLS, first, ids, &layout));
    check(conset_compile_options_init(&compile_options));
    check(conset_options_init(&options));
    odd_compile_options = compile_options, odd_options = options;
    odd_compile_options.size = odd_options.size = 1000000;
    sets[0].name = "halo", sets[1].name = "more";
    sets[0].layout = sets[1].layout = layout, sets[0].block = sets[1].block = 1;
    check(conset_compile("ring:4", sets, 2, NULL, &image));
    check(conset_image_write(image, "hostile.csi"));
    check(conset_compile("ring:4", sets, 2, NULL, &freed));
    conset_image_free(freed);
    check(conset_matrix_new(2, CONSET_INT32, ptr, idx, place, CELLS, &matrix));
    check(conset_image_bytes(image, bytes, sizeof bytes, &bytes_size));
    check(conset_plan_new(image, "halo", layout, 1, &plan));
    check(conset_trees_new(image, &trees));
    check(conset_lists_new(&rows, &rows, 1, &lists));
    check(conset_run(image, NULL, brings, NULL, NULL));
    for (int row = 0; row < calls; row++) {
        const int status = call(row, NULL);
        judge(row, "call", status);
        if (status != CONSET_OK && strstr(names[row], "all right"))
            failures++, fprintf(stderr, "%s: %s\n", names[row], conset_error());
        forget();
    }
    for (int row = calls; row < calls + calls_of_cells; row++) {
        judge(row, "outside", call(row, (conset_cell *)16));
        for (int transport = CONSET_FABRIC; transport <= CONSET_THREADS; transport++) {
            options.transport = transport;
            options.workers = 2;
            judge(row, "run", conset_run(image, &options, run_one, &row, NULL));
        }
    }
    conset_arrivals_free(arrivals);
    conset_lists_free(lists);
    conset_trees_free(trees);
    conset_plan_free(plan);
    conset_matrix_free(matrix);
    conset_layout_free(layout);
    conset_image_free(image);
    printf("%d calls, %d failures\n", calls + calls_of_cells, failures);
    return failures != 0;
}
