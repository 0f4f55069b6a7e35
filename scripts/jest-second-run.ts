import { jest } from '@jest/globals';

// `jest-environment.ts` says when the second run counts.
jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });
