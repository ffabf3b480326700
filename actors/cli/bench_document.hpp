#pragma once
// What every bench document begins with: schema, bench, build, machine. Thread: any.

#include <string_view>

#include <nlohmann/json.hpp>

namespace moetier::cli {

nlohmann::ordered_json bench_document(std::string_view bench);

}  // namespace moetier::cli
