// rove functions: what a node's own program offers.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "choices.hpp"
#include "commands.hpp"
#include "rove/node.hpp"

namespace rove::tools {

void add_functions(CLI::App& app) {
    struct Arguments {
        std::string address;
        double timeout_s = 10;
        bool json = false;
        NodeOptions options;
    };
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("functions", "List the functions that a node's program has");
    command->add_option("ADDR", arguments->address, "the node's address")->required();
    command->add_option("--timeout", arguments->timeout_s, "seconds to wait for the list")
        ->check(kNoNan)
        ->check(CLI::Range(0.001, 1e9))
        ->capture_default_str();
    add_client_reach(*command, arguments->options);
    command->add_flag("--json", arguments->json, "print them as JSON: [{id, name, signature}]");
    command->footer("A plain `rove node` has none: what runs on it has travelled.");
    command->callback([arguments] {
        Node node(arguments->options);
        const Within limit = within(std::chrono::duration<double>(arguments->timeout_s));
        const std::vector<FunctionDescription> functions = node.connect(arguments->address).limited(limit).functions();
        if (arguments->json) {
            nlohmann::json list = nlohmann::json::array();
            for (const FunctionDescription& each : functions)
                list.push_back({{"id", each.id}, {"name", each.name}, {"signature", each.signature}});
            std::printf("%s\n", list.dump().c_str());
            return;
        }
        for (const FunctionDescription& each : functions)
            std::printf("%s  %s: %s\n", each.id.c_str(), each.name.c_str(), each.signature.c_str());
    });
}

}  // namespace rove::tools
