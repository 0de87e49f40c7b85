#include "client.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <span>
#include <thread>

namespace archive_walk {
namespace {

using Words = std::vector<std::uint32_t>;
using WallClock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};

std::vector<std::byte> result_of(rove::RawCall& call) {
    if (!call.wait_for(kPatience))
        throw rove::Error(rove::ErrorCode::timed_out, "a node has not answered for a minute");
    return call.get();
}

Words words_of(std::span<const std::byte> bytes) {
    Words words(bytes.size() / sizeof(std::uint32_t));
    if (!words.empty()) std::memcpy(words.data(), bytes.data(), words.size() * sizeof(std::uint32_t));
    return words;
}

template <typename Head>
std::vector<std::byte> payload_of(const Head& head, const Words& words) {
    std::vector<std::byte> payload(sizeof head + words.size() * sizeof(std::uint32_t));
    std::memcpy(payload.data(), &head, sizeof head);
    if (!words.empty()) std::memcpy(payload.data() + sizeof head, words.data(), words.size() * sizeof(std::uint32_t));
    return payload;
}

rove::Error malformed(const char* what) {
    return {rove::ErrorCode::internal, what};
}

// Fills one node's shard. One call is in flight at a time, for a shard takes its vertices in turn; other nodes' calls
// overlap with it.
class Filler {
public:
    Filler(rove::Peer peer, rove::Entry entry, fill_request head)
        : peer_(std::move(peer)), entry_(std::move(entry)), head_(head) {}

    void add(Vertex vertex, const std::vector<shard_edge>& edges) {
        const std::size_t words_max = (rove::Peer::payload_bytes_max() - sizeof head_) / sizeof(std::uint32_t);
        if (words_.size() + 2 + edges.size() > words_max) send();
        words_.push_back(vertex);
        words_.push_back(static_cast<std::uint32_t>(edges.size()));
        words_.insert(words_.end(), edges.begin(), edges.end());
        ++head_.records;
    }
    void send() {
        finish();
        in_flight_ = peer_.call(entry_, payload_of(head_, words_));
        head_.reset = head_.records = 0;
        words_.clear();
        ++calls_;
    }
    void finish() {
        if (in_flight_) (void)result_of(*in_flight_);
        in_flight_.reset();
    }
    [[nodiscard]] unsigned calls() const { return calls_; }

private:
    rove::Peer peer_;
    rove::Entry entry_;
    fill_request head_;
    Words words_;
    std::optional<rove::RawCall> in_flight_;
    unsigned calls_ = 0;
};

// Fetches adjacency lists, from all nodes at once.
class Fetcher {
public:
    Fetcher(const std::vector<rove::Peer>& peers, const rove::Entry& entry) : peers_(peers), entry_(entry) {}

    // The edges of all these vertices, one after another.
    std::vector<shard_edge> edges_of(const Words& vertices) {
        std::vector<Words> asked(peers_.size());
        for (const Vertex vertex : vertices) asked[vertex % peers_.size()].push_back(vertex);
        std::vector<shard_edge> edges;
        while (std::any_of(asked.begin(), asked.end(), [](const Words& words) { return !words.empty(); }))
            ask(asked, edges);
        return edges;
    }
    [[nodiscard]] unsigned calls() const { return calls_; }
    [[nodiscard]] std::uint64_t reply_bytes() const { return reply_bytes_; }

private:
    // One call to each node that is asked something. What did not fit its reply stays in `asked`.
    void ask(std::vector<Words>& asked, std::vector<shard_edge>& edges) {
        std::vector<std::optional<rove::RawCall>> in_flight(peers_.size());
        for (std::size_t node = 0; node < peers_.size(); ++node) {
            if (asked[node].empty()) continue;
            in_flight[node] = peers_[node].call(entry_, std::as_bytes(std::span(asked[node])));
            ++calls_;
        }
        for (std::size_t node = 0; node < peers_.size(); ++node) {
            if (!in_flight[node]) continue;
            const Words lists = words_of(result_of(*in_flight[node]));
            reply_bytes_ += lists.size() * sizeof(std::uint32_t);
            const std::size_t answered = take_lists(lists, edges);
            if (answered == 0 || answered > asked[node].size()) throw malformed("not as many lists as asked for");
            asked[node].erase(asked[node].begin(), asked[node].begin() + static_cast<std::ptrdiff_t>(answered));
        }
    }
    static std::size_t take_lists(const Words& lists, std::vector<shard_edge>& edges) {
        std::size_t answered = 0;
        for (std::size_t at = 0; at < lists.size(); ++answered) {
            const std::size_t count = lists[at++];
            if (count > lists.size() - at) throw malformed("a list ends too early");
            const auto first = lists.begin() + static_cast<std::ptrdiff_t>(at);
            edges.insert(edges.end(), first, first + static_cast<std::ptrdiff_t>(count));
            at += count;
        }
        return answered;
    }

    const std::vector<rove::Peer>& peers_;
    const rove::Entry& entry_;
    unsigned calls_ = 0;
    std::uint64_t reply_bytes_ = 0;
};

}  // namespace

// Takes the time, and what the links' counters say, from its beginning to cost().
class Cluster::Meter {
public:
    explicit Meter(const Cluster& cluster) : cluster_(cluster), before_(sum()), begun_(WallClock::now()) {}

    [[nodiscard]] Cost cost() const {
        const std::chrono::duration<double, std::micro> time = WallClock::now() - begun_;
        const Cost now = sum();
        Cost cost;
        cost.microseconds = time.count();
        cost.code_bytes = now.code_bytes - before_.code_bytes;
        cost.data_bytes = now.data_bytes - before_.data_bytes;
        return cost;
    }

private:
    [[nodiscard]] Cost sum() const {
        Cost all;
        for (const rove::Peer& peer : cluster_.peers_) {
            const auto counters = peer.counters();
            all.code_bytes += counters.code_bytes_sent;
            all.data_bytes += counters.bytes_sent - counters.code_bytes_sent;
        }
        return all;
    }

    const Cluster& cluster_;
    Cost before_;
    WallClock::time_point begun_;
};

Cluster::Cluster(rove::Node& node, const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) peers_.push_back(node.connect(address));
    std::sort(peers_.begin(), peers_.end(), [](const auto& a, const auto& b) { return a.node() < b.node(); });
}

Cost Cluster::load(const rove::Package& interface, const rove::Entry& roll_call) const {
    const Meter meter(*this);
    for (const rove::Peer& peer : peers_) peer.load(interface);
    wait_until_met(roll_call);
    return meter.cost();
}

void Cluster::wait_until_met(const rove::Entry& roll_call) const {
    const auto deadline = WallClock::now() + std::chrono::seconds(10);
    for (std::size_t id = 0; id < peers_.size();) {
        rove::RawCall call = peers_[id].call(roll_call);
        const Words answer = words_of(result_of(call));
        if (answer.size() != 2 || answer[0] != id) throw malformed("a node has another id than it said");
        if (answer[1] == peers_.size()) {
            ++id;
        } else if (WallClock::now() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        } else {
            throw rove::Error(rove::ErrorCode::timed_out, "the nodes have not met within 10 seconds");
        }
    }
}

Cost Cluster::fill(const rove::Entry& fill, const Graph& graph) const {
    const Meter meter(*this);
    const auto vertices = static_cast<std::uint32_t>(graph.names.size());
    const auto nodes = static_cast<std::uint32_t>(peers_.size());
    std::vector<Filler> fillers;
    for (const rove::Peer& peer : peers_) fillers.emplace_back(peer, fill, fill_request{vertices, nodes, 1, 0});
    for (Vertex vertex = 0; vertex < vertices; ++vertex) fillers[vertex % nodes].add(vertex, graph.edges[vertex]);
    for (Filler& filler : fillers) filler.send();
    for (Filler& filler : fillers) filler.finish();
    Cost cost = meter.cost();
    for (const Filler& filler : fillers) cost.calls += filler.calls();
    return cost;
}

Cost Cluster::keep_text(const rove::Entry& keep_text, const std::vector<std::string_view>& parts) const {
    constexpr std::size_t kBytesAtOnce = 8UL << 20U;  // a call may have 32 MiB
    const Meter meter(*this);
    std::vector<rove::RawCall> calls;
    for (std::size_t node = 0; node < peers_.size(); ++node) {
        keep_text_request head{parts[node].size()};
        for (std::string_view rest = parts[node]; !rest.empty(); head.room = 0) {
            const std::string_view part = rest.substr(0, kBytesAtOnce);
            std::vector<std::byte> payload(sizeof head + part.size());
            std::memcpy(payload.data(), &head, sizeof head);
            std::memcpy(payload.data() + sizeof head, part.data(), part.size());
            calls.push_back(peers_[node].call(keep_text, payload));
            rest.remove_prefix(part.size());
        }
    }
    for (rove::RawCall& call : calls) (void)result_of(call);
    Cost cost = meter.cost();
    cost.calls = static_cast<unsigned>(calls.size());
    return cost;
}

Walked Cluster::travel(const rove::Entry& walk, Vertex start) const {
    // No two walks of one client are alike, and the clock keeps those of two clients apart.
    static std::uint64_t next_walk = static_cast<std::uint64_t>(WallClock::now().time_since_epoch().count());
    walk_state state{};
    state.walk = next_walk++;
    state.now_count = 1;
    const auto payload = payload_of(state, {start});

    const Meter meter(*this);
    rove::RawCall call = peers_[start % peers_.size()].call(walk, payload);
    if (!call.wait_for(kPatience))
        throw rove::Error(rove::ErrorCode::timed_out, "the walk has not come back for a minute");
    const rove::Reply reply = call.reply();
    Walked walked{{}, meter.cost()};

    walk_answer answer{};
    if (reply.data.size() < sizeof answer) throw malformed("the walk's answer is too short");
    std::memcpy(&answer, reply.data.data(), sizeof answer);
    walked.closure.reached = words_of(std::span(reply.data).subspan(sizeof answer));
    if (walked.closure.reached.size() != answer.reached) throw malformed("the walk's answer is not whole");
    std::sort(walked.closure.reached.begin(), walked.closure.reached.end());
    walked.closure.depth = answer.depth;
    walked.cost.calls = 1;
    walked.cost.hops = reply.hops;
    walked.cost.data_bytes += reply.data.size();
    walked.cost.node_bytes = answer.bytes;
    return walked;
}

Walked Cluster::fetch(const rove::Entry& list, Vertex start, std::uint32_t kinds, std::size_t vertices) const {
    const Meter meter(*this);
    Fetcher fetcher(peers_, list);
    Walked walked;
    std::vector<bool> seen(vertices);
    seen[start] = true;
    for (Words level = {start}; !level.empty();) {
        walked.closure.reached.insert(walked.closure.reached.end(), level.begin(), level.end());
        Words next;
        for (const shard_edge edge : fetcher.edges_of(level)) {
            const Vertex to = shard_edge_to(edge);
            if (to >= vertices) throw malformed("an edge leads to no vertex");
            if ((shard_edge_kinds(edge) & kinds) == 0 || seen[to]) continue;
            seen[to] = true;
            next.push_back(to);
        }
        if (!next.empty()) ++walked.closure.depth;
        level = std::move(next);
    }
    walked.cost = meter.cost();
    walked.cost.calls = fetcher.calls();
    walked.cost.data_bytes += fetcher.reply_bytes();
    std::sort(walked.closure.reached.begin(), walked.closure.reached.end());
    return walked;
}

}  // namespace archive_walk
