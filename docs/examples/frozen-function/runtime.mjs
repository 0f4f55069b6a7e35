import { handler } from './handler.mjs';

// What the platform does around a function: it hands over events, and freezes the process in between.
process.on('message', async (event) => {
  process.send(await handler(event).catch((error) => ({ statusCode: 500, error: String(error) })));
});
