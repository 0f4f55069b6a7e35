import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { messageOf } from '../../redis/failure';
import { complain } from './output';

/** What they say is for the command, and would end what it has started. */
export const MESSAGES: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2'];

/** A process, as the system lists it. One that has ended, and whose parent does not know that yet, is none. */
export interface Listed {
  readonly pid: number;
  readonly parent: number;
  /** `undefined`: the system does not list it. */
  readonly group: number | undefined;
  /** The terminal session of the process; `undefined`: the system does not say it. */
  readonly session: number | undefined;
  readonly isStopped: boolean;
  /** With the time of its start: another process may get the same pid later. */
  readonly id: string;
}

/** All processes. Empty: the system lists none. */
export function processes(): Listed[] {
  try {
    return process.platform === 'linux' ? fromProc() : fromPs();
  } catch {
    return [];
  }
}

/** For Linux: there may be no `ps`, as in small images of containers. */
function fromProc(): Listed[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    const stat = textOf(`/proc/${pid}/stat`);
    // The name of the program is in brackets, and may have any character in it.
    const [state = '', parent, group, session, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (/^[ZX]?$/.test(state)) return [];
    const id = `${pid} ${rest[15]}`;
    return [{ ...numbers(pid, parent, group), session: Number(session), isStopped: /^[Tt]/.test(state), id }];
  });
}

/** '': it has ended, or is another user's. */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** For every other system. */
export function fromPs(): Listed[] {
  const columns = ['pid=', 'ppid=', 'pgid=', 'stat=', 'lstart='].flatMap((name) => ['-o', name]);
  const lines = execFileSync('ps', ['-A', ...columns], { encoding: 'utf8' }).split('\n');
  return lines.flatMap((line) => {
    const [pid = '', parent, group, state = '', ...start] = line.trim().split(/ +/);
    if (/^Z?$/.test(state[0] ?? '')) return [];
    const id = `${pid} ${start.join(' ')}`;
    return [{ ...numbers(pid, parent, group), session: undefined, isStopped: state.startsWith('T'), id }];
  });
}

function numbers(pid?: string, parent?: string, group?: string) {
  return { pid: Number(pid), parent: Number(parent), group: Number(group) };
}

/** A process and all that it has started, and what that has started. */
export class ProcessTree {
  readonly #root: number;
  /** What the environment of all of them has, and that of no other process. */
  readonly #mark: string;
  /** By their ids. A process whose parent has ended is found again. */
  readonly #known = new Set<string>();
  /** Processes that this user may not end. */
  readonly #foreign = new Set<string>();
  /** The process itself has ended: its pid may be that of another one. */
  isRootOver = false;

  constructor(root: number, mark: string) {
    this.#root = root;
    this.#mark = mark;
  }

  /** Processes that have not ended. Parents come before what they have started: a shell must not go on to its next line. */
  members(all = processes()): Listed[] {
    const own = ownIn(all);
    if (own === undefined) return this.isRootOver ? [] : [this.#unlisted];
    const isFound = (one: Listed): boolean =>
      (one.pid === this.#root && !this.isRootOver) || this.#known.has(one.id) || this.#isOrphan(one, own);
    const found = new Map(all.filter(isFound).map((one) => [one.pid, one]));
    for (let before = -1; before < found.size; ) {
      before = found.size;
      for (const one of all) if (found.has(one.parent)) found.set(one.pid, one);
    }
    const members = [...found.values()];
    for (const { id } of members) this.#known.add(id);
    return members.filter(({ id }) => !this.#foreign.has(id));
  }

  /** Sends a signal to each of them. `isOfGroup`: the system has sent it to the processes of our group. */
  send(signal: NodeJS.Signals, isOfGroup = false): void {
    const all = processes();
    const group = ownIn(all)?.group;
    const members = this.members(all).filter((one) => !isOfGroup || one.group !== group);
    const isForRoot = MESSAGES.includes(signal);
    for (const one of members) if (!isForRoot || one.pid === this.#root) this.#signal(one, signal);
  }

  /** The process where the system lists none. */
  get #unlisted(): Listed {
    const [pid, parent] = [this.#root, process.pid];
    return { pid, parent, group: undefined, session: undefined, isStopped: false, id: String(pid) };
  }

  #signal({ id, isStopped, pid }: Listed, signal: NodeJS.Signals): void {
    try {
      process.kill(pid, signal);
      // The signal has no effect until then.
      if (isStopped) process.kill(pid, 'SIGCONT');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH' || (signal !== 'SIGKILL' && pid !== this.#root)) return;
      if (signal === 'SIGKILL') this.#foreign.add(id);
      complain(`Process ${pid} cannot get ${signal}: ${messageOf(error)}`);
    }
  }

  /**
   * The parent of a process may have ended before it was found. A daemon, in a session of its own, is not to end with the
   * others.
   */
  #isOrphan({ pid, session }: Listed, own: Listed): boolean {
    if (session === undefined || session !== own.session) return false;
    return textOf(`/proc/${pid}/environ`).split('\0').includes(this.#mark);
  }
}

function ownIn(all: readonly Listed[]): Listed | undefined {
  return all.find(({ pid }) => pid === process.pid);
}
