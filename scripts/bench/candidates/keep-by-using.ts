import type { Release } from './candidate';

/** For a library that renews a lock only around a routine: runs a routine that ends at the release. */
export function keepByUsing(using: (routine: () => Promise<void>) => Promise<unknown>): Promise<Release> {
  return new Promise((resolve, reject) => {
    const done = using(
      () =>
        new Promise<void>((end) => {
          resolve(() => {
            end();
            return done;
          });
        }),
    );
    done.catch(reject);
  });
}
