import { onAbort } from './abort-fan.js';

/** A signal that aborts as soon as one of several does, with its reason. Call `release()` when it is of no more use: it leaves no listener behind. */
export interface EitherSignal {
  readonly signal: AbortSignal;
  release(): void;
}

/** As `AbortSignal.any`, without anything that outlives its use: some of the signals may live as long as the process. */
export function eitherSignal(...signals: readonly (AbortSignal | undefined)[]): EitherSignal {
  const controller = new AbortController();
  const forget: (() => void)[] = [];
  for (const signal of signals) {
    if (signal?.aborted) controller.abort(signal.reason);
    else if (signal !== undefined) forget.push(onAbort(signal, () => controller.abort(signal.reason)));
  }
  return {
    signal: controller.signal,
    release: () => {
      for (const each of forget.splice(0)) each();
    },
  };
}
