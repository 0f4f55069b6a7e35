-------------------------------- MODULE Hold --------------------------------
(* Redis decides between processes, and a process between its callers. A hold is what a process has in Redis for the
lock; a lease is one caller's right within it. Attempts and releases are one step here, and there is one clock:
Lease.tla shows what they need. Renewals, confirmations and the application's scripts take time. H1 to H6 are the
rules of docs/architecture.md. *)
EXTENDS Integers, Sequences

CONSTANTS Process, Caller, Home, Ttl, Fresh, Fencing,
  Block,    \* tokens that a confirmation brings
  MayFail,  \* keys, counters, answers and releases may be lost, and callers may leave
  Holds     \* of one process, that may be in use at a time

VARIABLES
  key,      \* in Redis: the hold, and the ticks until it expires
  fence,    \* in Redis: the last token
  time,     \* of the server, for tokens
  net,      \* requests and answers: of each process at most one to renew its hold, and one to confirm it
  hold,     \* of each process, with its lease: see None
  line,     \* of each process: its callers that wait, in the order of their calls
  back,     \* the process that stands back, so that others get the lock
  lost,     \* a hold whose key was lost by a fault, and the ticks since then
  highest   \* token of a lease
redis == <<key, fence, time, lost>>
vars == <<redis, net, hold, line, back, highest>>
Max(a, b) == IF a > b THEN a ELSE b    Min(a, b) == IF a < b THEN a ELSE b

Nobody == <<>>
Free == [id |-> Nobody, life |-> 0]
\* since: ticks since the last request was sent that confirmed it. script: the caller whose script is not answered.
\* by, own: the caller that has the lease, and the ticks until this lease ends, though its hold may last longer.
\* token, more: the last token of a block that a lease has got, and how many are left.
None == [id |-> Nobody, left |-> 0, since |-> 0, isSliceOver |-> FALSE, script |-> Nobody, by |-> Nobody, own |-> 0,
         token |-> 0, more |-> 0]
Endless == 1000000000
OthersWait(p) == \E q \in Process \ {p} : line[q] # <<>>
Until(p) == Min(hold[p].left, hold[p].own)
Relies(p) == hold[p].by # Nobody /\ Until(p) > 0
Init ==
  /\ key = Free /\ fence = 0 /\ time = 1 /\ lost = [id |-> Nobody, age |-> 0] /\ net = {} /\ back = Nobody
  /\ hold = [p \in Process |-> None] /\ line = [p \in Process |-> <<>>] /\ highest = 0
SetLine(p, to) == line' = [line EXCEPT ![p] = to] /\ UNCHANGED <<redis, net, hold, back, highest>>
Call(c) == LET p == Home[c] IN
  hold[p].by # c /\ (\A i \in 1..Len(line[p]) : line[p][i] # c) /\ SetLine(p, Append(line[p], c))
Leave(p, i) == SetLine(p, SubSeq(line[p], 1, i - 1) \o SubSeq(line[p], i + 1, Len(line[p]))) \* the i-th gives up

HasTokens(of, token, more) == [of EXCEPT !.token = IF more = 0 THEN 0 ELSE token, !.more = more]

\* The first in line gets a lease of the hold. H2: what is left of it is enough.
Enter(p, of, own, token) ==
  /\ line[p] # <<>> /\ of.left >= IF own = Endless THEN 1 ELSE own
  /\ hold' = [hold EXCEPT ![p] = [of EXCEPT !.by = Head(line[p]), !.own = own]]
  /\ line' = [line EXCEPT ![p] = Tail(@)] /\ highest' = token

Acquire(p, id, ttl, own, token) ==
  /\ key.id \in {Nobody, id} /\ hold[p] = None /\ ~(back = p /\ OthersWait(p))
  /\ key' = [id |-> id, life |-> Max(ttl, key.life)] /\ fence' = token /\ back' = Nobody
  /\ Enter(p, [None EXCEPT !.id = id, !.left = ttl], own, token) /\ UNCHANGED <<time, lost, net>>

\* H1: the hold ends, and its lease. If the release does not come to Redis, the key is left. What comes later for the
\* hold finds nothing. H3: where others wait, the process stands back until one of them has had the lock.
End(p) ==
  /\ key' \in IF key.id # hold[p].id THEN {key} ELSE IF MayFail THEN {key, Free} ELSE {Free}
  /\ hold' = [hold EXCEPT ![p] = None] /\ net' = {m \in net : m.of # p}
  /\ back' = (IF OthersWait(p) THEN p ELSE Nobody) /\ UNCHANGED <<fence, time, lost, line, highest>>
Release(p) == Relies(p) /\ End(p)
Expire(p) == hold[p] # None /\ ~Relies(p) /\ (hold[p].by = Nobody => MayFail) /\ End(p) \* or no answer came in time

\* H2, H3, H4
MayPassOn(p) == LET of == hold[p] IN
  (Fencing => of.more > 0) /\ ~of.isSliceOver /\ of.script = Nobody /\ of.since <= Fresh
PassOn(p, own) == LET of == hold[p] IN
  /\ Relies(p) /\ MayPassOn(p) /\ UNCHANGED <<redis, net, back>>
  /\ IF Fencing THEN Enter(p, HasTokens(of, of.token + 1, of.more - 1), own, of.token + 1)
     ELSE Enter(p, of, own, highest)
Send(p, do, ttl) ==
  /\ \A m \in net : m.of # p \/ m.do # do
  /\ net' = net \cup {[of |-> p, do |-> do, ttl |-> ttl, age |-> 0, says |-> "?", token |-> 0]}
  /\ UNCHANGED <<redis, line, back, highest>>
Renew(p, ttl) == Relies(p) /\ Send(p, "renew", ttl) /\ UNCHANGED hold
Confirm(p, ttl) == \* at unlock, where it may not be passed on at once
  /\ Relies(p) /\ line[p] # <<>> /\ hold[p].script = Nobody /\ hold' = [hold EXCEPT ![p].by = Nobody, ![p].own = 0]
  /\ Send(p, IF hold[p].isSliceOver THEN "offer" ELSE "confirm", ttl)

Run(m, token) == LET isMine == key.id = hold[m.of].id
                     isReleased == isMine /\ m.do = "offer" /\ OthersWait(m.of)
                     answer == IF isMine /\ ~isReleased THEN "yours" ELSE "not yours" IN
  /\ m.says = "?" /\ net' = (net \ {m}) \cup {[m EXCEPT !.says = answer, !.token = token]}
  /\ key' = IF isReleased THEN Free ELSE IF isMine THEN [key EXCEPT !.life = Max(@, m.ttl)] ELSE key
  \* H4: only the holder takes tokens. The counter is the last one of its block.
  /\ fence' = (IF isMine /\ m.do # "renew" THEN token + Block - 1 ELSE fence)
  /\ UNCHANGED <<time, lost, hold, line, back, highest>>
Read(m, own) == LET p == m.of
                    now == [hold[p] EXCEPT !.left = Max(@, m.ttl - m.age), !.since = Min(@, m.age)] IN
  /\ m.says # "?"
  /\ IF m.says = "not yours" \/ (m.do # "renew" /\ (line[p] = <<>> \/ now.left = 0)) THEN End(p)
     ELSE /\ net' = net \ {m} /\ UNCHANGED <<redis, back>>
          /\ IF m.do # "renew"
             THEN LET of == [now EXCEPT !.isSliceOver = @ /\ m.do # "offer"] IN
                    Enter(p, HasTokens(of, m.token, Block - 1), own, m.token)
             ELSE hold' = [hold EXCEPT ![p] = now] /\ UNCHANGED <<line, highest>>

SetHold(p, of) == hold' = [hold EXCEPT ![p] = of] /\ UNCHANGED <<redis, net, line, back, highest>>
SliceEnds(p) == hold[p] # None /\ ~hold[p].isSliceOver /\ SetHold(p, [hold[p] EXCEPT !.isSliceOver = TRUE])
Eval(p) == Relies(p) /\ SetHold(p, [hold[p] EXCEPT !.script = hold[p].by]) \* it may run any time until it is answered
Answered(p) == hold[p].script # Nobody /\ SetHold(p, [hold[p] EXCEPT !.script = Nobody])
Less(a, d) == IF a = Endless THEN a ELSE Max(0, a - d)
Tick(d) ==
  /\ time' = IF Fencing THEN time + d ELSE time
  /\ key' = IF key.life > d THEN [key EXCEPT !.life = @ - d] ELSE Free
  /\ net' = {[m EXCEPT !.age = Min(@ + d, m.ttl)] : m \in net}
  /\ hold' = [p \in Process |-> IF hold[p] = None THEN None ELSE
       [hold[p] EXCEPT !.left = Less(@, d), !.own = Less(@, d), !.since = Min(@ + d, Fresh + 1)]]
  /\ lost' = (IF lost.id = Nobody THEN lost ELSE [lost EXCEPT !.age = Min(@ + d, Fresh + 1)])
  /\ UNCHANGED <<fence, line, back, highest>>

\* P2: an attempt may be executed when its caller has left. What is nobody's is released. Redis may lose what it has.
SetKey(to) == key' = to /\ UNCHANGED <<time, net, hold, line, back, highest>>
Orphan(id, ttl) == key = Free /\ SetKey([id |-> id, life |-> ttl]) /\ UNCHANGED <<fence, lost>>
Clear == key # Free /\ (\A p \in Process : hold[p].id # key.id) /\ SetKey(Free) /\ UNCHANGED <<fence, lost>>
LoseKey == key # Free /\ SetKey(Free) /\ lost' = [id |-> key.id, age |-> 0] /\ UNCHANGED fence
LoseCounter == fence' = 0 /\ SetKey(key) /\ UNCHANGED lost
LoseMessage(m) == net' = net \ {m} /\ UNCHANGED <<redis, hold, line, back, highest>>

\* The bounded model. An owner value of which nothing is left is as good as new.
New(p) == {id \in {p} \X (1..Holds) : id \notin {key.id, lost.id} /\ \A q \in Process : hold[q].id # id}
NewToken == IF Fencing THEN Max(fence + 1, time) ELSE 0
Own == {1, Endless}
Take(p) == New(p) # {} /\ \E own \in Own : Acquire(p, CHOOSE id \in New(p) : TRUE, Ttl, own, NewToken)
Unlock(p) == (\E own \in Own : PassOn(p, own)) \/ (~MayPassOn(p) /\ Confirm(p, Ttl)) \/ Release(p) \/ Expire(p)
Hear(p) == \E m \in net : m.of = p /\ (Run(m, NewToken) \/ \E own \in Own : Read(m, own))
Fail == \* P10: a lost counter does no harm, unless the server's clock is behind the last token
  \/ \E p \in Process : (line[p] # <<>> /\ Leave(p, 1)) \/ (New(p) # {} /\ Orphan(CHOOSE id \in New(p) : TRUE, Ttl))
  \/ (lost.id = Nobody /\ LoseKey) \/ (fence < time /\ LoseCounter) \/ \E m \in net : LoseMessage(m)
Next ==
  \/ \E c \in Caller : Call(c)
  \/ \E p \in Process : Take(p) \/ Unlock(p) \/ Hear(p) \/ Renew(p, Ttl) \/ SliceEnds(p) \/ Eval(p) \/ Answered(p)
  \/ Tick(1) \/ Clear \/ (MayFail /\ Fail)
Spec == Init /\ [][Next]_vars /\ \A p \in Process :
  WF_vars(Take(p)) /\ WF_vars(Unlock(p)) /\ WF_vars(SliceEnds(p)) /\ WF_vars(Hear(p))

\* What is relied on is in Redis, unless a fault took it. So no two leases are relied on at a time.
Kept == \A p \in Process : Relies(p) => hold[p].id \in {key.id, lost.id}
Exclusion == lost.id = Nobody => \A p, q \in Process : Relies(p) /\ Relies(q) => p = q
\* A script of a lease never runs in the lease of another caller.
OwnLease == \A p \in Process : hold[p].script # Nobody => hold[p].by \in {hold[p].script, Nobody}
Begins(p) == hold'[p].by # Nobody /\ hold'[p].by # hold[p].by
InOrder == [][\A p \in Process : Begins(p) => hold'[p].by = Head(line[p])]_vars
TokensRise == [][\A p \in Process : Fencing /\ Begins(p) /\ lost.id = Nobody => highest' > highest]_vars
\* A hold that was lost without a word is not passed on for long.
FoundSoon == [][\A p \in Process : Begins(p) /\ hold[p].by # Nobody /\ hold[p].id # key.id => lost.age <= Fresh]_vars
\* Every waiter gets the lock.
Served == \A c \in Caller : (\E i \in 1..Len(line[Home[c]]) : line[Home[c]][i] = c) ~> hold[Home[c]].by = c
==============================================================================
