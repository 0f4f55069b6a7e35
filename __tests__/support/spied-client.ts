import type { RedisClient, RedisCommands } from '../../lib';

/** Wraps any kind of client and counts its commands. */
export interface SpiedClient extends RedisClient {
  readonly sent: number;
  /** The number of keys of each command. */
  readonly sizes: number[];
  /** The digests of the scripts that were called by them, in order. */
  readonly digests: string[];
}

export function spyOn(client: RedisClient): SpiedClient {
  let sent = 0;
  const sizes: number[] = [];
  const digests: string[] = [];
  const counting = (commands: RedisCommands): RedisCommands => ({
    eval(script, options) {
      sent += 1;
      sizes.push(options?.keys?.length ?? 0);
      return commands.eval(script, options);
    },
    evalSha(sha1, options) {
      sent += 1;
      digests.push(sha1);
      sizes.push(options?.keys?.length ?? 0);
      return commands.evalSha(sha1, options);
    },
  });
  return {
    ...counting(client),
    withCommandOptions: (options) => counting(client.withCommandOptions?.(options) ?? client),
    get sent() {
      return sent;
    },
    sizes,
    digests,
  };
}
