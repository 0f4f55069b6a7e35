import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface UpstashServer {
  readonly url: string;
  /** Commands, without those of pipelines. */
  readonly commands: readonly string[][];
  /** The next requests get this answer: status and body. */
  readonly failures: [status: number, body: string][];
  stop(): void;
}

const TOKEN = 'token';

/** How @upstash/redis reaches it. */
export const upstashOptions = ({ url }: UpstashServer) => ({ url, token: TOKEN, enableTelemetry: false });

function base64(reply: unknown): unknown {
  if (typeof reply === 'string') return Buffer.from(reply).toString('base64');
  return Array.isArray(reply) ? reply.map(base64) : reply;
}

/**
 * Upstash's REST API, over the Redis of this client, which speaks RESP 2. A command is a JSON array. The answer is
 * `{ result }`, with texts in base64 if the request asks for it, or `{ error }` with the status 400.
 */
export async function startUpstashServer(redis: {
  sendCommand(words: string[]): Promise<unknown>;
}): Promise<UpstashServer> {
  const commands: string[][] = [];
  const failures: UpstashServer['failures'] = [];
  const server = createServer(async (request, response) => {
    const encoded = request.headers['upstash-encoding'] === 'base64' ? base64 : (reply: unknown) => reply;
    const run = async (command: unknown[]): Promise<object> => {
      const words = command.map(String);
      commands.push(words);
      return redis.sendCommand(words).then(
        (reply) => ({ result: encoded(reply) }),
        ({ message }: Error) => ({ error: message }),
      );
    };
    const answer = (status: number, body: string) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    const asked = JSON.parse(await text(request));
    const failure = failures.shift();
    if (failure !== undefined) return answer(...failure);
    if (request.headers.authorization !== `Bearer ${TOKEN}`) return answer(401, '{"error":"WRONGPASS wrong token"}');
    const isPipeline = request.url?.endsWith('/pipeline') === true;
    const result = isPipeline ? await Promise.all(asked.map(run)) : await run(asked);
    return answer('error' in result ? 400 : 200, JSON.stringify(result));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    commands,
    failures,
    stop() {
      server.close();
      server.closeAllConnections();
    },
  };
}
