// Data sets and training. See graft.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_TRAIN_HPP
#define GRAFT_TRAIN_HPP

#include "graft_graph.hpp"

#include <array>

namespace graft
{

/// The data from which a model learns: see graft_dataset. Containers are borrowed as long as a trainer uses them.
class dataset
{
  public:
    /// The rows of all vertices. Over ranks they are the rows of this rank, from vertex first_vertex on.
    explicit dataset(const graft_csr &rows, std::int64_t first_vertex = 0)
        : raw_(GRAFT_INIT(graft_dataset)), graph_(rows)
    {
        raw_.n_vertices = rows.n_cols;
        raw_.first_vertex = first_vertex;
        raw_.n_slice = rows.n_rows;
    }
    /// Features as [n x n_features] floats.
    dataset &features(const input &values)
    {
        features_ = view(values, "features");
        has_features_ = true;
        raw_.n_features = features_.n_cols;
        return *this;
    }
    dataset &sparse_features(const graft_csr &values)
    {
        sized(values.n_rows, raw_.n_slice, "rows of sparse features");
        sparse_features_ = values;
        has_sparse_features_ = true;
        raw_.n_features = values.n_cols;
        return *this;
    }
    /// The class of each vertex, or -1.
    dataset &labels(const std::vector<std::int32_t> &classes, std::int64_t n_classes)
    {
        sized(classes.size(), raw_.n_slice, "labels");
        raw_.labels = classes.data();
        raw_.n_classes = n_classes;
        return *this;
    }
    /// Several classes for each vertex, as [n x n_classes] values 0 or 1.
    dataset &targets(const std::vector<std::uint8_t> &values, std::int64_t n_classes)
    {
        sized(values.size(), raw_.n_slice * n_classes, "targets");
        raw_.targets = values.data();
        raw_.n_classes = n_classes;
        return *this;
    }
    /// Targets of a regression as [n x outputs] floats; NaN means that a target is unknown.
    dataset &float_targets(const input &values)
    {
        float_targets_ = view(values, "float targets");
        has_float_targets_ = true;
        raw_.n_classes = float_targets_.n_cols;
        return *this;
    }
    /// The part of the split of each vertex, GRAFT_SPLIT_...
    dataset &split(const std::vector<std::uint8_t> &parts)
    {
        sized(parts.size(), raw_.n_slice, "parts of the split");
        raw_.split = parts.data();
        return *this;
    }
    /// Edge features as [entries x d] floats, with one row for each entry of the graph.
    dataset &edge_features(const input &values)
    {
        edge_features_ = detail::dense_of(values);
        has_edge_features_ = true;
        return *this;
    }
    /// The C struct for functions of the library. It is valid as long as this object exists.
    graft_dataset get() const
    {
        graft_dataset result = raw_;

        result.graph = &graph_;
        result.features = has_features_ ? &features_ : nullptr;
        result.sparse_features = has_sparse_features_ ? &sparse_features_ : nullptr;
        result.float_targets = has_float_targets_ ? &float_targets_ : nullptr;
        result.edge_features = has_edge_features_ ? &edge_features_ : nullptr;
        return result;
    }

  private:
    template <class Size> static void sized(Size size, std::int64_t expected, const char *what)
    {
        if (static_cast<std::int64_t>(size) != expected)
            throw error(GRAFT_ERR_ARG, std::to_string(size) + " " + what + ", expected " + std::to_string(expected));
    }
    graft_dense view(const input &values, const char *what) const
    {
        sized(values.get()->n_rows, raw_.n_slice, (std::string("rows of ") + what).c_str());
        return detail::dense_of(values);
    }
    graft_dataset raw_;
    graft_csr     graph_, sparse_features_ = GRAFT_INIT(graft_csr);
    graft_dense   features_ = GRAFT_INIT(graft_dense), float_targets_ = features_, edge_features_ = features_;
    bool          has_features_ = false, has_sparse_features_ = false, has_float_targets_ = false;
    bool          has_edge_features_ = false;
};

/// A data set that is read from a folder or a Matrix Market file (graft.data/1). Over ranks each rank has a slice.
class data : public detail::object<graft_data_api, graft_data>
{
  public:
    data(const context &in, const std::string &path) : object(in, ranks())
    {
        detail::call(table_->open, in.get(), path.c_str(), &raw_);
    }
    /// Collective.
    data(const context &in, const ranks &over, const std::string &path) : object(in, over)
    {
        detail::call(table_->open_slice, in.get(), over.get(), path.c_str(), &raw_);
    }
    /// The arrays of the data set. They are valid as long as this object exists.
    const graft_dataset &view() const
    {
        return *table_->view(raw_);
    }
};

/// An array of the state of a trainer: see graft_state_item.
struct state_item {
    std::string                name;
    graft_dtype                dtype;
    std::vector<std::int64_t>  shape;
    std::vector<unsigned char> bytes;
};

/// Trains a model (graft.train/1).
class trainer : public detail::object<graft_train_api, graft_trainer>
{
  public:
    /// Train in one process. The description is copied, and its containers are borrowed.
    trainer(const context &in, const dataset &from) : object(in, ranks())
    {
        const auto kept = std::make_shared<dataset>(from);

        keeps_ = kept;
        create(kept->get(), nullptr);
    }
    /// Train over ranks on the slices of all ranks. Graft distributes their graph over the ranks. Collective.
    trainer(const context &in, const ranks &over, const dataset &from) : object(in, over)
    {
        const auto kept = std::make_shared<dataset>(from);

        keeps_ = kept;
        create(kept->get(), distribute(kept->get()));
    }
    /// Train on a data set of files. Collective over the ranks that have read it.
    explicit trainer(data from) : object(from)
    {
        const auto           kept = std::make_shared<data>(std::move(from));
        const graft_dataset &raw = kept->view();

        keeps_ = kept;
        create(raw, ranks_.get() != nullptr ? distribute(raw) : nullptr);
    }

    /// Train for an epoch.
    graft_epoch epoch()
    {
        auto result = GRAFT_INIT(graft_epoch);

        detail::call(table_->epoch, raw_, &result);
        return result;
    }
    /// Train as many epochs as option "epochs" says, unless `after` returns true or option patience ends the training
    /// earlier.
    graft_epoch train(const std::function<bool(const graft_epoch &)> &after = nullptr)
    {
        graft_epoch last = epoch();

        while (!(after && after(last)) && last.done == 0 && last.should_stop == 0) last = epoch();
        return last;
    }
    /// Measure a model with one of its sets of weights, GRAFT_WEIGHTS_...
    graft_metrics evaluate(std::int32_t weights = GRAFT_WEIGHTS_BEST)
    {
        auto result = GRAFT_INIT(graft_metrics);

        detail::call(table_->evaluate, raw_, weights, &result);
        return result;
    }
    /// The predicted class of each vertex. Over ranks these are the vertices of the slice.
    std::vector<std::int32_t> predict(std::int32_t weights = GRAFT_WEIGHTS_BEST)
    {
        std::vector<std::int32_t> result(static_cast<std::size_t>(n_));

        detail::call(table_->predict, raw_, weights, result.data(), nullptr);
        return result;
    }
    /// The outputs of the model, which are n_outputs() floats for each vertex, row by row.
    std::vector<float> outputs(std::int32_t weights = GRAFT_WEIGHTS_BEST)
    {
        std::vector<float> result(static_cast<std::size_t>(n_ * n_outputs_));
        const graft_dense  to = graft_dense_in(GRAFT_F32, n_, n_outputs_, result.data());

        detail::call(table_->predict, raw_, weights, nullptr, &to);
        return result;
    }
    std::int64_t n_outputs() const noexcept
    {
        return n_outputs_;
    }
    /// Replace arrays of the data, GRAFT_UPDATE_... The containers are borrowed like those of the trainer.
    void update(std::uint32_t what, const dataset &with)
    {
        const auto          kept = std::make_shared<const dataset>(with);
        const graft_dataset raw = kept->get();

        if (updates_ == nullptr) {
            updates_ = std::make_shared<updates>();
            updates_->first = keeps_;
            keeps_ = updates_;
        }
        detail::call(table_->update, raw_, what, &raw);
        for (std::size_t bit = 0; bit < updates_->last.size(); bit++)
            if ((what >> bit & 1u) != 0) updates_->last[bit] = kept;
    }

    /// Copy everything that determines the further training.
    std::vector<state_item> state() const
    {
        std::vector<state_item> result;

        for (const graft_state_item &raw : items(table_->state_item)) {
            state_item   item{ raw.name, raw.dtype, { raw.shape, raw.shape + raw.n_dims }, {} };
            std::int64_t size = raw.dtype == GRAFT_F32 ? 4 : 8;

            for (const std::int64_t extent : item.shape) size *= extent;
            const unsigned char *first = static_cast<const unsigned char *>(raw.data);
            if (size > 0) item.bytes.assign(first, first + size);
            result.push_back(std::move(item));
        }
        return result;
    }
    /// Continue from the state of a trainer with the same options and data.
    void set_state(const std::vector<state_item> &state)
    {
        for (const state_item &item : state) {
            auto raw = GRAFT_INIT(graft_state_item);

            if (item.shape.size() > 4) throw error(GRAFT_ERR_ARG, "an item of more than 4 dimensions");
            raw.name = item.name.c_str();
            raw.dtype = item.dtype;
            raw.n_dims = static_cast<std::int32_t>(item.shape.size());
            for (std::size_t i = 0; i < item.shape.size(); i++) raw.shape[i] = item.shape[i];
            raw.data = item.bytes.data();
            detail::call(table_->state_set, raw_, &raw);
        }
    }
    /// Write a model file (graft.model/1), with contents GRAFT_MODEL_... Each rank that calls this needs its own path.
    void save(const std::string &path, std::int32_t what = GRAFT_MODEL_STATE) const
    {
        model_holder model(context_);

        detail::call(model.table.create, raw_, what, &model.raw);
        detail::call(model.table.save, model.raw, path.c_str());
    }
    /// Load a state from a file, which rank 0 reads, to continue from it. Collective.
    void load(const std::string &path)
    {
        model_holder model(context_);

        detail::call(model.table.load, context_.get(), ranks_.get(), path.c_str(), &model.raw);
        detail::call(model.table.apply, model.raw, raw_);
    }

    /// The time spans of the last call, which need option profile=yes.
    std::vector<graft_span> spans() const
    {
        return items(context_.table<graft_report_api>().span);
    }
    std::vector<graft_memory_item> memory() const
    {
        return items(context_.table<graft_report_api>().memory_item);
    }
    /// The messages that this rank has received from rank `rank`; -1 for all ranks.
    graft_traffic traffic(std::int32_t rank = -1) const
    {
        auto result = GRAFT_INIT(graft_traffic);

        detail::call(context_.table<graft_report_api>().traffic, raw_, rank, &result);
        return result;
    }
    std::vector<graft_traffic_item> traffic_items(std::int32_t rank = -1) const
    {
        return items_of(context_.table<graft_report_api>().traffic_item, rank);
    }
    std::vector<graft_cache_item> caches(std::int32_t rank = -1) const
    {
        return items_of(context_.table<graft_report_api>().cache_item, rank);
    }

  private:
    // The objects that a trainer over ranks keeps: the graph, and the data whose arrays it uses.
    struct with_graph {
        std::shared_ptr<const void> data;
        graph                       over;
    };
    // The objects that a trainer keeps after updates: its original data, and the last data set of each GRAFT_UPDATE_...
    struct updates {
        std::shared_ptr<const void>                    first;
        std::array<std::shared_ptr<const dataset>, 32> last;
    };
    struct model_holder {
        explicit model_holder(const context &in) : table(in.table<graft_model_api>())
        {
        }
        model_holder(const model_holder &) = delete;
        model_holder &operator=(const model_holder &) = delete;
        ~model_holder()
        {
            if (raw != nullptr) table.destroy(raw);
        }
        const graft_model_api &table;
        graft_model           *raw = nullptr;
    };
    // Distribute the graph over ranks, with about equally many training vertices on each.
    graft_graph *distribute(const graft_dataset &raw)
    {
        auto                      slice = GRAFT_INIT(graft_slice);
        std::vector<std::uint8_t> is_trained;

        for (std::int64_t v = 0; v < raw.n_slice && raw.split != nullptr; v++)
            is_trained.push_back(raw.split[v] == GRAFT_SPLIT_TRAIN);
        slice.n_vertices = raw.n_vertices;
        slice.first_row = raw.first_vertex;
        slice.rows = raw.graph;
        slice.train_mask = is_trained.empty() ? nullptr : is_trained.data();
        const std::shared_ptr<with_graph> kept(new with_graph{ keeps_, graph(context_, ranks_, slice) });
        keeps_ = kept;
        return kept->over.get();
    }
    void create(graft_dataset from, graft_graph *over)
    {
        from.over = over;
        n_ = over != nullptr || (from.flags & GRAFT_DATASET_SLICE) != 0 ? from.n_slice : from.n_vertices;
        n_outputs_ = from.n_classes;
        detail::call(table_->create, context_.get(), &from, &raw_);
    }
    // All items that a function returns. It reports the end by ERR_NOT_FOUND.
    template <class Item, class Read> static std::vector<Item> items(Read read)
    {
        std::vector<Item> result;

        for (std::int32_t index = 0;; index++) {
            auto               item = GRAFT_INIT(Item);
            auto               failure = GRAFT_INIT(graft_error);
            const std::int32_t rc = read(index, &item, &failure);

            if (rc == GRAFT_ERR_NOT_FOUND) return result;
            if (rc < 0) throw error(failure);
            result.push_back(item);
        }
    }
    template <class Item, class Index>
    std::vector<Item> items(std::int32_t (*read)(graft_trainer *, Index, Item *, graft_error *)) const
    {
        return items<Item>(
            [&](std::int32_t index, Item *item, graft_error *failure) { return read(raw_, index, item, failure); });
    }
    template <class Item>
    std::vector<Item> items_of(std::int32_t (*read)(graft_trainer *, std::int32_t, std::int32_t, Item *, graft_error *),
                               std::int32_t rank) const
    {
        return items<Item>([&](std::int32_t index, Item *item, graft_error *failure) {
            return read(raw_, rank, index, item, failure);
        });
    }
    std::int64_t n_ = 0, n_outputs_ = 0;

    std::shared_ptr<updates> updates_; // also stored in keeps_, which is freed after the object
};

} // namespace graft
#endif
