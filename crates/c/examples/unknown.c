/* Traffic that nobody knows before the run: epochs, exchanges with unknown partners and sizes,
 * messages, and collectives without trees. What the cells sent is recorded, compiled, and run.
 *
 *     unknown [fabric|threads]
 *
 * Prints a number of what all cells have handled, and in which order: the same on every transport. */
#include <conset.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 8, LONG = 6000 };

/* What a process keeps of its cells. */
typedef struct {
    conset_connection record[CELLS * CELLS]; /* of all cells, at cell 0 */
    size_t records;
    uint64_t seen; /* by all cells, at cell 0 */
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

/* A walker: goes from cell to cell until it has no hops left. */
typedef struct {
    uint64_t number;
    double weight;
    uint32_t hops, spare;
} walker;

/* What a cell has handled. */
typedef struct {
    uint64_t seen, count;
    double weight;
} handled;

static uint64_t mixed(uint64_t seen, uint64_t with)
{
    return (seen ^ with) * 0x9e3779b97f4a7c15u + (seen >> 29);
}

static int walk(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    handled *own = data;
    walker w = *(const walker *)item;
    own->seen = mixed(own->seen, w.number * CELLS + source);
    own->count++;
    own->weight += w.weight;
    if (w.hops == 0)
        return 0;
    w.hops--;
    w.number = mixed(w.number, w.hops);
    return conset_epoch_send(epoch, (uint32_t)(w.number >> 40) % CELLS, &w);
}

static int count_up(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    (void)epoch, (void)source, (void)item;
    ++*(int *)data;
    return 0;
}

static int epochs(conset_cell *cell, uint32_t c, handled *own)
{
    conset_epoch *epoch, *signals;
    conset_settled settled;
    int received = 0;
    TRY(conset_epoch_open(cell, sizeof(walker), &epoch));
    for (uint32_t i = 0; i < 10; i++) {
        const walker w = {10 * c + i, 0.5, c + i, 0};
        TRY(conset_epoch_send(epoch, (c + i) % CELLS, &w));
    }
    /* Two epochs at a time; the items of this one have no bytes. */
    TRY(conset_epoch_open(cell, 0, &signals));
    TRY(conset_epoch_send(signals, (c + 1) % CELLS, NULL));
    TRY(conset_epoch_settle(signals, count_up, &received, NULL));
    TRY(conset_epoch_close(signals));
    EXPECT(received == 1);
    TRY(conset_epoch_limit_rounds(epoch, CELLS + 10));
    TRY(conset_epoch_settle(epoch, walk, own, &settled));
    TRY(conset_epoch_close(epoch));
    /* The longest way has 10 + 7 hops less one, and as many rounds and one more. */
    EXPECT(settled.rounds == CELLS + 9 && settled.handled == own->count);
    EXPECT(own->weight == 0.5 * (double)own->count);
    return CONSET_OK;
}

/* What a cell sends to another below: three words to cell 2 c and one to cell c + 3, which is the same
 * cell if c is 3; nothing if c is 5. */
static size_t sent(uint32_t c, uint32_t target, double *words)
{
    const int twice = c != 5 && 2 * c % CELLS == target, once = c != 5 && (c + 3) % CELLS == target;
    size_t count = 0;
    if (twice)
        words[count++] = c, words[count++] = 1;
    if (once)
        words[count++] = 2;
    if (twice)
        words[count++] = 3;
    return count;
}

static int partners(conset_cell *cell, uint32_t c)
{
    const uint32_t targets[3] = {2 * c % CELLS, (c + 3) % CELLS, 2 * c % CELLS};
    const double words[4] = {c, 1, 2, 3};
    const size_t first[4] = {0, 2, 3, 4};
    conset_arrivals *arrivals;
    TRY(conset_exchange_any(cell, CONSET_DOUBLE, c == 5 ? 0 : 3, targets, first, words, &arrivals));
    size_t row = 0;
    for (uint32_t source = 0; source < CELLS; source++) {
        double expected[4];
        conset_arrival found;
        const size_t count = sent(source, c, expected);
        if (count == 0)
            continue;
        TRY(conset_arrivals_list(arrivals, row++, &found));
        EXPECT(found.source == source && found.count == count);
        EXPECT(memcmp(found.words, expected, count * sizeof *expected) == 0);
    }
    EXPECT(conset_arrivals_count(arrivals) == row);
    conset_arrivals_free(arrivals);
    return CONSET_OK;
}

/* Each cell sends c words to the next one, of at most 7. */
static int sizes(conset_cell *cell, uint32_t c)
{
    const int32_t words[7] = {(int32_t)c, 1, 2, 3, 4, 5, 6};
    const size_t first[2] = {0, c % CELLS}, before = (c + CELLS - 1) % CELLS;
    int32_t incoming[7] = {-1, -1, -1, -1, -1, -1, -1};
    size_t got = 99;
    TRY(conset_exchange_sized(cell, 0, CONSET_INT32, 1, first, words, incoming, 7, &got));
    EXPECT(got == before && (got == 0 || incoming[0] == (int32_t)before));
    for (size_t i = 1; i < 7; i++)
        EXPECT(incoming[i] == (i < got ? (int32_t)i : -1));
    return CONSET_OK;
}

static int messages(conset_cell *cell, uint32_t c)
{
    const uint32_t after = (c + 1) % CELLS, before = (c + CELLS - 1) % CELLS;
    const float own[2] = {(float)c, -1};
    float got[2] = {0, 0};
    int found = 0;
    TRY(conset_send_receive(cell, CONSET_FLOAT, after, own, 2, before, got, 2));
    EXPECT(got[0] == (float)before && got[1] == -1);
    if (c % 2 == 0)
        TRY(conset_send(cell, after, CONSET_FLOAT, own, 1));
    else
        TRY(conset_receive(cell, before, CONSET_FLOAT, got, 1));
    EXPECT(got[0] == (float)before);
    TRY(conset_msg_send(cell, after, CONSET_FLOAT, own, 1));
    while (!found)
        TRY(conset_msg_try_receive(cell, before, CONSET_FLOAT, got, 1, &found));
    EXPECT(got[0] == (float)before);
    /* All to cell 0, which takes them as they come. */
    if (c != 0)
        return conset_msg_send(cell, 0, CONSET_FLOAT, own, c % 3);
    int seen = 0;
    for (int i = 1; i < CELLS; i++) {
        uint32_t source;
        size_t count;
        TRY(conset_msg_receive_any(cell, CONSET_FLOAT, got, 2, &source, &count));
        EXPECT(count == source % 3 && (count == 0 || got[0] == (float)source));
        seen |= 1 << source;
    }
    EXPECT(seen == (1 << CELLS) - 2);
    return CONSET_OK;
}

/* Composes functions x -> a x + b; the lower one is applied last. */
static void compose(void *lower, const void *upper, size_t count, void *calls)
{
    uint64_t *f = lower;
    const uint64_t *g = upper;
    ++*(int *)calls;
    for (size_t i = 0; i < count; i += 2) {
        f[i + 1] += f[i] * g[i + 1];
        f[i] *= g[i];
    }
}

/* A composition of so many functions: short ones by a tree, long ones by swap. */
static int compositions(conset_cell *cell, uint32_t c, size_t functions)
{
    const uint32_t root = 3;
    uint64_t *f = malloc(2 * functions * sizeof *f);
    int calls = 0, wrong = 0;
    if (f == NULL)
        return conset_abort(cell, "no memory");
    for (size_t i = 0; i < functions; i++)
        f[2 * i] = c + 2, f[2 * i + 1] = i + c;
    int status = conset_reduce_with(cell, root, 2, CONSET_INT64, f, 2 * functions, compose, &calls);
    for (size_t i = 0; status == CONSET_OK && c == root && i < functions; i++) {
        uint64_t a = 1, b = 0;
        for (uint64_t k = 0; k < CELLS; k++)
            b += a * (i + k), a *= k + 2;
        wrong += f[2 * i] != a || f[2 * i + 1] != b;
    }
    free(f);
    TRY(status);
    EXPECT(wrong == 0 && (c != 0 || calls > 0)); /* whoever combines, cell 0 does */
    return CONSET_OK;
}

static int collectives(conset_cell *cell, uint32_t c)
{
    double all[2 * CELLS], own[2] = {c, -2};
    int64_t everywhere[3] = {c, 1, 2};
    TRY(conset_gather(cell, 2, CONSET_DOUBLE, own, 2, c == 2 ? all : NULL, c == 2 ? 2 * CELLS : 0));
    for (size_t i = 0; c == 2 && i < CELLS; i++) {
        EXPECT(all[2 * i] == (double)i && all[2 * i + 1] == -2);
        all[2 * i] += 10;
    }
    TRY(conset_scatter(cell, 2, CONSET_DOUBLE, c == 2 ? all : NULL, c == 2 ? 2 * CELLS : 0, own, 2));
    EXPECT(own[0] == c + 10.0 && own[1] == -2);
    TRY(conset_broadcast_from(cell, 6, CONSET_INT64, everywhere, 3));
    EXPECT(everywhere[0] == 6 && everywhere[1] == 1 && everywhere[2] == 2);
    TRY(compositions(cell, c, 3));
    return compositions(cell, c, LONG);
}

/* Brings what all cells recorded, and have seen, to cell 0. */
static int join(conset_cell *cell, uint32_t c, uint64_t seen, work *w)
{
    conset_connection own[CELLS];
    int64_t row[CELLS + 1] = {0}, all[CELLS * (CELLS + 1)];
    size_t count;
    TRY(conset_take_record(cell, own, CELLS, &count));
    for (size_t i = 0; i < count; i++)
        row[own[i].target] = own[i].words;
    memcpy(&row[CELLS], &seen, sizeof seen);
    TRY(conset_gather(cell, 0, CONSET_INT64, row, CELLS + 1, c == 0 ? all : NULL,
                      c == 0 ? CELLS * (CELLS + 1) : 0));
    for (uint32_t source = 0; c == 0 && source < CELLS; source++) {
        const int64_t *its = &all[source * (CELLS + 1)];
        for (uint32_t target = 0; target < CELLS; target++)
            if (its[target] > 0)
                w->record[w->records++] = (conset_connection){source, target, (uint32_t)its[target]};
        w->seen = mixed(w->seen, (uint64_t)its[CELLS]);
    }
    return CONSET_OK;
}

static int program(conset_cell *cell, void *data)
{
    const uint32_t c = conset_id(cell);
    handled own = {0, 0, 0};
    TRY(epochs(cell, c, &own));
    for (int routing = CONSET_ROUTE_AUTO; routing <= CONSET_ROUTE_ROUTED; routing++) {
        TRY(conset_set_routing(cell, routing));
        TRY(conset_start_record(cell));
        TRY(partners(cell, c));
    }
    TRY(join(cell, c, own.seen, data));
    TRY(sizes(cell, c));
    TRY(messages(cell, c));
    return collectives(cell, c);
}

/* Set 1 of the compiled image carries what `partners` sent. */
static int again(conset_cell *cell, void *data)
{
    (void)data;
    const uint32_t c = conset_id(cell);
    double words[4], got[16], expected[16];
    size_t outgoing = 0, incoming = 0;
    for (uint32_t other = 0; other < CELLS; other++)
        outgoing += sent(c, other, &words[outgoing]), incoming += sent(other, c, &expected[incoming]);
    TRY(conset_exchange_words(cell, 1, CONSET_DOUBLE, words, outgoing, got, incoming));
    EXPECT(memcmp(got, expected, incoming * sizeof *got) == 0);
    return CONSET_OK;
}

/* Compiles the recorded set, for all ranks if there is a communicator. */
static conset_image *compiled(const conset_connection_set *sets, size_t count,
                              const conset_communicator *communicator)
{
    conset_compile_options how;
    conset_image *image;
    check(conset_compile_options_init(&how));
    how.tree_words = 0;
    how.connection_sets = sets;
    how.connection_set_count = count;
    how.communicator = communicator;
    check(conset_compile("ring:8", NULL, 0, &how, &image));
    return image;
}

/* The whole example on a transport; the number is known where cell 0 is. */
static uint64_t run(const conset_options *options)
{
    conset_connection ring[CELLS];
    work w = {.records = 0};
    for (uint32_t c = 0; c < CELLS; c++)
        ring[c] = (conset_connection){c, (c + 1) % CELLS, 7};
    conset_connection_set sets[2] = {{"ring", ring, CELLS}, {"recorded", w.record, 0}};
    conset_image *image = compiled(sets, 1, options->communicator);
    check(conset_run(image, options, program, &w, NULL));
    conset_image_free(image);
    /* What was recorded is a set like any other. */
    sets[1].count = w.records;
    image = compiled(sets, 2, options->communicator);
    check(conset_run(image, options, again, NULL, NULL));
    conset_image_free(image);
    return w.seen;
}

int main(int argc, char **argv)
{
    conset_options options;
    conset_options_init(&options);
    if (argc < 2 || strcmp(argv[1], "fabric") != 0)
        options.transport = CONSET_THREADS;
    printf("%016" PRIx64 ": all as expected on %d cells\n", run(&options), CELLS);
    return 0;
}
