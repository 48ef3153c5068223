#define _POSIX_C_SOURCE 199309L
/* What the bench compares with: the exchange of a vector's entries as a user would write it over
 * plain MPI, once with new requests each time and once with persistent ones. Both gather into
 * buffers, send, receive, and add what arrived in the order of the neighbours. For the bench
 * alone; errors end the program, as is MPI's way unless it is asked otherwise. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct conset_baseline {
    MPI_Comm comm;
    int neighbours;
    int *ranks, *first; /* neighbours + 1 places in the lists */
    uint32_t *gather, *scatter;
    double *out, *in;
    MPI_Request *fresh, *persistent; /* receives, then sends */
};

static void *copied(const void *from, size_t count, size_t size)
{
    char *to = malloc(count * size + 1);
    for (size_t i = 0; i < count * size; i++)
        to[i] = ((const char *)from)[i];
    return to;
}

struct conset_baseline *conset_baseline_new(int neighbours, const int *ranks, const int *first,
                                            const uint32_t *gather, const uint32_t *scatter)
{
    struct conset_baseline *b = malloc(sizeof *b);
    size_t n = (size_t)neighbours, words = (size_t)first[neighbours];
    MPI_Comm_dup(MPI_COMM_WORLD, &b->comm);
    b->neighbours = neighbours;
    b->ranks = copied(ranks, n, sizeof *ranks);
    b->first = copied(first, n + 1, sizeof *first);
    b->gather = copied(gather, words, sizeof *gather);
    b->scatter = copied(scatter, words, sizeof *scatter);
    b->out = malloc(words * sizeof(double) + 1);
    b->in = malloc(words * sizeof(double) + 1);
    b->fresh = malloc((2 * n + 1) * sizeof(MPI_Request));
    b->persistent = malloc((2 * n + 1) * sizeof(MPI_Request));
    for (int i = 0; i < neighbours; i++) {
        int at = first[i], count = first[i + 1] - first[i];
        MPI_Recv_init(b->in + at, count, MPI_DOUBLE, ranks[i], 1, b->comm, &b->persistent[i]);
        MPI_Send_init(b->out + at, count, MPI_DOUBLE, ranks[i], 1, b->comm,
                      &b->persistent[neighbours + i]);
    }
    return b;
}

static void pack(struct conset_baseline *b, const double *x)
{
    int words = b->first[b->neighbours];
    for (int i = 0; i < words; i++)
        b->out[i] = x[b->gather[i]];
}

static void unpack(struct conset_baseline *b, double *x)
{
    int words = b->first[b->neighbours];
    for (int i = 0; i < words; i++)
        x[b->scatter[i]] += b->in[i];
}

/* The two halves of an exchange, between which a program can compute. */
void conset_baseline_start(struct conset_baseline *b, const double *x)
{
    int n = b->neighbours;
    for (int i = 0; i < n; i++)
        MPI_Irecv(b->in + b->first[i], b->first[i + 1] - b->first[i], MPI_DOUBLE, b->ranks[i], 2,
                  b->comm, &b->fresh[i]);
    pack(b, x);
    for (int i = 0; i < n; i++)
        MPI_Isend(b->out + b->first[i], b->first[i + 1] - b->first[i], MPI_DOUBLE, b->ranks[i], 2,
                  b->comm, &b->fresh[n + i]);
}

void conset_baseline_complete(struct conset_baseline *b, double *x)
{
    MPI_Waitall(2 * b->neighbours, b->fresh, MPI_STATUSES_IGNORE);
    unpack(b, x);
}

void conset_baseline_naive(struct conset_baseline *b, double *x, int rounds)
{
    while (rounds-- > 0) {
        conset_baseline_start(b, x);
        conset_baseline_complete(b, x);
    }
}

/* The same as conset_baseline_naive with floats, in the buffers for doubles. */
void conset_baseline_naive_float(struct conset_baseline *b, float *x, int rounds)
{
    int n = b->neighbours, words = b->first[b->neighbours];
    float *out = (float *)b->out, *in = (float *)b->in;
    while (rounds-- > 0) {
        for (int i = 0; i < n; i++)
            MPI_Irecv(in + b->first[i], b->first[i + 1] - b->first[i], MPI_FLOAT, b->ranks[i], 3,
                      b->comm, &b->fresh[i]);
        for (int i = 0; i < words; i++)
            out[i] = x[b->gather[i]];
        for (int i = 0; i < n; i++)
            MPI_Isend(out + b->first[i], b->first[i + 1] - b->first[i], MPI_FLOAT, b->ranks[i], 3,
                      b->comm, &b->fresh[n + i]);
        MPI_Waitall(2 * n, b->fresh, MPI_STATUSES_IGNORE);
        for (int i = 0; i < words; i++)
            x[b->scatter[i]] += in[i];
    }
}

void conset_baseline_persistent(struct conset_baseline *b, double *x, int rounds)
{
    int n = b->neighbours;
    while (rounds-- > 0) {
        MPI_Startall(n, b->persistent);
        pack(b, x);
        MPI_Startall(n, b->persistent + n);
        MPI_Waitall(2 * n, b->persistent, MPI_STATUSES_IGNORE);
        unpack(b, x);
    }
}

void conset_baseline_barrier(struct conset_baseline *b)
{
    MPI_Barrier(b->comm);
}

/* A barrier in which nobody uses the core: for while one rank measures something else. */
void conset_baseline_sleep(struct conset_baseline *b)
{
    MPI_Request request;
    const struct timespec pause = {0, 5000000};
    int done = 0;
    MPI_Ibarrier(b->comm, &request);
    for (;;) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done)
            return;
        nanosleep(&pause, NULL);
    }
}

/* MPI_Alltoallv of 64-bit words on a duplicate of the world's communicator. */
void conset_baseline_alltoallv(struct conset_baseline *b, const uint64_t *out,
                               const int *out_counts, const int *out_first, uint64_t *in,
                               const int *in_counts, const int *in_first)
{
    MPI_Alltoallv(out, out_counts, out_first, MPI_UINT64_T, in, in_counts, in_first, MPI_UINT64_T,
                  b->comm);
}

/* Sums of arrays over the binomial tree in which the parent of a rank is the rank without its lowest
 * bit: the own array first, then the children ascending. In each round out begins as a copy of in. */
void conset_baseline_tree_sum(struct conset_baseline *b, const double *in, double *out,
                              double *scratch, int words, int rounds)
{
    int rank, size;
    MPI_Comm_rank(b->comm, &rank);
    MPI_Comm_size(b->comm, &size);
    while (rounds-- > 0) {
        int bit = 1;
        memcpy(out, in, (size_t)words * sizeof *out);
        for (; !(rank & bit) && rank + bit < size; bit <<= 1) {
            MPI_Recv(scratch, words, MPI_DOUBLE, rank + bit, 3, b->comm, MPI_STATUS_IGNORE);
            for (int i = 0; i < words; i++)
                out[i] += scratch[i];
        }
        if (rank > 0) {
            int parent = rank & (rank - 1);
            MPI_Send(out, words, MPI_DOUBLE, parent, 3, b->comm);
            MPI_Recv(out, words, MPI_DOUBLE, parent, 4, b->comm, MPI_STATUS_IGNORE);
        }
        while ((bit >>= 1) > 0)
            MPI_Send(out, words, MPI_DOUBLE, rank + bit, 4, b->comm);
    }
}

/* The same by MPI_Allreduce, whose order of summation is the library's. */
void conset_baseline_allreduce(struct conset_baseline *b, const double *in, double *out, int words,
                               int rounds)
{
    while (rounds-- > 0)
        MPI_Allreduce(in, out, words, MPI_DOUBLE, MPI_SUM, b->comm);
}

/* The same by MPI_Reduce, at rank 0 alone. */
void conset_baseline_reduce(struct conset_baseline *b, const double *in, double *out, int words,
                            int rounds)
{
    while (rounds-- > 0)
        MPI_Reduce(in, out, words, MPI_DOUBLE, MPI_SUM, 0, b->comm);
}
