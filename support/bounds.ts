import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const LIB = join(__dirname, '..', 'lib');

/** A number that `lib` has a name for. */
export interface Constant {
  /** `core/watchdog:LEAST_INTERVAL` */
  readonly id: string;
  readonly value: string;
  /** Its comment, or that of the constant above. */
  readonly about: string;
}

/** The rooms of `lib` that keep the promises: the others show and translate. */
const ROOMS = 'clients/common,core,internal,kinds,multi,redis,registry,segmented,tools/inspection'.split(',');

/** One number, several, or what is computed of numbers and other constants. */
const CONSTANT = /^(?:export )?const ([A-Z][A-Z_\d]*) = (?=[^;]*\d)([-+*/\d\s_.e[\](),xA-F]|[A-Z][A-Z_]+)+;/;

export function constants(): Constant[] {
  const files = ROOMS.flatMap((room) =>
    readdirSync(join(LIB, room), { recursive: true, encoding: 'utf8' }).map((file) => join(room, file)),
  );
  return files
    .filter((file) => file.endsWith('.ts'))
    .sort()
    .flatMap((file) => {
      const text = readFileSync(join(LIB, file), 'utf8');
      const found: Constant[] = [];
      let about = '';
      for (const paragraph of text.split(/\n(?=\/\*\*|export const|const)/)) {
        const [, comment] = /^\/\*\*(.*?)\*\//s.exec(paragraph) ?? [];
        if (comment !== undefined) about = comment.replaceAll(/\s*\n \*\s*/g, ' ').trim();
        const [whole, name] = CONSTANT.exec(paragraph.replace(/^\/\*\*.*?\*\/\n/s, '')) ?? [];
        if (whole === undefined) continue;
        found.push({ id: `${file.replace(/\.ts$/, '')}:${name}`, value: whole.replace(/^.*? = |;$/g, ''), about });
      }
      return found;
    });
}

/** What fails when the number is ten times larger, or smaller: a file of `__tests__`, or the reason why nothing does. */
type Held = string | { readonly larger: string; readonly smaller: string };

const POLLERS = 'unit/shared-with-pollers';
const MEMORY = 'because it bounds memory, and nothing that a caller sees';

export const BOUNDS: Record<string, Held | undefined> = {
  'clients/common/subscriptions:CONFIRMING': 'because it only says for how long a server that is gone is waited for',
  'clients/common/subscriptions:FIRST_RETRY': 'unit/bun',
  'clients/common/subscriptions:LONGEST_RETRY': 'unit/bun',
  'core/deadlocks:MOST_ASKED': 'because a task rarely holds more locks, and of more it only leaves out a hint',
  'core/give-back:AGAIN_AFTER': 'unit/give-back',
  'core/give-back:GRACE': 'unit/bounds',
  'core/give-back:LONGEST_PAUSE': 'unit/bounds',
  'core/hold:FRESH': 'unit/hold',
  'core/inbox:ANSWERS_WITHIN': 'because it only says how soon a process counts as one that hears nothing',
  'core/inbox:LONGEST_WHY': 'core/told/telling',
  'core/inbox:MOST_RUNNING': MEMORY,
  'core/last-used:MOST_LAST_USED': 'unit/locks',
  'core/lease:RELEASE_AT_LEAST': 'unit/one-lease',
  'core/long-holds:LOOK_AGAIN': 'because it only says how soon a warning follows that waited for an answer',
  'core/loop-round:LOOP_ROUND': 'unit/bounds',
  'core/loss:SHORT': 'unit/reasons-of-loss',
  'core/open-waits:TOGETHER': 'unit/long-holds',
  'core/repetitions:MOST_REPETITIONS': 'unit/late-grants',
  'core/replacement:OPENS_WITHIN': 'because it only says for how long a call waits for a connection for messages',
  'core/replacement:REMINDED_EVERY': 'because a reminder matters only where a message was lost',
  'core/replacement:TRIED_EVERY': 'because it only says how soon a caller tries another holder',
  'core/request:GRACE': 'because a test of it would wait for five seconds',
  'core/several:FIRST_PAUSE': 'unit/calls-for-several',
  'core/several:LONGEST_STREAK': 'unit/calls-for-several',
  'core/several:PAUSE_FOR_LISTENERS': 'unit/calls-for-several',
  'core/several:PAUSE_FOR_POLLERS': 'unit/calls-for-several',
  'core/several:POLLED_STREAK': 'unit/calls-for-several',
  'core/several:STREAK': 'unit/calls-for-several',
  'core/silence-warning:LOOK_EVERY': 'because it only says how soon the end of a silence is noticed',
  'core/unconnected:INTERVAL': 'because it only says how soon within CONNECTS_WITHIN an attempt follows a connection',
  'core/unlock-order:MOST_LOST': MEMORY,
  'core/wait:LEAST_TIME_TO_ANSWER': 'unit/calls',
  'core/watchdog:LEAST_INTERVAL': 'unit/watchdog',
  'internal/clock:MAX_DELAY': 'unit/bad-options',
  'internal/clock:MIN_RENEWED_TTL': 'unit/bad-calls',
  'internal/clock:MIN_TTL': 'unit/bad-calls',
  'internal/clock:SUSPENDED': 'unit/bounds',
  'internal/timers:TOGETHER': 'unit/timers',
  'kinds/common/contended:NOTIFY_TIMEOUT': 'because waiters poll where they are not notified, and nobody waits for it',
  'kinds/common/inspector:MARKED_FOR': 'because it only says how late a client may repeat a forced unlock',
  'kinds/common/lease-scripts:CAPACITY': MEMORY,
  'kinds/common/lease-scripts:LEARNING': 'because it only says how soon an error is passed on whose class is not known',
  'kinds/common/lease-scripts:MARK_KEPT': 'because it only says how late a client may repeat a script',
  'kinds/common/look:MOST_READ': 'because owner values are shorter by far, and of others only the form is said',
  'kinds/common/results:MARKED_FOR': 'because it only says for how long a task may run after a forget()',
  'kinds/common/script-parts:FENCE_TTL': 'contract/wire-format',
  'kinds/common/script-parts:MOST_AHEAD': 'kinds/fencing/blocks',
  'kinds/common/script-parts:MOST_SHOWN': 'clients/foreign-owners',
  'kinds/common/shared-with-pollers:CHANGE_IS_RECENT': POLLERS,
  'kinds/common/shared-with-pollers:CHANGE_IS_REMEMBERED': POLLERS,
  'kinds/common/shared-with-pollers:HALVED_EVERY': POLLERS,
  'kinds/common/shared-with-pollers:LONGEST_PAUSE': POLLERS,
  'kinds/common/shared-with-pollers:PAUSE_AGAIN': POLLERS,
  'kinds/common/shared-with-pollers:PAUSE_EVERY': POLLERS,
  'kinds/common/shared-with-pollers:REFUSAL_IS_REMEMBERED': POLLERS,
  'kinds/common/shared-with-pollers:RENEWED_AFTER': POLLERS,
  'kinds/common/shared-with-pollers:SHORTEST_INTERVAL': POLLERS,
  'kinds/common/shared-with-pollers:SHORTEST_PAUSE': POLLERS,
  'kinds/common/shared-with-pollers:TAKEN_BACK_LATE': POLLERS,
  'kinds/common/shared-with-pollers:USUAL_PACE_FOR': POLLERS,
  'kinds/common/shared-with-pollers:USUAL_PACE_OF_POLLING': 'unit/contended',
  'kinds/common/waiting:FAR_HEAD_START': 'unit/waiting',
  'kinds/common/waiting:LONGEST_SLEEP': 'unit/waiting',
  'kinds/common/waiting:NEAR': 'unit/waiting',
  'kinds/common/wanted:MARKED_AFTER': 'unit/wanted',
  'kinds/common/wanted:SLEEPS_OF_MARK': 'unit/wanted',
  'kinds/common/wanted:TIMEOUT': 'unit/wanted',
  'kinds/common/yielding:FASTEST_POLLING': 'unit/yielding',
  'kinds/common/yielding:LEAST_POLLED_SLICE': 'unit/yielding',
  'kinds/common/yielding:LEAST_STEP': 'unit/yielding',
  'kinds/common/yielding:LONGEST_POLLED_SLICE': 'unit/yielding',
  'kinds/common/yielding:LONGEST_STAND_BACK': 'unit/yielding',
  'kinds/common/yielding:LONGEST_STEP': 'unit/yielding',
  'kinds/common/yielding:MEMORY': 'unit/yielding',
  'kinds/common/yielding:PAUSE_FOR_POLLERS': 'unit/yielding',
  'kinds/common/yielding:POLLED_SLICE': 'unit/yielding',
  'kinds/common/yielding:POLLED_SLICE_INTERVALS': 'unit/yielding',
  'kinds/common/yielding:SHORT_SLICE': 'unit/yielding',
  'kinds/common/yielding:SLICE': 'unit/yielding',
  'kinds/common/yielding:STEPS_FOR_SHORT_SLICES': 'unit/yielding',
  'kinds/common/yielding:TIMER_EARLY': 'unit/yielding',
  'kinds/common/yielding:UNCOUNTED_OTHERS': 'unit/yielding',
  'kinds/fair/kind:LEAST_TIMEOUT': 'because half a window is longer for each ttl but the shortest ones',
  'kinds/fair/presence:DEAF_FOR': 'because a process only polls meanwhile, while messages may arrive again',
  'kinds/fair/presence:LEAST_INTERVAL': 'because a poll comes that soon only where a key is about to end',
  'kinds/fair/presence:LEAST_TIMEOUT': 'because it only counts where idleBetweenTries is below 50 ms',
  'kinds/fair/scripts:CLAIM_WINDOW': 'unit/fair-presence',
  'kinds/fair/scripts:MESSAGE_ARRIVES_WITHIN': 'kinds/fair/scripts',
  'kinds/fair/scripts:NOTED_LONGER': 'because it only spares commands inside a script',
  'kinds/fair/scripts:SET_BACK': 'because a clock is set back by less than this or by far more',
  'kinds/redisson-fair/kind:LATE_COMMAND': 'because no command was seen to be as late, and one more removal is cheap',
  'kinds/redisson-fair/kind:REMEMBERED': 'unit/redisson-fair',
  'kinds/redisson-fair/kind:TRIED_FOR': 'unit/redisson-fair',
  'kinds/shared/kind:LEAST_TICKET_TTL': 'unit/shared-protocol',
  'kinds/shared/kind:LET_IN_WITHIN': 'unit/shared-protocol',
  'kinds/shared/kind:POLLS_MISSED': 'unit/shared-protocol',
  'kinds/shared/kind:SURELY_LATER': 'unit/shared-protocol',
  'kinds/shared/scripts:SET_BACK': 'kinds/shared/semaphore',
  'kinds/spring/look:LONGEST_OWNER': {
    larger: 'because it only spares a look at longer values',
    smaller: 'tools/inspection/finding',
  },
  'multi/multi-acquisition:OVERTAKEN_FOR': {
    larger: 'multi/client',
    smaller: 'because a call that takes its keys in order only keeps others from them',
  },
  'multi/multi-lock:MOST_KEYS': 'unit/several-keys',
  'redis/cluster:INTERVAL': 'because it only says how soon a list follows a connection',
  'redis/cluster:MOST_LOOKS': 'unit/finding',
  'redis/cluster:POLYNOMIAL': 'segmented/names',
  'redis/cluster:SLOTS': 'segmented/names',
  'redis/hand-offs:CONNECTIONS': 'because a client makes fewer connections between two hand-offs by far',
  'redis/key-placement:PAUSE': 'unit/key-placement',
  'redis/key-placement:PROBED': 'unit/batches',
  'redis/key-placement:WORTH_A_PROBE': 'unit/batches',
  'redis/line:LONGEST_PAUSE': 'unit/silence',
  'redis/line:MOST': 'unit/silence',
  'redis/line:TICK': 'unit/silence',
  'redis/proof:ARRIVES_WITHIN': 'unit/proof',
  'redis/proof:CONFIRMED_WITHIN': 'unit/proof',
  'redis/proof:PROVED_AFTER': 'unit/proof',
  'redis/proof:PROVED_EVERY': 'unit/proof',
  'redis/proof:UNCOUNTED_ARRIVES_WITHIN': 'unit/proof',
  'redis/redis:LARGEST': 'unit/batches',
  'redis/silence-times:LEARNS_REPLACEMENT': 'unit/late-grants',
  'redis/silence-times:MAYBE_REPLACED_AFTER': 'unit/late-grants',
  'redis/silence-times:SHOWN_AFTER': 'because it only says when the page shows that a server gives no answer',
  'redis/silence-times:SILENT': 'unit/availability',
  'redis/silence-times:UNAVAILABLE_AFTER': 'unit/bounds',
  'redis/silence-times:WARNED_AFTER': 'unit/silence-warning',
  'redis/subscriber:CLOSING': 'unit/subscriptions',
  'redis/subscriber:ELSEWHERE_AT_MOST': 'unit/subscriptions',
  'redis/subscriber:PINGS': 'unit/subscriptions',
  'redis/subscriber:RENEWED_AT_MOST': 'unit/subscriptions',
  'redis/subscriber:RETRY_AFTER': 'unit/subscriptions',
  'redis/subscription:LINGER': 'unit/subscriptions',
  'registry/backed-lock-registry:CLEANING_AT_LEAST': 'unit/registries',
  'registry/backed-lock-registry:CLOSE_TIMEOUT': 'unit/registries',
  'registry/backed-lock-registry:SHOWN_KEYS': 'unit/registries',
  'registry/lead:STAND_AGAIN_AFTER': 'unit/lead',
  'segmented/segmented-lock:CHOICES': 'unit/segments',
  'segmented/segmented-lock:CHOICE_ADDED_AFTER': 'unit/segments',
  'segmented/segmented-lock:MOST_SEGMENTS': 'unit/bad-segments',
  'tools/inspection/find-locks:MANY_KEYS': {
    larger: 'tools/inspection/finding',
    smaller: 'because a smaller database is then searched less often too, and shows new locks later',
  },
  'tools/inspection/find-locks:TIMES_LONGER':
    'because it only says how soon a viewer of a large database shows new locks',
  'tools/inspection/found-lock:CLOCKS_DIFFER': 'unit/looking',
  'tools/inspection/history:LONGEST_GAP': 'tools/cli/history',
  'tools/inspection/history:RENEWED_BY': {
    larger: 'tools/cli/history',
    smaller: 'because a renewal adds a third of the ttl, and a clock that drifts next to nothing',
  },
  'tools/inspection/servers:INTERVAL': 'because it only says how soon a connection that failed is noticed',
  'tools/inspection/servers:TIMEOUT': 'because it only says for how long a look waits for a server that is gone',
};
