import { describe, expect, it } from 'vitest';
import { ConfigError } from '../base/errors.js';
import { defaultStore } from './default-store.js';

describe('the store of a program that names none', () => {
  it('is a folder below the working directory', () => {
    expect(defaultStore({ env: {}, processId: 4711, root: '/no/such/folder' })).toBe('file:.nodelease');
  });

  it('is refused in a container, whose folder no other one sees', () => {
    const ask = () =>
      defaultStore({
        env: { KUBERNETES_SERVICE_HOST: '10.0.0.1' },
        processId: 4711,
        root: '/no/such/folder',
      });
    expect(ask).toThrow(ConfigError);
    expect(ask).toThrow(
      /^store: expected one that all tasks reach, such as s3:\/\/bucket\/prefix \(in a container \(KUBERNETES_SERVICE_HOST is set\)/,
    );
  });
});
