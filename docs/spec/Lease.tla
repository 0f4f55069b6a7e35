-------------------------------- MODULE Lease --------------------------------
(* The time of a lease. Redis keeps a key for its ttl. The process that it was granted to may rely on it for a
shorter time. Requests and answers take any time, may be lost, and may be executed again. Clocks differ in rate, and a
machine may be suspended: then its monotonic clock stands still. All times are relative: ticks that are left, or that
have passed. P1 to P14 are the guarantees of docs/guarantees.md. *)
EXTENDS Integers, FiniteSets

CONSTANTS Process, Ttl, Margin,
  Owners,   \* owner values of one process that may be in use at a time
  InFlight, \* requests and answers at a time
  Travels   \* whether leases are detached, and adopted

VARIABLES
  key,      \* in Redis: the owner value, and the ticks until it expires
  net,      \* requests on their way to Redis, and answers on their way back
  hold,     \* of each process: its owner value, and the ticks for which it may rely on it; 0: it asks, or is not sure
  rested,   \* ticks since a clock last missed one
  texts     \* of leases that were detached: the values under which they can be adopted
vars == <<key, net, hold, rested, texts>>
Max(a, b) == IF a > b THEN a ELSE b    Min(a, b) == IF a < b THEN a ELSE b

Nobody == <<>>
Free == [owner |-> Nobody, life |-> 0]
None == [owner |-> Nobody, left |-> 0]
Init == key = Free /\ net = {} /\ hold = [p \in Process |-> None] /\ rested = Ttl /\ texts = {}

\* P3: counted from before the request was sent, less a margin. What is older is of no use.
Reliable(age) == Max(0, Ttl - Margin - age)
TooOld == Ttl - Margin
Relies(p) == hold[p].left > 0

Request(do, owner, from) == [do |-> do, owner |-> owner, from |-> from, age |-> 0, says |-> "?"]
SendFrom(do, owner, from) == Cardinality(net) < InFlight /\ net' = net \cup {Request(do, owner, from)}
Send(do, owner) == SendFrom(do, owner, Nobody)

\* The value of the key between two processes.
Detached(owner) == <<owner[1], owner[2], "detached">>

\* P11: no owner value is ever used again. One of which nothing is left is as good as new, and keeps the model finite.
New(p) == {owner \in {p} \X (1..Owners) :
  key.owner # owner /\ (\A q \in Process : hold[q].owner # owner) /\ (\A m \in net : m.owner # owner)
  /\ LET t == Detached(owner) IN key.owner # t /\ t \notin texts /\ \A m \in net : m.from # t}

Call(p) == LET owner == CHOOSE o \in New(p) : TRUE IN
  /\ hold[p] = None /\ New(p) # {}
  /\ hold' = [hold EXCEPT ![p].owner = owner] /\ Send("acquire", owner) /\ UNCHANGED <<key, rested, texts>>

\* P11: after a refusal, or without an answer, with the same owner value.
AskAgain(p) == hold[p] # None /\ ~Relies(p) /\ Send("acquire", hold[p].owner) /\ UNCHANGED <<key, hold, rested, texts>>
Renew(p) == hold[p] # None /\ Send("renew", hold[p].owner) /\ UNCHANGED <<key, hold, rested, texts>>

\* By unlock, by its deadline (P4), or because its caller gives up. P2: what may be in Redis, now or later, is released.
End(p) ==
  /\ hold[p] # None /\ hold' = [hold EXCEPT ![p] = None]
  /\ Send("release", hold[p].owner) /\ UNCHANGED <<key, rested, texts>>

\* The lease ends here, whatever comes of it. With the text, which comes with the answer, any process may adopt it, also
\* two, or one again without an answer.
Detach(p) ==
  /\ Travels /\ Relies(p) /\ hold' = [hold EXCEPT ![p] = None]
  /\ SendFrom("detach", hold[p].owner, Detached(hold[p].owner)) /\ UNCHANGED <<key, rested, texts>>
Adopt(p, text) == \E owner \in IF hold[p] = None THEN New(p) ELSE {hold[p].owner} :
  /\ ~Relies(p) /\ SendFrom("adopt", owner, text) /\ hold' = [hold EXCEPT ![p].owner = owner]
  /\ UNCHANGED <<key, rested, texts>>
Forget(text) == texts' = texts \ {text} /\ UNCHANGED <<key, net, hold, rested>>

\* P6: "not yours" ends a lease at once. Silence does not.
Read(m, p) ==
  /\ m.says # "?" /\ net' = net \ {m} /\ UNCHANGED <<key, rested>>
  /\ texts' = IF m.do = "detach" /\ m.says = "yours" THEN texts \cup {m.from} ELSE texts
  /\ hold' = [hold EXCEPT ![p] = IF @.owner # m.owner \/ m.do = "detach" THEN @ ELSE IF m.says = "not yours" THEN None
                                 ELSE [@ EXCEPT !.left = Max(@, Reliable(m.age))]]

\* P7, P11: only the key of this very owner is renewed or released, and a key that has our owner value is ours.
\* From one owner value to the other, by comparing and setting: a key that has the other one already is not changed.
Run(m) == LET isSent == m.from # Nobody /\ key.owner = m.from
              isGiven == key.owner = m.owner \/ (m.do = "acquire" /\ key = Free) \/ isSent
              answer == [m EXCEPT !.says = IF isGiven THEN "yours" ELSE "not yours"] IN
  /\ m.says = "?"
  /\ \E life \in {Ttl - 1, Ttl} : \* Redis counts in whole ms
       key' = IF ~isGiven THEN key
              ELSE IF m.do = "release" THEN Free
              ELSE [owner |-> IF m.do = "detach" THEN m.from ELSE m.owner,
                    life |-> IF m.do = "adopt" /\ isSent THEN life ELSE Max(life, key.life)]
  /\ \E rest \in {net, net \ {m}} : \* it may be executed again
       net' = rest \cup IF m.do \in {"renew", "detach", "adopt"} \/ (m.do = "acquire" /\ isGiven) THEN {answer} ELSE {}
  /\ UNCHANGED <<hold, rested, texts>>
Lose(m) == net' = net \ {m} /\ UNCHANGED <<key, hold, rested, texts>>

\* A slow clock may miss a tick, but only one in the time of a lease. P12: that of a suspended machine stands still. Its
\* wall clock shows that, and then nothing is relied on until Redis confirms it.
Tick == \E slow, suspended \in SUBSET Process :
  /\ slow # {} => rested = Ttl
  /\ rested' = IF slow = {} THEN Min(rested + 1, Ttl) ELSE 0
  /\ key' = IF key.life > 1 THEN [key EXCEPT !.life = @ - 1] ELSE Free
  /\ net' = {[m EXCEPT !.age = IF m.owner[1] \in suspended THEN TooOld
                               ELSE IF m.owner[1] \in slow THEN @ ELSE Min(@ + 1, TooOld)] : m \in net}
  /\ hold' = [p \in Process |-> [hold[p] EXCEPT !.left = IF p \in suspended THEN 0
                                                         ELSE IF p \in slow THEN @ ELSE Max(0, @ - 1)]]
  /\ UNCHANGED texts

Next ==
  \/ \E p \in Process : Call(p) \/ AskAgain(p) \/ Renew(p) \/ End(p) \/ Detach(p)
  \/ \E text \in texts : Forget(text) \/ \E p \in Process : Adopt(p, text)
  \/ \E m \in net : Run(m) \/ Read(m, m.owner[1]) \/ Lose(m)
  \/ Tick
Spec == Init /\ [][Next]_vars

\* What is relied on is in Redis. So no two processes rely on the lock at a time.
Kept == \A p \in Process : Relies(p) => key.owner = hold[p].owner
Exclusion == \A p, q \in Process : Relies(p) /\ Relies(q) => p = q
==============================================================================
