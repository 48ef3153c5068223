/* A KSP solve of PETSc in which conset's halo replaces the VecScatter of the matrix.
 *
 *     mpicc petsc.c $(pkg-config --cflags --libs PETSc conset) -o petsc && mpirun -n 4 petsc [points per side]
 *
 * The matrix is PETSc's own MPIAIJ: on each rank one matrix of the columns that the rank owns, one of
 * the other columns, and the sorted global numbers of these. The numbers are the ghosts of a halo, so a
 * shell matrix can multiply as PETSc does, with the exchange by conset. The preconditioner still sees the
 * matrix itself. Both solve the same system, and the solutions are compared bit by bit. */
#include <conset.h>
#include <petscksp.h>

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* What replaces the scatter. */
typedef struct {
    Mat diagonal, others;   /* of the MPIAIJ matrix */
    PetscInt owned, ghosts;
    PetscScalar *items;     /* owned, then ghosts, as the halo has them */
    Vec x, far, y;          /* views of `items` and of the result */
    conset_attached *ranks;
    conset_halo *halo;
} scatter;

/* y = A x: the own columns while the ghosts are on their way, then the others. */
static PetscErrorCode multiply(Mat shell, Vec x, Vec y)
{
    scatter *s;
    const PetscScalar *from;
    PetscScalar *to;
    uint64_t exchange;
    PetscFunctionBeginUser;
    PetscCall(MatShellGetContext(shell, &s));
    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(PetscArraycpy(s->items, from, s->owned));
    PetscCall(VecRestoreArrayRead(x, &from));
    PetscCall(VecGetArray(y, &to));
    PetscCall(VecPlaceArray(s->y, to));
    check(conset_halo_start(s->halo, CONSET_DOUBLE, s->items, 1, &exchange));
    PetscCall(MatMult(s->diagonal, s->x, s->y));
    check(conset_halo_wait(s->halo, exchange, CONSET_COPY, CONSET_DOUBLE, s->items, 1));
    PetscCall(MatMultAdd(s->others, s->far, s->y, s->y));
    PetscCall(VecResetArray(s->y));
    PetscCall(VecRestoreArray(y, &to));
    PetscFunctionReturn(0);
}

static PetscErrorCode scatter_of(Mat a, scatter *s)
{
    const PetscInt *numbers;
    PetscInt first, end;
    uint64_t *ids;
    PetscFunctionBeginUser;
    PetscCall(MatMPIAIJGetSeqAIJ(a, &s->diagonal, &s->others, &numbers));
    PetscCall(MatGetOwnershipRange(a, &first, &end));
    PetscCall(MatGetSize(s->others, NULL, &s->ghosts));
    s->owned = end - first;
    PetscCall(PetscMalloc1(s->owned + s->ghosts, &s->items));
    PetscCall(PetscMalloc1(s->ghosts, &ids));
    for (PetscInt i = 0; i < s->ghosts; i++)
        ids[i] = (uint64_t)numbers[i];
    check(conset_attach(MPI_Comm_c2f(PetscObjectComm((PetscObject)a)), &s->ranks));
    check(conset_halo_from_range(s->ranks, (uint64_t)first, (uint64_t)end, (size_t)s->ghosts, ids,
                                 &s->halo));
    PetscCall(PetscFree(ids));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, s->owned, s->items, &s->x));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, s->ghosts, s->items + s->owned, &s->far));
    PetscCall(VecCreateSeqWithArray(PETSC_COMM_SELF, 1, s->owned, NULL, &s->y));
    PetscFunctionReturn(0);
}

static PetscErrorCode free_scatter(scatter *s)
{
    PetscFunctionBeginUser;
    PetscCall(VecDestroy(&s->x));
    PetscCall(VecDestroy(&s->far));
    PetscCall(VecDestroy(&s->y));
    PetscCall(PetscFree(s->items));
    conset_halo_free(s->halo);
    conset_detach(s->ranks);
    PetscFunctionReturn(0);
}

/* Solves A x = 1 by conjugate gradients, multiplying by `by`. */
static PetscErrorCode solve(Mat by, Mat a, Vec x, PetscInt *steps)
{
    KSP ksp;
    PC pc;
    Vec ones;
    PetscFunctionBeginUser;
    PetscCall(VecDuplicate(x, &ones));
    PetscCall(VecSet(ones, 1));
    PetscCall(KSPCreate(PetscObjectComm((PetscObject)a), &ksp));
    PetscCall(KSPSetType(ksp, KSPCG));
    PetscCall(KSPSetOperators(ksp, by, a));
    PetscCall(KSPGetPC(ksp, &pc));
    PetscCall(PCSetType(pc, PCJACOBI));
    PetscCall(KSPSetTolerances(ksp, 1e-10, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT));
    PetscCall(KSPSolve(ksp, ones, x));
    PetscCall(KSPGetIterationNumber(ksp, steps));
    PetscCall(KSPDestroy(&ksp));
    PetscCall(VecDestroy(&ones));
    PetscFunctionReturn(0);
}

/* The five-point Laplacian. */
static PetscErrorCode laplacian(PetscInt side, Mat *a)
{
    const PetscInt n = side * side;
    PetscInt first, end;
    PetscFunctionBeginUser;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 5, NULL, 5, NULL, a));
    PetscCall(MatGetOwnershipRange(*a, &first, &end));
    for (PetscInt row = first; row < end; row++) {
        const PetscInt x = row % side, y = row / side;
        const PetscInt columns[5] = {y > 0 ? row - side : -1, x > 0 ? row - 1 : -1, row,
                                     x + 1 < side ? row + 1 : -1, y + 1 < side ? row + side : -1};
        const PetscScalar values[5] = {-1, -1, 4, -1, -1};
        /* Negative columns are ignored. */
        PetscCall(MatSetValues(*a, 1, &row, 5, columns, values, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*a, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*a, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    Mat a, shell;
    Vec own, ours;
    scatter s;
    PetscInt steps[2], rows;
    PetscBool same;
    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(laplacian(argc > 1 ? atoi(argv[1]) : 24, &a));
    PetscCall(MatCreateVecs(a, &own, &ours));
    PetscCall(scatter_of(a, &s));
    PetscCall(MatGetLocalSize(a, &rows, NULL));
    PetscCall(MatCreateShell(PETSC_COMM_WORLD, rows, rows, PETSC_DETERMINE, PETSC_DETERMINE, &s, &shell));
    PetscCall(MatShellSetOperation(shell, MATOP_MULT, (void (*)(void))multiply));

    PetscCall(solve(a, a, own, &steps[0]));
    PetscCall(solve(shell, a, ours, &steps[1]));
    PetscCall(VecEqual(own, ours, &same));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%d and %d iterations, the same bits: %s\n", (int)steps[0],
                          (int)steps[1], same ? "yes" : "no"));

    PetscCall(free_scatter(&s));
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&a));
    PetscCall(VecDestroy(&own));
    PetscCall(VecDestroy(&ours));
    PetscCall(PetscFinalize());
    return same && steps[0] == steps[1] ? 0 : 1;
}
