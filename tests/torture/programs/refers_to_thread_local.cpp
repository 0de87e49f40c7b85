// { dg-do run }
// { dg-options "-std=gnu++17" }
// A static that refers to a thread_local refers to that of the thread that has made it, for as long as the program.
#include <cstdlib>
#include <string>
#include <vector>

struct Words {
    std::vector<std::string> words{"a word that is longer than what a string holds in itself"};
};
static thread_local Words of_thread;
static Words& kept = of_thread;

int main() {
    const std::vector<std::string> others(1000, std::string(100, 'x'));  // where freed memory would be found again
    if (kept.words.size() != 1 || kept.words[0].size() != 56) abort();
    kept.words.push_back(others[0]);
    if (kept.words[1] != others[999]) abort();
}
