-------------------------------- MODULE Fair --------------------------------
(* The queue of `fair`: first come, first served, over all processes. The script that ends a grant makes the next one.
Of each process only the first caller has a ticket in the queue. Commands take time, may be lost, and may be executed
when their caller has left; answers come at once, or never. R1 to R6 and H3 are the rules of docs/architecture.md. *)
EXTENDS Integers, FiniteSets

CONSTANTS Process, Calls, Of, Ttl, Window, Fresh,
  Faults,   \* of "slow", "loss", "mute" (messages of pub/sub are lost), "abort", "deaf", "death"
  InFlight, \* commands and messages at a time
  Stamps    \* of grants to one ticket, that may be in use at a time

VARIABLES
  state,    \* of each ticket: "not yet", "waits", "inside" or "over"
  queue,    \* in Redis: tickets
  lock,     \* in Redis: the grant, the ticks until it expires, and whether a script was sent for this very grant
  net,      \* commands to Redis, answers to polls, and messages of pub/sub
  lease,    \* of each process: its caller inside, the grant, and the ticks for which it may be relied on
  alone,    \* of each process: ticks since no other process waited, as far as it knows
  reach     \* of each process: how it learns of a grant: "message", "poll", "none" (nobody listens), or "dead"
inside == <<state, lease, alone>>
redis == <<queue, lock>>
vars == <<inside, redis, net, reach>>
Max(a, b) == IF a > b THEN a ELSE b    Min(a, b) == IF a < b THEN a ELSE b
First(set) == CHOOSE t \in set : \A u \in set : t <= u

\* Tickets are numbered by the time of the call: that is their position. R1: a grant is a ticket and a stamp, 0 for one
\* that a script was sent for. No stamp is used twice; one of which nothing is left is as good as new.
Ticket == 1..Calls
NoGrant == <<0, 0>>
Free == [grant |-> NoGrant, life |-> 0, isTracked |-> FALSE]
None == [by |-> 0, grant |-> NoGrant, left |-> 0]
Unknown == Fresh + 1
NewStamp(t) == First({n \in 1..Stamps : <<t, n>> # lock.grant /\ \A m \in net : m.grant # <<t, n>>})
\* An owner value that is a ticket stands for all grants of that ticket.
IsOf(grant) == lock # Free /\ (lock.grant = grant \/ (grant[2] = 0 /\ grant[1] = lock.grant[1]))
Waiting(p) == {t \in Ticket : Of[t] = p /\ state[t] = "waits"}
Relies(p) == lease[p].left > 0
Message(do, t, grant) == [do |-> do, of |-> Of[t], ticket |-> t, grant |-> grant, age |-> 0]
IsPubSub(m) == m.do \in {"grant", "wanted"}
Send(do, t, grant) == Cardinality(net) < InFlight /\ net' = net \cup {Message(do, t, grant)}
Replace(m, by) == net' = (net \ {m}) \cup IF Cardinality(net) <= InFlight THEN by ELSE {}
Init ==
  /\ state = [t \in Ticket |-> "not yet"] /\ queue = {} /\ lock = Free /\ net = {}
  /\ lease = [p \in Process |-> None] /\ alone = [p \in Process |-> Unknown] /\ reach = [p \in Process |-> "message"]
Call(t) ==
  /\ state[t] = "not yet" /\ (\A u \in 1..(t - 1) : state[u] # "not yet") /\ reach[Of[t]] # "dead"
  /\ state' = [state EXCEPT ![t] = "waits"] /\ UNCHANGED <<lease, alone, redis, net, reach>>

\* R5: a process polls while its ticket is in the queue. R4: an attempt enters a missing one, at its first position.
Ask(p, do) == LET t == First(Waiting(p)) IN
  /\ Waiting(p) # {} /\ lease[p] = None /\ \A m \in net : m.of = p => IsPubSub(m) \/ (m.do = "end" /\ "slow" \in Faults)
  /\ IF do = "attempt" THEN t \notin queue ELSE t \in queue \cup {lock.grant[1]}
  /\ Send(do, t, NoGrant) /\ UNCHANGED <<inside, redis, reach>>

\* At unlock, or at its deadline. H3: to the next caller, if nobody else waits; else the queue decides.
Unlock(p) == LET t == lease[p].by  next == First(Waiting(p))  hasNext == Relies(p) /\ Waiting(p) # {} IN
  /\ t # 0 /\ UNCHANGED <<alone, redis, reach>>
  /\ IF hasNext /\ alone[p] <= Fresh /\ reach[p] = "message"
     THEN /\ state' = [state EXCEPT ![t] = "over", ![next] = "inside"]
          /\ lease' = [lease EXCEPT ![p].by = next] /\ UNCHANGED net
     ELSE /\ state' = [state EXCEPT ![t] = "over"] /\ lease' = [lease EXCEPT ![p] = None]
          /\ IF hasNext THEN Send("exchange", next, lease[p].grant) ELSE Send("end", t, lease[p].grant)

\* P2: what a caller has in Redis that gives up is removed, also if it comes there later.
Abort(t) ==
  /\ "abort" \in Faults /\ state[t] = "waits" /\ state' = [state EXCEPT ![t] = "over"]
  /\ Send("end", t, <<t, 0>>) /\ UNCHANGED <<lease, alone, redis, reach>>
FollowUp(t) ==
  /\ state[t] = "over" /\ reach[Of[t]] # "dead" /\ \A m \in net : m.do # "end"
  /\ t \in queue \/ (lock.grant[1] = t /\ lease[Of[t]].grant # lock.grant)
  /\ Send("end", t, <<t, 0>>) /\ UNCHANGED <<inside, redis, reach>>

Enter(t, grant, left, isAlone) == LET p == Of[t] IN
  IF state[t] = "waits" /\ lease[p] = None /\ t = First(Waiting(p)) /\ left > 0
  THEN /\ state' = [state EXCEPT ![t] = "inside"]
       /\ lease' = [lease EXCEPT ![p] = [by |-> t, grant |-> grant, left |-> left]]
       /\ alone' = [alone EXCEPT ![p] = IF isAlone THEN Ttl - left ELSE Unknown]
  ELSE UNCHANGED inside

\* A process hears of a grant, and can prove that it is not older than `age`. R3: it sends the first renewal, and enters
\* if half of the window is certain; else with the answer. What nobody waits for is given back, by its own owner value.
HearGrant(m) == \E age \in Min(m.age, Window)..Window :
  /\ m.do \in {"grant", "answer"} /\ UNCHANGED <<redis, reach>>
  /\ IF state[m.ticket] = "waits" /\ lease[m.of] = None
     THEN /\ Replace(m, {Message("renew", m.ticket, m.grant)})
          /\ IF 2 * (Window - age) >= Window THEN Enter(m.ticket, m.grant, Window - age, FALSE) ELSE UNCHANGED inside
     ELSE LET isKnown == m.grant[2] = 0 \/ m.grant = lease[m.of].grant IN
          Replace(m, IF isKnown THEN {} ELSE {Message("end", m.ticket, m.grant)}) /\ UNCHANGED inside
HearWanted(m) == m.do = "wanted" /\ Replace(m, {}) /\ alone' = [alone EXCEPT ![m.of] = Unknown]
                 /\ UNCHANGED <<state, lease, redis, reach>>

\* The scripts. R6: the lock goes to the first ticket whose process can be reached. R2: only `asking` gets the full ttl.
HandOver(m, tickets, asking) == LET
    ready == {t \in tickets : Of[t] = m.of \/ reach[Of[t]] \in {"message", "poll"}}
    next == First(ready)
    grant == IF next = asking THEN <<next, 0>> ELSE <<next, NewStamp(next)>>
    isTold == next # asking /\ (Of[next] = m.of \/ reach[Of[next]] = "message") IN
  IF ready = {} THEN lock' = Free /\ queue' = tickets /\ Replace(m, {})
  ELSE /\ lock' = [grant |-> grant, life |-> IF next = asking THEN Ttl ELSE Window, isTracked |-> next = asking]
       /\ queue' = tickets \ {next} /\ Replace(m, IF isTold THEN {Message("grant", next, grant)} ELSE {})
Prolong == lock' = [lock EXCEPT !.life = Max(@, Ttl), !.isTracked = TRUE]
MayBeLost(answer) == answer \/ ("loss" \in Faults /\ UNCHANGED inside)
Granted(m) == MayBeLost(IF lock'.grant # <<m.ticket, 0>> THEN UNCHANGED inside
                        ELSE Enter(m.ticket, lock'.grant, Ttl - m.age, queue' = {}))

Attempt(m) ==
  IF lock = Free THEN HandOver(m, queue \cup {m.ticket}, m.ticket) /\ Granted(m)
  ELSE IF lock.grant[1] = m.ticket \* P11: it is granted already
  THEN /\ Prolong /\ queue' = queue \ {m.ticket} /\ Replace(m, {})
       /\ MayBeLost(Enter(m.ticket, lock.grant, Ttl - m.age, FALSE))
  ELSE /\ queue' = queue \cup {m.ticket} /\ UNCHANGED <<inside, lock>>
       /\ Replace(m, IF Of[lock.grant[1]] = m.of THEN {} ELSE {Message("wanted", lock.grant[1], NoGrant)})
Poll(m) == UNCHANGED inside /\
  IF lock = Free THEN HandOver(m, queue, 0)
  ELSE UNCHANGED redis /\ Replace(m, IF lock.grant[1] # m.ticket THEN {}
         ELSE {[Message("answer", m.ticket, lock.grant) EXCEPT !.age = Max(0, Window - lock.life)]})
End(m) == \* or an exchange, which enters the next ticket of the process
  LET tickets == IF m.do = "end" THEN queue \ {m.ticket} ELSE queue \cup {m.ticket} IN
  IF IsOf(m.grant) THEN HandOver(m, tickets, IF m.do = "end" THEN 0 ELSE m.ticket) /\ Granted(m)
  ELSE queue' = queue \cap tickets /\ Replace(m, {}) /\ UNCHANGED <<inside, lock>>
Renew(m) == LET isOurs == lease[m.of].grant = m.grant IN
  /\ Replace(m, {}) /\ UNCHANGED queue
  /\ IF lock.grant # m.grant
     THEN /\ UNCHANGED <<alone, lock>> /\ lease' = [lease EXCEPT ![m.of] = IF isOurs THEN None ELSE @]
          /\ state' = IF isOurs THEN [state EXCEPT ![lease[m.of].by] = "over"] ELSE state
     ELSE Prolong /\ MayBeLost(IF ~isOurs THEN Enter(m.ticket, m.grant, Ttl - m.age, FALSE) ELSE
            lease' = [lease EXCEPT ![m.of].left = Max(@, Ttl - m.age)] /\ UNCHANGED <<state, alone>>)

Run(m) ==
  /\ CASE m.do = "attempt" -> Attempt(m) [] m.do = "poll" -> Poll(m) [] m.do \in {"end", "exchange"} -> End(m)
       [] m.do = "renew" -> Renew(m) [] OTHER -> FALSE
  /\ reach' = IF m.do = "poll" /\ reach[m.of] = "none" THEN [reach EXCEPT ![m.of] = "poll"] ELSE reach
Hear(p) == \E m \in net : m.of = p /\ (Run(m) \/ (reach[p] # "dead" /\ (HearGrant(m) \/ HearWanted(m))))

Tick ==
  /\ "slow" \in Faults \/ \A m \in net : IsPubSub(m)
  /\ lock' = IF lock.life > 1 THEN [lock EXCEPT !.life = @ - 1] ELSE Free
  /\ net' = {[m EXCEPT !.age = Min(@ + 1, Ttl)] : m \in net}
  /\ lease' = [p \in Process |-> [lease[p] EXCEPT !.left = Max(0, @ - 1)]]
  /\ alone' = [p \in Process |-> Min(alone[p] + 1, Unknown)] /\ UNCHANGED <<state, queue, reach>>

Lose(m) == (IF IsPubSub(m) THEN "mute" ELSE "loss") \in Faults /\ Replace(m, {}) /\ UNCHANGED <<inside, redis, reach>>
Fail(p, fault, to) == fault \in Faults /\ reach' = [reach EXCEPT ![p] = to] /\ UNCHANGED redis
Deafen(p) == reach[p] = "message" /\ Fail(p, "deaf", "none") /\ UNCHANGED <<inside, net>>
Die(p) ==
  /\ (\A q \in Process : reach[q] # "dead") /\ Fail(p, "death", "dead") /\ lease' = [lease EXCEPT ![p] = None]
  /\ state' = [t \in Ticket |-> IF Of[t] = p /\ state[t] # "not yet" THEN "over" ELSE state[t]]
  /\ net' = {m \in net : m.of # p \/ ~IsPubSub(m)} /\ UNCHANGED alone

Next ==
  \/ \E t \in Ticket : Call(t) \/ Abort(t) \/ FollowUp(t)
  \/ \E p \in Process : Ask(p, "attempt") \/ Ask(p, "poll") \/ Unlock(p) \/ Hear(p) \/ Deafen(p) \/ Die(p)
  \/ Tick \/ \E m \in net : Lose(m)
Spec == Init /\ [][Next]_vars /\ SF_vars(Tick) /\ (\A t \in Ticket : WF_vars(FollowUp(t))) /\ \A p \in Process :
  WF_vars(Hear(p)) /\ WF_vars(Ask(p, "attempt")) /\ WF_vars(Ask(p, "poll")) /\ WF_vars(Unlock(p))

\* What is relied on is in Redis. So no two processes rely on the lock at a time.
Kept == \A p \in Process : Relies(p) => lock.grant = lease[p].grant
Exclusion == \A p, q \in Process : Relies(p) /\ Relies(q) => p = q
Windows == lock.life > Window => lock.isTracked \* R2, and R4:
Entered == [][\A t \in queue' \ queue : \E m \in net \ net' : m.ticket = t /\ m.do \in {"attempt", "exchange"}]_vars
\* R6: the lock goes to the first ticket that can be reached. H3: others are passed by only until that can be known.
InOrder == [][lock'.grant # lock.grant /\ lock' # Free =>
  \A t \in queue : t < lock'.grant[1] => reach'[Of[t]] \in {"none", "dead"}]_vars
NotPast == [][\A p \in Process : lease[p].by # 0 /\ lease'[p].by \notin {0, lease[p].by} =>
  \A t \in queue : t < lease'[p].by => \E m \in net : m.do = "wanted" /\ m.of = p]_vars
\* Every waiter gets the lock. Nothing is left of those that have left.
Served == \A t \in Ticket : state[t] = "waits" ~> state[t] # "waits"
Cleared == \A t \in Ticket : state[t] = "over" /\ t \in queue /\ reach[Of[t]] # "dead" ~> t \notin queue
==============================================================================
