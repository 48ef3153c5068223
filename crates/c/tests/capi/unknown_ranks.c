/* The program of examples/unknown.c on the ranks of a job. */
#define main unknown_main
#include "../../examples/unknown.c"
#undef main
#include <mpi.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    conset_communicator *communicator;
    check(conset_communicator_new(MPI_Comm_c2f(MPI_COMM_WORLD), 0, &communicator));
    conset_options options;
    conset_options_init(&options);
    options.transport = CONSET_OVER_MPI;
    options.communicator = communicator;
    const uint64_t seen = run(&options);
    conset_communicator_free(communicator);
    if (rank == 0)
        printf("%016" PRIx64 ": all as expected on %d cells\n", seen, CELLS);
    MPI_Finalize();
    return 0;
}
