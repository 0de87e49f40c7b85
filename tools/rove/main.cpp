// rove: build packages, look into them, serve, call, measure.
#include <cstdio>

#include "commands.hpp"
#include "rove/error.hpp"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Rove sends a function to where the data is and runs it there.", "rove");
    app.set_version_flag("--version", std::string("rove ") + ROVE_VERSION);
    app.require_subcommand(1);
    app.failure_message(CLI::FailureMessage::simple);
    rove::tools::add_build(app);
    rove::tools::add_bundle(app);
    rove::tools::add_inspect(app);
    rove::tools::add_node(app);
    rove::tools::add_call(app);
    rove::tools::add_functions(app);
    rove::tools::add_bench(app);
    app.footer("`rove VERB --help` tells more of each.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : kWrongUsage;
    } catch (const rove::Error& error) {
        std::fprintf(stderr, "rove: %s\n", error.what());
        return kFailed;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "rove: %s\n", error.what());
        return kFailed;
    }
    return 0;
}
