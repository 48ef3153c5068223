/* The same program with sets that are compiled to phases, to steps by several planners, and to the best
 * of the two, on both transports: the same bits, for planned exchanges, for messages without a plan, for
 * exchanges in progress and for collectives. */
#include <conset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 16, ITEMS = 2 };

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        exit(1);
    }
}

#define TRY(call)                 \
    do {                          \
        int status_ = (call);     \
        if (status_ != CONSET_OK) \
            return status_;       \
    } while (0)

typedef struct {
    const conset_plan *plan;
    const conset_trees *trees;
    double sums[4][CELLS][ITEMS];
    double total[CELLS];
} work;

static int program(conset_cell *cell, void *data)
{
    work *w = data;
    const uint32_t c = conset_id(cell);
    conset_pending pending;
    for (int way = 0; way < 4; way++)
        for (int i = 0; i < ITEMS; i++)
            w->sums[way][c][i] = 1.0 / (3.0 + c + i);
    TRY(conset_sum_shared(cell, w->plan, CONSET_DOUBLE, w->sums[0][c], ITEMS));
    TRY(conset_combine_shared_by(cell, CONSET_BY_PHASES, w->plan, CONSET_ADD, CONSET_DOUBLE,
                                 w->sums[1][c], ITEMS));
    TRY(conset_combine_shared_by(cell, CONSET_BY_MESSAGES, w->plan, CONSET_ADD, CONSET_DOUBLE,
                                 w->sums[2][c], ITEMS));
    TRY(conset_start_shared(cell, w->plan, CONSET_ADD, CONSET_DOUBLE, w->sums[3][c], ITEMS,
                            &pending));
    TRY(conset_wait(cell, w->plan, &pending, CONSET_DOUBLE, w->sums[3][c], ITEMS));
    w->total[c] = w->sums[0][c][0];
    TRY(conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_DOUBLE, &w->total[c], 1));
    return CONSET_OK;
}

static int no_phases(conset_cell *cell, void *data)
{
    (void)data;
    return conset_instantiate_phase(cell, 0, 0);
}

/* Compiles and runs, and compares with `expected`, or sets it if it is the first. */
static void run(const char *machine, const conset_set *set, const conset_compile_options *how,
                work *expected)
{
    conset_image *image;
    conset_plan *plan;
    conset_trees *trees;
    conset_options options;
    uint32_t phases, steps;
    check(conset_compile(machine, set, 1, how, &image));
    check(conset_image_phases(image, 0, &phases));
    check(conset_image_steps(image, 0, &steps));
    if ((phases == 0) == (steps == 0)) {
        fprintf(stderr, "%u phases and %u steps\n", phases, steps);
        exit(1);
    }
    check(conset_plan_new(image, set->name, set->layout, set->block, &plan));
    check(conset_trees_new(image, &trees));
    conset_options_init(&options);
    for (int transport = CONSET_FABRIC; transport <= CONSET_THREADS; transport++) {
        static work w;
        options.transport = transport;
        w.plan = plan;
        w.trees = trees;
        check(conset_run(image, &options, program, &w, NULL));
        for (int way = 1; way < 4; way++)
            if (memcmp(w.sums[0], w.sums[way], sizeof w.sums[0]) != 0)
                exit(2);
        if (expected->plan == NULL)
            *expected = w;
        if (memcmp(w.sums, expected->sums, sizeof w.sums) != 0)
            exit(3);
        if (memcmp(w.total, expected->total, sizeof w.total) != 0)
            exit(4);
        if (steps > 0 && conset_run(image, &options, no_phases, NULL, NULL) != CONSET_CELL)
            exit(5);
    }
    printf("%s %s\n", machine, steps > 0 ? "steps" : "phases");
    conset_trees_free(trees);
    conset_plan_free(plan);
    conset_image_free(image);
}

int main(void)
{
    static const char *const planners[] = {NULL,        "loaded",          "pairwise",
                                           "recursive", "levels:4x4/ring", "halves:0.75"};
    size_t first[CELLS + 1];
    uint64_t ids[CELLS * ITEMS];
    conset_layout *layout;
    conset_compile_options how;
    static work expected;
    for (size_t c = 0; c <= CELLS; c++)
        first[c] = ITEMS * c;
    for (size_t c = 0; c < CELLS; c++) {
        ids[ITEMS * c] = c;
        ids[ITEMS * c + 1] = (c + 1) % CELLS;
    }
    check(conset_layout_from_shared_ids(CELLS, first, ids, &layout));
    const conset_set set = {"halo", layout, 1};
    conset_compile_options_init(&how);
    run("cm5:16", &set, &how, &expected);
    how.by = CONSET_COMPILE_STEPS;
    for (size_t i = 0; i < sizeof planners / sizeof *planners; i++) {
        how.planner = planners[i];
        run("cm5:16", &set, &how, &expected);
    }
    how.planner = NULL;
    how.by = CONSET_COMPILE_BEST;
    run("cm5:16", &set, &how, &expected);
    /* Loading tables takes longer than any message. */
    run("cm5:16 t_phase=100000", &set, &how, &expected);
    conset_layout_free(layout);
    return 0;
}
