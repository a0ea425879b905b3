/* Compares the settings of the process, and collects what is printed, see judge/manners.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "manners.h"

#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SIGNALS = 32, FILES = 256 };

struct settings {
    void  *handler[SIGNALS];
    int    rounding, subnormals;
    mode_t mask;
    char   locale[256], folder[1024];
    char   files[FILES];
    int    draw; /* the next value of rand(), which belongs to the host */
};

static struct settings before;
static FILE           *printed;
static int             saved[2];

/* Whether arithmetic keeps results that are below the smallest normal number. */
static int has_subnormals(void)
{
    volatile double small = DBL_MIN;

    return small / 2 != 0;
}

static void note_settings(struct settings *now)
{
    memset(now, 0, sizeof *now);
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0) memcpy(&now->handler[i], &action.sa_handler, sizeof now->handler[i]);
    }
    now->rounding = fegetround();
    now->subnormals = has_subnormals();
    now->mask = umask(0);
    umask(now->mask);
    snprintf(now->locale, sizeof now->locale, "%s", setlocale(LC_ALL, NULL));
    if (getcwd(now->folder, sizeof now->folder) == NULL) now->folder[0] = '\0';
    for (int i = 0; i < FILES; i++) now->files[i] = fcntl(i, F_GETFD) >= 0;
}

void manners_begin(void)
{
    printed = tmpfile();
    for (int i = 0; i < 2; i++) saved[i] = dup(i + 1);
    note_settings(&before);
    srand(42);
    before.draw = rand();
    srand(42);
    fflush(NULL);
    for (int i = 0; i < 2 && printed != NULL; i++) dup2(fileno(printed), i + 1);
}

/* The first line that was printed, in static memory, or NULL if nothing was printed. */
static const char *first_line(void)
{
    static char text[160] = "it prints: ";
    size_t      used = strlen("it prints: "), count;

    if (printed == NULL) return NULL;
    rewind(printed);
    count = fread(text + used, 1, sizeof text - 1 - used, printed);
    text[used + count] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return count > 0 ? text : NULL;
}

/* The name of a signal whose action has changed, in static memory, or NULL if none has. */
static const char *changed_signal(int number)
{
    static char text[96];

    snprintf(text, sizeof text, "it changes the handler of signal %d (%s)", number, strsignal(number));
    return text;
}

const char *manners_end(void)
{
    struct settings now;
    const char     *fault;

    fflush(NULL);
    for (int i = 0; i < 2; i++) dup2(saved[i], i + 1);
    note_settings(&now);
    now.draw = rand();
    for (int i = 0; i < 2; i++) close(saved[i]);
    fault = first_line();
    if (printed != NULL) fclose(printed);
    if (fault != NULL) return fault;
    for (int i = 0; i < SIGNALS; i++)
        if (now.handler[i] != before.handler[i]) return changed_signal(i);
    if (now.rounding != before.rounding) return "it changes how numbers are rounded";
    if (now.subnormals != before.subnormals) return "it changes whether subnormal numbers are kept";
    if (now.mask != before.mask) return "it changes the umask";
    if (strcmp(now.locale, before.locale) != 0) return "it changes the locale";
    if (strcmp(now.folder, before.folder) != 0) return "it changes the current folder";
    if (memcmp(now.files, before.files, sizeof now.files) != 0) return "it leaves a file open, or closes one";
    if (now.draw != before.draw) return "it draws from rand(), which is the host's";
    return NULL;
}

int manners_threads(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = -2; /* the entries "." and ".." are not counted */

    while (list != NULL && readdir(list) != NULL) count++;
    if (list != NULL) closedir(list);
    return count;
}
