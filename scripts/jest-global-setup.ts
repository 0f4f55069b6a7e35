import { startTestServers, type TestServers } from './test-servers';

declare global {
  var testServers: TestServers | undefined;
}

export default async function setup(): Promise<void> {
  globalThis.testServers = await startTestServers();
  Object.assign(process.env, globalThis.testServers.environment);
}
