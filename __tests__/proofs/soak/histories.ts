import type { Access } from '../../../support/judge/exclusion';
import type { WorkerRecord } from '../../../support/judge/records';

/**
 * The records of a lease: `a permit x2 min300 #7 @5 10:500 40:470 unlock 50:460 done 60` is the call `a` for two permits,
 * with a `minHold` of 300, the token 7, called at 5, granted at 10, when 500 ms were left, and seen at 40, when there were
 * 470; it is unlocked from 50 on, and that is answered at 60. `lost 100 closed`: it ends otherwise. `replace500`: the call
 * replaces, with a grace of 500; `by p`: the loss names the process `p`, whose calls are `p-1` and so on.
 */
function lease(text: string): WorkerRecord[] {
  const [call = '', ...words] = text.split(' ');
  const find = (pattern: RegExp) => words.map((word) => pattern.exec(word)?.[1]).find((found) => found !== undefined);
  const numberOf = (pattern: RegExp) => {
    const found = find(pattern);
    return found === undefined ? undefined : Number(found);
  };
  const after = (word: string, by = 1) => words[words.indexOf(word) + by] ?? '';
  const sampleOf = (word: string) => {
    const [at = 0, remaining = 0] = word.split(':').map(Number);
    return { from: at, to: at, remaining };
  };
  const unlocked = words.includes('unlock') ? after('unlock') : undefined;
  const [granted = '', ...seen] = words.filter((word) => /^\d+:/.test(word) && word !== unlocked);
  const access = (find(/^(exclusive|permit|read|write)$/) ?? 'exclusive') as Access;
  const [permits = 1, minHold, grace] = [/^x(\d+)$/, /^min(\d+)$/, /^replace(\d+)$/].map(numberOf);
  const settings = { access, permits, minHold, grace };
  const at = numberOf(/^@(\d+)$/) ?? 0;
  const by = words.includes('by') ? after('by') : undefined;
  const records: WorkerRecord[] = [
    { event: 'called', call, key: 'key', ...settings, others: [], what: 'lock', at },
    { event: 'granted', call, token: numberOf(/^#(\d+)$/), sample: sampleOf(granted) },
    ...seen.map((word) => ({ event: 'seen', call, sample: sampleOf(word) }) as const),
    ...(unlocked === undefined ? [] : [{ event: 'unlocking', call, sample: sampleOf(unlocked) } as const]),
    ...(words.includes('lost')
      ? [{ event: 'lost', call, reason: after('lost', 2), by, at: Number(after('lost')) } as const]
      : []),
    ...(words.includes('done')
      ? [{ event: 'settled', call, outcome: 'unlocked', at: Number(after('done')) } as const]
      : []),
  ];
  const timeOf = (record: WorkerRecord) => ('sample' in record ? record.sample.to : record.at);
  return records.sort((a, b) => timeOf(a) - timeOf(b));
}

/** Each lease in a process of its own. */
export const processesOf = (leases: readonly string[]): WorkerRecord[][] => leases.map(lease);

type History = readonly [name: string, verdicts: readonly string[], leases: readonly string[]];

/** What the judge of the soak says of the leases of one key, of a semaphore with three permits where they are permits. */
export const HISTORIES: readonly History[] = [
  ['leases that follow one another', [], ['a #1 10:500 40:470 unlock 50:460 done 51', 'b #2 @5 51:500 unlock 60:491']],
  ['two leases at a time', ['too many holders: a b'], ['a 10:500 unlock 50:460 done 60', 'b @5 40:500']],
  [
    'two leases at a time, neither read while the other was',
    ['too many holders: a b'],
    ['a 10:500 90:420', 'b 50:500 unlock 60:490'],
  ],
  [
    'a long lease behind shorter ones',
    ['too many holders: long b', 'too many holders: long c'],
    ['long 10:500 90:420 unlock 100:410', 'b 20:500 unlock 30:490', 'c 80:500 unlock 85:495'],
  ],
  ['the time that was promised to a dead process', ['promise broken: dead b'], ['dead 10:500', 'b @5 509:500']],
  ['the time after it', [], ['dead 10:500', 'b @5 511:500']],
  ['an unlock, from its call on', [], ['a 10:500 unlock 20:490', 'b 21:500 unlock 61:9']],
  ['a lease that its process gave up', [], ['a 10:500 lost 20 closed', 'b @5 21:500']],
  ['a lease that its process read as over', [], ['a 10:500 20:0', 'b 21:500']],
  ['a minHold that is not over', ['promise broken: a b'], ['a min300 10:500 unlock 20:490 done 21', 'b @5 297:500']],
  ['a minHold that is over', [], ['a min300 10:500 unlock 20:490 done 21', 'b @5 311:500']],
  ['a lease that was held for longer than its minHold', [], ['a min300 10:500 unlock 400:110', 'b 401:500']],
  ['a minHold of a key that is left to its ttl', [], ['a min300 10:500 lost 20 closed', 'b 30:500']],
  [
    'the minHold of each permit',
    ['promise broken: a b c d'],
    [...['a', 'b', 'c'].map((call) => `${call} permit min300 10:500 unlock 20:1`), 'd permit 30:500'],
  ],
  ['a lease that Redis lost too early', ['lost too early: a'], ['a 10:500 lost 400 stolen']],
  ['a lease that was lost in time', [], ['a 10:500 lost 511 expired']],
  ['a lease that was closed before its time', [], ['a 10:500 lost 400 closed']],
  [
    'a token that falls',
    ['token does not rise: first second'],
    ['second #4 @25 30:500 unlock 40:490 done 41', 'first #5 10:500 unlock 20:490 done 21'],
  ],
  [
    'a token that does not rise',
    ['token does not rise: first second'],
    ['second #5 @25 30:500 unlock 40:490 done 41', 'first #5 10:500 unlock 20:490 done 21'],
  ],
  [
    'a token of a lease that was over before its process learnt of it',
    [],
    ['first #5 10:500 unlock 20:490', 'late #4 30:0'],
  ],
  ['as many permits as there are', [], ['a', 'b', 'c'].map((call) => `${call} permit 10:500 unlock 100:410`)],
  [
    'one permit too many',
    ['too many holders: a b c d'],
    ['a', 'b', 'c', 'd'].map((call, i) => `${call} permit ${10 * i + 10}:500 unlock 100:410`),
  ],
  [
    'a permit that was given back',
    [],
    [...['a', 'b', 'c'].map((call) => `${call} permit 10:500 unlock 100:410`), 'd permit 100:500 unlock 200:400'],
  ],
  ['several permits', [], ['a permit 10:500 unlock 100:410', 'two permit x2 15:500 unlock 100:415']],
  [
    'several permits that are too many together',
    ['too many holders: a two b'],
    ['a permit 10:500 unlock 100:410', 'two permit x2 15:500 unlock 100:415', 'b permit 20:500 unlock 100:420'],
  ],
  [
    'a permit that was promised to a dead process',
    ['promise broken: dead b c d'],
    ['dead permit 10:500', ...['b', 'c', 'd'].map((call, i) => `${call} permit ${10 * i + 20}:500 unlock 100:420`)],
  ],
  ['readers at a time', [], ['a', 'b', 'c', 'd'].map((call, i) => `${call} read ${10 * i + 10}:500 unlock 100:410`)],
  [
    'a writer beside a reader',
    ['too many holders: a b'],
    ['a read 10:500 unlock 100:410', 'b write 20:500 unlock 100:420'],
  ],
  [
    'a reader beside a writer',
    ['too many holders: a b'],
    ['a write 10:500 unlock 100:410', 'b read 20:500 unlock 100:420'],
  ],
  ['writers that follow one another', [], ['a write 10:500 unlock 100:410', 'b write 100:500 unlock 200:400']],
  [
    'a lease that was replaced, and one that began when its task had ended',
    [],
    ['a #1 @5 10:30000 lost 50 stolen 70:0 unlock 90:0', 'b #2 replace5000 @40 91:500 unlock 95:496'],
  ],
  [
    'a call that replaces, and begins before the task has ended',
    ['promise broken: a b'],
    ['a #1 @5 10:30000 lost 50 stolen 70:0 unlock 90:0', 'b #2 replace5000 @40 60:500 unlock 95:496'],
  ],
  [
    'a call that replaces, and begins beside a holder that was told nothing',
    ['too many holders: a b'],
    ['a #1 @5 10:30000 90:29920 unlock 99:29911 done 100', 'b #2 replace5000 @40 60:500 unlock 95:496'],
  ],
  [
    'a call that replaces, and begins after its grace',
    [],
    ['a #1 @5 10:30000 300:29710 lost 560 stolen 700:0 unlock 900:0', 'b #2 replace500 @40 541:500 unlock 545:496'],
  ],
  [
    'a call that replaces, and begins after its grace beside a holder that was told nothing',
    ['too many holders: a b'],
    ['a #1 @5 10:30000 700:29310 unlock 900:29110 done 901', 'b #2 replace500 @40 541:500 unlock 545:496'],
  ],
  [
    'a call that replaces, and begins after its grace beside a holder that is out of reach until its lease is over',
    [],
    ['a #1 @5 10:500 380:130 unlock 390:120 done 511', 'b #2 replace300 @40 341:500 unlock 345:496 done 346'],
  ],
  [
    'a call that replaces, and begins after its grace beside a holder that Redis answers',
    ['too many holders: a b'],
    ['a #1 @5 10:500 380:130 unlock 390:120 done 391', 'b #2 replace300 @40 341:500 unlock 345:496 done 346'],
  ],
  [
    'a chain of calls that replace, of which the last one begins when the grace of the one before is over',
    [],
    [
      'a #1 @5 10:30000 lost 50 stolen 700:0 unlock 900:0',
      'z #2 replace5000 @40 45:0 lost 65 stolen',
      'b #3 replace500 @60 70:0 lost 90 stolen',
      'c #4 replace5000 @80 561:500 unlock 570:491 done 571',
    ],
  ],
  [
    'a chain of calls that replace, of which the last one begins before any grace is over',
    ['promise broken: a c'],
    [
      'a #1 @5 10:30000 lost 50 stolen 700:0 unlock 900:0',
      'z #2 replace5000 @40 45:0 lost 65 stolen',
      'b #3 replace500 @60 70:0 lost 90 stolen',
      'c #4 replace5000 @80 540:500 unlock 550:491 done 551',
    ],
  ],
  [
    'a chain of calls that replace, of which the last one waits for the task of the first',
    ['promise broken: a c'],
    [
      'a #1 @5 10:30000 lost 50 stolen unlock 90:0',
      'b #2 replace5000 @40 60:0 lost 60 stolen',
      'c #3 replace5000 @55 70:500',
    ],
  ],
  [
    'a call that replaces, and stands still until others had the lock',
    [],
    [
      'a #1 replace500 @5 900:29000 unlock 905:28995',
      'b #2 replace500 @40 541:500 unlock 545:496 done 546',
      'c #3 @50 550:500 unlock 560:1',
    ],
  ],
  [
    'a theft that nobody made',
    ['lost too early: a-1'],
    ['a-1 #1 @5 10:30000 lost 50 stolen by c', 'b-1 #2 replace5000 @40 60:500 unlock 95:496'],
  ],
  [
    'a theft long after a call that replaced',
    ['lost too early: a'],
    ['b #1 replace5000 @1 2:500 unlock 3:499', 'a #2 @5 10:30000 lost 9000 stolen'],
  ],
];

/** Porcupine's model has no lease that is valid after it was read as over. */
export const UNCONFIRMED: History = [
  'the time in which a lease was not confirmed',
  [],
  ['a 10:100 50:0 200:500 unlock 210:490', 'b 100:90 unlock 110:80'],
];
