import type { RedisClient, RedisCommands } from '../../lib';

/** A client that can be made to send nothing and to answer nothing. */
export interface SilenceableClient extends RedisClient {
  silent: boolean;
}

export function silenceable(client: RedisClient): SilenceableClient {
  const never = () => new Promise<unknown>(() => undefined);
  const muted = (commands: RedisCommands): RedisCommands => ({
    eval: (script, options) => (wrapper.silent ? never() : commands.eval(script, options)),
    evalSha: (sha1, options) => (wrapper.silent ? never() : commands.evalSha(sha1, options)),
  });
  const wrapper: SilenceableClient = {
    ...muted(client),
    withCommandOptions: (options) => muted(client.withCommandOptions?.(options) ?? client),
    silent: false,
  };
  return wrapper;
}
