#include "workers/store/expert_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/checksum.hpp"
#include "schemas/base/limits.hpp"

namespace moetier::workers {
namespace {

std::size_t widening_bytes(const model_description& model) {
  return matrix_form_of(model.format, model.intermediate_size, model.hidden_size).bytes;
}

std::size_t gate_bytes(const model_description& model) {
  return is_gated(model.activation.kind) ? widening_bytes(model) : 0;
}

std::size_t narrowing_bytes(const model_description& model) {
  return matrix_form_of(model.format, model.hidden_size, model.intermediate_size).bytes;
}

// Biases of one expert: gate, up, down.
std::size_t bias_count(const model_description& model) {
  return model.expert_bias ? 2 * std::size_t{model.intermediate_size} + model.hidden_size : 0;
}

std::uint64_t page_count(const expert_store_options& options, const model_description& model) {
  return (std::uint64_t{options.slots} + options.shared) * model.moe_layers.size() +
         options.spare_pages;
}

template <class... Args>
unexpected_error bad_rows(fmt::format_string<const Args&...> form, const Args&... args) {
  return fail(reason::placement_invalid, fmt::format(form, args...));
}

}  // namespace

// One expert to load: into slot `slot` of all slots counted through the layers.
struct expert_store::load_order {
  std::size_t slot = 0;
  layer_id layer;
  expert_id expert;
};

expected<store_bill> expert_store::bill(const expert_store_options& options,
                                        const model_description& model, std::size_t page_bytes) {
  const auto pages = page_pool::bill(page_bytes, page_count(options, model));
  if (!pages) return unexpected_error(pages.error());
  return store_bill{.pages = *pages,
                    .staging = gate_bytes(model) + widening_bytes(model) + narrowing_bytes(model) +
                               bias_count(model) * sizeof(float)};
}

expected<std::unique_ptr<expert_store>> expert_store::create(const expert_store_options& options,
                                                             const model_description& model,
                                                             const kernels::Backend& backend,
                                                             expert_source& source,
                                                             const page_memory_maker& memory) {
  if (options.slots == 0 || options.slots > k_slots_per_worker_max)
    return fail(reason::invalid_argument, "the number of slots per layer", options.slots,
                fmt::format("1 to {}", k_slots_per_worker_max));
  const auto due = bill(options, model, backend.page_bytes());
  if (!due) return unexpected_error(due.error());
  const std::size_t bytes = due->pages + (memory.on_host() ? due->staging : 0);
  if (bytes > options.memory_max_bytes)
    return fail(reason::memory_insufficient, "the expert store", bytes, options.memory_max_bytes);
  auto pool = page_pool::create(backend.page_bytes(), page_count(options, model),
                                options.memory_max_bytes, memory);
  if (!pool) return unexpected_error(std::move(pool.error()));
  return std::unique_ptr<expert_store>(
      new expert_store(model, backend, source, std::move(*pool), options.shared));
}

expert_store::expert_store(const model_description& model, const kernels::Backend& backend,
                           expert_source& source, std::unique_ptr<page_pool> pool,
                           std::uint32_t shared)
    : model_(model),
      backend_(backend),
      source_(source),
      pool_(std::move(pool)),
      shared_(shared),
      gate_(gate_bytes(model)),
      up_(widening_bytes(model)),
      down_(narrowing_bytes(model)),
      biases_(bias_count(model)) {}

expert_store::~expert_store() = default;

expected<std::shared_ptr<const generation_table>> expert_store::prepare(
    generation_number generation, plan_hash plan, std::vector<layer_slots> rows,
    const prepare_watch& watch) {
  if (is(prepared_, generation, plan)) return prepared_->table;
  if (is(active_, generation, plan)) return active_->table;
  if (auto fine = check_sequence(generation); !fine)
    return unexpected_error(std::move(fine.error()));
  if (auto fine = check_rows(rows); !fine) return unexpected_error(std::move(fine.error()));

  holding next;
  std::vector<slot_content> contents;
  const std::vector<load_order> orders = reuse(rows, next, contents);
  if (orders.size() > pool_->count(page_state::empty))
    return fail(reason::pages_short, generation.value, orders.size(),
                pool_->count(page_state::empty));

  const auto total = static_cast<std::uint32_t>(orders.size());
  std::uint32_t loaded = 0;
  if (watch.on_progress) watch.on_progress(loaded, total);
  for (const load_order& order : orders) {
    expected<void> filled;
    if (watch.cancelled != nullptr && watch.cancelled->load(std::memory_order_relaxed)) {
      filled = fail(reason::load_cancelled, generation.value);
    } else {
      filled = fill(order, next, contents);
    }
    if (!filled) return give_up(next, std::move(filled.error()));
    if (watch.on_progress) watch.on_progress(++loaded, total);
  }
  if (auto settled = pool_->settle(); !settled) return give_up(next, std::move(settled.error()));
  next.table = std::make_shared<const generation_table>(generation, plan, std::move(rows), contents,
                                                        shared_);
  prepared_ = std::move(next);
  return prepared_->table;
}

expected<std::shared_ptr<const generation_table>> expert_store::activate(
    generation_number generation, plan_hash plan) {
  if (is(active_, generation, plan)) return active_->table;
  if (!is(prepared_, generation, plan))
    return fail(reason::sequence, fmt::format("activating generation {}", generation.value),
                "this generation and plan are not prepared");
  MOETIER_ASSERT(!draining_);
  draining_ = std::exchange(active_, std::exchange(prepared_, std::nullopt));
  // All pages of the old one retire but for those that the new one holds too.
  std::vector<bool> kept(pool_->pages(), false);
  for (const auto& page : active_->pages) {
    if (!page) continue;
    kept[page->value] = true;
    if (pool_->state(*page) == page_state::verified) pool_->move(*page, page_state::serving);
    MOETIER_ASSERT(pool_->state(*page) == page_state::serving);
  }
  if (draining_) {
    for (const auto& page : draining_->pages) {
      if (page && !kept[page->value]) pool_->move(*page, page_state::retiring);
    }
  }
  return active_->table;
}

expected<void> expert_store::abort(generation_number generation) {
  if (active_ && active_->table->generation() == generation)
    return fail(reason::sequence, fmt::format("aborting generation {}", generation.value),
                "it is active");
  if (prepared_ && prepared_->table->generation() == generation) {
    empty_unless_serving(*prepared_);
    prepared_.reset();
  }
  return {};
}

void expert_store::release(generation_number oldest_kept) {
  if (!draining_ || draining_->table->generation() >= oldest_kept) return;
  empty_unless_serving(*draining_);
  draining_.reset();
}

std::shared_ptr<const generation_table> expert_store::table_of(const std::optional<holding>& held) {
  return held ? held->table : nullptr;
}

bool expert_store::is(const std::optional<holding>& held, generation_number generation,
                      plan_hash plan) {
  return held && held->table->generation() == generation && held->table->plan() == plan;
}

expected<void> expert_store::check_sequence(generation_number generation) const {
  const auto refuse = [&](std::string why) {
    return fail(reason::sequence, fmt::format("preparing generation {}", generation.value), why);
  };
  if (draining_)
    return refuse(
        fmt::format("generation {} is not released", draining_->table->generation().value));
  if (prepared_)
    return refuse(fmt::format("generation {} is prepared and neither activated nor aborted",
                              prepared_->table->generation().value));
  if (active_ && active_->table->generation() >= generation)
    return refuse(fmt::format("generation {} is active", active_->table->generation().value));
  return {};
}

expected<void> expert_store::check_rows(const std::vector<layer_slots>& rows) const {
  int last = -1;
  for (const layer_slots& row : rows) {
    const unsigned layer = row.layer.value;
    if (moe_index(model_, row.layer) < 0)
      return bad_rows("layer {} is no MoE layer of the model", layer);
    if (static_cast<int>(layer) <= last) return bad_rows("layer {} follows layer {}", layer, last);
    last = static_cast<int>(layer);
    if (row.experts.size() > k_slots_per_worker_max)
      return bad_rows("layer {} has {} slots; at most {}", layer, row.experts.size(),
                      k_slots_per_worker_max);
    std::vector<bool> seen(model_.experts, false);
    for (std::size_t slot = 0; slot < row.experts.size(); ++slot) {
      const std::int32_t expert = row.experts[slot];
      if (expert == k_no_expert) continue;
      if (expert < 0 || static_cast<std::uint32_t>(expert) >= model_.experts)
        return bad_rows("layer {} slot {} names expert {}; allowed: -1 (none) or 0 to {}", layer,
                        slot, expert, model_.experts - 1);
      if (seen[static_cast<std::size_t>(expert)])
        return bad_rows("layer {} has expert {} twice on one worker", layer, expert);
      seen[static_cast<std::size_t>(expert)] = true;
    }
  }
  return {};
}

std::vector<expert_store::load_order> expert_store::reuse(
    const std::vector<layer_slots>& rows, holding& next,
    std::vector<slot_content>& contents) const {
  // Where the active generation holds an expert of the layer at hand.
  struct held_page {
    page_index page;
    std::uint64_t checksum = 0;
  };
  std::vector<load_order> orders;
  std::vector<std::optional<held_page>> held(std::size_t{model_.experts} + shared_);
  for (const layer_slots& row : rows) {
    std::fill(held.begin(), held.end(), std::nullopt);
    const int layer_index = active_ ? active_->table->index_of(row.layer) : -1;
    if (layer_index >= 0) {
      const auto l = static_cast<std::size_t>(layer_index);
      const generation_table& table = *active_->table;
      std::size_t position = table.first_position(l);
      std::size_t page = position + l * shared_;
      for (const std::int32_t expert : table.experts(l)) {
        if (expert != k_no_expert)
          held[static_cast<std::size_t>(expert)] = {*active_->pages[page],
                                                    table.checksums()[position]};
        ++position;
        ++page;
      }
      for (std::uint32_t i = 0; i < shared_; ++i)
        held[model_.experts + i] = {*active_->pages[page + i],
                                    table.shared_checksums()[l * shared_ + i]};
    }
    const auto place = [&](std::size_t expert) {
      if (const auto from = held[expert]; from) {
        next.pages.back() = from->page;
        contents.back() = {pool_->address(from->page), from->checksum};
      } else {
        orders.push_back(
            {contents.size() - 1, row.layer, expert_id(static_cast<std::uint16_t>(expert))});
      }
    };
    for (std::size_t slot = 0; slot < row.experts.size() + shared_; ++slot) {
      next.pages.emplace_back();
      contents.emplace_back();
      if (slot >= row.experts.size()) {
        place(model_.experts + slot - row.experts.size());
      } else if (row.experts[slot] != k_no_expert) {
        place(static_cast<std::size_t>(row.experts[slot]));
      }
    }
  }
  return orders;
}

expected<void> expert_store::fill(const load_order& order, holding& next,
                                  std::vector<slot_content>& contents) {
  const std::size_t inner = biases_.empty() ? 0 : model_.intermediate_size;
  const std::span biases(biases_);
  const expert_buffers buffers{.gate = gate_,
                               .up = up_,
                               .down = down_,
                               .gate_bias = biases.first(inner),
                               .up_bias = biases.subspan(inner, inner),
                               .down_bias = biases.subspan(2 * inner)};
  if (auto done = source_.load(order.layer, order.expert, buffers); !done) return done;
  const page_index page = pool_->begin_fill();
  next.pages[order.slot] = page;
  const auto bytes = pool_->stage(page);
  if (!bytes) return unexpected_error(bytes.error());
  const auto layer_index = static_cast<std::size_t>(moe_index(model_, order.layer));
  backend_.pack_page(
      {.gate = gate_,
       .up = up_,
       .down = down_,
       .gate_bias = buffers.gate_bias,
       .up_bias = buffers.up_bias,
       .down_bias = buffers.down_bias,
       .constants = constants_of(model_, layer_index, order.expert.value >= model_.experts)},
      *bytes);
  contents[order.slot] = {pool_->address(page), xxh3_64(*bytes)};
  return pool_->send(page);
}

// Nothing may be on its way into a page that is given to another expert next.
unexpected_error expert_store::give_up(const holding& next, error why) {
  (void)pool_->settle();
  empty_unless_serving(next);
  return unexpected_error(std::move(why));
}

void expert_store::empty_unless_serving(const holding& dropped) {
  for (const auto& page : dropped.pages) {
    if (page && pool_->state(*page) != page_state::serving) pool_->move(*page, page_state::empty);
  }
}

}  // namespace moetier::workers
