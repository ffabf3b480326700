#pragma once
// What the pages say, as pure functions from a picture of the role to a response. /readyz of a
// coordinator is 503 while any expert lacks a live replica, with the reasons. The status page is
// files of the program that ask /status.json; nothing is loaded from elsewhere. Thread: any.

#include <string>
#include <string_view>
#include <vector>

#include "actors/http/http_server.hpp"
#include "workers/core/core.hpp"

namespace moetier::http {

response livez(bool alive);
response readyz(bool ready, const std::vector<std::string>& reasons);
response version_page();
response metrics_page(std::string text);
// "/" and the files that it loads, and /status.json, whose text `document` makes.
std::vector<page> status_pages(std::function<std::string()> document);
// The looks of the status page alone, for pages that are whole as they come.
std::vector<page> style_pages();
response worker_status_page(std::string_view name, const workers::worker_summary& summary);

// Why a worker is not ready; empty = it is.
std::vector<std::string> not_ready_reasons(const workers::worker_summary& summary);

}  // namespace moetier::http
