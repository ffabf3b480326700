#include "coordinator/resolution/backend_order.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "coordinator/resolution/literal.hpp"
#include "schemas/file/printable.hpp"

namespace moetier::coordinator {
namespace {

using kernels::backend_candidate;
using kernels::backend_family;

constexpr std::array k_families{backend_family::cpu, backend_family::cuda, backend_family::fused,
                                backend_family::reference};

// Families that nothing replaces: who asks for the oracle wants the oracle.
constexpr std::array k_no_fallback{backend_family::reference};

struct devices {
  bool cpu = false;  // some worker has it, or may have it
  bool cuda = false;
};

devices devices_of(const resolution_request& request) {
  devices found;
  for (const auto& worker : request.workers) {
    const auto& device = worker.seen.device;
    found.cuda |= !device || *device == resolution::device_kind::cuda;
    found.cpu |= !device || *device == resolution::device_kind::cpu;
  }
  return found;
}

template <class Wanted>
void add(std::vector<const backend_candidate*>& to, std::span<const backend_candidate> from,
         const backend_order& order, Wanted&& wanted) {
  for (const backend_candidate& c : from) {
    if (wanted(c) && !order.contains(&c)) to.push_back(&c);
  }
}

// A candidate's name without what its identity adds, in one spelling: "CPU_AVX2" of
// "moetier.cpu.avx2.none", "cpu.avx2" and "cpu_avx2". An identity of another format than `quant`
// stays what it is: it names nothing here.
std::string bare_name(std::string_view name, std::optional<quant_kind> quant = std::nullopt) {
  std::string text = upper_case(name);
  std::replace(text.begin(), text.end(), '.', '_');
  constexpr std::string_view k_provider = "MOETIER_";
  if (!text.starts_with(k_provider)) return text;
  const std::string kernel = text.substr(k_provider.size());
  const std::string format = quant ? fmt::format("_{}", upper_case(quant_name(*quant))) : "";
  return kernel.ends_with(format) ? kernel.substr(0, kernel.size() - format.size()) : text;
}

std::string allowed_names(std::span<const backend_candidate> candidates) {
  std::string names = "AUTO";
  for (const backend_family family : k_families)
    names += fmt::format(", {}", kernels::family_name(family));
  for (const backend_candidate& c : candidates) {
    if (c.is_backend) names += fmt::format(", {}", c.short_name);
  }
  return names;
}

void order_auto(const resolution_request& request, backend_order& order) {
  const devices found = devices_of(request);
  const auto of_devices = [&](const backend_candidate& c) {
    return (found.cuda && c.family == backend_family::cuda) ||
           (found.cpu && c.family == backend_family::cpu);
  };
  add(order.asked, request.backends, order,
      [&](const backend_candidate& c) { return of_devices(c) && !c.degraded; });
  add(order.instead, request.backends, order, of_devices);
}

bool order_family(const resolution_request& request, backend_order& order) {
  const auto family = std::find_if(k_families.begin(), k_families.end(), [&](backend_family f) {
    return kernels::family_name(f) == order.literal;
  });
  if (family == k_families.end()) return false;
  add(order.asked, request.backends, order,
      [&](const backend_candidate& c) { return c.family == *family; });
  if (std::find(k_no_fallback.begin(), k_no_fallback.end(), *family) != k_no_fallback.end())
    return true;
  const backend_family own = devices_of(request).cuda ? backend_family::cuda : backend_family::cpu;
  add(order.instead, request.backends, order,
      [&](const backend_candidate& c) { return c.family == own; });
  return true;
}

}  // namespace

bool backend_order::contains(const backend_candidate* candidate) const noexcept {
  return std::find(asked.begin(), asked.end(), candidate) != asked.end() ||
         std::find(instead.begin(), instead.end(), candidate) != instead.end();
}

expected<backend_order> backend_order_of(const resolution_request& request) {
  backend_order order;
  order.literal = upper_case(request.backend);
  if (order.literal == k_auto) {
    order_auto(request, order);
    return order;
  }
  if (order_family(request, order)) return order;
  // Its own name comes after the families', so that REFERENCE is one.
  const std::string given = bare_name(request.backend, request.what.quant);
  add(order.asked, request.backends, order, [&](const backend_candidate& c) {
    return bare_name(c.short_name) == given || bare_name(c.kernel) == given;
  });
  if (order.asked.empty())
    return fail(reason::config_invalid, "backend.force", printable(request.backend),
                allowed_names(request.backends));
  order.literal = upper_case(order.asked.front()->short_name);
  return order;
}

}  // namespace moetier::coordinator
