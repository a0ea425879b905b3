/* The options of the library. To add one, add a row here and its field in base/option.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"

#include "base/handle.h"

#include <stddef.h>

/* The type of the field is checked where it is named. */
#define FIELD(field) (((struct gr_options *)0)->field)
#define AT(field) ((uint32_t)offsetof(struct gr_options, field))
#define CHOICE(field) GR_TYPE_CHOICE, _Generic(FIELD(field), int32_t: AT(field), uint32_t: AT(field))
#define INTEGER(field) GR_TYPE_INTEGER, _Generic(FIELD(field), int64_t: AT(field))
#define COUNT(field) GR_TYPE_COUNT, _Generic(FIELD(field), int64_t: AT(field))
#define NUMBER(field) GR_TYPE_NUMBER, _Generic(FIELD(field), double: AT(field))
#define TEXT(field) GR_TYPE_TEXT, _Generic(FIELD(field), const char *: AT(field))
#define WIDTHS(field) GR_TYPE_WIDTHS, _Generic(FIELD(field), struct gr_widths: AT(field))
#define CODEC(field) GR_TYPE_CODEC, _Generic(FIELD(field[0]), struct gr_halo_codec: AT(field))
#define BUDGET(field) GR_TYPE_BUDGET, _Generic(FIELD(field), struct gr_halo_budget: AT(field))

#define MODEL GR_GROUP_MODEL
#define TRAINING GR_GROUP_TRAINING
#define DATA GR_GROUP_DATA
#define RESOURCES GR_GROUP_RESOURCES
#define KERNELS GR_GROUP_KERNELS
#define PARTITION GR_GROUP_PARTITION
#define HALO GR_GROUP_HALO
#define SAMPLING GR_GROUP_SAMPLING
#define MESH GR_GROUP_MESH
#define LIBRARY GR_GROUP_LIBRARY

#define SAME GRAFT_SCOPE_SAME
#define EACH GRAFT_SCOPE_EACH
#define ROOT GRAFT_SCOPE_ROOT

#define USUAL GR_OPTION_USUAL
#define EXPERT 0
#define LIVE GR_OPTION_LIVE
#define EVERYWHERE GR_OPTION_EVERYWHERE
#define PREDICTS GR_OPTION_PREDICTS
#define CONNECTS GR_OPTION_CONNECTS
#define TRAINS GR_OPTION_TRAINS

#define RANKS "processes>1"
#define OWNED RANKS " and parallel!=feature"
#define EXCHANGE RANKS " and model!=mlp"
#define STALE EXCHANGE " and halo.staleness=1"
#define ADAPTIVE EXCHANGE " and halo.codec=adaptive"

#define DRAWN "batch_size!=0 and sampler=neighbour"
#define BY_LAYER "batch_size!=0 and sampler=neighbour|ladies"
#define CACHED EXCHANGE " and batch_size!=0"

#define MODEL_WORD(constant, word) "|" #word
#define SAMPLER_WORD(constant, word) "|" #word
#define CODEC_WORD(word, bits, adaptive, code) "|" word
#define METHOD_WORD(constant, word, whole) "|" #word

const char *const gr_option_groups[GR_GROUPS] = {
    [MODEL] = "model",      [TRAINING] = "training",   [DATA] = "data",          [RESOURCES] = "memory and speed",
    [KERNELS] = "kernels",  [PARTITION] = "partition", [HALO] = "halo exchange", [SAMPLING] = "minibatches",
    [MESH] = "mesh models", [LIBRARY] = "library",
};

#define KEPT_BY(kind) (1u << GR_HANDLE_##kind)

uint32_t gr_option_keepers(const struct gr_option_row *row)
{
    static const uint32_t of_group[GR_GROUPS] = {
        [MODEL] = KEPT_BY(TRAINER),
        [TRAINING] = KEPT_BY(TRAINER),
        [DATA] = KEPT_BY(TRAINER),
        [RESOURCES] = KEPT_BY(TRAINER),
        [KERNELS] = KEPT_BY(TRAINER),
        [PARTITION] = KEPT_BY(GRAPH),
        [HALO] = KEPT_BY(TRAINER) | KEPT_BY(PLAN) | KEPT_BY(HALO),
        [SAMPLING] = KEPT_BY(SAMPLER) | KEPT_BY(TRAINER),
    };

    if (row->flags & GR_OPTION_LIVE) return 0;
    if (row->flags & GR_OPTION_CONNECTS) return KEPT_BY(GRAPH); /* a group reads it in each call */
    return of_group[row->group] | (row->flags & GR_OPTION_EVERYWHERE ? of_group[HALO] : 0);
}

/* Groups stand together: lists are shown in this order. */
/* clang-format off */
const struct gr_option_row gr_option_table[] = {
    { "model", CHOICE(model.kind), &(GR_KIND_MAP(MODEL_WORD))[1], "sage", MODEL, SAME, USUAL, "",
      "kind of layers; mlp ignores the graph" },
    { "aggregator", CHOICE(model.aggregator), "mean|sum|max|min", "mean", MODEL, SAME, USUAL, "model=sage",
      "aggregation of neighbours in sage" },
    { "layers", INTEGER(model.layers), "1..64", "3", MODEL, SAME, USUAL, "", "number of layers" },
    { "hidden", WIDTHS(model.hidden), "1..65536", "128", MODEL, SAME, USUAL, "layers!=1",
      "width of the hidden layers: one number, or one per layer" },
    { "propagation", INTEGER(model.propagation), "1..63", "10", MODEL, SAME, USUAL, "model=sgc|appnp",
      "steps in which sgc and appnp propagate predictions" },
    { "teleport", NUMBER(model.teleport), "0..1", "0.1", MODEL, SAME, USUAL, "model=appnp",
      "share of a vertex's own prediction in each step of propagation" },
    { "heads", INTEGER(model.heads), "1..64", "4", MODEL, SAME, USUAL, "model=gat",
      "attention heads; they divide the hidden widths" },
    { "edge_features", CHOICE(model.edge_features), "none|values|array", "none", MODEL, SAME, USUAL, "model=gat",
      "edge features in the attention scores of gat: none, the edge value, or a row of the data set" },
    { "attention_input", CHOICE(model.attends_to_relu), "linear|relu", "linear", MODEL, SAME, USUAL, "model=gat",
      "rows in the attention of gat: H W, or ReLU(H W + b)" },
    { "dropout", NUMBER(model.dropout), "[0..1)", "0.5", MODEL, SAME, USUAL | TRAINS, "layers!=1",
      "share of hidden values dropped in training" },
    { "input_dropout", NUMBER(model.input_dropout), "[0..1)", "0", MODEL, SAME, USUAL | TRAINS, "",
      "share of input features dropped in training" },
    { "attention_dropout", NUMBER(model.attention_dropout), "[0..1)", "0", MODEL, SAME, USUAL | TRAINS, "model=gat",
      "share of the attention of gat dropped in training" },
    { "norm", CHOICE(model.norm), "none|layer|batch", "layer", MODEL, SAME, USUAL, "layers!=1",
      "normalisation between layers: of each row, or of each column over all vertices" },
    { "activation", CHOICE(model.is_elu), "relu|elu", "relu", MODEL, SAME, USUAL, "layers!=1",
      "function after each hidden layer" },
    { "norm_order", CHOICE(model.drops_first), "before_dropout|after_dropout", "before_dropout", MODEL, SAME,
      EXPERT | TRAINS, "layers!=1 and dropout!=0 and (norm!=none or activation!=relu)",
      "whether normalisation and activation are before dropout, or after it" },
    { "residual", CHOICE(model.adds_input), "no|yes", "no", MODEL, SAME, USUAL, "layers!=1|2",
      "add the input of hidden layers to their output, if their widths are equal" },
    { "jumping", CHOICE(model.jumping), "none|cat|max", "none", MODEL, SAME, USUAL, "layers!=1|2",
      "input of the last layer: the last hidden layer, all hidden layers side by side, or their maxima" },
    { "gin_eps", NUMBER(model.gin_eps), "", "0", MODEL, SAME, EXPERT, "model=gin",
      "epsilon of gin: additional weight of the vertex itself" },

    { "epochs", INTEGER(train.epochs), "0..", "100", TRAINING, SAME, USUAL | LIVE, "",
      "epochs to train, each one step on the whole graph" },
    { "lr", NUMBER(train.lr), "0..", "0.01", TRAINING, SAME, USUAL | LIVE, "epochs!=0", "learning rate" },
    { "schedule", CHOICE(train.schedule), "constant|cosine|step", "constant", TRAINING, SAME, USUAL | LIVE, "epochs!=0",
      "decrease of the learning rate: none, to 0 after the last epoch, or in steps" },
    { "schedule_every", INTEGER(train.schedule_every), "1..", "30", TRAINING, SAME, EXPERT | LIVE, "schedule=step",
      "epochs between two steps" },
    { "schedule_factor", NUMBER(train.schedule_factor), "0..1", "0.1", TRAINING, SAME, EXPERT | LIVE, "schedule=step",
      "factor of the learning rate in each step" },
    { "optimizer", CHOICE(train.optimizer), "adam|sgd", "adam", TRAINING, SAME, USUAL, "epochs!=0",
      "method of updating weights from gradients" },
    { "momentum", NUMBER(train.momentum), "[0..1)", "0", TRAINING, SAME, EXPERT | LIVE, "optimizer=sgd",
      "momentum of sgd" },
    { "weight_decay", NUMBER(train.weight_decay), "0..", "0", TRAINING, SAME, USUAL | LIVE, "epochs!=0",
      "L2 penalty on the weight matrices, added to gradients" },
    { "weight_decay_layers", CHOICE(train.decays_first_only), "all|first", "all", TRAINING, SAME, EXPERT,
      "weight_decay!=0", "layers to which the penalty applies" },
    { "clip_norm", NUMBER(train.clip_norm), "0..", "0", TRAINING, SAME, USUAL | LIVE, "epochs!=0",
      "length to which a longer gradient of all weights together is scaled down; 0: none" },
    { "on_nonfinite", CHOICE(train.restores), "stop|restore", "stop", TRAINING, SAME, USUAL | LIVE, "epochs!=0",
      "when loss or weights are not finite: end with an error, or go back and halve the learning rate" },
    { "loss", CHOICE(train.loss), "auto|softmax|sigmoid|mse|mae|huber", "auto", TRAINING, SAME, USUAL | PREDICTS, "",
      "auto: mse of float targets, sigmoid if vertices have several classes at once, else softmax" },
    { "huber_delta", NUMBER(train.huber_delta), "(0..", "1", TRAINING, SAME, EXPERT, "loss=huber",
      "error up to which the huber loss is quadratic; beyond, it is linear" },
    { "class_weights", CHOICE(train.balances), "none|balanced", "none", TRAINING, SAME, USUAL, "loss=auto|softmax",
      "weights of vertices in the softmax loss; balanced: all classes weigh the same in training" },
    { "label_smoothing", NUMBER(train.label_smoothing), "[0..1)", "0", TRAINING, SAME, USUAL, "loss=auto|softmax",
      "share of the target that the softmax loss spreads evenly over all classes" },
    { "label_rate", NUMBER(train.label_rate), "[0..1)", "0", TRAINING, SAME, EXPERT | PREDICTS, "",
      "share of training vertices whose labels are input in an epoch, and not in its loss" },
    { "seed", INTEGER(train.seed), "0..", "0", TRAINING, SAME, USUAL | EVERYWHERE, "",
      "seed of initial weights, dropout, label sets and stochastic rounding" },
    { "eval_every", INTEGER(train.eval_every), "0..", "1", TRAINING, SAME, USUAL | LIVE, "",
      "epochs between evaluations; 0: only after the last" },
    { "patience", INTEGER(train.patience), "0..", "0", TRAINING, SAME, USUAL | LIVE, "epochs!=0 and eval_every!=0",
      "epochs without a better validation before training stops; 0: never" },

    { "symmetrize", CHOICE(data.symmetrize), "no|yes", "no", DATA, SAME, USUAL, "model!=mlp",
      "store every edge in both directions" },
    { "self_loops", CHOICE(data.self_loops), "no|yes|auto", "auto", DATA, SAME, USUAL, "model!=mlp",
      "give each vertex an edge to itself; auto: if the model is gcn, gat, sgc or appnp" },
    { "normalize_features", CHOICE(data.normalize_features), "no|yes", "no", DATA, SAME, USUAL, "",
      "divide each row of features by its sum" },

    { "threads", INTEGER(resource.threads), "0..4096", "0", RESOURCES, EACH, USUAL | LIVE, "",
      "threads to use; 0: as many as OpenMP and processors allow" },
    { "workers.sparse", COUNT(resource.workers_sparse), "0..4095", "0", RESOURCES, EACH, USUAL,
      "model=sage|gcn|gin|sgc|appnp",
      "threads for sums over neighbours beside threads for dense products; 0: all do both in turn; auto: the faster" },
    { "workers.stages", INTEGER(resource.workers_stages), "0..32", "0", RESOURCES, EACH, EXPERT, "workers.sparse!=0",
      "blocks of rows of a product, which are the tasks of workers; 0: by the bandwidth of the graph" },
    { "memory.limit", INTEGER(resource.memory_limit), "0..1000000000", "0", RESOURCES, EACH, USUAL, "",
      "MB that a trainer may use; 0: the available memory of the system" },
    { "eval.blocks", CHOICE(resource.eval_blocks), "no|yes|auto", "auto", RESOURCES, EACH, USUAL | LIVE,
      "batch_size!=0 and processes=1",
      "evaluate and predict in blocks of rows: less memory, more time; auto: if all rows need 1 GB or do not fit" },
    { "eval.folder", TEXT(resource.eval_folder), "", "", RESOURCES, EACH, USUAL | LIVE,
      "eval.blocks=yes|auto and batch_size!=0 and processes=1",
      "folder for a file of outputs of layers in these blocks, instead of memory" },
    { "feature.graph", CHOICE(resource.feature_graph), "auto|replicate|stream", "auto", RESOURCES, SAME, USUAL,
      EXCHANGE " and parallel=feature|grid|auto",
      "edges of a group's ranks: held (replicate), or received in each sum (stream); auto: held if they fit" },
    { "recompute", CHOICE(resource.recompute), "no|yes", "no", RESOURCES, SAME, USUAL, "",
      "recompute values inside layers in the backward pass: less memory, more time" },
    { "order", CHOICE(resource.order), "given|degree|rcm|community", "given", RESOURCES, SAME, USUAL, "model!=mlp",
      "order of the vertices inside the trainer" },
    { "row_masks", CHOICE(resource.row_masks), "no|yes", "yes", RESOURCES, SAME, EXPERT,
      "model!=gat and (model!=sage or aggregator!=max|min or processes=1 or parallel=feature)",
      "compute only rows in the receptive field of training vertices" },
    { "reuse_input", CHOICE(resource.reuse_input), "no|yes", "yes", RESOURCES, SAME, EXPERT,
      "model=sage|gcn|gin and input_dropout=0", "aggregate constant features once, not in every pass" },
    { "sparse_input", CHOICE(resource.sparse_input), "no|yes|auto", "auto", RESOURCES, SAME, EXPERT, "",
      "multiply sparse features without making them dense; auto: if cheaper" },
    { "profile", CHOICE(resource.profile), "no|yes", "no", RESOURCES, EACH, USUAL, "",
      "record the times of phases of a trainer, or of a network on a mesh" },

    { "mxm.kernel", TEXT(kernel.mxm), "", "auto", KERNELS, SAME, USUAL | LIVE, "",
      "kernel of the sparse products: auto, or a name" },
    { "mxm.verify", INTEGER(kernel.verify), "0..1000000", "0", KERNELS, EACH, EXPERT | LIVE, "",
      "rows of every sparse product to compare with the reference kernel" },
    { "dense.module", TEXT(kernel.dense), "", "auto", KERNELS, SAME, USUAL, "",
      "module of the dense products: auto, or a name" },
    { "dense.type", CHOICE(kernel.dense_is_bf16), "f32|bf16", "f32", KERNELS, SAME, USUAL, "",
      "type that dense products multiply; sums are in f32" },
    { "model.type", CHOICE(kernel.model_type), "f32|bf16|f64", "f32", KERNELS, SAME, USUAL,
      "model!=mlp|gat and (model!=sage or aggregator!=max|min)",
      "f32, bf16: type of the rows that sums over neighbours read; f32, f64: of all numbers of a network on a mesh" },
    { "strict", CHOICE(kernel.strict), "no|yes", "no", KERNELS, SAME, EXPERT | LIVE, "",
      "fail if another kernel would replace the named kernel, or plain loops a BLAS" },

    { "partition", CHOICE(partition.method), &(GR_PARTITION_MAP(METHOD_WORD) "|auto|given")[1], "given", PARTITION,
      SAME, USUAL, RANKS,
      "method of assigning vertices to ranks; given: by slices; all others, with parallel=feature: in turn" },
    { "parallel", CHOICE(partition.parallel), "partition|feature|grid|auto", "partition", PARTITION, SAME, USUAL,
      EXCHANGE, "division of sums among ranks: rows; all columns (feature); columns of parts (grid); auto: predicted" },
    { "parallel.columns", INTEGER(partition.columns), "0..", "0", PARTITION, SAME, USUAL, EXCHANGE " and parallel=grid",
      "ranks that share the columns of a part; 0: about the root of the number of ranks" },
    { "partition.file", TEXT(partition.file), "", "", PARTITION, SAME, USUAL, OWNED,
      "file of the owners: read if it exists, else written" },
    { "partition.refine", INTEGER(partition.refine), "0..1000", "0", PARTITION, SAME, USUAL, OWNED,
      "rounds in which all ranks improve the partition, made by any method; 0: none" },
    { "partition.program", TEXT(partition.program), "", "auto", PARTITION, ROOT, EXPERT | LIVE,
      OWNED " and partition=metis|auto", "program that partitions with METIS; auto: graft-metis" },
    { "partition.timeout", NUMBER(partition.timeout), "1..1000000000", "600", PARTITION, ROOT, EXPERT | LIVE,
      OWNED " and partition=metis|auto", "seconds that the program may take" },

    { "halo.codec", CODEC(halo.codec), &(GR_CODEC_MAP(CODEC_WORD))[1], "f32", HALO, SAME, USUAL | LIVE, EXCHANGE,
      "quantization of boundary rows; q2/q8: forward/backward; adaptive: q2, q4 or q8 row by row" },
    { "halo.codec_evaluation", CHOICE(halo.evaluates_quantized), "f32|same", "f32", HALO, SAME, EXPERT | LIVE,
      EXCHANGE " and halo.codec:forward!=f32", "the codec of evaluations and predictions" },
    { "halo.budget", BUDGET(halo.budget), "bytes:N|error:X|balance:L", "balance:0.5", HALO, SAME, USUAL | LIVE,
      ADAPTIVE,
      "criterion of adaptive widths: bytes per epoch, relative squared error, or error against time (1: error only)" },
    { "halo.staleness", INTEGER(halo.staleness), "0..1", "0", HALO, SAME, USUAL | LIVE, EXCHANGE,
      "1: use stale boundary rows, of the previous epoch, while current ones travel" },
    { "halo.refresh", INTEGER(halo.refresh), "0..", "0", HALO, SAME, USUAL | LIVE, STALE,
      "epochs from one wait for fresh rows to the next; 0: only the first epoch waits" },
    { "halo.cover", CHOICE(halo.cover), "hybrid|pre|post", "hybrid", HALO, SAME, EXPERT,
      RANKS " and model!=gat|mlp and (model!=sage or aggregator!=max|min) and parallel!=feature",
      "rows to send: partial sums (pre), raw rows (post), or the fewest of both" },
    { "halo.rounding", CHOICE(halo.rounding), "auto|nearest|stochastic", "auto", HALO, SAME, EXPERT | LIVE,
      EXCHANGE " and halo.codec!=f32|q1:rotated", "auto: stochastic for gradients and 1 bit, else nearest" },
    { "halo.nonfinite", CHOICE(halo.refuses_nonfinite), "send|refuse", "send", HALO, SAME, EXPERT | LIVE,
      EXCHANGE " and halo.codec!=f32|bf16", "rows with NaN, infinity or too wide a range: sent as f32, or an error" },
    { "halo.error_statistics", CHOICE(halo.statistics), "no|sample|exact", "sample", HALO, EACH, EXPERT,
      EXCHANGE " and halo.codec!=f32", "rows whose quantization error is measured: none, one of 64, all" },
    { "halo.reassign_every", INTEGER(halo.reassign_every), "0..", "20", HALO, SAME, EXPERT | LIVE, ADAPTIVE,
      "epochs between decisions on widths; 0: once, after the first epoch" },
    { "halo.smoothing", NUMBER(halo.smoothing), "[0..1)", "0.8", HALO, SAME, EXPERT | LIVE, STALE,
      "weight of the previously used rows in the rows used now" },
    { "halo.drift_limit", NUMBER(halo.drift_limit), "0..", "0", HALO, SAME, EXPERT | LIVE, STALE,
      "wait for fresh rows after rows changed by more than this share; 0: never" },
    { "halo.timeout", NUMBER(halo.timeout), "1..1000000000", "600", HALO, EACH, CONNECTS, RANKS,
      "seconds that a rank waits for another before all cancel" },

    { "batch_size", INTEGER(sampling.batch_size), "0..", "0", SAMPLING, SAME, USUAL, "",
      "training vertices, or other seeds, of a minibatch; 0: all" },
    { "sampler", CHOICE(sampling.sampler), &(GR_SAMPLER_MAP(SAMPLER_WORD))[1], "neighbour", SAMPLING, SAME, USUAL,
      "batch_size!=0 and model!=mlp",
      "batches: neighbours drawn for each vertex or each layer (ladies), or subgraphs of parts or of random walks" },
    { "cluster.parts", INTEGER(sampling.cluster_parts), "0..1000000000", "0", SAMPLING, SAME, USUAL,
      "batch_size!=0 and sampler=cluster", "parts of the partition; 0: ten for each batch" },
    { "saint.walk", INTEGER(sampling.saint_walk), "1..1000", "2", SAMPLING, SAME, USUAL,
      "batch_size!=0 and sampler=saint", "steps of a random walk" },
    { "saint.coverage", INTEGER(sampling.saint_coverage), "1..10000", "20", SAMPLING, SAME, EXPERT,
      "batch_size!=0 and sampler=saint", "epochs of batches that are drawn first, to estimate the weights" },
    { "fanout", WIDTHS(sampling.fanout), "-1..1000000", "10", SAMPLING, SAME, USUAL, BY_LAYER,
      "neighbours drawn for a vertex, or for a layer (ladies): one number, or one per layer from the first; -1: all" },
    { "sample.weights", CHOICE(sampling.weights), "uniform|edge|degree", "uniform", SAMPLING, SAME, USUAL,
      DRAWN,
      "probabilities of neighbours: equal, or in proportion to the value of the edge or to their degree" },
    { "sample.replace", CHOICE(sampling.replace), "no|yes", "no", SAMPLING, SAME, EXPERT, DRAWN,
      "whether an edge may be drawn more than once" },
    { "sample.ahead", INTEGER(sampling.ahead), "0..4096", "0", SAMPLING, EACH, EXPERT, "batch_size!=0",
      "batches made at once, one on each thread; 0: one for each thread" },
    { "drop_last", CHOICE(sampling.drop_last), "no|yes", "no", SAMPLING, SAME, USUAL, BY_LAYER,
      "leave out a smaller batch at the end of an epoch" },
    { "history", CHOICE(sampling.history), "no|full", "no", SAMPLING, SAME, USUAL, "model!=mlp and batch_size!=0",
      "full: batches cover all vertices, and read rows of earlier batches for other neighbours; "
      "fanout is -1 unless it is set" },
    { "hec.rows", INTEGER(sampling.cache_rows), "1..2147483647", "1000000", SAMPLING, SAME, USUAL, CACHED,
      "rows of other ranks that a layer keeps; with hec.codec, more rows in the same bytes" },
    { "hec.life", INTEGER(sampling.cache_life), "1..1000000000", "10", SAMPLING, SAME, USUAL, CACHED,
      "batches for which a row is used" },
    { "hec.miss", CHOICE(sampling.cache_miss), "drop|drop_rescaled|last|fetch", "drop", SAMPLING, SAME, USUAL, CACHED,
      "for a missing row: 0 in sums; no term, with sums rescaled; an older row; or a row computed by its owner" },
    { "hec.keep", CHOICE(sampling.keeps_fetched), "no|yes", "no", SAMPLING, SAME, USUAL, CACHED " and hec.miss=fetch",
      "whether fetched rows are used again for hec.life batches, then without a gradient" },
    { "hec.codec", CHOICE(sampling.cache_codec), "f32|bf16|q8|q4", "f32", SAMPLING, SAME, EXPERT,
      "(processes>1 or history=full) and model!=mlp and batch_size!=0", "format of stored rows" },
    { "aep.rows", INTEGER(sampling.push_rows), "-1..2147483647", "-1", SAMPLING, SAME, USUAL, CACHED,
      "most rows of a layer that a batch sends to each rank, drawn by degree; -1: batch_size" },
    { "aep.codec", CHOICE(sampling.push_codec), "f32|bf16|q8|q4", "q8", SAMPLING, SAME, USUAL, CACHED,
      "format of sent rows" },
    { "aep.delay", INTEGER(sampling.push_delay), "1..64", "1", SAMPLING, SAME, EXPERT, CACHED,
      "batches after which sent rows are stored; at the end of an epoch all are stored" },

    { "mgn.width", INTEGER(mesh.width), "1..65536", "128", MESH, SAME, USUAL, "", "width of the layers of a network" },
    { "mgn.layers", INTEGER(mesh.layers), "1..64", "15", MESH, SAME, USUAL, "",
      "layers of message passing: number of edges that information travels in a step" },
    { "mgn.linear", INTEGER(mesh.linear), "1..16", "3", MESH, SAME, USUAL, "", "linear layers of each MLP" },
    { "mgn.activation", CHOICE(mesh.is_elu), "relu|elu", "relu", MESH, SAME, USUAL, "mgn.linear!=1",
      "activation between the linear layers" },
    { "mgn.norm", CHOICE(mesh.has_norm), "no|yes", "yes", MESH, SAME, USUAL, "",
      "LayerNorm at the end of each MLP except the output MLP" },
    { "mgn.sum", CHOICE(mesh.sum), "update|new|old", "update", MESH, SAME, USUAL, "",
      "values of edges that a node sums: the output of their MLP (update), their new values, or their old values" },
    { "mgn.edges", CHOICE(mesh.edges), "carried|encoded", "carried", MESH, SAME, USUAL, "mgn.layers!=1",
      "edges that a layer reads: the output of the layer before it, or the encoded edges" },
    { "mgn.edge_scale", CHOICE(mesh.scales_by_longest), "statistics|longest", "statistics", MESH, SAME, USUAL, "",
      "relative positions and lengths are standardised, or divided by the longest edge" },
    { "mgn.residual", CHOICE(mesh.adds_input), "no|yes", "no", MESH, SAME, USUAL, "",
      "add the standardised first inputs to the standardised outputs (nekRS-ML); for networks that predict values" },
    { "mgn.noise", NUMBER(mesh.noise), "0..", "0", MESH, SAME, USUAL | LIVE, "",
      "standard deviation of the noise in inputs of training, in the units of the data; for stable rollouts" },
    { "mgn.noise_correction", NUMBER(mesh.noise_correction), "0..1", "1", MESH, SAME, EXPERT | LIVE, "mgn.noise!=0",
      "share of the noise that the target of a step corrects" },
    { "mgn.gather", INTEGER(mesh.gather), "0..", "0", MESH, SAME, EXPERT, "",
      "first steps, which only gather statistics of the data" },
    { "mgn.freeze", INTEGER(mesh.freeze), "1..", "1000000", MESH, SAME, EXPERT, "",
      "steps after which these statistics no longer change" },
    { "mgn.lr", NUMBER(mesh.lr), "0..", "0.001", MESH, SAME, USUAL | LIVE, "", "learning rate of AdamW" },
    { "mgn.warmup", INTEGER(mesh.warmup), "0..", "100", MESH, SAME, USUAL | LIVE, "",
      "steps in which the learning rate rises linearly" },
    { "mgn.steps", INTEGER(mesh.steps), "0..", "0", MESH, SAME, USUAL | LIVE, "",
      "steps after which the learning rate has fallen to mgn.lr_end, along half a cosine; 0: it stays" },
    { "mgn.lr_end", NUMBER(mesh.lr_end), "0..", "0.00001", MESH, SAME, USUAL | LIVE, "mgn.steps!=0",
      "last learning rate" },
    { "mgn.beta1", NUMBER(mesh.beta1), "[0..1)", "0.9", MESH, SAME, EXPERT | LIVE, "",
      "decay of the first moment of AdamW" },
    { "mgn.beta2", NUMBER(mesh.beta2), "[0..1)", "0.999", MESH, SAME, EXPERT | LIVE, "",
      "decay of the second moment of AdamW" },
    { "mgn.weight_decay", NUMBER(mesh.weight_decay), "0..", "0", MESH, SAME, USUAL | LIVE, "",
      "decoupled decay of all weights (AdamW)" },
    { "stream.memory", INTEGER(mesh.memory), "1..1000000000", "256", MESH, EACH, USUAL, "",
      "MB of states that a stream may keep on a rank" },
    { "stream.policy", CHOICE(mesh.policy), "reservoir|fifo", "reservoir", MESH, SAME, USUAL, "",
      "stored pairs: each pair so far with equal probability (reservoir), or the latest" },
    { "stream.lag", INTEGER(mesh.lag), "1..1000000", "1", MESH, SAME, USUAL, "",
      "states offered from the input of a pair to its target" },
    { "stream.interval", INTEGER(mesh.interval), "1..1000000000", "1", MESH, SAME, USUAL, "",
      "states from the beginning of a pair to the beginning of the next" },
    { "stream.batch", INTEGER(mesh.batch), "1..1024", "1", MESH, SAME, USUAL, "", "pairs of a training step" },
    { "stream.holdout", INTEGER(mesh.holdout), "0..1000000000", "10", MESH, SAME, USUAL, "",
      "N: one of N pairs is for validation, and not for training; 0: none" },
    { "stream.nonfinite", CHOICE(mesh.drops_nonfinite), "refuse|drop", "refuse", MESH, SAME, USUAL | LIVE, "",
      "a state with NaN or infinity: an error, or dropped with its pairs and counted" },
    { "stream.patience", INTEGER(mesh.patience), "0..1000000000", "0", MESH, SAME, USUAL | LIVE, "",
      "validations without a better result before the advice to stop; 0: never" },

    { "module.path", TEXT(library.module_path), "", "", LIBRARY, EACH, EXPERT | LIVE, "",
      "folders, separated by ':', that are searched for modules first" },
    { "graphblas.path", TEXT(library.graphblas_path), "", "", LIBRARY, EACH, EXPERT, "mxm.kernel=graphblas",
      "file of the GraphBLAS that kernel graphblas uses; empty: the one of the process, else the newest" },
    { "log.level", CHOICE(library.log_level), "debug|info|warning|error", "info", LIBRARY, EACH, USUAL | LIVE, "",
      "least important lines that the log receives" },
    { "check", CHOICE(library.check), "no|args|full", "args", LIBRARY, SAME, USUAL | LIVE, "",
      "args: wrong handles and threads are errors; full: also changed arrays, wrong modules, copies that differ" },
};
/* clang-format on */

const int32_t gr_option_count = sizeof gr_option_table / sizeof *gr_option_table;
