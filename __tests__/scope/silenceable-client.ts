import type { RedisClient, RedisCommands } from '../../lib';

/** A client that can be switched to send nothing and never reply. */
export interface SilenceableClient extends RedisClient {
  silent: boolean;
}

export function silenceable(client: RedisClient): SilenceableClient {
  const never = () => new Promise<unknown>(() => undefined);
  const switchable = (commands: RedisCommands): RedisCommands => ({
    eval: (script, options) => (wrapper.silent ? never() : commands.eval(script, options)),
    evalSha: (sha1, options) => (wrapper.silent ? never() : commands.evalSha(sha1, options)),
  });
  const wrapper: SilenceableClient = {
    ...switchable(client),
    withCommandOptions: (options) => switchable(client.withCommandOptions?.(options) ?? client),
    silent: false,
  };
  return wrapper;
}
