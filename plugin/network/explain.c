/* The text of explain(), and the times of layers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "network/file.h"

static graft_network_times times_of(const graft_network *n, int32_t layer, int32_t pass)
{
    const int64_t             l = layer < 0 ? n->shape.options.layers - 1 - layer : layer;
    const struct gr_mgn_times t = gr_mgn_times_of(n->mgn, pass == GRAFT_PASS_BACKWARD, l);

    return (graft_network_times){ .size = sizeof(graft_network_times),
                                  .seconds = t.seconds[GR_MGN_ALL],
                                  .edges = t.seconds[GR_MGN_EDGES],
                                  .nodes = t.seconds[GR_MGN_NODES],
                                  .pack = t.seconds[GR_MGN_PACK],
                                  .wait = t.seconds[GR_MGN_WAIT],
                                  .unpack = t.seconds[GR_MGN_UNPACK],
                                  .bytes_sent = t.bytes_sent };
}

int32_t gr_network_times(const graft_network *n, int32_t layer, int32_t pass, graft_network_times *times,
                         graft_error *error)
{
    const long long last = (long long)n->shape.options.layers - 1;

    if (layer < -2 || layer > last)
        return gr_fail(error, GRAFT_ERR_ARG, "layer is %d, expected -2 to %lld", layer, last);
    if (pass != GRAFT_PASS_FORWARD && pass != GRAFT_PASS_BACKWARD)
        return gr_fail(error, GRAFT_ERR_ARG, "pass is %d, expected GRAFT_PASS_FORWARD or GRAFT_PASS_BACKWARD", pass);
    if (!n->times.is_measured)
        return gr_fail(error, GRAFT_ERR_STATE, "option 'profile' was no when the network was created");
    *times = times_of(n, layer, pass);
    return GRAFT_OK;
}

/* Append a line with the times of a layer, unless they are 0. */
static void add_layer(const graft_network *n, struct gr_text *t, int32_t layer, int32_t pass)
{
    const graft_network_times l = times_of(n, layer, pass);

    if (l.seconds == 0) return;
    gr_text_add(t, "           %-8s ", pass == GRAFT_PASS_FORWARD ? "forward" : "backward");
    if (layer < 0) gr_text_add(t, "%-9s", layer == -1 ? "ends" : "all");
    else gr_text_add(t, "layer %-3d", layer);
    gr_text_add(t, " %8.3f %8.3f %8.3f %8.3f %8.3f %8.3f %12lld\n", 1e3 * l.seconds, 1e3 * l.edges, 1e3 * l.nodes,
                1e3 * l.pack, 1e3 * l.wait, 1e3 * l.unpack, (long long)l.bytes_sent);
}

static void add_layers(const graft_network *n, struct gr_text *t)
{
    gr_text_add(t, "layers     %-18s %8s %8s %8s %8s %8s %8s %12s\n", "ms of a pass", "all", "edges", "nodes", "pack",
                "wait", "unpack", "bytes sent");
    for (int32_t pass = GRAFT_PASS_FORWARD; pass <= GRAFT_PASS_BACKWARD; pass++)
        for (int32_t layer = -2; layer < n->shape.options.layers; layer++) add_layer(n, t, layer, pass);
}

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
    gr_text_add(&t, "\ninputs     %lld of the state, %lld constant\n", (long long)n->columns.in,
                (long long)n->columns.constant);
    gr_text_add(&t, "outputs    %lld, %s\n", (long long)n->columns.out,
                n->predicts == GRAFT_PREDICTS_CHANGE ? "the change of the first inputs" : "values");
    gr_text_add(&t, "weights    %lld in %s, after %lld training steps\n", (long long)info.n_weights,
                n->parameters.dtype == GRAFT_F64 ? "f64" : "f32", (long long)n->progress.steps);
    gr_text_add(&t, "mesh       %lld nodes and %lld edges of rank %d of %d\n", (long long)n->mesh->n_nodes,
                (long long)n->mesh->n_edges, n->mesh->comm->rank, n->mesh->comm->n_ranks);
    gr_text_add(&t, "work       %.3g multiply-adds of an inference\n", info.multiply_adds);
    gr_text_add(&t, "messages   %lld bytes of rows sent for the last inference or pair\n", (long long)info.bytes_sent);
    gr_budget_text(&n->budget, 0, memory, sizeof memory);
    gr_text_add(&t, "memory     in MB: %s\n", memory);
    if (!n->times.is_measured) return;
    gr_text_add(&t, "time       %.3g s begin, %.3g s end, %.3g s training step, each of the last call\n",
                n->times.seconds[GR_PHASE_BEGIN], n->times.seconds[GR_PHASE_END], n->times.seconds[GR_PHASE_STEP]);
    add_layers(n, &t);
}
