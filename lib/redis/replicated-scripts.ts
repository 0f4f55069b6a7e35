import { NotReplicatedError } from '../api/errors';
import type { ReplicationSettings } from '../api/options';
import { clock } from '../internal/clock';
import { evaluate, type Receiver } from './call';
import type { EvalOptions, RedisClient } from './client';
import { isErrorLike, NotSentError } from './failure';
import type { Line } from './line';
import { type ReplicatingConnection, ReplicatingConnections } from './replicating-connections';
import { type Script, ScriptForMany } from './script';
import type { Silence } from './silence';

/**
 * Runs scripts that acquire locks, and answers for a grant only when enough replicas have it. WAIT holds up what else
 * is sent over its connection, so this has connections of its own. One WAIT serves a batch, and all replies that come
 * at the same time.
 */
export class ReplicatedScripts {
  readonly #connections: ReplicatingConnections;
  readonly #silence: Silence;

  constructor(client: RedisClient, replication: ReplicationSettings, silence: Silence) {
    this.#silence = silence;
    this.#connections = new ReplicatingConnections(client, replication);
  }

  run(script: Script, options: EvalOptions, receiver: Receiver, line: Line): void {
    const key = options.keys?.[0] ?? '';
    const sentAt = clock.now();
    // The connection may be long in the making.
    line.asked(1, sentAt);
    this.#connections.to(key).then(
      (connection) => {
        line.settled(1);
        // Its time is over, and what it acquires would be nobody's.
        if (receiver.isOver) receiver.fail(new NotSentError(clock.now() - sentAt));
        else this.#send(connection, script, options, receiver, line, true);
      },
      (error: unknown) => {
        line.settled(1);
        receiver.fail(error);
      },
    );
  }

  close(): void {
    this.#connections.close();
  }

  #send(
    connection: ReplicatingConnection,
    script: Script,
    options: EvalOptions,
    receiver: Receiver,
    line: Line,
    mayRedirect: boolean,
  ): void {
    const inBetween: Receiver = {
      get isOver() {
        return receiver.isOver;
      },
      answer: (reply) => void this.#answer(connection, script, reply, receiver),
      fail: (error) => {
        const target = mayRedirect ? redirection(error) : undefined;
        if (target === undefined) receiver.fail(error);
        else void this.#redirect(target, error, script, options, receiver, line);
      },
    };
    evaluate(connection.commands, script, options, inBetween, this.#silence, line);
  }

  async #redirect(
    { address, isAsk }: Redirection,
    error: unknown,
    script: Script,
    options: EvalOptions,
    receiver: Receiver,
    line: Line,
  ): Promise<void> {
    try {
      const connection = await this.#connections.redirected(options.keys?.[0] ?? '', address);
      if (connection === undefined) throw error;
      // It is for the next command only, which is sent at once.
      if (isAsk) connection.commands.sendCommand(['ASKING']).catch(() => undefined);
      if (receiver.isOver) throw error;
      this.#send(connection, script, options, receiver, line, false);
    } catch {
      receiver.fail(error);
    }
  }

  async #answer(connection: ReplicatingConnection, script: Script, reply: unknown, receiver: Receiver): Promise<void> {
    const isGrant = (one: unknown): boolean => !isErrorLike(one) && script.grants?.(one) !== false;
    const replies = script instanceof ScriptForMany && Array.isArray(reply) ? (reply as unknown[]) : undefined;
    try {
      if (replies?.some(isGrant) ?? isGrant(reply)) await connection.replicated();
    } catch (error) {
      // Others of the batch were refused: that stays true.
      if (replies === undefined || !(error instanceof NotReplicatedError)) receiver.fail(error);
      else receiver.answer(replies.map((one) => (isGrant(one) ? error : one)));
      return;
    }
    receiver.answer(reply);
  }
}

interface Redirection {
  readonly address: string;
  readonly isAsk: boolean;
}

/** Where a cluster redirects a command to. */
function redirection(error: unknown): Redirection | undefined {
  const [, kind, address = ''] = /^(MOVED|ASK) \d+ (\S+)/.exec(isErrorLike(error) ? error.message : '') ?? [];
  return kind === undefined ? undefined : { address, isAsk: kind === 'ASK' };
}
