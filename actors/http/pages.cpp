#include "actors/http/pages.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "actors/build_info.hpp"

namespace moetier::http {
namespace {

// Worker names and tenants come from elsewhere: nothing of theirs may become markup, or break JSON.
std::string json(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  return out;
}

response html(std::string_view title, std::string_view body) {
  return {200, "text/html; charset=utf-8",
          fmt::format(
              "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>"
              "<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
              "padding:0 1rem}}table{{border-collapse:collapse;margin:1rem 0}}td,th{{text-align:"
              "left;padding:.2rem 1rem .2rem 0;border-bottom:1px solid #ddd}}.no{{color:#b00}}"
              "</style></head><body><h1>{0}</h1>{1}<p>/livez /readyz /metrics /version</p>"
              "</body></html>\n",
              escaped(title), body)};
}

std::string worker_rows(const coordinator::tier_view& view) {
  std::string out =
      "<table><tr><th>worker</th><th>name</th><th>state</th><th>slots</th><th>backend</th>"
      "<th>rows</th><th>calls</th><th>last beat</th></tr>";
  for (const auto& w : view.workers) {
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
        "<td>{} ms</td></tr>",
        w.worker.value, escaped(w.name), worker_state_name(w.state), w.slots, escaped(w.backend),
        w.rows_total, w.calls_total, w.heartbeat_age / k_millisecond);
  }
  return out + "</table>";
}

std::string session_rows(const coordinator::tier_view& view) {
  if (view.sessions.empty()) return "<p>No sessions.</p>";
  std::string out =
      "<table><tr><th>session</th><th>tenant</th><th>kind</th><th>age</th><th>lease left</th></tr>";
  for (const auto& s : view.sessions) {
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{} s</td><td>{} ms</td></tr>",
                       s.session.value, escaped(s.tenant), s.thin ? "thin" : "direct",
                       s.age / k_second, s.lease_left / k_millisecond);
  }
  return out + "</table>";
}

}  // namespace

response livez(bool alive) {
  return {alive ? 200 : 503, "application/json", json({{"alive", alive}})};
}

response readyz(bool ready, const std::vector<std::string>& reasons) {
  return {ready ? 200 : 503, "application/json", json({{"ready", ready}, {"reasons", reasons}})};
}

response version_page() {
  const build_info& b = this_build();
  return {200, "application/json",
          json({{"schema", "moetier.version/1"},
                {"version", b.version},
                {"commit", b.commit},
                {"compiler", b.compiler},
                {"build_type", b.build_type},
                {"cuda", b.cuda},
                {"caf", b.caf},
                {"capnp", b.capnp},
                {"ucx", b.ucx}})};
}

response metrics_page(std::string text) {
  return {200, "text/plain; version=0.0.4; charset=utf-8", std::move(text)};
}

response coordinator_status_page(const coordinator::tier_view& view) {
  std::string body =
      fmt::format("<p>epoch {} &middot; generation {} &middot; {}</p>", view.epoch.value,
                  view.generation.value, view.ready ? "ready" : "<b class=\"no\">not ready</b>");
  for (const std::string& why : view.not_ready_reasons) {
    body += fmt::format("<p class=\"no\">{}</p>", escaped(why));
  }
  body += "<h2>Workers</h2>" + worker_rows(view) + "<h2>Sessions</h2>" + session_rows(view);
  return html("moetier coordinator", body);
}

std::vector<std::string> not_ready_reasons(const workers::worker_summary& s) {
  std::vector<std::string> reasons;
  if (!s.joined) reasons.emplace_back("not joined to a coordinator");
  if (s.joined && !s.leased) reasons.emplace_back("the coordinator does not answer");
  if (!s.serving) reasons.emplace_back("no generation in service");
  if (s.draining) reasons.emplace_back("draining");
  return reasons;
}

response worker_status_page(std::string_view name, const workers::worker_summary& s) {
  std::string body =
      fmt::format("<p>worker {} &middot; epoch {} &middot; generation {} &middot; {} sources</p>",
                  s.worker.value, s.epoch.value, s.generation.value, s.sources);
  for (const std::string& why : not_ready_reasons(s)) {
    body += fmt::format("<p class=\"no\">{}</p>", escaped(why));
  }
  return html(fmt::format("moetier {}", name), body);
}

}  // namespace moetier::http
