// rove call: one function on one node, from the shell.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "choices.hpp"
#include "commands.hpp"
#include "rove/node.hpp"

namespace rove::tools {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

struct Arguments {
    std::string address;
    std::string function;
    std::string text, hex, file;
    std::uint64_t repeat = 1;
    double timeout_s = 0;
    bool json = false;
    NodeOptions options;
};

std::vector<std::byte> from_hex(const std::string& hex) {
    const auto digit = [&hex](char c) -> unsigned {
        if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
        if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
        if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
        throw CLI::ValidationError("--payload-hex", "'" + hex + "' is not hexadecimal");
    };
    if (hex.size() % 2 != 0) throw CLI::ValidationError("--payload-hex", "an odd number of digits");
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < hex.size(); i += 2)
        bytes.push_back(static_cast<std::byte>(digit(hex[i]) * 16 + digit(hex[i + 1])));
    return bytes;
}

std::vector<std::byte> from_text(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> from_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) throw Error(ErrorCode::invalid, "cannot read the payload file " + path);
    // Reads at most one byte more than can be sent, because a device or a pipe may have no end.
    std::vector<std::byte> bytes(Peer::message_bytes_max() + 1);
    stream.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > Peer::message_bytes_max())
        throw Error(ErrorCode::invalid, "the payload file " + path + " has more than the " +
                                            std::to_string(Peer::message_bytes_max()) + " bytes that a call may have");
    return bytes;
}

std::string to_hex(std::span<const std::byte> bytes) {
    std::string hex;
    for (const std::byte byte : bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(byte));
        hex += digits;
    }
    return hex;
}

// Prints text as it is, and everything else in hexadecimal.
void print_reply(std::span<const std::byte> data) {
    const bool text = std::all_of(data.begin(), data.end(), [](std::byte byte) {
        const auto c = static_cast<unsigned char>(byte);
        return (c >= 0x20 && c != 0x7F) || c == '\n' || c == '\t';
    });
    if (text) {
        std::fwrite(data.data(), 1, data.size(), stdout);
        if (data.empty() || data.back() != std::byte{'\n'}) std::fputc('\n', stdout);
    } else {
        std::printf("%s\n", to_hex(data).c_str());
    }
}

Reply one_call(const Peer& peer, const Entry& entry, std::span<const std::byte> payload, double timeout_s) {
    if (timeout_s <= 0) return peer.call(entry, payload).reply();
    try {
        return peer.limited(within(duration<double>(timeout_s))).call(entry, payload).reply();
    } catch (const Error& error) {
        if (error.code() != ErrorCode::timed_out) throw;
        throw Error(ErrorCode::timed_out,
                    fmt::format("{} at {}, within {} s: {}", entry.name(), peer.address(), timeout_s, error.message()));
    }
}

// The times of calls. If there are more than fit, a random sample of them (Vitter's algorithm R).
class Latencies {
public:
    void add(double us) {
        if (seen_++ == 0) first_ = us;
        if (sample_.size() < kSampleMax) {
            sample_.push_back(us);
            return;
        }
        const auto at = std::uniform_int_distribution<std::uint64_t>(0, seen_ - 1)(random_);
        if (at < kSampleMax) sample_[at] = us;
    }
    [[nodiscard]] double first() const { return first_; }
    [[nodiscard]] double median() {
        const auto middle = sample_.begin() + static_cast<std::ptrdiff_t>(sample_.size() / 2);
        std::nth_element(sample_.begin(), middle, sample_.end());
        return *middle;
    }

private:
    static constexpr std::size_t kSampleMax = std::size_t{1} << 20U;
    double first_ = 0;
    std::uint64_t seen_ = 0;
    std::vector<double> sample_;
    std::mt19937_64 random_{std::random_device()()};
};

void run_call(const Arguments& arguments) {
    const std::size_t colon = arguments.function.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == arguments.function.size())
        throw CLI::ValidationError(
            "PKG:ENTRY", "'" + arguments.function + "': write a package file, a colon and an entry, as sum.rove:sum");
    const std::vector<std::byte> payload = !arguments.hex.empty()    ? from_hex(arguments.hex)
                                           : !arguments.file.empty() ? from_file(arguments.file)
                                                                     : from_text(arguments.text);
    const Package package = Package::open(arguments.function.substr(0, colon));
    const Entry entry = package.entry(arguments.function.substr(colon + 1));
    Node node(arguments.options);
    const Peer peer = node.connect(arguments.address);

    Latencies latencies;
    Reply first, last;
    for (std::uint64_t i = 0; i < arguments.repeat; ++i) {
        const auto begin = steady_clock::now();
        last = one_call(peer, entry, payload, arguments.timeout_s);
        latencies.add(duration<double, std::micro>(steady_clock::now() - begin).count());
        if (i == 0) first = last;
    }
    if (!arguments.json) return print_reply(last.data);
    nlohmann::ordered_json json{
        {"reply_hex", to_hex(last.data)},
        {"node", last.node},
        {"calls", arguments.repeat},
        {"first", {{"ran", to_string(first.ran)}, {"latency_us", latencies.first()}}},
        {"last", {{"ran", to_string(last.ran)}}},
        {"latency_us_median", latencies.median()},
        {"frame_bytes_last", peer.counters().frame_bytes_last},
    };
    std::printf("%s\n", json.dump(2).c_str());
}

}  // namespace

void add_call(CLI::App& app) {
    auto arguments = std::make_shared<Arguments>();
    arguments->options.own_thread = false;
    CLI::App* command = app.add_subcommand("call", "Call a function of a package on a node and print its reply");
    command->add_option("ADDR", arguments->address, "the node: host:port, [v6]:port or unix:PATH")->required();
    command->add_option("PKG:ENTRY", arguments->function, "a package file and one of its entries, as sum.rove:sum")
        ->required();
    auto* payload = command->add_option_group("payload", "what the function gets (nothing, unless given)");
    payload->add_option("--payload-text", arguments->text, "this text");
    payload->add_option("--payload-hex", arguments->hex, "these bytes");
    payload->add_option("--payload-file", arguments->file, "a file's bytes")->check(CLI::ExistingFile);
    payload->require_option(0, 1);
    command->add_option("--repeat", arguments->repeat, "make this many calls, one after the other")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000}))
        ->capture_default_str();
    command
        ->add_option(
            "--timeout", arguments->timeout_s,
            "seconds for each call, sending included (0: for ever); meeting the node takes 5 s at most beside that")
        ->check(kNoNan)
        ->check(CLI::Range(0.0, 1e9))
        ->capture_default_str();
    add_client_reach(*command, arguments->options);
    command->add_option("--forms", arguments->options.forms, "which forms of the package to send")
        ->transform(one_of(kForms))
        ->option_text("both|image|bitcode");
    command->add_flag("--json", arguments->json, "print the reply and how it came as JSON");
    command->footer("Exits 0 with the reply on stdout, 1 with the error on stderr, 2 for wrong usage.");
    command->callback([arguments] { run_call(*arguments); });
}

}  // namespace rove::tools
