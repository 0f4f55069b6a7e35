import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startWorkerd, type Workerd } from '../../support/workerd/start';
import { allOverTcp, bundleWorker, HTTP_WORKER, OVER_HTTP, tcpWorker } from '../../support/workerd/workers';
import { ProgramFolder } from '../package/readme/program-folder';
import { ifBuilt } from '../support/built-package';
import { describePrivate } from '../support/private-redis';

ifBuilt(describePrivate)('In workerd with nodejs_compat', () => {
  const programs = ProgramFolder.install('workerd');
  let workerd: Workerd;
  let overTcp: Workerd;

  const start = async (contents: string, env: Readonly<Record<string, string>>): Promise<Workerd> =>
    startWorkerd(await bundleWorker(contents, programs.folder.path), env);

  beforeAll(async () => {
    const { UPSTASH_REDIS_REST_URL = '', UPSTASH_REDIS_REST_TOKEN = '' } = programs.env;
    workerd = await start(HTTP_WORKER, { UPSTASH_REDIS_REST_URL, UPSTASH_REDIS_REST_TOKEN });
    const { host, port } = programs.folder.redis;
    overTcp = await start(tcpWorker('ioredis6'), { HOST: host, PORT: String(port) });
  }, 300_000);

  afterAll(() => Promise.all([workerd?.stop(), overTcp?.stop()]));

  it('In workerd, locks over TCP exclude each other, are renewed, and wait, with the clients redis and ioredis', async () => {
    for (let request = 0; request < 2; request++) {
      expect(await (await fetch(overTcp.url)).json()).toEqual(allOverTcp());
    }
  }, 60_000);

  it('In workerd, locks over HTTP exclude each other, are renewed, wait, and are entered again; in each request anew', async () => {
    for (let request = 0; request < 2; request++) {
      const response = await fetch(workerd.url);
      expect(await response.json()).toEqual(OVER_HTTP);
    }
  });
});
