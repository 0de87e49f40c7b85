#include "stanzas.hpp"

#include <span>
#include <string_view>

#include "shard.hpp"

namespace archive_walk {

rove::Buffer<char> readable_text(const rove::Peer& peer) {
    const std::uint64_t bytes = peer.sync([] { return std::uint64_t{text_of_node().size()}; });
    auto buffer = peer.allocate<char>(bytes).get();
    peer.sync([](std::span<char> into) { text_of_node().copy(into.data(), into.size()); }, buffer);
    return buffer;
}

std::vector<std::string> stanzas_from_there(const rove::PeerGroup& peers, const std::vector<Hit>& hits) {
    const auto read = [](const std::vector<Hit>& wanted) {
        const std::string_view text = text_of_node();
        std::vector<std::string> stanzas;
        for (const Hit& hit : wanted)
            if (hit.offset <= text.size() && hit.bytes <= text.size() - hit.offset)
                stanzas.emplace_back(text.substr(hit.offset, hit.bytes));
        return stanzas;
    };
    std::vector<std::vector<Hit>> wanted(peers.size());
    for (const Hit& hit : hits) wanted.at(hit.node).push_back(hit);
    std::vector<rove::Call<std::vector<std::string>>> calls;
    std::vector<std::size_t> call_of(peers.size());
    for (std::size_t node = 0; node < peers.size(); ++node) {
        if (wanted[node].empty()) continue;
        call_of[node] = calls.size();
        calls.push_back(peers[node].async(read, wanted[node]));
    }
    std::vector<std::vector<std::string>> read_there;
    for (auto& call : calls) read_there.push_back(call.get());
    std::vector<std::size_t> taken(peers.size());
    std::vector<std::string> stanzas;
    for (const Hit& hit : hits) stanzas.push_back(read_there[call_of[hit.node]].at(taken[hit.node]++));
    return stanzas;
}

std::vector<std::string> stanzas_fetched(const rove::PeerGroup& peers, const std::vector<rove::Buffer<char>>& texts,
                                         const std::vector<Hit>& hits) {
    std::vector<std::string> stanzas;
    stanzas.reserve(hits.size());
    std::vector<rove::Call<>> calls;
    for (const Hit& hit : hits) {
        std::string& stanza = stanzas.emplace_back(hit.bytes, ' ');
        calls.push_back(peers[hit.node].get(texts.at(hit.node).subspan(hit.offset, hit.bytes), stanza));
    }
    for (auto& call : calls) call.get();
    return stanzas;
}

}  // namespace archive_walk
