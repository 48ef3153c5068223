/* Linked with the tables that `conset emit --format c` writes: walks every phase of the set by the
 * elements of its connections, and exchanges it by buffers. */
#include "tables.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t word_of(uint32_t connection, uint32_t word)
{
    return 1000 * (int64_t)connection + word;
}

static int by_elements(conset_cell *cell, const conset_image *image, uint32_t set)
{
    uint32_t phases;
    int status = conset_image_phases(image, set, &phases);
    for (uint32_t phase = 0; status == CONSET_OK && phase < phases; phase++) {
        conset_operation operations[64];
        size_t count;
        status = conset_image_operations(image, set, phase, conset_id(cell), operations, 64, &count);
        if (status != CONSET_OK || count > 64)
            return conset_give_up(cell, "no operations");
        status = conset_instantiate_phase(cell, set, phase);
        for (size_t i = 0; i < count; i++) {
            const conset_operation o = operations[i];
            for (uint32_t word = o.first_word; word < o.first_word + o.words; word++) {
                int64_t value = word_of(o.connection, word);
                if (o.sends)
                    status = conset_send_element(cell, o.connection, CONSET_INT64, &value);
                else
                    status = conset_receive_element(cell, o.connection, CONSET_INT64, &value);
                if (status != CONSET_OK)
                    return status;
                if (value != word_of(o.connection, word))
                    return conset_give_up(cell, "another word has come");
            }
        }
    }
    return status;
}

static int by_buffers(conset_cell *cell, const conset_image *image, uint32_t set)
{
    int64_t outgoing[1024], incoming[1024];
    const uint32_t *connections;
    size_t sent, received, count, at = 0;
    conset_connection ends;
    if (conset_image_words(image, set, conset_id(cell), &sent, &received) != CONSET_OK ||
        sent > 1024 || received > 1024)
        return conset_give_up(cell, "no sizes");
    int status = conset_connections_out(cell, set, &connections, &count);
    for (size_t i = 0; status == CONSET_OK && i < count; i++) {
        status = conset_image_connection(image, set, connections[i], &ends);
        for (uint32_t word = 0; word < ends.words; word++)
            outgoing[at++] = word_of(connections[i], word);
    }
    if (status == CONSET_OK)
        status = conset_exchange_words(cell, set, CONSET_INT64, outgoing, sent, incoming, received);
    if (status == CONSET_OK)
        status = conset_connections_in(cell, set, &connections, &count);
    at = 0;
    for (size_t i = 0; status == CONSET_OK && i < count; i++) {
        status = conset_image_connection(image, set, connections[i], &ends);
        if (ends.target != conset_id(cell))
            return conset_give_up(cell, "another cell's connection");
        for (uint32_t word = 0; word < ends.words; word++)
            if (incoming[at++] != word_of(connections[i], word))
                return conset_give_up(cell, "another word has come");
    }
    return status;
}

static int program(conset_cell *cell, void *data)
{
    const conset_image *image = data;
    int status = by_elements(cell, image, TABLES_HALO);
    return status == CONSET_OK ? by_buffers(cell, image, TABLES_HALO) : status;
}

int main(int argc, char **argv)
{
    conset_image *image;
    uint32_t set;
    conset_options options;
    conset_options_init(&options);
    if (argc > 1 && strcmp(argv[1], "threads") == 0)
        options.transport = CONSET_THREADS;
    if (tables_image(&image) != CONSET_OK ||
        conset_image_set(image, TABLES_HALO_NAME, &set) != CONSET_OK || set != TABLES_HALO ||
        conset_run(image, &options, program, image, NULL) != CONSET_OK) {
        fprintf(stderr, "%s\n", conset_error());
        return 1;
    }
    conset_image_free(image);
    puts("all words as expected");
    return 0;
}
