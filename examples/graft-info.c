/* graft-info: which Graft library this is, its modules and why one is not usable, and its options with their values and
 * where each value comes from.
 *
 *     graft-info [--library FILE] [--all] [--load] [--json] [KEY=VALUE ...]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* dladdr() */
#include "find_library.h"

#include "graft_host.h"

#ifdef WITH_JANSSON
#include <jansson.h>
#endif

static const char usage[] =
    "usage: graft-info [--library FILE] [--all] [--load] [--json] [KEY=VALUE ...]\n"
    "Shows a Graft library, its modules, and the options that do not have their default value.\n"
    "  --library FILE  the library; default: the file in variable GRAFT_LIBRARY, then the library that was built\n"
    "                  or installed with this program\n"
    "  --all           show all options, with the values that they take\n"
    "  --load          load every module, to see whether it works here\n"
    "  --json          print JSON, with all options\n"
    "  --version       print the release of the library and its file\n"
    "  KEY=VALUE       set an option first, such as module.path=FOLDER\n";

struct wish {
    const char *library;
    int         all, load, json, version, first; /* requested actions; the settings begin with argument `first` */
};

/* Print what the library says about skipped modules. */
static void info_log(void *self, graft_log_level level, const char *message)
{
    static const char *const levels[] = { "debug", "info", "warning", "error" };

    (void)self;
    fprintf(stderr, "%s: %s\n", levels[level & 3], message);
}

/* Read the arguments. \return 1 to continue; 0 if the program is done; -1 if a message was printed */
static int read_arguments(int argc, char **argv, struct wish *wish)
{
    int i;

    for (i = 1; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strcmp(argv[i], "--library") == 0 && i + 1 < argc) wish->library = argv[++i];
        else if (strcmp(argv[i], "--all") == 0) wish->all = 1;
        else if (strcmp(argv[i], "--load") == 0) wish->load = 1;
        else if (strcmp(argv[i], "--json") == 0) wish->json = 1;
        else if (strcmp(argv[i], "--version") == 0) wish->version = 1;
        else if (strcmp(argv[i], "--help") == 0) return printf("%s", usage), 0;
        else return fprintf(stderr, "graft-info: unknown argument '%s'\n%s", argv[i], usage), -1;
    }
    for (wish->first = i; i < argc; i++)
        if (strchr(argv[i], '=') == NULL)
            return fprintf(stderr, "graft-info: '%s' is not KEY=VALUE\n%s", argv[i], usage), -1;
#ifndef WITH_JANSSON
    if (wish->json) return fprintf(stderr, "graft-info: this program was built without jansson: no --json\n"), -1;
#endif
    return 1;
}

static int32_t set_options(const graft_api *api, char **settings, graft_error *error)
{
    for (int32_t rc; *settings != NULL; settings++) {
        char *value = strchr(*settings, '=');

        *value++ = '\0';
        rc = api->set(api->context, *settings, value, error);
        if (rc < 0) return rc;
    }
    return GRAFT_OK;
}

static int32_t module_at(const graft_api *api, int32_t index, graft_module_entry *entry)
{
    *entry = GRAFT_INIT(graft_module_entry);
    return api->module_info(api->context, index, entry, NULL);
}

static int32_t option_at(const graft_api *api, int32_t index, graft_option *option)
{
    *option = GRAFT_INIT(graft_option);
    return api->option_info(api->context, index, option, NULL);
}

/* Load all modules. If a module does not load, its entry has the reason afterwards. */
static void load_all(const graft_api *api)
{
    graft_module_entry entry;

    for (int32_t i = 0; module_at(api, i, &entry) == GRAFT_OK; i++)
        if (entry.state == 0 && entry.path[0] != '\0') (void)api->load_module(api->context, entry.path, NULL);
}

static const char *state_of(const graft_module_entry *entry)
{
    if (entry->state < 0) return "not usable";
    if (entry->state > 0) return "loaded";
    return entry->path[0] != '\0' ? "found" : "built in";
}

static const char *scope_of(const graft_option *option)
{
    static const char *const scopes[] = { "same on all ranks", "each rank", "rank 0" };

    return option->scope >= 0 && option->scope <= GRAFT_SCOPE_ROOT ? scopes[option->scope] : "unknown";
}

static const char *source_of(const graft_option *option)
{
    return option->source != NULL ? option->source : "unknown"; /* the library is older than this field */
}

static void print_options(const graft_api *api, int all)
{
    const char  *group = "";
    graft_option option;
    int          hidden = 0;

    printf("\nOptions: value, where it comes from, values, default, scope\n");
    for (int32_t i = 0; option_at(api, i, &option) == GRAFT_OK; i++) {
        if (!all && strcmp(source_of(&option), "default") == 0 && ++hidden) continue;
        if (strcmp(group, option.group) != 0) printf("  %s\n", option.group);
        group = option.group;
        printf("    %s = %s (%s): %s%s%s, default '%s', %s\n", option.key, option.value, source_of(&option),
               option.type, option.range[0] != '\0' ? " " : "", option.range, option.default_value, scope_of(&option));
    }
    if (hidden > 0) printf("  %d have their default values: graft-info --all shows them\n", hidden);
}

static void print_plain(const graft_api *api, int all)
{
    graft_module_entry entry;

    printf("Graft %s, contract %u, %s\n\nModules: kind, name, preference, state, file\n", api->version, api->abi,
           library_path(api));
    for (int32_t i = 0; module_at(api, i, &entry) == GRAFT_OK; i++) {
        printf("  %-10s %-14s %10d  %-10s %s\n", entry.kind, entry.name, entry.preference, state_of(&entry),
               entry.path);
        if (entry.detail[0] != '\0') printf("  %-10s %s\n", "", entry.detail);
        if (entry.path[0] != '\0' && !entry.noted) printf("  %-10s without a note\n", "");
    }
    print_options(api, all);
}

#ifdef WITH_JANSSON
/* Make a JSON string. Paths may not be valid UTF-8. */
static json_t *text(const char *said)
{
    json_t *value = json_string(said);

    return value != NULL ? value : json_string("(not UTF-8)");
}

static json_t *module_json(const graft_module_entry *entry)
{
    return json_pack("{so so so si so so si sb}", "kind", text(entry->kind), "name", text(entry->name), "state",
                     text(state_of(entry)), "status", entry->state, "path", text(entry->path), "detail",
                     text(entry->detail), "preference", entry->preference, "noted", entry->noted);
}

static json_t *option_json(const graft_option *option)
{
    return json_pack("{so so so so so so so so so so sb sb}", "key", text(option->key), "value", text(option->value),
                     "source", text(source_of(option)), "type", text(option->type), "range", text(option->range),
                     "default", text(option->default_value), "scope", text(scope_of(option)), "group",
                     text(option->group), "needs", text(option->needs), "help", text(option->help), "live",
                     option->live, "usual", option->usual);
}

static int print_json(const graft_api *api)
{
    json_t            *modules = json_array(), *options = json_array(), *all;
    graft_module_entry entry;
    graft_option       option;
    int                bad = 0;

    for (int32_t i = 0; module_at(api, i, &entry) == GRAFT_OK; i++)
        bad |= json_array_append_new(modules, module_json(&entry)) != 0;
    for (int32_t i = 0; option_at(api, i, &option) == GRAFT_OK; i++)
        bad |= json_array_append_new(options, option_json(&option)) != 0;
    all = json_pack("{so si so so so}", "version", text(api->version), "contract", (int)api->abi, "library",
                    text(library_path(api)), "modules", modules, "options", options);
    bad |= all == NULL || json_dumpf(all, stdout, JSON_INDENT(1)) != 0;
    json_decref(all);
    printf("\n");
    return bad;
}
#else
static int print_json(const graft_api *api)
{
    (void)api;
    return 1;
}
#endif

int main(int argc, char **argv)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    graft_host       host = GRAFT_INIT(graft_host);
    struct wish      wish = { .first = 1 };
    const int        go = read_arguments(argc, argv, &wish);
    int              bad = 0;

    if (go <= 0) return go < 0 ? 2 : 0;
    if (wish.version) return print_version(stdout, "graft-info", wish.library);
    host.log = info_log;
    if (find_library(wish.library, &host, &api, &error) < 0 || set_options(api, argv + wish.first, &error) < 0) {
        fprintf(stderr, "graft-info: %s\n", error.message);
        if (api != NULL) api->close(api->context);
        return 1;
    }
    if (wish.load) load_all(api);
    if (wish.json) bad = print_json(api);
    else print_plain(api, wish.all);
    api->close(api->context);
    return bad || fflush(stdout) != 0;
}
