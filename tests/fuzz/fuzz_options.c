/* Sets options with arbitrary texts as keys and values. Either set() accepts a value, and then reports one that it
 * accepts again without change. Or it refuses the value with a message, and all values stay the same. An input has
 * lines "key=value", up to 16 of which are set one after the other. A key may also be the number of an option. In the
 * end all options get their defaults again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

enum { LINES = 16, VALUE = 4096 };

static struct memory    memory = MEMORY_INIT;
static const graft_api *api;

void target_begin(void)
{
    api = target_load(&memory);
}

void target_end(void)
{
    api->close(api->context);
    ok(memory.live_bytes == 0, "no memory is left after close");
}

/* The value of an option, or an empty text if there is no such option. */
static void value_of(const char *key, char value[VALUE])
{
    graft_option option = GRAFT_INIT(graft_option);

    value[0] = '\0';
    for (int32_t i = 0; api->option_info(api->context, i, &option, NULL) == GRAFT_OK; i++)
        if (strcmp(option.key, key) == 0) snprintf(value, VALUE, "%s", option.value);
}

/* A hash of all values. */
static uint64_t digest(void)
{
    graft_option option = GRAFT_INIT(graft_option);
    uint64_t     sum = 14695981039346656037u;

    for (int32_t i = 0; api->option_info(api->context, i, &option, NULL) == GRAFT_OK; i++)
        for (const char *at = option.value; *at != '\0'; at++)
            sum = (sum ^ (uint8_t)*at) * 1099511628211u + (uint64_t)i;
    return sum;
}

static const char *value_fault(const char *key, const char *value)
{
    static char    before[VALUE], after[VALUE];
    const uint64_t all = digest();
    graft_error    error = GRAFT_INIT(graft_error);
    const int32_t  rc = api->set(api->context, key, value, &error);

    if (rc < 0) {
        if (rc != GRAFT_ERR_OPTION && rc != GRAFT_ERR_NOMEM) return "another status than OPTION or NOMEM";
        if (error.code != rc || error.message[0] == '\0') return "no sentence";
        return digest() == all ? NULL : "a refused value has changed something";
    }
    value_of(key, before);
    if (api->set(api->context, key, before, &error) < 0) return "a value that is reported is refused";
    value_of(key, after);
    return strcmp(before, after) == 0 ? NULL : "a value that is set again is another one";
}

static const char *line_fault(char *line)
{
    char        *value = strchr(line, '=');
    graft_option option = GRAFT_INIT(graft_option);
    const char  *key = line;

    if (value == NULL) value = line + strlen(line);
    else *value++ = '\0';
    if (line[0] >= '0' && line[0] <= '9' && api->option_info(api->context, atoi(line), &option, NULL) == GRAFT_OK)
        key = option.key;
    return value_fault(key, value);
}

static const char *reset_all(void)
{
    graft_option option = GRAFT_INIT(graft_option);

    for (int32_t i = 0; api->option_info(api->context, i, &option, NULL) == GRAFT_OK; i++)
        if (strcmp(option.value, option.default_value) != 0 &&
            api->set(api->context, option.key, option.default_value, NULL) < 0)
            return "a default is refused";
    return NULL;
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    const char *fault = NULL;
    char       *text = malloc(count + 1);
    int         lines = 0;

    files_check(text != NULL, "malloc");
    memcpy(text, bytes, count);
    text[count] = '\0';
    for (char *at = text; at <= text + count && fault == NULL; at += strlen(at) + 1) {
        if (++lines > LINES) break;
        at[strcspn(at, "\n")] = '\0';
        fault = line_fault(at);
    }
    free(text);
    return fault != NULL ? fault : reset_all();
}
