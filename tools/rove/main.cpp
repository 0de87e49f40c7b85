// rove: build packages, look into them, serve, call, measure.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "commands.hpp"
#include "rove/error.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

// The output of a command is its result: if it cannot be written, the command has failed.
int printed(int status) {
    errno = 0;
    const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    if (written) return status;
    std::fprintf(stderr, "rove: the output cannot be written%s%s\n", errno != 0 ? ": " : "",
                 errno != 0 ? std::strerror(errno) : "");
    return status == 0 ? kFailed : status;
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Rove sends a function to where the data is and runs it there.", "rove");
    app.set_version_flag("--version", std::string("rove ") + ROVE_VERSION);
    app.require_subcommand(1);
    app.failure_message([](const CLI::App* verb, const CLI::Error& error) {
        return "rove: " + CLI::FailureMessage::simple(verb, error);
    });
    rove::tools::add_build(app);
    rove::tools::add_bundle(app);
    rove::tools::add_inspect(app);
    rove::tools::add_node(app);
    rove::tools::add_call(app);
    rove::tools::add_functions(app);
    rove::tools::add_bench(app);
    app.footer("`rove COMMAND --help` describes each command.");
    const std::vector<CLI::App*> verbs = app.get_subcommands([](const CLI::App*) { return true; });
    const auto is_meant = [argv](const CLI::App* verb) { return verb->get_name() == argv[1]; };
    if (argc > 1 && argv[1][0] != '-' && std::none_of(verbs.begin(), verbs.end(), is_meant)) {
        std::fprintf(stderr, "rove: there is no command '%s'; `rove --help` lists the commands\n", argv[1]);
        return kWrongUsage;
    }
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return printed(app.exit(error) == 0 ? 0 : kWrongUsage);
    } catch (const rove::Error& error) {
        std::fprintf(stderr, "rove: %s\n", error.what());
        return kFailed;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rove: %s\n", error.what());
        return kFailed;
    }
    return printed(0);
}
