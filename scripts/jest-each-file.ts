import { expect, jest } from '@jest/globals';

// `jest-environment.ts` says when the second run counts.
jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });

// The clock of most unit tests is a fake one: a test that hangs would wait for nothing.
if (expect.getState().testPath?.includes('/unit/')) jest.setTimeout(60_000);
