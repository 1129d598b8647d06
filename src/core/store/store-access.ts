import type { EtcdAccess } from './etcd/etcd-access.js';

/** How to reach a store. Each option is for the kinds of stores that have it. */
export interface StoreAccess {
  /**
   * The http(s) URL of the server of a cloud's store: an S3-compatible one, another cloud of the same kind, an
   * emulator. @default the cloud's
   */
  readonly endpoint?: string | undefined;
  /** The region of an S3 bucket. @default what the AWS environment says */
  readonly region?: string | undefined;
  /** Access to an etcd cluster. @default without user and client certificate */
  readonly etcd?: EtcdAccess | undefined;
}
