/* Parts that share nodes, as finite elements have them: a bar of elements, dealt to parts. Each part has
 * a copy of the nodes on its borders, and copies are added up. conset finds the cell of each part.
 *
 *     bar [fabric|threads] */
#include <conset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 6, ELEMENTS = 10, NODES = ELEMENTS + 1 };

typedef struct {
    uint32_t place[PARTS]; /* the cell of each part */
    conset_plan *halo;
    conset_trees *trees;
    double squares[PARTS]; /* what each part's cell ends with */
} work;

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        exit(1);
    }
}

/* Every cell adds up its elements' masses, and all add up the squares of the nodes' masses. */
static int masses(conset_cell *cell, void *data)
{
    work *w = data;
    const uint32_t id = conset_id(cell);
    int part = 0, own[NODES];
    while (part < PARTS && w->place[part] != id)
        part++;
    double mass[NODES], sum = 0;
    const size_t nodes = part < PARTS ? NODES : 0; /* cells without a part take part, too */
    for (size_t node = 0; node < nodes; node++)
        mass[node] = node == 0 || node == ELEMENTS ? 1 : 2;
    int status = conset_sum_shared(cell, w->halo, CONSET_DOUBLE, mass, nodes);
    if (status == CONSET_OK)
        status = conset_plan_owned(w->halo, id, own, nodes); /* each node counts once */
    for (size_t node = 0; status == CONSET_OK && node < nodes; node++)
        sum += own[node] ? mass[node] * mass[node] : 0;
    if (status == CONSET_OK)
        status = conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_DOUBLE, &sum, 1);
    if (part < PARTS)
        w->squares[part] = sum;
    return status;
}

int main(int argc, char **argv)
{
    /* What the solver has: the global ids of each part's nodes. */
    size_t first[PARTS + 1] = {0};
    uint64_t ids[PARTS * NODES];
    for (size_t part = 0; part < PARTS; part++) {
        for (size_t node = 0; node < NODES; node++)
            ids[part * NODES + node] = part * ELEMENTS + node;
        first[part + 1] = (part + 1) * NODES;
    }
    conset_layout *parts, *cells;
    check(conset_layout_from_shared_ids(PARTS, first, ids, &parts));

    /* A cell for each part, and the image. */
    work w;
    conset_image *image;
    const conset_set set = {"halo", parts, 1};
    check(conset_assemble("torus:4x4", PARTS, &set, 1, NULL, w.place, &image));

    /* The layout on these cells, and the plan. */
    check(conset_layout_placed(parts, PARTS, w.place, conset_image_cells(image), &cells));
    check(conset_plan_new(image, "halo", cells, 1, &w.halo));
    check(conset_trees_new(image, &w.trees));

    conset_options options;
    check(conset_options_init(&options));
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        options.transport = CONSET_THREADS;
    check(conset_run(image, &options, masses, &w, NULL));
    int wrong = 0;
    for (int part = 0; part < PARTS; part++)
        wrong += w.squares[part] != 59 * 4 + 2;
    printf("squares %g, %d wrong\n", w.squares[0], wrong);
    conset_plan_free(w.halo);
    conset_trees_free(w.trees);
    conset_layout_free(cells);
    conset_layout_free(parts);
    conset_image_free(image);
    return wrong != 0;
}
