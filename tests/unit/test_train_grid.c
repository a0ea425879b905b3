/* Ranks that share the columns of sums have the results of one process, for every model that sums and every data set.
 * All ranks share them with parallel=feature, groups of ranks with parallel=grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_cases.h"

#include <string.h>
#include <unistd.h>

int main(void)
{
    /* On 7 and 8 ranks some slices of 4 classes have no columns. 5 ranks are no grid of several columns. */
    static const char *const models[] = { "sage", "gcn", "gin" };
    static const int32_t     feature[] = { 2, 3, 4, 7, 8 }, grid[] = { 4, 8, 6, 2, 5 };

    alarm(600); /* under a sanitizer it is slow */
    train_shared = "parallel=feature";
    train_test_all(models, 3, train_setups, TRAIN_SETUPS, feature);
    train_test_all(models, 3, train_prepared, TRAIN_PREPARED, feature);
    train_test_sums(feature);
    train_shared = "parallel=grid";
    train_test_all(models, 3, train_setups, TRAIN_SETUPS, grid);
    train_test_all(models, 3, train_prepared, TRAIN_PREPARED, grid);
    train_shared = "parallel=grid parallel.columns=4";
    train_test_all(models, 1, train_prepared, TRAIN_PREPARED, (const int32_t[]){ 4, 8, 4, 8, 8 });
    train_shared = "parallel=grid partition.refine=2"; /* also of slices, which are not dealt */
    train_test_all(models, 1, train_setups, 4, grid);
    return done();
}
