import { setTimeout as sleep } from 'node:timers/promises';
import { locks } from '../../../lib/locks.mjs';

export const runtime = 'nodejs';

export async function POST(_request, { params }) {
  const { id } = await params;
  const registry = await locks();
  const placed = await registry.tryRun(`order:${id}`, () => sleep(500, 'placed'));
  return placed.ran ? Response.json(placed.value) : new Response('being placed already', { status: 409 });
}
