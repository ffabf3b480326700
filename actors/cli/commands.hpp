#pragma once
// The commands that ask a running tier, those that measure, and the offline plan and resolution.
// Each prints its result on standard output and nothing else; an error goes back to main, which
// prints it and chooses the exit code. Thread: owner (main).

#include "actors/cli/command_line.hpp"
#include "actors/config/loader.hpp"
#include "actors/config/settings.hpp"
#include "schemas/base/error.hpp"

namespace moetier::cli {

expected<exit_code> run_status(const command_line& line);
expected<exit_code> run_placement_show(const command_line& line);
expected<exit_code> run_heatmap(const command_line& line);
expected<exit_code> run_log_level(const command_line& line);
expected<exit_code> run_adapters(const command_line& line);  // list, load, drop
expected<exit_code> run_forward(const command_line& line, const config::settings& settings);
expected<exit_code> run_bench_tier(const command_line& line, const config::settings& settings);
expected<exit_code> run_bench_sessions(const command_line& line, const config::settings& settings);
expected<exit_code> run_bench_wire(const command_line& line, const config::settings& settings);
expected<exit_code> run_bench_kernels(const command_line& line);
expected<exit_code> run_bench_plan(const command_line& line);
expected<exit_code> run_plan(const command_line& line);
expected<exit_code> run_doctor(const command_line& line, const config::loaded& settings);
expected<exit_code> run_resolve(const command_line& line, const config::settings& settings);

}  // namespace moetier::cli
