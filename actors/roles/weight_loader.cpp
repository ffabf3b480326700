#include "actors/roles/weight_loader.hpp"

#include <chrono>
#include <future>

#include <fmt/core.h>
#include <unistd.h>

#include "schemas/base/assert.hpp"
#include "schemas/base/time.hpp"
#include "workers/weights/progress_bar.hpp"

namespace moetier::roles {
namespace {

constexpr std::chrono::seconds k_activation_limit{2};

// What the plan asks of this worker, per layer.
std::vector<workers::layer_slots> rows_of(const eplb::placement& placement, std::size_t span) {
  std::size_t start = 0;
  for (std::size_t i = 0; i < span; ++i) start += placement.spans()[i].slots;
  const std::size_t slots = placement.spans()[span].slots;
  std::vector<workers::layer_slots> rows;
  for (const eplb::layer_slots& layer : placement.layers()) {
    const auto first = layer.experts.begin() + static_cast<std::ptrdiff_t>(start);
    rows.push_back({layer.layer, {first, first + static_cast<std::ptrdiff_t>(slots)}});
  }
  return rows;
}

}  // namespace

weight_loader::weight_loader(const options& o, equip_fn equip,
                             std::function<void(workers::event)> on_event, event_log& log)
    : options_(o), equip_(std::move(equip)), on_event_(std::move(on_event)), log_(log) {}

weight_loader::~weight_loader() {
  const std::lock_guard lock(mutex_);
  if (cancelled_) cancelled_->store(true);
}

void weight_loader::load(const workers::load_plan& plan) {
  auto cancelled = std::make_shared<std::atomic<bool>>(false);
  {
    const std::lock_guard lock(mutex_);
    loading_ = plan.generation;
    cancelled_ = cancelled;
  }
  jobs_.post([this, plan, cancelled] { do_load(plan, *cancelled); });
}

void weight_loader::cancel(generation_number generation) {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_ && loading_ == generation) cancelled_->store(true);
  }
  jobs_.post([this, generation] {
    if (!store_) return;
    const auto done = store_->abort(generation);
    count_pages();
    if (!done) log_.warn("abort_refused", {{"why", done.error().text}});
  });
}

expected<std::shared_ptr<const workers::generation_table>> weight_loader::activate(
    generation_number generation, plan_hash plan) {
  using result = expected<std::shared_ptr<const workers::generation_table>>;
  const auto answer = std::make_shared<std::promise<result>>();
  auto active = answer->get_future();
  jobs_.post([this, generation, plan, answer] {
    MOETIER_ASSERT(store_ != nullptr);
    auto table = store_->activate(generation, plan);
    count_pages();
    answer->set_value(std::move(table));
  });
  if (active.wait_for(k_activation_limit) != std::future_status::ready) {
    return fail(reason::internal_error, "the loader did not activate a plan in time");
  }
  return active.get();
}

void weight_loader::release(generation_number oldest_kept) {
  jobs_.post([this, oldest_kept] {
    if (store_) store_->release(oldest_kept);
    count_pages();
    on_event_(workers::pages_released{oldest_kept});
  });
}

void weight_loader::do_load(const workers::load_plan& plan, const std::atomic<bool>& cancelled) {
  const time_ns began = monotonic_now();
  const auto table = prepare(plan, cancelled);
  count_pages();
  if (!table) {
    if (table.error().why != reason::load_cancelled)
      meter_.count_fault(workers::load_fault_of(table.error()));
    log_.error("plan_not_loaded",
               {{"generation", plan.generation.value}, {"why", table.error().text}});
    on_event_(workers::plan_load_failed{plan.generation, plan.plan, table.error()});
    return;
  }
  const auto checksums = (*table)->checksums();
  log_.info("plan_loaded", {{"generation", plan.generation.value},
                            {"slots", checksums.size()},
                            {"ms", (monotonic_now() - began) / k_millisecond}});
  tell_quantising_error();
  on_event_(workers::plan_loaded{plan.generation, plan.plan,
                                 std::vector(checksums.begin(), checksums.end()),
                                 (*table)->shared_digest()});
}

// Pages are made for one backend: another resolution, which comes only while nothing is in service,
// starts anew.
expected<void> weight_loader::make_store(const workers::load_plan& plan, std::uint32_t slots) {
  if (store_ && resolution_ == plan.resolved->resolution_id) return {};
  store_.reset();
  workers::expert_store_options store{.slots = slots,
                                      .spare_pages = options_.spare_pages,
                                      .shared = plan.shared_experts,
                                      .memory_max_bytes = options_.memory_max_bytes};
  auto made_tools = equip_(*plan.resolved, store);
  if (!made_tools) return tl::unexpected(made_tools.error());
  if (made_tools->pages != nullptr) store.memory_max_bytes = made_tools->pages_max_bytes;
  const workers::host_page_memory_maker host;
  auto made = workers::expert_store::create(
      store, *made_tools->model, *made_tools->backend, *made_tools->source,
      made_tools->pages != nullptr ? *made_tools->pages : host);
  if (!made) return tl::unexpected(made.error());
  store_ = std::move(*made);
  resolution_ = plan.resolved->resolution_id;
  quantising_ = made_tools->quantising;
  return {};
}

// What the format costs, as far as this worker's experts say.
void weight_loader::tell_quantising_error() const {
  if (quantising_ == nullptr) return;
  const workers::quantising_error cost = quantising_->error();
  const auto text = [](double value) { return fmt::format("{:.3e}", value); };
  log_.info("quantised", {{"format", quant_name(quantising_->model().format.quant)},
                          {"matrices", cost.matrices},
                          {"rms_relative_mean", text(cost.rms_relative_mean)},
                          {"rms_relative_max", text(cost.rms_relative_max)},
                          {"max_abs", text(cost.max_abs)}});
}

expected<std::shared_ptr<const workers::generation_table>> weight_loader::prepare(
    const workers::load_plan& plan, const std::atomic<bool>& cancelled) {
  const int span = plan.placement.span_index(plan.self);
  if (span < 0) return fail(reason::placement_invalid, "this worker is not in the plan");
  const auto index = static_cast<std::size_t>(span);
  if (auto made = make_store(plan, plan.placement.spans()[index].slots); !made)
    return tl::unexpected(made.error());
  workers::progress_bar bar("weights", STDERR_FILENO);
  time_ns last = 0;
  const auto on_progress = [&](std::uint32_t loaded, std::uint32_t total) {
    const time_ns now = monotonic_now();
    if (loaded > 0) meter_.count_load(now - last);
    last = now;
    bar.update(loaded, total);
  };
  return store_->prepare(plan.generation, plan.plan, rows_of(plan.placement, index),
                         {.on_progress = on_progress, .cancelled = &cancelled});
}

void weight_loader::count_pages() noexcept {
  if (store_) meter_.set_pages(store_->pool());
}

}  // namespace moetier::roles
