/* The same function on the emulated machine and over MPI, on the caller's communicator.
 *
 *     mpirun -n 4 mpi [fail]
 *
 * Eight cells in a ring share entries with their neighbours; each rank runs some of them. Rank 0
 * compiles for all. With `fail` one cell aborts the run, which fails on all ranks. */
#include <conset.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { CELLS = 8, ROUNDS = 10 };

typedef struct {
    const conset_plan *plan;
    const conset_trees *trees;
    int fail;
    double norm[CELLS]; /* of the cells that this process has run */
} work;

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static int smooth(conset_cell *cell, void *data)
{
    work *w = data;
    const uint32_t id = conset_id(cell);
    double x[2] = {id + 1, 1.0 / (id + 1)}, norm = 0;
    if (w->fail && id == 3)
        return 7;
    for (int round = 0; round < ROUNDS; round++) {
        int status = conset_sum_shared(cell, w->plan, CONSET_DOUBLE, x, 2);
        if (status != CONSET_OK)
            return status;
        x[0] /= 2.5, x[1] /= 2.25;
    }
    norm = x[0] * x[0] + x[1] * x[1];
    int status = conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_DOUBLE, &norm, 1);
    w->norm[id] = norm;
    return status;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);

    size_t first[CELLS + 1] = {0};
    uint64_t ids[2 * CELLS];
    for (size_t cell = 0; cell < CELLS; cell++) {
        ids[2 * cell] = cell;
        ids[2 * cell + 1] = (cell + 1) % CELLS;
        first[cell + 1] = 2 * cell + 2;
    }
    conset_layout *layout;
    conset_image *image;
    conset_plan *plan;
    conset_trees *trees;
    check(conset_layout_from_shared_ids(CELLS, first, ids, &layout));
    conset_communicator *communicator;
    conset_compile_options how;
    const conset_set set = {"halo", layout, 1};
    check(conset_communicator_new(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &communicator));
    conset_compile_options_init(&how);
    how.communicator = communicator;
    check(conset_compile("ring:8", &set, 1, &how, &image));
    check(conset_plan_new(image, "halo", layout, 1, &plan));
    check(conset_trees_new(image, &trees));

    /* On the emulated machine, every process by itself. */
    work alone = {plan, trees, 0, {0}}, together = {plan, trees, argc > 1, {0}};
    check(conset_run(image, NULL, smooth, &alone, NULL));

    /* Over MPI, all ranks together. */
    conset_options options;
    conset_options_init(&options);
    options.transport = CONSET_OVER_MPI;
    options.communicator = communicator;
    check(conset_run(image, &options, smooth, &together, NULL));

    int cells = 0;
    for (int cell = 0; cell < CELLS; cell++) {
        if (together.norm[cell] == 0)
            continue;
        cells++;
        if (together.norm[cell] != alone.norm[cell])
            MPI_Abort(MPI_COMM_WORLD, 1);
    }
    printf("rank %d: %d cells, norm %a, as on the fabric\n", rank, cells, alone.norm[0]);
    conset_communicator_free(communicator);
    conset_trees_free(trees);
    conset_plan_free(plan);
    conset_image_free(image);
    conset_layout_free(layout);
    MPI_Finalize();
    return 0;
}
