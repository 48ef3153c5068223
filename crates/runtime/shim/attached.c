/* The part of MPI that attached halos need (src/mpi/attached): messages between neighbours that are
 * repeated, and the few operations of a distributed set-up. As in conset_mpi.c, every function
 * returns an MPI error code, and the types are the same with every MPI library. Nothing blocks, but
 * for conset_take, whose message is there. */

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct conset_comm;
int32_t conset_comm_fortran(struct conset_comm *c);
MPI_Datatype conset_type_of(int bytes);

static MPI_Comm comm_of(struct conset_comm *c)
{
    return MPI_Comm_f2c((MPI_Fint)conset_comm_fortran(c));
}

/* ---- Messages of a halo ---- */

/* Messages of fixed sizes with fixed neighbours: receives first, then sends. */
struct conset_wire {
    MPI_Comm comm;
    int tag, receives, sends;
    int *peers, *bytes;
    size_t *first; /* where each message begins in its buffer */
    char *incoming, *outgoing;
    MPI_Request *kept;   /* persistent receives into `incoming`; null until they are needed */
    MPI_Request *active; /* under way: receives, then sends */
};

void conset_wire_free(struct conset_wire *w, int *freed);

struct conset_wire *conset_wire_new(struct conset_comm *c, int tag, int receives, int sends,
                                    const int *peers, const int *bytes)
{
    const size_t n = (size_t)receives + (size_t)sends;
    size_t total[2] = {0, 0};
    struct conset_wire *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->comm = comm_of(c);
    w->tag = tag;
    w->peers = malloc(n * sizeof *w->peers + 1);
    w->bytes = malloc(n * sizeof *w->bytes + 1);
    w->first = malloc(n * sizeof *w->first + 1);
    w->kept = malloc(n * sizeof *w->kept + 1);
    w->active = malloc(n * sizeof *w->active + 1);
    int complete = w->peers && w->bytes && w->first && w->kept && w->active;
    for (size_t i = 0; complete && i < n; i++) {
        const int sent = i >= (size_t)receives;
        w->peers[i] = peers[i];
        w->bytes[i] = bytes[i];
        w->first[i] = total[sent];
        w->kept[i] = w->active[i] = MPI_REQUEST_NULL;
        /* Messages do not share cache lines. */
        total[sent] += ((size_t)bytes[i] + 63) / 64 * 64;
    }
    if (complete) {
        w->receives = receives;
        w->sends = sends;
        w->incoming = aligned_alloc(64, total[0] + 64);
        w->outgoing = aligned_alloc(64, total[1] + 64);
        complete = w->incoming && w->outgoing;
    }
    if (!complete) {
        int freed;
        conset_wire_free(w, &freed);
        return NULL;
    }
    return w;
}

/* Where a message is packed, or arrives unless it is received in place. */
char *conset_wire_buffer(struct conset_wire *w, int message)
{
    return (message < w->receives ? w->incoming : w->outgoing) + w->first[message];
}

/* Starts all receives. Message i arrives at base + at[i] * entry if base is given and at[i] is not
 * negative, otherwise in the buffer. */
int conset_wire_receive(struct conset_wire *w, char *base, const int64_t *at, size_t entry)
{
    int code = MPI_SUCCESS;
    for (int i = 0; i < w->receives && code == MPI_SUCCESS; i++) {
        if (base && at[i] >= 0) {
            code = MPI_Irecv(base + (size_t)at[i] * entry, w->bytes[i], MPI_BYTE, w->peers[i],
                             w->tag, w->comm, &w->active[i]);
            continue;
        }
        if (w->kept[i] == MPI_REQUEST_NULL)
            code = MPI_Recv_init(w->incoming + w->first[i], w->bytes[i], MPI_BYTE, w->peers[i],
                                 w->tag, w->comm, &w->kept[i]);
        w->active[i] = w->kept[i];
        if (code == MPI_SUCCESS)
            code = MPI_Start(&w->active[i]);
    }
    return code;
}

/* Sends one message, which has been packed. An immediate send costs less than a persistent one if
 * the message is short, and the same if it is long. */
int conset_wire_send(struct conset_wire *w, int send)
{
    const int i = w->receives + send;
    return MPI_Isend(w->outgoing + w->first[i], w->bytes[i], MPI_BYTE, w->peers[i], w->tag,
                     w->comm, &w->active[i]);
}

/* Completes messages in their order, from *at on, and moves *at over those that are done. Gives up
 * after some tries at one that is not. If a message has another size than expected, *wrong is its
 * number and *found its bytes, -1 if they are more than expected. */
int conset_wire_test(struct conset_wire *w, int *at, int tries, int *wrong, int64_t *found)
{
    const int end = w->receives + w->sends;
    while (*at < end && tries > 0) {
        MPI_Status status;
        int done = 0, bytes = 0, class = MPI_SUCCESS;
        int code = MPI_Test(&w->active[*at], &done, &status);
        if (code != MPI_SUCCESS) {
            MPI_Error_class(code, &class);
            if (class != MPI_ERR_TRUNCATE)
                return code;
            done = 1;
        }
        if (!done) {
            --tries;
            continue;
        }
        if (*at < w->receives) {
            if (class == MPI_SUCCESS)
                MPI_Get_count(&status, MPI_BYTE, &bytes);
            if (class != MPI_SUCCESS || bytes != w->bytes[*at]) {
                *wrong = *at;
                *found = class == MPI_SUCCESS ? bytes : -1;
            }
        }
        ++*at;
    }
    return MPI_SUCCESS;
}

/* Whether a message that was started is done, which it stays. */
int conset_wire_done(struct conset_wire *w, int message, int *done)
{
    return MPI_Request_get_status(w->active[message], done, MPI_STATUS_IGNORE);
}

/* Gives up the receives from `at` on that nobody has sent anything for; *sent: the sends are done. */
int conset_wire_cancel(struct conset_wire *w, int at, int *sent)
{
    int code = MPI_SUCCESS;
    for (int i = at; i < w->receives && code == MPI_SUCCESS; i++) {
        if (w->active[i] == MPI_REQUEST_NULL)
            continue;
        code = MPI_Cancel(&w->active[i]);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&w->active[i], MPI_STATUS_IGNORE);
    }
    *sent = 1;
    for (int i = w->receives; i < w->receives + w->sends && code == MPI_SUCCESS; i++) {
        int done = 0;
        code = MPI_Test(&w->active[i], &done, MPI_STATUS_IGNORE);
        *sent = *sent && done;
    }
    return code;
}

/* Frees the messages, of which no receive is under way. If MPI still reads a send, nothing is
 * freed. */
void conset_wire_free(struct conset_wire *w, int *freed)
{
    int finalized = 0;
    *freed = 0;
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized) {
        for (int i = w->receives; i < w->receives + w->sends; i++) {
            int done = 0;
            if (MPI_Test(&w->active[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done)
                return;
        }
        for (int i = 0; i < w->receives; i++)
            if (w->kept[i] != MPI_REQUEST_NULL)
                MPI_Request_free(&w->kept[i]);
    }
    free(w->peers);
    free(w->bytes);
    free(w->first);
    free(w->incoming);
    free(w->outgoing);
    free(w->kept);
    free(w->active);
    free(w);
    *freed = 1;
}

/* ---- Operations of a set-up: one request each ---- */

struct conset_operation_request {
    MPI_Request request;
};

struct conset_operation_request *conset_operation_new(void)
{
    struct conset_operation_request *r = malloc(sizeof *r);
    if (r)
        r->request = MPI_REQUEST_NULL;
    return r;
}

void conset_operation_free(struct conset_operation_request *r)
{
    free(r);
}

int conset_operation_test(struct conset_operation_request *r, int *done)
{
    return MPI_Test(&r->request, done, MPI_STATUS_IGNORE);
}

/* A send that is done when the receiver has begun to receive. */
int conset_synchronous_send(struct conset_comm *c, struct conset_operation_request *r,
                            const void *words, int count, int bytes, int peer, int tag)
{
    return MPI_Issend(words, count, conset_type_of(bytes), peer, tag, comm_of(c), &r->request);
}

int conset_enter_barrier(struct conset_comm *c, struct conset_operation_request *r)
{
    return MPI_Ibarrier(comm_of(c), &r->request);
}

/* Minima or sums over all ranks, in place. */
int conset_reduce_all(struct conset_comm *c, struct conset_operation_request *r, int sum,
                      uint64_t *words, int count)
{
    return MPI_Iallreduce(MPI_IN_PLACE, words, count, MPI_UINT64_T, sum ? MPI_SUM : MPI_MIN,
                          comm_of(c), &r->request);
}

int conset_broadcast_words(struct conset_comm *c, struct conset_operation_request *r,
                           uint64_t *words, int count, int root)
{
    return MPI_Ibcast(words, count, MPI_UINT64_T, root, comm_of(c), &r->request);
}

/* Who has sent the next message with a tag, and how many words it has; *peer is -1 if there is none.
 * `from` is a rank, or -1 for any. */
int conset_look(struct conset_comm *c, int from, int tag, int bytes, int *peer, int *words)
{
    MPI_Status status;
    int found = 0;
    *peer = -1;
    int code = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, comm_of(c), &found, &status);
    if (code != MPI_SUCCESS || !found)
        return code;
    *peer = status.MPI_SOURCE;
    return MPI_Get_count(&status, conset_type_of(bytes), words);
}

/* Receives a message that conset_look has found. */
int conset_take(struct conset_comm *c, void *words, int count, int bytes, int peer, int tag)
{
    return MPI_Recv(words, count, conset_type_of(bytes), peer, tag, comm_of(c), MPI_STATUS_IGNORE);
}
