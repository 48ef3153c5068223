/* Conjugate gradients in an MPI program, with conset's halos and reductions and without a callback.
 *
 *     mpirun -n 4 attach [points per side]
 *
 * Each rank makes its own rows of the five-point Laplacian, with global columns, and nothing else.
 * The same function then solves the system on every rank alone, attached to MPI_COMM_SELF, and the
 * solutions are compared. */
#include <conset.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Rows first to end - 1 of the matrix, and the halo of their vectors. */
typedef struct {
    size_t owned, items;
    int64_t *ptr, *columns; /* global */
    uint32_t *local;        /* the same columns in the local vector */
    double *values;
    conset_attached *ranks;
    conset_halo *halo;
} matrix;

static matrix rows_of(MPI_Comm comm, int64_t side, int64_t first, int64_t end)
{
    matrix a = {.owned = (size_t)(end - first)};
    a.ptr = calloc(a.owned + 1, sizeof *a.ptr);
    a.columns = calloc(5 * a.owned + 1, sizeof *a.columns);
    a.values = calloc(5 * a.owned + 1, sizeof *a.values);
    a.local = calloc(5 * a.owned + 1, sizeof *a.local);
    size_t at = 0;
    for (int64_t row = first; row < end; row++) {
        const int64_t x = row % side, y = row / side;
        const int64_t columns[5] = {row - side, row - 1, row, row + 1, row + side};
        const int inside[5] = {y > 0, x > 0, 1, x + 1 < side, y + 1 < side};
        for (int k = 0; k < 5; k++) {
            if (inside[k]) {
                a.columns[at] = columns[k];
                a.values[at++] = k == 2 ? 4 : -1;
            }
        }
        a.ptr[row - first + 1] = (int64_t)at;
    }
    check(conset_attach(MPI_Comm_c2f(comm), &a.ranks));
    check(conset_halo_from_rows(a.ranks, (uint64_t)first, (uint64_t)end, CONSET_INT64, a.ptr,
                                a.columns, at, a.local, &a.halo));
    a.items = conset_halo_items(a.halo);
    return a;
}

static void free_rows(matrix *a)
{
    conset_halo_free(a->halo);
    conset_detach(a->ranks);
    free(a->ptr);
    free(a->columns);
    free(a->values);
    free(a->local);
}

/* y = A x. Rows are computed while the ghosts of x are on their way: first those that need none. */
static void multiply(const matrix *a, double *x, double *y)
{
    uint64_t exchange;
    check(conset_halo_start(a->halo, CONSET_DOUBLE, x, 1, &exchange));
    for (int ghosts = 0; ghosts < 2; ghosts++) {
        for (size_t row = 0; row < a->owned; row++) {
            double sum = 0;
            int has_ghosts = 0;
            for (int64_t k = a->ptr[row]; k < a->ptr[row + 1]; k++) {
                has_ghosts |= a->local[k] >= a->owned;
                sum += a->values[k] * x[a->local[k]];
            }
            if (has_ghosts == ghosts)
                y[row] = sum;
        }
        if (!ghosts)
            check(conset_halo_wait(a->halo, exchange, CONSET_COPY, CONSET_DOUBLE, x, 1));
    }
}

/* x y and x x, by one reduction. */
static void products(const matrix *a, const double *x, const double *y, double sums[2])
{
    sums[0] = sums[1] = 0;
    for (size_t i = 0; i < a->owned; i++) {
        sums[0] += x[i] * y[i];
        sums[1] += x[i] * x[i];
    }
    check(conset_attached_allreduce(a->ranks, CONSET_ADD, CONSET_DOUBLE, sums, 2));
}

/* Solves A x = 1; the number of iterations. */
static int solve(const matrix *a, double *x)
{
    double *p = calloc(3 * a->items + 1, sizeof *p), *r = p + a->items, *q = r + a->items;
    for (size_t i = 0; i < a->owned; i++) {
        x[i] = 0;
        p[i] = r[i] = 1;
    }
    double sums[2], rr, first;
    int step = 0;
    products(a, r, r, sums);
    first = rr = sums[1];
    while (step < 1000 && rr > 1e-24 * first) {
        multiply(a, p, q);
        products(a, p, q, sums);
        const double alpha = rr / sums[0], old = rr;
        for (size_t i = 0; i < a->owned; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        products(a, r, r, sums);
        rr = sums[1];
        for (size_t i = 0; i < a->owned; i++)
            p[i] = r[i] + rr / old * p[i];
        step++;
    }
    free(p);
    return step;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int64_t side = argc > 1 ? atoi(argv[1]) : 24, n = side * side;
    const int64_t first = n * rank / ranks, end = n * (rank + 1) / ranks;

    matrix own = rows_of(MPI_COMM_WORLD, side, first, end);
    double *x = calloc(own.items + 1, sizeof *x);
    const int steps = solve(&own, x);

    matrix whole = rows_of(MPI_COMM_SELF, side, 0, n);
    double *all = calloc(whole.items + 1, sizeof *all), error = 0, largest = 0;
    const int alone = solve(&whole, all);
    for (int64_t row = first; row < end; row++) {
        error = fmax(error, fabs(x[row - first] - all[row]));
        largest = fmax(largest, fabs(all[row]));
    }
    check(conset_attached_allreduce(own.ranks, CONSET_MAX, CONSET_DOUBLE, &error, 1));
    if (rank == 0)
        printf("%d ranks, %d iterations (alone %d), agrees: %s\n", ranks, steps, alone,
               error <= 1e-9 * largest ? "yes" : "no");

    free_rows(&whole);
    free_rows(&own);
    free(all);
    free(x);
    MPI_Finalize();
    return error <= 1e-9 * largest ? 0 : 1;
}
