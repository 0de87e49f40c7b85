#include "stanzas.hpp"

#include <algorithm>
#include <cstring>
#include <span>

#include "shard.h"

namespace archive_walk {

rove::Buffer<char> readable_text(const rove::Peer& peer) {
    const auto bytes = peer.sync([] {
        std::uint64_t count = 0;
        (void)shard_text(&count);
        return count;
    });
    auto buffer = peer.allocate<char>(bytes).get();
    peer.sync(
        [](std::span<char> into) {
            std::uint64_t count = 0;
            const char* text = shard_text(&count);
            if (count != 0) std::memcpy(into.data(), text, std::min<std::uint64_t>(count, into.size()));
        },
        buffer);
    return buffer;
}

std::vector<std::string> stanzas_from_there(const rove::PeerGroup& peers, const std::vector<Hit>& hits) {
    const auto read = [](const std::vector<Hit>& wanted) {
        std::uint64_t count = 0;
        const char* text = shard_text(&count);
        std::vector<std::string> stanzas;
        for (const Hit& hit : wanted)
            if (hit.offset <= count && hit.bytes <= count - hit.offset)
                stanzas.emplace_back(text + hit.offset, hit.bytes);
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
