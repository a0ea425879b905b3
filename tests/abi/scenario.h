/* Small jobs that use the library as hosts do, for the tests of manners (test_manners) and of memory (oom/test_oom).
 * Each job opens a context, uses it, and closes it, also after a failure.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SCENARIO_H
#define SCENARIO_H

#include "fuzz/data_files.h"
#include "oracle/sample.h"
#include "watch.h"

enum scene_set { SCENE_DENSE, SCENE_SPARSE, SCENE_TARGETS, SCENE_SETS };

/** The data on which the jobs work. */
struct scene {
    struct sample_dataset set[SCENE_SETS];
    struct sample_csr     a;
    struct data_folder    dense, sparse, market, modules; /* folders of data sets; `modules` has one good kernel, or
                                                           * nothing */
    double                loss;                           /* loss of the last epoch */
};

void scene_init(struct scene *scene);
void scene_fini(struct scene *scene);

struct scenario {
    const char *name;
    int32_t (*play)(const struct scenario *scenario, struct scene *scene, struct subject *subject, graft_error *error);
    enum scene_set set;
    const char    *settings[6][2];
};
extern const struct scenario scenarios[];
extern const int             n_scenarios;

/** Open a context, set the options, run the job and close the context. The result is the first status that is not
 * OK. */
int32_t scenario_play(const struct scenario *scenario, struct scene *scene, graft_error *error);

/** Take a model out of the trainer, save it, load it, apply it to the trainer, and predict with it. */
int32_t scenario_use_model(struct subject *s, graft_trainer *trainer, const graft_dataset *data, graft_error *error);

/** Sample batches of a graph, in epochs and for given seeds. */
int32_t scenario_sample_batches(const struct scenario *scenario, struct scene *scene, struct subject *s,
                                graft_error *error);

/** Send small and large messages between two ranks of this process, and make each call of a request. */
int32_t scenario_transport(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error);

#endif
