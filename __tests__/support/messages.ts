import type { TestClient } from './redis';

/** What is published on the channel from now on. The client hears it, and sends no other commands. */
export async function messagesOn(client: TestClient | Promise<TestClient>, channel: string): Promise<string[]> {
  const messages: string[] = [];
  await (await client).subscribe(channel, (message) => messages.push(message));
  return messages;
}
