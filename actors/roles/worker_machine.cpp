#include "actors/roles/worker_machine.hpp"

#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "actors/config/input_error.hpp"
#include "schemas/base/limits.hpp"

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
  auto checkpoint = workers::checkpoint::open(s.model.path);
  if (!checkpoint) return tl::unexpected(config::of_input_file(checkpoint.error()));
  m->checkpoint_ = std::move(*checkpoint);
  const model_description& model = m->checkpoint_->model();

  auto backend =
      kernels::make_cpu_backend(s.backend.force,
                                {.hidden_size = model.hidden_size,
                                 .intermediate_size = model.intermediate_size,
                                 .format = model.format,
                                 .activation = model.activation.kind,
                                 .bias = model.expert_bias},
                                {.threads = s.worker.threads}, kernels::detect_cpu_features());
  if (!backend) return tl::unexpected(backend.error());
  m->backend_ = std::move(*backend);

  auto carrier =
      transport::open_carrier(s.transport.carrier == "auto" ? "ucx" : s.transport.carrier,
                              {.listen = s.transport.listen,
                               .checksum_payload = s.transport.checksum == "on",
                               .allow_tcp = s.transport.allow_tcp != "off"});
  if (!carrier) return tl::unexpected(carrier.error());
  m->carrier_ = std::move(*carrier);
  // The coordinator numbers this worker later, when it has told its address.
  auto half = m->carrier_->make_worker({.identity = {transport::k_worker_unnumbered, incarnation},
                                        .sources_max = s.transport.max_sources});
  if (!half) return tl::unexpected(half.error());
  m->half_ = std::move(*half);
  log.info("resolved", {{"backend", m->backend_->identity()},
                        {"carrier", m->carrier_->name()},
                        {"lanes", m->carrier_->describe()}});
  return m;
}

void worker_machine::describe(workers::core_options& to) const {
  to.model_fingerprint = checkpoint_->model().fingerprint;
  to.checkpoint_digest = checkpoint_->digest();
  to.slots = settings_.worker.slots;
  to.backend = backend_->identity();
  to.layout = backend_->layout_id();
  to.row_invariant = backend_->row_invariant();
  to.carrier = settings_.transport.carrier == "auto" ? "ucx" : settings_.transport.carrier;
  to.address = plain(half_->address());
}

void worker_machine::start(std::function<void(workers::event)> post) {
  const model_description& model = checkpoint_->model();
  engine_ = std::make_unique<workers::engine>(
      workers::engine_options{.layers = static_cast<std::uint32_t>(model.moe_layers.size()),
                              .rows_max = settings_.session.max_tokens,
                              .top_k_max = model.top_k,
                              .sources_max = settings_.transport.max_sources,
                              .spin = settings_.transport.spin},
      *backend_, *half_,
      workers::engine::sinks{
          .on_attached = [post](const workers::source_attach_done& e) { post(e); },
          // The store frees the pages first, then the core hears of it.
          .on_released =
              [this](const workers::pages_released& e) { loader_->release(e.generation); },
          .on_drained = [post] { post(workers::engine_drained{}); }});
  loader_ = std::make_unique<weight_loader>(
      weight_loader::options{.spare_pages = settings_.worker.spare_pages,
                             .memory_max_bytes = settings_.worker.memory != 0
                                                     ? settings_.worker.memory
                                                     : memory_of_machine()},
      model, *backend_, *checkpoint_, post, log_);
  engine_->start();
}

void worker_machine::stop() {
  if (engine_) engine_->stop();
  loader_.reset();
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
  engine_->post_serve(std::move(*table), g.first_slot);
}

void worker_machine::release(const workers::release_pages& p) {
  engine_->post_release(p.older_than);
}
void worker_machine::attach(const control::source_attachment& s) { engine_->post_attach(s); }
void worker_machine::detach(const workers::detach_source& s) {
  engine_->post_detach(s.source, s.incarnation);
}
void worker_machine::drain() { engine_->post_drain(); }
void worker_machine::stopped(bool failed, const std::string& why) {
  if (!failed) return ending_.core_stopped(std::nullopt);
  // The core ends by itself for one reason only: the weights of this process are not the tier's.
  ending_.core_stopped(error{status_of(reason::weight_mismatch), reason::weight_mismatch,
                             fmt::format("weights: {}", why)});
}

workers::engine_progress worker_machine::progress(bool with_counts) {
  workers::engine_progress p = engine_->progress(with_counts);
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
  f.carrier = engine_->carrier();
  f.log_lines_dropped = log_.dropped();
  const std::lock_guard lock(mutex_);
  f.rows_total = progress_.rows_total;
  f.calls_total = progress_.calls_total;
  if (!table_) return f;
  std::size_t at = 0;
  const bool counted = progress_.counted_generation == table_->generation();
  for (std::size_t layer = 0; layer < table_->layers(); ++layer) {
    http::worker_layer_rows rows{table_->layer_at(layer), 0};
    for (std::uint32_t slot = 0; slot < table_->slots(layer); ++slot, ++at) {
      const bool filled = table_->experts(layer)[slot] != k_no_expert;
      f.slots_filled += filled ? 1 : 0;
      f.slots_empty += filled ? 0 : 1;
      if (counted && at < progress_.counts.size()) rows.rows += progress_.counts[at];
    }
    f.layers.push_back(rows);
  }
  return f;
}

bool worker_machine::alive() const noexcept {
  const std::uint64_t tick = engine_->tick();
  const time_ns now = monotonic_now();
  const std::lock_guard lock(mutex_);
  if (tick != seen_tick_ || tick_moved_at_ == 0) {
    seen_tick_ = tick;
    tick_moved_at_ = now;
  }
  return now - tick_moved_at_ < k_engine_stands_after;
}

}  // namespace moetier::roles
