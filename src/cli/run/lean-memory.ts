import { setFlagsFromString } from 'node:v8';

/**
 * Tells V8 to prefer a small heap to a fast one, for a supervisor that does next to nothing and sits beside every task. `npm run bench` measures
 * what it takes. V8 takes flags reliably while there is one thread only.
 */
export function keepMemoryLean(): void {
  setFlagsFromString('--optimize-for-size');
  setFlagsFromString('--semi-space-growth-factor=1');
}
