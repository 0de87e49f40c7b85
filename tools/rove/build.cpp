// rove build: sources to a package.
#include "toolchain/build.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "commands.hpp"
#include "rove/error.hpp"
#include "toolchain/process.hpp"

namespace rove::tools {

void add_build(CLI::App& app) {
    auto options = std::make_shared<toolchain::BuildOptions>();
    CLI::App* command =
        app.add_subcommand("build", "Build C or C++ sources into a package of functions that can travel");
    command->add_option("SOURCE", options->source, "a .c, .cpp, .cc or .cxx file, or a folder of them")->required();
    command->add_option("-o,--output", options->output, "the package to write, as sum.rove")->required();
    command
        ->add_option("--target", options->targets,
                     "x86_64-linux-gnu or aarch64-linux-gnu; may be given again (default: both)")
        ->option_text("TARGET")
        ->allow_extra_args(false);  // one each time: what follows may be the source
    command
        ->add_option(
            "--dep", options->dependencies,
            "a library, by its bare soname, that nodes open before they link the functions; may be given again")
        ->option_text("SONAME")
        ->allow_extra_args(false);
    command->add_flag("--interface", options->interface, "an interface: functions that arrive later link to its names");
    command->add_option("--name", options->name, "the package's name (default: the source's, without its ending)")
        ->check(
            [](const std::string& name) { return std::string(name.empty() ? "a name has at least 1 character" : ""); });
    command->add_option("--header", options->header, "also write a C/C++ header with the entries' names and ids");
    command
        ->add_option_function<std::string>(
            "-D,--define", [options](const std::string& name) { options->compiler_flags.push_back("-D" + name); },
            "a macro, as NAME or NAME=VALUE; may be given again")
        ->trigger_on_parse()
        ->allow_extra_args(false);
    command
        ->add_option_function<std::string>(
            "--flag", [options](const std::string& flag) { options->compiler_flags.push_back(flag); },
            "--flag=FLAG for the compiler; may be given again. C++ is compiled as gnu++20, unless --flag=-std=… says "
            "otherwise; -std applies to the sources of its language")
        ->trigger_on_parse()
        ->allow_extra_args(false);
    command->footer(
        "Each target gets an image, which runs at once, and bitcode, which is compiled for the CPU that is there.");
    command->callback([options] {
        options->warn = [](std::string_view line) {
            std::fprintf(stderr, "rove: warning: %.*s\n", static_cast<int>(line.size()), line.data());
        };
        const toolchain::Interruptible ends_in_order;
        if (const Status built = toolchain::build(*options); !built) throw Error(built.error());
    });
}

}  // namespace rove::tools
