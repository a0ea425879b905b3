/* Converts strings, numbers and options to JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "json_text.h"

#include <math.h>
#include <stdio.h>

json_t *json_text(const char *text)
{
    json_t *value = json_string(text);

    return value != NULL ? value : json_string("(not UTF-8)");
}

json_t *json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void json_add(json_t *object, const char *key, json_t *value, int *bad)
{
    if (json_object_set_new(object, key, value) != 0) *bad = 1;
}

int json_add_options(json_t *object, const struct library *library, const char *prefix)
{
    char key[128];

    for (int32_t i = 0;; i++) {
        graft_error  end = GRAFT_INIT(graft_error);
        graft_option option = GRAFT_INIT(graft_option);

        if (library->api->option_info(library->api->context, i, &option, &end) < 0) return 0;
        snprintf(key, sizeof key, "%s%s", prefix, option.key);
        if (json_object_set_new(object, key, json_text(option.value)) != 0) return -1;
    }
}
