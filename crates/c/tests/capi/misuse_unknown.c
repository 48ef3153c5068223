/* Wrong uses of epochs, exchanges with unknown partners, messages, collectives without trees and
 * recorded sets: errors with a text that names cell and reason, never a crash and never a hang. */
#include "expect.h"
#include <conset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS = 4, ODD = 2 };

static conset_epoch *kept;

static int count_up(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    (void)epoch, (void)source, (void)item;
    if (data)
        ++*(int *)data;
    return 0;
}

/* An epoch in which cell ODD does one thing otherwise. */
enum odd { NOTHING, ITEMS, TARGET, NULL_ITEM, NULL_HANDLER, UNSETTLED, LEFT_OPEN, CLOSED, HUGE_ITEMS };

static int epoch_with(conset_cell *cell, void *data)
{
    const enum odd odd = conset_id(cell) == ODD ? *(enum odd *)data : NOTHING;
    const uint64_t item[2] = {7, 8};
    conset_epoch *epoch;
    int status = conset_epoch_open(cell, odd == HUGE_ITEMS ? SIZE_MAX : odd == ITEMS ? 16 : 8, &epoch);
    if (status != CONSET_OK)
        return status;
    if (odd == CLOSED)
        conset_epoch_close(epoch);
    status = conset_epoch_send(epoch, odd == TARGET ? 99 : 1, odd == NULL_ITEM ? NULL : item);
    if (status != CONSET_OK)
        return status;
    if (odd == UNSETTLED)
        return conset_epoch_close(epoch);
    if (odd == LEFT_OPEN)
        return 0;
    return conset_epoch_settle(epoch, odd == NULL_HANDLER ? NULL : count_up, NULL, NULL);
}

static int fails(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    (void)epoch, (void)item, (void)data;
    return source == ODD ? 5 : 0;
}

static int sends_nowhere(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    (void)source, (void)data;
    EXPECT(conset_epoch_send(epoch, 77, item), CONSET_CELL, "an item of an epoch is for c77");
    return 0;
}

static int for_ever(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    (void)data;
    return conset_epoch_send(epoch, source, item);
}

/* What a handler may not do; its cell and its epoch are not its own meanwhile. */
static int meddles(conset_epoch *epoch, uint32_t source, const void *item, void *data)
{
    conset_epoch *other;
    uint64_t word = 1;
    (void)source, (void)item;
    EXPECT(conset_epoch_settle(epoch, count_up, NULL, NULL), CONSET_BAD_HANDLE, "are being handled");
    EXPECT(conset_epoch_close(epoch), CONSET_BAD_HANDLE, "are being handled");
    EXPECT(conset_epoch_limit_rounds(epoch, 3), CONSET_BAD_HANDLE, "are being handled");
    EXPECT(conset_epoch_open(data, 8, &other), CONSET_BAD_HANDLE, "no callback has this cell");
    EXPECT(conset_msg_send(data, 0, CONSET_INT64, &word, 1), CONSET_BAD_HANDLE, "no callback has");
    EXPECT(conset_epoch_send(kept, 0, &word), CONSET_BAD_HANDLE, "no callback has this epoch");
    EXPECT(conset_epoch_send(NULL, 0, &word), CONSET_NULL_POINTER, "epoch is null");
    EXPECT(conset_epoch_send(epoch, 0, NULL), CONSET_NULL_POINTER, "item is null");
    return 0;
}

static int handled_by(conset_cell *cell, void *data)
{
    const uint64_t item = 1;
    conset_epoch *epoch;
    conset_handler handler = *(conset_handler *)data;
    int status = conset_epoch_open(cell, sizeof item, &epoch);
    if (status == CONSET_OK)
        status = conset_epoch_limit_rounds(epoch, 20);
    if (status == CONSET_OK)
        status = conset_epoch_send(epoch, (conset_id(cell) + 1) % CELLS, &item);
    return status != CONSET_OK ? status : conset_epoch_settle(epoch, handler, cell, NULL);
}

/* An epoch of the past is found out, also where another is open. */
static int keeps(conset_cell *cell, void *data)
{
    conset_epoch *epoch;
    (void)data;
    if (conset_id(cell) != ODD)
        return 0;
    return conset_epoch_open(cell, 8, kept == NULL ? &kept : &epoch);
}

static int uses_kept(conset_cell *cell, void *data)
{
    const uint64_t item = 1;
    (void)data;
    return conset_id(cell) == ODD ? conset_epoch_send(kept, 0, &item) : 0;
}

/* An epoch that is opened, left by another callback's run, and used again. */
static int inner(conset_cell *cell, void *data)
{
    const uint64_t item = 1;
    (void)cell;
    EXPECT(conset_epoch_send(data, 0, &item), CONSET_BAD_HANDLE, "not one that the callback's cell");
    return 0;
}

static const conset_image *image;

static int nested(conset_cell *cell, void *data)
{
    const uint64_t item = 1;
    conset_epoch *epoch;
    int handled = 0, status;
    (void)data;
    if ((status = conset_epoch_open(cell, 8, &epoch)) != CONSET_OK)
        return status;
    if (conset_id(cell) == ODD)
        EXPECT(conset_run(image, NULL, inner, epoch, NULL), CONSET_PROGRAM, "conset_epoch_send");
    if ((status = conset_epoch_send(epoch, ODD, &item)) != CONSET_OK)
        return status;
    status = conset_epoch_settle(epoch, count_up, &handled, NULL);
    return handled == (conset_id(cell) == ODD ? CELLS : 0) ? status : conset_abort(cell, "lost items");
}

static void combine(void *lower, const void *upper, size_t count, void *data)
{
    (void)lower, (void)upper, (void)count, (void)data;
}

enum wrong { ANY_TARGET, ANY_FIRST, ANY_TYPE, SIZED_MORE, SIZED_ROOM, SIZED_NULL, RECORD_ROOM, NO_ROUTING,
             GATHER_ALL, GATHER_OVERLAP, NO_ROOT, NO_COMBINE, NO_BLOCK, SEND_NOWHERE, RECEIVE_MORE,
             ANY_ROOM, EXCHANGE_OVERLAP };

/* One wrong call of cell ODD, beside what others need of it. */
static int wrong_call(conset_cell *cell, void *data)
{
    const enum wrong wrong = *(enum wrong *)data;
    const uint32_t c = conset_id(cell), targets[1] = {c == ODD && wrong == ANY_TARGET ? 99 : 0};
    const int odd = c == ODD;
    const size_t right[2] = {0, 2}, late[2] = {1, 2}, more[2] = {0, 9};
    double x[16] = {0}, y[16];
    size_t sizes[CELLS];
    conset_arrivals *arrivals = NULL;
    conset_connection one[1];
    uint32_t source;
    int status;
    switch (wrong) {
    case ANY_TARGET:
    case ANY_FIRST:
    case ANY_TYPE:
    case RECORD_ROOM:
        if ((status = conset_start_record(cell)) != CONSET_OK)
            return status;
        status = conset_exchange_any(cell, odd && wrong == ANY_TYPE ? CONSET_FLOAT : CONSET_DOUBLE, 1, targets,
                                     odd && wrong == ANY_FIRST ? late : right, x, &arrivals);
        conset_arrivals_free(arrivals);
        if (status != CONSET_OK || wrong != RECORD_ROOM)
            return status;
        return conset_take_record(cell, one, odd ? 0 : 1, sizes);
    case SIZED_MORE:
    case SIZED_ROOM:
    case SIZED_NULL:
        return conset_exchange_sized(cell, 0, CONSET_DOUBLE, 1, odd && wrong == SIZED_MORE ? more : right, x,
                                     odd && wrong == SIZED_NULL ? NULL : y, odd && wrong == SIZED_ROOM ? 2 : 3,
                                     sizes);
    case NO_ROUTING:
        return odd ? conset_set_routing(cell, 9) : 0;
    case GATHER_ALL:
        return conset_gather(cell, ODD, CONSET_DOUBLE, x, 2, y, 7);
    case GATHER_OVERLAP:
        return conset_gather(cell, ODD, CONSET_DOUBLE, x, 2, odd ? x + 1 : y, 8);
    case NO_ROOT:
        return conset_broadcast_from(cell, odd ? 9 : 0, CONSET_DOUBLE, x, 2);
    case NO_COMBINE:
        return conset_reduce_with(cell, 0, 1, CONSET_DOUBLE, x, 2, NULL, NULL);
    case NO_BLOCK:
        return conset_reduce_with(cell, 0, odd ? 3 : 1, CONSET_DOUBLE, x, 2, combine, NULL);
    case SEND_NOWHERE:
        return odd ? conset_send(cell, 9, CONSET_DOUBLE, x, 2) : 0;
    case RECEIVE_MORE:
        if (c == 0)
            return conset_send(cell, ODD, CONSET_DOUBLE, x, 2);
        return odd ? conset_receive(cell, 0, CONSET_DOUBLE, y, 3) : 0;
    case ANY_ROOM:
        if (c == 0)
            return conset_msg_send(cell, ODD, CONSET_DOUBLE, x, 3);
        return odd ? conset_msg_receive_any(cell, CONSET_DOUBLE, y, 2, &source, sizes) : 0;
    case EXCHANGE_OVERLAP:
        return conset_send_receive(cell, CONSET_DOUBLE, c, x, 2, c, x + 1, 2);
    }
    return 0;
}

static void runs(int transport)
{
    conset_options options;
    conset_options_init(&options);
    options.transport = transport;
    options.workers = 2;
    enum odd odd;
    enum wrong wrong;
    conset_handler handler;
#define RUN(program, value, status, says) EXPECT(conset_run(image, &options, program, value, NULL), status, says)
#define ODD_RUN(what, status, says) (odd = what, RUN(epoch_with, &odd, status, says))
    ODD_RUN(NOTHING, CONSET_OK, "");
    ODD_RUN(ITEMS, CONSET_CELL, "items of 16 bytes");
    ODD_RUN(TARGET, CONSET_CELL, "c2: an item of an epoch is for c99");
    ODD_RUN(NULL_ITEM, CONSET_PROGRAM, "c2: conset_epoch_send: item is null");
    ODD_RUN(NULL_HANDLER, CONSET_PROGRAM, "c2: conset_epoch_settle: handler is null");
    ODD_RUN(UNSETTLED, CONSET_CELL, "c2: an epoch has ended with 1 items");
    ODD_RUN(LEFT_OPEN, CONSET_CELL, "c2: an epoch has ended with 1 items");
    ODD_RUN(CLOSED, CONSET_PROGRAM, "c2: conset_epoch_send: this epoch is not one");
    ODD_RUN(HUGE_ITEMS, CONSET_PROGRAM, "c2: conset_epoch_open: item_bytes is ");
#define HANDLED(what, status, says) (handler = what, RUN(handled_by, &handler, status, says))
    HANDLED(count_up, CONSET_OK, "");
    HANDLED(fails, CONSET_PROGRAM, "c3: the handler of an epoch returned 5");
    HANDLED(sends_nowhere, CONSET_CELL, "an item of an epoch is for c77");
    HANDLED(for_ever, CONSET_CELL, "has not settled after 20 rounds");
    HANDLED(for_ever, CONSET_CELL, "conset_epoch_limit_rounds");
    kept = NULL;
    RUN(keeps, NULL, CONSET_OK, "");
    HANDLED(meddles, CONSET_OK, "");
    RUN(uses_kept, NULL, CONSET_PROGRAM, "c2: conset_epoch_send: this epoch is not one");
    EXPECT(conset_epoch_close(kept), CONSET_BAD_HANDLE, "no callback has this epoch");
    RUN(nested, NULL, CONSET_OK, "");
#define WRONG(what, status, says) (wrong = what, RUN(wrong_call, &wrong, status, says))
    WRONG(ANY_TARGET, CONSET_CELL, "c2: an item of an epoch is for c99");
    WRONG(ANY_FIRST, CONSET_PROGRAM, "c2: conset_exchange_any: first[0] is 1");
    WRONG(ANY_TYPE, CONSET_CELL, "items of 4 bytes");
    WRONG(SIZED_MORE, CONSET_CELL, "carries at most 3 words, and is to carry 9");
    WRONG(SIZED_ROOM, CONSET_PROGRAM, "c2: conset_exchange_sized: room is 2, expected at least 3");
    WRONG(SIZED_NULL, CONSET_PROGRAM, "c2: conset_exchange_sized: incoming is null");
    WRONG(RECORD_ROOM, CONSET_PROGRAM, "c2: conset_take_record: room is 0");
    WRONG(NO_ROUTING, CONSET_PROGRAM, "9 is no routing");
    WRONG(GATHER_ALL, CONSET_CELL, "c2: ");
    WRONG(GATHER_OVERLAP, CONSET_PROGRAM, "own and all overlap");
    WRONG(NO_ROOT, CONSET_CELL, "c9");
    WRONG(NO_COMBINE, CONSET_PROGRAM, "combine is null");
    WRONG(NO_BLOCK, CONSET_CELL, "c2: ");
    WRONG(SEND_NOWHERE, CONSET_CELL, "c9");
    WRONG(RECEIVE_MORE, CONSET_CELL, "c2: ");
    WRONG(ANY_ROOM, CONSET_CELL, "c2: ");
    WRONG(EXCHANGE_OVERLAP, CONSET_PROGRAM, "outgoing and incoming overlap");
}

/* Sets given by their connections. */
static void sets(void)
{
    const conset_connection none[1] = {{0, 1, 0}}, far[1] = {{0, 9, 2}}, fine[1] = {{0, 1, 2}};
    conset_connection_set set = {"s", none, 1};
    conset_compile_options how;
    conset_image *made = NULL;
    uint32_t place[2];
    EXPECT(conset_compile_options_init(&how), CONSET_OK, "");
    how.connection_sets = &set, how.connection_set_count = 1;
    EXPECT(conset_compile("ring:4", NULL, 0, &how, &made), CONSET_BAD_ARGUMENT, "set `s`: ");
    EXPECT(conset_connection_set_write(&set, "misuse.cset"), CONSET_BAD_ARGUMENT, "0 words");
    set.connections = far;
    EXPECT(conset_compile("ring:4", NULL, 0, &how, &made), CONSET_INPUT, "c9");
    EXPECT(conset_assemble("ring:4", 2, NULL, 0, &how, place, &made), CONSET_BAD_ARGUMENT, "10 parts, not 2");
    set.connections = NULL;
    EXPECT(conset_compile("ring:4", NULL, 0, &how, &made), CONSET_NULL_POINTER, "connection_sets[0].connections");
    EXPECT(conset_connection_set_write(NULL, "misuse.cset"), CONSET_NULL_POINTER, "set is null");
    set.connections = fine;
    EXPECT(conset_connection_set_write(&set, "/there/is/no/such/folder"), CONSET_FILE, "/there");
    EXPECT(conset_assemble("ring:4", 2, NULL, 0, &how, place, &made), CONSET_OK, "");
    conset_image_free(made);
    EXPECT(conset_connection_set_write(&set, "misuse.cset"), CONSET_OK, "");
    char text[64] = "";
    FILE *file = fopen("misuse.cset", "r");
    if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0 || fclose(file) != 0 ||
        strstr(text, "set s\n  x0 c0 -> c1 words 2\n") == NULL)
        failures++, fprintf(stderr, "written: %s\n", text);
    remove("misuse.cset");
}

int main(void)
{
    const conset_connection ring[CELLS] = {{0, 1, 3}, {1, 2, 3}, {2, 3, 3}, {3, 0, 3}};
    const conset_connection_set set = {"ring", ring, CELLS};
    conset_compile_options how;
    conset_image *made;
    EXPECT(conset_compile_options_init(&how), CONSET_OK, "");
    how.connection_sets = &set, how.connection_set_count = 1;
    EXPECT(conset_compile("ring:4", NULL, 0, &how, &made), CONSET_OK, "");
    image = made;
    runs(CONSET_FABRIC);
    runs(CONSET_THREADS);
    sets();
    conset_image_free(made);
    return failures != 0;
}
