import type { Release } from './candidate';

/** For a library that keeps a lock alive only around a routine: a routine that lasts until the release. */
export function keptByUsing(using: (routine: () => Promise<void>) => Promise<unknown>): Promise<Release> {
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
