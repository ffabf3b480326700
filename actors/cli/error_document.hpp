#pragma once
// A failed command as one JSON document: what `-o json` puts on standard output beside the sentence
// on standard error. Thread: any.

#include <string>

#include "schemas/base/error.hpp"

namespace moetier::cli {

std::string error_document(const error& e);  // one line, with its newline

}  // namespace moetier::cli
