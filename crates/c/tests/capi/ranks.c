/* What a job does with the library beside running: an image goes from one rank to the others as
 * bytes, ranks ask for their cells, and what is wrong is an error of every rank. Then the program of
 * examples/halo.c on all ranks. */
#define main halo_main
#include "../../examples/halo.c"
#undef main
#include <mpi.h>

static int expect(int status, int expected, const char *says)
{
    if (status == expected && strstr(conset_error(), says))
        return 0;
    fprintf(stderr, "expected %d with `%s`, found %d with `%s`\n", expected, says, status,
            conset_error());
    return 1;
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);

    conset_communicator *communicator = NULL;
    const int nobodys[] = {-1, 99, INT32_MAX};
    for (size_t i = 0; i < sizeof nobodys / sizeof *nobodys; i++)
        wrong += expect(conset_communicator_new(nobodys[i], 0, &communicator), CONSET_MPI,
                        "invalid communicator");
    wrong += expect(conset_communicator_new(MPI_Comm_c2f(MPI_COMM_NULL), 0, &communicator),
                    CONSET_MPI, "invalid communicator");
    check(conset_communicator_new(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &communicator));

    /* Rank 0 compiles. */
    conset_layout *layouts[3];
    conset_image *image = NULL;
    make_layouts(layouts);
    size_t size = 0;
    void *bytes = NULL;
    if (rank == 0) {
        image = compiled(layouts);
        check(conset_image_bytes(image, NULL, 0, &size));
    }
    MPI_Bcast(&size, sizeof size, MPI_BYTE, 0, MPI_COMM_WORLD);
    bytes = malloc(size);
    if (rank == 0)
        check(conset_image_bytes(image, bytes, size, &size));
    MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank != 0)
        check(conset_image_parse(bytes, size, &image));
    free(bytes);

    conset_options options;
    conset_options_init(&options);
    options.transport = CONSET_OVER_MPI;
    wrong += expect(conset_run(image, &options, exchange, NULL, NULL), CONSET_NULL_POINTER,
                    "options.communicator");
    options.communicator = communicator;

    /* Every cell is on one rank. */
    uint32_t own[CELLS];
    size_t count;
    int all = 0, here;
    check(conset_run_cells(image, &options, own, CELLS, &count));
    here = (int)count;
    MPI_Allreduce(&here, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    wrong += all != CELLS || count == 0;

    work w;
    make_work(&w, image, layouts);
    check(conset_run(image, &options, exchange, &w, NULL));
    check(conset_run(image, &options, exchange, &w, NULL));
    conset_communicator_free(communicator);
    wrong += expect(conset_run(image, &options, exchange, &w, NULL), CONSET_BAD_HANDLE, "was freed");
    printf("rank %d: %s\n", rank, wrong ? "not as expected" : "all as expected");
    free_work(&w);
    free_layouts(layouts);
    conset_image_free(image);
    MPI_Finalize();
    return wrong != 0;
}
