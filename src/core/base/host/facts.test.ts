import { describe, expect, it } from 'vitest';
import { ensureHome, hostName } from './facts.js';

const nothing = () => {
  throw new Error('A system error occurred: uv_os_homedir returned ENOENT');
};

function homeOf(env: NodeJS.ProcessEnv, ask: () => string): string | undefined {
  ensureHome(env, ask);
  return env.HOME;
}

describe('what a system does not know', () => {
  it('is the home of a user without an entry, who gets one: SDKs fail without', () => {
    expect(homeOf({}, nothing)).toBe('/');
    expect(homeOf({ HOME: '/srv' }, nothing)).toBe('/srv');
    expect(homeOf({}, () => '/home/me')).toBeUndefined();
  });

  it('is the name of the host, which is left out', () => {
    expect(hostName(nothing)).toBe('');
    expect(hostName(() => 'web-3')).toBe('web-3');
  });
});
