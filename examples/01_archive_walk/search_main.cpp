// archive_search: searches what the demo's nodes hold, and measures what the search costs when it is sent to them, and
// when their text is fetched and searched here.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "search.hpp"
#include "stanzas.hpp"

namespace archive_walk {
namespace {

using Json = nlohmann::json;

struct Options {
    std::vector<std::string> addresses;
    std::string pattern = "vidoe editor";
    std::string fabric = "shm";
    unsigned runs = 15;
    bool json = false;
};

template <typename Work>
double milliseconds_of(Work&& work) {
    const auto begun = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
}

Pattern pattern_of(const std::string& text) {
    Pattern pattern{};
    if (text.empty() || text.size() > Pattern::kBytesMax)
        throw std::runtime_error("a pattern has 1 to " + std::to_string(Pattern::kBytesMax) + " bytes; this one has " +
                                 std::to_string(text.size()));
    std::transform(text.begin(), text.end(), pattern.text.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    pattern.size = static_cast<std::uint32_t>(text.size());
    return pattern;
}

rove::PeerGroup connect(rove::Node& node, const std::vector<std::string>& addresses) {
    std::vector<rove::Peer> peers;
    for (const std::string& address : addresses) peers.push_back(node.connect(address));
    std::sort(peers.begin(), peers.end(), [](const auto& a, const auto& b) { return a.node() < b.node(); });
    for (std::size_t i = 0; i < peers.size(); ++i)
        if (peers[i].node() != i) throw std::runtime_error("give the addresses of all nodes, each once");
    return rove::PeerGroup(std::move(peers));
}

// What this process has sent, headers and code included.
rove::Peer::Counters sent(const rove::PeerGroup& peers) {
    rove::Peer::Counters all;
    for (const rove::Peer& peer : peers) {
        all.bytes_sent += peer.counters().bytes_sent;
        all.code_bytes_sent += peer.counters().code_bytes_sent;
    }
    return all;
}

// Fetches each node's text and searches it here, in the kindest way: a thread for each node, into memory that is
// there already.
class FetchingClient {
public:
    explicit FetchingClient(const rove::PeerGroup& peers) : peers_(peers), tops_(peers.size()) {
        for (const rove::Peer& peer : peers) {
            there_.push_back(readable_text(peer));
            here_.emplace_back(there_.back().size(), ' ');
        }
    }
    TopTen search(const Pattern& pattern) {
        std::vector<std::exception_ptr> wrong(peers_.size());
        {
            std::vector<std::jthread> threads;
            for (std::size_t node = 0; node < peers_.size(); ++node)
                threads.emplace_back([this, node, &pattern, &wrong] {
                    try {
                        peers_[node].get(there_[node], here_[node]).get();
                        tops_[node] = search_here({static_cast<std::uint32_t>(node), here_[node]}, pattern);
                    } catch (...) {
                        wrong[node] = std::current_exception();
                    }
                });
        }
        for (const auto& error : wrong)
            if (error) std::rethrow_exception(error);
        TopTen top = tops_.front();
        for (std::size_t node = 1; node < tops_.size(); ++node) top = merged(top, tops_[node]);
        return top;
    }
    [[nodiscard]] const std::vector<rove::Buffer<char>>& texts() const { return there_; }
    [[nodiscard]] std::uint64_t bytes() const {
        std::uint64_t all = 0;
        for (const std::string& text : here_) all += text.size();
        return all;
    }

private:
    const rove::PeerGroup& peers_;
    std::vector<rove::Buffer<char>> there_;
    std::vector<std::string> here_;
    std::vector<TopTen> tops_;
};

// One way of doing something: how long each run took, and what went over the link in one.
struct Way {
    std::vector<double> times_ms;
    std::uint64_t bytes = 0;

    template <typename Work>
    void run(const rove::PeerGroup& peers, Work&& work) {
        const std::uint64_t before = sent(peers).bytes_sent;
        times_ms.push_back(milliseconds_of(work));
        bytes = sent(peers).bytes_sent - before;
    }
    // `received`: payloads that came back in a run. The links count only what is sent.
    [[nodiscard]] Json json(std::uint64_t received) const {
        return {{"times_ms", times_ms}, {"bytes", bytes + received}};
    }
};

std::string field_of(const std::string& stanza, const std::string& name) {
    const std::string begin = "\n" + name + ": ";
    const std::string text = "\n" + stanza;
    const std::size_t at = text.find(begin);
    if (at == std::string::npos) return {};
    return text.substr(at + begin.size(), text.find('\n', at + 1) - at - begin.size());
}

Json described(const TopTen& top, const std::vector<std::string>& stanzas) {
    Json list = Json::array();
    for (std::size_t i = 0; i < stanzas.size(); ++i)
        list.push_back({{"package", field_of(stanzas[i], "Package")},
                        {"description", field_of(stanzas[i], "Description")},
                        {"installed_kib", std::strtol(field_of(stanzas[i], "Installed-Size").c_str(), nullptr, 10)},
                        {"score", top[i].score},
                        {"errors", top[i].errors}});
    return list;
}

void must_agree(bool same, const char* what) {
    if (!same) throw std::runtime_error(std::string(what) + " sent to the nodes finds something else than here");
}

// Reads the stanzas that were found, which are a few small ones.
Json measure_reads(const rove::PeerGroup& peers, const FetchingClient& client, const std::vector<Hit>& hits,
                   unsigned runs) {
    Way by_function;
    Way by_fetching;
    for (unsigned run = 0; run < runs; ++run) {
        by_function.run(peers, [&] { (void)stanzas_from_there(peers, hits); });
        by_fetching.run(peers, [&] { (void)stanzas_fetched(peers, client.texts(), hits); });
    }
    std::uint64_t bytes = 0;
    for (const Hit& hit : hits) bytes += hit.bytes;
    return {{"count", hits.size()}, {"sent", by_function.json(bytes)}, {"fetched", by_fetching.json(bytes)}};
}

Json measure_search(const rove::PeerGroup& peers, FetchingClient& client, const Pattern& pattern, const TopTen& top,
                    unsigned runs) {
    Way by_function;
    Way by_fetching;
    for (unsigned run = 0; run < runs; ++run) {
        by_function.run(peers, [&] { must_agree(search_there(peers, pattern) == top, "the search"); });
        by_fetching.run(peers, [&] { must_agree(client.search(pattern) == top, "the search"); });
    }
    return {{"sent", by_function.json(peers.size() * sizeof(TopTen))}, {"fetched", by_fetching.json(client.bytes())}};
}

Json measure(const Options& options) {
    const Pattern pattern = pattern_of(options.pattern);
    rove::NodeOptions settings;
    settings.fabric = options.fabric == "tcp" ? rove::FabricChoice::tcp : rove::FabricChoice::shm;
    rove::Node node(settings);
    const rove::PeerGroup peers = connect(node, options.addresses);

    TopTen top{};
    const double first_ms = milliseconds_of([&] { top = search_there(peers, pattern); });
    const auto code_bytes = sent(peers).code_bytes_sent;
    std::vector<Hit> hits;
    std::copy_if(top.begin(), top.end(), std::back_inserter(hits), [](const Hit& hit) { return hit.bytes != 0; });

    // Each function is called once before it is measured: nodes compile its bitcode in the background after that.
    FetchingClient client(peers);
    const std::vector<std::string> stanzas = stanzas_fetched(peers, client.texts(), hits);
    must_agree(stanzas == stanzas_from_there(peers, hits), "the function that reads");
    must_agree(client.search(pattern) == top, "the search");
    const Json search = measure_search(peers, client, pattern, top, options.runs);
    return {{"lane", peers[0].lane()},
            {"text_bytes", client.bytes()},
            {"first_call", {{"time_ms", first_ms}, {"code_bytes", code_bytes}}},
            {"search", search},
            {"reads", measure_reads(peers, client, hits, options.runs)},
            {"top_ten", described(top, stanzas)}};
}

void print_top(const Json& top) {
    for (const Json& hit : top)
        std::printf("%6d  %-28s %s\n", hit["score"].get<int>(), hit["package"].get<std::string>().c_str(),
                    hit["description"].get<std::string>().c_str());
}

}  // namespace
}  // namespace archive_walk

int main(int argc, char** argv) {
    archive_walk::Options options;
    CLI::App app{
        "Searches the text that the nodes of `./dev demo` hold: names and descriptions of packages, with errors."};
    app.add_option("address", options.addresses, "of each node")->required();
    app.add_option("--pattern", options.pattern, "what to look for")->capture_default_str();
    app.add_option("--fabric", options.fabric, "shm or tcp")
        ->capture_default_str()
        ->check(CLI::IsMember({"shm", "tcp"}));
    app.add_option("--runs", options.runs, "of each way")->capture_default_str()->check(CLI::Range(1, 1000));
    app.add_flag("--json", options.json, "all that was measured");
    CLI11_PARSE(app, argc, argv);
    try {
        const auto measured = archive_walk::measure(options);
        if (options.json)
            std::printf("%s\n", measured.dump(2, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
        else
            archive_walk::print_top(measured["top_ten"]);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "archive_search: %s\n", error.what());
        return 1;
    }
}
