import { setTimeout as sleep } from 'node:timers/promises';
import { Controller, HttpException, Injectable, Module, Param, Post } from '@nestjs/common';
import { createClient } from 'redis';
import { LockRegistry, LockTimeoutError, RegistryClosedError } from 'redis-lock-registry';
import { Locked, LockModule } from 'redis-lock-registry/nestjs';

const connect = (url: string) => createClient({ url }).on('error', console.error).connect();

@Injectable()
export class Checkout {
  running = 0;
  most = 0;

  @Locked((cart: string) => `cart:${cart}`, { waitTime: 2_000 })
  async checkOut(cart: string): Promise<string> {
    this.most = Math.max(this.most, ++this.running);
    await sleep(100);
    this.running--;
    return `checked out ${cart}`;
  }
}

@Controller()
export class Shop {
  constructor(
    private readonly checkout: Checkout,
    private readonly locks: LockRegistry,
  ) {}

  /** Waits for its turn. */
  @Post('carts/:id')
  async cart(@Param('id') id: string): Promise<string> {
    try {
      return await this.checkout.checkOut(id);
    } catch (error) {
      const isBusy = error instanceof LockTimeoutError || error instanceof RegistryClosedError;
      throw isBusy ? new HttpException('busy', 503, { cause: error }) : error;
    }
  }

  /** A double click doesn't wait. */
  @Post('orders/:id')
  async order(@Param('id') id: string): Promise<string> {
    const placed = await this.locks.tryRun(`order:${id}`, () => sleep(100, 'placed'));
    if (!placed.ran) throw new HttpException('being placed already', 409);
    return placed.value;
  }
}

@Module({
  imports: [
    // 'pub-sub', since requests wait for the cart of another process.
    LockModule.forRootAsync({
      useFactory: () => ({
        client: () => connect(process.env.REDIS_URL ?? 'redis://localhost:6379'),
        registryKey: 'shop',
        lockType: 'pub-sub',
      }),
    }),
  ],
  controllers: [Shop],
  providers: [Checkout],
})
export class AppModule {}
