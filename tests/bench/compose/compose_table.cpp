// moetier_compose [--oracles DIR] [--family NAME]... [--json FILE]: Backend x Communication x EPLB
// x format x family, on this machine. A cell is either refused, with a reason out of the closed
// list, or works: the family's first MoE layer was computed by two workers that hold its experts in
// that format, and the largest difference from the fp64 reference Backend, relative to the output,
// is its figure. With EPLB there are replicas, shares and counts of selections, which are compared
// with the routing. A third state ends the program with 1.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/process/probe_environment.hpp"
#include "coordinator/resolution/resolve.hpp"
#include "schemas/model/config.hpp"
#include "schemas/safetensors/tensor_file.hpp"
#include "tests/scenario/thread_tier.hpp"

namespace moetier {
namespace {

constexpr double k_tolerance = 1e-5;

struct rows {
  std::uint32_t tokens = 0;
  std::vector<float> hidden;
  std::vector<float> logits;
  std::vector<std::int32_t> token_ids;
};

template <class T>
std::vector<T> tensor(const tensor_file& file, const std::string& name) {
  const tensor_info* info = file.header().find(name);
  if (info == nullptr) return {};
  std::vector<T> values(info->bytes() / sizeof(T));
  if (!file.read(*info, std::as_writable_bytes(std::span(values)))) return {};
  return values;
}

// The vectors' first layer. Rows that the model's experts do not read as they are (latent ones) are
// cut to their width: any row will do here.
rows rows_of(const std::string& folder, const model_description& model) {
  const auto file = *tensor_file::open(folder + "/vectors.safetensors");
  const std::string prefix = fmt::format("layer{}.", model.moe_layers.front().value);
  rows r;
  r.logits = tensor<float>(*file, prefix + "logits");
  r.tokens = static_cast<std::uint32_t>(r.logits.size() / model.columns());
  const auto wide = tensor<float>(*file, prefix + "hidden");
  const std::size_t width = wide.size() / r.tokens;
  for (std::uint32_t t = 0; t < r.tokens; ++t) {
    const auto first = wide.begin() + static_cast<std::ptrdiff_t>(t * width);
    r.hidden.insert(r.hidden.end(), first, first + static_cast<std::ptrdiff_t>(model.hidden_size));
  }
  r.token_ids = tensor<std::int32_t>(*file, prefix + "token_ids");
  return r;
}

struct outcome {
  std::vector<float> output;
  std::uint64_t selections = 0;  // of real experts, by the routing
};

outcome compute(scenario::thread_tier& tier, const rows& in, kernels::return_mode mode) {
  const model_description& model = tier.model();
  const auto session = tier.session({.tokens_max = in.tokens, .mode = mode});
  const auto must = [](const expected<void>& done) {
    if (!done) throw std::runtime_error(done.error().text);
  };
  outcome out;
  out.output.resize(in.hidden.size());
  std::vector<std::int32_t> ids(std::size_t{in.tokens} * model.top_k);
  must(session->step_begin(false));
  must(session->submit({.layer = model.moe_layers.front(),
                        .tokens = in.tokens,
                        .hidden = in.hidden.data(),
                        .hidden_pitch = model.hidden_size * sizeof(float),
                        .logits = in.logits.data(),
                        .logits_pitch = model.columns() * sizeof(float),
                        .token_ids = in.token_ids}));
  must(session->collect(
      0, {.output = out.output.data(), .pitch = model.hidden_size * sizeof(float), .ids = ids}));
  must(session->step_end());
  for (const std::int32_t id : ids)
    out.selections += id >= 0 && id < static_cast<std::int32_t>(model.experts) ? 1 : 0;
  return out;
}

double relative_error(const std::vector<float>& given, const std::vector<float>& wanted) {
  double largest = 0;
  double scale = 1e-30;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!std::isfinite(given[i])) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, std::abs(double{given[i]} - double{wanted[i]}));
    scale = std::max(scale, std::abs(double{wanted[i]}));
  }
  return largest / scale;
}

class table final {
 public:
  void add_family(const std::string& name, const std::string& folder) {
    const auto model = read_config(folder + "/config.json");
    if (!model) throw std::runtime_error(model.error().text);
    const rows in = rows_of(folder, *model);
    for (std::uint8_t q = 0; q < k_quant_kinds; ++q) {
      const auto quant = static_cast<quant_kind>(q);
      reference_.clear();
      for (const auto& backend : kernels::backend_candidates()) {
        for (const auto& carrier : transport::carrier_candidates()) {
          for (const bool eplb : {false, true})
            add_cell(name, folder, *model, in, quant, backend, carrier, eplb);
        }
      }
    }
  }

  int finish(const std::string& json) const {
    if (!json.empty()) std::ofstream(json) << cells_.dump(1) << '\n';
    fmt::print("{} cells: {} work (largest relative error {:.2e}), {} are refused, {} neither\n",
               works_ + refused_total() + broken_, works_, worst_, refused_total(), broken_);
    for (const auto& [reason, count] : refused_) fmt::print("  refused {:26} {}\n", reason, count);
    return broken_ == 0 ? 0 : 1;
  }

 private:
  std::uint64_t refused_total() const {
    std::uint64_t all = 0;
    for (const auto& [reason, count] : refused_) all += count;
    return all;
  }

  void add_cell(const std::string& name, const std::string& folder, const model_description& model,
                const rows& in, quant_kind quant, const kernels::backend_candidate& backend,
                const transport::carrier_candidate& carrier, bool eplb) {
    nlohmann::json cell{{"family", name},
                        {"format", quant_name(quant)},
                        {"backend", backend.short_name},
                        {"communication", carrier.name},
                        {"eplb", eplb}};
    const auto refuse = [&](std::string_view reason, const std::string& detail) {
      ++refused_[std::string(reason)];
      cell["state"] = "refused";
      cell["reason"] = reason;
      cell["detail"] = detail;
    };
    // Slots per worker: an even share, or two more for replicas.
    const std::uint32_t half = (model.experts + 1) / 2;
    const std::vector<std::uint32_t> slots =
        eplb ? std::vector<std::uint32_t>{half + 1, half + 1}
             : std::vector<std::uint32_t>{half, model.experts - half};
    const auto verdict = ask(model, quant, backend, carrier, slots, eplb);
    if (!verdict.first.empty()) {
      refuse(verdict.first, verdict.second);
    } else {
      try {
        const double error = run(folder, in, quant, model, backend, carrier, slots);
        cell["state"] = "works";
        cell["relative_error"] = error;
        ++works_;
        worst_ = std::max(worst_, error);
        if (!(error <= k_tolerance)) throw std::runtime_error(fmt::format("error {:.3e}", error));
      } catch (const std::exception& e) {
        ++broken_;
        cell["state"] = "broken";
        cell["what"] = e.what();
        fmt::print("{} {} {} {} eplb {}: {}\n", name, quant_name(quant), backend.short_name,
                   carrier.name, eplb, e.what());
      }
    }
    cells_.push_back(std::move(cell));
  }

  // The closed reason and its detail, or two empty texts: eligible.
  std::pair<std::string, std::string> ask(const model_description& model, quant_kind quant,
                                          const kernels::backend_candidate& backend,
                                          const transport::carrier_candidate& carrier,
                                          const std::vector<std::uint32_t>& slots, bool eplb) {
    if (model.format.quant != quant_kind::none && model.format.quant != quant) {
      return {"weight_layout", fmt::format("the files are {}", quant_name(model.format.quant))};
    }
    coordinator::resolution_request r;
    r.what = resolution::problem_of(model, resolution::answer_mode::partial, dtype::f32);
    r.what.quant = quant;
    r.where.workers = 2;
    r.where.one_process = true;
    r.where.num_slots = slots[0] + slots[1];
    r.where.slots_per_worker = slots;
    r.where.eplb = eplb;
    r.where.tokens_max = 4096;
    r.where.communication = carrier.name;
    r.backend = backend.short_name;
    r.workers = {{"worker@1", environment_}, {"worker@2", environment_}};
    const auto weighed = coordinator::weigh(r);
    if (!weighed) return {reason_name(weighed.error().why).data(), weighed.error().text};
    const auto& report = weighed->report;
    const auto of = [](const std::vector<resolution::rejection>& all,
                       std::string_view who) -> const resolution::rejection* {
      for (const auto& rejected : all) {
        if (rejected.candidate == who) return &rejected;
      }
      return nullptr;
    };
    const std::string identity = kernels::identity_of(backend, quant);
    const auto* backend_no = of(report.rejected, identity);
    const auto* carrier_no = of(report.communication.rejected, carrier.name);
    // A backend that no carrier pairs with says so; which one, and why, is the carrier's answer.
    const bool unpaired = backend_no != nullptr && carrier_no != nullptr &&
                          backend_no->why == resolution::reject_reason::capability_missing;
    if (backend_no != nullptr && !unpaired)
      return {std::string(resolution::reject_name(backend_no->why)), backend_no->detail};
    if (carrier_no != nullptr)
      return {std::string(resolution::reject_name(carrier_no->why)), carrier_no->detail};
    if (report.winner != identity) return {"not_an_impl", report.winner};
    return {};
  }

  double run(const std::string& folder, const rows& in, quant_kind quant,
             const model_description& model, const kernels::backend_candidate& backend,
             const transport::carrier_candidate& carrier, const std::vector<std::uint32_t>& slots) {
    const std::optional<quant_kind> quantise =
        quant == model.format.quant ? std::nullopt : std::optional(quant);
    if (reference_.empty()) {
      scenario::thread_tier truth(folder, {model.experts},
                                  {.backend = "reference", .quantise = quantise});
      reference_ = compute(truth, in, kernels::return_mode::partial).output;
    }
    scenario::thread_tier tier(
        folder, slots,
        {.backend = backend.short_name,
         .quantise = quantise,
         .carrier = carrier.short_name.empty() ? carrier.name : carrier.short_name});
    const outcome partial = compute(tier, in, kernels::return_mode::partial);
    const outcome exact = compute(tier, in, kernels::return_mode::exact);
    if (tier.counted() != partial.selections + exact.selections) {
      throw std::runtime_error(fmt::format("{} selections counted, {} made", tier.counted(),
                                           partial.selections + exact.selections));
    }
    return std::max(relative_error(partial.output, reference_),
                    relative_error(exact.output, reference_));
  }

  const resolution::environment environment_ = [] {
    resolution::environment e =
        probe_environment({config::settings{}, this_build(), {"in_process", "ucx.two_sided"}});
    return e;
  }();
  std::vector<float> reference_;
  nlohmann::json cells_ = nlohmann::json::array();
  std::map<std::string, std::uint64_t> refused_;
  std::uint64_t works_ = 0;
  std::uint64_t broken_ = 0;
  double worst_ = 0;
};

}  // namespace
}  // namespace moetier

int main(int argc, char** argv) {
  std::string oracles = std::string(MOETIER_SOURCE_DIR) + "/tests/data/oracles";
  std::vector<std::string> families;
  std::string json;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--oracles") oracles = argv[i + 1];
    if (flag == "--family") families.emplace_back(argv[i + 1]);
    if (flag == "--json") json = argv[i + 1];
  }
  if (families.empty()) {
    for (const auto& entry : std::filesystem::directory_iterator(oracles)) {
      if (entry.is_directory()) families.push_back(entry.path().filename().string());
    }
    std::sort(families.begin(), families.end());
  }
  moetier::table all;
  for (const std::string& family : families) all.add_family(family, oracles + "/" + family);
  return all.finish(json);
}
