/* Every way to exchange, on vectors whose entries are known: what each cell then has is checked.
 *
 *     halo [fabric|threads] [trace.json]
 *
 * Sixteen cells in a ring share an entry with each neighbour: cell c has the ids c and c + 1. */
#include <conset.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 16 };

typedef struct {
    const conset_layout *layout;
    conset_plan *one, *two;          /* of 1 word and of 2 words for each item */
    conset_plan *forward, *backward; /* owners' entries to ghosts, and back */
    conset_trees *trees, *wide;      /* of 1 word and of 3 words */
    uint32_t set;
} work;

static void check(int status)
{
    if (status != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        exit(1);
    }
}

/* Ends the run unless something holds. */
#define EXPECT(holds)                          \
    do {                                       \
        if (!(holds))                          \
            return conset_abort(cell, #holds); \
    } while (0)
#define TRY(call)                   \
    do {                            \
        int status_ = (call);       \
        if (status_ != CONSET_OK)   \
            return status_;         \
    } while (0)

/* The positions of a cell's connections out, or in: here each has one item. */
static int positions(const work *w, const uint32_t *connections, size_t count, int sends,
                     uint32_t *found)
{
    for (size_t i = 0; i < count; i++) {
        conset_list list;
        TRY(conset_layout_list(w->layout, connections[i], &list));
        found[i] = sends ? list.send[0] : list.receive[0];
    }
    return CONSET_OK;
}

/* Vectors exchanged in two halves, several of them under way. */
static int halves(conset_cell *cell, const work *w, int32_t c, int32_t before, int32_t after)
{
    conset_pending first, second, third, fourth;
    double x[2] = {c, c}, y[2] = {2 * c, 2 * c}, z[2] = {3 * c, 3 * c};
    int32_t a[2] = {c, c}, b[2] = {-c, -c};
    void *both[2] = {a, b};
    const void *from[2] = {a, b};
    const size_t words[2] = {2, 2};
    int done = 0;
    TRY(conset_start(cell, w->one, CONSET_ADD, CONSET_DOUBLE, x, 2, &first));
    TRY(conset_start(cell, w->one, CONSET_COPY, CONSET_DOUBLE, y, 2, &second));
    TRY(conset_start_shared(cell, w->one, CONSET_ADD, CONSET_DOUBLE, z, 2, &third));
    TRY(conset_start_many(cell, w->two, CONSET_COPY, CONSET_INT32, from, words, 2, &fourth));
    x[0] = x[1] = 100;
    /* `done` may be 0 for a while, in which there is time for something else. */
    while (!done)
        TRY(conset_test(cell, &second, &done));
    TRY(conset_wait(cell, w->one, &second, CONSET_DOUBLE, y, 2));
    TRY(conset_wait(cell, w->one, &first, CONSET_DOUBLE, x, 2));
    TRY(conset_wait(cell, w->one, &third, CONSET_DOUBLE, z, 2));
    TRY(conset_wait_many(cell, w->two, &fourth, CONSET_INT32, both, words, 2));
    EXPECT(x[0] == 100 + before && x[1] == 100 + after);
    EXPECT(y[0] == 2 * before && y[1] == 2 * after);
    EXPECT(z[0] == 3 * (c + before) && z[1] == 3 * (c + after));
    EXPECT(a[0] == before && a[1] == after && b[0] == -before && b[1] == -after);
    return CONSET_OK;
}

static int collectives(conset_cell *cell, const work *w, int32_t c)
{
    int64_t total[3] = {1, c, -c}, wide[3] = {1, c, -c};
    TRY(conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_INT64, total, 3));
    EXPECT(total[0] == CELLS && total[1] == CELLS * (CELLS - 1) / 2 && total[2] == -total[1]);
    TRY(conset_allreduce(cell, w->wide, CONSET_ADD, CONSET_INT64, wide, 3));
    EXPECT(memcmp(total, wide, sizeof total) == 0);
    /* Two under way, completed in another order. */
    int64_t one[3] = {1, c, -c};
    conset_pending first, second;
    int done = 0;
    TRY(conset_start_allreduce(cell, w->trees, CONSET_ADD, CONSET_INT64, one, 3, &first));
    TRY(conset_start_allreduce(cell, w->wide, CONSET_MAX, CONSET_INT64, one, 3, &second));
    while (!done)
        TRY(conset_test(cell, &second, &done));
    TRY(conset_wait_allreduce(cell, &second, CONSET_INT64, one, 3));
    EXPECT(one[0] == 1 && one[1] == CELLS - 1 && one[2] == 0);
    TRY(conset_wait_allreduce(cell, &first, CONSET_INT64, one, 3));
    EXPECT(memcmp(total, one, sizeof total) == 0);
    uint32_t root = CELLS;
    TRY(conset_trees_root(w->trees, &root));
    int64_t count = 1;
    TRY(conset_reduce(cell, w->trees, CONSET_ADD, CONSET_INT64, &count, 1));
    EXPECT(c != (int32_t)root || count == CELLS);
    float from = (float)c;
    TRY(conset_broadcast(cell, w->trees, 5, CONSET_FLOAT, &from, 1));
    EXPECT(from == 5);
    /* Cells 5 and 7 have the greatest. */
    double greatest = -(c - 6.0) * (c - 6.0) - (c == 6 ? 100 : 0);
    uint64_t at = 10 * (uint64_t)c;
    TRY(conset_allreduce_max_at(cell, w->trees, CONSET_DOUBLE, &greatest, &at));
    EXPECT(greatest == -1 && at == 50);
    return conset_barrier(cell, w->trees);
}

static int exchange(conset_cell *cell, void *data)
{
    const work *w = data;
    const int32_t c = (int32_t)conset_id(cell), before = (c + CELLS - 1) % CELLS,
                  after = (c + 1) % CELLS;
    EXPECT(conset_cell_count(cell) == CELLS);

    /* Both neighbours' copies are added to the own one. */
    double sum[2] = {c, c};
    TRY(conset_sum_shared(cell, w->one, CONSET_DOUBLE, sum, 2));
    EXPECT(sum[0] == c + before && sum[1] == c + after);
    float most[2] = {(float)c, (float)c};
    TRY(conset_exchange(cell, w->one, CONSET_MAX, CONSET_FLOAT, most, 2));
    EXPECT(most[0] == (c > before ? c : before) && most[1] == (c > after ? c : after));
    int64_t least[2] = {c, c};
    TRY(conset_exchange_by(cell, CONSET_BY_MESSAGES, w->one, CONSET_MIN, CONSET_INT64, least, 2));
    EXPECT(least[0] == (c < before ? c : before) && least[1] == (c < after ? c : after));

    /* Cell c owns id c and has id c + 1 as a ghost. */
    double owned[2] = {c, c};
    TRY(conset_exchange(cell, w->forward, CONSET_COPY, CONSET_DOUBLE, owned, 2));
    EXPECT(owned[0] == c && owned[1] == after);
    TRY(conset_exchange(cell, w->backward, CONSET_ADD, CONSET_DOUBLE, owned, 2));
    EXPECT(owned[0] == 2 * c && owned[1] == after);
    TRY(conset_combine_owned(cell, w->backward, w->forward, CONSET_ADD, CONSET_DOUBLE, owned, 2));
    EXPECT(owned[0] == 3 * c && owned[1] == 3 * after);

    /* Two vectors at a time. */
    int32_t a[2] = {c, c}, b[2] = {-c, -c};
    void *both[2] = {a, b};
    const size_t words[2] = {2, 2};
    TRY(conset_exchange_many(cell, w->two, CONSET_COPY, CONSET_INT32, both, words, 2));
    EXPECT(a[0] == before && a[1] == after && b[0] == -before && b[1] == -after);

    /* All of it by messages. */
    double letters[2] = {c, c}, ghosts[2] = {c, after};
    TRY(conset_combine_shared_by(cell, CONSET_BY_MESSAGES, w->one, CONSET_ADD, CONSET_DOUBLE, letters, 2));
    EXPECT(letters[0] == sum[0] && letters[1] == sum[1]);
    TRY(conset_combine_shared_by(cell, CONSET_BY_MESSAGES, w->one, CONSET_MAX, CONSET_DOUBLE, letters, 2));
    EXPECT(letters[0] == sum[0] && letters[1] == sum[1]);
    TRY(conset_combine_owned_by(cell, CONSET_BY_MESSAGES, w->backward, w->forward,
                                CONSET_ADD, CONSET_DOUBLE, ghosts, 2));
    EXPECT(ghosts[0] == 2 * c && ghosts[1] == 2 * after);

    TRY(halves(cell, w, c, before, after));
    TRY(collectives(cell, w, c));

    /* Each id counts once. */
    int own[2];
    uint32_t copies[2];
    TRY(conset_plan_owned(w->one, (uint32_t)c, own, 2));
    TRY(conset_plan_multiplicity(w->one, (uint32_t)c, copies, 2));
    EXPECT(copies[0] == 2 && copies[1] == 2);
    int32_t once = own[0] + own[1];
    TRY(conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_INT32, &once, 1));
    EXPECT(once == CELLS);

    /* The set as it is: a word of each connection, by buffers and by elements. */
    const uint32_t *out, *in;
    size_t outs, ins;
    TRY(conset_connections_out(cell, w->set, &out, &outs));
    TRY(conset_connections_in(cell, w->set, &in, &ins));
    EXPECT(outs == 2 && ins == 2);
    int32_t sent[2] = {c, c}, got[2] = {-1, -1};
    TRY(conset_exchange_words(cell, w->set, CONSET_INT32, sent, 2, got, 2));
    EXPECT(got[0] + got[1] == before + after);
    got[0] = got[1] = -1;
    TRY(conset_exchange_words_by(cell, CONSET_BY_MESSAGES, w->set, CONSET_INT32, sent, 2, got, 2));
    EXPECT(got[0] + got[1] == before + after);

    /* The same between positions of a vector. */
    uint32_t sending[2], receiving[2];
    const size_t each[3] = {0, 1, 2};
    TRY(positions(w, out, outs, 1, sending));
    TRY(positions(w, in, ins, 0, receiving));
    const conset_rows send = {outs, each, sending}, receive = {ins, each, receiving};
    conset_lists *lists;
    int64_t listed[2] = {c, c};
    TRY(conset_lists_new(&send, &receive, 1, &lists));
    const int status = conset_exchange_lists(cell, w->set, lists, CONSET_ADD, CONSET_INT64, listed, 2);
    conset_lists_free(lists);
    TRY(status);
    EXPECT(listed[0] == c + before && listed[1] == c + after);

    /* Messages: round the ring. */
    double letter = c, from = -1;
    TRY(conset_instantiate_messages(cell));
    TRY(conset_msg_send(cell, (uint32_t)after, CONSET_DOUBLE, &letter, 1));
    TRY(conset_msg_receive(cell, (uint32_t)before, CONSET_DOUBLE, &from, 1));
    EXPECT(from == before);
    return conset_compute(cell, 100);
}

/* Copies of shared ids; owners to ghosts, and back. */
static void make_layouts(conset_layout **layouts)
{
    size_t first[CELLS + 1], owned[CELLS];
    uint64_t ids[2 * CELLS];
    first[0] = 0;
    for (size_t cell = 0; cell < CELLS; cell++) {
        ids[2 * cell] = cell;
        ids[2 * cell + 1] = (cell + 1) % CELLS;
        first[cell + 1] = 2 * cell + 2;
        owned[cell] = 1;
    }
    check(conset_layout_from_shared_ids(CELLS, first, ids, &layouts[0]));
    check(conset_layout_from_owned(CELLS, first, ids, owned, &layouts[1], NULL));
    check(conset_layout_reversed(layouts[1], &layouts[2]));
}

static conset_image *compiled(conset_layout **layouts)
{
    const conset_set sets[4] = {
        {"one", layouts[0], 1}, {"two", layouts[0], 2}, {"there", layouts[1], 1}, {"back", layouts[2], 1}};
    const conset_tree wide = {"wide-", 3, CONSET_TREE_ALLREDUCE};
    conset_compile_options options;
    conset_image *image;
    check(conset_compile_options_init(&options));
    options.trees = &wide;
    options.tree_count = 1;
    check(conset_compile("ring:16", sets, 4, &options, &image));
    return image;
}

static void make_work(work *w, const conset_image *image, conset_layout **layouts)
{
    w->layout = layouts[0];
    check(conset_plan_new(image, "one", layouts[0], 1, &w->one));
    check(conset_plan_new(image, "two", layouts[0], 2, &w->two));
    check(conset_plan_new(image, "there", layouts[1], 1, &w->forward));
    check(conset_plan_new(image, "back", layouts[2], 1, &w->backward));
    check(conset_trees_new(image, &w->trees));
    check(conset_trees_prefixed(image, "wide-", &w->wide));
    check(conset_plan_set(w->one, &w->set));
    if (conset_trees_words(w->wide) != 3 || conset_plan_block(w->two) != 2)
        exit(1);
}

static void free_work(work *w)
{
    conset_plan_free(w->one);
    conset_plan_free(w->two);
    conset_plan_free(w->forward);
    conset_plan_free(w->backward);
    conset_trees_free(w->trees);
    conset_trees_free(w->wide);
}

static void free_layouts(conset_layout **layouts)
{
    for (int i = 0; i < 3; i++)
        conset_layout_free(layouts[i]);
}

int main(int argc, char **argv)
{
    conset_layout *layouts[3];
    make_layouts(layouts);
    int shared[2];
    check(conset_layout_is_shared(layouts[0], &shared[0]));
    check(conset_layout_is_shared(layouts[1], &shared[1]));
    if (!shared[0] || shared[1] || conset_layout_cells(layouts[0]) != CELLS)
        return 1;
    conset_image *image = compiled(layouts);
    work w;
    make_work(&w, image, layouts);

    conset_options options;
    conset_options_init(&options);
    if (argc < 2 || strcmp(argv[1], "fabric") != 0)
        options.transport = CONSET_THREADS;
    options.trace = argc > 2 ? argv[2] : NULL;
    conset_report report;
    check(conset_run(image, &options, exchange, &w, &report));
    uint64_t digest;
    check(conset_image_digest(image, &digest));
    printf("%016" PRIx64 ": all as expected on %zu cells\n", digest, conset_image_cells(image));
    free_work(&w);
    free_layouts(layouts);
    conset_image_free(image);
    return 0;
}
