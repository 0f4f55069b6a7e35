import { ignore } from './ioredis';

/** A channel that is wanted. */
export class Channel {
  readonly name: string;
  readonly isSharded: boolean;
  /** Resolves when Redis has confirmed the first subscription. Rejects when Redis refuses it. */
  readonly confirmed: Promise<void>;
  confirm: () => void = ignore;
  fail: (error: unknown) => void = ignore;

  constructor(name: string, isSharded: boolean) {
    this.name = name;
    this.isSharded = isSharded;
    this.confirmed = new Promise((resolve, reject) => {
      this.confirm = resolve;
      this.fail = reject;
    });
    this.confirmed.catch(ignore);
  }

  get id(): string {
    return channelId(this.name, this.isSharded);
  }
}

/** A plain and a sharded channel of the same name are two. */
export function channelId(name: string, isSharded: boolean): string {
  return `${isSharded ? 'sharded' : 'plain'} ${name}`;
}
