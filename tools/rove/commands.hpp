// The command's verbs; each adds its options and what it does to the command line.
#pragma once

#include <CLI/CLI.hpp>

namespace rove::tools {

void add_build(CLI::App& app);
void add_bundle(CLI::App& app);
void add_functions(CLI::App& app);
void add_inspect(CLI::App& app);
void add_node(CLI::App& app);
void add_call(CLI::App& app);
void add_bench(CLI::App& app);

}  // namespace rove::tools
