export interface Connectable {
  on(event: 'error', listener: () => void): unknown;
  connect(): Promise<unknown>;
}

/** Connects a client. Without a listener of `error`, a cut connection would end the process. */
export async function connected<T extends Connectable>(client: T): Promise<T> {
  client.on('error', () => {});
  await client.connect();
  return client;
}
