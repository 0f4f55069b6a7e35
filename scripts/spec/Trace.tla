-------------------------------- MODULE Trace --------------------------------
(* Whether what happened to one lock in the simulation is a behaviour of Lease.tla, with times in microseconds. An event
says what could be seen: a command that Redis executed, for how long a process relies on its lease, how time passed. What
Lease.tla leaves open, a trace has decided: so each event has one way to go on, or none, and then the trace is refused. *)
EXTENDS Lease, Sequences, Traces \* Traces: a module with the events of each trace

VARIABLES
  trace, at, \* which of the traces, and its next event
  lost,      \* owner values whose key was taken away by a fault, or by force
  used,      \* owner values that were relied on
  ended      \* those of them that have the key no more: never to be relied on again (P11)
Detaching == 9 \* in place of a process: the key of a lease that was detached
all == <<vars, trace, at, lost, used, ended>>
Event == Traces[trace][at]
InitTrace == Init /\ trace \in 1..Len(Traces) /\ at = 1 /\ lost = {} /\ used = {} /\ ended = {}

\* Some Ticks at a time, of the clock of Redis. An answer that is older than its ttl is of no use any more.
Pass(us) ==
  /\ key' = IF key.life > us THEN [key EXCEPT !.life = @ - us] ELSE Free
  /\ net' = {[m EXCEPT !.age = @ + us] : m \in {m \in net : m.age + us < m.ttl}}
  /\ hold' = [p \in Process |-> [hold[p] EXCEPT !.left = Max(0, @ - us)]]
  /\ ended' = (IF key' = Free THEN ended \cup ({key.owner} \cap used) ELSE ended) /\ UNCHANGED <<rested, texts, lost, used>>

\* Send and Run of a command of the process, which was sent `age` ago, and after which the key is like this. It acquires
\* a free lock, or renews or releases its own one, or changes nothing. It may hand the lock to another process (`fair`):
\* that one counts from now.
Executed(p, age, owner, life) == LET isOwn == key.owner # Nobody /\ key.owner[1] = p IN
  /\ IF owner = key.owner THEN IF isOwn THEN life + 1 >= key.life ELSE life = key.life \/ life + 1 = key.life \/ life = key.life + 1
     ELSE IF key = Free THEN TRUE ELSE key.owner[1] \in {p, Detaching}
  /\ key' = IF owner = Nobody THEN Free ELSE [owner |-> owner, life |-> life]
  /\ net' = net \cup IF owner = Nobody \/ (owner = key.owner /\ ~isOwn) THEN {}
                     ELSE {[owner |-> owner, ttl |-> life, age |-> IF owner[1] = p THEN age ELSE 0]}
  /\ ended' = (IF key.owner # owner THEN ended \cup ({key.owner} \cap used) ELSE ended)
  /\ UNCHANGED <<hold, rested, texts, lost, used>>

\* Read: P3, from before the request was sent.
Relied(p, owner, left) ==
  /\ owner \notin ended \/ owner \in lost
  /\ \E m \in net : m.owner = owner /\ left <= m.ttl - m.age
  /\ hold' = [hold EXCEPT ![p] = [owner |-> owner, left |-> left]] /\ used' = used \cup {owner}
  /\ UNCHANGED <<key, net, rested, texts, lost, ended>>
Over(p) == hold' = [hold EXCEPT ![p] = None] /\ UNCHANGED <<key, net, rested, texts, lost, used, ended>>

\* A key was deleted, Redis lost its data, its clock was set, or somebody unlocked by force, and so handed the lock over.
Fault(owner, life) ==
  /\ key' = IF owner = Nobody THEN Free ELSE [owner |-> owner, life |-> life]
  /\ lost' = IF key.owner \in {owner, Nobody} THEN lost ELSE lost \cup {key.owner}
  /\ net' = net \cup IF owner \in {Nobody, key.owner} THEN {} ELSE {[owner |-> owner, ttl |-> life, age |-> 0]}
  /\ UNCHANGED <<hold, rested, texts, used, ended>>

Follow == LET e == Event IN
  /\ at <= Len(Traces[trace]) /\ at' = at + 1 /\ UNCHANGED trace
  /\ CASE e[1] = "pass" -> Pass(e[2])
       [] e[1] = "executed" -> Executed(e[2], e[3], e[4], e[5])
       [] e[1] = "relied" -> Relied(e[2], e[3], e[4])
       [] e[1] = "over" -> Over(e[2])
       [] OTHER -> Fault(e[2], e[3])
TraceSpec == InitTrace /\ [][Follow \/ (at > Len(Traces[trace]) /\ UNCHANGED all)]_all

\* As Kept and Exclusion of Lease.tla, for what was not taken away.
KeptUnlessLost == \A p \in Process : Relies(p) => hold[p].owner \in {key.owner} \cup lost
ExclusionUnlessLost == \A p, q \in Process : Relies(p) /\ Relies(q) /\ hold[p].owner \notin lost /\ hold[q].owner \notin lost => p = q
==============================================================================
