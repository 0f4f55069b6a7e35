import type { Model } from './models';

/** A text of the module, and what stands in its place in the wrong variant. */
export type Replacement = readonly [from: string, to: string];

/** A specification with a rule broken. TLC has to refute it. */
export interface Variant {
  readonly name: string;
  /** What goes wrong. */
  readonly wrong: string;
  readonly model: string;
  /** It takes 20 s or more, though the model is small: so it isn't checked with every change. */
  readonly isSlow?: boolean;
  readonly constants?: Model['constants'];
  readonly replacements: readonly Replacement[];
  /** What TLC finds violated. */
  readonly refutes: string;
}

const LEASE: readonly Variant[] = [
  {
    name: 'no margin',
    wrong: 'a lease is relied on for the whole ttl',
    model: 'a lease of 3 ticks',
    constants: { Margin: '0' },
    replacements: [],
    refutes: 'Kept',
  },
  {
    name: 'no margin for clocks',
    wrong: 'the margin covers that Redis counts in whole ms, but not that clocks differ in rate',
    model: 'a lease of 3 ticks',
    constants: { Margin: '1' },
    replacements: [],
    refutes: 'Kept',
  },
  {
    name: 'counted from the answer',
    wrong: 'a lease is counted from when Redis answered',
    model: 'a lease of 3 ticks',
    replacements: [['.left = Max(@, Reliable(m.age))', '.left = Max(@, Reliable(0))']],
    refutes: 'Kept',
  },
  {
    name: 'suspension not noticed',
    wrong: 'the monotonic clock stood still with the machine, and is believed',
    model: 'a lease of 3 ticks',
    replacements: [
      ['IF m.owner[1] \\in suspended THEN TooOld', 'IF m.owner[1] \\in suspended THEN @'],
      ['.left = IF p \\in suspended THEN 0', '.left = IF p \\in suspended THEN @'],
    ],
    refutes: 'Kept',
  },
  {
    name: 'release of any owner',
    wrong: 'a release deletes the key of any owner',
    model: 'a lease of 3 ticks',
    replacements: [['isGiven == key.owner = m.owner \\/', 'isGiven == key.owner = m.owner \\/ m.do = "release" \\/']],
    refutes: 'Kept',
  },
  {
    name: 'renewal of any owner',
    wrong: 'a renewal extends the key of any owner, and says "yours"',
    model: 'a lease of 4 ticks',
    replacements: [
      ['isGiven == key.owner = m.owner \\/', 'isGiven == key.owner = m.owner \\/ (m.do = "renew" /\\ key # Free) \\/'],
      [
        '[owner |-> IF m.do = "detach" THEN m.from ELSE m.owner,',
        '[owner |-> IF m.do = "renew" THEN key.owner ELSE m.owner,',
      ],
    ],
    refutes: 'Kept',
  },
  {
    name: 'a second grant under the same owner',
    wrong: 'an owner value is used again: what is late for the first grant finds the second one',
    model: 'a lease of 3 ticks',
    constants: { InFlight: '2' },
    replacements: [
      [
        'key.owner # owner /\\ (\\A q \\in Process : hold[q].owner # owner) /\\ (\\A m \\in net : m.owner # owner)\n',
        'TRUE\n',
      ],
      ['{owner \\in {p} \\X (1..Owners) :', '{owner \\in {p} \\X {1} :'],
    ],
    refutes: 'Kept',
  },
  {
    name: 'entry before the adoption is answered',
    wrong: 'a process relies on a lease as soon as it has the text',
    model: 'a lease that travels',
    replacements: [
      [
        "hold' = [hold EXCEPT ![p].owner = owner]\n",
        "hold' = [hold EXCEPT ![p] = [owner |-> owner, left |-> Reliable(0)]]\n",
      ],
    ],
    refutes: 'Kept',
  },
  {
    name: 'an adoption that does not compare',
    wrong: 'an adoption takes the key of any owner',
    model: 'a lease that travels',
    replacements: [['/\\ key.owner = m.from\n', '/\\ (key.owner = m.from \\/ (m.do = "adopt" /\\ key # Free))\n']],
    refutes: 'Kept',
  },
  {
    name: 'a lease that is detached and held',
    wrong: 'the process that detaches a lease relies on it until that is answered',
    model: 'a lease that travels',
    replacements: [["Relies(p) /\\ hold' = [hold EXCEPT ![p] = None]", 'Relies(p) /\\ UNCHANGED hold']],
    refutes: 'Kept',
  },
];

const REPLACE: readonly Variant[] = [
  {
    name: 'taken from who is not told',
    wrong: 'a call takes the lock although no message reaches the process that holds it',
    model: 'the last one wins',
    replacements: [['ELSE IF key.owner = m.owner THEN Run(m)', 'ELSE IF key.owner \\in {m.owner, m.from} THEN Run(m)']],
    refutes: 'KeptUnlessTold',
  },
  {
    name: 'taken, and entered at once',
    wrong: 'a section begins as soon as the lock is taken from the one before',
    model: 'the last one wins',
    replacements: [['task[q] = Nobody /\\ Before(hold[q].owner) = {}\n', 'task[q] = Nobody\n']],
    refutes: 'OneSection',
  },
  {
    name: 'an end that Redis is not asked about',
    wrong: 'a process says that a lease has ended of which it has had no grant yet',
    model: 'the last one wins',
    isSlow: true,
    replacements: [
      [' /\\ hold[p].owner # m[2] /\\ task[p] # m[2]', ' /\\ (hold[p].owner # m[2] \\/ ~Relies(p)) /\\ task[p] # m[2]'],
    ],
    refutes: 'OneSection',
  },
  {
    name: 'an end when the signal aborts',
    wrong: 'a process says that a section has ended when it has only been told to',
    model: 'the last one wins',
    isSlow: true,
    replacements: [[' /\\ task[p] # m[2] /\\ Before(m[2]) = {}\n', ' /\\ Before(m[2]) = {}\n']],
    refutes: 'OneSection',
  },
  {
    name: 'given up in its grace',
    wrong: 'a call that gives up releases the lock before the section has ended that it took it from',
    model: 'the last one wins',
    isSlow: true,
    constants: { Owners: '2' },
    replacements: [
      ['task[p] # hold[p].owner /\\ Before(hold[p].owner) = {} /\\ End(p)', 'task[p] # hold[p].owner /\\ End(p)'],
    ],
    refutes: 'OneSection',
  },
  {
    name: 'a grant without the end of the one before',
    wrong: 'a call whose answer was lost acquires again, finds itself, and does not wait',
    model: 'the last one wins',
    replacements: [
      [
        'SendFrom("adopt", hold[q].owner, key.owner) /\\ after\' = after \\cup {<<hold[q].owner, key.owner>>}\n',
        'SendFrom("adopt", hold[q].owner, key.owner) /\\ UNCHANGED after\n',
      ],
      [
        'ReadReplace(m, p) == /\\ Read(m, p) /\\ UNCHANGED <<after, mail, began>>',
        'ReadReplace(m, p) == /\\ Read(m, p) /\\ UNCHANGED <<mail, began>> /\\ after\' = IF m.do = "adopt" /\\ m.says = "yours" THEN after \\cup {<<m.owner, m.from>>} ELSE after',
      ],
    ],
    refutes: 'OneSection',
  },
];

const HOLD: readonly Variant[] = [
  {
    name: 'passed on without confirmation',
    wrong: 'a hold is passed on however long ago Redis confirmed it',
    model: 'holds, all may fail',
    constants: { Ttl: '2' },
    replacements: [[' /\\ of.since <= Fresh\n', '\n']],
    refutes: 'FoundSoon',
  },
  {
    name: 'passed on though others wait',
    wrong: 'a slice has no end',
    model: 'holds, nothing fails',
    isSlow: true,
    replacements: [[' /\\ ~of.isSliceOver /\\', ' /\\']],
    refutes: 'Temporal properties',
  },
  {
    name: 'nobody stands back',
    wrong: 'a process takes a lock at once that it released at the end of its slice',
    model: 'holds, nothing fails',
    isSlow: true,
    replacements: [[' /\\ ~(back = p /\\ OthersWait(p))', '']],
    refutes: 'Temporal properties',
  },
  {
    name: 'a lease outlasts its hold',
    wrong: 'a lease with a ttl of its own is passed on that ends after its hold',
    model: 'holds, all may fail',
    constants: { Ttl: '2' },
    replacements: [
      ['of.left >= IF own = Endless THEN 1 ELSE own', 'TRUE'],
      [
        'Until(p) == Min(hold[p].left, hold[p].own)',
        'Until(p) == IF hold[p].own = Endless THEN hold[p].left ELSE hold[p].own',
      ],
      ['Own == {1, Endless}', 'Own == {2, Endless}'],
    ],
    refutes: 'Kept',
  },
  {
    name: 'a hold is used after its release',
    wrong: 'the end of a slice releases the hold, and the next caller has a lease of it',
    model: 'holds, all may fail',
    replacements: [['IF m.says = "not yours" \\/ (', 'IF (m.says = "not yours" /\\ m.do # "offer") \\/ (']],
    refutes: 'Kept',
  },
  {
    name: 'a confirmation of any hold',
    wrong: 'the script that confirms does not compare owner values',
    model: 'holds, all may fail',
    constants: { Ttl: '2' },
    replacements: [['isMine == key.id = hold[m.of].id', 'isMine == key # Free']],
    refutes: 'Kept',
  },
  {
    name: "a script in another's lease",
    wrong: 'a hold is passed on while a script of the application runs under it',
    model: 'holds, all may fail',
    replacements: [[' /\\ of.script = Nobody /\\ of.since', ' /\\ of.since']],
    refutes: 'OwnLease',
  },
  {
    name: 'the last comes first',
    wrong: 'the caller that called last gets the hold',
    model: 'holds, nothing fails',
    replacements: [
      ['!.by = Head(line[p])', '!.by = line[p][Len(line[p])]'],
      [
        "[line EXCEPT ![p] = Tail(@)] /\\ highest' = token",
        "[line EXCEPT ![p] = SubSeq(@, 1, Len(@) - 1)] /\\ highest' = token",
      ],
    ],
    refutes: 'InOrder',
  },
  {
    name: 'a token for two leases',
    wrong: 'a hold is passed on with a token of its block that a lease had before',
    model: 'tokens, nothing fails',
    replacements: [
      [
        'HasTokens(of, of.token + 1, of.more - 1), own, of.token + 1)',
        'HasTokens(of, of.token, of.more - 1), own, of.token)',
      ],
    ],
    refutes: 'TokensRise',
  },
  {
    name: 'more tokens than a block has',
    wrong: 'a hold is passed on with tokens after its block',
    model: 'tokens, nothing fails',
    replacements: [['(Fencing => of.more > 0) /\\ ', '']],
    refutes: 'TokensRise',
  },
  {
    name: 'a block that is not counted',
    wrong: 'the counter is the first token of a block, so that the next holder gets the others too',
    model: 'tokens, nothing fails',
    replacements: [['THEN token + Block - 1 ELSE', 'THEN token ELSE']],
    refutes: 'TokensRise',
  },
  {
    name: 'the rest of a block after its hold',
    wrong: 'what is left of a block when its hold ends is used by the next hold of the process',
    model: 'tokens, nothing fails',
    replacements: [
      [
        "hold' = [hold EXCEPT ![p] = None] /\\ net' = {m",
        "hold' = [hold EXCEPT ![p] = HasTokens(None, @.token, @.more)] /\\ net' = {m",
      ],
      ['hold[p] = None /\\ ~(back', 'hold[p].id = Nobody /\\ ~(back'],
      ['Enter(p, [None EXCEPT !.id = id', 'Enter(p, [hold[p] EXCEPT !.id = id'],
      ['IF hold[p] = None THEN None ELSE\n', 'IF hold[p].id = Nobody THEN hold[p] ELSE\n'],
      ['Expire(p) == hold[p] # None', 'Expire(p) == hold[p].id # Nobody'],
      ['SliceEnds(p) == hold[p] # None', 'SliceEnds(p) == hold[p].id # Nobody'],
    ],
    refutes: 'TokensRise',
  },
  {
    name: 'tokens from a counter alone',
    wrong: 'a counter that was lost begins anew',
    model: 'holds with fencing',
    replacements: [['THEN Max(fence + 1, time) ELSE 0', 'THEN fence + 1 ELSE 0']],
    refutes: 'TokensRise',
  },
];

const FAIR: readonly Variant[] = [
  {
    name: 'entry without proof',
    wrong: 'a grant by hand-over is counted from the arrival of its message',
    model: 'queue, slow and lossy, 2 calls',
    replacements: [['\\E age \\in Min(m.age, Window)..Window', '\\E age \\in {0}']],
    refutes: 'Kept',
  },
  {
    name: 'entry after the window',
    wrong: 'a caller enters with a grant however little of its window is left',
    model: 'queue, slow and lossy, 2 calls',
    replacements: [
      [
        'IF 2 * (Window - age) >= Window THEN Enter(m.ticket, m.grant, Window - age, FALSE)',
        'IF TRUE THEN Enter(m.ticket, m.grant, Max(1, Window - age), FALSE)',
      ],
    ],
    refutes: 'Kept',
  },
  {
    name: 'grants for the full ttl',
    wrong: 'a grant that nobody has asked for lasts as long as any other',
    model: 'queue, callers leave',
    replacements: [['life |-> IF next = asking THEN Ttl ELSE Window', 'life |-> Ttl']],
    refutes: 'Windows',
  },
  {
    name: 'polls create tickets',
    wrong: 'a poll enters a ticket that is missing',
    model: 'queue, callers leave',
    replacements: [
      [
        'ELSE UNCHANGED redis /\\ Replace(m, IF lock.grant[1] # m.ticket',
        "ELSE UNCHANGED lock /\\ queue' = queue \\cup {m.ticket} /\\ Replace(m, IF lock.grant[1] # m.ticket",
      ],
    ],
    refutes: 'Entered',
  },
  {
    name: 'no polls',
    wrong: 'a waiter relies on messages alone',
    model: 'queue, a holder dies, messages are lost',
    replacements: [['ELSE t \\in queue \\cup {lock.grant[1]}', 'ELSE FALSE']],
    refutes: 'Temporal properties',
  },
  {
    name: 'the next caller before the queue',
    wrong: 'the next caller of a process gets the lock before one of another process that called earlier',
    model: 'queue, nothing is slow',
    replacements: [['    next == First(ready)\n', '    next == IF asking \\in ready THEN asking ELSE First(ready)\n']],
    refutes: 'InOrder',
  },
  {
    name: 'an attempt past the queue',
    wrong: 'anybody who finds the lock free takes it',
    model: 'queue, nothing is slow',
    replacements: [
      [
        'IF lock = Free THEN HandOver(m, queue \\cup {m.ticket}, m.ticket)',
        "IF lock = Free THEN lock' = [grant |-> <<m.ticket, 0>>, life |-> Ttl, isTracked |-> TRUE] /\\ queue' = queue \\ {m.ticket} /\\ Replace(m, {})",
      ],
    ],
    refutes: 'InOrder',
  },
  {
    name: 'passed on though somebody is wanted',
    wrong: 'a process has heard that another one waits, and passes the lock on',
    model: 'queue, callers leave, 3 calls',
    replacements: [["alone' = [alone EXCEPT ![m.of] = Unknown]", 'UNCHANGED alone']],
    refutes: 'NotPast',
  },
  {
    name: 'waiting for the dead',
    wrong: 'the lock is kept for the first ticket, though nobody listens for it',
    model: 'queue, a holder dies, messages are lost',
    isSlow: true,
    constants: { Calls: '3' },
    replacements: [['IF ready = {} THEN', 'IF ready = {} \\/ First(tickets) \\notin ready THEN']],
    refutes: 'Temporal properties',
  },
  {
    name: 'the end of any grant',
    wrong: 'a release that is executed late ends the grant of another ticket',
    model: 'queue, slow and lossy, 2 calls',
    replacements: [['IsOf(grant) == lock # Free /\\ (', 'IsOf(grant) == lock # Free /\\ (TRUE \\/ ']],
    refutes: 'Kept',
  },
  {
    name: 'nothing is followed up',
    wrong: 'an attempt that is executed after its caller has left leaves its ticket',
    model: 'queue, callers leave',
    replacements: [['/\\ t \\in queue \\/ (lock.grant[1] = t', '/\\ FALSE /\\ (lock.grant[1] = t']],
    refutes: 'Temporal properties',
  },
];

export const VARIANTS: readonly Variant[] = [...LEASE, ...REPLACE, ...HOLD, ...FAIR];
