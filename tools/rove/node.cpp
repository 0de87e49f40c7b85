// rove node: a process that serves, and knows nothing of any program.
#include "rove/node.hpp"

#include <stdio_ext.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>

#include "base/descriptor.hpp"
#include "base/descriptor_limit.hpp"
#include "base/log.hpp"
#include "choices.hpp"
#include "code/cache.hpp"
#include "commands.hpp"
#include "end_signals.hpp"
#include "freed_memory.hpp"
#include "node/options.hpp"

namespace rove::tools {
namespace {

struct Arguments {
    NodeOptions options;
    std::uint64_t code_mib = 256;
    double grace_seconds = 5;
};

const std::map<std::string, Waiting> kWaiting{
    {"latency", Waiting::latency}, {"balanced", Waiting::balanced}, {"frugal", Waiting::frugal}};

// A number, or a word in place of NodeOptions' own.
CLI::Validator number_or_auto() {
    return {[](std::string& text) -> std::string {
                unsigned count = 0;
                if (text == "auto") text = std::to_string(kEnginesAuto);
                if (CLI::detail::lexical_cast(text, count)) return "";
                return fmt::format("'{}' is no number of engines, and not 'auto'", text);
            },
            ""};
}

constexpr std::uint64_t kPackagesMax = std::uint64_t{1} << 24U;  // 16 million
constexpr std::uint64_t kCodeMibMax = std::uint64_t{1} << 24U;   // 16 TiB

// False: its address could not be printed. Where nobody knows it then, it ends at once.
bool serve(const Arguments& arguments, EndSignals& signals) {
    Node node(arguments.options);
    signals.serving();
    std::printf("listening %s\n", node.address().c_str());
    const bool told = std::fflush(stdout) == 0;
    if (!told && node.address() != arguments.options.listen) return false;
    std::optional<int> signal;
    FreedMemory freed;
    for (std::chrono::milliseconds look = kFreedLook; !(signal = signals.wait_for(look));) look = freed.look();
    log().info("node {}: {}; it finishes what is running, and ends", node.id(),
               strsignal(*signal));  // which never waits for a reader
    return told;
}

void run_node(const Arguments& arguments) {
    fill_standard_descriptors();  // before anything else is opened
    allow_all_descriptors();      // some for each peer
    // The node continues if the reader of its output is gone. SIGPIPE has a handler; programs that functions start would inherit SIG_IGN.
    (void)std::signal(SIGPIPE, [](int) {});
    keep_large_memory();
    code::leave_code_in_place();
    EndSignals signals(std::chrono::ceil<std::chrono::seconds>(arguments.options.grace) + std::chrono::seconds(2));
    if (!serve(arguments, signals)) return;
    // Output of functions is not this command's result, so it is no failure if that cannot be written.
    if (std::fflush(stdout) != 0) __fpurge(stdout);
    std::clearerr(stdout);
}

}  // namespace

void add_node(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    arguments->options.log = "info";
    CLI::App* command = app.add_subcommand("node", "Serve: run what arrives, until SIGTERM");
    command
        ->add_option("--listen", arguments->options.listen,
                     "host:port, [v6]:port or unix:PATH; port 0 picks one; loopback or a Unix socket only")
        ->required();
    command->add_option(
        "--join", arguments->options.join,
        "the address of a node to join: all that joined know each other. The first node has nobody to join; when it "
        "is started again it joins one of the others, or it begins a cluster of its own");
    command->add_option("--packages", arguments->options.packages,
                        "a directory of .rove files whose functions are resident from the start");
    add_reach(*command, arguments->options);
    command
        ->add_option("--forms", arguments->options.forms,
                     "which forms of code to take: an image at once and then bitcode, or one only")
        ->transform(one_of(kForms))
        ->option_text("both|image|bitcode");
    command
        ->add_option(
            "--threads", arguments->options.threads,
            "functions that run long at once, 1 to 64 (1: each function runs to its end before the next begins)")
        ->capture_default_str();
    command
        ->add_option("--engines", arguments->options.engines,
                     "threads that poll, each for the peers that it has been given, 1 to 64; each has --threads of its "
                     "own. auto: one for each core that the process may use, and no more than 16")
        ->transform(number_or_auto())
        ->option_text("N|auto [1]");
    command
        ->add_option("--grace", arguments->grace_seconds,
                     "seconds that functions have to return after SIGTERM; those that have not are left to themselves")
        ->check(kNoNan)
        ->check(CLI::Range(0.1, 3600.0))
        ->capture_default_str();
    command
        ->add_option("--waiting", arguments->options.waiting,
                     "when nothing arrives: spin for ever, spin and then sleep (the default), or sleep at once")
        ->transform(one_of(kWaiting))
        ->option_text("latency|balanced|frugal");
    command
        ->add_option("--code-budget", arguments->code_mib,
                     "MiB of code to hold; beyond that the least recently used is evicted (0: after every call)")
        ->check(CLI::Range(std::uint64_t{0}, kCodeMibMax))
        ->capture_default_str();
    command
        ->add_option(
            "--known-packages", arguments->options.packages_max,
            "packages to know at once; half of them may be ones that stay: with statics or constructors, pinned, "
            "interfaces")
        ->check(CLI::Range(std::uint64_t{1}, kPackagesMax))
        ->capture_default_str();
    command->add_option("--log", arguments->options.log, "trace, debug, info, warn, error or off; to stderr")
        ->capture_default_str();
    command->footer(
        "Prints `listening ADDR` with the real port when it is ready. Ends with status 0 after SIGTERM or SIGINT, at "
        "once where it has not started yet.");
    command->callback([arguments] {
        arguments->options.grace =
            std::chrono::milliseconds(std::lround(std::min(arguments->grace_seconds, 1e9) * 1000));
        arguments->options.code_bytes_max = arguments->code_mib == 0 ? 1 : arguments->code_mib * 1024 * 1024;
        // Fails as any program does that makes a node, with the same message.
        if (const Status possible = check_options(arguments->options); !possible)
            throw CLI::ValidationError("rove node", possible.error().message());
        run_node(*arguments);
    });
}

}  // namespace rove::tools
