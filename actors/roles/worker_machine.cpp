#include "actors/roles/worker_machine.hpp"

#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "actors/config/device_name.hpp"
#include "actors/config/input_error.hpp"
#include "actors/process/probe_environment.hpp"
#include "schemas/base/limits.hpp"
#include "schemas/resolution/documents.hpp"
#include "transport/waits/wait_document.hpp"

namespace moetier::roles {
namespace {

constexpr duration_ns k_engine_stands_after = 3 * k_second;

std::size_t memory_of_machine() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long bytes = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && bytes > 0 ? static_cast<std::size_t>(pages) * static_cast<std::size_t>(bytes)
                                : 0;
}

std::vector<std::uint8_t> plain(const transport::member_address& address) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(address.data());
  return {first, first + address.size()};
}

// Where the router weight is on the input, a token's shared experts get a second row.
std::uint32_t rows_max_of(const model_description& model, std::uint32_t tokens_max) {
  const bool second_rows = model.weight_at == weight_point::input && model.shared.count > 0;
  return second_rows ? 2 * tokens_max : tokens_max;
}

}  // namespace

worker_machine::worker_machine(const config::settings& settings, event_log& log, ending& end)
    : settings_(settings), log_(log), ending_(end) {}

worker_machine::~worker_machine() { stop(); }

expected<std::unique_ptr<worker_machine>> worker_machine::make(const config::settings& s,
                                                               incarnation_id incarnation,
                                                               event_log& log, ending& end) {
  if (s.model.path.empty()) {
    return fail(reason::config_invalid, "model.path", "not set", "a model directory");
  }
  std::unique_ptr<worker_machine> m(new worker_machine(s, log, end));
  if (auto opened = m->open_device(); !opened) return tl::unexpected(opened.error());
  auto checkpoint =
      workers::checkpoint::open(s.model.path, {.serve_nonfinite = s.model.nonfinite == "serve"});
  if (!checkpoint) return tl::unexpected(config::of_input_file(checkpoint.error()));
  m->checkpoint_ = std::move(*checkpoint);
  auto carrier = transport::open_carrier(config::carrier_of(s),
                                         {.listen = s.transport.listen,
                                          .checksum_payload = s.transport.checksum == "on",
                                          .allow_tcp = s.transport.allow_tcp != "off"});
  if (!carrier) return tl::unexpected(carrier.error());
  m->carrier_ = std::move(*carrier);
  // The coordinator numbers this worker later, when it has told its address.
  auto half =
      m->carrier_->make_worker({.identity = {transport::k_worker_unnumbered, incarnation},
                                .sources_max = s.transport.max_sources,
                                .row_memory = m->device_ ? m->device_->row_memory() : nullptr});
  if (!half) return tl::unexpected(half.error());
  m->half_ = std::move(*half);
  log.info("carrier", {{"name", m->carrier_->name()}, {"lanes", m->carrier_->describe()}});
  m->environment_ = probe_environment({.settings = s,
                                       .build = this_build(),
                                       .carriers = {std::string(m->carrier_->name())},
                                       .device = m->device_ ? &m->device_->facts() : nullptr});
  return m;
}

expected<void> worker_machine::open_device() {
  const auto wish = config::parse_device(settings_.worker.device);
  if (!wish || !wish->cuda) return {};
  // Nothing is tried again on a device that failed: this process ends, another one may use it.
  const auto on_lost = [this](const error& why) {
    device_state_.store(control::device_state::lost, std::memory_order_relaxed);
    device_errors_.fetch_add(1, std::memory_order_relaxed);
    log_.error("device_lost", {{"device", settings_.worker.device}, {"why", why.text}});
    ending_.core_stopped(why);
  };
  auto opened = workers::open_device(
      {.ordinal = wish->ordinal_or_first(), .spin = settings_.transport.spin, .on_lost = on_lost});
  if (!opened) return tl::unexpected(opened.error());
  device_ = std::move(*opened);
  device_state_.store(control::device_state::sound, std::memory_order_relaxed);
  const workers::device_facts& facts = device_->facts();
  log_.info("device", {{"name", facts.name},
                       {"number", facts.ordinal},
                       {"architecture", facts.architecture},
                       {"memory_bytes", facts.memory_bytes},
                       {"free_bytes", device_->free_bytes()},
                       {"driver", facts.driver}});
  return {};
}

void worker_machine::describe(workers::core_options& to) const {
  to.model_fingerprint = checkpoint_->model().fingerprint;
  to.checkpoint_digest = checkpoint_->digest();
  to.slots = settings_.worker.slots;
  const std::string environment = resolution::document_of(environment_);
  to.environment.assign(environment.begin(), environment.end());
  to.carrier = config::carrier_of(settings_);
  to.address = plain(half_->address());
}

std::size_t worker_machine::memory_max_bytes() const {
  return settings_.worker.memory != 0 ? settings_.worker.memory : memory_of_machine();
}

void worker_machine::start(std::function<void(workers::event)> post) {
  post_ = std::move(post);
  adapters_ = std::make_unique<adapter_shelf>(*checkpoint_, memory_max_bytes());
  adapter_reader_ = std::make_unique<job_thread>();
  loader_ = std::make_unique<weight_loader>(
      weight_loader::options{.spare_pages = settings_.worker.spare_pages,
                             .memory_max_bytes = memory_max_bytes()},
      [this](const resolution::resolution_report& resolved,
             const workers::expert_store_options& store) { return equip(resolved, store); },
      [this](workers::event e) {
        if (const auto* failed = std::get_if<workers::plan_load_failed>(&e)) {
          const std::lock_guard lock(mutex_);
          load_error_ = failed->why;
        }
        post_(std::move(e));
      },
      log_);
}

void worker_machine::stop() {
  if (const auto running = engine()) running->stop();
  adapter_reader_.reset();
  loader_.reset();
}

std::shared_ptr<workers::engine> worker_machine::engine() const {
  const std::lock_guard lock(mutex_);
  return engine_;
}

expected<weight_loader::tools> worker_machine::equip(const resolution::resolution_report& resolved,
                                                     const workers::expert_store_options& store) {
  // Nothing is in service: the core takes another resolution only then. What was made for the one
  // before goes first, as both may not fit a device.
  if (const auto old = engine()) old->stop();
  {
    const std::lock_guard lock(mutex_);
    engine_.reset();
    runs_adapters_ = false;
    device_bill_ = {};
  }
  equipment_ = {};
  const model_description& model = checkpoint_->model();
  const std::uint32_t rows_max = rows_max_of(model, settings_.session.max_tokens);
  const std::uint32_t top_k_max = model.top_k + model.shared.count;
  auto made = equipment::make(resolved, *checkpoint_,
                              {.threads = settings_.worker.threads,
                               .device = device_.get(),
                               .on_device = {.capacity = {.rows_max = rows_max,
                                                          .k_max = top_k_max,
                                                          .slots_max = store.slots + store.shared},
                                             .store = store,
                                             .memory_max_bytes = settings_.worker.memory}});
  if (!made) return tl::unexpected(made.error());
  auto next = std::make_shared<workers::engine>(
      workers::engine_options{.layers = static_cast<std::uint32_t>(model.moe_layers.size()),
                              .rows_max = rows_max,
                              .top_k_max = top_k_max,
                              .sources_max = settings_.transport.max_sources,
                              .spin = settings_.transport.spin},
      *made->backend, *half_,
      workers::engine::sinks{
          .on_attached = [this](const workers::source_attach_done& e) { post_(e); },
          // The store frees the pages first, then the core hears of it.
          .on_released =
              [this](const workers::pages_released& e) { loader_->release(e.generation); },
          .on_drained = [this] { post_(workers::engine_drained{}); }});
  {
    const std::lock_guard lock(mutex_);
    engine_ = next;
    runs_adapters_ = made->backend->supports_lora();
    device_bill_ = made->bill;
  }
  equipment_ = std::move(*made);
  hand_adapters_over();
  next->start();
  log_.info("resolved", {{"backend", equipment_.backend->identity()},
                         {"resolution", fmt::format("{:016x}", resolved.resolution_id)},
                         {"layout", equipment_.backend->layout_id()}});
  return weight_loader::tools{.model = equipment_.model,
                              .backend = equipment_.backend.get(),
                              .source = equipment_.source,
                              .quantising = equipment_.quantising.get(),
                              .pages = equipment_.pages.get(),
                              .pages_max_bytes = equipment_.pages_max_bytes};
}

void worker_machine::load(const workers::load_plan& plan) { loader_->load(plan); }
void worker_machine::cancel(const workers::cancel_load& plan) { loader_->cancel(plan.generation); }

// Ordered before the COMMITTED that follows: the engine looks into its mailbox before it looks for
// rows, so rows of this generation find its table.
void worker_machine::serve(const workers::serve_generation& g) {
  auto table = loader_->activate(g.generation, g.plan);
  if (!table) {
    log_.error("activation_refused", {{"why", table.error().text}});
    return ending_.core_stopped(make_error(reason::internal_error, table.error().text));
  }
  {
    const std::lock_guard lock(mutex_);
    table_ = *table;
  }
  engine()->post_serve(std::move(*table), g.first_slot, g.resolution);
}

void worker_machine::release(const workers::release_pages& p) {
  if (const auto running = engine()) running->post_release(p.older_than);
}
void worker_machine::attach(const control::source_attachment& s) {
  if (const auto running = engine()) return running->post_attach(s);
  // The coordinator attaches sources to workers that have prepared a plan, so this one is early; it
  // is asked again.
  post_(workers::source_attach_done{s.source, s.incarnation, false, "no backend is resolved yet"});
}
void worker_machine::detach(const workers::detach_source& s) {
  if (const auto running = engine()) running->post_detach(s.source, s.incarnation);
}
// The engine has the set before the coordinator hears of it, and takes it before the rows that
// follow.
void worker_machine::load_adapter(const control::held_adapter& a) {
  adapter_reader_->post([this, a] {
    const bool runs = [this] {
      const std::lock_guard lock(mutex_);
      return runs_adapters_;
    }();
    const auto done = runs ? adapters_->load(a)
                           : fail(reason::lora_unsupported, "this worker's backend runs none");
    if (done) {
      hand_adapters_over();
      log_.info("adapter_loaded", {{"adapter", a.adapter}, {"name", a.name}, {"path", a.path}});
    }
    post_(workers::adapter_load_done{a, done.has_value(), done ? "" : done.error().text});
  });
}
void worker_machine::drop_adapter(std::uint32_t adapter) {
  adapter_reader_->post([this, adapter] {
    adapters_->drop(adapter);
    hand_adapters_over();
    log_.info("adapter_dropped", {{"adapter", adapter}});
  });
}
void worker_machine::hand_adapters_over() {
  const std::lock_guard lock(handing_over_);
  if (const auto running = engine()) running->post_adapters(adapters_->set());
}
void worker_machine::drain() {
  if (const auto running = engine()) return running->post_drain();
  post_(workers::engine_drained{});
}
void worker_machine::stopped(bool failed, const std::string& why) {
  if (!failed) return ending_.core_stopped(std::nullopt);
  // The core ends by itself for one reason only: the weights of this process are not the tier's.
  // What does not fit its memory is no fault of the files.
  {
    const std::lock_guard lock(mutex_);
    if (load_error_ && load_error_->why == reason::memory_insufficient) {
      return ending_.core_stopped(load_error_);
    }
  }
  ending_.core_stopped(error{status_of(reason::weight_mismatch), reason::weight_mismatch,
                             fmt::format("weights: {}", why)});
}

workers::engine_progress worker_machine::progress(bool with_counts) {
  const auto running = engine();
  if (!running) {
    const std::lock_guard lock(mutex_);
    return {.tick = ++idle_tick_,
            .counted_generation = {},
            .counts = {},
            .device = device_state_.load(std::memory_order_relaxed)};
  }
  workers::engine_progress p = running->progress(with_counts);
  p.device = device_state_.load(std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  if (p.counts.empty()) {
    progress_.rows_total = p.rows_total;
    progress_.calls_total = p.calls_total;
  } else {
    progress_ = p;
  }
  return p;
}

http::worker_figures worker_machine::figures() const {
  http::worker_figures f;
  if (const auto running = engine()) {
    f.carrier = running->carrier();
    f.queue = running->queue();
    f.engine = running->reading();
  }
  if (loader_) f.loads = loader_->loads();
  f.on_device = device_ != nullptr;
  f.device_errors = device_errors_.load(std::memory_order_relaxed);
  f.log_lines_dropped = log_.dropped();
  const std::lock_guard lock(mutex_);
  f.rows_total = progress_.rows_total;
  f.device = device_bill_;
  if (!table_) return f;
  std::size_t at = 0;
  const bool counted = progress_.counted_generation == table_->generation();
  for (std::size_t layer = 0; layer < table_->layers(); ++layer) {
    http::worker_layer_rows rows{table_->layer_at(layer), 0};
    for (std::uint32_t slot = 0; slot < table_->slots(layer); ++slot, ++at) {
      if (counted && at < progress_.counts.size()) rows.rows += progress_.counts[at];
    }
    f.layers.push_back(rows);
  }
  return f;
}

expected<std::string> worker_machine::waits_text() const {
  const auto running = engine();
  if (!running) return fail(reason::not_ready, "no backend is resolved yet");
  return transport::waits_document(running->waits(), "source", monotonic_now());
}

expected<std::string> worker_machine::flight_text() const {
  const auto running = engine();
  if (!running) return fail(reason::not_ready, "no backend is resolved yet");
  return transport::flight_document(running->waits(), "source", monotonic_now());
}

std::string worker_machine::environment_text() const {
  return resolution::document_of(environment_);
}

bool worker_machine::alive() const noexcept {
  const auto running = engine();
  if (!running) return true;
  const std::uint64_t tick = running->tick();
  const time_ns now = monotonic_now();
  const std::lock_guard lock(mutex_);
  if (tick != seen_tick_ || tick_moved_at_ == 0) {
    seen_tick_ = tick;
    tick_moved_at_ = now;
  }
  return now - tick_moved_at_ < k_engine_stands_after;
}

}  // namespace moetier::roles
