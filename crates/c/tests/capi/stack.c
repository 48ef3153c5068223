/* Frames that are larger than what is left of a cell's stack. The arguments: fabric or threads, bytes
 * of the stack (0 for the usual), KiB of the frame, and `ends` where its far end is touched, `calls`
 * where a call of the library is made from it. */
#include <conset.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int kib;
static int calls;

static int in_frame(conset_cell *cell, size_t bytes)
{
    volatile char frame[bytes]; /* grows downwards: the first of it is the far end */
    if (calls)
        return conset_compute(cell, 1);
    frame[0] = 1;
    return frame[0] - 1;
}

static int program(conset_cell *cell, void *data)
{
    (void)data;
    if (conset_id(cell) == 2) {
        const int status = in_frame(cell, (size_t)kib << 10);
        if (status)
            return status;
    }
    return conset_compute(cell, 1);
}

int main(int argc, char **argv)
{
    conset_image *image;
    conset_options options;
    if (argc < 5 || conset_compile("ring:4", NULL, 0, NULL, &image) ||
        conset_options_init(&options)) {
        printf("%s\n", conset_error());
        return 2;
    }
    options.transport = strcmp(argv[1], "threads") ? CONSET_FABRIC : CONSET_THREADS;
    options.workers = 2;
    options.stack_bytes = (size_t)strtoul(argv[2], NULL, 10);
    kib = atoi(argv[3]);
    calls = !strcmp(argv[4], "calls");
    const int status = conset_run(image, &options, program, NULL, NULL);
    printf("%s\n", status ? conset_error() : "OK");
    conset_image_free(image);
    return status;
}
