// rove bundle: what rove_add_executable() runs after linking.
#include "toolchain/bundle.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/result.hpp"
#include "commands.hpp"
#include "toolchain/process.hpp"

namespace rove::tools {

void add_bundle(CLI::App& app) {
    struct Arguments {
        toolchain::BundleOptions options;
        bool json = false;
        bool quiet = false;
    };
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand("bundle", "Add to a program the packages of the functions that it can send");
    command->add_option("PROGRAM", arguments->options.program, "compiled by clang with -Xclang -fembed-bitcode=all")
        ->required()
        ->check(CLI::ExistingFile);
    command
        ->add_option("--dep", arguments->options.dependencies,
                     "a library that its functions open by themselves, as libz.so.1; those that it is linked with "
                     "are found")
        ->type_name("SONAME");
    command->add_flag("--keep-bitcode", arguments->options.keep_bitcode,
                      "leave the bitcode that the packages are made of in the program");
    CLI::Option* quiet = command->add_flag("--quiet", arguments->quiet,
                                           "print no warnings: neither of functions that cannot travel, nor "
                                           "of those that do and may fail on a node, or act otherwise");
    command
        ->add_flag("--strict", arguments->options.strict,
                   "end with status 1 where there is a warning about a function, and leave the program as it is")
        ->excludes(quiet);
    command->add_flag("--json", arguments->json, "print what was done as JSON");
    command->footer("Packages are kept by what they were made of under $ROVE_CACHE (default: ~/.cache/rove).");
    command->callback([arguments] {
        if (!arguments->quiet)
            arguments->options.warn = [](std::string_view line) {
                std::fprintf(stderr, "rove: %.*s\n", static_cast<int>(line.size()), line.data());
            };
        const toolchain::Interruptible ends_in_order;
        const toolchain::BundleReport report = value_or_throw(toolchain::bundle(arguments->options));
        if (arguments->json)
            std::printf("%s\n", nlohmann::json({{"functions", report.functions},
                                                {"stay", report.stay},
                                                {"with_image", report.with_image},
                                                {"from_cache", report.from_cache}})
                                    .dump()
                                    .c_str());
    });
}

}  // namespace rove::tools
