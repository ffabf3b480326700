#include "actors/http/worker_probe.hpp"

#include <algorithm>
#include <cctype>

#include "actors/http/metric_text.hpp"
#include "actors/http/transport_families.hpp"

namespace moetier::http {
namespace {

using workers::k_worker_ends;

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

void add_rows(metric_text& m, const worker_figures& f) {
  // Over 120 layers the series would cost more than they tell.
  constexpr std::size_t k_layer_series_max = 120;
  if (f.layers.size() <= k_layer_series_max) {
    m.counter("worker_rows_total", "Routed rows computed in the generation in service.");
    for (const worker_layer_rows& l : f.layers) {
      m.sample(l.rows, {{"layer", std::to_string(l.layer.value)}});
    }
  }
  m.counter("worker_engine_rows_total", "Rows computed since the process started.");
  m.sample(f.rows_total);
}

void add_engine(metric_text& m, const workers::engine_reading& e) {
  m.counter("worker_calls_total", "Exchanges answered, by what the source was told.");
  for (std::size_t i = 0; i < k_worker_ends.size(); ++i) {
    m.sample(e.calls[i], {{"status", lower(status_name(k_worker_ends[i]))}});
  }
  m.counter("worker_refused_total", "Rows that came with an exchange that was refused.");
  for (std::size_t i = 0; i < k_worker_ends.size(); ++i) {
    if (k_worker_ends[i] == status::ok) continue;
    m.sample(e.rows[i], {{"reason", lower(status_name(k_worker_ends[i]))}});
  }
  m.counter("worker_padding_rows_total", "Places of device launches that held no row.");
  m.sample(e.padding_rows);
  m.counter("worker_engine_stalls_total",
            "Turns of the engine's loop over 10 ms, less the calls that it computed.");
  m.sample(e.stalls);
  // Made with the engine, at the first plan.
  if (e.batch_rows.bounds.empty()) return;
  m.histogram("worker_stage_seconds",
              "Time of a call by stage; fc1 is with activation, compute is all of a GPU's.");
  for (std::size_t s = 0; s < workers::k_work_stages; ++s) {
    const histogram_reading& r = e.stages[s];
    const auto stage = static_cast<workers::work_stage>(s);
    // A backend tells either fc1 and fc2 or compute.
    const bool is_choice = stage == workers::work_stage::fc1 || stage == workers::work_stage::fc2 ||
                           stage == workers::work_stage::compute;
    if (is_choice && r.count() == 0) continue;
    m.sample(r, {{"stage", std::string(work_stage_name(stage))}});
  }
  m.histogram("worker_batch_rows", "Rows of one grouped pass.");
  m.sample(e.batch_rows, {}, 1.0);
  m.histogram("worker_batch_sessions", "Sessions whose calls one turn of the engine took up.");
  m.sample(e.batch_sessions, {}, 1.0);
  m.histogram("worker_activated_experts", "Slots that one grouped pass has rows for.");
  m.sample(e.activated_experts, {}, 1.0);
}

void add_weights(metric_text& m, const workers::load_reading& l, bool on_device) {
  using workers::page_state;
  const auto of = [&](page_state s) { return l.pages[static_cast<std::size_t>(s)]; };
  m.gauge("worker_slots", "Places for one expert of one layer, spare ones included, by state.");
  m.sample(of(page_state::empty), {{"state", "empty"}});
  m.sample(of(page_state::filling), {{"state", "filling"}});
  m.sample(of(page_state::verified), {{"state", "verified"}});
  m.sample(of(page_state::serving), {{"state", "serving"}});
  m.sample(of(page_state::retiring), {{"state", "retiring"}});
  std::uint64_t held = 0;
  for (const std::uint64_t pages : l.pages) held += pages;
  m.gauge("worker_weights_bytes", "Weights held, by where they lie.");
  m.sample((held - of(page_state::empty)) * l.page_bytes,
           {{"tier", on_device ? "device" : "host"}});
  m.histogram("worker_weight_load_seconds", "Loading one expert: reading, packing, sending.");
  m.sample(l.took);
  m.counter("worker_weight_errors_total", "Plans that were not loaded, by what was wrong.");
  for (std::size_t i = 0; i < workers::k_load_faults; ++i) {
    m.sample(l.faults[i],
             {{"reason", std::string(load_fault_name(static_cast<workers::load_fault>(i)))}});
  }
}

void add_device(metric_text& m, const worker_figures& f) {
  if (f.on_device) {
    m.counter("worker_device_errors_total", "Failures of the device; the process ends at one.");
    m.sample(f.device_errors, {{"class", "lost"}});
  }
  if (f.device == workers::device_bill{}) return;
  m.gauge("worker_device_memory_bytes", "What this worker takes of its device, by use.");
  m.sample(std::uint64_t{f.device.pages}, {{"use", "pages"}});
  m.sample(std::uint64_t{f.device.workspace}, {{"use", "workspace"}});
  m.sample(std::uint64_t{f.device.calls}, {{"use", "calls"}});
}

}  // namespace

std::string worker_metrics(const worker_figures& f) {
  metric_text m;
  add_process_families(m, f.log_lines_dropped);
  add_rows(m, f);
  add_engine(m, f.engine);
  add_weights(m, f.loads, f.on_device);
  add_device(m, f);
  m.gauge("worker_generation", "Newest generation in service here.");
  m.sample(f.core.generation.value);
  m.gauge("worker_epoch", "Highest epoch seen.");
  m.sample(f.core.epoch.value);
  m.gauge("worker_lease", "1 while the coordinator answers this worker's beats in time.");
  m.sample(f.core.leased ? 1.0 : 0.0);
  m.gauge("worker_sources", "Attached sources.");
  m.sample(std::uint64_t{f.core.sources});
  m.gauge("worker_queue_rows", "Rows that wait for the engine, by deadline class.");
  for (const deadline_class c : k_all_deadline_classes) {
    m.sample(f.queue.rows_waiting[index_of(c)], {{"class", std::string(deadline_class_name(c))}});
  }
  m.counter("worker_deadline_missed_total", "Calls that ended, or would have ended, too late.");
  for (const deadline_class c : k_all_deadline_classes) {
    m.sample(f.queue.deadline_missed[index_of(c)],
             {{"class", std::string(deadline_class_name(c))}});
  }
  m.counter("worker_stale_commands_total", "Commands of older epochs, refused.");
  m.sample(f.core.stale_commands_refused);
  add_transport_families(m, f.carrier);
  return m.text();
}

}  // namespace moetier::http
