import { buildApp } from './app.mjs';

const app = buildApp();
await app.listen({ port: Number(process.env.PORT ?? 3000) });
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => app.close());
