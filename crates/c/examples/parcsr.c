/* The products of a matrix as hypre's ParCSR has it, with conset's halo for its communication package.
 *
 *     mpirun -n 4 parcsr [points per side]
 *
 * A ParCSR matrix has on each rank a range of rows, the entries whose columns are in the same range
 * (`diag`, local columns), all others (`offd`, columns counted from 0 without gaps), and for each
 * column of `offd` its global number (`col_map_offd`, ascending). With hypre's names the halo is
 *
 *     conset_halo_from_range(ranks, row_starts[0], row_starts[1], num_cols_offd, col_map_offd, &halo)
 *
 * It needs no hypre. The product and the transposed product are compared with the entries' formula. */
#include <conset.h>
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

typedef struct {
    int *i, *j;
    double *data;
} csr;

typedef struct {
    int64_t row_starts[2];
    csr diag, offd;
    size_t rows, num_cols_offd;
    uint64_t *col_map_offd;
    conset_attached *ranks;
    conset_halo *halo;
} parcsr;

/* The entries of a row of a grid, which is not symmetric: columns and small whole numbers. */
static int entries(int64_t side, int64_t row, int64_t columns[5], double values[5])
{
    const int64_t x = row % side, y = row / side;
    const int64_t all[5] = {row - side, row - 1, row, row + 1, row + side};
    const int inside[5] = {y > 0, x > 0, 1, x + 1 < side, y + 1 < side};
    int count = 0;
    for (int k = 0; k < 5; k++) {
        if (inside[k]) {
            columns[count] = all[k];
            values[count++] = (double)((row * 7 + all[k] * 3 + k) % 11 - 5);
        }
    }
    return count;
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static csr new_csr(size_t rows)
{
    const csr a = {calloc(rows + 1, sizeof(int)), calloc(5 * rows + 1, sizeof(int)),
                   calloc(5 * rows + 1, sizeof(double))};
    return a;
}

static void free_csr(csr *a)
{
    free(a->i);
    free(a->j);
    free(a->data);
}

/* The matrix as an application of hypre would have it, and its halo. */
static parcsr new_matrix(int64_t side, int64_t first, int64_t end)
{
    parcsr a = {.row_starts = {first, end}, .rows = (size_t)(end - first)};
    int64_t columns[5];
    double values[5];
    a.diag = new_csr(a.rows);
    a.offd = new_csr(a.rows);
    a.col_map_offd = calloc(5 * a.rows + 1, sizeof *a.col_map_offd);
    for (int64_t row = first; row < end; row++)
        for (int k = 0, count = entries(side, row, columns, values); k < count; k++)
            if (columns[k] < first || columns[k] >= end)
                a.col_map_offd[a.num_cols_offd++] = (uint64_t)columns[k];
    qsort(a.col_map_offd, a.num_cols_offd, sizeof *a.col_map_offd, by_value);
    size_t different = 0;
    for (size_t k = 0; k < a.num_cols_offd; k++)
        if (k == 0 || a.col_map_offd[k] != a.col_map_offd[different - 1])
            a.col_map_offd[different++] = a.col_map_offd[k];
    a.num_cols_offd = different;
    for (size_t row = 0; row < a.rows; row++) {
        int d = a.diag.i[row], o = a.offd.i[row];
        const int count = entries(side, first + (int64_t)row, columns, values);
        for (int k = 0; k < count; k++) {
            const uint64_t column = (uint64_t)columns[k];
            if (columns[k] >= first && columns[k] < end) {
                a.diag.j[d] = (int)(columns[k] - first);
                a.diag.data[d++] = values[k];
            } else {
                const uint64_t *found = bsearch(&column, a.col_map_offd, a.num_cols_offd,
                                                sizeof column, by_value);
                a.offd.j[o] = (int)(found - a.col_map_offd);
                a.offd.data[o++] = values[k];
            }
        }
        a.diag.i[row + 1] = d;
        a.offd.i[row + 1] = o;
    }
    check(conset_attach(MPI_Comm_c2f(MPI_COMM_WORLD), &a.ranks));
    check(conset_halo_from_range(a.ranks, (uint64_t)a.row_starts[0], (uint64_t)a.row_starts[1],
                                 a.num_cols_offd, a.col_map_offd, &a.halo));
    return a;
}

static void free_matrix(parcsr *a)
{
    conset_halo_free(a->halo);
    conset_detach(a->ranks);
    free_csr(&a->diag);
    free_csr(&a->offd);
    free(a->col_map_offd);
}

/* y += B x, or with `transposed` x += B' y. */
static void local(const csr *b, size_t rows, double *x, double *y, int transposed)
{
    for (size_t row = 0; row < rows; row++)
        for (int k = b->i[row]; k < b->i[row + 1]; k++) {
            if (transposed)
                x[b->j[k]] += b->data[k] * y[row];
            else
                y[row] += b->data[k] * x[b->j[k]];
        }
}

/* y = A x (hypre_ParCSRMatrixMatvec). x has room for the columns of offd after its own. */
static void matvec(const parcsr *a, double *x, double *y)
{
    uint64_t exchange;
    check(conset_halo_start(a->halo, CONSET_DOUBLE, x, 1, &exchange));
    for (size_t row = 0; row < a->rows; row++)
        y[row] = 0;
    local(&a->diag, a->rows, x, y, 0);
    check(conset_halo_wait(a->halo, exchange, CONSET_COPY, CONSET_DOUBLE, x, 1));
    local(&a->offd, a->rows, x + a->rows, y, 0);
}

/* x = A' y (hypre_ParCSRMatrixMatvecT): contributions to columns of other ranks are added there. */
static void matvec_transposed(const parcsr *a, double *x, double *y)
{
    for (size_t item = 0; item < a->rows + a->num_cols_offd; item++)
        x[item] = 0;
    local(&a->diag, a->rows, x, y, 1);
    local(&a->offd, a->rows, x + a->rows, y, 1);
    check(conset_halo_reduce(a->halo, CONSET_ADD, CONSET_DOUBLE, x, 1));
}

static double number(int64_t row)
{
    return (double)(row % 17 + 1);
}

/* Rows of A x and of A' x that differ from the formula; all numbers are whole, so none may. */
static int wrong(const parcsr *a, int64_t side)
{
    double *x = calloc(a->rows + a->num_cols_offd + 1, sizeof *x), *y = calloc(a->rows + 1, sizeof *y);
    double *back = calloc(a->rows + a->num_cols_offd + 1, sizeof *back), values[5];
    int64_t columns[5];
    int found = 0;
    for (size_t row = 0; row < a->rows; row++)
        x[row] = number(a->row_starts[0] + (int64_t)row);
    matvec(a, x, y);
    matvec_transposed(a, back, x);
    for (size_t at = 0; at < a->rows; at++) {
        const int64_t row = a->row_starts[0] + (int64_t)at;
        double forward = 0, backward = 0;
        for (int k = 0, count = entries(side, row, columns, values); k < count; k++)
            forward += values[k] * number(columns[k]);
        /* The pattern is symmetric: rows with an entry in this column are the columns of this row. */
        int64_t rows[5];
        const int count = entries(side, row, rows, values);
        for (int k = 0; k < count; k++)
            for (int m = 0, more = entries(side, rows[k], columns, values); m < more; m++)
                backward += columns[m] == row ? values[m] * number(rows[k]) : 0;
        found += y[at] != forward || back[at] != backward;
    }
    free(x);
    free(y);
    free(back);
    return found;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const int64_t side = argc > 1 ? atoi(argv[1]) : 20, n = side * side;
    parcsr a = new_matrix(side, n * rank / ranks, n * (rank + 1) / ranks);
    int64_t bad = wrong(&a, side);
    check(conset_attached_allreduce(a.ranks, CONSET_ADD, CONSET_INT64, &bad, 1));
    if (rank == 0)
        printf("%d ranks, %lld rows, %lld wrong\n", ranks, (long long)n, (long long)bad);
    free_matrix(&a);
    MPI_Finalize();
    return bad > 0;
}
