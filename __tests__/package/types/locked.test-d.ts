/** Compiled by `npm run typecheck`, never run: which methods `@Locked` takes. */

import { Locked } from '../../../lib/integrations/nestjs';

interface Order {
  readonly id: string;
  readonly amount: number;
}

const at = <Method>(value: Method) => [{}, 'method', { value } as TypedPropertyDescriptor<Method>] as const;

export function methods(): void {
  Locked('key')(...at(async () => 1));
  Locked('key')(...at(async (order: Order) => order));
  Locked((id: string) => id)(...at(async (id: string, ...rest: Order[]) => [id, rest]));
  Locked((id?: string) => `${id}`)(...at(async () => 1));
  Locked((id: string, part = 1) => `${id}${part}`)(...at(async (id: string, part?: number) => [id, part]));
  Locked((...ids: string[]) => ids.join())(...at(async (id: string, other: string) => [id, other]));
  Locked((id: string) => id)(...at(async <Id extends string>(id: Id) => id));
  // A key function may ask for less than the method does.
  Locked(({ id }: Pick<Order, 'id'>) => id)(...at(async (order: Order) => order));
  Locked((id: string | number) => `${id}`)(...at(async (id: string) => id));

  // @ts-expect-error: the method's argument may be a number
  Locked((id: string) => id.trim())(...at(async (id: string | number) => id));
  // @ts-expect-error: it may be missing
  Locked((id: string) => id.trim())(...at(async (id?: string) => id));
  // @ts-expect-error: there is none
  Locked((id: string) => id.trim())(...at(async () => 1));
  // @ts-expect-error: there is one only
  Locked((_: string, id: string) => id.trim())(...at(async (id: string) => id));
  // @ts-expect-error: the method is not asynchronous
  Locked('key')(...at((id: string) => id));
}
