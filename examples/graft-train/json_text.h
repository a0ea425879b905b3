/* Converts strings, numbers and options to JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include "library.h"

#include <jansson.h>

/** Returns a JSON string. If the text is not UTF-8, as a path may be, the string is a placeholder. NULL when out of
 *  memory. */
json_t *json_text(const char *text);

/** Returns a JSON number, or null for NaN and infinities, which JSON does not have. */
json_t *json_number(double value);

/** Add a member to an object. A failure is stored in *bad. */
void json_add(json_t *object, const char *key, json_t *value, int *bad);

/** Add every option to an object. The name of the member is `prefix` and the key of the option, and its value is a
 *  string. Returns 0 on success. */
int json_add_options(json_t *object, const struct library *library, const char *prefix);

#endif
