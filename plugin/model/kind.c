/* The kinds of models. To add one: a file with its row, and its name here and in option "model".
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <string.h>

static const struct gr_model_kind *const kinds[] = { &gr_kind_sage, &gr_kind_gcn, &gr_kind_gat, &gr_kind_gin,
                                                     &gr_kind_mlp };

const struct gr_model_kind *gr_model_kind(const char *name)
{
    int kind = 0;

    while (strcmp(kinds[kind]->name, name) != 0) kind++;
    return kinds[kind];
}
