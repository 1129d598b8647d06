import {
  type Lease,
  type LeaseListener,
  LeaseLostError,
  LeaseReleasedError,
  type LossReason,
} from '../model/lease.js';
import type { LeaseAttributes } from '../model/lease-tracer.js';
import { Holder, type HolderOptions } from './holder.js';
import type { LeaseHome } from './lease-home.js';
import type { TenureTime } from './tenure-time.js';

export interface NodeHolderOptions extends HolderOptions<LeaseLostError> {
  readonly emit: LeaseListener;
}

/** Holds one node id. */
export abstract class NodeHolder extends Holder<LeaseLostError> implements Lease {
  abstract readonly retiring: AbortSignal;
  abstract readonly tenureTime: TenureTime;
  abstract readonly home: LeaseHome | undefined;

  /** @param facts attributes of the spans, in addition to node id, version and task */
  constructor(
    readonly id: number,
    readonly version: number,
    readonly taskId: string,
    options: NodeHolderOptions,
    facts: LeaseAttributes = {},
  ) {
    super(options, {
      'nodelease.node_id': id,
      'nodelease.version': version,
      'nodelease.task_id': taskId,
      ...facts,
    });
  }

  abstract setKnownNodes(versions: Readonly<Record<number, number>>): void;

  protected lossError(reason: LossReason, deadline: number, detail: string, cause?: unknown): LeaseLostError {
    return new LeaseLostError(this.id, this.version, reason, deadline, detail, cause);
  }

  protected releasedError(): LeaseReleasedError {
    return new LeaseReleasedError(this.id, this.version);
  }
}
