import { afterAll, vi } from 'vitest';

// Files share their workers: the variables of one are not there for the next one.
afterAll(() => {
  vi.unstubAllEnvs();
});
