/* Judges the dense modules that were built (judge/dense.c). The arguments are their files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "judge/judge.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) judge_dense(argv[i]);
    if (argc < 2) skip(1, "no dense module was built");
    return done();
}
