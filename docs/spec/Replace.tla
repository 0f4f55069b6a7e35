------------------------------- MODULE Replace -------------------------------
(* A call takes the lock from its holder (P14). It names the owner that it takes it from, and takes nothing unless a
message reaches that owner's process in the same step. Its own section begins when it has heard that the one before has
ended, or after its grace. Messages are hints: they may be late, repeated or lost. Lease.tla has the rest. *)
EXTENDS Lease, Sequences

VARIABLES
  task,  \* of each process: the owner value of the section that runs in it
  after, \* pairs of owner values: the first one takes, or may have taken, the lock from the second
  mail,  \* messages: a word, the owner value that it is about, and the one that took its lock
  told,  \* owner values that a message has told that their lock is taken
  began,   \* the owner value of the section that began last
  granted  \* owner values in the order of their grants: so their fencing tokens rise
more == <<task, after, mail, told, began, granted>>
InitReplace == /\ Init /\ task = [p \in Process |-> Nobody] /\ after = {} /\ mail = {} /\ told = {}
               /\ began = Nobody /\ granted = <<>>

Before(owner) == {pair \in after : pair[1] = owner}
Unused(p) == {owner \in New(p) :
  /\ owner \notin told \cup {began, task[p]} /\ \A pair \in after : owner \notin {pair[1], pair[2]}
  /\ \A m \in mail : owner \notin {m[2], m[3]}}
CallReplace(p) == LET owner == CHOOSE o \in Unused(p) : TRUE IN
  /\ hold[p] = None /\ Unused(p) # {}
  /\ hold' = [hold EXCEPT ![p].owner = owner] /\ Send("acquire", owner) /\ UNCHANGED <<key, rested, texts>>

\* It may have had a grant without knowing: so from now on it waits for that owner's end, whatever grants it the lock.
Replace(q) ==
  /\ hold[q] # None /\ ~Relies(q) /\ task[q] # hold[q].owner /\ key # Free /\ key.owner[1] # q
  /\ SendFrom("adopt", hold[q].owner, key.owner) /\ after' = after \cup {<<hold[q].owner, key.owner>>}
  /\ UNCHANGED <<key, hold, rested, texts, task, mail, began>>

\* In one step with the message. Whether a process hears may change at any time. Who does not hear keeps its lock.
RunReplace(m) == \E hears \in BOOLEAN :
  /\ m.do = "adopt" /\ UNCHANGED <<task, after, began>>
  /\ IF key.owner = m.from /\ hears THEN Run(m) /\ mail' = mail \cup {<<"taken", m.from, m.owner>>}
     ELSE IF key.owner = m.owner THEN Run(m) /\ UNCHANGED mail
     ELSE Lose(m) /\ UNCHANGED mail

Begin(q) ==
  /\ Relies(q) /\ task[q] = Nobody /\ Before(hold[q].owner) = {}
  /\ task' = [task EXCEPT ![q] = hold[q].owner] /\ began' = hold[q].owner
  /\ UNCHANGED <<vars, after, mail>>

\* Sections that have not ended by then are left out from here on, and so are leases that may still begin one.
GraceIsOver(q) ==
  /\ Relies(q) /\ Before(hold[q].owner) # {} /\ after' = after \ Before(hold[q].owner)
  /\ task' = [p \in Process |-> IF task[p] = hold[p].owner /\ hold[p].owner \notin told THEN task[p] ELSE Nobody]
  /\ hold' = [p \in Process |-> IF hold[p].owner \in told THEN None ELSE hold[p]]
  /\ UNCHANGED <<key, net, rested, texts, mail, began>>

\* At any time: by itself, or because its signal has aborted.
Stop(p) == /\ task[p] # Nobody /\ task' = [task EXCEPT ![p] = Nobody] /\ UNCHANGED <<after, mail, began>>
           /\ IF task[p] = hold[p].owner THEN End(p) ELSE UNCHANGED vars
\* Before its section has begun, but not before those have ended that the lock was taken from.
GiveUp(p) == /\ task[p] # hold[p].owner /\ Before(hold[p].owner) = {} /\ End(p)
             /\ UNCHANGED <<task, after, mail, began>>

\* "taken" is answered when the process has no such lease (Redis says so: Renew), and nothing of it runs, nor of what it
\* was taken from. It is sent again until then.
Remind(pair) == mail' = mail \cup {<<"taken", pair[2], pair[1]>>} /\ UNCHANGED <<vars, task, after, began>>
Ended(m) == LET p == m[2][1] IN
  /\ m[1] = "taken" /\ hold[p].owner # m[2] /\ task[p] # m[2] /\ Before(m[2]) = {}
  /\ mail' = (mail \ {m}) \cup {<<"ended", m[2], m[3]>>} /\ UNCHANGED <<vars, task, after, began>>
Hear(m) == /\ m[1] = "ended" /\ after' = after \ {<<m[3], m[2]>>} /\ mail' = mail \ {m}
           /\ UNCHANGED <<vars, task, began>>
LoseMail(m) == mail' = mail \ {m} /\ UNCHANGED <<vars, task, after, began>>

\* Sections that end by their own clock are no longer counted, nor those that have not ended within the ttl of a process
\* that took the lock and died.
Counts(p) == task[p] # Nobody /\ (task[p] = hold[p].owner => Relies(p))
ReadReplace(m, p) == /\ Read(m, p) /\ UNCHANGED <<after, mail, began>>
                     /\ task' = IF hold'[p] = None /\ ~Counts(p) THEN [task EXCEPT ![p] = Nobody] ELSE task
TickReplace == /\ Tick /\ UNCHANGED <<rested, after, mail, began>>
               /\ task' = [p \in Process |-> IF key' = Free /\ task[p] # hold[p].owner THEN Nobody ELSE task[p]]

NextReplace ==
  /\ \/ \E p \in Process : \/ /\ CallReplace(p) \/ (AskAgain(p) /\ task[p] # hold[p].owner) \/ Renew(p)
                              /\ UNCHANGED <<task, after, mail, began>>
                           \/ GiveUp(p) \/ Replace(p) \/ Begin(p) \/ GraceIsOver(p) \/ Stop(p)
     \/ \E m \in net : \/ RunReplace(m) \/ ReadReplace(m, m.owner[1])
                       \/ ((m.do # "adopt" /\ Run(m)) \/ Lose(m)) /\ UNCHANGED <<task, after, mail, began>>
     \/ \E m \in mail : Ended(m) \/ Hear(m) \/ LoseMail(m)
     \/ \E pair \in after : Remind(pair)
     \/ TickReplace
  /\ LET InUse(o) == o \in {key'.owner, began'} \/ \E p \in Process : o \in {hold'[p].owner, task'[p]}
         Others(o) == o # key'.owner
         isGrant == key'.owner \notin {Nobody, key.owner}
     IN /\ told' = {o \in told \cup {m[2] : m \in {m \in mail' : m[1] = "taken"}} : InUse(o)}
        /\ granted' = SelectSeq(IF isGrant THEN Append(SelectSeq(granted, Others), key'.owner) ELSE granted, InUse)
SpecReplace == InitReplace /\ [][NextReplace]_<<vars, more>>

\* What is relied on is in Redis, or its process is told.
KeptUnlessTold == \A p \in Process : Relies(p) => hold[p].owner \in {key.owner} \cup told
\* Two sections only after a grace, or an own pause.
OneSection == \A p, q \in Process : Counts(p) /\ Counts(q) => p = q
TokensRise == [][\A i, j \in 1..Len(granted) : granted[i] = began /\ granted[j] = began' => i < j]_began
==============================================================================
