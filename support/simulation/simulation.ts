import { Random } from '../random';
import { applyFault, close, cutOff } from './apply-fault';
import { Caller, EVALUATED } from './caller';
import { BoundChecks } from './checks/bounds';
import { CallChecks } from './checks/calls';
import { CommandChecks } from './checks/commands';
import { ForcedUnlocks } from './checks/forced-unlocks';
import { Grants } from './checks/grants';
import { LeaseChecks } from './checks/leases';
import { checkLeftovers } from './checks/leftovers';
import { OrderChecks } from './checks/order';
import { PermitChecks } from './checks/permits';
import { SharedOrderChecks } from './checks/shared-order';
import { StepChecks } from './checks/steps';
import type { Connection, Network } from './client/connection';
import { LostWords } from './client/lost-words';
import { describeRun } from './describe-run';
import { Heirs } from './heirs';
import { History } from './history';
import { createHost } from './host';
import { OnceCallers } from './once';
import { faultsOf, keysOf, type Plan } from './plan';
import type { LibraryInstance } from './process/library';
import { RedisServer } from './server/redis-server';
import { Replicas } from './server/replicas';
import { type ScriptEngine, sha1 } from './server/script-engine';
import { Timeline } from './timeline';
import { Trace, type TraceEvent } from './trace';
import { type Violation, Violations } from './violations';
import { FOLLOW_UP, type Host, isCutOff, isDelayed, isDisturbed, lockName, RECOVERY, type World } from './world';

/** Virtual ms in which every call has settled, but for those in which a lock is left to processes that may adopt it. */
const BOUND = 120_000;

/** Events of one simulation; more means that something goes on without an end. */
const MOST_EVENTS = 300_000;

/** What holds though a server that was replaced answers once more: the locks that it gives back stay taken. */
const OF_A_FAILOVER = ['two holders', 'too many permits', 'lease without key', 'late', 'timer left'] as const;

/** Virtual ms after which the clients are connected. */
const CONNECTED = 20;

/** Virtual ms between two checks of what is pending. */
const CHECK_INTERVAL = 150;

/** Calls that replace others wait for longer, and in no order. */
const OF_REPLACEMENTS = [
  'began before the end',
  'taken from who is not told',
  'not told',
  'not asked',
  'end not known',
  'two holders',
  'lease without key',
  'token',
  'min hold',
  'not settled',
  'strange error',
  'foreign context',
  'unhandled rejection',
  'left in Redis',
  'left behind',
  'timer left',
] as const;

export interface Outcome {
  readonly violations: readonly Violation[];
  readonly history: readonly string[];
  /** Of each lock, if they were to be written down. */
  readonly traces: readonly (readonly TraceEvent[])[];
  readonly events: number;
  /** Virtual ms. */
  readonly duration: number;
}

export interface SimulationOptions {
  readonly instances: readonly LibraryInstance[];
  readonly engine: ScriptEngine;
  readonly isRecorded: boolean;
  readonly isTraced: boolean;
}

/** Runs one plan from its beginning to its end. To be called outside of any microtask. */
export class Simulation {
  readonly #world: World;
  readonly #leases: LeaseChecks;
  readonly #calls: CallChecks;
  readonly #steps: StepChecks;
  readonly #bounds: BoundChecks;
  readonly #commands: CommandChecks;
  readonly #callers: readonly Caller[];
  readonly #once: OnceCallers;
  readonly #trace: Trace | undefined;
  #events = 0;
  /** Everybody is done. */
  #isOver = false;

  constructor(plan: Plan, { instances, engine, isRecorded, isTraced }: SimulationOptions) {
    const timeline = new Timeline();
    const history = new History(timeline, isRecorded);
    const violations = new Violations(timeline, history);
    const isReplaced = faultsOf(plan).some(({ kind }) => kind === 'replace');
    if (isReplaced) violations.only = OF_A_FAILOVER;
    else if (plan.extra === 'replaced') violations.only = OF_REPLACEMENTS;
    const hosts: Host[] = [];
    const server = new RedisServer(timeline, engine, (run) => {
      const isForced = forced.ran(run);
      const isTaken = this.#leases.replacements.ran(scripts.get(run.source));
      grants.ran(server, locks, timeline.now);
      this.#once.note();
      this.#trace?.executed(hostWith(run.connection as Connection), isForced || isTaken, run.args[1]);
      // Several scripts may run in one event, after a freeze of the server.
      this.#calls.note(run);
      order.ran(run);
      const [id = ''] = run.args;
      const isEvaluated = run.source.endsWith(EVALUATED) && run.reply === id;
      if (isEvaluated) this.#leases.evaluated(run.args.at(-1) ?? '', id, run.keys.at(-1) ?? '');
      this.#cutAfter(run.connection as Connection, isEvaluated || isTaken || (isForced && run.reply === 1));
      sharedOrder.ran(run);
      history.note('server', () => describeRun(run, hosts, instances));
    });
    if (plan.ticks) server.ticks = new Random(plan.seed, 'ticks');
    const hostWith = (connection: Connection): Host | undefined =>
      hosts.find(({ directory }) => directory.has(connection));
    const scripts = instances[0]?.scripts ?? new Map<string, string>();
    // A command has the text of its script, or the digest.
    const scriptNames = new Map(
      [...scripts].flatMap(([text, name]) => [[text, name] as const, [sha1(text), name] as const]),
    );
    const network: Network = {
      timeline,
      server,
      random: new Random(plan.seed, 'network'),
      repetitions: new Random(plan.seed, 'repetitions'),
      messageFaults: plan.messageFaults,
      lostWords: new LostWords(plan.lostWords ?? 0, new Random(plan.seed, 'words')),
      replicas: new Replicas(timeline, plan.replicas),
      asked: (command) => this.#commands.asked(command),
      refusal: (connection, [name = '']) => {
        const { refusal } = hostWith(connection) ?? {};
        const isIts = refusal !== undefined && name.startsWith(refusal.command) && timeline.now < refusal.until;
        return isIts ? refusal.error : undefined;
      },
      executing: (sentAt) => this.#trace?.executing(sentAt),
      sent: (connection, [name, script = '']) => {
        const host = hostWith(connection);
        if (host !== undefined && name?.startsWith('EVAL')) host.unansweredSince ??= timeline.now;
        const scriptName = scriptNames.get(script);
        // What gives back a grant that too few replicas have.
        if (network.replicas.areInTrouble && scriptName?.startsWith('release') && host?.moments.chance(0.2))
          cutOff(this.#world, host, connection, 'late');
        if (!scriptName?.startsWith('renew')) return;
        const isRefused = name === 'EVALSHA' && !server.knows(script);
        if (host !== undefined) timeline.after(0, () => this.#blockAtRenewal(host, isRefused));
      },
    };
    const permits = new PermitChecks({ plan, timeline, server });
    this.#world = { plan, timeline, history, server, network, hosts, violations, permits, lostCompanions: new Map() };
    // The specification has one server, which is not replaced.
    this.#trace = isTraced && !isReplaced ? new Trace(this.#world, keysOf(plan)) : undefined;
    const locks = keysOf(plan).map(lockName);
    const grants = new Grants();
    const forced = new ForcedUnlocks(this.#world, scripts, (key, owner) => this.#leases.excuseOne(key, owner));
    this.#leases = new LeaseChecks(this.#world, grants);
    this.#commands = new CommandChecks(this.#world, scriptNames);
    this.#calls = new CallChecks(this.#world, this.#leases);
    this.#once = new OnceCallers(this.#world, this.#leases, instances);
    this.#steps = new StepChecks(this.#world);
    this.#bounds = new BoundChecks(this.#world, this.#calls, this.#leases, this.#once);
    const order = new OrderChecks(this.#world, this.#calls, this.#leases, scripts);
    const sharedOrder = new SharedOrderChecks(this.#world, grants, this.#calls);
    const services = {
      world: this.#world,
      leases: this.#leases,
      calls: this.#calls,
      steps: this.#steps,
      order,
      sharedOrder,
      heirs: new Heirs(this.#world, this.#leases, grants),
    };
    plan.processes.forEach((one, index) => {
      const host = createHost(this.#world, one, index, instances[index] as LibraryInstance);
      host.process.onPause = (ms) => this.#leases.paused(host, ms);
      hosts.push(host);
    });
    this.#callers = plan.callers.map((caller, i) => {
      const host = hosts[caller.process] as Host;
      const { library } = instances[caller.process] as LibraryInstance;
      return new Caller(`${host.process.name}.c${i + 1}`, caller, host, library, services);
    });
  }

  get violations(): Violations {
    return this.#world.violations;
  }

  run(): Outcome {
    const { plan, timeline, hosts, violations, history } = this.#world;
    for (const fault of plan.faults) timeline.at(fault.at, () => applyFault(this.#world, this.#leases, fault));
    timeline.at(CONNECTED, () => {
      for (const caller of this.#callers) caller.start();
      this.#once.start();
    });
    this.#lookNowAndThen();
    const lastFault = plan.faults.at(-1)?.at ?? 0;
    const longest = Math.max(0, ...plan.faults.map((fault) => ('duration' in fault ? fault.duration : 0)));
    const isLate = (): boolean => timeline.now >= BOUND + longest + this.#calls.onTheWay;
    this.#runUntil(() => (this.#areDone() && timeline.now > lastFault) || isLate(), Number.POSITIVE_INFINITY);
    for (const { caller, keys } of this.#calls.pending) {
      const text = `${caller} still waits for "${keys.join(' + ')}"`;
      if (this.#isAlive(caller)) violations.report('not settled', caller, text);
    }
    this.#once.checkSettled();
    const unsettled = this.#callers.filter((caller) => !caller.isDone && caller.isAlive);
    for (const caller of unsettled)
      violations.report('not settled', caller.name, `${caller.name} has not come to its end`);
    const ends = hosts.map(({ disturbedUntil, refusal }) => Math.max(disturbedUntil, (refusal?.until ?? 0) + RECOVERY));
    const quiet = Math.max(timeline.now, ...ends);
    this.#runUntil(() => timeline.now >= quiet + FOLLOW_UP, quiet + FOLLOW_UP + 1_000);
    history.note('', () => 'everybody is done');
    this.#isOver = true;
    checkLeftovers(this.#world, 'after everybody was done');
    for (const host of hosts) this.#bounds.checkIdle(host);
    this.#closeAll();
    return {
      violations: violations.all,
      history: history.lines,
      traces: this.#trace?.traces ?? [],
      events: this.#events,
      duration: timeline.now,
    };
  }

  /** The reply of a script is lost with its connection, where the client sends it again. */
  #cutAfter(connection: Connection, isOnce: boolean): void {
    const { hosts, plan, history } = this.#world;
    const host = hosts.find(({ directory }) => directory.has(connection));
    if (host === undefined || !plan.processes[host.index]?.client.repeats) return;
    // What must be executed once matters most.
    if (!host.moments.chance(isOnce ? 0.7 : 0.01)) return;
    history.note('FAULT', () => `the connection of ${host.process.name} breaks`);
    cutOff(this.#world, host, connection);
  }

  /** For less than what is left of its leases: none of them is lost by that. */
  #blockAtRenewal(host: Host, isRefused: boolean): void {
    const { plan, history } = this.#world;
    if (!host.moments.chance(plan.processes[host.index]?.blocksAtRenewal ?? 0)) return;
    // What the server refuses has to be written again, when the event loop runs again.
    if (isRefused) return;
    const left = [...this.#leases.open].filter((one) => one.host === host).map(({ lease }) => lease.remaining);
    const ms = Math.min(...left.filter((remaining) => remaining > 0)) * host.moments.between(0.2, 0.9);
    if (!Number.isFinite(ms)) return;
    history.note('FAULT', () => `${host.process.name} is blocked for ${ms.toFixed(0)} ms after it wrote a renewal`);
    host.process.pause(ms);
  }

  #closeAll(): void {
    const { hosts, timeline, violations } = this.#world;
    const open = hosts.filter(({ process, closing }) => process.isAlive && closing === 'no');
    for (const host of open) host.process.post('task', () => void close(this.#world, this.#leases, host, 1_000));
    const end = timeline.now + 3_000;
    this.#runUntil(() => open.every(({ closing }) => closing === 'closed'), end);
    for (const { process, closing } of hosts) {
      if (!process.isAlive) continue;
      if (closing !== 'closed')
        violations.report('not settled', process.name, `close() of ${process.name} has not settled`);
      const left = [...process.timers].filter(({ keepsAlive }) => keepsAlive);
      if (left.length > 0)
        violations.report('timer left', process.name, `${left.length} timers keep ${process.name} alive`);
    }
    this.#runUntil(() => timeline.now >= end, end);
    checkLeftovers(this.#world, 'after everything was closed');
  }

  #runUntil(isOver: () => boolean, end: number): void {
    const { timeline, violations } = this.#world;
    // An empty step: so that time goes on to the end where nothing else happens.
    timeline.at(end, () => undefined);
    drain();
    while (!isOver() && timeline.now < end) {
      if (++this.#events > MOST_EVENTS) {
        violations.report('not settled', 'everything', `there is no end after ${MOST_EVENTS} events`);
        return;
      }
      try {
        if (!timeline.step()) return;
      } catch (error) {
        // It would end a real process.
        violations.report('strange error', 'uncaught', error instanceof Error ? (error.stack ?? '') : String(error));
      }
      drain();
      this.#checkNow();
    }
  }

  #checkNow(): void {
    // That the clients connect for the first time disturbs nobody.
    for (const host of this.#world.timeline.now < CONNECTED ? [] : this.#world.hosts) {
      if (isDelayed(this.#world, host)) host.lastDelayed = this.#world.timeline.now;
      if (isDisturbed(this.#world, host)) host.lastDisturbed = this.#world.timeline.now;
      if (isCutOff(this.#world, host)) host.lastCutOff = this.#world.timeline.now;
      host.lastPaused = Math.min(this.#world.timeline.now, host.process.pausedUntil);
    }
    this.#leases.check();
    this.#trace?.check(this.#leases.open);
    this.#calls.note();
    this.#once.note();
  }

  #lookNowAndThen(): void {
    this.#world.timeline.after(CHECK_INTERVAL, () => {
      this.#bounds.check();
      if (!this.#areDone()) {
        this.#calls.check();
        this.#commands.check();
        this.#leases.replacements.check();
        this.#steps.check();
        this.#once.check();
      }
      if (!this.#isOver) this.#lookNowAndThen();
    });
  }

  #areDone(): boolean {
    return this.#once.areDone && this.#callers.every((caller) => caller.isDone || !caller.isAlive);
  }

  #isAlive(name: string): boolean {
    return this.#callers.some((caller) => caller.name === name && caller.isAlive);
  }
}

interface NodeInternals {
  /** Node.js' own way to emulate the end of a turn: runs microtasks and ticks, and reports unhandled rejections. */
  _tickCallback(): void;
}

/** Runs everything that is ready to run without time going on. */
function drain(): void {
  (process as unknown as NodeInternals)._tickCallback();
}
