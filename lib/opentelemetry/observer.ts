import type { AcquireMessage, HoldMessage, LostMessage } from '../api/messages';

/** What becomes of the messages of the channels. */
export interface Observer {
  acquireStarted(message: AcquireMessage): void;
  acquireEnded(message: AcquireMessage): void;
  holdStarted(message: HoldMessage): void;
  holdEnded(message: HoldMessage): void;
  lost(message: LostMessage): void;
  /** No message comes any more: ends what has begun. */
  end(): void;
}
