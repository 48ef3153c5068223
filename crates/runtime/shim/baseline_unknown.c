/* Exchanges whose targets alone know that they are sent something, written by hand for the bench: the
 * counts by MPI_Alltoall first, and NBX (Hoefler, Siebert, Lumsdaine, PPoPP 2010). Both return the
 * number of words received, source by source in the order of the ranks for the first, in that of arrival
 * for the second. Errors end the program, as is MPI's way unless it is asked otherwise. */

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

static MPI_Comm comm = MPI_COMM_NULL;

static int ranks(void)
{
    int size;
    if (comm == MPI_COMM_NULL)
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &size);
    return size;
}

/* `words` to each of `count` targets, one after the other in `out`. */
int conset_baseline_by_counts(int count, const int *targets, int words, const uint64_t *out,
                              uint64_t *in, int room)
{
    const int size = ranks();
    int *sends = calloc(2 * (size_t)size, sizeof *sends), *receives = sends + size;
    MPI_Request *requests = malloc((size_t)(size + count + 1) * sizeof *requests);
    int used = 0, at = 0;
    for (int i = 0; i < count; i++)
        sends[targets[i]] = words;
    MPI_Alltoall(sends, 1, MPI_INT, receives, 1, MPI_INT, comm);
    for (int rank = 0; rank < size; rank++) {
        if (receives[rank] == 0 || at + receives[rank] > room)
            continue;
        MPI_Irecv(in + at, receives[rank], MPI_UINT64_T, rank, 1, comm, &requests[used++]);
        at += receives[rank];
    }
    for (int i = 0; i < count; i++)
        MPI_Isend(out + (size_t)i * (size_t)words, words, MPI_UINT64_T, targets[i], 1, comm,
                  &requests[used++]);
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(sends);
    return at;
}

int conset_baseline_nbx(int count, const int *targets, int words, const uint64_t *out, uint64_t *in,
                        int room)
{
    MPI_Request *requests, barrier = MPI_REQUEST_NULL;
    int at = 0, done = 0, waiting = 0;
    static int round;
    /* Two tags in turn: a rank can be one exchange ahead. */
    const int tag = 2 + (round++ & 1);
    ranks();
    requests = malloc((size_t)(count + 1) * sizeof *requests);
    for (int i = 0; i < count; i++)
        MPI_Issend(out + (size_t)i * (size_t)words, words, MPI_UINT64_T, targets[i], tag, comm,
                   &requests[i]);
    while (!done) {
        MPI_Status status;
        int found, length;
        MPI_Iprobe(MPI_ANY_SOURCE, tag, comm, &found, &status);
        if (found) {
            MPI_Get_count(&status, MPI_UINT64_T, &length);
            if (at + length > room)
                MPI_Abort(comm, 1);
            MPI_Recv(in + at, length, MPI_UINT64_T, status.MPI_SOURCE, tag, comm,
                     MPI_STATUS_IGNORE);
            at += length;
        }
        if (waiting) {
            MPI_Test(&barrier, &done, MPI_STATUS_IGNORE);
        } else {
            MPI_Testall(count, requests, &found, MPI_STATUSES_IGNORE);
            if (found) {
                MPI_Ibarrier(comm, &barrier);
                waiting = 1;
            }
        }
    }
    free(requests);
    return at;
}
