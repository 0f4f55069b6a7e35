import type { TestClient } from '../support/redis';

/** Calls `made` with every duplicate of the client, before it is connected. */
export function onDuplicate(client: TestClient, made: (copy: TestClient) => void): void {
  const duplicate = client.duplicate.bind(client) as (overrides?: object) => TestClient;
  const spied = (overrides?: object): TestClient => {
    const copy = duplicate(overrides);
    made(copy);
    return copy;
  };
  Object.assign(client, { duplicate: spied });
}
