#pragma once
// Problem, deployment and environment as JSON documents, each with a schema field:
// "moetier.problem/1", "moetier.deployment/1", "moetier.environment/1". Reading trusts nothing:
// reason::file_malformed names the file and the key, reason::limit_exceeded a document that is too
// large, and values are checked as check_problem() and check_deployment() do. An environment
// must name its device; every other field that it leaves out is unknown. Writing then reading gives
// the same value. Thread: any (pure).

#include <string>
#include <string_view>

#include "schemas/base/error.hpp"
#include "schemas/resolution/deployment.hpp"
#include "schemas/resolution/environment.hpp"
#include "schemas/resolution/problem.hpp"

namespace moetier::resolution {

// Two spaces of indentation, a newline at the end.
std::string document_of(const problem& p);
std::string document_of(const deployment& d);
std::string document_of(const environment& e);

// `name` stands for the file in sentences.
expected<problem> read_problem(std::string_view text, std::string_view name);
expected<deployment> read_deployment(std::string_view text, std::string_view name);
expected<environment> read_environment(std::string_view text, std::string_view name);

}  // namespace moetier::resolution
