import { FaultyProxy } from '../proxy';

export { FaultyProxy };

/** A network that is not ideal even when nothing is wrong: requests in flight can be met by a fault. */
export function healthy(proxy: FaultyProxy): void {
  proxy.requests.delay = 1;
  proxy.replies.delay = 1;
}
