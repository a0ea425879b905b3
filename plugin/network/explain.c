/* A network in a few lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "network/file.h"

void gr_network_explain(const graft_network *n, char *text, uint64_t capacity)
{
    struct gr_text          t = { text, capacity };
    struct gr_network_texts texts;
    graft_network_info      info;
    char                    memory[512];

    gr_network_info(n, &info);
    gr_network_texts(n, &texts);
    gr_text_add(&t, "model      mgn:");
    for (int k = 6; k < GR_NETWORK_TEXTS; k++)
        gr_text_add(&t, "%s %s=%s", k > 6 ? "," : "", texts.pair[k].key + 4, texts.value[k]);
    gr_text_add(&t, "\ninputs     %lld of the state, %lld constant\n", (long long)n->n_in, (long long)n->n_constant);
    gr_text_add(&t, "outputs    %lld, %s\n", (long long)n->n_out,
                n->predicts == GRAFT_PREDICTS_CHANGE ? "the change of the first inputs" : "values");
    gr_text_add(&t, "weights    %lld in %s, after %lld training steps\n", (long long)info.n_weights,
                n->dtype == GRAFT_F64 ? "f64" : "f32", (long long)n->steps);
    gr_text_add(&t, "mesh       %lld nodes and %lld edges of rank %d of %d\n", (long long)n->mesh->n_nodes,
                (long long)n->mesh->n_edges, n->mesh->comm->rank, n->mesh->comm->n_ranks);
    gr_text_add(&t, "work       %.3g multiply-adds of an inference\n", info.multiply_adds);
    gr_text_add(&t, "messages   %lld bytes of rows sent for the last inference or pair\n", (long long)info.bytes_sent);
    gr_budget_text(&n->budget, 0, memory, sizeof memory);
    gr_text_add(&t, "memory     in MB: %s\n", memory);
    if (n->profile)
        gr_text_add(&t, "time       %.3g s begin, %.3g s end, %.3g s training step, each of the last call\n",
                    n->seconds[GR_PHASE_BEGIN], n->seconds[GR_PHASE_END], n->seconds[GR_PHASE_STEP]);
}
