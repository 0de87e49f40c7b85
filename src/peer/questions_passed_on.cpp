#include "peer/questions_passed_on.hpp"

#include "peer/code_arrival.hpp"
#include "peer/parked.hpp"

namespace rove {
namespace {

// Whether a piece begins where the last one of its question ended, or begins an item.
bool goes_on(const QuestionsPassedOn::Question& question, const wire::CodeChunk& piece) {
    if (!question.last) return piece.item == 0 && piece.offset == 0;
    if (question.last->package != piece.package) return false;
    return piece.offset == 0 || (question.last->item == piece.item && question.last_ends == piece.offset &&
                                 question.last->total_bytes == piece.total_bytes);
}

}  // namespace

bool QuestionsPassedOn::Question::asks(const wire::NeedCode& same) const {
    return need.asker == same.asker && need.origin == same.origin && need.function == same.function &&
           need.handle == same.handle;
}

// As far as can be seen here: how many items answer a question is known to its asker only.
bool QuestionsPassedOn::Question::is_answered() const {
    return last ? last_ends == last->total_bytes : may_be_answered;
}

QuestionsPassedOn::Added QuestionsPassedOn::add(const Asker& from, const PeerState& to, const wire::NeedCode& need,
                                                TimePoint now) {
    std::size_t of_peer = 0;
    auto makes_room = questions_.end(), of_peer_makes_room = questions_.end();
    for (auto each = questions_.begin(); each != questions_.end(); ++each) {
        const bool waits = each->waits && now - each->at < kCodeWaitMax;
        if (!waits && makes_room == questions_.end()) makes_room = each;
        if (each->from != from) continue;
        ++of_peer;
        if (!waits && of_peer_makes_room == questions_.end()) of_peer_makes_room = each;
        if (each->to != &to || !each->asks(need)) continue;
        if (waits) return Added::asked_once;
        each->at = now;  // asked again: what came was lost
        each->waits = true;
        each->may_be_answered = false;
        each->last.reset();
        each->order = next_order_++;
        return Added::asked;
    }
    if (of_peer >= kOfPeerMax) makes_room = of_peer_makes_room;
    if (of_peer >= kOfPeerMax || questions_.size() >= kMax) {
        if (makes_room == questions_.end()) return Added::no_room;
        questions_.erase(makes_room);
    }
    questions_.push_back({.from = from, .to = &to, .need = need, .at = now, .last = {}, .order = next_order_++});
    return Added::asked;
}

void QuestionsPassedOn::take_back(const Asker& from, const PeerState& to, const wire::NeedCode& need) {
    std::erase_if(questions_,
                  [&](const Question& each) { return each.from == from && each.to == &to && each.asks(need); });
}

QuestionsPassedOn::Asker QuestionsPassedOn::answered(const PeerState& by, NodeId asker, const wire::NeedCode& need) {
    auto latest = questions_.end();
    for (auto each = questions_.begin(); each != questions_.end(); ++each)
        if (each->to == &by &&
            each->asks({.function = need.function, .asker = asker, .origin = need.origin, .handle = need.handle}) &&
            (latest == questions_.end() || each->order > latest->order))
            latest = each;
    if (latest == questions_.end()) return {};
    const Asker from = latest->from;
    questions_.erase(latest);
    return from;
}

QuestionsPassedOn::Asker QuestionsPassedOn::takes_piece(const PeerState& by, NodeId asker, const wire::CodeChunk& piece,
                                                        std::size_t bytes, TimePoint now) {
    Question *unanswered = nullptr, *latest = nullptr;
    for (Question& each : questions_) {
        if (each.to != &by || each.need.asker != asker || !goes_on(each, piece)) continue;
        if (!each.last && now - each.at < kCodeWaitMax && (unanswered == nullptr || each.order < unanswered->order))
            unanswered = &each;
        if (latest == nullptr || each.order > latest->order) latest = &each;
    }
    Question* const asked = unanswered != nullptr ? unanswered : latest;
    if (asked == nullptr) return {};
    asked->order = next_order_++;
    asked->last = piece;
    asked->last_ends = piece.offset + bytes;
    // Questions for functions of one package cannot be told apart by its pieces: each of them may have been answered, if it was asked before its
    // manifest came.
    const bool is_manifest = piece.item == 0 && piece.offset == 0;
    for (Question& each : questions_) {
        if (each.to != &by || each.need.asker != asker) continue;
        each.waits = false;
        each.may_be_answered = each.may_be_answered || is_manifest;
    }
    return asked->from;
}

std::vector<QuestionsPassedOn::Question> QuestionsPassedOn::without(const PeerState& gone) {
    std::vector<Question> unanswered;
    for (const Question& each : questions_)
        if (each.to == &gone && each.from != &gone && !each.is_answered()) unanswered.push_back(each);
    std::erase_if(questions_, [&](const Question& each) { return each.from == &gone || each.to == &gone; });
    return unanswered;
}

void QuestionsPassedOn::asker_left(const Asker& gone) {
    std::erase_if(questions_, [&](const Question& each) { return each.from == gone; });
}

}  // namespace rove
