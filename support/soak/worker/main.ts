/** A worker of the soak: callers on one registry, and the commands of the process that started it. */

import { Random } from '../../random';
import { AwakeClock, sharedNow } from '../awake-clock';
import type { Answer, Command, WorkerSettings } from '../messages';
import { registryOptions } from '../settings';
import { Caller } from './caller';
import { Gate } from './gate';
import { HeldLeases } from './held-leases';
import { PendingSteps } from './pending-steps';
import { busy, progress } from './progress';
import { RecordFile } from './record-file';
import { Session } from './session';

const CALLERS = 4;
/** ms; longer than any lease is held, so that the last `close` gives no lease up. */
const LAST_CLOSE = 5_000;

const settings = JSON.parse(process.env.SOAK_WORKER ?? '{}') as WorkerSettings;
const records = new RecordFile(settings.recordFile);
const clock = new AwakeClock((gap) => {
  held.tick(gap);
  steps.check();
});
const steps = new PendingSteps(clock, records);
const held = new HeldLeases(records);
const gate = new Gate();
const random = new Random(settings.seed);
let calls = 0;

const open = () => Session.open(settings);

async function start(): Promise<(command: Command) => Promise<void>> {
  let session = await open();
  const nextCall = () => `${settings.name}-${++calls}`;
  const { type, extras } = settings;
  const services = { gate, steps, held, records, type, extras, nextCall, registry: () => session.registry };
  const working = Array.from({ length: CALLERS }, () => new Caller(services, random.fork()).work());

  const close = async (timeout: number) => {
    const ended = session;
    await steps.bounded(`close of ${settings.name}`, timeout + registryOptions.commandTimeout, ended.close(timeout));
  };

  return async (command) => {
    switch (command.do) {
      case 'block':
        return blockEventLoop(command.ms);
      case 'pause':
        await gate.shut();
        return answer({ done: 'pause', memory: process.memoryUsage.rss() });
      case 'resume':
        gate.open();
        return answer({ done: 'resume' });
      case 'progress':
        return answer({ done: 'progress', failures: await progress(session.registry, type, steps, command) });
      case 'busy':
        return answer({ done: 'busy', longest: await busy(session.registry, type, command) });
      case 'restart': {
        const { givenUp } = session;
        await close(command.closeTimeout);
        session = await open();
        return answer({ done: 'restart', closedKeys: givenUp });
      }
      case 'close client':
        session.givesUp = command.givesUp;
        if (!command.givesUp) session.closeClient();
        return answer({ done: 'close client' });
      case 'connect client':
        await session.connectClient();
        return answer({ done: 'connect client' });
      case 'finish':
        gate.finish();
        await Promise.all(working);
        await close(LAST_CLOSE);
        clock.stop();
        process.off('disconnect', die);
        answer({ done: 'finish' });
        // From here on nothing but the library could keep this process alive.
        process.disconnect();
    }
  };
}

/** As a computation does that takes this long. */
function blockEventLoop(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function answer(message: Answer): void {
  process.send?.(message);
}

function die(): never {
  process.exit(1);
}

process.on('disconnect', die); // never outlive the soak, however it ended
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group: the soak ends its workers
process.on('unhandledRejection', (error) => records.violation('unhandled rejection', describe(error)));
process.on('uncaughtException', (error) => records.violation('uncaught exception', describe(error)));
process.on('warning', (warning) => {
  if (warning.name === 'MaxListenersExceededWarning') records.violation('leaked listeners', describe(warning));
});

function describe(error: unknown): string {
  return error instanceof Error ? `${error.stack}` : `${error} at ${sharedNow()}`;
}

void start().then((carryOut) => {
  process.on('message', (command: Command) => void carryOut(command));
  answer({ done: 'start' });
});
