/* Fills the table of calls from a loaded GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graphblas/calls.h"

#include <dlfcn.h>
#include <string.h>

static int resolve(void *handle, const char *name, void *field, size_t size)
{
    void *symbol = dlsym(handle, name);

    memcpy(field, &symbol, size);
    return symbol != NULL;
}

int grb_calls_fill(struct grb_calls *calls, void *handle)
{
    int complete = 1;

#define RESOLVE_FUNCTION(name, parameters) complete &= resolve(handle, #name, &calls->name##_, sizeof calls->name##_);
#define RESOLVE_OBJECT(type, name) complete &= resolve(handle, #name, &calls->name##_, sizeof calls->name##_);
    GRB_FUNCTIONS(RESOLVE_FUNCTION)
    GRB_OBJECTS(RESOLVE_OBJECT)
    resolve(handle, "GrB_Matrix_get_INT32", &calls->GrB_Matrix_get_INT32_, sizeof calls->GrB_Matrix_get_INT32_);
    return complete;
}

/* The major version of the library. The option for the version has two numbers, and each library knows one of them. */
int grb_calls_major(const struct grb_calls *calls)
{
    enum { VERSION_7 = 9, VERSION_8_AND_LATER = 7005 };
    GrB_Info (*get)(int, ...) = calls->GxB_Global_Option_get_;
    int found[3] = { 0, 0, 0 };

    if (get == NULL) return 0;
    if (get(VERSION_8_AND_LATER, found) != GrB_SUCCESS && get(VERSION_7, found) != GrB_SUCCESS) return 0;
    return found[0];
}
