import childProcess from 'node:child_process';
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import { expect, it } from 'vitest';
import { systemClock } from '../../core/base/system.js';
import { startGuard } from './guard.js';

it('a guard that cannot be started for want of descriptors has failed, and does not end the process', async () => {
  const { spawn } = childProcess;
  // As Node does then: there are no streams, and the error comes later.
  const refused = () => {
    const child = new EventEmitter();
    setImmediate(() => child.emit('error', new Error('spawn /bin/sh EMFILE')));
    return child;
  };
  Object.assign(childProcess, { spawn: refused });
  syncBuiltinESMExports();
  try {
    const guard = startGuard({ clock: systemClock, path: '/bin' });
    guard.watch(1);
    guard.extend(systemClock.monotonic() + 1_000);
    expect(await guard.failed).toBe('spawn /bin/sh EMFILE');
    guard.done();
  } finally {
    Object.assign(childProcess, { spawn });
    syncBuiltinESMExports();
  }
});
