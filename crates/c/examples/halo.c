/* Every way to exchange, on vectors whose entries are known: what each cell then has is checked.
 *
 *     halo [fabric|threads]
 *
 * Sixteen cells in a ring share an entry with each neighbour: cell c has the ids c and c + 1. */
#include <conset.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 16 };

typedef struct {
    const conset_plan *one, *two; /* of 1 word and of 2 words for each item */
    const conset_trees *trees;
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
            return conset_give_up(cell, #holds); \
    } while (0)
#define TRY(call)                   \
    do {                            \
        int status_ = (call);       \
        if (status_ != CONSET_OK)   \
            return status_;         \
    } while (0)

static int exchange(conset_cell *cell, void *data)
{
    const work *w = data;
    const int32_t c = (int32_t)conset_id(cell), before = (c + CELLS - 1) % CELLS,
                  after = (c + 1) % CELLS;
    EXPECT(conset_cells(cell) == CELLS);

    /* Both neighbours' copies are added to the own one. */
    double sum[2] = {c, c};
    TRY(conset_sum_shared(cell, w->one, CONSET_DOUBLE, sum, 2));
    EXPECT(sum[0] == c + before && sum[1] == c + after);
    float most[2] = {(float)c, (float)c};
    TRY(conset_exchange(cell, w->one, CONSET_MAX, CONSET_FLOAT, most, 2));
    EXPECT(most[0] == (c > before ? c : before) && most[1] == (c > after ? c : after));
    int64_t least[2] = {c, c};
    TRY(conset_msg_exchange(cell, w->one, CONSET_MIN, CONSET_INT64, least, 2));
    EXPECT(least[0] == (c < before ? c : before) && least[1] == (c < after ? c : after));

    /* Two vectors at a time. */
    int32_t a[2] = {c, c}, b[2] = {-c, -c};
    void *both[2] = {a, b};
    const size_t words[2] = {2, 2};
    TRY(conset_exchange_many(cell, w->two, CONSET_COPY, CONSET_INT32, both, words, 2));
    EXPECT(a[0] == before && a[1] == after && b[0] == -before && b[1] == -after);

    /* Begun, and ended later; two under way. */
    conset_pending first, second;
    double x[2] = {c, c}, y[2] = {2 * c, 2 * c};
    int done = 0;
    TRY(conset_begin(cell, w->one, CONSET_ADD, CONSET_DOUBLE, x, 2, &first));
    TRY(conset_begin(cell, w->one, CONSET_COPY, CONSET_DOUBLE, y, 2, &second));
    x[0] = x[1] = 100;
    while (!done)
        TRY(conset_test(cell, &second, &done));
    TRY(conset_end(cell, w->one, &second, CONSET_DOUBLE, y, 2));
    TRY(conset_end(cell, w->one, &first, CONSET_DOUBLE, x, 2));
    EXPECT(x[0] == 100 + before && x[1] == 100 + after);
    EXPECT(y[0] == 2 * before && y[1] == 2 * after);

    /* Collectives. */
    int64_t total[3] = {1, c, -c};
    TRY(conset_allreduce(cell, w->trees, CONSET_ADD, CONSET_INT64, total, 3));
    EXPECT(total[0] == CELLS && total[1] == CELLS * (CELLS - 1) / 2 && total[2] == -total[1]);
    float root = (float)c;
    TRY(conset_broadcast(cell, w->trees, 5, CONSET_FLOAT, &root, 1));
    EXPECT(root == 5);
    TRY(conset_barrier(cell, w->trees));

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
    TRY(conset_msg_exchange_words(cell, w->set, CONSET_INT32, sent, 2, got, 2));
    EXPECT(got[0] + got[1] == before + after);

    /* Messages: round the ring. */
    double letter = c, from = -1;
    TRY(conset_instantiate_messages(cell));
    TRY(conset_msg_send(cell, (uint32_t)after, CONSET_DOUBLE, &letter, 1));
    TRY(conset_msg_receive(cell, (uint32_t)before, CONSET_DOUBLE, &from, 1));
    EXPECT(from == before);
    return conset_compute(cell, 100);
}

int main(int argc, char **argv)
{
    size_t first[CELLS + 1];
    uint64_t ids[2 * CELLS];
    for (size_t cell = 0; cell < CELLS; cell++) {
        ids[2 * cell] = cell;
        ids[2 * cell + 1] = (cell + 1) % CELLS;
        first[cell + 1] = 2 * cell + 2;
    }
    first[0] = 0;
    conset_layout *layout;
    check(conset_layout_from_shared_ids(CELLS, first, ids, &layout));
    const conset_set sets[2] = {{"one", layout, 1}, {"two", layout, 2}};
    conset_image *image;
    check(conset_compile("ring:16", sets, 2, NULL, &image));

    work w;
    conset_plan *one, *two;
    conset_trees *trees;
    check(conset_plan_new(image, "one", layout, 1, &one));
    check(conset_plan_new(image, "two", layout, 2, &two));
    check(conset_trees_new(image, &trees));
    check(conset_image_set(image, "one", &w.set));
    w.one = one, w.two = two, w.trees = trees;
    /* The plans keep what they need of these. */
    conset_layout_free(layout);

    conset_options options;
    conset_options_init(&options);
    if (argc < 2 || strcmp(argv[1], "fabric") != 0)
        options.transport = CONSET_THREADS;
    conset_report report;
    check(conset_run(image, &options, exchange, &w, &report));
    uint64_t digest;
    check(conset_image_digest(image, &digest));
    printf("%016" PRIx64 ": all as expected on %zu cells\n", digest, conset_image_cells(image));
    conset_plan_free(one);
    conset_plan_free(two);
    conset_trees_free(trees);
    conset_image_free(image);
    return 0;
}
