#define _POSIX_C_SOURCE 199309L
/* What messages between two ranks cost (src/mpi/tune.rs). As in conset_mpi.c, every function returns
 * an MPI error code; but these block, as every rank has to take part in a measurement. Ranks that
 * have nothing to do sleep, so that they do not use the cores of those that are measured. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct conset_comm;
int32_t conset_comm_fortran(struct conset_comm *c);

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const int code_ = (call);                                                                  \
        if (code_ != MPI_SUCCESS)                                                                  \
            return code_;                                                                          \
    } while (0)

enum {
    PINGS = 400,       /* round trips of a word */
    LONG_PINGS = 30,   /* round trips of each of two long messages */
    SHORT = 1 << 17,   /* their bytes */
    LONG = 1 << 20,
    BURST = 16,        /* messages that are under way at a time */
    BURSTS = 200,
    STREAM = 8,        /* long messages of a stream */
    STREAMS = 15,
    BARRIERS = 20,     /* one after the other, and as often */
    COPY = 8 << 20,    /* bytes, more than a cache of one core has */
    COPIES = 15,
    TAG = 7
};

static MPI_Comm comm_of(struct conset_comm *c)
{
    return MPI_Comm_f2c((MPI_Fint)conset_comm_fortran(c));
}

static double nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first decile of some times: other programs of the computer only add to them. */
static double typical(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / 10];
}

/* A barrier in which nobody uses a core. */
static int sleep_until_all_come(MPI_Comm comm)
{
    const struct timespec pause = {0, 200000};
    MPI_Request request;
    int done = 0;
    TRY(MPI_Ibarrier(comm, &request));
    for (;;) {
        TRY(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
        if (done)
            return MPI_SUCCESS;
        nanosleep(&pause, NULL);
    }
}

/* For each rank, the lowest rank of those that share memory with it. */
int conset_tune_nodes(struct conset_comm *c, int *nodes)
{
    MPI_Comm shared;
    int node;
    TRY(MPI_Comm_rank(comm_of(c), &node));
    TRY(MPI_Comm_split_type(comm_of(c), MPI_COMM_TYPE_SHARED, node, MPI_INFO_NULL, &shared));
    TRY(MPI_Bcast(&node, 1, MPI_INT, 0, shared));
    TRY(MPI_Comm_free(&shared));
    return MPI_Allgather(&node, 1, MPI_INT, nodes, 1, MPI_INT, comm_of(c));
}

/* Half of the round trip of a message, in nanoseconds. */
static int ping(MPI_Comm comm, int peer, int first, char *buffer, int bytes, int rounds, double *ns)
{
    double times[PINGS];
    for (int round = -rounds / 10; round < rounds; round++) {
        const double start = nanoseconds();
        if (first)
            TRY(MPI_Send(buffer, bytes, MPI_BYTE, peer, TAG, comm));
        TRY(MPI_Recv(buffer, bytes, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE));
        if (!first)
            TRY(MPI_Send(buffer, bytes, MPI_BYTE, peer, TAG, comm));
        if (round >= 0)
            times[round] = (nanoseconds() - start) / 2;
    }
    *ns = typical(times, rounds);
    return MPI_SUCCESS;
}

/* The software of a message at its end, in nanoseconds: of many that are under way at a time, whose
 * receives were started before. The receiver looks at them only when they have arrived. */
static int burst(MPI_Comm comm, int peer, int first, double latency, double *ns)
{
    double times[BURSTS];
    int64_t words[BURST] = {0};
    MPI_Request requests[BURST];
    for (int round = -BURSTS / 10; round < BURSTS; round++) {
        double start = nanoseconds(), time = 0;
        if (first) {
            TRY(MPI_Recv(NULL, 0, MPI_BYTE, peer, TAG + 1, comm, MPI_STATUS_IGNORE));
            start = nanoseconds();
            for (int i = 0; i < BURST; i++)
                TRY(MPI_Isend(&words[i], 1, MPI_INT64_T, peer, TAG, comm, &requests[i]));
            TRY(MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE));
            time = nanoseconds() - start;
        } else {
            for (int i = 0; i < BURST; i++)
                TRY(MPI_Irecv(&words[i], 1, MPI_INT64_T, peer, TAG, comm, &requests[i]));
            time = nanoseconds() - start;
            TRY(MPI_Send(NULL, 0, MPI_BYTE, peer, TAG + 1, comm));
            start = nanoseconds();
            while (nanoseconds() - start < 2 * (BURST + 1) * latency)
                ;
            start = nanoseconds();
            TRY(MPI_Waitall(BURST, requests, MPI_STATUSES_IGNORE));
            time += nanoseconds() - start;
        }
        if (round >= 0)
            times[round] = time / BURST;
    }
    *ns = typical(times, BURSTS);
    return MPI_SUCCESS;
}

static int measure_pair(MPI_Comm comm, int peer, int first, char *buffer, double out[4])
{
    double near, far;
    TRY(ping(comm, peer, first, buffer, 8, PINGS, &out[0]));
    if (!first)
        TRY(MPI_Send(&out[0], 1, MPI_DOUBLE, peer, TAG, comm));
    else
        TRY(MPI_Recv(&near, 1, MPI_DOUBLE, peer, TAG, comm, MPI_STATUS_IGNORE));
    TRY(burst(comm, peer, first, out[0], &out[first ? 1 : 2]));
    if (!first)
        TRY(MPI_Send(&out[2], 1, MPI_DOUBLE, peer, TAG, comm));
    else
        TRY(MPI_Recv(&out[2], 1, MPI_DOUBLE, peer, TAG, comm, MPI_STATUS_IGNORE));
    TRY(ping(comm, peer, first, buffer, SHORT, LONG_PINGS, &near));
    TRY(ping(comm, peer, first, buffer, LONG, LONG_PINGS, &far));
    out[3] = (far - near) / ((LONG - SHORT) / 8);
    return MPI_SUCCESS;
}

/* Measures messages from rank a to rank b while all others sleep: half a round trip, the software of a
 * send and of a receive, and each further word of 8 bytes of a long message, in nanoseconds.
 * Collective; all ranks get the values. */
int conset_tune_pair(struct conset_comm *c, int a, int b, double out[4])
{
    const MPI_Comm comm = comm_of(c);
    int rank;
    TRY(MPI_Comm_rank(comm, &rank));
    if (rank == a || rank == b) {
        char *buffer = calloc(LONG, 1);
        if (!buffer)
            return MPI_ERR_NO_MEM;
        const int code = measure_pair(comm, rank == a ? b : a, rank == a, buffer, out);
        free(buffer);
        TRY(code);
    }
    TRY(sleep_until_all_come(comm));
    return MPI_Bcast(out, 4, MPI_DOUBLE, a, comm);
}

/* Nanoseconds in which every rank with a peer sends (`sends`) or receives STREAM long messages, and
 * their words of 8 bytes; ranks without one (-1) sleep. Collective; all ranks get the value. */
int conset_tune_streams(struct conset_comm *c, int peer, int sends, double *ns, double *words)
{
    const MPI_Comm comm = comm_of(c);
    double times[STREAMS];
    char *buffer = calloc(LONG, 1);
    if (!buffer)
        return MPI_ERR_NO_MEM;
    int code = MPI_SUCCESS;
    for (int round = 0; round < STREAMS && code == MPI_SUCCESS; round++) {
        code = MPI_Barrier(comm);
        const double start = nanoseconds();
        for (int i = 0; i < STREAM && peer >= 0 && code == MPI_SUCCESS; i++)
            code = sends ? MPI_Send(buffer, LONG, MPI_BYTE, peer, TAG, comm)
                         : MPI_Recv(buffer, LONG, MPI_BYTE, peer, TAG, comm, MPI_STATUS_IGNORE);
        const double time = peer >= 0 ? nanoseconds() - start : 0;
        if (code == MPI_SUCCESS)
            code = sleep_until_all_come(comm);
        if (code == MPI_SUCCESS)
            code = MPI_Allreduce(&time, &times[round], 1, MPI_DOUBLE, MPI_MAX, comm);
    }
    free(buffer);
    *ns = typical(times, STREAMS);
    *words = (double)STREAM * LONG / 8;
    return code;
}

/* Nanoseconds of a barrier of all ranks. Collective; all ranks get the value. */
int conset_tune_barrier(struct conset_comm *c, double *ns)
{
    const MPI_Comm comm = comm_of(c);
    double times[BARRIERS];
    for (int round = 0; round < BARRIERS; round++) {
        const double start = nanoseconds();
        for (int i = 0; i < BARRIERS; i++)
            TRY(MPI_Barrier(comm));
        times[round] = (nanoseconds() - start) / BARRIERS;
    }
    *ns = typical(times, BARRIERS);
    return MPI_Bcast(ns, 1, MPI_DOUBLE, 0, comm);
}

/* Nanoseconds to copy a word of 8 bytes in memory, on rank 0 while all others sleep. Collective; all
 * ranks get the value. */
int conset_tune_copy(struct conset_comm *c, double *ns)
{
    const MPI_Comm comm = comm_of(c);
    int rank;
    TRY(MPI_Comm_rank(comm, &rank));
    if (rank == 0) {
        double times[COPIES];
        char *from = malloc(COPY), *to = malloc(COPY);
        const int complete = from && to;
        for (int round = 0; complete && round < COPIES; round++) {
            memset(from, round, COPY);
            const double start = nanoseconds();
            memcpy(to, from, COPY);
            times[round] = (nanoseconds() - start) / (COPY / 8);
            /* The copy is used, so that it is made. */
            from[to[round * 4096] & 1] = 1;
        }
        free(from);
        free(to);
        if (!complete)
            return MPI_ERR_NO_MEM;
        *ns = typical(times, COPIES);
    }
    TRY(sleep_until_all_come(comm));
    return MPI_Bcast(ns, 1, MPI_DOUBLE, 0, comm);
}
