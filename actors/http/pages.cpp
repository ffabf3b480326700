#include "actors/http/pages.hpp"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "actors/build_info.hpp"
#include "actors/http/page_files.hpp"

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
          fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
                      "<meta http-equiv=\"refresh\" content=\"5\"><title>{0}</title>"
                      "<link rel=\"icon\" href=\"/page/icon.svg\" type=\"image/svg+xml\">"
                      "<link rel=\"stylesheet\" href=\"/page/page.css\"></head><body>"
                      "<header class=\"top\"><div class=\"brand\"><img src=\"/page/icon.svg\" "
                      "alt=\"\" width=\"28\" height=\"28\"><h1>{0}</h1></div>{1}</body></html>\n",
                      escaped(title), body)};
}

std::string_view type_of(std::string_view name) noexcept {
  if (name.ends_with(".html")) return "text/html; charset=utf-8";
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".svg")) return "image/svg+xml";
  return "text/javascript; charset=utf-8";
}

response file_page(const embedded_file& file) {
  return {200, std::string(type_of(file.name)), std::string(file.text)};
}

}  // namespace

response livez(bool alive) {
  return {alive ? 200 : 503, "application/json",
          json({{"schema", "moetier.liveness/1"}, {"alive", alive}})};
}

response readyz(bool ready, const std::vector<std::string>& reasons) {
  return {ready ? 200 : 503, "application/json",
          json({{"schema", "moetier.readiness/1"}, {"ready", ready}, {"reasons", reasons}})};
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

std::vector<page> status_pages(std::function<std::string()> document) {
  std::vector<page> pages = style_pages();
  pages.push_back({"/status.json", [document = std::move(document)] {
                     return response{200, "application/json", document()};
                   }});
  for (const embedded_file& file : page_files()) {
    if (file.name == "index.html") pages.push_back({"/", [&file] { return file_page(file); }});
    if (file.name.ends_with(".js"))
      pages.push_back({fmt::format("/page/{}", file.name), [&file] { return file_page(file); }});
  }
  return pages;
}

std::vector<page> style_pages() {
  std::vector<page> pages;
  for (const embedded_file& file : page_files()) {
    if (!file.name.ends_with(".css") && !file.name.ends_with(".svg")) continue;
    pages.push_back({fmt::format("/page/{}", file.name), [&file] { return file_page(file); }});
  }
  return pages;
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
  const auto reasons = not_ready_reasons(s);
  std::string body =
      fmt::format("<p class=\"pill {}\">{}</p></header><main>", reasons.empty() ? "good" : "bad",
                  reasons.empty() ? "serving" : "not ready");
  if (!reasons.empty()) {
    body += "<ul class=\"reasons\">";
    for (const std::string& why : reasons) body += fmt::format("<li>{}</li>", escaped(why));
    body += "</ul>";
  }
  body += "<dl class=\"tiles\">";
  for (const auto& [label, value] :
       {std::pair<const char*, std::uint64_t>{"worker", s.worker.value},
        {"epoch", s.epoch.value},
        {"generation", s.generation.value},
        {"sources", s.sources}}) {
    body += fmt::format("<div class=\"tile\"><dt>{}</dt><dd>{}</dd></div>", label, value);
  }
  body +=
      "</dl></main><footer><p><a href=\"/metrics\">metrics</a> <a href=\"/readyz\">readyz</a> "
      "<a href=\"/debug/config\">config</a> <a href=\"/debug/environment\">environment</a> "
      "<a href=\"/debug/waits\">waits</a></p></footer>";
  return html(fmt::format("moetier {}", name), body);
}

}  // namespace moetier::http
