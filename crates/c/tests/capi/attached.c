/* Every call on halos of an MPI program, and what can be asked wrongly. */
#include <conset.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int wrong;

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void expect(int status, int expected, const char *says)
{
    if (status == expected && strstr(conset_error(), says))
        return;
    fprintf(stderr, "expected %d with `%s`, found %d with `%s`\n", expected, says, status,
            conset_error());
    wrong++;
}

#define IS(what) is((what), #what)

static void is(int true, const char *what)
{
    if (!true) {
        fprintf(stderr, "not so: %s\n", what);
        wrong++;
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks, many = ranks > 1;

    conset_attached *all = NULL, *self = NULL;
    expect(conset_attach(-1, &all), CONSET_MPI, "invalid communicator");
    check(conset_attach(MPI_Comm_c2f(MPI_COMM_WORLD), &all));
    check(conset_attach(MPI_Comm_c2f(MPI_COMM_SELF), &self));

    /* A ring of shared ids: this rank's and the next one's. */
    conset_halo *ring = NULL;
    const uint64_t ids[2] = {(uint64_t)rank, (uint64_t)next};
    check(conset_halo_from_shared_ids(all, many ? 2 : 1, ids, &ring));
    uint32_t copies[2] = {0, 0};
    int owned[2] = {0, 0};
    float x[4] = {1, 2, 3, 4};
    const size_t items = conset_halo_items(ring);
    IS(items == (many ? 2u : 1u));
    check(conset_halo_multiplicity(ring, copies, items));
    check(conset_halo_owned(ring, owned, items));
    IS(copies[0] == (many ? 2u : 1u));
    IS(owned[0] == (rank == 0 || !many) || ranks == 2);
    check(conset_halo_sum(ring, CONSET_FLOAT, x, 2));
    IS(x[0] == (many ? 4 : 1) && x[1] == (many ? 6 : 2));
    double y[2] = {rank, rank};
    check(conset_halo_combine(ring, CONSET_MAX, CONSET_DOUBLE, y, 1));
    IS(y[0] == (last > rank ? last : rank));
    uint64_t exchange = 0;
    int done = 0;
    y[0] = y[1] = 1;
    check(conset_halo_start_combine(ring, CONSET_DOUBLE, y, 1, &exchange));
    IS(y[0] == 1);
    while (!done)
        check(conset_halo_test(ring, exchange, &done));
    check(conset_halo_wait(ring, exchange, CONSET_ADD, CONSET_DOUBLE, y, 1));
    IS(y[0] == (many ? 2 : 1));
    expect(conset_halo_wait(ring, exchange, CONSET_ADD, CONSET_DOUBLE, y, 1), CONSET_BAD_ARGUMENT,
           "no exchange of this halo");
    expect(conset_halo_exchange(ring, CONSET_DOUBLE, y, 1), CONSET_BAD_ARGUMENT,
           "owned entries and ghosts");
    expect(conset_halo_sum(ring, 99, y, 1), CONSET_BAD_ARGUMENT, "no type");
    expect(conset_halo_sum(ring, CONSET_DOUBLE, y, 0), CONSET_BAD_ARGUMENT, "for each entry");

    /* Ranges of three ids, and a ghost of the next rank. */
    conset_halo *range = NULL;
    const uint64_t first = 3 * (uint64_t)rank, ghost = 3 * (uint64_t)next;
    uint64_t found = 99;
    size_t count = 0;
    check(conset_halo_from_range(all, first, first + 3, (size_t)many, &ghost, &range));
    check(conset_halo_ghosts(range, &found, 1, &count));
    IS(count == (size_t)many && (!many || found == ghost));
    int64_t z[4] = {rank, 10, 20, -1};
    check(conset_halo_exchange(range, CONSET_INT64, z, 1));
    IS(z[3] == (many ? next : -1));
    z[3] = 5;
    check(conset_halo_reduce(range, CONSET_ADD, CONSET_INT64, z, 1));
    IS(z[0] == rank + (many ? 5 : 0));
    z[0] = rank;
    check(conset_halo_start(range, CONSET_INT64, z, 1, &exchange));
    expect(conset_halo_wait(range, exchange, CONSET_ADD, CONSET_INT64, z, 1), CONSET_BAD_ARGUMENT,
           "CONSET_COPY");
    check(conset_halo_wait(range, exchange, CONSET_COPY, CONSET_INT64, z, 1));
    IS(z[3] == (many ? next : 5));
    check(conset_halo_start_reduce(range, CONSET_INT64, z, 1, &exchange));
    check(conset_halo_wait(range, exchange, CONSET_MIN, CONSET_INT64, z, 1));
    struct {
        char name[5];
    } names[4] = {{"own"}, {"own"}, {"own"}, {"none"}};
    double pairs[8] = {rank, -rank, 0, 0, 0, 0, -1, -1};
    const conset_field fields[2] = {{names, sizeof *names}, {pairs, 2 * sizeof *pairs}};
    check(conset_halo_exchange_fields(range, fields, 2));
    IS(strcmp(names[3].name, many ? "own" : "none") == 0);
    IS(pairs[7] == (many ? -next : -1));

    /* The same ids in lists, and rows of a matrix that has them as columns. */
    conset_halo *listed = NULL, *rows = NULL;
    const uint64_t list[4] = {first, first + 1, first + 2, ghost};
    const int32_t ptr[4] = {0, 1, 2, 4};
    const int32_t columns[4] = {(int32_t)first, (int32_t)first + 1, (int32_t)first + 2, (int32_t)ghost};
    uint32_t local[4];
    check(conset_halo_from_owned(all, many ? 4 : 3, list, 3, &listed));
    check(conset_halo_from_rows(all, first, first + 3, CONSET_INT32, ptr, columns, 4, local, &rows));
    IS(local[0] == 0 && local[2] == 2 && local[3] == (many ? 3u : 0u));
    IS(conset_halo_items(listed) == conset_halo_items(rows));
    conset_halo *nothing = NULL;
    expect(conset_halo_from_rows(self, 0, 3, CONSET_DOUBLE, ptr, columns, 4, local, &nothing),
           CONSET_BAD_ARGUMENT, "no type of integers");

    /* What one rank has wrongly is an error of all. */
    const uint64_t nobodys = 1000;
    char says[40];
    snprintf(says, sizeof says, "rank %d: id 1000", ranks - 1);
    expect(conset_halo_from_range(all, first, first + 3, rank == ranks - 1, &nobodys, &nothing),
           CONSET_LAYOUT, says);

    int32_t sums[2] = {1, rank};
    check(conset_attached_allreduce(all, CONSET_ADD, CONSET_INT32, sums, 2));
    IS(sums[0] == ranks && sums[1] == ranks * (ranks - 1) / 2);
    check(conset_attached_broadcast(all, ranks - 1, CONSET_INT32, &rank, 1));
    IS(rank == ranks - 1);
    expect(conset_attached_broadcast(self, 1, CONSET_INT32, &rank, 1), CONSET_BAD_ARGUMENT,
           "rank 1 of 1");
    check(conset_attached_barrier(all));

    /* Several at a time, beside exchanges, completed in another order. */
    uint64_t reductions[6];
    for (int i = 0; i < 6; i++) {
        sums[0] = i, sums[1] = 1;
        check(conset_attached_start_allreduce(all, CONSET_ADD, CONSET_INT32, sums, 2, &reductions[i]));
    }
    check(conset_halo_exchange(range, CONSET_INT64, z, 1));
    expect(conset_attached_wait(all, reductions[5], CONSET_INT64, sums, 1), CONSET_BAD_ARGUMENT,
           "type or length");
    done = 0;
    while (!done)
        check(conset_attached_test(all, reductions[5], &done));
    for (int i = 5; i >= 0; i--) {
        check(conset_attached_wait(all, reductions[i], CONSET_INT32, sums, 2));
        IS(sums[0] == i * ranks && sums[1] == ranks);
    }
    expect(conset_attached_wait(all, reductions[5], CONSET_INT32, sums, 2), CONSET_BAD_ARGUMENT,
           "completed twice");

    /* In any order. */
    conset_detach(all);
    conset_halo_free(ring);
    conset_halo_free(range);
    conset_halo_free(listed);
    conset_halo_free(rows);
    conset_detach(self);
    expect(conset_halo_sum(ring, CONSET_DOUBLE, y, 1), CONSET_BAD_HANDLE, "was freed");
    if (wrong == 0)
        printf("all as expected\n");
    MPI_Finalize();
    return wrong > 0;
}
