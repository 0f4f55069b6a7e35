import type { Options } from '../options';

/** What a quick run does not measure. */
export const QUICK_WARM_UP =
  'Its warm-ups are so short that V8 has not compiled the code fully: figures of CPU and rates are not those of a service that runs for hours.';

const WARM_UP =
  'A service runs for hours, so what is measured is code that V8 has compiled. V8 compiles a function after it has run some thousand times. So the warm-up lasts until each process has acquired often enough: 20,000 times with one caller, 200,000 times where calls go together, 25,000 times in scenario 3, and 8,000 times in each of four processes. It takes 4, 5, 5 and 12 s at most, for all candidates alike; those that poll at long intervals do not acquire that often. These numbers were found by measuring CPU time for each acquisition second by second, of floors, of ours and of peers, until it fell no further. A load with work and pauses runs ten times as fast during the warm-up: 5 ms of work take 0.5 ms, or one turn of the event loop. The same functions run, only more often; then it runs at its own pace for 0.3 s before the window begins. In scenarios 5 to 8 the code runs too seldom for that, or its time does not matter: there, the warm-up takes 1 to 3 s.';

/** The section of the page that says how the figures were measured. */
export function method({ quick, rounds }: Pick<Options, 'quick' | 'rounds'>, isServerAlone: boolean): string {
  return `## Method

- The server is a private Redis without persistence, on loopback. It is emptied before each candidate. Every candidate runs in its own processes, which are new in every round and warm up before they are measured.
- ${quick ? `This was a quick run. ${QUICK_WARM_UP}` : WARM_UP}
- A round measures all candidates one after the other, in an order that changes from round to round. In scenarios 1, 2, 9a, 9b, 10, 12a and 12b the processes of all candidates run at the same time and are measured in alternation, in windows of 50 to 150 ms, so that other work of the machine affects all of them equally; there, each window counts as a round. A ratio is the ratio to the floor *of the same round*. Cells show the median of ${rounds === 1 ? 'one round' : `${rounds} rounds`}, with the minimum and the maximum.
- ${isServerAlone ? 'The server has one CPU for itself, and the candidates share the others. Otherwise the scheduler may or may not put a client on the CPU of the server, which changes a round trip by a factor of three.' : 'Server and candidates share all CPUs (this machine has no `taskset` to separate them), so the figures vary more.'} A process of the lowest priority keeps each CPU awake, because waking a CPU takes longer than a round trip on loopback.
- The floor is not a library: it is node-redis without its command timeout, and the fewest commands that do the work. It has no deadlines, no renewal and no detailed errors.
- "The rules of fair" is a floor for \`fair\` alone. The token keeps an order too, but a process that dies stops it for good, and a lost message does. This floor has what \`fair\` needs on its usual path so that nothing of that kind happens: positions by the time of the call, one for each process; a grant that ends after a second unless it is claimed by a renewal; an owner value for each acquisition; a deadline for each command. It has nothing of what is needed once something has failed. So the token shows the limit of the order, this floor what the promises cost in the least code, and the ratio of \`fair\` to it is what the library itself costs.
- Ours is the built package with default options, used as in its README: with renewal, and with a deadline for each command. Peers run with their own defaults on the client they are made for; only a limit on the number of attempts is lifted. They poll at their default intervals: redlock and @sesamecare-oss/redlock every 200 ms ± 100 ms, redlock-universal every 100 ms, redis-semaphore every 10 ms, @verrou/core every 250 ms.
- Peers in Go and Java run in programs of their language, with the same loads; their callers are goroutines and threads. A JVM warms up three times as long as the others, and Go needs no warm-up.
- Requests are counted by the server (\`INFO commandstats\`), which also counts calls in scripts. MONITOR, during the warm-up, determines which share of the calls of each command is sent by clients. CPU is that of the whole process, from \`process.cpuUsage()\` and \`INFO cpu\`.
- Wall time is noisy where other work shares the machine. There, the CPU time for each cycle or acquisition is the figure that counts.
- Every contended scenario checks mutual exclusion: the entries and exits of all processes are ordered by the machine's monotonic clock. An overlap fails the run.
- A wait that is unfinished at the end of the window counts up to that moment, so the figures of a starving candidate are lower bounds. "Overtaken" counts, for each acquisition, the callers that had requested the lock earlier and were still waiting. "Least-served caller" is the number of acquisitions of the caller with the fewest, "most-served caller" that of the caller with the most.
- Scenario 7 measures the heap after a forced garbage collection, with ${quick ? '1,000' : '2,000'} locks of each kind. The key strings belong to the caller and are not counted. "Idle" is the object of a lock after its use; libraries without such an object show no figure.
- Scenario 8 has a proxy process between the clients and the server that delays every byte by 10 ms in each direction. The unit is a PING through the same proxy.
- Scenario 10 has one replica, which runs on the same machine. A cycle is an acquisition and its release. WAIT holds up the other commands of its connection, so the floor with WAIT answers its callers in turn.
- Scenario 4t is the load of many services: a caller works for 1 ms, goes away for 10 to 30 ms, and asks again. Its floor passes a token on in the order of requests, over all processes: two requests and at most one message for each acquisition.
- Scenario 12 takes the locks of several keys, all or nothing. Where it is contended, each acquisition takes keys at random. redlock, @sesamecare-oss/redlock and redlock-universal have such a lock; its floor is one script for all keys.
- Scenario 13 checks exclusion too: a writer alone, or readers. Redisson is the peer that has such a lock; its process is a JVM.`;
}
