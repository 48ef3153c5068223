/* Conjugate gradients on a matrix in compressed rows, dealt to the cells of a machine.
 *
 *     cg [fabric|threads] [points per side]
 *
 * The matrix is the five-point Laplacian; the right hand side is made from a known solution. The
 * printed numbers are the same, to the bit, on every transport. */
#include <conset.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 16 };

/* A matrix as solvers have it: row r has columns idx[ptr[r]] .. and values val[ptr[r]] .. */
typedef struct {
    size_t rows;
    int32_t *ptr, *idx;
    double *val;
} csr;

/* What all cells share. */
typedef struct {
    const csr *a;
    const conset_matrix *matrix;
    const conset_plan *halo;
    const conset_trees *trees;
    double residual, error; /* written by cell 0 */
    int iterations;
} solver;

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        exit(1);
    }
}

static csr laplacian(int side)
{
    csr a = {(size_t)side * side, NULL, NULL, NULL};
    a.ptr = calloc(a.rows + 1, sizeof *a.ptr);
    a.idx = calloc(5 * a.rows, sizeof *a.idx);
    a.val = calloc(5 * a.rows, sizeof *a.val);
    int at = 0;
    for (int y = 0; y < side; y++) {
        for (int x = 0; x < side; x++) {
            const int row = y * side + x;
            const int columns[5] = {row - side, row - 1, row, row + 1, row + side};
            const int inside[5] = {y > 0, x > 0, 1, x + 1 < side, y + 1 < side};
            for (int k = 0; k < 5; k++) {
                if (inside[k]) {
                    a.idx[at] = columns[k];
                    a.val[at++] = k == 2 ? 4 : -1;
                }
            }
            a.ptr[row + 1] = at;
        }
    }
    return a;
}

static double solution(uint64_t row)
{
    return 1 + (double)(row % 7) / 7;
}

/* y = A x for the own rows, after the ghosts of x have come. */
static int multiply(conset_cell *cell, const solver *s, const conset_local_csr *local,
                    const double *val, double *x, double *y)
{
    int status = conset_exchange(cell, s->halo, CONSET_COPY, CONSET_DOUBLE, x, local->items);
    for (size_t row = 0; row < local->owned; row++) {
        y[row] = 0;
        for (size_t k = local->ptr[row]; k < local->ptr[row + 1]; k++)
            y[row] += val[k] * x[local->idx[k]];
    }
    return status;
}

static int dot(conset_cell *cell, const solver *s, size_t n, const double *x, const double *y,
               double *result)
{
    *result = 0;
    for (size_t i = 0; i < n; i++)
        *result += x[i] * y[i];
    return conset_allreduce(cell, s->trees, CONSET_ADD, CONSET_DOUBLE, result, 1);
}

/* What every cell runs. A call that fails ends the run for all, so it is enough to look at the
 * statuses now and then. */
static int solve(conset_cell *cell, void *data)
{
    solver *s = data;
    conset_local_csr local;
    int status = conset_matrix_local(s->matrix, conset_id(cell), &local);
    if (status != CONSET_OK)
        return status;
    const size_t n = local.owned;
    double *val = calloc(local.entries + 1, sizeof *val);
    double *x = calloc(5 * local.items + 1, sizeof *x);
    double *p = x + local.items, *r = p + local.items, *q = r + local.items, *e = q + local.items;
    status = conset_matrix_values(s->matrix, conset_id(cell), CONSET_INT32, s->a->ptr, CONSET_DOUBLE,
                                  s->a->val, val, local.entries);
    if (status != CONSET_OK)
        goto done;

    /* r = b - A 0 = A solution, p = r */
    for (size_t i = 0; i < n; i++)
        e[i] = solution(local.ids[i]);
    status = multiply(cell, s, &local, val, e, r);
    memcpy(p, r, n * sizeof *p);
    double rr = 0, first, pq = 1;
    status = dot(cell, s, n, r, r, &rr);
    first = rr;
    int step = 0;
    while (status == CONSET_OK && step < 1000 && rr > 1e-20 * first) {
        status = multiply(cell, s, &local, val, p, q);
        if (status == CONSET_OK)
            status = dot(cell, s, n, p, q, &pq);
        const double alpha = rr / pq, old = rr;
        for (size_t i = 0; i < n; i++) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        if (status == CONSET_OK)
            status = dot(cell, s, n, r, r, &rr);
        for (size_t i = 0; i < n; i++)
            p[i] = r[i] + rr / old * p[i];
        step++;
    }
    double error = 0;
    for (size_t i = 0; i < n; i++)
        error = fmax(error, fabs(x[i] - solution(local.ids[i])));
    if (status == CONSET_OK)
        status = conset_allreduce(cell, s->trees, CONSET_MAX, CONSET_DOUBLE, &error, 1);
    if (conset_id(cell) == 0) {
        s->residual = sqrt(rr / first);
        s->error = error;
        s->iterations = step;
    }
done:
    free(val);
    free(x);
    return status;
}

int main(int argc, char **argv)
{
    const char *transport = argc > 1 ? argv[1] : "threads";
    const csr a = laplacian(argc > 2 ? atoi(argv[2]) : 24);
    uint32_t *owner = calloc(a.rows, sizeof *owner);
    for (size_t row = 0; row < a.rows; row++)
        owner[row] = (uint32_t)(row * CELLS / a.rows);

    /* The rows are dealt to the cells: local numbers, and who needs what of whom. */
    conset_matrix *matrix;
    conset_layout *forward;
    check(conset_matrix_new(a.rows, CONSET_INT32, a.ptr, a.idx, owner, CELLS, &matrix));
    check(conset_matrix_layouts(matrix, &forward, NULL));

    /* The exchange is compiled for a machine, with trees for reductions. */
    conset_image *image;
    const conset_set halo = {"halo", forward, 1};
    check(conset_compile("torus:4x4", &halo, 1, NULL, &image));

    /* Every cell runs `solve`, on the emulated machine or on threads. */
    conset_plan *plan;
    conset_trees *trees;
    check(conset_plan_new(image, "halo", forward, 1, &plan));
    check(conset_trees_new(image, &trees));
    solver s = {.a = &a, .matrix = matrix, .halo = plan, .trees = trees};
    conset_options options;
    conset_options_init(&options);
    options.transport = strcmp(transport, "fabric") == 0 ? CONSET_FABRIC : CONSET_THREADS;
    conset_report report;
    check(conset_run(image, &options, solve, &s, &report));

    printf("iterations %d residual %a error %a\n", s.iterations, s.residual, s.error);
    fprintf(stderr, "%s: %" PRIu64 " words in %" PRIu64 " clocks\n", transport, report.words,
            report.clocks);
    conset_trees_free(trees);
    conset_plan_free(plan);
    conset_image_free(image);
    conset_layout_free(forward);
    conset_matrix_free(matrix);
    free(owner);
    free(a.ptr);
    free(a.idx);
    free(a.val);
    return s.error < 1e-8 ? 0 : 1;
}
