/** A module of docs/spec with bounds, small enough for TLC to look at every state. */
export interface Model {
  readonly module: 'Lease' | 'Replace' | 'Hold' | 'Fair';
  /** What its bounds are, for people. */
  readonly bounds: string;
  readonly constants: Readonly<Record<string, string>>;
  /** Definitions that the constants refer to. */
  readonly definitions?: string;
  readonly invariants: readonly string[];
  readonly properties?: readonly string[];
  readonly constraint?: string;
  readonly symmetry?: string;
}

const PROCESSES = { p: 'p', q: 'q', Process: '{p, q}' };

function lease(bounds: string, constants: Model['constants']): Model {
  return {
    module: 'Lease',
    bounds,
    constants: { ...PROCESSES, Margin: '2', Owners: '2', InFlight: '2', Travels: 'FALSE', ...constants },
    invariants: ['Kept', 'Exclusion'],
    symmetry: 'Permutations(Process)',
  };
}

/** Clocks have one rate: those of `lease` differ. */
function replace(bounds: string, constants: Model['constants']): Model {
  return {
    ...lease(bounds, { Ttl: '2', Margin: '1', Owners: '1', InFlight: '1', ...constants }),
    module: 'Replace',
    definitions: 'Few == Cardinality(mail) <= 1',
    invariants: ['KeptUnlessTold', 'OneSection'],
    properties: ['TokensRise'],
    constraint: 'Few',
  };
}

/** Two callers in one process, and one in another. */
const CALLERS = { ...PROCESSES, a: 'a', b: 'b', c: 'c', Caller: '{a, b, c}', Home: 'Homes' };

const FENCING = { Fencing: 'TRUE', Block: '2', Fresh: '0', Ttl: '1' };

function hold(bounds: string, constants: Model['constants']): Model {
  return {
    module: 'Hold',
    bounds,
    constants: {
      ...CALLERS,
      Ttl: '2',
      Fresh: '1',
      Fencing: 'FALSE',
      Block: '1',
      MayFail: 'TRUE',
      Holds: '2',
      ...constants,
    },
    definitions:
      'Homes == (a :> p) @@ (b :> p) @@ (c :> q)\nEarly == time < 3 /\\ fence < 4\nFew == time < 3 /\\ fence < 5\nLater == time < 4 /\\ fence < 5',
    invariants: ['Kept', 'Exclusion', 'OwnLease'],
    properties: ['InOrder', 'TokensRise', 'FoundSoon'],
    ...(constants.Fencing === 'TRUE' ? { constraint: 'Early' } : {}),
    symmetry: 'Permutations({a, b})',
  };
}

function fair(bounds: string, faults: readonly string[], constants: Model['constants']): Model {
  return {
    module: 'Fair',
    bounds,
    constants: {
      ...PROCESSES,
      Of: 'Owners',
      Ttl: '3',
      Window: '2',
      Fresh: '1',
      Stamps: '4',
      Faults: `{${faults.map((fault) => `"${fault}"`).join(', ')}}`,
      ...constants,
    },
    definitions: 'Owners == <<p, q, p, q>>',
    invariants: ['Kept', 'Exclusion', 'Windows'],
    properties: ['Entered', 'InOrder', ...(faults.includes('mute') || faults.includes('deaf') ? [] : ['NotPast'])],
  };
}

/** With fairness: TLC also looks for what never happens. Symmetry would hide that. */
function alive({ symmetry: _, ...model }: Model, ...properties: string[]): Model {
  return { ...model, properties: [...(model.properties ?? []), ...properties] };
}

/** All are checked by `npm run spec`; `small` ones also by `npm run spec -- --small`, `large` ones only with `--large`. */
export const MODELS: Readonly<Record<string, Model & { readonly size: 'small' | 'medium' | 'large' }>> = {
  'a lease of 3 ticks': { ...lease('2 processes, 1 message', { Ttl: '3', InFlight: '1' }), size: 'small' },
  'a lease that travels': {
    ...lease('2 processes, 1 message', { Ttl: '3', InFlight: '1', Travels: 'TRUE' }),
    size: 'small',
  },
  'a lease that travels, and late messages': {
    ...lease('2 processes, 2 messages', { Ttl: '3', Travels: 'TRUE' }),
    size: 'large',
  },
  'the last one wins': { ...replace('2 processes, 1 message', {}), size: 'small' },
  'the last of three wins': {
    ...replace('3 processes, 1 message', { Process: '{p, q, r}', r: 'r' }),
    size: 'large',
  },
  'a lease of 4 ticks': { ...lease('2 processes, 2 messages', { Ttl: '4' }), size: 'medium' },
  'a lease of 5 ticks': { ...lease('2 processes, 2 messages', { Ttl: '5' }), size: 'large' },
  'holds, nothing fails': {
    ...alive(hold('2 + 1 callers', { MayFail: 'FALSE', Holds: '1', Fresh: '0', Ttl: '1' }), 'Served'),
    size: 'small',
  },
  'holds, all may fail': { ...hold('2 + 1 callers', { Fresh: '0', Ttl: '1' }), size: 'medium' },
  'holds of 2 ticks, nothing fails': {
    ...alive(hold('2 + 1 callers', { MayFail: 'FALSE', Holds: '1' }), 'Served'),
    size: 'large',
  },
  'holds of 2 ticks, all may fail': { ...hold('2 + 1 callers', {}), size: 'large' },
  'tokens, nothing fails': {
    ...hold('2 + 1 callers, 2 ticks, 5 tokens in blocks of 2', { ...FENCING, MayFail: 'FALSE', Holds: '1' }),
    constraint: 'Few',
    size: 'small',
  },
  'holds with fencing': { ...hold('2 + 1 callers, 2 ticks, 4 tokens in blocks of 2', FENCING), size: 'medium' },
  'holds with more tokens': {
    ...hold('2 + 1 callers, 3 ticks, 5 tokens in blocks of 2', FENCING),
    constraint: 'Later',
    size: 'large',
  },
  'queue, callers leave': {
    ...alive(fair('2 calls', ['abort'], { Calls: '2', InFlight: '2' }), 'Served', 'Cleared'),
    size: 'small',
  },
  'queue, a holder dies, messages are lost': {
    ...alive(fair('2 calls', ['death', 'mute'], { Calls: '2', InFlight: '2' }), 'Served'),
    size: 'small',
  },
  'queue, callers leave, 3 calls': { ...fair('3 calls', ['abort'], { Calls: '3', InFlight: '2' }), size: 'medium' },
  'queue, nothing is slow': { ...fair('3 calls', ['abort', 'deaf'], { Calls: '3', InFlight: '2' }), size: 'medium' },
  'queue, slow and lossy, 2 calls': {
    ...fair('2 calls', ['slow', 'loss', 'mute', 'abort'], { Calls: '2', InFlight: '2' }),
    size: 'medium',
  },
  'queue, slow and lossy, 3 calls': {
    ...fair('3 calls', ['slow', 'loss', 'mute'], { Calls: '3', InFlight: '2' }),
    size: 'large',
  },
  'queue, slow, callers leave, 3 calls': {
    ...fair('3 calls', ['slow', 'abort', 'mute'], { Calls: '3', InFlight: '2' }),
    size: 'large',
  },
  'queue, deaf and dead processes, 3 calls': {
    ...fair('3 calls', ['deaf', 'death', 'mute'], { Calls: '3', InFlight: '2' }),
    size: 'large',
  },
};
