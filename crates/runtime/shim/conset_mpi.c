/* The part of MPI that conset's runtime needs, in functions whose types are the same with every
 * MPI library. Handles that differ between libraries (communicators, requests) stay behind
 * pointers; a communicator comes from outside as its Fortran integer. Every function returns an
 * MPI error code, MPI_SUCCESS being 0 in every library. Nothing here blocks, but for
 * conset_mpi_start and the finalisation at the end of the process. */

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct conset_comm {
    MPI_Comm comm;
    MPI_Request duplicating;
    /* A message that nobody wants, while it comes. */
    MPI_Request discarding;
    void *discarded;
};

struct conset_requests {
    int count;
    MPI_Request handles[];
};

static void finalize_at_exit(void)
{
    int finalized = 0;
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
        MPI_Finalize();
}

/* *fit: this thread may call MPI. All that is called here any thread may call at any time. */
int conset_mpi_fit(int *fit)
{
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE, main_thread = 0;
    *fit = 0;
    int code = MPI_Initialized(&initialized);
    if (code == MPI_SUCCESS)
        code = MPI_Finalized(&finalized);
    if (code != MPI_SUCCESS || !initialized || finalized)
        return code;
    code = MPI_Query_thread(&provided);
    if (code == MPI_SUCCESS)
        code = MPI_Is_thread_main(&main_thread);
    *fit = provided >= MPI_THREAD_SERIALIZED || main_thread;
    return code;
}

/* Initialises MPI unless the process has done so already. Only if it is done here, MPI is
 * finalised when the process ends. *fit: this thread may call MPI. */
int conset_mpi_start(int *fit)
{
    int initialized = 0, finalized = 0, provided = MPI_THREAD_SINGLE;
    *fit = 0;
    int code = MPI_Initialized(&initialized);
    if (code == MPI_SUCCESS)
        code = MPI_Finalized(&finalized);
    if (code != MPI_SUCCESS || finalized)
        return code;
    if (!initialized) {
        code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided);
        if (code != MPI_SUCCESS)
            return code;
        atexit(finalize_at_exit);
    }
    return conset_mpi_fit(fit);
}

int conset_mpi_world(int32_t *fortran)
{
    *fortran = (int32_t)MPI_Comm_c2f(MPI_COMM_WORLD);
    return MPI_SUCCESS;
}

int conset_mpi_self(int32_t *fortran)
{
    *fortran = (int32_t)MPI_Comm_c2f(MPI_COMM_SELF);
    return MPI_SUCCESS;
}

/* Begins to duplicate a communicator; conset_comm_ready says when it is done. */
int conset_comm_duplicate(int32_t fortran, struct conset_comm **out)
{
    struct conset_comm *c = malloc(sizeof *c);
    *out = NULL;
    if (!c)
        return MPI_ERR_NO_MEM;
    MPI_Comm from = MPI_Comm_f2c((MPI_Fint)fortran);
    /* Open MPI makes a null pointer of numbers that it never gave; handed on it ends the job. */
    if (from == MPI_COMM_NULL || from == (MPI_Comm)0) {
        free(c);
        return MPI_ERR_COMM;
    }
    c->comm = MPI_COMM_NULL;
    c->discarding = MPI_REQUEST_NULL;
    c->discarded = NULL;
    int code = MPI_Comm_idup(from, &c->comm, &c->duplicating);
    if (code != MPI_SUCCESS) {
        free(c);
        return code;
    }
    *out = c;
    return MPI_SUCCESS;
}

/* The duplicate as its Fortran integer, for the other files of the shim too. */
int32_t conset_comm_fortran(struct conset_comm *c)
{
    return (int32_t)MPI_Comm_c2f(c->comm);
}

/* Whether the duplicate can be used, and if so, its shape. */
int conset_comm_ready(struct conset_comm *c, int *ready, int *rank, int *size, int *tags)
{
    int *limit = NULL, found = 0;
    int code = MPI_Test(&c->duplicating, ready, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS)
        return code;
    if (!*ready)
        return MPI_Comm_rank(MPI_COMM_WORLD, rank); /* for reports */
    code = MPI_Comm_set_errhandler(c->comm, MPI_ERRORS_RETURN);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_rank(c->comm, rank);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_size(c->comm, size);
    if (code == MPI_SUCCESS)
        code = MPI_Comm_get_attr(c->comm, MPI_TAG_UB, &limit, &found);
    *tags = found && limit ? *limit : 32767; /* what the standard promises */
    return code;
}

/* Receives what others have sent on a communicator that is given up, and forgets it, so that they can
 * be done with it: one message after the other, as far as it comes at once. MPI_PACKED fits whatever
 * was sent. */
int conset_comm_discard(struct conset_comm *c)
{
    MPI_Status status;
    int done = 0, found = 0, bytes = 0;
    int code = MPI_Test(&c->discarding, &done, MPI_STATUS_IGNORE);
    if (code != MPI_SUCCESS || !done)
        return code;
    free(c->discarded);
    c->discarded = NULL;
    code = MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, c->comm, &found, &status);
    if (code == MPI_SUCCESS && found)
        code = MPI_Get_count(&status, MPI_PACKED, &bytes);
    if (code != MPI_SUCCESS || !found)
        return code;
    c->discarded = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!c->discarded)
        return MPI_ERR_NO_MEM;
    return MPI_Irecv(c->discarded, bytes, MPI_PACKED, status.MPI_SOURCE, status.MPI_TAG, c->comm,
                     &c->discarding);
}

/* Gives the duplicate back, unless MPI has ended before. A message that still comes keeps its memory. */
void conset_comm_free(struct conset_comm *c)
{
    int finalized = 0;
    if (c->discarding == MPI_REQUEST_NULL)
        free(c->discarded);
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized && c->comm != MPI_COMM_NULL)
        MPI_Comm_free(&c->comm);
    free(c);
}

void conset_mpi_abort(struct conset_comm *c, int status)
{
    MPI_Abort(c ? c->comm : MPI_COMM_WORLD, status);
}

/* The text of an error code, always ended by a zero. */
void conset_mpi_error_text(int code, char *text, int room)
{
    char full[MPI_MAX_ERROR_STRING];
    int length = 0;
    if (MPI_Error_string(code, full, &length) != MPI_SUCCESS)
        length = 0;
    if (length > room - 1)
        length = room - 1;
    memcpy(text, full, (size_t)length);
    text[length] = 0;
}

/* Whether an error code says that a message was longer than there was room for it. */
int conset_mpi_is_truncation(int code)
{
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class == MPI_ERR_TRUNCATE;
}

struct conset_requests *conset_requests_new(int count)
{
    struct conset_requests *r = malloc(sizeof *r + (size_t)count * sizeof(MPI_Request));
    if (!r)
        return NULL;
    r->count = count;
    for (int i = 0; i < count; i++)
        r->handles[i] = MPI_REQUEST_NULL;
    return r;
}

void conset_requests_free(struct conset_requests *r)
{
    int finalized = 0;
    if (MPI_Finalized(&finalized) == MPI_SUCCESS && !finalized)
        for (int i = 0; i < r->count; i++)
            if (r->handles[i] != MPI_REQUEST_NULL)
                MPI_Request_free(&r->handles[i]);
    free(r);
}

/* Words of so many bytes, whatever the numbers are. */
MPI_Datatype conset_type_of(int bytes)
{
    switch (bytes) {
    case 1:
        return MPI_UINT8_T;
    case 2:
        return MPI_UINT16_T;
    case 4:
        return MPI_UINT32_T;
    default:
        return MPI_UINT64_T;
    }
}

/* Persistent requests, of words of so many bytes. */

int conset_send_init(struct conset_comm *c, struct conset_requests *r, int at, const void *words,
                     int count, int bytes, int peer, int tag)
{
    return MPI_Send_init(words, count, conset_type_of(bytes), peer, tag, c->comm, &r->handles[at]);
}

int conset_receive_init(struct conset_comm *c, struct conset_requests *r, int at, void *words,
                        int count, int bytes, int peer, int tag)
{
    return MPI_Recv_init(words, count, conset_type_of(bytes), peer, tag, c->comm, &r->handles[at]);
}

/* A message that is sent by no persistent request: its first byte, its words, where it goes. */
struct conset_message {
    size_t at;
    int count, peer, tag;
};

/* Sends some messages of a buffer, in the places of requests from `first` on. *done: all of them have
 * left, as short ones have at once; then nobody needs to ask for them again. */
int conset_sends_now(struct conset_comm *c, struct conset_requests *r, int first, const char *buffer,
                     const struct conset_message *messages, int count, int bytes, int *done)
{
    int code = MPI_SUCCESS;
    *done = 0;
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        const struct conset_message *m = messages + i;
        code = MPI_Isend(buffer + m->at, m->count, conset_type_of(bytes), m->peer, m->tag, c->comm,
                         &r->handles[first + i]);
    }
    if (code == MPI_SUCCESS)
        code = MPI_Testall(count, r->handles + first, done, MPI_STATUSES_IGNORE);
    return code;
}

int conset_requests_start(struct conset_requests *r, int first, int count)
{
    return MPI_Startall(count, r->handles + first);
}

/* Gives up receives that were started and that nobody has sent anything for: that is local. */
int conset_requests_cancel(struct conset_requests *r, int first, int count)
{
    int code = MPI_SUCCESS;
    for (int i = first; i < first + count && code == MPI_SUCCESS; i++) {
        code = MPI_Cancel(&r->handles[i]);
        if (code == MPI_SUCCESS)
            code = MPI_Wait(&r->handles[i], MPI_STATUS_IGNORE);
    }
    return code;
}

/* Requests that serve once. */

int conset_send_words(struct conset_comm *c, struct conset_requests *r, const uint64_t *words,
                      int count, int peer, int tag)
{
    return MPI_Isend(words, count, MPI_UINT64_T, peer, tag, c->comm, &r->handles[0]);
}

int conset_receive_words(struct conset_comm *c, struct conset_requests *r, uint64_t *words, int count,
                         int peer, int tag)
{
    return MPI_Irecv(words, count, MPI_UINT64_T, peer, tag, c->comm, &r->handles[0]);
}

/* How many words the next message with a tag has, or -1 if there is none yet: of a peer, or of any
 * if *peer is negative, which is then set. */
int conset_probe(struct conset_comm *c, int *peer, int tag, int *words)
{
    MPI_Status status;
    int found = 0;
    *words = -1;
    int code = MPI_Iprobe(*peer < 0 ? MPI_ANY_SOURCE : *peer, tag, c->comm, &found, &status);
    if (code != MPI_SUCCESS || !found)
        return code;
    *peer = status.MPI_SOURCE;
    return MPI_Get_count(&status, MPI_UINT64_T, words);
}

/* Completes requests in their order, from *at on, and moves *at over those that are done. Gives up
 * after some tries at one that is not. Several messages usually come together: after one that was not
 * there at the first look, the next ones are tested by one call, a few of them, as such a call costs
 * as much as it has requests even if nothing has come. */
int conset_requests_test(struct conset_requests *r, int *at, int end, int tries)
{
    enum { TOGETHER = 32 };
    int code = MPI_SUCCESS, together = 1;
    while (*at < end && tries > 0) {
        int done = 0;
        code = MPI_Test(&r->handles[*at], &done, MPI_STATUS_IGNORE);
        if (code != MPI_SUCCESS)
            break;
        if (!done) {
            together = 1;
            --tries;
            continue;
        }
        ++*at;
        int count = end - *at < TOGETHER ? end - *at : TOGETHER;
        if (together && count > 1) {
            code = MPI_Testall(count, r->handles + *at, &done, MPI_STATUSES_IGNORE);
            if (code != MPI_SUCCESS)
                break;
            if (done)
                *at += count;
            together = done;
        }
    }
    return code;
}

/* Whether one request is done, which it stays. */
int conset_request_done(struct conset_requests *r, int at, int *done)
{
    return MPI_Request_get_status(r->handles[at], done, MPI_STATUS_IGNORE);
}

/* A message of words of so many bytes, in any place of the array. *done: the send is done, as short ones
 * are. */

int conset_send_row(struct conset_comm *c, struct conset_requests *r, int at, const void *words,
                    int count, int bytes, int peer, int tag, int *done)
{
    int code = MPI_Isend(words, count, conset_type_of(bytes), peer, tag, c->comm, &r->handles[at]);
    *done = 0;
    return code == MPI_SUCCESS ? MPI_Test(&r->handles[at], done, MPI_STATUS_IGNORE) : code;
}

int conset_receive_row(struct conset_comm *c, struct conset_requests *r, int at, void *words,
                       int count, int bytes, int peer, int tag)
{
    return MPI_Irecv(words, count, conset_type_of(bytes), peer, tag, c->comm, &r->handles[at]);
}
