/* The checks of wrong uses: a status, and a text that helps a C programmer. */
#include <conset.h>
#include <stdio.h>
#include <string.h>

static int failures;

/* `status` is `expected`, and the error text has `says` in it. */
static void expect_at(int line, int status, int expected, const char *says)
{
    /* Nor does a text advise what is no part of this interface. */
    const int strange = strstr(conset_error(), "--") != NULL || strstr(conset_error(), "::") != NULL;
    if (status == expected && (expected == CONSET_OK || (strstr(conset_error(), says) && !strange)))
        return;
    failures++;
    fprintf(stderr, "line %d: expected %d (%s) with `%s`, found %d with `%s`\n", line, expected,
            conset_status_text(expected), says, status, conset_error());
}
#define EXPECT(status, expected, says) expect_at(__LINE__, status, expected, says)
