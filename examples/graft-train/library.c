/* Finds and opens the library, fetches its interfaces, and sets and lists its options.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* dladdr() in find_library.h */
#include "library.h"

#include "../find_library.h"

#include <inttypes.h>

/** Fetch a required interface of the library. */
static int32_t require(const struct library *library, const char *id, uint64_t size, const void **table,
                       graft_error *error)
{
    *table = graft_interface(library->api, id, size);
    if (*table != NULL) return GRAFT_OK;
    return problem(error, GRAFT_ERR_VERSION,
                   "Graft %s has no interface '%s' of at least %" PRIu64 " bytes, which graft-train needs",
                   library->api->version, id, size);
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

/** Returns the name of module number `index` if it is a kernel, "" if it is not a kernel, and NULL after the last
 * one. */
static const char *kernel_name(const struct library *library, int32_t index)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    if (library->api->module_info(library->api->context, index, &entry, &error) < 0) return NULL;
    return strcmp(entry.kind, "kernel") == 0 ? entry.name : "";
}

static int is_kernel(const struct library *library, const char *word)
{
    const char *name;

    for (int32_t i = 0; (name = kernel_name(library, i)) != NULL; i++) {
        if (*name != '\0' && strcmp(name, word) == 0) return 1;
    }
    return 0;
}

/** Check the name of the kernel early, because the library searches for the kernel only after it has read the data
 * set. */
static int32_t check_kernel(const struct library *library, const char *chosen, graft_error *error)
{
    const char *name;
    char        list[256] = "";
    size_t      used = 0;

    if (strcmp(chosen, "auto") == 0 || is_kernel(library, chosen)) return GRAFT_OK;
    for (int32_t i = 0; (name = kernel_name(library, i)) != NULL; i++) {
        if (*name == '\0' || used >= sizeof list) continue;
        used += (size_t)snprintf(list + used, sizeof list - used, ", %s", name);
    }
    return problem(error, GRAFT_ERR_OPTION, "there is no kernel '%.60s'; expected one of auto%s", chosen, list);
}

static int32_t choose_kernel(const struct library *library, const char *name, graft_error *error)
{
    graft_option option;
    int32_t      rc;

    if (name != NULL) TRY(library->api->set(library->api->context, "mxm.kernel", name, error));
    TRY(library_option(library, "mxm.kernel", &option, error));
    rc = check_kernel(library, option.value, error);
done:
    return rc;
}

int32_t library_init(struct library *library, const graft_host *host, graft_error *error)
{
    const void *table = NULL;
    int32_t     rc;

    *library = (struct library){ 0 };
    TRY(find_library(NULL, host, &library->api, error));
    TRY(require(library, GRAFT_DATA_ID, GRAFT_HAS(graft_data_api, open_slice), &table, error));
    library->data = table;
    TRY(require(library, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, update), &table, error));
    library->train = table;
    TRY(require(library, GRAFT_REPORT_ID, GRAFT_HAS(graft_report_api, cache_item), &table, error));
    library->report = table;
    TRY(require(library, GRAFT_GROUP_ID, GRAFT_HAS(graft_group_api, destroy), &table, error));
    library->groups = table;
    TRY(require(library, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, explain), &table, error));
    library->mxm = table;
    TRY(require(library, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy), &table, error));
    library->graphs = table;
    TRY(require(library, GRAFT_MODEL_ID, GRAFT_HAS(graft_model_api, predict_vertices), &table, error));
    library->models = table;
done:
    if (rc < 0) library_fini(library);
    return rc;
}

int32_t library_configure(const struct library *library, const struct arguments *arguments, graft_error *error)
{
    int32_t rc;

    for (int i = 0; i < arguments->n_settings; i++) TRY(apply_setting(library, arguments->settings[i], error));
    TRY(choose_kernel(library, arguments->kernel, error));
    if (arguments->profile != NULL) rc = library->api->set(library->api->context, "profile", "yes", error);
done:
    return rc;
}

void library_fini(struct library *library)
{
    if (library->api != NULL) library->api->close(library->api->context);
    *library = (struct library){ 0 };
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

enum { LINE = 100, COLUMN = 32 };

/** Returns the length of a word without its last alternative, which follows a '|'. */
static int last_choice(const char *word, int length)
{
    int before = length - 1;

    while (before > 1 && word[before - 1] != '|') before--;
    return before > 1 ? before : LINE - COLUMN;
}

/** Print words in lines of at most LINE columns, indented to COLUMN. The cursor is initially at column `at`. */
static void print_words(const char *text, int at)
{
    const char *gap = "";

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        while (length > LINE - COLUMN) length = last_choice(text, length);
        if (at > COLUMN && at + (int)strlen(gap) + length > LINE) {
            printf("\n");
            at = 0;
        }
        if (at < COLUMN) at += printf("%*s", COLUMN - at, "");
        else at += printf("%s", gap);
        at += printf("%.*s", length, text);
        gap = text[length] == ' ' ? " " : "";
        text += length + (text[length] == ' ');
    }
    printf("\n");
}

/** Print an option and its default value in the first column, and its purpose, its values, and the condition under
 *  which it has an effect in the second column. */
static void print_option(const graft_option *option)
{
    char values[256];
    int  at = printf("  %s=%s", option->key, option->default_value);

    if (at + 2 > COLUMN) at = printf("\n") - 1;
    print_words(option->help, at);
    snprintf(values, sizeof values, "%s%s%s%s%s", option->type, *option->range != '\0' ? " " : "", option->range,
             *option->needs != '\0' ? "; needs " : "", option->needs);
    print_words(values, 0);
}

int32_t library_list_options(const struct library *library, int all, graft_error *error)
{
    const char *group = "";
    int         hidden = 0;

    for (int32_t i = 0;; i++) {
        graft_option  option = GRAFT_INIT(graft_option);
        const int32_t rc = library->api->option_info(library->api->context, i, &option, error);

        if (rc == GRAFT_ERR_NOT_FOUND) break;
        if (rc < 0) return rc;
        hidden += !all && !option.usual;
        if (!all && !option.usual) continue;
        if (strcmp(group, option.group) != 0) printf("%s%s\n", i > 0 ? "\n" : "", option.group);
        group = option.group;
        print_option(&option);
    }
    if (hidden > 0) printf("\n%d more for experts: --list-options=all\n", hidden);
    return GRAFT_OK;
}

void library_kernel(const struct library *library, char *name, size_t capacity)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        text[1024] = "";

    snprintf(name, capacity, "none");
    if (library->mxm->explain(library->api->context, NULL, text, sizeof text, &error) < 0) return;
    text[strcspn(text, " ")] = '\0'; /* the name is the first word, and contains no space */
    if (is_kernel(library, text)) snprintf(name, capacity, "%s", text);
}
