import { jest } from '@jest/globals';

// `jest-environment.ts` says when the second run counts; the reporter lists the tests that passed by it.
jest.retryTimes(1, { logErrorsBeforeRetry: true, retryImmediately: true });
