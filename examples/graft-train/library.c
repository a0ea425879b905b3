/* The library: finding and opening it, its interfaces, its options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include "graft_load.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

/** Path of the library beside this program or in ../lib of it; 0 if it is in neither. */
static int find_beside(char *path, size_t capacity)
{
    static const char *const PLACES[] = { "libgraft.so", "libgraft.so.1", "../lib/libgraft.so",
                                          "../lib/libgraft.so.1" };
    char                     program[PATH_MAX];
    const ssize_t            length = readlink("/proc/self/exe", program, sizeof program - 1);

    if (length <= 0) return 0;
    program[length] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL) return 0;
    *slash = '\0';
    for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
        const int used = snprintf(path, capacity, "%s/%s", program, PLACES[i]);
        if (used > 0 && (size_t)used < capacity && access(path, R_OK) == 0) return 1;
    }
    return 0;
}

static int32_t open_api(const graft_host *host, const graft_api **api, graft_error *error)
{
    char        path[PATH_MAX + 32];
    const char *named = getenv("GRAFT_LIBRARY");

    if (named != NULL && *named != '\0') return graft_load(named, host, api, error);
    return graft_load(find_beside(path, sizeof path) ? path : NULL, host, api, error);
}

/** An interface that this program cannot do without. */
static int32_t require(const struct library *library, const char *id, const void **table, graft_error *error)
{
    *table = library->api->get_interface(library->api->context, id);
    if (*table != NULL) return GRAFT_OK;
    return problem(error, GRAFT_ERR_VERSION, "Graft %s has no interface '%s', which graft-train needs",
                   library->api->version, id);
}

static int32_t apply_setting(const struct library *library, const char *setting, graft_error *error)
{
    const char *equals = strchr(setting, '=');
    char       *key = strndup(setting, (size_t)(equals - setting));

    if (key == NULL) return problem_memory(error, "the options");
    const int32_t rc = library->api->set(library->api->context, key, equals + 1, error);
    free(key);
    return rc;
}

int32_t library_init(struct library *library, const graft_host *host, const struct arguments *arguments,
                     graft_error *error)
{
    const void *table = NULL;
    int32_t     rc;

    *library = (struct library){ 0 };
    TRY(open_api(host, &library->api, error));
    TRY(require(library, GRAFT_DATA_ID, &table, error));
    library->data = table;
    TRY(require(library, GRAFT_TRAIN_ID, &table, error));
    library->train = table;
    TRY(require(library, GRAFT_MXM_ID, &table, error));
    library->mxm = table;
    for (int i = 0; i < arguments->n_settings; i++) TRY(apply_setting(library, arguments->settings[i], error));
    if (arguments->kernel != NULL) {
        TRY(library->api->set(library->api->context, "mxm.kernel", arguments->kernel, error));
    }
done:
    if (rc < 0) library_fini(library);
    return rc;
}

void library_fini(struct library *library)
{
    if (library->api != NULL) library->api->close(library->api->context);
    *library = (struct library){ 0 };
}

void library_version(char *text, size_t capacity)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);

    if (open_api(NULL, &api, &error) < 0) {
        snprintf(text, capacity, "%s", error.message);
        return;
    }
    snprintf(text, capacity, "Graft %s", api->version);
    api->close(api->context);
}

int32_t library_option(const struct library *library, const char *key, graft_option *option, graft_error *error)
{
    int32_t rc;

    for (int32_t i = 0;; i++) {
        *option = GRAFT_INIT(graft_option);
        rc = library->api->option_info(library->api->context, i, option, error);
        if (rc < 0 || strcmp(option->key, key) == 0) return rc;
    }
}

enum { N_COLUMNS = 4 };

/** One pass over the options: measure the columns, or print them. */
static int32_t options_pass(const struct library *library, int widths[N_COLUMNS], int print, graft_error *error)
{
    for (int32_t i = 0;; i++) {
        graft_option  option = GRAFT_INIT(graft_option);
        char          type[128];
        const int32_t rc = library->api->option_info(library->api->context, i, &option, error);

        if (rc < 0) return rc == GRAFT_ERR_NOT_FOUND ? GRAFT_OK : rc;
        snprintf(type, sizeof type, "%s%s%s", option.type, *option.range != '\0' ? " " : "", option.range);
        const char *initial = *option.initial != '\0' ? option.initial : "-";
        const char *cells[N_COLUMNS] = { option.key, initial, type, option.help };
        for (int c = 0; c < N_COLUMNS; c++) {
            const int length = (int)strlen(cells[c]);
            if (print) printf("%-*s%s", c < N_COLUMNS - 1 ? widths[c] : 0, cells[c], c < N_COLUMNS - 1 ? "  " : "\n");
            else if (length > widths[c]) widths[c] = length;
        }
    }
}

int32_t library_list_options(const struct library *library, graft_error *error)
{
    int           widths[N_COLUMNS] = { 3, 7, 10, 0 }; /* of the headings */
    const int32_t rc = options_pass(library, widths, 0, error);

    if (rc < 0) return rc;
    printf("%-*s  %-*s  %-*s  %s\n", widths[0], "key", widths[1], "default", widths[2], "type,range", "help");
    return options_pass(library, widths, 1, error);
}

/** Is the word of this length the name of a kernel? */
static int is_kernel(const struct library *library, const char *word, size_t length)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; library->api->module_info(library->api->context, i, &entry, &error) >= 0; i++) {
        const int same = strlen(entry.name) == length && strncmp(entry.name, word, length) == 0;
        if (same && strcmp(entry.kind, "kernel") == 0) return 1;
    }
    return 0;
}

void library_kernel(const struct library *library, char *name, size_t capacity)
{
    static const char SEPARATORS[] = " \t\n,.:;()'\"";
    graft_error       error = GRAFT_INIT(graft_error);
    char              text[1024] = "";

    snprintf(name, capacity, "none");
    if (library->mxm->explain(library->api->context, NULL, text, sizeof text, &error) < 0) return;
    for (const char *word = text; *word != '\0'; word += strcspn(word, SEPARATORS)) {
        word += strspn(word, SEPARATORS);
        const size_t length = strcspn(word, SEPARATORS);
        if (length > 0 && is_kernel(library, word, length)) {
            snprintf(name, capacity, "%.*s", (int)length, word);
            return;
        }
    }
}
