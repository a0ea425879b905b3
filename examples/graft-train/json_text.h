/* Texts, numbers and options as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include "library.h"

#include <jansson.h>

/** A text, or a placeholder if it is not UTF-8, as a path may be. NULL when out of memory. */
json_t *json_text(const char *text);

/** A number, or null for NaN and infinities, which JSON lacks. */
json_t *json_number(double value);

/** Add one member; the first failure is stored in *bad. */
void json_add(json_t *object, const char *key, json_t *value, int *bad);

/** Add every option to an object, under `prefix` and its key, with its value as a text. Returns 0 on success. */
int json_add_options(json_t *object, const struct library *library, const char *prefix);

#endif
