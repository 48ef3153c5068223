/* What the bench `mpi_attached` compares with: a halo as solvers have it, written by hand over plain
 * MPI with new requests each time. Owned entries are packed; ghosts are contiguous and are received in
 * the vector. For the bench alone; errors end the program. */

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct conset_baseline_halo {
    MPI_Comm comm;
    int neighbours, words;
    int *ranks;
    uint32_t *positions; /* of the owned entries for each neighbour */
    size_t ghosts;       /* where those of the first neighbour are; then of the next */
    void *out;
    MPI_Request *requests;
};

struct conset_baseline_halo *conset_baseline_halo_new(int neighbours, int words, const int *ranks,
                                                      const uint32_t *positions, size_t ghosts)
{
    const size_t n = (size_t)neighbours, all = n * (size_t)words;
    struct conset_baseline_halo *b = malloc(sizeof *b);
    MPI_Comm_dup(MPI_COMM_WORLD, &b->comm);
    b->neighbours = neighbours;
    b->words = words;
    b->ranks = memcpy(malloc(n * sizeof *ranks), ranks, n * sizeof *ranks);
    b->positions = memcpy(malloc(all * sizeof *positions), positions, all * sizeof *positions);
    b->ghosts = ghosts;
    b->out = malloc(all * sizeof(double));
    b->requests = malloc(2 * n * sizeof *b->requests);
    return b;
}

#define EXCHANGE(name, number, type)                                                               \
    void name(struct conset_baseline_halo *b, number *x, int rounds)                               \
    {                                                                                              \
        const int n = b->neighbours, words = b->words;                                             \
        number *out = b->out;                                                                      \
        while (rounds-- > 0) {                                                                     \
            for (int i = 0; i < n; i++)                                                            \
                MPI_Irecv(x + b->ghosts + (size_t)i * (size_t)words, words, type, b->ranks[i], 3,  \
                          b->comm, &b->requests[i]);                                               \
            for (int i = 0; i < n * words; i++)                                                    \
                out[i] = x[b->positions[i]];                                                       \
            for (int i = 0; i < n; i++)                                                            \
                MPI_Isend(out + (size_t)i * (size_t)words, words, type, b->ranks[i], 3, b->comm,   \
                          &b->requests[n + i]);                                                    \
            MPI_Waitall(2 * n, b->requests, MPI_STATUSES_IGNORE);                                  \
        }                                                                                          \
    }

EXCHANGE(conset_baseline_halo_doubles, double, MPI_DOUBLE)
EXCHANGE(conset_baseline_halo_floats, float, MPI_FLOAT)
